/**
 * The journal for a delivery loop in another thread: the main thread serves it, and each call is one transaction there. The facts that
 * the loop reads without a call follow the committed transactions: they arrive before each answer, and after each change of the journal.
 */
import type { Journal } from '../../journal/journal.ts';
import { SegmentReader } from '../../journal/segment-entry.ts';
import type { Unpacked } from '../../journal/segment-entry.ts';
import type {
  Acknowledgement,
  DeadLetter,
  DeadLetterResult,
  DeliverJournal,
  Entry,
  Limit,
  Operation,
  SinkProgress,
} from '../../model/journal.ts';
import type { Window } from '../../model/ledger.ts';
import type { SinkLoss } from '../../model/sink.ts';
import { withoutSecrets } from '../../secrets.ts';
import { Transferred } from './channel.ts';
import type { Notified, Remote } from './channel.ts';

/** What a loop knows of the journal without asking. */
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
    adopted: (...args: Call<'adopted'>) => answered(journal.adopted(...args)),
    archiveCheckpoint: (...args: Call<'archiveCheckpoint'>) => journal.archiveCheckpoint(...args),
    archiveReplayed: (...args: Call<'archiveReplayed'>) => answered(journal.archiveReplayed(...args)),
    resent: (...args: Call<'resent'>) => answered(journal.resent(...args)),
  };
}

/** The main thread knows secrets that the other thread has not seen, such as the tokens of sources. */
export function withoutKnownSecrets<Told extends { readonly message: string }>(told: Told): Told {
  return { ...told, message: withoutSecrets(told.message, false) };
}

export function factsOf(journal: Journal, sink: string): JournalFacts {
  const { acknowledged, delivered, resumeNote, fromTime, completeSince, deadLetters, orders } = journal.sinkProgress(sink);
  const withheld = journal.sourceIds().map((source) => {
    const windows = journal.withheld(sink, source);
    return [source, windows.map(({ from, to }) => ({ from, to }))] as const;
  });
  return {
    ...{ id: journal.id, head: journal.head().seq, withheld: new Map(withheld) },
    progress: { acknowledged, delivered, resumeNote, fromTime, completeSince, deadLetters, orders },
  };
}

/** A copy whose memory is transferred: the journal keeps the segment for other readers. */
function copied({ flags, uids, ends, body, chain, ...segment }: Unpacked): Transferred<Unpacked> {
  const copies = {
    ...{ flags: new Uint8Array(flags), uids: new Uint8Array(uids), ends: new Uint8Array(ends) },
    ...{ body: new Uint8Array(body), chain: new Uint8Array(chain) },
  };
  return new Transferred(
    { ...segment, ...copies },
    Object.values(copies).map(({ buffer }) => buffer),
  );
}

/** An entry as data that can be cloned. */
function plainEntry({ kind, seq, number, source, bytes, text, uid, received, time, late, chain }: Entry): Entry {
  const copies = { bytes: new Uint8Array(bytes), chain: new Uint8Array(chain) };
  return { kind, seq, number, source, text, uid, received, time, late, ...copies };
}

/** In the thread of the loop. */
export class RemoteJournal implements DeliverJournal, FactsReceiver {
  readonly id: string;
  readonly #journal: Remote<JournalService>;
  readonly #notified: Notified<JournalService>;
  #facts: JournalFacts;
  #changed = Promise.withResolvers<undefined>();
  /** The segment that was read last. */
  #segment: Unpacked | undefined;
  /** The segment that follows it, requested before it is needed. */
  #next: { readonly from: number; readonly segment: Promise<Unpacked> } | undefined;

  constructor(facts: JournalFacts, journal: Remote<JournalService>, notified: Notified<JournalService>) {
    this.id = facts.id;
    this.#facts = facts;
    this.#journal = journal;
    this.#notified = notified;
  }

  facts(facts: JournalFacts, hasChanged: boolean): void {
    this.#facts = facts;
    if (!hasChanged) return;
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<undefined>();
    resolve(undefined);
  }

  changed(): Promise<unknown> {
    return this.#changed.promise;
  }

  sinkProgress(): SinkProgress {
    return this.#facts.progress;
  }

  withheld(_sink: string, source: string): readonly Window[] {
    return this.#facts.withheld.get(source) ?? [];
  }

  async read(after: number, limit: Limit): Promise<readonly Entry[]> {
    const reader = new SegmentReader(after, limit);
    while (reader.next <= this.#facts.head && !reader.isFull) reader.read(await this.#segmentWith(reader.next));
    return reader.entries;
  }

  readRange(...args: Call<'readRange'>) {
    return this.#journal.readRange(...args);
  }

  deadLetter(...args: Call<'deadLetter'>) {
    return this.#journal.deadLetter(...args);
  }

  chainAt(...args: Call<'chainAt'>) {
    return this.#journal.chainAt(...args);
  }

  acknowledgeLater(...args: Call<'acknowledgeLater'>): void {
    this.#notified.acknowledgeLater(...args);
  }

  acknowledge(sink: string, acknowledgement: Acknowledgement, deadLetters: readonly DeadLetter[]) {
    const letters = deadLetters.map(({ entry, ...letter }) => ({ ...letter, entry: plainEntry(entry) }));
    return this.#journal.acknowledge(sink, acknowledgement, letters);
  }

  flush() {
    return this.#journal.flush();
  }

  commitResumeNote(...args: Call<'commitResumeNote'>) {
    return this.#journal.commitResumeNote(...args);
  }

  lost(...args: Call<'lost'>) {
    return this.#journal.lost(...args);
  }

  resolveDeadLetter(...args: Call<'resolveDeadLetter'>) {
    return this.#journal.resolveDeadLetter(...args);
  }

  adopted(...args: Call<'adopted'>) {
    return this.#journal.adopted(...args);
  }

  archiveCheckpoint(...args: Call<'archiveCheckpoint'>) {
    return this.#journal.archiveCheckpoint(...args);
  }

  archiveReplayed(...args: Call<'archiveReplayed'>) {
    return this.#journal.archiveReplayed(...args);
  }

  resent(...args: Call<'resent'>) {
    return this.#journal.resent(...args);
  }

  /** Also requests the following segment: the main thread reads it while this one is encoded and sent. */
  async #segmentWith(seq: number): Promise<Unpacked> {
    const last = this.#segment;
    if (last && last.seq <= seq && seq < last.seq + last.n) return last;
    const requested = this.#next?.from === seq ? this.#next.segment : this.#journal.segment(seq);
    this.#next = undefined;
    const segment = await requested;
    this.#segment = segment;
    const from = segment.seq + segment.n;
    if (from <= this.#facts.head) {
      this.#next = { from, segment: this.#journal.segment(from) };
      // The next read reports the error.
      this.#next.segment.catch(() => undefined);
    }
    return segment;
  }
}
