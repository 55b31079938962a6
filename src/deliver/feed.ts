/**
 * A feed: messages for one sink, in the order of a position of its own. The journal is the main feed; replays, retries of dead letters and
 * test events are the others, and move only their own positions. `Delivery` sends one batch of a feed at a time.
 */
import type { DeliverJournal, Limit } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Batch, DeliveryResult, Message, Rejection } from '../model/sink.ts';
import type { Clock } from '../model/time.ts';
import type { Acknowledger } from './acknowledger.ts';
import type { Prepared } from './batcher.ts';
import type { Pipeline } from './pipeline.ts';
import type { Suspects } from './suspects.ts';

export interface FeedParts {
  readonly id: string;
  readonly journal: DeliverJournal;
  readonly pipeline: Pipeline;
  readonly limit: Limit;
  readonly acknowledger: Acknowledger;
  readonly clock: Clock;
}

export interface Feed {
  /** `request`: each message is sent once, because a command waits for the answer. */
  readonly kind: 'main' | 'replay' | 'request';
  /** Of its messages: another feed has other entries, or lines of an archive. */
  readonly suspects: Suspects;
  /** When `next` has something to do, by the monotonic clock in ms; Infinity: not before it wakes the loop. */
  readonly dueAt: number;
  /** Prepares the next batch, or begins to. */
  fill(): Promise<void>;
  /** @returns the next batch; undefined: there is nothing to send now */
  next(stop: AbortSignal): Promise<Prepared | undefined>;
  /** The batch as the sink receives it. @param part  with the position of this feed */
  addressed(part: Batch): Batch;
  /** The sink may have received the messages up to this entry. Absent: each batch is uncertain. */
  maybeSent?(through: number): void;
  /**
   * Commits that each message of the last batch up to `through` was delivered, or is one of `rejections`.
   * @param delivered  undefined: the sink accepted nothing new
   * @param left  messages up to `through` that have no answer; only of a request
   */
  acknowledge(
    through: Position,
    delivered: Pick<DeliveryResult, 'resumeNote'> | undefined,
    rejections: readonly Rejection[],
    stop: AbortSignal,
    left?: readonly Message[],
  ): Promise<void>;
}
