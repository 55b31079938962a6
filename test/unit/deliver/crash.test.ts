/**
 * A power cut at every relevant moment: before and after each send, each acknowledgement, each
 * transaction. A new process opens the state file of that moment with the same receiver, and every
 * entry is accounted for: delivered, dead letter, or not for this sink.
 */
import { rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { DeliverJournal } from '../../../src/model/journal.ts';
import {
  append,
  committed,
  copyState,
  deadLetters,
  numberOf,
  range,
  rangeReplay,
  record,
  storeReplay,
} from '../../support/model-journal.ts';
import type { ModelReceiver } from '../../support/model-sink.ts';
import { plain, Rig } from '../../support/deliver/rig.ts';
import type { Wish } from '../../support/deliver/rig.ts';
import { sized } from '../../support/long-run.ts';

interface Scenario {
  readonly name: string;
  readonly keepsPosition: boolean;
  /** Messages that may come twice. */
  readonly twice: number;
  readonly poison?: 'whole' | 'named' | 'unmade' | undefined;
  /** The response to this send is lost as well. */
  readonly lost?: number;
}

const records = 14;
const poisonous = [5, 9];
const notForIt = [4, 8, 13, 14];

/** Counts the moments of one run of the loop, and cuts the power at one of them. */
class Moments {
  readonly names: string[] = [];
  copy: string | undefined;
  readonly #fatal: number;
  readonly #directory: string;
  readonly #gone = Promise.withResolvers<never>();

  constructor(fatal: number, directory: string) {
    this.#fatal = fatal;
    this.#directory = directory;
    this.#gone.promise.catch(() => undefined);
  }

  /** At and after the fatal moment, never resolves. */
  pass(name: string): Promise<void> {
    if (this.copy === undefined) {
      this.names.push(name);
      if (this.names.length === this.#fatal) this.copy = copyState(this.#directory);
    }
    return this.copy === undefined ? Promise.resolve() : this.#gone.promise;
  }

  /** Ends the calls that wait since the power cut, so that the test can end. */
  release(): void {
    this.#gone.reject(new Error('this life is over'));
  }

  around(journal: DeliverJournal): DeliverJournal {
    const both = async (name: string, act: () => Promise<void>): Promise<void> => {
      await this.pass(`before ${name}`);
      await act();
      await this.pass(`after ${name}`);
    };
    return {
      id: journal.id,
      read: (after, limit) => journal.read(after, limit),
      changed: () => journal.changed(),
      sinkProgress: (sink) => journal.sinkProgress(sink),
      chainAt: (seq) => journal.chainAt(seq),
      acknowledge: (sink, acknowledgement, letters, replay) =>
        both('acknowledge', () => journal.acknowledge(sink, acknowledgement, letters, replay)),
      acknowledgeLater: (sink, acknowledgement) => {
        journal.acknowledgeLater(sink, acknowledgement);
        void this.pass('after acknowledgeLater').catch(() => undefined);
      },
      flush: () => both('flush', () => journal.flush()),
      commitResumeNote: (sink, note) => both('commitNote', () => journal.commitResumeNote(sink, note)),
      deadLetter: (sink, seq) => journal.deadLetter(sink, seq),
      resolveDeadLetter: (sink, seq, fate, operation) => both('settleLetter', () => journal.resolveDeadLetter(sink, seq, fate, operation)),
      found: (sink, found) => both('found', () => journal.found(sink, found)),
      adopted: (sink) => both('adopted', () => journal.adopted(sink)),
      archiveCheckpoint: (sink, checkpoint) => journal.archiveCheckpoint(sink, checkpoint),
      rejected: (sink) => journal.rejected(sink),
      replayed: (sink, replay) => both('replayed', () => journal.replayed(sink, replay)),
      withheld: (sink, of) => journal.withheld(sink, of),
      restored: (sink) => journal.restored(sink),
      replayedFrom: (sink) => journal.replayedFrom(sink),
      lost: (sink, loss, note) => journal.lost(sink, loss, note),
      readRange: (after, given, limit) => journal.readRange(after, given, limit),
    };
  }
}

function wishOf({ keepsPosition, poison }: Scenario): Wish {
  return {
    ...{ records: 3, keepsPosition, resolvable: keepsPosition },
    pipeline: (entry) => {
      if (poison === 'unmade' && poisonous.includes(entry.seq)) throw new Error('cannot be made');
      return notForIt.includes(entry.seq) ? undefined : plain(entry);
    },
  };
}

function answersOf(receiver: ModelReceiver, { poison, lost }: Scenario, moments?: Moments): void {
  let sends = 0;
  receiver.answer = async (batch) => {
    sends += 1;
    await moments?.pass('before send');
    if (poison === 'whole' && batch.messages.some(({ seq }) => poisonous.includes(seq))) throw new WaybillError('sink_refused', '400');
    const refused = poison === 'named' ? Object.fromEntries(poisonous.map((seq) => [seq, 'bad'])) : {};
    const taken = receiver.take(batch, refused);
    await moments?.pass('after send');
    if (sends === lost) throw new WaybillError('sink_outcome_unknown', 'reset');
    return taken;
  };
}

async function runTo(rig: Rig, isOver: () => boolean): Promise<void> {
  await rig.clock.until(() => isOver() || committed(rig.journal, 'sink').acknowledged === records, 120_000);
}

/** Runs the loop up to a power cut at moment `fatal`, then again to its end. @returns the moments of the first run */
async function twoLives(scenario: Scenario, fatal: number): Promise<{ names: string[]; wasFatal: boolean }> {
  await using first = await Rig.make();
  await append(first.journal, 7);
  await append(first.journal, records - 7);
  const moments = new Moments(fatal, first.directory);
  const loop = first.loop({ ...wishOf(scenario), journal: (journal) => moments.around(journal) });
  const { receiver } = loop;
  answersOf(receiver, scenario, moments);
  loop.run();
  await runTo(first, () => moments.copy !== undefined);
  loop.stop.abort(new Error('over'));
  moments.release();
  await loop.end();
  if (moments.copy === undefined) return { names: moments.names, wasFatal: false };

  await using second = await Rig.make(moments.copy);
  const before = committed(second.journal, 'sink');
  const had = new Set([...receiver.has.map(numberOf), ...deadLetters(second.journal).map(({ seq }) => seq), ...notForIt]);
  // At every moment, each acknowledged entry is delivered, a dead letter, or not for this sink.
  expect(range(1, before.acknowledged).filter((n) => !had.has(n))).toEqual([]);
  expect(before.delivered).toBeLessThanOrEqual(before.acknowledged);
  answersOf(receiver, { ...scenario, lost: -1 });
  second.loop({ ...wishOf(scenario), receiver }).run();
  await runTo(second, () => false);

  const got = receiver.has.map(numberOf);
  const letters = deadLetters(second.journal);
  expect([...new Set(got)]).toEqual(range(1, records).filter((n) => !notForIt.includes(n) && !letters.some(({ seq }) => seq === n)));
  expect(got.length - new Set(got).size).toBeLessThanOrEqual(scenario.twice);
  expect(letters.map(({ seq, body }) => [seq, body])).toEqual(
    scenario.poison === undefined ? [] : poisonous.map((n) => [n, record(n).text]),
  );
  rmSync(dirname(moments.copy), { recursive: true, force: true });
  return { names: moments.names, wasFatal: true };
}

const scenarios: readonly Scenario[] = [
  { name: 'a sink that stores the position', keepsPosition: true, twice: 0 },
  { name: 'the same, with messages that the sink rejects', keepsPosition: true, twice: 0, poison: 'whole' },
  { name: 'the same, with records that cannot be encoded', keepsPosition: true, twice: 0, poison: 'unmade' },
  { name: 'the same, with a lost response', keepsPosition: true, twice: 0, lost: 2 },
  { name: 'a sink that cannot report its position', keepsPosition: false, twice: 3 },
  { name: 'the same, with single messages rejected', keepsPosition: false, twice: 3, poison: 'named' },
  { name: 'the same, with whole batches rejected', keepsPosition: false, twice: 3, poison: 'whole' },
  { name: 'the same, with a lost response', keepsPosition: false, twice: 6, lost: 2 },
];

test.each(scenarios)('$name: nothing is lost at a power cut at any moment', async (scenario) => {
  const moments = new Set<string>();
  for (let fatal = 1; ; fatal += sized(7, 1)) {
    const { names, wasFatal } = await twoLives(scenario, fatal);
    for (const name of names) moments.add(name);
    if (!wasFatal) break;
  }
  expect([...moments]).toEqual(expect.arrayContaining(['before send', 'after send', 'before flush', 'after flush']));
  expect(moments).toContain(scenario.keepsPosition ? 'after acknowledgeLater' : 'before acknowledge');
});

/** Like twoLives, for a replay of the whole journal to a sink that has accepted every entry. */
async function replayInTwoLives(scenario: Scenario, fatal: number): Promise<{ names: string[]; wasFatal: boolean }> {
  await using first = await Rig.make();
  await append(first.journal, records);
  const before = first.loop(wishOf({ ...scenario, poison: undefined })).run();
  const { receiver } = before;
  await runTo(first, () => false);
  await before.end();
  storeReplay(first.journal, 'sink', rangeReplay(1, records));
  const moments = new Moments(fatal, first.directory);
  const loop = first.loop({ ...wishOf(scenario), receiver, journal: (journal) => moments.around(journal) });
  answersOf(receiver, scenario, moments);
  loop.run();
  const isComplete = ({ journal }: Rig): boolean => journal.sinkProgress('sink').replays.range === undefined;
  await first.clock.until(() => moments.copy !== undefined || loop.delivery.view().replays?.[0]?.state === 'done', 120_000);
  loop.stop.abort(new Error('over'));
  moments.release();
  await loop.end();
  if (moments.copy === undefined) return { names: moments.names, wasFatal: false };

  await using second = await Rig.make(moments.copy);
  const wasComplete = isComplete(second);
  answersOf(receiver, { ...scenario, lost: -1 });
  const next = second.loop({ ...wishOf(scenario), receiver }).run();
  await second.clock.until(() => isComplete(second) && next.delivery.isOpen, 120_000);
  const rejected = scenario.poison === undefined ? [] : poisonous;
  const counts = range(1, records).map((n) => receiver.has.filter((message) => numberOf(message) === n).length);
  const least = range(1, records).map((n) => (notForIt.includes(n) ? 0 : rejected.includes(n) ? 1 : 2));
  expect(least.filter((count, i) => count > (counts[i] ?? 0))).toEqual([]);
  const sum = (all: readonly number[]): number => all.reduce((total, each) => total + each, 0);
  expect(sum(counts) - sum(least)).toBeLessThanOrEqual(scenario.twice);
  expect(deadLetters(second.journal).map(({ seq, body }) => [seq, body])).toEqual(rejected.map((n) => [n, record(n).text]));
  expect(committed(second.journal, 'sink').acknowledged).toBe(records);
  const sent = records - notForIt.length - rejected.length;
  if (!wasComplete)
    expect(next.delivery.view().replays?.[0]).toMatchObject({ state: 'done', sent, rejected: rejected.length, passed: records });
  rmSync(dirname(moments.copy), { recursive: true, force: true });
  return { names: moments.names, wasFatal: true };
}

test.each(scenarios)('$name: a replay continues after a power cut at any moment, exactly where it stopped', async (scenario) => {
  const moments = new Set<string>();
  for (let fatal = 1; ; fatal += sized(7, 1)) {
    const { names, wasFatal } = await replayInTwoLives(scenario, fatal);
    for (const name of names) moments.add(name);
    if (!wasFatal) break;
  }
  const expected = ['before send', 'after send', 'before acknowledge', 'after acknowledge', 'before replayed', 'after replayed'];
  expect([...moments]).toEqual(expect.arrayContaining(expected));
});
