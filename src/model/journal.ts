/** The boundary to the durable journal, as collection and as delivery see it. */
import type { Backfill, GapPart, Suspension, LedgerWindow, Position, Remark, SourceProgress, WindowStep, Window } from './ledger.ts';
import type { AuditRecord } from './record.ts';
import type { Rejection } from './sink.ts';
import type { Micros } from './time.ts';

/** A record as collect hands it to the journal. */
export interface CollectedRecord {
  readonly bytes: Uint8Array;
  readonly text: string;
  readonly uid: string;
  /** `logTimestamp`, undefined when it cannot be read. */
  readonly time: Micros | undefined;
  readonly isObject: boolean;
}

export interface CollectedPage {
  readonly source: string;
  readonly records: readonly CollectedRecord[];
  readonly received: Micros;
  /** Server time, for the bucket of records without a readable time. */
  readonly serverNow: Micros;
  /** The new `polledUntil`, in the transaction of the last page of a poll. */
  readonly polledUntil?: Micros | undefined;
  /**
   * The window being read with proof: none of its records may be outside for having been forgotten (asserted). Of a range of history nothing is
   * appended behind where its ledger ends, unless it lies in this window.
   */
  readonly window?: Window | undefined;
}

/** received = appended + known + outside, always. */
export interface Appended {
  readonly received: number;
  readonly appended: number;
  readonly known: number;
  readonly outside: number;
  readonly late: number;
  /** The records that were appended. */
  readonly fresh: readonly CollectedRecord[];
}

/** Something that a person did to the state. */
export interface Operation {
  /** Wall clock. */
  readonly at: Micros;
  /** What the person claimed to be; null where that is not known any more: a daemon found done what a person had begun. */
  readonly actor: string | null;
  /** The command: `gaps accept`. */
  readonly operation: string;
  /** Plain JSON; `reason` stands in it. */
  readonly detail: Readonly<Record<string, unknown>>;
  /** The id of the source that it concerns; without one it concerns the daemon. */
  readonly source?: string;
}

/** Who does something to a gap, and why. */
export interface GapOperation {
  /** Wall clock. */
  readonly at: Micros;
  readonly actor: string;
  readonly reason: string;
  /** SHA-256 of a file that shows it, in hex. */
  readonly evidence?: string | undefined;
}

/**
 * The durable middle as collect sees it. Each call is one transaction; on SQLite it is also one turn of the event loop. Callers rely on the
 * transaction alone and on the loop of a source being sequential: so the same boundary can stand on another database later.
 *
 * Any call may throw `journal_full` (nothing was stored, collecting pauses); whatever else they throw ends the process.
 */
export interface CollectJournal {
  progress(source: string): SourceProgress;
  append(page: CollectedPage): Promise<Appended>;
  /** A window that is new must begin at `closedUntil`; a proof moves the frontier when contiguous, a gap holds it. `lastAge` in µs. */
  close(source: string, window: Window, step: WindowStep, lastAge: Micros): Promise<void>;
  /** A recount that found the stored total. */
  confirm(source: string, window: Window, next: Micros | undefined, at: Micros, lastAge: Micros): Promise<void>;
  /** The window that is due first, for a recount or another try, at server time `now`. */
  due(source: string, now: Micros): Promise<LedgerWindow | undefined>;
  /** How many uids of records without a readable time are remembered. */
  timeless(source: string): Promise<number>;
  /** Whether the uids of the records in a window are still known: else it cannot be read again. */
  remembers(source: string, window: Window): boolean;
  /** A window of the ledger by its begin. */
  window(source: string, from: Micros): Promise<LedgerWindow | undefined>;
  /** Closed windows with records and without a remark that end behind `since`, of the live range: those with the most records first. */
  richest(source: string, since: Micros, most: number): Promise<readonly LedgerWindow[]>;
  /** Closed windows without a remark that were closed at or after `since`, server time. */
  closedSince(source: string, since: Micros): Promise<readonly LedgerWindow[]>;
  /** The last windows of the live range, newest first. */
  latest(source: string, most: number): readonly LedgerWindow[];
  /** A recount that says something else than a new proof: its remark and when it is looked at again. `lastAge` in µs. */
  remark(source: string, window: Window, remark: Remark, at: Micros, lastAge: Micros): Promise<void>;
  /** A gap that is too much for the service to answer in one piece becomes several, which tile it and are due at once. `lastAge` in µs. */
  divide(
    source: string,
    gap: Window,
    parts: readonly GapPart[],
    said: { readonly message: string; readonly at: Micros },
    lastAge: Micros,
  ): Promise<void>;
  /** Hold, or with undefined its end, with its line in the ledger. `at` is server time. */
  setSuspension(source: string, suspension: Suspension | undefined, at: Micros): Promise<void>;
  /**
   * When everything was last seen to be shown, server time. What was closed since may have been read with less: its uids stay remembered, so that
   * it can be read again. In memory; until it is called nothing is held for that.
   */
  lastFullVisibility(source: string, at: Micros): void;
  setProfile(source: string, profile: string): Promise<void>;
  /** The ranges of history that a person asked for and that are not read to their end, newest first. */
  backfills(source: string): readonly Backfill[];
  /** Why collecting pauses, if it does. */
  paused(): string | undefined;
  /** Where the slowest sink is, while it is about to have to read back from the file what is still in memory; undefined when none is. */
  behind(): number | undefined;
}

/** One entry of the journal, on its way out: a record, or a line of the ledger. */
export interface Entry extends AuditRecord {
  readonly seq: number;
  readonly kind: 'record' | 'ledger';
  /** Counts records alone, without holes; undefined for a ledger entry. */
  readonly number: number | undefined;
  readonly source: string;
  readonly time: Micros | undefined;
  readonly late: boolean;
  /** The position of this entry's segment's chain. */
  readonly chain: Uint8Array;
}

export interface Limit {
  readonly records: number;
  readonly bytes: number;
}

/** How far a sink is. */
export interface SinkProgress {
  /** Committed: every entry up to here is taken, a dead letter, or not for this sink. */
  readonly acknowledged: number;
  /** The last position that the sink took itself. */
  readonly delivered: Position;
  readonly resumeNote: string | undefined;
  /** Records with a readable time before it are not for this sink. */
  readonly fromTime: Micros | undefined;
  readonly deadLetters: number;
  readonly orders: SinkOrders;
}

/** What a person has ordered of a sink, kept until it is done. */
export interface SinkOrders {
  /** The present journal is the continuation of what the sink holds, whatever position that keeps. Done once it was opened so. */
  readonly adopt?: boolean | undefined;
  /** Batches with a record of this time, or without a readable one, are uncertain: another state may have sent them. Stays. */
  readonly reconcile?: Window | undefined;
}

export interface Acknowledgement {
  /** Every entry up to here is taken, a dead letter, or not for this sink. */
  readonly acknowledged: number;
  /** The last position that the sink took itself, with its note; undefined when nothing was sent. */
  readonly delivered: { readonly position: Position; readonly resumeNote: string | undefined } | undefined;
}

export interface DeadLetter {
  readonly entry: Entry;
  readonly rejection: Rejection;
  readonly attempts: number;
}

/** What came of sending a dead letter again: taken, with the sink's note, or refused once more. */
export type DeadLetterResult =
  { readonly delivered: true; readonly resumeNote: string | undefined } | { readonly delivered: false; readonly rejection: Rejection };

/** What of the journal a person wants sent again: the entries from `first` through `last`, of `times` where that is given. */
export interface ReplayRange {
  readonly first: number;
  readonly last: number;
  /** Only records whose own time lies in it; those without a readable one do not. */
  readonly times: Window | undefined;
}

/** A range of the journal that a sink has taken again; what it refused of it is a dead letter. */
export interface Resent extends ReplayRange {
  /** When the sending began: a loss that is found later may be of what was sent. µs, wall clock. */
  readonly began: Micros;
}

/** How far a replay is. */
export interface ReplayProgress extends ReplayRange {
  /** running | done; `sent` and `refused` count messages, `passed` and `expected` entries. */
  readonly state: 'running' | 'done';
  readonly at: number;
  readonly passed: number;
  readonly expected: number;
  readonly sent: number;
  readonly rejected: number;
  /** Wall clock, ms. */
  readonly began: number;
  readonly ended: number | undefined;
}

/** The durable middle as the loop of one sink sees it. */
export interface DeliverJournal {
  readonly id: string;
  head(): Position;
  /** The entries behind `after`, in order, until a limit is reached; at least one if there is one. */
  read(after: number, limit: Limit): Promise<readonly Entry[]>;
  /** Resolves when something was appended after this call. */
  changed(): Promise<unknown>;
  sinkProgress(sink: string): SinkProgress;
  /** The chain of the segment that holds `seq`; undefined when this journal has no such position. */
  chainAt(seq: number): Promise<Uint8Array | undefined>;
  /** Commits an acknowledgement with its dead letters. Never backwards. */
  acknowledge(sink: string, acknowledgement: Acknowledgement, deadLetters: readonly DeadLetter[]): Promise<void>;
  /** Keeps an acknowledgement for the next transaction: for sinks whose outcome can be found out afterwards. */
  acknowledgeLater(sink: string, acknowledgement: Acknowledgement): void;
  /** Commits what waits. */
  flush(): Promise<void>;
  /** A new note for what is taken (file: the begin of another file), committed before it resolves. */
  commitResumeNote(sink: string, resumeNote: string): Promise<void>;
  /** A dead letter that still has its copy of the record. */
  deadLetter(sink: string, seq: number): Promise<Entry | undefined>;
  /** What came of sending one again, in one transaction with its row in `operations`: taken, it is gone. */
  resolveDeadLetter(sink: string, seq: number, result: DeadLetterResult, operation: Operation): Promise<void>;
  /** What a sink was asked to adopt is adopted. */
  adopted(sink: string): Promise<void>;
  /** Losses of the sink end where it has taken again what it lost. */
  resent(sink: string, sent: Resent): Promise<void>;
  /** Entries up to here are pruned. */
  pruned(): number;
  /** The first segment of records behind `after` that may hold some of these times, as its first and last entry. */
  segmentOf(after: number, times: Window): Promise<{ readonly first: number; readonly last: number } | undefined>;
}
