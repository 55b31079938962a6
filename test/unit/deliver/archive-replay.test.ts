/**
 * A replay from an archive: it continues after a power cut at each commit, and does not affect
 * delivery.
 */
import { rmSync } from 'node:fs';
import { expect, test } from 'vitest';
import { ArchivedRecordReader } from '../../../src/archive/archived-records.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { ArchivedRecords, ArchiveReplay, Entry } from '../../../src/model/journal.ts';
import { keyFrom, MemoryStore, minute, start, windowLines, writeArchive } from '../../support/archive.ts';
import {
  append,
  committed,
  copyState,
  deadLetters,
  numberOf,
  range,
  rangeReplay,
  record,
  source,
  storeReplay,
} from '../../support/model-journal.ts';
import type { ModelReceiver } from '../../support/model-sink.ts';
import { Rig } from '../../support/deliver/rig.ts';
import type { Loop, Wish } from '../../support/deliver/rig.ts';

/** Record `n` is on line 2n: the other lines are ledger entries. */
const archived = range(101, 115);
const request: ArchiveReplay = {
  kind: 'archive',
  archive: 'evidence',
  times: undefined,
  through: 5,
  began: 1,
  at: 0,
  sent: 0,
  rejected: 0,
};

class Archive implements ArchivedRecords {
  /** Set: a read waits for it. */
  gate: Promise<unknown> | undefined;
  origin = 'waybill/a';
  lines = 2 * 115 + 1;
  failure: Error | undefined;
  closed = 0;
  readonly #entries = archived.map((n): Entry => {
    const { uid, text, bytes, time } = record(n);
    const chain = new Uint8Array();
    return { kind: 'record', seq: 2 * n, number: undefined, source, uid, text, bytes, time, received: 0, late: false, chain };
  });

  async read(after: number, limit: { readonly records: number }): Promise<readonly Entry[]> {
    await this.gate;
    if (this.failure) throw this.failure;
    return this.#entries.filter(({ seq }) => seq > after).slice(0, limit.records);
  }

  endOf(line: number): number {
    return line;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closed += 1;
  }
}

const numbersOf = ({ has }: ModelReceiver): number[] => has.map(numberOf);
const state = (loop: Loop): string | undefined => loop.delivery.view().replays?.[0]?.state;

/** A loop that has delivered the five records of its journal. */
async function delivered(rig: Rig, wish: Wish, archive = new Archive()): Promise<Loop> {
  const loop = rig.loop({ records: 4, openArchive: async () => archive, ...wish });
  if (rig.journal.head().seq === 0) await append(rig.journal, 5);
  loop.run();
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 5);
  return loop;
}

/** Removes a replay, as the request of an operator does. */
async function endReplay({ journal }: Rig): Promise<void> {
  const { archive } = journal.sinkProgress('sink').replays;
  if (archive) await journal.replayed('sink', archive);
}

test('sends each record of the archive once, and moves no position', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const loop = await delivered(rig, { keepsPosition: true }, archive);
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  expect(() => loop.delivery.replay(request)).toThrow(expect.objectContaining({ code: 'usage' }) as Error);
  await rig.clock.until(() => state(loop) === 'done', 10_000);
  expect(numbersOf(loop.receiver)).toEqual([...range(1, 5), ...archived]);
  expect(loop.delivery.view().replays?.[0]).toMatchObject({
    archive: 'evidence',
    sent: 15,
    rejected: 0,
    at: 231,
    passed: 231,
    expected: 231,
  });
  expect(rig.journal.sinkProgress('sink')).toMatchObject({ acknowledged: 5, delivered: { seq: 5 }, replays: {} });
  expect(archive.closed).toBe(1);
  expect(loop.lines.at(-1)).toMatchObject({
    event: 'sink.archive_replay_completed',
    fields: { archive: 'evidence', sent: 15, rejected: 0, leftOut: 0 },
  });
  expect(loop.lines.filter(({ event }) => event === 'sink.first_delivery')).toHaveLength(1);
});

test('continues after a power cut before and after each commit', async () => {
  for (const isResolvable of [false, true])
    for (let commit = 1; commit <= 5; commit += 1)
      for (const moment of ['before', 'after'] as const) {
        let commits = 0;
        let copy = '';
        const gone = Promise.withResolvers<never>();
        gone.promise.catch(() => undefined);
        await using rig = await Rig.make();
        const journal: Wish['journal'] = (real) =>
          new Proxy(real, {
            get: (target, name) => {
              const value: unknown = Reflect.get(target, name, target);
              if (typeof value !== 'function') return value;
              const act = (...args: readonly unknown[]): unknown => Reflect.apply(value, target, args);
              const cut = async (...args: readonly unknown[]): Promise<unknown> => {
                commits += 1;
                if (commits === commit && moment === 'before') copy = copyState(rig.directory);
                if (commits >= commit && moment === 'before') return gone.promise;
                await act(...args);
                if (commits === commit) copy = copyState(rig.directory);
                return commits === commit ? gone.promise : undefined;
              };
              return (...args: readonly unknown[]) =>
                name === 'replayed' || (name === 'acknowledge' && args[3] !== undefined) ? cut(...args) : act(...args);
            },
          });
        const loop = await delivered(rig, { journal, resolvable: isResolvable });
        storeReplay(rig.journal, 'sink', request);
        loop.delivery.replay(request);
        await rig.clock.until(() => copy !== '', 10_000);
        gone.reject(new Error('this life is over'));
        await loop.end();
        const before = numbersOf(loop.receiver);
        await using next = await Rig.make(copy);
        const again = await delivered(next, { receiver: loop.receiver, resolvable: isResolvable });
        // The last commit removes the request: nothing is left to continue.
        await next.clock.until(() => next.journal.sinkProgress('sink').replays.archive === undefined, 10_000);
        await again.end();
        const repeated = numbersOf(loop.receiver).slice(before.length);
        const all = [...before, ...repeated];
        expect(new Set(all)).toEqual(new Set([...range(1, 5), ...archived]));
        const twice = all.length - new Set(all).size;
        // Without a stored response the batch in flight is sent again, like any other batch.
        expect(twice).toBe(moment === 'before' && commit <= 4 ? (commit === 4 ? 3 : 4) : 0);
        rmSync(copy, { recursive: true, force: true });
      }
});

test('of an archive that is damaged pauses, and delivery continues; the same request continues it', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const loop = await delivered(rig, {}, archive);
  storeReplay(rig.journal, 'sink', request);
  loop.receiver.answer = (batch) => {
    if (batch.feed) archive.failure = new WaybillError('archive_broken', 'cannot read "segments/0"');
    return loop.receiver.take(batch);
  };
  loop.delivery.replay(request);
  await rig.clock.until(() => state(loop) === 'failed', 10_000);
  expect(loop.delivery.view().replays?.[0]).toMatchObject({ sent: 4, error: 'cannot read "segments/0"' });
  expect(loop.lines.at(-1)).toMatchObject({ event: 'sink.archive_replay_failed', fields: { code: 'archive_broken', at: 208 } });
  expect(archive.closed).toBe(1);
  await append(rig.journal, 3);
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 8);
  loop.receiver.answer = (batch) => loop.receiver.take(batch);
  archive.failure = undefined;
  const { archive: archiveReplay } = rig.journal.sinkProgress('sink').replays;
  expect(archiveReplay).toMatchObject({ at: 208, origin: 'waybill/a' });
  loop.delivery.replay(archiveReplay ?? request);
  await rig.clock.until(() => state(loop) === 'done', 10_000);
  expect(numbersOf(loop.receiver).sort((a, b) => a - b)).toEqual([...range(1, 8), ...archived]);
  expect(archive.closed).toBe(2);
});

test('closes the archive when delivery ends before the replay', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const loop = await delivered(rig, {}, archive);
  loop.receiver.answer = () => new Promise(() => undefined);
  loop.delivery.replay(request);
  await rig.clock.until(() => loop.receiver.attempts.some(({ batch }) => batch.feed), 10_000);
  expect(archive.closed).toBe(0);
  await loop.end();
  expect(archive.closed).toBe(1);
});

test('does not continue in another archive', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const loop = await delivered(rig, {}, archive);
  archive.origin = 'waybill/b';
  loop.delivery.replay({ ...request, origin: 'waybill/a', at: 208 });
  await rig.clock.until(() => state(loop) === 'failed', 10_000);
  archive.origin = 'waybill/a';
  archive.lines = 100;
  loop.delivery.replay({ ...request, origin: 'waybill/a', at: 208 });
  await rig.clock.until(() => state(loop) === 'failed', 10_000);
  expect(numbersOf(loop.receiver)).toEqual(range(1, 5));
});

test('logs a record that the sink rejects, which becomes no dead letter', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig, {});
  loop.receiver.answer = (batch) => loop.receiver.take(batch, batch.feed ? { 206: 'too long', 222: 'too long' } : {});
  loop.delivery.replay(request);
  await rig.clock.until(() => state(loop) === 'done', 10_000);
  expect(loop.delivery.view().replays?.[0]).toMatchObject({ sent: 13, rejected: 2 });
  expect(deadLetters(rig.journal)).toEqual([]);
  const rejected = loop.lines.filter(({ event }) => event === 'sink.archive_record_rejected');
  expect(rejected.map(({ fields }) => fields['uid'])).toEqual([103, 111].map((n) => record(n).uid));
});

test('sends the records of a period', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig, {});
  const times = { from: record(103).time ?? 0, to: record(110).time ?? 0 };
  loop.delivery.replay({ ...request, times });
  await rig.clock.until(() => state(loop) === 'done', 10_000);
  expect(numbersOf(loop.receiver)).toEqual([...range(1, 5), ...range(103, 109)]);
});

test('continues by itself when the archive can be read again', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const loop = await delivered(rig, {}, archive);
  storeReplay(rig.journal, 'sink', request);
  archive.failure = new WaybillError('sink_unavailable', 'cannot read "segments/0"');
  loop.delivery.replay(request);
  const failures = (): number => loop.lines.filter(({ event }) => event === 'sink.archive_replay_failed').length;
  await rig.clock.until(() => failures() === 8, 600_000);
  // The failure stays visible until records were sent, and the sink itself does not fail.
  expect(loop.delivery.view()).toMatchObject({ state: 'active', replays: [{ state: 'failed', error: 'cannot read "segments/0"' }] });
  await append(rig.journal, 3);
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 8);
  // A replay from the journal may run before the next attempt.
  // Both are shown: the failed one stays the first.
  expect(loop.delivery.replay(rangeReplay(1, 2))).toMatchObject({ state: 'running', first: 1, last: 2 });
  expect(loop.delivery.view().replays?.map((each) => each.state)).toEqual(['failed', 'running']);
  await rig.clock.until(() => loop.delivery.view().replays?.[1]?.state === 'done', 10_000);
  expect(loop.delivery.view().replays).toMatchObject([
    { archive: 'evidence', state: 'failed' },
    { state: 'done', first: 1, last: 2 },
  ]);
  archive.failure = undefined;
  await rig.clock.until(() => loop.delivery.view().replays?.[0]?.archive !== undefined && state(loop) === 'done', 600_000);
  expect(numbersOf(loop.receiver).sort((a, b) => a - b)).toEqual([1, ...range(1, 2), ...range(2, 8), ...archived].sort((a, b) => a - b));
  expect(rig.journal.sinkProgress('sink').replays).toEqual({});
});

test('that needs an operator is tried again once a minute', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const loop = await delivered(rig, {}, archive);
  archive.failure = new WaybillError('archive_broken', 'cannot read "segments/0"');
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  await rig.clock.until(() => loop.lines.filter(({ event }) => event === 'sink.archive_replay_failed').length === 3, 125_000);
  expect(loop.lines.at(-1)).toMatchObject({ fields: { retryInMs: 60_000 } });
});

test('that waits for its archive delays neither new records nor the end of delivery', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const opened: AbortSignal[] = [];
  const openArchive = async (_replay: ArchiveReplay, signal: AbortSignal): Promise<Archive> => {
    opened.push(signal);
    return archive;
  };
  const loop = await delivered(rig, { openArchive }, archive);
  const gate = Promise.withResolvers<undefined>();
  archive.gate = gate.promise;
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  await rig.clock.until(() => opened.length === 1, 10_000);
  await append(rig.journal, 3);
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 8, 10_000);
  expect(state(loop)).toBe('running');
  await loop.end();
  expect(opened[0]?.aborted).toBe(true);
  expect(archive.closed).toBe(1);
  gate.resolve(undefined);
});

test('that fails makes room for another one while it tries again', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const loop = await delivered(rig, {}, archive);
  archive.failure = new WaybillError('sink_unavailable', 'cannot read "segments/0"');
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  await rig.clock.until(() => state(loop) === 'failed', 10_000);
  const gate = Promise.withResolvers<undefined>();
  archive.gate = gate.promise;
  const closed = archive.closed;
  await rig.clock.advance(60_000);
  // The next attempt is under way, and waits.
  expect([state(loop), archive.closed]).toEqual(['failed', closed]);
  archive.gate = undefined;
  archive.failure = undefined;
  loop.delivery.replay(request);
  await rig.clock.until(() => state(loop) === 'done', 10_000);
  gate.resolve(undefined);
  await rig.clock.advance(600_000);
  expect(numbersOf(loop.receiver)).toEqual([...range(1, 5), ...archived]);
});

test('that fails is ended by an operator, also after a restart', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const loop = await delivered(rig, {}, archive);
  archive.failure = new WaybillError('sink_unavailable', 'cannot read "segments/0"');
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  await rig.clock.until(() => state(loop) === 'failed', 10_000);
  loop.delivery.cancelReplays();
  await endReplay(rig);
  archive.failure = undefined;
  await rig.clock.advance(600_000);
  expect([state(loop), numbersOf(loop.receiver)]).toEqual(['cancelled', range(1, 5)]);
  loop.delivery.cancelReplays();
  await loop.end();
  const next = await delivered(rig, {}, archive);
  await rig.clock.advance(600_000);
  expect([state(next), next.receiver.has]).toEqual([undefined, []]);
});

test.each([1, 9])('that is ended while record %d is in flight stores no progress afterwards', async (inFlight) => {
  await using rig = await Rig.make();
  const loop = await delivered(rig, { records: 1 });
  const gate = Promise.withResolvers<undefined>();
  let sends = 0;
  loop.receiver.answer = async (batch) => {
    sends += 1;
    if (sends === inFlight) await gate.promise;
    return loop.receiver.take(batch);
  };
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  await rig.clock.until(() => sends === inFlight, 10_000);
  loop.delivery.cancelReplays();
  await endReplay(rig);
  gate.resolve(undefined);
  await append(rig.journal, 3);
  await rig.clock.until(() => committed(rig.journal, 'sink').acknowledged === 8, 10_000);
  expect(rig.journal.sinkProgress('sink').replays).toEqual({});
  expect(numbersOf(loop.receiver)).toEqual([...range(1, 5), ...archived.slice(0, inFlight), ...range(6, 8)]);
  expect(loop.delivery.view().replays?.[0]).toMatchObject({ state: 'cancelled', sent: inFlight });
});

/** An archive in memory of eleven segments, whose files can be removed and restored. */
async function archiveInMemory() {
  const whole = new MemoryStore();
  await writeArchive(whole, windowLines(60, 4), 30);
  const segments = [...whole.files.keys()].filter((path) => path.startsWith('segments/')).sort();
  const store = new MemoryStore(whole.files);
  const openIn = (files: MemoryStore): Promise<ArchivedRecords> =>
    ArchivedRecordReader.open(files, [keyFrom(1)], { journal: 'other', seq: 0 });
  const entries = await (await openIn(whole)).read(0, { records: 1_000, bytes: 1e9 });
  return {
    segments,
    files: store.files,
    restore: (paths: readonly string[]) => paths.forEach((path) => store.files.set(path, whole.files.get(path) ?? Buffer.alloc(0))),
    remove: (paths: readonly string[]) => paths.forEach((path) => store.files.delete(path)),
    openArchive: () => openIn(store),
    /** The uids on lines that these segments have: each one has 31 lines. */
    uidsOf: (...numbers: readonly number[]) =>
      numbers.flatMap((n) => entries.flatMap(({ seq, uid }) => (seq > 31 * n && seq <= 31 * (n + 1) ? [uid] : []))),
  };
}

/** In order, after the five records of the journal. */
const uidsReceived = ({ receiver }: Loop): string[] => receiver.has.slice(5).map(({ uid }) => uid);
const fieldsOf = (loop: Loop, event: string): unknown[] => loop.lines.flatMap((line) => (line.event === event ? [line.fields] : []));
const order = (rig: Rig): ArchiveReplay | undefined => rig.journal.sinkProgress('sink').replays.archive;
const hasFailed = (loop: Loop): boolean => state(loop) === 'failed';

test.each([
  ['the first', [0], 1, 31, [], [1, 2, 3, 4, 5, 6, 7, 8, 9]],
  ['a middle', [3], 94, 124, [0, 1, 2], [4, 5, 6, 7, 8, 9]],
  ['two middle', [3, 4], 94, 155, [0, 1, 2], [5, 6, 7, 8, 9]],
])(
  'stops before %s missing segment, and names its lines; behind them it goes on when told',
  async (_, missing, first, last, before, behind) => {
    await using rig = await Rig.make();
    const { segments, remove, openArchive, uidsOf } = await archiveInMemory();
    remove(missing.map((n) => segments[n] ?? ''));
    const loop = await delivered(rig, { openArchive });
    storeReplay(rig.journal, 'sink', request);
    loop.delivery.replay(request);
    await realTime(rig, () => hasFailed(loop));
    expect(uidsReceived(loop)).toEqual(uidsOf(...before));
    const named = `cannot read the lines ${first} to ${last} of the archive`;
    expect(loop.delivery.view().replays?.[0]?.error).toContain(named);
    expect(fieldsOf(loop, 'sink.archive_replay_failed')[0]).toMatchObject({ error: { message: expect.stringContaining(named) as string } });
    // It does not go on by itself, however often it tries.
    const failures = fieldsOf(loop, 'sink.archive_replay_failed').length;
    await realTime(rig, () => fieldsOf(loop, 'sink.archive_replay_failed').length > failures + 1);
    expect([uidsReceived(loop), fieldsOf(loop, 'sink.archive_replay_completed')]).toEqual([uidsOf(...before), []]);
    const order = { ...request, ...rig.journal.sinkProgress('sink').replays.archive, at: last, leftOut: last - first + 1 };
    storeReplay(rig.journal, 'sink', order);
    loop.delivery.replay(order);
    await realTime(rig, () => state(loop) === 'done');
    expect(uidsReceived(loop)).toEqual(uidsOf(...before, ...behind));
    expect(fieldsOf(loop, 'sink.archive_replay_completed')).toMatchObject([{ sent: uidsReceived(loop).length, leftOut: last - first + 1 }]);
  },
);

test.each([undefined, { from: start + 40 * minute, to: Infinity }])(
  'continues by itself, in order, with a segment that is restored, in the period %j',
  async (times) => {
    await using rig = await Rig.make();
    const { segments, remove, restore, openArchive, uidsOf } = await archiveInMemory();
    remove(segments.slice(1, 2));
    const loop = await delivered(rig, { openArchive });
    storeReplay(rig.journal, 'sink', { ...request, times });
    loop.delivery.replay({ ...request, times });
    await realTime(rig, () => hasFailed(loop));
    expect(uidsReceived(loop)).toEqual(times ? [] : uidsOf(0));
    restore(segments);
    await realTime(rig, () => state(loop) === 'done');
    // Of a window of the period, 4 records and a ledger entry.
    expect(uidsReceived(loop)).toEqual(uidsOf(0, 1, 2, 3, 4, 5, 6, 7, 8, 9).slice(times ? -80 : 0));
    expect(fieldsOf(loop, 'sink.archive_replay_completed')).toMatchObject([{ leftOut: 0 }]);
  },
);

test('sends nothing again when segments that it has sent were away for a while', async () => {
  await using rig = await Rig.make();
  const { segments, remove, restore, openArchive, uidsOf } = await archiveInMemory();
  remove(segments.slice(5));
  const loop = await delivered(rig, { openArchive });
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  await realTime(rig, () => hasFailed(loop));
  remove(segments);
  restore(segments.slice(5));
  await realTime(rig, () => state(loop) === 'done');
  expect(uidsReceived(loop)).toEqual(uidsOf(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
});

test('sends the records before an altered segment, and names its lines', async () => {
  await using rig = await Rig.make();
  const { segments, files, restore, openArchive, uidsOf } = await archiveInMemory();
  files.set(segments[2] ?? '', Buffer.from('foreign'));
  const loop = await delivered(rig, { openArchive, records: 1_000 });
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  await realTime(rig, () => hasFailed(loop));
  expect(uidsReceived(loop)).toEqual(uidsOf(0, 1));
  expect(order(rig)).toMatchObject({ sent: uidsOf(0, 1).length });
  expect(loop.delivery.view().replays?.[0]?.error).toMatch(
    /^cannot read the lines 63 to 93 of the archive: .* leads to the root that the checkpoint signs/,
  );
  restore(segments);
  await realTime(rig, () => state(loop) === 'done');
  expect(uidsReceived(loop)).toEqual(uidsOf(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
});

test('that begins with an archive that was never written waits for it, and does not fail', async () => {
  await using rig = await Rig.make();
  const { files, openArchive, uidsOf } = await archiveInMemory();
  const written = [...files];
  files.clear();
  const loop = await delivered(rig, { openArchive });
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  for (let i = 0; i < 200; i += 1) {
    await rig.clock.advance(1_000);
    expect(loop.delivery.view()).toMatchObject({ state: 'active', replays: [{ state: 'running', sent: 0, at: 0 }] });
  }
  expect(loop.lines.filter(({ level }) => level !== 'info')).toEqual([]);
  expect(order(rig)).toEqual(request);
  for (const [path, bytes] of written) files.set(path, bytes);
  await realTime(rig, () => state(loop) === 'done');
  expect(uidsReceived(loop)).toEqual(uidsOf(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
});

test('that has read its archive fails when the archive is gone', async () => {
  await using rig = await Rig.make();
  const loop = await delivered(rig, {
    openArchive: () => ArchivedRecordReader.open(new MemoryStore(), [keyFrom(1)], { journal: 'other', seq: 0 }),
  });
  loop.delivery.replay({ ...request, origin: 'waybill/a', at: 208 });
  await realTime(rig, () => hasFailed(loop));
  expect(loop.delivery.view().replays?.[0]).toMatchObject({ at: 208, error: 'cannot read the archive "evidence": it has no checkpoint' });
});

test('is not replaced while its batch is in flight, and none of its progress replaces the order of another one', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const other = { ...request, archive: 'other' };
  const openArchive = async ({ archive: id }: ArchiveReplay): Promise<Archive> => {
    if (id === 'evidence') return archive;
    throw new WaybillError('sink_unavailable', 'the other archive cannot be read');
  };
  const loop = await delivered(rig, { openArchive });
  archive.failure = new WaybillError('sink_unavailable', 'cannot read "segments/0"');
  storeReplay(rig.journal, 'sink', request);
  loop.delivery.replay(request);
  await rig.clock.until(() => hasFailed(loop), 10_000);
  archive.failure = undefined;
  const gate = Promise.withResolvers<undefined>();
  loop.receiver.answer = async (batch) => {
    if (batch.feed) await gate.promise;
    return loop.receiver.take(batch);
  };
  await rig.clock.until(() => loop.receiver.attempts.some(({ batch }) => batch.feed), 600_000);
  expect(state(loop)).toBe('running');
  expect(() => loop.delivery.replay(other)).toThrow(expect.objectContaining({ code: 'usage' }) as Error);
  archive.failure = new WaybillError('sink_unavailable', 'cannot read "segments/0"');
  gate.resolve(undefined);
  await rig.clock.until(() => hasFailed(loop), 10_000);
  storeReplay(rig.journal, 'sink', other);
  loop.delivery.replay(other);
  archive.failure = undefined;
  await rig.clock.advance(600_000);
  expect(order(rig)).toEqual(other);
  expect(numbersOf(loop.receiver)).toEqual([...range(1, 5), ...archived.slice(0, 4)]);
});

/** Segments are unpacked by threads, which the clock of the test does not wait for. */
async function realTime(rig: Rig, condition: () => boolean): Promise<void> {
  for (let i = 0; i < 2_000 && !condition(); i += 1) {
    await rig.clock.advance(500);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  expect(condition()).toBe(true);
}

test('ends before the sink is closed when no daemon runs', async () => {
  await using rig = await Rig.make();
  const archive = new Archive();
  const loop = rig.loop({ records: 4, openArchive: async () => archive });
  storeReplay(rig.journal, 'sink', request);
  const done = loop.delivery.runOnDemand(async () => loop.delivery.replay(request), new AbortController().signal);
  await rig.clock.until(() => state(loop) === 'done', 10_000);
  await done;
  expect(numbersOf(loop.receiver)).toEqual(archived);
  archive.failure = new WaybillError('archive_broken', 'cannot read "segments/0"');
  await loop.delivery.runOnDemand(async () => loop.delivery.replay(request), new AbortController().signal);
  expect(loop.delivery.view().replays?.[0]).toMatchObject({ state: 'failed', error: 'cannot read "segments/0"' });
});
