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
import { append, committed, copyState, deadLetters, numberOf, range, record } from '../../support/model-journal.ts';
import type { ModelReceiver } from '../../support/model-sink.ts';
import { plain, Rig } from '../../support/deliver/rig.ts';
import type { Wish } from '../../support/deliver/rig.ts';
import { sized } from '../../support/long-run.ts';

interface Scenario {
  readonly name: string;
  readonly keepsPosition: boolean;
  /** Messages that may come twice. */
  readonly twice: number;
  readonly poison?: 'whole' | 'named' | 'unmade';
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
      acknowledge: (sink, acknowledgement, letters) => both('acknowledge', () => journal.acknowledge(sink, acknowledgement, letters)),
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
      archiveReplayed: (sink, progress) => both('archiveReplayed', () => journal.archiveReplayed(sink, progress)),
      resent: (sink, sent) => journal.resent(sink, sent),
      withheld: (sink, of) => journal.withheld(sink, of),
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

test.each<Scenario>([
  { name: 'a sink that stores the position', keepsPosition: true, twice: 0 },
  { name: 'the same, with messages that the sink rejects', keepsPosition: true, twice: 0, poison: 'whole' },
  { name: 'the same, with records that cannot be encoded', keepsPosition: true, twice: 0, poison: 'unmade' },
  { name: 'the same, with a lost response', keepsPosition: true, twice: 0, lost: 2 },
  { name: 'a sink that cannot report its position', keepsPosition: false, twice: 3 },
  { name: 'the same, with single messages rejected', keepsPosition: false, twice: 3, poison: 'named' },
  { name: 'the same, with whole batches rejected', keepsPosition: false, twice: 3, poison: 'whole' },
  { name: 'the same, with a lost response', keepsPosition: false, twice: 6, lost: 2 },
])('$name: nothing is lost at a power cut at any moment', async (scenario) => {
  const moments = new Set<string>();
  for (let fatal = 1; ; fatal += sized(3, 1)) {
    const { names, wasFatal } = await twoLives(scenario, fatal);
    for (const name of names) moments.add(name);
    if (!wasFatal) break;
  }
  expect([...moments]).toEqual(expect.arrayContaining(['before send', 'after send', 'before flush', 'after flush']));
  expect(moments).toContain(scenario.keepsPosition ? 'after acknowledgeLater' : 'before acknowledge');
});
