/** The entries of the journal after the position of the sink. */
import type { Batch } from '../model/sink.ts';
import { Batches, maxUncertain, type Prepared } from './batcher.ts';
import type { Feed, FeedParts } from './feed.ts';
import { Suspects } from './suspects.ts';

interface MainFeedParts extends FeedParts {
  /** ms that a batch may wait for more messages. */
  readonly maxWait: number;
}

export class MainFeed implements Feed {
  readonly kind = 'main';
  readonly suspects: Suspects;
  readonly #parts: MainFeedParts;
  readonly #batches: Batches;
  /** An attempt without an answer may have delivered the messages up to this entry. */
  #uncertain: number;
  /** When the next batch got its first message, by the monotonic clock. */
  #since: number | undefined;
  /** When the entries of the next batch were read. */
  #read: Prepared['read'];
  #sending: Prepared | undefined;

  constructor(parts: MainFeedParts) {
    this.#parts = parts;
    this.suspects = new Suspects(parts.clock);
    const { journal, pipeline, limit, clock, acknowledger } = parts;
    this.#batches = new Batches((after, max) => journal.read(after, max), pipeline, limit, clock, acknowledger.acknowledged);
    this.#uncertain = /* mutant: uncertain-after-start */ acknowledger.acknowledged + maxUncertain;
  }

  /** True when every entry of the journal was delivered, or is not for this sink. */
  get isIdle(): boolean {
    return !this.#batches.isFull && !this.#batches.hasMessages;
  }

  /** A batch that is not full waits for more messages. */
  get dueAt(): number {
    if (this.#batches.isFull) return -Infinity;
    return this.#since === undefined ? Infinity : this.#since + this.#parts.maxWait;
  }

  /** Call after the sink was opened. */
  restart(acknowledged: number): void {
    this.#batches.restart(acknowledged);
    this.#since = undefined;
    this.#read = undefined;
  }

  async fill(): Promise<void> {
    const { clock } = this.#parts;
    const from = this.#read?.from ?? clock.now();
    await this.#batches.fill();
    if (!this.#batches.hasMessages) return;
    this.#since ??= clock.monotonic();
    this.#read = { from, to: clock.now() };
  }

  async next(stop: AbortSignal): Promise<Prepared | undefined> {
    if (!this.#batches.hasMessages) {
      this.passOver();
      // A long range of entries for other sinks must not block the event loop.
      await this.#parts.clock.sleep(0, stop);
      return undefined;
    }
    const taken = this.#batches.take();
    this.#sending = taken && { ...taken, read: this.#read };
    this.#since = undefined;
    this.#read = undefined;
    return this.#sending;
  }

  /** Acknowledges the entries that were read: none is for this sink. */
  passOver(): void {
    const passed = this.#batches.take();
    // mutant: pass-over
    if (!passed) return;
    this.#parts.acknowledger.passOver(passed.through.seq);
  }

  addressed(part: Batch): Batch {
    return { ...part, uncertain: part.uncertain || this.#isUncertain(part) };
  }

  maybeSent(through: number): void {
    this.#uncertain = Math.max(this.#uncertain, through);
  }

  async acknowledge(...[through, delivered, rejections, stop]: Parameters<Feed['acknowledge']>): Promise<void> {
    const { acknowledger } = this.#parts;
    const acknowledgement = { acknowledged: through.seq, delivered: delivered && { position: through, resumeNote: delivered.resumeNote } };
    await acknowledger.acknowledge(acknowledgement, this.#sending?.entries, rejections, stop);
  }

  #isUncertain({ messages }: Batch): boolean {
    if ((messages[0]?.seq ?? Infinity) <= this.#uncertain) return true;
    const { reconcile } = this.#parts.journal.sinkProgress(this.#parts.id).orders;
    if (!reconcile) return false;
    // A record without a readable time has the time of its receipt.
    return messages.some(
      ({ seq, time }) => (reconcile.from <= time && time < reconcile.to) || time === this.#sending?.entries.get(seq)?.received,
    );
  }
}
