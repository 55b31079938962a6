/**
 * A process that collects numbered records into a real state and delivers them with the real loop
 * and the real sink `file` or `archive`. It runs until it is killed, or, with a number as fourth
 * argument, until that many records exist and all are acknowledged. The third argument is the size
 * at which the file is rotated and compressed, `-`, or `archive`. Several batches await their
 * acknowledgement at any moment, so that kills hit each state of the file. With a fifth argument it replays its first
 * records once, and notes in the file of that name how many. It prints each step of the replay. With WITNESS_URL and WITNESS_KEY,
 * that witness cosigns the archive.
 */
import { logEvents } from '../../../src/model/log-events.ts';
import { existsSync, writeFileSync } from 'node:fs';
import { flushCompileCache } from 'node:module';
import { systemClock, systemRandom } from '../../../src/time/clock.ts';
import { Delivery } from '../../../src/deliver/delivery.ts';
import { contextOf } from './sink-batches.ts';
import type { ResumePoint } from '../../../src/model/sink.ts';
import type { Log, Meters } from '../../../src/model/telemetry.ts';
import { archive } from '../../../src/sink/archive/index.ts';
import { file } from '../../../src/sink/file/index.ts';
import { Secret } from '../../../src/settings/secret.ts';
import { keyFrom } from '../archive.ts';
import { append, openJournal, rangeReplay, source, storeReplay } from '../model-journal.ts';

const [directory = '', path = '', size, end, replayed] = process.argv.slice(2);
const silent = (): void => undefined;
const log: Log = {
  write: (event, ...[fields]) => {
    if (['warn', 'error'].includes(logEvents[event].level)) console.error(event, fields);
  },
};
const meters = { eventsDelivered: silent, deliveryDelay: silent, sinkRetried: silent } as unknown as Meters;
const journal = await openJournal(directory, systemClock);
const type = size === 'archive' ? 'archive' : 'file';
const state = journal.sinkPositions.register(type, type, path, journal.positionFor('journal'), undefined);
const stop = new AbortController();
const loop = new Delivery({
  settings: {
    id: type,
    type,
    batch: { maxRecords: 7, maxBytes: 1e6, maxWait: 1 },
    deadline: 60_000,
    resolvable: true,
    failReadinessAfter: Infinity,
  },
  journal,
  pipeline: (entry, put) => {
    const { seq, number, uid, text, received, late } = entry;
    const made = { seq, number, uid, source, time: received, received, late, severity: 1, action: 'Open', key: undefined };
    return { ...made, bytes: put(Buffer.from(text)) };
  },
  open: (signal) => {
    const resumePoint: ResumePoint = {
      journal: journal.id,
      get position() {
        return state.delivered;
      },
      get resumeNote() {
        return state.resumeNote;
      },
      completeSince: 0,
      chainAt: (seq) => journal.chainAt(seq),
      commitResumeNote: (note) => journal.commitResumeNote(type, note),
      // Records are numbered by their entries, so the journal may contain no other entries.
      archiveCheckpoint: () => Promise.resolve(),
      restored: () => journal.restored(type),
      replayedFrom: () => undefined,
      lost: (loss, note) => journal.lost(type, loss, note),
    };
    const context = contextOf(type, { log });
    if (type === 'archive') {
      const signingKey = new Secret(keyFrom(1).export({ format: 'pem', type: 'pkcs8' }).toString());
      const { WITNESS_URL: url, WITNESS_KEY: witness } = process.env;
      const witnesses = url !== undefined && witness !== undefined ? [{ url, key: witness }] : [];
      return archive.open({ directory: path, signingKey, witnesses }, context, resumePoint, signal);
    }
    const rotation = size === '-' ? { compression: 'none' as const } : { rotate: { size: Number(size) }, compression: 'gzip' as const };
    return file.open({ path, ...rotation }, context, resumePoint, signal);
  },
  clock: systemClock,
  random: systemRandom,
  log,
  meters,
});
const running = loop.run(stop.signal, stop.signal);
running.catch((thrown: unknown) => {
  console.error(thrown);
  process.exit(1);
});
const wanted = end === undefined || end === '-' ? Infinity : Number(end);
const pad = { pad: 'x'.repeat(300) };
process.stdout.write('begun\n');
// Node writes its compile cache at exit, and this process is killed.
flushCompileCache();
let hasTaken = false;
const isOver = (): boolean => journal.head().seq >= wanted && state.acknowledged >= journal.head().seq && state.replays.range === undefined;
let replayAt = state.replays.range?.at;
if (replayed !== undefined && existsSync(replayed) && replayAt === undefined) process.stdout.write('replayed, complete\n');
while (!isOver()) {
  const { at } = state.replays.range ?? {};
  if (at !== replayAt) process.stdout.write(at === undefined ? 'replayed, complete\n' : `replayed ${at}\n`);
  replayAt = at;
  if (replayed !== undefined && !existsSync(replayed) && state.acknowledged >= 200) {
    const replay = rangeReplay(1, state.acknowledged);
    if (!state.replays.range) storeReplay(journal, type, replay);
    writeFileSync(replayed, String(state.replays.range?.last));
    if (loop.view().replays?.[0] === undefined) loop.replay(replay);
  }
  if (journal.head().seq < wanted && journal.head().seq - loop.view().acknowledged < 100) await append(journal, 20, () => pad);
  if (!hasTaken && loop.view().lastSuccess !== undefined) {
    hasTaken = true;
    process.stdout.write('taken\n');
  }
  await new Promise((resolve) => setTimeout(resolve, 2));
}
stop.abort(new Error('all is there'));
await running;
await journal[Symbol.asyncDispose]();
process.stdout.write(`head ${journal.head().seq}\n`);
