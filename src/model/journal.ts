/** The boundary to the journal: what src/collect and src/deliver may call. */
import type { Backfill, GapPart, Suspension, LedgerWindow, Position, Remark, SourceProgress, WindowStep, Window } from './ledger.ts';
import type { AuditRecord, Notes } from './record.ts';
import type { Rejection, ResumePosition, SinkLoss } from './sink.ts';
import type { Micros } from './time.ts';

export interface CollectedRecord {
  readonly bytes: Uint8Array;
  readonly text: string;
  readonly uid: string;
  /** `logTimestamp`; undefined when it is unreadable. */
  readonly time: Micros | undefined;
  readonly isObject: boolean;
  /** Where the fields are in `bytes`, if known. */
  readonly notes?: Notes | undefined;
}

export interface CollectedPage {
  readonly source: string;
  readonly records: readonly CollectedRecord[];
  readonly received: Micros;
  /** Server time. Records without a readable time are stored in the uid bucket of this time. */
  readonly serverNow: Micros;
  /** The new `polledUntil`: set on the last page of a poll and stored in the same transaction. */
  readonly polledUntil?: Micros | undefined;
  /**
   * The window that is being read for a proof. The journal asserts that it still knows the uids of this window, so that no record counts as
   * `outside`. Without it, a backfill appends nothing after its `closedUntil`.
   */
  readonly window?: Window | undefined;
}

/** Invariant: received = appended + known + outside. */
export interface Appended {
  readonly received: number;
  readonly appended: number;
  readonly known: number;
  readonly outside: number;
  readonly late: number;
  readonly fresh: readonly CollectedRecord[];
}

/** A change of the state that an operator requested. */
export interface Operation {
  /** Wall clock. */
  readonly at: Micros;
  /** The operator's name as given, not authenticated. Null: the daemon crashed during the operation, and only its result was found. */
  readonly actor: string | null;
  /** The command: `gaps accept`. */
  readonly operation: string;
  /** Plain JSON, with the operator's `reason`. */
  readonly detail: Readonly<Record<string, unknown>>;
  /** The id of the source; undefined for an operation on the daemon or a sink. */
  readonly source?: string;
}

export interface GapOperation {
  /** Wall clock. */
  readonly at: Micros;
  readonly actor: string;
  readonly reason: string;
  /** SHA-256 of a file with evidence, in hex. */
  readonly evidence?: string | undefined;
}

/**
 * The journal as the loop of one source sees it.
 *
 * Every member that reads or writes the store returns a promise and is one transaction, so that another database can replace SQLite.
 * Several sources may share a transaction. The loop of a source awaits each call; nothing else may be assumed about the order of calls.
 *
 * The members without a promise (`progress`, `remembers`, `covers`, `lastFullVisibility`, `backfills`, `paused`, `readAheadLimit`) read or
 * set values in memory. Only the loop of that source and the operations of operators change them, after their transaction has committed.
 *
 * A call may throw `journal_full`: nothing was stored, and collection pauses. Any other error ends the process.
 */
export interface CollectJournal {
  progress(source: string): SourceProgress;
  append(page: CollectedPage): Promise<Appended>;
  /** True if `append` would store a record of the page. */
  lacks(page: CollectedPage): Promise<boolean>;
  /** A new window must start at `closedUntil`. A contiguous proof moves the frontier; a gap stops it. `lastAge` in µs. */
  close(source: string, window: Window, step: WindowStep, lastAge: Micros): Promise<void>;
  /** Stores a recount that equals the proven total. */
  confirm(source: string, window: Window, next: Micros | undefined, at: Micros, lastAge: Micros): Promise<void>;
  /** The window that is due first at server time `now`, for a recount or another attempt. */
  due(source: string, now: Micros): Promise<LedgerWindow | undefined>;
  /** The number of stored uids of records without a readable time. */
  timeless(source: string): Promise<number>;
  /** True while the uids of the records in the window are stored. Without them the window cannot be read again. */
  remembers(source: string, window: Window): boolean;
  /** True if a range of the source holds the time, however far it is read. */
  covers(source: string, time: Micros): boolean;
  windowAt(source: string, time: Micros): Promise<LedgerWindow | undefined>;
  /** The window that starts at `from`. */
  window(source: string, from: Micros): Promise<LedgerWindow | undefined>;
  /** Proven windows of the live range with records, without a remark, that end after `since`; those with the most records first. */
  richest(source: string, since: Micros, limit: number): Promise<readonly LedgerWindow[]>;
  /** Proven windows without a remark that were closed at or after `since`, server time. */
  closedSince(source: string, since: Micros): Promise<readonly LedgerWindow[]>;
  /** The last windows of the live range, newest first. */
  latest(source: string, limit: number): Promise<readonly LedgerWindow[]>;
  /** Stores a recount that differs from the proven total: a remark, and when to recount. `lastAge` in µs. */
  remark(source: string, window: Window, remark: Remark, at: Micros, lastAge: Micros): Promise<void>;
  /** Replaces a gap whose query the service cannot answer by adjacent parts that are due at once. `lastAge` in µs. */
  divide(
    source: string,
    gap: Window,
    parts: readonly GapPart[],
    finding: { readonly message: string; readonly at: Micros },
    lastAge: Micros,
  ): Promise<void>;
  /** Starts a suspension, or ends it when undefined, and writes a ledger entry. `at` is server time. */
  setSuspension(source: string, suspension: Suspension | undefined, at: Micros): Promise<void>;
  /**
   * Sets the last server time at which every record was visible. A window closed later may have been read with restricted rights, so its
   * uids are kept and it can be read again. Kept in memory; before the first call no uids are kept for this reason.
   */
  lastFullVisibility(source: string, at: Micros): void;
  setProfile(source: string, profile: string): Promise<void>;
  /** The backfills that are not complete, newest first. */
  backfills(source: string): readonly Backfill[];
  /** Why collection is paused; undefined when it is not. */
  paused(): Promise<string | undefined>;
  /** The same, or `disk` from a write that failed until a write succeeds: only such a write shows that the disk has room again. */
  refuses(): string | undefined;
  /** The position of the slowest sink while it is about to fall out of the memory of recent segments: the collector may wait for it. */
  laggingPosition(): number | undefined;
}

/** An entry of the journal: a record or a ledger entry. */
export interface Entry extends AuditRecord {
  /** `text` as UTF-8. */
  readonly bytes: Uint8Array;
  readonly seq: number;
  readonly kind: 'record' | 'ledger';
  /** Counts records only, without holes; undefined for a ledger entry. */
  readonly number: number | undefined;
  readonly source: string;
  readonly time: Micros | undefined;
  readonly late: boolean;
  /** The chain value of the segment that holds this entry. */
  readonly chain: Uint8Array;
  /** Where the fields are in `bytes`, if known: for a record that was collected a moment ago. */
  readonly notes?: Notes | undefined;
}

export interface Limit {
  readonly records: number;
  readonly bytes: number;
}

export interface SinkProgress {
  /** Committed: every entry up to here was delivered, dead-lettered or is not for this sink. */
  readonly acknowledged: number;
  /** The last position that the sink itself accepted. */
  readonly delivered: Position;
  readonly resumeNote: string | undefined;
  /** Records with an earlier readable time are not for this sink. */
  readonly fromTime: Micros | undefined;
  /** The sink receives every record of its sources that is dated at this time or later. */
  readonly completeSince: Micros;
  readonly deadLetters: number;
  readonly orders: SinkOrders;
  readonly replays: Replays;
}

/** Requests of an operator to a sink, stored until they are carried out. */
export interface SinkOrders {
  /** This journal continues the data of the sink, whatever position the sink stores. Removed once the sink was opened with it. */
  readonly adopt?: boolean | undefined;
  /** Another copy of this state may have sent records of this period: batches with these, or undated ones, are uncertain. Never removed. */
  readonly reconcile?: Window | undefined;
}

export interface Acknowledgement {
  /** Every entry up to here was delivered, dead-lettered or is not for this sink. */
  readonly acknowledged: number;
  /** The last position that the sink itself accepted; undefined when nothing was sent. */
  readonly delivered: { readonly position: Position; readonly resumeNote: string | undefined } | undefined;
}

export interface DeadLetter {
  readonly entry: Entry;
  readonly rejection: Rejection;
  readonly attempts: number;
}

export type DeadLetterResult =
  { readonly delivered: true; readonly resumeNote: string | undefined } | { readonly delivered: false; readonly rejection: Rejection };

/** Entries of the journal: from `first` through `last`, limited to `times` if set. */
export interface ReplayRange {
  readonly first: number;
  readonly last: number;
  /** Only records with a readable time in this window. */
  readonly times: Window | undefined;
}

/** A replay to a sink with its progress, as the state stores it. It continues after a restart. */
interface StoredReplay {
  /** Only records with a readable time in this window. */
  readonly times: Window | undefined;
  /** When it was requested, wall clock in ms. It distinguishes the replay from other replays to the sink. */
  readonly began: number;
  /** Each entry of the journal, or each line of the archive, up to this one was resolved. */
  readonly at: number;
  /** The number of messages that the sink accepted. */
  readonly sent: number;
  readonly rejected: number;
}

export interface RangeReplay extends StoredReplay, ReplayRange {
  readonly kind: 'range';
  /** As the operator requested it. */
  readonly requested: { readonly first?: number | undefined; readonly last?: number | undefined };
  /** Entries before this one were pruned before the replay read them, or were sent under another selection. */
  readonly completeFrom: number;
  /** Numbers of entries; `expected` is approximate. */
  readonly passed: number;
  readonly expected: number;
}

/** The unfinished replays to a sink, at most one of each kind. */
export interface Replays {
  readonly range?: RangeReplay | undefined;
  readonly archive?: ArchiveReplay | undefined;
}

export type Replay = RangeReplay | ArchiveReplay;

export interface ArchiveReplay extends StoredReplay {
  readonly kind: 'archive';
  /** The id of the sink that writes the archive. */
  readonly archive: string;
  /** Records of this journal after this entry are left out: the sink receives them from the journal. */
  readonly through: number;
  /** The identity of the archive; undefined before it was read. */
  readonly origin?: string | undefined;
  /** The number of lines that an operator left out. Default 0. */
  readonly leftOut?: number | undefined;
}

/** The records of an archive, verified when they are read. The `seq` of an entry is the number of its line. */
export interface ArchivedRecords extends AsyncDisposable {
  /** The identity of the archive. */
  readonly origin: string;
  /** The number of its lines; 0 before its first checkpoint. */
  readonly lines: number;
  /**
   * The records after line `after`, in order, up to a limit; at least one if one exists. Records before unreadable lines are returned.
   * @throws WaybillError `archive_broken` if the next lines are missing or altered: the message has their numbers
   */
  read(after: number, limit: Limit): Promise<readonly Entry[]>;
  /** The position after the record at `line`: that line, or the last of the lines without records that follow. Once for each `read`. */
  endOf(line: number): number;
}

export interface ReplayProgress extends ReplayRange {
  /** `stopped`: no loop runs, and the next one continues it. `sent` and `rejected` count messages, `passed` and `expected` count entries. */
  readonly state: 'running' | 'done' | 'failed' | 'cancelled' | 'stopped';
  /** Set for a replay from an archive: its sink. Then entries are lines of the archive. */
  readonly archive?: string | undefined;
  /** The number of lines of the archive that an operator left out. */
  readonly leftOut?: number | undefined;
  readonly error?: string | undefined;
  readonly at: number;
  readonly passed: number;
  readonly expected: number;
  readonly sent: number;
  readonly rejected: number;
  /** Wall clock, ms. */
  readonly began: number;
  readonly ended: number | undefined;
}

/**
 * The journal as the loop of one sink sees it.
 *
 * Every member that reads or writes the store returns a promise and is one transaction. The members without a promise (`sinkProgress`,
 * `withheld`, `acknowledgeLater`, `replayedFrom`) use values in memory, which follow each committed transaction. Only the loop of that sink
 * and the operations of operators change the progress of a sink.
 */
export interface DeliverJournal {
  readonly id: string;
  /** For a shard: resolves while no other process can own it. Undefined: resolved at once. */
  owned?(signal: AbortSignal): Promise<void> | undefined;
  /** The entries after `after`, in order, up to a limit; at least one if one exists. */
  read(after: number, limit: Limit): Promise<readonly Entry[]>;
  /** Resolves when the journal has changed after this call. */
  changed(): Promise<unknown>;
  sinkProgress(sink: string): SinkProgress;
  /** The backfills of a source that were requested for other sinks only: their records are not for this sink. */
  withheld(sink: string, source: string): readonly Window[];
  /** The chain value of the segment that contains entry `seq`; undefined if this journal has no such entry. */
  chainAt(seq: number): Promise<Uint8Array | undefined>;
  /** An acknowledgement never goes back. The progress of the replay is stored unless an operator has ended that. */
  acknowledge(sink: string, acknowledgement: Acknowledgement, deadLetters: readonly DeadLetter[], replay?: Replay): Promise<void>;
  /** Writes an acknowledgement with the next transaction. For sinks whose delivered messages can be determined after a crash. */
  acknowledgeLater(sink: string, acknowledgement: Acknowledgement): void;
  /** Commits the acknowledgements that `acknowledgeLater` keeps. */
  flush(): Promise<void>;
  /** Commits a new resume note for the delivered position, for example the start of another file. */
  commitResumeNote(sink: string, resumeNote: string): Promise<void>;
  /** Commits a loss of delivered records with a new resume note; see ResumePoint.lost. */
  lost(sink: string, loss: SinkLoss, resumeNote: string): Promise<void>;
  /** Removes the recorded losses of the sink: it has again what it had lost. */
  restored(sink: string): Promise<void>;
  /** Undefined when the copy of the record is gone. */
  deadLetter(sink: string, seq: number): Promise<Entry | undefined>;
  /** The entries that the sink rejected and did not accept later, also those whose copies are gone. */
  rejected(sink: string): Promise<ReadonlySet<number>>;
  /** Stores the result of sending a dead letter again, with its row in `operations`. A delivered dead letter is removed. */
  resolveDeadLetter(sink: string, seq: number, result: DeadLetterResult, operation: Operation): Promise<void>;
  /** Acknowledges the entries that the sink has by the position that it stores. */
  found(sink: string, found: ResumePosition): Promise<void>;
  /** Removes the request to adopt a sink. */
  adopted(sink: string): Promise<void>;
  /** Removes a complete replay. One of a range resolves the recorded losses of the sink, for the part that it accepted again. */
  replayed(sink: string, replay: Replay): Promise<void>;
  /** Writes a signed checkpoint of the archive of the sink as a ledger entry, unless one of this UTC day is written. */
  archiveCheckpoint(sink: string, checkpoint: string): Promise<void>;
  /** The first line that a replay from the archive of this sink has yet to read; undefined: no replay reads it. */
  replayedFrom(archive: string): number | undefined;
  /**
   * The next entries of a replay after `after`. With `times`, segments without such records are skipped.
   * @returns `after`: the last entry pruned since the replay began if that is later than the given position
   */
  readRange(after: number, range: ReplayRange, limit: Limit): Promise<{ readonly after: number; readonly entries: readonly Entry[] }>;
}
