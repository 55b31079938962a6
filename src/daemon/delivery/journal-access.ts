/**
 * The journal for a delivery loop in another thread: the main thread serves it, and each call is one transaction there. The facts that
 * the loop reads without a call follow the committed transactions: they arrive before each answer, and after each change of the journal.
 */
import type { Journal } from '../../journal/journal.ts';
import { SegmentReader, type Unpacked } from '../../journal/segment-entry.ts';
import type { Acknowledgement, DeadLetter, DeadLetterResult, DeliverJournal, Entry, Operation, SinkProgress } from '../../model/journal.ts';
import type { Window } from '../../model/ledger.ts';
import type { SinkLoss } from '../../model/sink.ts';
import { withoutSecrets } from '../../secrets.ts';
import { Transferred, type Notified, type Remote } from '../channel.ts';

/** Facts of the journal that a loop reads without a call. */
export interface JournalFacts {
  readonly id: string;
  /** The last entry. */
  readonly head: number;
  readonly progress: SinkProgress;
  /** By source; see DeliverJournal.withheld. */
  readonly withheld: ReadonlyMap<string, readonly Window[]>;
}

/** Receives the facts: before the answer to a call of this loop, and after each change of the journal (`hasChanged`). */
export interface FactsReceiver {
  facts(facts: JournalFacts, hasChanged: boolean): void;
}

export type JournalService = ReturnType<typeof journalService>;
type Call<Name extends keyof DeliverJournal> = DeliverJournal[Name] extends (...args: infer Args) => unknown ? Args : never;

/** In the main thread. */
export function journalService(journal: Journal, sink: string, loop: Notified<FactsReceiver>) {
  const answered = async <Result>(result: Promise<Result>): Promise<Result> => {
    const value = await result;
    loop.facts(factsOf(journal, sink), false);
    return value;
  };
  return {
    segment: (seq: number) => copied(journal.segmentWith(seq)),
    readRange: async (...args: Call<'readRange'>) => {
      const { after, entries } = await journal.readRange(...args);
      return { after, entries: entries.map(plainEntry) };
    },
    deadLetter: async (...args: Call<'deadLetter'>) => {
      const entry = await journal.deadLetter(...args);
      return entry && plainEntry(entry);
    },
    chainAt: (...args: Call<'chainAt'>) => journal.chainAt(...args),
    acknowledgeLater: (...args: Call<'acknowledgeLater'>) => journal.acknowledgeLater(...args),
    acknowledge: (id: string, acknowledgement: Acknowledgement, letters: readonly DeadLetter[]) => {
      const clean = letters.map((letter) => ({ ...letter, rejection: withoutKnownSecrets(letter.rejection) }));
      return answered(journal.acknowledge(id, acknowledgement, clean));
    },
    flush: () => answered(journal.flush()),
    commitResumeNote: (...args: Call<'commitResumeNote'>) => answered(journal.commitResumeNote(...args)),
    lost: (id: string, loss: SinkLoss, resumeNote: string) => answered(journal.lost(id, withoutKnownSecrets(loss), resumeNote)),
    resolveDeadLetter: (id: string, seq: number, result: DeadLetterResult, operation: Operation) => {
      const clean = result.delivered ? result : { ...result, rejection: withoutKnownSecrets(result.rejection) };
      return answered(journal.resolveDeadLetter(id, seq, clean, operation));
    },
    found: (...args: Call<'found'>) => answered(journal.found(...args)),
    adopted: (...args: Call<'adopted'>) => answered(journal.adopted(...args)),
    archiveCheckpoint: (...args: Call<'archiveCheckpoint'>) => journal.archiveCheckpoint(...args),
    archiveReplayed: (...args: Call<'archiveReplayed'>) => answered(journal.archiveReplayed(...args)),
    resent: (...args: Call<'resent'>) => answered(journal.resent(...args)),
  };
}

/** The main thread knows secrets that the other thread has not seen, such as the tokens of sources. */
export function withoutKnownSecrets<Reported extends { readonly message: string }>(reported: Reported): Reported {
  return { ...reported, message: withoutSecrets(reported.message, false) };
}

export function factsOf(journal: Journal, sink: string): JournalFacts {
  const { acknowledged, delivered, resumeNote, fromTime, completeSince, deadLetters, orders } = journal.sinkProgress(sink);
  const withheld = journal.sourceIds().map((source) => {
    const windows = journal.withheld(sink, source);
    return [source, windows.map(({ from, to }) => ({ from, to }))] as const;
  });
  return {
    id: journal.id,
    head: journal.head().seq,
    withheld: new Map(withheld),
    progress: { acknowledged, delivered, resumeNote, fromTime, completeSince, deadLetters, orders },
  };
}

/** A copy that is transferred to the other thread: the journal keeps the segment for other readers. */
function copied({ seq, n, number, received, kind, source, flags, uids, ends, body, chain }: Unpacked): Transferred<Unpacked> {
  const copies = {
    flags: new Uint8Array(flags),
    uids: new Uint8Array(uids),
    ends: new Uint8Array(ends),
    body: new Uint8Array(body),
    chain: new Uint8Array(chain),
  };
  return new Transferred(
    { seq, n, number, received, kind, source, ...copies },
    Object.values(copies).map(({ buffer }) => buffer),
  );
}

/** An entry as data that can be cloned. */
function plainEntry({ kind, seq, number, source, bytes, text, uid, received, time, late, chain }: Entry): Entry {
  const copies = { bytes: new Uint8Array(bytes), chain: new Uint8Array(chain) };
  return { kind, seq, number, source, text, uid, received, time, late, ...copies };
}

/** The side in the thread of the loop. */
export function remoteJournal(
  latest: JournalFacts,
  journal: Remote<JournalService>,
  notified: Notified<JournalService>,
): DeliverJournal & FactsReceiver {
  let facts = latest;
  let changed = Promise.withResolvers<undefined>();
  const segmentWith = segmentsAhead(journal, () => facts.head);
  return {
    id: facts.id,
    facts: (given, hasChanged) => {
      facts = given;
      if (!hasChanged) return;
      const { resolve } = changed;
      changed = Promise.withResolvers<undefined>();
      resolve(undefined);
    },
    changed: () => changed.promise,
    sinkProgress: () => facts.progress,
    withheld: (_sink, source) => facts.withheld.get(source) ?? [],
    read: async (after, limit) => {
      const reader = new SegmentReader(after, limit);
      while (reader.next <= facts.head && !reader.isFull) reader.read(await segmentWith(reader.next));
      return reader.entries;
    },
    acknowledge: (sink, acknowledgement, deadLetters) => {
      const letters = deadLetters.map(({ entry, ...letter }) => ({ ...letter, entry: plainEntry(entry) }));
      return journal.acknowledge(sink, acknowledgement, letters);
    },
    acknowledgeLater: notified.acknowledgeLater,
    readRange: journal.readRange,
    deadLetter: journal.deadLetter,
    chainAt: journal.chainAt,
    flush: journal.flush,
    commitResumeNote: journal.commitResumeNote,
    lost: journal.lost,
    resolveDeadLetter: journal.resolveDeadLetter,
    found: journal.found,
    adopted: journal.adopted,
    archiveCheckpoint: journal.archiveCheckpoint,
    archiveReplayed: journal.archiveReplayed,
    resent: journal.resent,
  };
}

/** Reads segments in order, one ahead: the main thread reads the next segment while this thread encodes and sends. */
function segmentsAhead(journal: Remote<JournalService>, head: () => number): (seq: number) => Promise<Unpacked> {
  let last: Unpacked | undefined;
  let next: { readonly from: number; readonly segment: Promise<Unpacked> } | undefined;
  return async (seq) => {
    if (last && last.seq <= seq && seq < last.seq + last.n) return last;
    const requested = next?.from === seq ? next.segment : journal.segment(seq);
    next = undefined;
    last = await requested;
    const from = last.seq + last.n;
    if (from <= head()) {
      next = { from, segment: journal.segment(from) };
      // The next read reports the error.
      next.segment.catch(() => undefined);
    }
    return last;
  };
}
