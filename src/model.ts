/**
 * The words of Waybill, and the boundaries between its rooms. Data flows one way: source, collect, journal, normalize, encode, deliver, sink.
 *
 * record    one item of `data` from the logs endpoints, exactly as received
 * event     a record after normalization: one ECS document
 * message   an event encoded for one sink, with its key
 * source    one service, one tenant, one set of credentials that is polled
 * sink      one place where messages go
 * window    a half-open interval of `logTimestamp`, [from, until)
 * frontier  the instant before which every window of a source's live range is closed, or accepted by a person
 * proof     the numbers that show that a window was read whole
 * ledger    the windows of a source with their proofs, recounts and gaps
 * gap       a window that could not be proven, with the reason
 * late      said of a record first seen after its window was closed
 * journal   the SQLite file between collecting and delivering
 * segment   what one page added to the journal: the unit of a transaction, of the chain and of pruning
 * position  a sequence number in the journal, with the chain of the segment that holds it
 * dead letter  a record that one sink refused for good, kept with the sink's own words
 * settle    the age at which a window is closed
 * recount   asking a closed window for its total again
 *
 * This file imports nothing.
 */

// ---------------------------------------------------------------------------------------------------------------- time and chance

/** Microseconds since 1970-01-01T00:00:00Z, an integer; exact to the year 2255. */
export type Micros = number;

/** Time as the rooms see it: a parameter, so that a simulation can own it. */
export interface Clock {
  /** The machine's wall clock, ms since 1970. For what people read and for the time of receipt; never for planning windows. */
  now(): number;
  /** Milliseconds of a clock that never jumps. */
  monotonic(): number;
  /** Resolves after `ms`; rejects with the signal's reason when that is aborted first. */
  sleep(ms: number, signal: AbortSignal): Promise<void>;
}

/** A number in [0, 1). */
export type Random = () => number;

// ------------------------------------------------------------------------------------------------------------------------- source

/** The two bounds of a query, exactly as they are sent (specification 4.6), e.g. `2026-11-20T02:00:00.00`. */
export interface WindowQuery {
  readonly startTime?: string;
  readonly endTime?: string;
}

/** One request for one page. `page` undefined: asked without the parameter, to learn the number of the first page. */
export interface PageRequest {
  readonly query: WindowQuery;
  readonly page: number | undefined;
  readonly pageSize: number;
}

/** One well-formed answer of a logs endpoint. */
export interface Page {
  /** The exact bytes of each item of `data`, in the order received. */
  readonly items: readonly Uint8Array[];
  /** `pagination.page`, when it is an integer (decimal text counts). */
  readonly page: number | undefined;
  /** `pagination.pageSize`: the size granted. */
  readonly pageSize: number | undefined;
  /** `pagination.totalRecords`, when it is usable: a non-negative integer (decimal text counts). */
  readonly total: number | undefined;
  /** The `Date` header, ms since 1970. */
  readonly date: number | undefined;
  /** The `Age` header in seconds, 0 when there is none. Above 0 the answer is cached and proves nothing. */
  readonly age: number;
  /** When the answer had arrived: wall clock in µs, and the monotonic clock in ms. */
  readonly received: Micros;
  readonly receivedMonotonic: number;
}

/**
 * Where records come from. One call is one request (a rejected token is renewed once within it); the source keeps no state between windows
 * and repeats nothing by itself: that is for the one who asks.
 *
 * Throws WaybillError: `source_unreachable`, `source_busy` (perhaps with `retryAfterMs`), `source_unauthorized`, `source_forbidden`,
 * `tls_untrusted`, `proxy_refused`, `token_refused`, `token_unreachable`, `page_malformed`, `page_refused`, `page_missing`; or the signal's
 * reason.
 */
export interface Source extends AsyncDisposable {
  page(request: PageRequest, signal: AbortSignal): Promise<Page>;
  /** The next request carries a fresh token, where there are tokens. */
  renew?(): void;
}

/** A lower bound of the service's clock: windows are planned on it, never on ours (docs/guarantees.md, "Server time"). */
export interface ServerClock {
  /**
   * Takes an answer into account; `newest` is the newest readable `logTimestamp` of the page. `cached`: the answer is older than what was
   * known, and does not count.
   */
  observe(page: Page, newest?: Micros): 'accepted' | 'cached';
  /** Undefined before the first answer. Never goes back once established. */
  now(): Micros | undefined;
  /**
   * What both clocks have reached: `now()`, or our own clock where that is behind it. Windows are closed and counted again by it, and so forgotten;
   * it may go back when the clock of the service is set right.
   */
  agreed(): Micros | undefined;
  /** Until then nothing is closed, recounted, tried again or forgotten. */
  established(): boolean;
  /**
   * How many answers are missing before it is established and will not come by themselves, one every `everyMs`; they are asked for by counts.
   */
  missing(everyMs: number): number;
  /** The time that it still takes at least to establish it, ms; 0 once it is established. */
  remainingMs(): number;
  /** What it still needs; undefined once it is established. */
  measuring(): ClockMeasurement | undefined;
  /**
   * Whether it is more than an hour ahead of our own clock, as far as that ever was: a gateway that sticks to one wrong node cannot be told by `Date`
   * alone.
   */
  ahead(): boolean;
}

/** What is still needed before the clock of a service is known: until then no window is proven. */
export interface ClockMeasurement {
  /** At least so much time from now, ms. */
  readonly remainingMs: number;
  /** At least so many answers. */
  readonly answersMissing: number;
}

// ------------------------------------------------------------------------------------------------------------- records and events

/**
 * A value of JSON as `record/json.ts` reads it. A number that is not a safe integer is kept with the digits of its text, as an object made
 * by `JSON.rawJSON` (read with `JSON.isRawJSON(v)` and `v.rawJSON`), so that 9007199254740993 stays what it is.
 */
export type JsonValue = string | number | boolean | null | RawNumber | readonly JsonValue[] | { readonly [key: string]: JsonValue };
export interface RawNumber {
  readonly rawJSON: string;
}

/** A record with what the journal knows about it. */
export interface AuditRecord {
  /** The record as received, one JSON value. */
  readonly text: string;
  /** Its identity: 16 bytes in base64url, 22 characters (docs/formats.md, "Identity"). */
  readonly uid: string;
  /** When the response that held it had arrived. */
  readonly received: Micros;
  /** `text` as a value, where somebody has parsed it already. */
  readonly value?: JsonValue | undefined;
}

/**
 * A record after normalization: the ECS document (ECS 9.4.0, docs/formats.md), and beside it what an envelope needs without a look inside.
 */
export interface EcsEvent {
  readonly document: EcsDocument;
  /** What happened in a few constant words, without user or file: `Protected file open denied`. */
  readonly name: string;
  /** `logTimestamp` in µs, or the time of receipt when it cannot be read. */
  readonly time: Micros;
  /** 0-10. */
  readonly severity: number;
  /** actionAttempted as received, `Unknown` when absent. */
  readonly action: string;
  /** payloadId after privacy; undefined when the record has none or it is masked. */
  readonly key: string | undefined;
  /** The tags that say what is odd about the record (`missing_field`, …), each once; nearly always empty. */
  readonly irregular: readonly string[];
}

/**
 * What is written. An absent field is undefined (`JSON.stringify` leaves it out), never null, "" or an empty list or object; the order of
 * keys is that of this type.
 */
export interface EcsDocument {
  readonly '@timestamp': string;
  readonly ecs: { readonly version: string };
  readonly data_stream: { readonly type: 'logs'; readonly dataset: string; readonly namespace: string };
  readonly event: {
    readonly kind: 'event' | 'pipeline_error';
    readonly category: readonly string[] | undefined;
    readonly type: readonly string[] | undefined;
    readonly action: string;
    readonly outcome: 'success' | 'failure' | 'unknown';
    readonly reason: string | undefined;
    readonly code: string;
    readonly id: string | undefined;
    readonly provider: string;
    readonly module: string;
    readonly dataset: string;
    readonly severity: number;
    readonly timezone: string;
    readonly created: string;
    readonly original: string;
    readonly hash: string;
  };
  readonly message: string;
  readonly tags: readonly string[];
  readonly user: EcsUser | undefined;
  readonly file: EcsFile | undefined;
  readonly source: EcsSource | undefined;
  readonly host: EcsHost | undefined;
  readonly network: { readonly name: string | undefined; readonly type: 'ipv4' | 'ipv6' | undefined } | undefined;
  readonly related:
    | {
        readonly user: readonly string[] | undefined;
        readonly ip: readonly string[] | undefined;
        readonly hosts: readonly string[] | undefined;
      }
    | undefined;
  readonly organization: { readonly id: string } | undefined;
  /** The same object in every event of one source. */
  readonly observer: EcsObserver;
  readonly dpas: EcsDpas;
}

export interface EcsUser {
  readonly id: string | undefined;
  readonly email: string | undefined;
  readonly full_name: string | undefined;
  readonly name: string | undefined;
  readonly domain: string | undefined;
}

export interface EcsFile {
  readonly name: string | undefined;
  readonly extension: string | undefined;
  readonly uid: string | undefined;
  readonly owner: string | undefined;
}

export interface EcsSource {
  readonly address: string | undefined;
  readonly ip: string | undefined;
  readonly mac: string | undefined;
  readonly geo: { readonly location: { readonly lat: number; readonly lon: number } } | undefined;
  readonly as: { readonly organization: { readonly name: string } } | undefined;
}

export interface EcsHost {
  readonly name: string | undefined;
  readonly hostname: string | undefined;
  readonly domain: string | undefined;
  readonly id: string | undefined;
  readonly mac: readonly string[] | undefined;
  readonly type: string | undefined;
}

export interface EcsObserver {
  readonly vendor: string;
  readonly product: string;
  readonly version: string;
  readonly hostname: string | undefined;
}

/** What ECS has no place for, and the record's own words. */
export interface EcsDpas {
  readonly uid: string;
  readonly action_attempted: string | undefined;
  readonly result: string | undefined;
  readonly result_reason: string | undefined;
  readonly log_time: string | undefined;
  readonly payload: { readonly id: string | undefined; readonly name: string | undefined } | undefined;
  readonly user: { readonly id: string | undefined; readonly last_name_first_name: string | undefined } | undefined;
  readonly owner:
    | {
        readonly id: string | undefined;
        readonly email: string | undefined;
        readonly full_name: string | undefined;
        readonly last_name_first_name: string | undefined;
      }
    | undefined;
  readonly network:
    | {
        readonly id: string | undefined;
        readonly name: string | undefined;
        readonly address: string | undefined;
        readonly lat_long: string | undefined;
        readonly device_type: string | undefined;
        readonly mac: string | undefined;
        readonly uuid: string | undefined;
        readonly domain_name: string | undefined;
        readonly service_provider: string | undefined;
      }
    | undefined;
}

/** Pure and total: what is odd about a record becomes a tag, never an exception. */
export type Normalize = (record: AuditRecord) => EcsEvent;

/** Pure and total; the text is one line without line break at its end, and well-formed. */
export type Encode = (event: EcsEvent) => string;

// -------------------------------------------------------------------------------------------------------------- journal and ledger

export interface Window {
  readonly from: Micros;
  readonly until: Micros;
}

/** A sequence number of the journal, with the chain value of the segment that holds it. 0 is the beginning, with 32 zero bytes. */
export interface Position {
  readonly seq: number;
  readonly chain: Uint8Array;
}

/** The numbers that show that a window was read whole (docs/guarantees.md, "The proof"). */
export interface Proof {
  /** The query that was counted, word for word; a recount asks the very same. */
  readonly query: WindowQuery;
  /** What the service counted for that query after the last page; it counts the padding too. */
  readonly total: number;
  /** How many of the distinct records received the window itself owns. */
  readonly own: number;
  /** SHA-256 over the uids that the window owns: 16 bytes each, sorted as bytes, one after another. */
  readonly digest: Uint8Array;
  readonly passes: number;
  readonly requests: number;
  /** Server time of the first and the last answer. */
  readonly first: Micros;
  readonly last: Micros;
}

/** Why a window could not be proven. */
export type GapReason = 'total' | 'count' | 'filter' | 'unreadable' | 'size';

export type Verdict =
  | { readonly proven: true; readonly proof: Proof }
  | {
      readonly proven: false;
      readonly reason: GapReason;
      /** What a person should know: the page that cannot be read, the numbers that never agreed. */
      readonly words: string;
      readonly query: WindowQuery;
      readonly total: number | undefined;
      readonly own: number;
      readonly seen: number;
      readonly digest: Uint8Array;
      readonly passes: number;
      readonly requests: number;
    };

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
  /** The new mark of tip, in the transaction of the last page of a poll. */
  readonly tip?: Micros | undefined;
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

/** A stretch of a source's time that its ledger covers: [from, until), read and closed up to `reached`. */
export interface Range {
  readonly from: Micros;
  /** null: the live range, without an end. */
  readonly until: Micros | null;
  readonly reached: Micros;
  /** Records dated before it are no longer known by uid, and outside. */
  readonly remembered: Micros;
}

/** How a person wants a range of history to be read; kept with the range. */
export interface BackfillOrder {
  /** When it was asked for. */
  readonly asked: Micros;
  readonly paused: boolean;
  /** Requests a second at most for it, within the budget of the source. */
  readonly rate?: number | undefined;
  /** Only these sinks get its records; undefined: every sink. */
  readonly sinks?: readonly string[] | undefined;
  /** What the service counted for it when it was asked for. */
  readonly expected?: number | undefined;
}

/** A range of history that a person added to a source's ledger. */
export interface Backfill extends Range {
  readonly until: Micros;
  readonly order: BackfillOrder;
}

/** How far a backfill is. */
export interface BackfillProgress {
  readonly from: Micros;
  readonly until: Micros;
  readonly reached: Micros;
  /** running | paused | done */
  readonly state: 'running' | 'paused' | 'done';
  /** Windows that are closed or gaps, what they own together, and how many of them are gaps. */
  readonly windows: number;
  readonly records: number;
  readonly gaps: number;
  readonly order: BackfillOrder;
  /** Records a second, and the time left: while it runs, and only from the running daemon. */
  readonly perSecond?: number | undefined;
  readonly secondsLeft?: number | undefined;
}

/** A window as it stands in the ledger. */
export interface LedgerWindow extends Window {
  readonly query: WindowQuery;
  readonly state: 'closed' | 'gap' | 'accepted';
  readonly total: number | undefined;
  readonly own: number;
  readonly late: number;
  readonly seen: number;
  readonly recounts: number;
  /** Server time of its last proof, or of the last try of a gap. */
  readonly closed: Micros;
  /** Server time at which it is looked at again; undefined: final. */
  readonly next: Micros | undefined;
  readonly tries: number;
  readonly reason: string | undefined;
}

/** How late records were: first seen minus logTimestamp, µs. `within` counts by the bounds of journal/late.ts, the last what is beyond. */
export interface LateDelays {
  readonly longest: Micros;
  readonly within: readonly number[];
}

/** A part of a gap that is divided, with the query of its own. */
export interface GapPart extends Window {
  readonly query: WindowQuery;
}

/** What was found about a window, and when it is looked at again. */
export interface Turn {
  readonly verdict: Verdict;
  readonly next: Micros | undefined;
  /** Server time. */
  readonly at: Micros;
  /** Whether this was a recount of a closed window. */
  readonly recount: boolean;
}

/**
 * Why a source is on hold: the service shows fewer fields or fewer rows than it did, or nothing at all; a page has no readable time, or the clock
 * of the service is more than an hour ahead. Meanwhile nothing is closed (docs/guarantees.md, "Hold").
 */
export type HoldReason = 'fields' | 'rows' | 'forbidden' | 'timestamp' | 'clock';

export interface Hold {
  readonly reason: HoldReason;
  /** What a person should know, in one line. */
  readonly words: string;
  /** Server time. */
  readonly since: Micros;
  /** `fields`: those that are gone. */
  readonly fields?: readonly string[];
  /** When a sound window was last counted whole, server time: what was closed since then may hold less than there is. */
  readonly sound?: Micros;
  /** `rows`: where the windows begin that hold less than was proven; the first is the one whose count ends the hold. */
  readonly windows?: readonly Micros[];
  /** `rows`: where the others begin that hold less, once they were counted; a person accepts them together. */
  readonly shrunk?: readonly Micros[];
}

/** Something that a person did to the state. */
export interface Operation {
  /** Wall clock. */
  readonly at: Micros;
  /** What the person claimed to be; null where that is not known any more: a daemon found done what a person had begun. */
  readonly who: string | null;
  /** The command: `gaps accept`. */
  readonly what: string;
  /** Plain JSON; `why` stands in it. */
  readonly detail: Readonly<Record<string, unknown>>;
  /** The id of the source that it concerns; without one it concerns the daemon. */
  readonly source?: string;
}

/** Who does something to a gap, and why. */
export interface GapAct {
  /** Wall clock. */
  readonly at: Micros;
  readonly who: string;
  readonly why: string;
  /** SHA-256 of a file that shows it, in hex. */
  readonly evidence?: string | undefined;
}

/** What is said about a window of the ledger without a new proof. */
export interface Remark {
  readonly reason: 'reread' | 'vanished' | undefined;
  readonly words: string | undefined;
  readonly next: Micros | undefined;
  /** Counts below the stored total in a row. */
  readonly tries: number;
}

/** Where a source stands. */
export interface SourceMarks {
  readonly id: string;
  readonly frontier: Micros;
  /** 0 before the first poll. */
  readonly tip: Micros;
  readonly mode: string;
  readonly hold: Hold | undefined;
  /** What is kept about the service itself, JSON. */
  readonly profile: string | undefined;
  /** Records appended ever, those of them that were late, and the newest readable time among them. */
  readonly collected: number;
  readonly late: number;
  readonly lastRecord: Micros | undefined;
  readonly live: Range;
}

/**
 * The durable middle as collect sees it. Each call is one transaction; on SQLite it is also one turn of the event loop. Callers rely on the
 * transaction alone and on the loop of a source being sequential: so the same boundary can stand on another database later.
 *
 * Any call may throw `journal_full` (nothing was stored, collecting pauses); whatever else they throw ends the process.
 */
export interface CollectJournal {
  marks(source: string): SourceMarks;
  append(page: CollectedPage): Promise<Appended>;
  /** A window that is new must begin at `reached`; a proof moves the frontier when contiguous, a gap holds it. `lastAge` in µs. */
  close(source: string, window: Window, turn: Turn, lastAge: Micros): Promise<void>;
  /** A recount that found the stored total. */
  confirm(source: string, window: Window, next: Micros | undefined, at: Micros, lastAge: Micros): Promise<void>;
  /** The window that is due first, for a recount or another try, at server time `now`. */
  due(source: string, now: Micros): Promise<LedgerWindow | undefined>;
  /** How many uids of records without a readable time are remembered. */
  timeless(source: string): Promise<number>;
  /** Whether the uids of the records that a window owns are still known: else it cannot be read again. */
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
    said: { readonly words: string; readonly at: Micros },
    lastAge: Micros,
  ): Promise<void>;
  /** Hold, or with undefined its end, with its line in the ledger. `at` is server time. */
  setHold(source: string, hold: Hold | undefined, at: Micros): Promise<void>;
  /**
   * When everything was last seen to be shown, server time. What was closed since may have been read with less: its uids stay remembered, so that
   * it can be read again. In memory; until it is called nothing is held for that.
   */
  sound(source: string, at: Micros): void;
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

// -------------------------------------------------------------------------------------------------------------------------- sinks

/** How far a sink is. */
export interface SinkMarks {
  /** Committed: every entry up to here is taken, a dead letter, or not for this sink. */
  readonly acked: number;
  /** The last position that the sink took itself. */
  readonly taken: Position;
  readonly note: string | undefined;
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
  readonly verify?: Window | undefined;
}

export interface Acknowledgement {
  /** Every entry up to here is taken, a dead letter, or not for this sink. */
  readonly acked: number;
  /** The last position that the sink took itself, with its note; undefined when nothing was sent. */
  readonly taken: { readonly position: Position; readonly note: string | undefined } | undefined;
}

export interface DeadLetter {
  readonly entry: Entry;
  readonly rejection: Rejection;
  readonly tries: number;
}

/** What came of sending a dead letter again: taken, with the sink's note, or refused once more. */
export type LetterFate =
  { readonly taken: true; readonly note: string | undefined } | { readonly taken: false; readonly rejection: Rejection };

/** What of the journal a person wants sent again: the entries from `first` through `last`, of `times` where that is given. */
export interface ReplayRange {
  readonly first: number;
  readonly last: number;
  /** Only records whose own time lies in it; those without a readable one do not. */
  readonly times: Window | undefined;
}

/** How far a replay is. */
export interface ReplayProgress extends ReplayRange {
  /** running | done; `sent` and `refused` count messages, `passed` and `expected` entries. */
  readonly state: 'running' | 'done';
  readonly at: number;
  readonly passed: number;
  readonly expected: number;
  readonly sent: number;
  readonly refused: number;
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
  sinkMarks(sink: string): SinkMarks;
  /** The chain of the segment that holds `seq`; undefined when this journal has no such position. */
  chainAt(seq: number): Promise<Uint8Array | undefined>;
  /** Commits an acknowledgement with its dead letters. Never backwards. */
  acknowledge(sink: string, acknowledgement: Acknowledgement, deadLetters: readonly DeadLetter[]): Promise<void>;
  /** Keeps an acknowledgement for the next transaction: for sinks whose outcome can be found out afterwards. */
  acknowledgeLater(sink: string, acknowledgement: Acknowledgement): void;
  /** Commits what waits. */
  flush(): Promise<void>;
  /** A new note for what is taken (file: the begin of another file), committed before it resolves. */
  commitNote(sink: string, note: string): Promise<void>;
  /** A dead letter that still has its copy of the record. */
  letter(sink: string, seq: number): Promise<Entry | undefined>;
  /** What came of sending one again, in one transaction with its row in `operations`: taken, it is gone. */
  settleLetter(sink: string, seq: number, fate: LetterFate, operation: Operation): Promise<void>;
  /** What a sink was asked to adopt is adopted. */
  adopted(sink: string): Promise<void>;
  /** Entries up to here are pruned. */
  pruned(): number;
  /** The first segment of records behind `after` that may hold some of these times, as its first and last entry. */
  segmentOf(after: number, times: Window): Promise<{ readonly first: number; readonly last: number } | undefined>;
}

/** What a sink gets: enough for an envelope without parsing the text again. */
export interface Message {
  readonly seq: number;
  readonly number: number | undefined;
  readonly uid: string;
  readonly source: string;
  /** `logTimestamp` (or the time of receipt) in µs. */
  readonly time: Micros;
  /** 0–10, docs/formats.md. */
  readonly severity: number;
  /** actionAttempted as received, `Unknown` when absent. */
  readonly action: string;
  /** Its record has no readable time: `time` is that of receipt, another one when it is read again by another state. */
  readonly undated?: boolean;
  /** payloadId, where the record has one. */
  readonly key: string | undefined;
  /** UTF-8, one line without its break; valid until the send of its batch is settled. */
  readonly bytes: Uint8Array;
}

export interface Batch {
  readonly messages: readonly Message[];
  /** The position of the last entry that this batch settles (it may lie beyond the last message: entries not for this sink). */
  readonly through: Position;
  /** An earlier attempt at some of these messages may have been taken. */
  readonly uncertain: boolean;
  readonly bytes: number;
  /**
   * Set where a person has the sink get something besides: a dead letter once more, a range of the journal, or events that are in no journal (their
   * `seq` only tells them apart). The sink's position stays: `through` is the one that it has, and a sink that keeps it writes it again.
   */
  readonly besides?: 'retry' | 'replay' | 'test' | undefined;
}

/** A message that the sink refused for good, with its own words. */
export interface Rejection {
  readonly seq: number;
  readonly code: string;
  readonly words: string;
  /** How often it was sent; once, where that is not said. */
  readonly tries?: number | undefined;
}

export interface Again {
  readonly seqs: readonly number[];
  /** `sink_blocked`: a person must act. */
  readonly code: 'sink_again' | 'sink_blocked';
  /** The sink's own words. */
  readonly words: string;
  readonly retryAfterMs?: number | undefined;
  /** One that is named so often counts as refused, by what was said of it last; undefined: never. */
  readonly tries?: number | undefined;
  /** Those of `seqs` behind which others were taken: their tries count from here on. A server that takes nothing tells nothing of a message. Undefined: all. */
  readonly amid?: readonly number[] | undefined;
  /** What is said of single messages, where it is not the same of all: their rejections, should it come to that. */
  readonly said?: readonly Rejection[] | undefined;
}

/** `certain`: how many messages, from the first on without a break, the receiver has said to have. They are settled, whatever becomes of the others. */
export type GoesOn = (certain: number) => void;

export interface Taken {
  readonly rejections: readonly Rejection[];
  /** Messages that were not taken, and may be later; all others of the batch are settled. */
  readonly again?: Again | undefined;
  /** How many of the messages the sink had already. */
  readonly duplicates?: number | undefined;
  /** What the sink wants to find again when it is opened; kept with the acknowledgement. */
  readonly note?: string | undefined;
}

/** What a sink finds when it is opened: the last position that it took, and its note. */
export interface Kept {
  readonly journal: string;
  readonly position: Position;
  readonly note: string | undefined;
  /** The chain of the segment that holds `seq`, or undefined when this journal has no such position. */
  chainAt(seq: number): Promise<Uint8Array | undefined>;
  /** Commits what is acknowledged so far with a new note, before the sink goes on (file: the begin of another file). */
  commitNote(note: string): Promise<void>;
  /** Reports that delivered records are gone, and commits it with a new note: the ledger no longer counts them as delivered. */
  lost(loss: SinkLoss, note: string): Promise<void>;
  /** A person has said that this journal continues what the sink holds: `position` takes the place of whatever position it keeps. */
  readonly adopt?: boolean | undefined;
}

/** Delivered records that a sink does not have any more. */
export interface SinkLoss {
  /** The first and the last entry that may be lost; more than those that are is safe. */
  readonly first: number;
  readonly last: number;
  /** What happened, for a person. */
  readonly words: string;
}

/**
 * Sends. Does not retry, batch, log, measure, or know the journal: the loop around it does. Called by one loop, one batch at a time.
 *
 * `send` resolves when the batch is durably taken, except the rejected and those to be sent again. It throws WaybillError `sink_again` (nothing of these items was
 * taken), `sink_blocked` (the same, and a person must act), `sink_refused` (the server refuses the request without naming an item), or
 * anything else: the outcome is unknown.
 */
export interface Sink extends AsyncDisposable {
  /** @param goesOn  told when the receiver has taken some more of the batch, or answered: the deadline begins anew */
  send(batch: Batch, signal: AbortSignal, goesOn?: GoesOn): Promise<Taken>;
  /** Only sinks that keep our progress on their side: the last position that they find to be true. */
  position?(signal: AbortSignal): Promise<KeptPosition | undefined>;
}

/** Where a sink that keeps our progress is, when it is opened. */
export interface KeptPosition {
  readonly position: Position;
  readonly note: string | undefined;
  /** The entry of a dead letter that it took besides, last of all: whoever sent it may not know. */
  readonly retried?: number | undefined;
}

// -------------------------------------------------------------------------------------------------------------- what the rooms say

/** Structured logging: a short constant phrase, everything else as fields under the words of this file. Never a secret. */
export interface Log {
  debug(fields: object, phrase: string): void;
  info(fields: object, phrase: string): void;
  warn(fields: object, phrase: string): void;
  error(fields: object, phrase: string): void;
}

/** What is counted while it happens; gauges are read from a Snapshot when asked for. Durations in seconds. */
export interface Meters {
  recordsCollected(source: string, count: number): void;
  recordsLate(source: string, count: number): void;
  /** First seen minus logTimestamp. */
  recordDelay(source: string, seconds: number): void;
  sourceRequest(source: string, outcome: string, seconds: number): void;
  /** A hold began, for this reason. */
  sourceHold(source: string, reason: string): void;
  /** The service shows fewer records of a proven window, or of a gap, than it did. */
  windowVanished(source: string): void;
  /** Another first page, page size, total or `Date` than at the calibration before. */
  calibrationChanged(source: string): void;
  eventsIrregular(source: string, tag: string): void;
  eventsSent(sink: string, count: number): void;
  /** logTimestamp to taken. */
  deliveryDelay(sink: string, seconds: number): void;
  sinkDuplicates(sink: string, count: number): void;
  /** A sink has lost delivered records. */
  sinkLoss(sink: string): void;
  /** A message was cut to what the receiver's frames can carry. */
  messageShortened(sink: string): void;
}

/** How long after their time records were first seen, by the bounds of observe/delays.ts (seconds), the last what is beyond. */
export interface DelayMeasure {
  /** When `recent` began, and the last answer of the source; wall clock, µs. */
  readonly since: Micros;
  readonly until: Micros;
  /** Of at most a week, and of the week before it. */
  readonly recent: readonly number[];
  readonly before: readonly number[];
  /** Seconds, ever. */
  readonly longest: number;
}

/** From when on the configuration wants a source collected. */
export interface Wanted {
  readonly from: Micros;
  /** So much before the begin of the ledger it may lie and mean the same, by two clocks. */
  readonly apart: Micros;
}

/** What `start` asks for and the ledger of a source does not have: between these times, before the ledger's begin. */
export interface Unread {
  readonly from: Micros;
  readonly until: Micros;
  /** Where the ledger begins. */
  readonly begins: Micros;
}

export interface SourceSnapshot {
  readonly id: string;
  /** normal | hold | orphaned | retired */
  readonly mode: string;
  /** Why it is not ready, in one line; undefined when it is. */
  readonly trouble: string | undefined;
  readonly frontier: Micros;
  readonly reached: Micros;
  readonly tip: Micros;
  readonly collected: number;
  readonly late: number;
  readonly windows: { readonly closed: number; readonly gap: number; readonly accepted: number };
  readonly gaps: number;
  readonly recountsOverdue: number;
  readonly settleSeconds: number;
  readonly lastSuccess: Micros | undefined;
  readonly lastRecord: Micros | undefined;
  readonly lastError: string | undefined;
  /** What both clocks have reached, that of the service and ours: windows are closed by it. */
  readonly serverNow: Micros | undefined;
  /** The clock of the service less that of this machine. */
  readonly clockOffsetSeconds: number | undefined;
  /** While the clock of the service is being measured; undefined once it is known. Of the running daemon alone. */
  readonly clock?: ClockMeasurement | undefined;
  /**
   * When the next window of the live range can be proven at the earliest, server time: its end has the age `settle` then, and the clock of the
   * service is known. Of the running daemon alone.
   */
  readonly nextProof?: Micros | undefined;
  /** Ranges of history that are not read to their end. */
  readonly backfills?: readonly BackfillProgress[] | undefined;
  readonly delays?: DelayMeasure | undefined;
  /** Where `start` was set to an earlier time than the ledger begins at, and no backfill has been asked for it. */
  readonly unread?: Unread | undefined;
  /** The hold, while it lasts: the state knows it also when no daemon runs. */
  readonly held?: Pick<Hold, 'reason' | 'words'> | undefined;
  /** Its answers carry no `Date`: what time it is there at least, by its records; undefined before the first of them. */
  readonly undated?: { readonly known: Micros | undefined } | undefined;
  /** Why the calibration that is due could not be made, while that is so. */
  readonly uncalibrated?: string | undefined;
  /** Of its whole ledger; only where a verdict was asked for. */
  readonly coverage?: Coverage | undefined;
}

export interface SinkSnapshot {
  readonly id: string;
  readonly type: string;
  /** active | waiting | blocked | orphaned | retired; stopped, where no daemon runs */
  readonly state: string;
  readonly trouble: string | undefined;
  readonly acked: number;
  readonly lagRecords: number;
  readonly lagSeconds: number;
  readonly deadLetters: number;
  readonly lastSuccess: Micros | undefined;
  readonly lastError: string | undefined;
  /** Failed attempts in a row; 0: the last one succeeded. Only from the running daemon. */
  readonly tries?: number | undefined;
  /** Whether it has accepted a message, in this run or an earlier one of the same state. */
  readonly everDelivered: boolean;
  /** When the first of the failed attempts in a row ended, and when the next one begins, by the wall clock. Only from the running daemon. */
  readonly failingSince?: Micros | undefined;
  readonly nextAttempt?: Micros | undefined;
  /** The one under way, or the last that ended; of the running daemon alone. */
  readonly replay?: ReplayProgress | undefined;
}

/** What the ledger of a source has of one period: with the present, all that the verdict follows from. Times in µs. */
export interface Coverage {
  /** Where the ledger begins, or will begin by `start`; undefined: not known yet. */
  readonly startsAt: Micros | undefined;
  /** Where the live range begins; undefined before the first answer. */
  readonly liveFrom: Micros | undefined;
  /** Ranges of history that were requested, by their begin. */
  readonly history: readonly (Window & { readonly paused: boolean })[];
  /** Stretches in which every window is closed, a gap or accepted; by their begin. */
  readonly read: readonly Window[];
  readonly windows: {
    readonly all: number;
    readonly final: number;
    readonly gaps: number;
    readonly accepted: number;
    /** Proven, but a later count or a suspension disagrees. */
    readonly inDoubt: number;
  };
  readonly sinks: readonly SinkCoverage[];
}

/** What one sink has of the windows that it owes: of its sources, those that begin at or after its start. */
export interface SinkCoverage {
  readonly id: string;
  readonly windows: number;
  /** Windows of whose time it has not acknowledged a collected record, or lost a delivered one, and windows that hold a dead letter. */
  readonly lacking: number;
  /** Of the lacking windows: those of whose time it lost delivered records. */
  readonly lost: number;
  /** Only with `lost`: what happened last, for a person. */
  readonly loss?: string;
  /** In those windows; 0 where a filter decides what it gets. */
  readonly deadLetters: number;
}

/** The state of the whole daemon at one moment: what status, probes and gauges are made of. */
export interface Snapshot {
  readonly version: string;
  readonly created: Micros;
  readonly now: Micros;
  readonly journal: {
    /** Of the quota: pages that hold something, and what is set aside for the WAL. */
    readonly bytes: number;
    /** The part of `bytes` that the WAL may take and does not take now. */
    readonly setAside?: number;
    readonly quota: number;
    readonly head: number;
    /** `quota` or `disk`: which of the two is used up; words may follow. */
    readonly paused: string | undefined;
    /** Where the state lies. */
    readonly directory: string;
    /** Transactions committed since the daemon started. */
    readonly commits?: number;
  };
  readonly sources: readonly SourceSnapshot[];
  readonly sinks: readonly SinkSnapshot[];
  /** Of the running daemon alone. */
  readonly certificates?: readonly CertificateEnd[];
  /** Set when no daemon runs: `since` is about when one wrote to the state last, by the wall clock. */
  readonly stopped?: { readonly since: Micros } | undefined;
}

/** When a certificate in use ends; `target` is the setting that it belongs to: `sources.production.auth`. */
export interface CertificateEnd {
  readonly target: string;
  readonly at: Micros;
}

// --------------------------------------------------------------------------------------------------------------------------- report

/** The completeness report, exactly as `ledger --json` prints it: times in RFC 3339, sums over `own`, never over `total` (it counts the padding too). */
export interface LedgerReport<Windows extends LedgerReportWindows = readonly LedgerReportWindow[]> extends LedgerTables<Windows> {
  /** The verdict in words, and its parts (src/observe/verdict.ts). */
  readonly summary: string;
  readonly complete: boolean;
  readonly delivered: boolean;
  readonly final: boolean;
  readonly uncovered: readonly LedgerReportHole[];
}

/** Time that was due and is not proven. */
export interface LedgerReportHole {
  readonly source: string;
  readonly from: string;
  readonly to: string;
  /** before_ledger | not_requested | history_unread | retired | unconfigured | daemon_stopped | journal_full | suspended | source_failing | behind */
  readonly reason: string;
  /** The reason for a person, with the last error where there is one. */
  readonly message: string;
}

/** What the report lists, without the verdict on it. */
export interface LedgerTables<Windows extends LedgerReportWindows = readonly LedgerReportWindow[]> {
  /** When the report was made, and the period asked for; null: from the begin of the ledger, up to now. */
  readonly made: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly sources: readonly LedgerReportSource<Windows>[];
  /** What people changed in the period; `who` is what they claimed. */
  readonly operations: readonly LedgerReportOperation[];
}

/** By their begin. There may be more than memory holds: then they are read anew by each who goes through them. */
export type LedgerReportWindows = Iterable<LedgerReportWindow>;

/** A report whose windows may be read as it is written out. */
export type LongLedgerReport = LedgerReport<LedgerReportWindows>;
export type LongLedgerReportSource = LedgerReportSource<LedgerReportWindows>;

export interface LedgerReportSource<Windows extends LedgerReportWindows = readonly LedgerReportWindow[]> {
  readonly id: string;
  /** normal | hold | orphaned | retired */
  readonly mode: string;
  /** Where the ledger begins; null while it has not. */
  readonly begins: string | null;
  readonly frontier: string | null;
  readonly reached: string | null;
  /** Of the windows below: records, and those of them that were late. */
  readonly collected: number;
  readonly late: number;
  readonly lateDelays: LedgerReportDelays;
  /** Of the whole ledger: collected ever = in windows + outside (not in a closed window yet, or without a readable time). */
  readonly ever: { readonly collected: number; readonly inWindows: number; readonly outside: number };
  /** The stretches that these numbers are about: whole windows, without what was not read. */
  readonly covered: readonly { readonly from: string; readonly to: string }[];
  readonly sinks: readonly LedgerReportSink[];
  /** Hold and its end, as the journal still has them. */
  readonly holds: readonly LedgerReportHold[];
  readonly windows: Windows;
}

/** `within`: how many came within each age and not sooner: 1h, 6h, 1d, 3d, 7d, 14d, 30d, later. */
export interface LedgerReportDelays {
  readonly longestSeconds: number | null;
  readonly within: Readonly<Record<string, number>>;
}

/** What one sink has of the windows of a source: those that begin where it begins, or later. */
export interface LedgerReportSink {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  /** It gets what is dated from here on; null: everything. */
  readonly since: string | null;
  /** It has a `where`: how many of the records are for it is not in the ledger. */
  readonly filtered: boolean;
  readonly windows: number;
  readonly complete: number;
  /** Windows of whose time it lost delivered records; none of them is complete. */
  readonly lost: number;
  /** Records of the complete windows less its dead letters; null when `filtered`. */
  readonly records: number | null;
  readonly deadLetters: number;
}

/** What a sink has of a window, or of all windows of a day or month. */
export interface LedgerReportSinkWindow {
  /** It has acknowledged every record of the window's time, and lost none since. */
  readonly complete: boolean;
  /** Only where it lost delivered records of the window's time; then it is not complete. */
  readonly lost?: true;
  /** Records that it refused for good. */
  readonly deadLetters: number;
}

export interface LedgerReportHold {
  readonly at: string;
  readonly what: string;
  readonly reason: string | null;
  readonly words: string | null;
}

export interface LedgerReportOperation {
  readonly at: string;
  /** What that person claimed; null when nobody was named. */
  readonly who: string | null;
  readonly what: string;
  /** Of an act on a window: its `source`, `from` and `until`, and `why`. */
  readonly detail: Readonly<Record<string, string | number | boolean>>;
}

/** `final`: proven, and its last recount is done. */
export type LedgerReportState = 'proven' | 'final' | 'gap' | 'accepted';

export interface LedgerReportWindow {
  readonly from: string;
  readonly until: string;
  readonly state: LedgerReportState;
  /** Why it is a gap; of a proven one `reread` or `vanished`, when a later count said so. */
  readonly reason: string | null;
  /** What is known about the reason, for a person. */
  readonly words: string | null;
  /** What the service counted for the query, padding included; of a gap the most that it ever counted. */
  readonly total: number | null;
  /** Distinct records received for the query. Proven: the same number as `total`. */
  readonly received: number;
  readonly own: number;
  readonly late: number;
  readonly lateLongestSeconds: number | null;
  readonly passes: number;
  /** Recounts done, and still to come; null when that is not known (the source is not in the configuration, or the window is a gap). */
  readonly recounts: number;
  readonly recountsDue: number | null;
  readonly nextRecount: string | null;
  readonly closed: string | null;
  /** SHA-256 over the identities that the window owns (docs/guarantees.md), hex. */
  readonly digest: string | null;
  /** The bounds of the query that was counted, word for word. */
  readonly query: WindowQuery;
  readonly sinks: Readonly<Record<string, LedgerReportSinkWindow>>;
}
