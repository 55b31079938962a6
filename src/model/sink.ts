/** The boundary to a sink: batches of messages in, a delivery result out. */
import type { Position } from './ledger.ts';
import type { Micros } from './time.ts';

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
  /** UTF-8, one line without its break; valid until the send of its batch is resolved. */
  readonly bytes: Uint8Array;
}

export interface Batch {
  readonly messages: readonly Message[];
  /** The position of the last entry that this batch acknowledges (it may lie beyond the last message: entries not for this sink). */
  readonly through: Position;
  /** An earlier attempt at some of these messages may have been taken. */
  readonly uncertain: boolean;
  readonly bytes: number;
  /**
   * Set where a person has the sink get something on demand: a dead letter once more, a range of the journal, or events that are in no journal (their
   * `seq` only tells them apart). The sink's position stays: `through` is the one that it has, and a sink that keeps it writes it again.
   */
  readonly onDemand?: 'retry' | 'replay' | 'test' | undefined;
}

/** A message that the sink refused for good, with its own words. */
export interface Rejection {
  readonly seq: number;
  readonly code: string;
  readonly message: string;
  /** How often it was sent; once, where that is not said. */
  readonly attempts?: number | undefined;
}

export interface RetryableRejection {
  readonly seqs: readonly number[];
  /** `sink_blocked`: a person must act. */
  readonly code: 'sink_unavailable' | 'sink_blocked';
  /** The sink's own words. */
  readonly message: string;
  readonly retryAfterMs?: number | undefined;
  /** A message counts as rejected after so many attempts; undefined: never. */
  readonly attempts?: number | undefined;
  /** Attempts count only for these of `seqs`: a later message was accepted, so no outage explains the failure. Undefined: all. */
  readonly suspects?: readonly number[] | undefined;
  /** The rejections to use for single messages that exhaust their attempts; others get `message`. */
  readonly reasons?: readonly Rejection[] | undefined;
  /** The server has answered about a single message, and takes: the others are sent at once, and what comes before them is acknowledged. */
  readonly isAtOnce?: boolean | undefined;
}

/** `certain`: how many messages, from the first on without a break, the receiver has said to have. They are acknowledged, whatever becomes of the others. */
export type GoesOn = (certain: number) => void;

export interface DeliveryResult {
  readonly rejections: readonly Rejection[];
  /** Messages that were not taken, and may be later; all others of the batch are resolved. */
  readonly retryable?: RetryableRejection | undefined;
  /** How many of the messages the sink had already. */
  readonly duplicates?: number | undefined;
  /** What the sink wants to find again when it is opened; kept with the acknowledgement. */
  readonly resumeNote?: string | undefined;
}

/** What a sink finds when it is opened: the last position that it took, and its note. */
export interface ResumePoint {
  readonly journal: string;
  readonly position: Position;
  readonly resumeNote: string | undefined;
  /** The chain of the segment that holds `seq`, or undefined when this journal has no such position. */
  chainAt(seq: number): Promise<Uint8Array | undefined>;
  /** Commits what is acknowledged so far with a new note, before the sink goes on (file: the begin of another file). */
  commitResumeNote(resumeNote: string): Promise<void>;
  /** Reports that delivered records are gone, and commits it with a new note: the ledger no longer counts them as delivered. */
  lost(loss: SinkLoss, resumeNote: string): Promise<void>;
  /** A person has said that this journal continues what the sink holds: `position` takes the place of whatever position it keeps. */
  readonly adopt?: boolean | undefined;
}

/**
 * Sends. Does not retry, batch, log, measure, or know the journal: the loop around it does. Called by one loop, one batch at a time.
 *
 * `send` resolves when the batch is durably taken, except the rejected and those to be sent again. It throws WaybillError `sink_unavailable` (nothing of these items was
 * taken), `sink_blocked` (the same, and a person must act), `sink_refused` (the server refuses the request without naming an item), or
 * anything else: the outcome is unknown.
 */
export interface Sink extends AsyncDisposable {
  /** @param goesOn  told when the receiver has taken some more of the batch, or answered: the deadline begins anew */
  send(batch: Batch, signal: AbortSignal, goesOn?: GoesOn): Promise<DeliveryResult>;
  /** Only sinks that keep our progress on their side: the last position that they find to be true. */
  position?(signal: AbortSignal): Promise<ResumePosition | undefined>;
}

/** Where a sink that keeps our progress is, when it is opened. */
export interface ResumePosition {
  readonly position: Position;
  readonly resumeNote: string | undefined;
  /** The entry of a dead letter that it accepted on demand, last of all: whoever sent it may not know. */
  readonly retried?: number | undefined;
}

/** Delivered records that a sink does not have any more. */
export interface SinkLoss {
  /** The first and the last entry that may be lost; more than those that are is safe. */
  readonly first: number;
  readonly last: number;
  /** What happened, for a person. */
  readonly message: string;
}
