/** The boundary to a sink: batches of messages in, a delivery result out. */
import type { Position } from './ledger.ts';
import type { Micros } from './time.ts';

/** One encoded event, with what an envelope needs, so that a sink does not parse the text. */
export interface Message {
  readonly seq: number;
  /** Undefined for a ledger entry. */
  readonly number: number | undefined;
  readonly uid: string;
  readonly source: string;
  /** `logTimestamp`, or the time of receipt when it is unreadable, in µs. */
  readonly time: Micros;
  /** When the record was received, or the ledger entry written. */
  readonly received: Micros;
  /** The record was first seen after its window was closed. */
  readonly late: boolean;
  /** 0–10, docs/formats.md. */
  readonly severity: number;
  /** actionAttempted as received; `Unknown` when absent. */
  readonly action: string;
  /** The record has no readable time, so `time` is the time of receipt. It differs when another state reads the record. */
  readonly undated?: boolean;
  /** A ledger entry; undefined for a record. */
  readonly isLedger?: true;
  /** payloadId, if the record has one. */
  readonly key: string | undefined;
  /** UTF-8, one line without a line break; valid until `send` of its batch settles. */
  readonly bytes: Uint8Array;
}

export interface Batch {
  readonly messages: readonly Message[];
  /** The last entry that this batch acknowledges, perhaps later than its last message: the sink does not receive the entries in between. */
  readonly through: Position;
  /** True when the sink may have received some of these messages in an earlier attempt. */
  readonly uncertain: boolean;
  readonly bytes: number;
  /**
   * Set when an operator requested the delivery: a replay, dead letters, or test events, whose `seq` only distinguishes them. The position
   * of the sink stays: `through` is the current position. A sink that stores its position writes `through` again. A sink that reports
   * `ResumePosition.feed` stores this with it.
   */
  readonly feed?: FeedPosition | undefined;
}

/** How far a request of an operator was delivered. */
export interface FeedPosition {
  /** The name of the feed: `dead-letters`, `test`, or the name of one replay. */
  readonly feed: string;
  /** The last entry, or line of an archive, that the batch acknowledges. */
  readonly at: number;
  /** The number of messages up to `at`, without the messages that earlier batches rejected. */
  readonly sent: number;
}

/** A message that the sink rejected permanently, with the error of the sink. */
export interface Rejection {
  readonly seq: number;
  readonly code: string;
  readonly message: string;
  /** Number of attempts; undefined: 1. */
  readonly attempts?: number | undefined;
  /** Only as a reason to retry: the answer tells of an overload or of a part that is down, which passes. */
  readonly isPassing?: true | undefined;
}

export interface RetryableRejection {
  readonly seqs: readonly number[];
  /** `sink_blocked`: an operator must act. */
  readonly code: 'sink_unavailable' | 'sink_blocked';
  readonly message: string;
  readonly retryAfterMs?: number | undefined;
  /**
   * The sink accepted a later message for the same target, so an outage does not explain these failures. The loop makes a dead letter of a
   * suspect that is refused again and again (src/deliver/suspects.ts).
   */
  readonly suspects?: readonly number[] | undefined;
  /**
   * The answers about single messages, for their dead letters; undefined when no answer is about a message. Messages that are refused
   * without a suspect are sent again together with later ones.
   */
  readonly reasons?: readonly Rejection[] | undefined;
  /** The server answered about one message and accepts others: these are sent without a pause, those before it are acknowledged. */
  readonly isAtOnce?: boolean | undefined;
}

/** @param certain  messages, from the first without a break, that the receiver confirmed: acknowledged even if the batch fails */
export type OnProgress = (certain: number) => void;

export interface DeliveryResult {
  readonly rejections: readonly Rejection[];
  /** Messages that the sink did not accept and may accept later. All others are resolved: accepted, or rejected permanently. */
  readonly retryable?: RetryableRejection | undefined;
  /** Messages that the sink already held. */
  readonly duplicates?: number | undefined;
  /** Messages that the receiver dropped on purpose, by its own configuration. They count as delivered. */
  readonly dropped?: number | undefined;
  /** What the sink receives when it is opened again, stored with the acknowledgement. */
  readonly resumeNote?: string | undefined;
}

export interface ResumePoint {
  readonly journal: string;
  readonly position: Position;
  readonly resumeNote: string | undefined;
  /** The sink receives every record of its sources that is dated at this time or later. */
  readonly completeSince: Micros;
  /** The chain value of the segment that contains entry `seq`; undefined if this journal has no such entry. */
  chainAt(seq: number): Promise<Uint8Array | undefined>;
  /** Commits the acknowledgements so far with a new note, before the sink continues, for example with another file. */
  commitResumeNote(resumeNote: string): Promise<void>;
  /** Commits a loss of delivered records with a new note. The ledger no longer counts them as delivered. */
  lost(loss: SinkLoss, resumeNote: string): Promise<void>;
  /** The sink has again everything that it reported as lost. */
  restored(): Promise<void>;
  /** Reports a signed checkpoint of an archive: one a day goes to every sink with the ledger. */
  archiveCheckpoint(checkpoint: string): Promise<void>;
  /** The first line that a replay from the archive of this sink has yet to read; undefined: no replay reads it. */
  replayedFrom(): number | undefined;
  /** The operator declared that this journal continues the data of the sink: `position` replaces the position that the sink stores. */
  readonly adopt?: boolean | undefined;
}

/**
 * Sends batches. Does not retry, batch, log or measure, and does not know the journal: the loop around it does. One loop calls it, one
 * batch at a time.
 *
 * `send` resolves when the batch is stored durably, except for rejected and retryable messages. It throws WaybillError `sink_unavailable`
 * (no message was accepted), `sink_blocked` (no message was accepted, and an operator must act), `sink_refused` (the server refuses the
 * request without naming a message), or any other error: the outcome is unknown.
 */
export interface Sink extends AsyncDisposable {
  /** @param onProgress  called when the receiver confirmed messages or responded; it restarts the deadline */
  send(batch: Batch, signal: AbortSignal, onProgress?: OnProgress): Promise<DeliveryResult>;
  /** For sinks that store the position themselves: the last position that is provably stored. */
  position?(signal: AbortSignal): Promise<ResumePosition | undefined>;
  /** When `beat` is due, by the monotonic clock in ms; undefined: never. */
  readonly beatAt?: number | undefined;
  /** For a sink that must store something from time to time, also without a message. Called between batches; fails as `send` does. */
  beat?(signal: AbortSignal): Promise<void>;
  /** Only of an archive with a time-stamp authority. */
  readonly timeStamp?: TimeStampState | undefined;
  /** The state of each witness; only of an archive with witnesses. */
  readonly cosignatures?: readonly CosignatureState[] | undefined;
}

export interface ResumePosition {
  readonly position: Position;
  readonly resumeNote: string | undefined;
  /** The id of the sink that stored it; undefined: unknown, and this sink has delivered nothing yet. */
  readonly sink: string | undefined;
  /** Of the last batch, if an operator requested it. The daemon may have crashed before it stored this result. */
  readonly feed?: FeedPosition | undefined;
}

/** The sink that stored a position under `name`. Earlier releases stored no name: then it is this sink if it has a resume note. */
export function storedBy(name: string | undefined, id: string, { resumeNote }: Pick<ResumePoint, 'resumeNote'>): string | undefined {
  return name ?? (resumeNote === undefined ? undefined : id);
}

/** The time stamps of an archive (RFC 3161). */
export interface TimeStampState {
  /** Of the newest one, by the authority; undefined without any. */
  readonly newest: Micros | undefined;
  /** The error of the last attempt; undefined after a success. */
  readonly lastError: string | undefined;
}

/** The cosignatures of an archive by one witness (C2SP tlog-witness). */
export interface CosignatureState {
  /** The name of its key. */
  readonly witness: string;
  /** The time of the newest one, by the witness; undefined without any. */
  readonly newest: Micros | undefined;
  /** The error of the last attempt; undefined after a success. */
  readonly lastError: string | undefined;
}

/** Delivered records that the sink no longer has. */
export interface SinkLoss {
  /** The first and the last entry that may be lost. The range may be too wide, never too narrow. */
  readonly first: number;
  readonly last: number;
  readonly message: string;
  /** Default `file_truncated`. */
  readonly code?: 'archive_broken';
}
