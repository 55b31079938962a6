/**
 * The real sink `archive` on an in-memory store. A life of the daemon can end before and after each
 * write. At the end of a run the verifier checks the store.
 */
import { createPrivateKey } from 'node:crypto';
import { gunzipSync, gzipSync, inflateRawSync } from 'node:zlib';
import type { Codec } from '../../src/archive/segment.ts';
import { parseVerifier } from '../../src/archive/signed-note.ts';
import type { WritableArchiveStore } from '../../src/archive/store.ts';
import { verifyArchive } from '../../src/archive/verify/verify.ts';
import type { VerifyReport } from '../../src/archive/verify/verify.ts';
import type { Batch, Message, ResumePoint, Sink } from '../../src/model/sink.ts';
import { ArchiveSink } from '../../src/sink/archive/sink.ts';
import type { Chance } from './chance.ts';
import type { LifeClock } from './world.ts';

interface ArchivingLife {
  readonly clock: LifeClock;
  effect(what: string): Promise<void>;
  fault(message: string): void;
}

interface Writer {
  readonly life: ArchivingLife;
  readonly sent: Map<number, Message>;
}

/** The fields of a line under a checkpoint that the model compares. */
interface CommittedLine {
  readonly kind: string;
  readonly seq: number;
  readonly uid?: string;
  readonly state?: string;
  readonly operation?: string;
}

const key = createPrivateKey({
  key: Buffer.concat([Buffer.from('302e020100300506032b657004220420', 'hex'), Buffer.alloc(32, 7)]),
  format: 'der',
  type: 'pkcs8',
});
/** Synchronous: a thread answers at an unpredictable time. */
const codec = {
  compress: (bytes: Uint8Array) => Promise.resolve(gzipSync(bytes, { level: 1 })),
  inflate: (...given: Parameters<Codec['inflate']>) =>
    Promise.resolve(inflateRawSync(...given) as unknown as Awaited<ReturnType<Codec['inflate']>>),
};

export class SimulatedArchive {
  readonly #files = new Map<string, Buffer>();
  readonly #chance: Chance;
  readonly #took: (message: Message) => void;

  /** @param took  called for each message when a checkpoint commits it */
  constructor(chance: Chance, took: (message: Message) => void) {
    this.#chance = chance;
    this.#took = took;
  }

  async open(id: string, filtered: boolean, life: ArchivingLife, resumePoint: ResumePoint): Promise<Sink> {
    const random = (bytes: number): Uint8Array => Uint8Array.from({ length: bytes }, () => this.#chance.whole(0, 255));
    // Messages sent but not yet committed by a checkpoint, by sequence number.
    const sent = new Map<number, Message>();
    const target = { name: 'a store in memory', store: this.#storeOf({ life, sent }), key, random, codec };
    const sink = await ArchiveSink.open(target, { id, clock: life.clock, log: { write: () => undefined }, filtered }, resumePoint);
    return {
      position: () => sink.position(),
      send: (batch: Batch, signal: AbortSignal) => {
        sent.clear();
        // The caller reuses the memory of a batch.
        for (const message of batch.messages) sent.set(message.seq, { ...message, bytes: Buffer.from(message.bytes) });
        return sink.send(batch, signal);
      },
      [Symbol.asyncDispose]: () => sink[Symbol.asyncDispose](),
    };
  }

  /** @returns undefined for an archive without any write */
  async verified(): Promise<VerifyReport | undefined> {
    const stored = [...this.#files].find(([path]) => path.startsWith('keys/'))?.[1];
    if (!this.#files.has('checkpoints/0000000001')) return undefined;
    const verifier = parseVerifier(stored?.toString() ?? '');
    return verifyArchive(this.#storeOf(undefined), verifier ? [verifier] : []);
  }

  /** @param writer  undefined: open for reading */
  #storeOf(writer: Writer | undefined): WritableArchiveStore {
    const files = this.#files;
    const life = writer?.life;
    return {
      read: (path) => Promise.resolve(files.get(path)),
      async *list(folder) {
        for (const path of [...files.keys()]) if (path.startsWith(folder)) yield path;
      },
      create: async (path, bytes) => {
        await life?.effect(`${traced(path)} of the archive is created`);
        const found = files.get(path);
        if (found !== undefined) return found.equals(bytes);
        files.set(path, Buffer.from(bytes));
        if (path.startsWith('checkpoints/')) this.#commit(path, writer);
        await life?.effect(`archive ${path.startsWith('checkpoints/') ? 'took' : 'has a segment'}`);
        return true;
      },
      replace: async (path, bytes) => {
        await life?.effect(`${traced(path)} of the archive is replaced`);
        files.set(path, Buffer.from(bytes));
        await life?.effect('archive has it');
      },
      remove: (path) => Promise.reject(new Error(`nobody ordered to remove ${path}`)),
    };
  }

  /**
   * Reads the lines between the last two checkpoints without the code under test, and compares them
   * with the messages sent.
   */
  #commit(path: string, { life, sent }: Partial<Writer> = {}): void {
    const number = Number(path.slice('checkpoints/'.length));
    const sizeAt = (at: number): number =>
      at === 0
        ? 0
        : Number(
            this.#files
              .get(`checkpoints/${String(at).padStart(10, '0')}`)
              ?.toString()
              .split('\n')[1],
          );
    const first = String(sizeAt(number - 1)).padStart(16, '0');
    // Several attempts may have written a segment that starts here; the last one counts.
    const segment = [...this.#files].findLast(([name]) => name.startsWith(`segments/${first}-`))?.[1] ?? gzipSync('');
    const lines = gunzipSync(segment).toString().split('\n').slice(0, -1);
    if (lines.length !== sizeAt(number) - sizeAt(number - 1)) life?.fault(`${path} does not commit the lines of its segment`);
    const position = JSON.parse(lines.pop() ?? '{}') as CommittedLine;
    if (position.kind !== 'position') life?.fault(`${path} commits no position`);
    for (const text of lines) {
      const line = JSON.parse(text) as CommittedLine;
      const message = sent?.get(line.seq);
      sent?.delete(line.seq);
      if (!message || !isOf(message, line, text)) life?.fault(`${path} commits a line that was not sent: ${text.slice(0, 200)}`);
      else this.#took(message);
    }
    if (sent && sent.size > 0) life?.fault(`${path} lacks ${sent.size} entries of its batch`);
  }
}

function isOf({ isLedger, uid, bytes }: Message, line: CommittedLine, text: string): boolean {
  const sent = Buffer.from(bytes).toString();
  if (!isLedger) return line.kind === 'record' && line.uid === uid && text.endsWith(`,"record":${sent}}`);
  const { ledger, state, operation } = JSON.parse(sent) as { ledger: string; state?: string; operation?: unknown };
  if (ledger === 'archive-checkpoint') return line.kind === 'operation' && line.operation === ledger;
  if (ledger === 'operation') return line.kind === 'operation' && line.operation === operation;
  return line.kind === 'ledger' && line.state === (state === 'active' ? 'resumed' : state);
}

/** Drops random parts of a path, so that two runs of a seed have the same trace. */
function traced(path: string): string {
  return path.replace(/^(segments\/\d+|keys\/).*/, '$1');
}
