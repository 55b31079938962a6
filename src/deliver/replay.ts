/** A replay of a range of the journal to one sink: its batches and its progress. It does not send. */
import type { DeliverJournal, Entry, Limit, ReplayProgress, ReplayRange, Resent } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Batch } from '../model/sink.ts';
import { Batches, type Prepared } from './batcher.ts';
import type { Pipeline } from './pipeline.ts';

interface ReplayParts {
  readonly journal: Pick<DeliverJournal, 'readRange'>;
  readonly pipeline: Pipeline;
  readonly limit: Limit;
  readonly range: ReplayRange;
  /** Approximate number of entries. */
  readonly expected: number;
  /** Dead letters are skipped: a separate command retries them. */
  readonly deadLetters: ReadonlySet<number>;
  /** Wall clock, ms. */
  readonly began: number;
}

export class Replay {
  readonly #parts: ReplayParts;
  readonly #batches: Batches;
  /** The first entry of the part that was replayed without a gap: earlier entries were pruned. */
  #from: number;
  /** The last entry replayed. */
  #at: number;
  #passed = 0;
  #sent = 0;
  #rejected = 0;
  #ended: number | undefined;

  constructor(parts: ReplayParts) {
    const { pipeline, limit, range, deadLetters } = parts;
    this.#parts = parts;
    this.#from = range.first;
    this.#at = range.first - 1;
    const isRequested = (entry: Entry): boolean => this.#isInTime(entry) && !deadLetters.has(entry.seq);
    const requested: Pipeline = (entry, put) => (isRequested(entry) ? pipeline(entry, put) : undefined);
    this.#batches = new Batches((after, most) => this.#read(after, most), requested, limit, this.#at);
  }

  get isRunning(): boolean {
    return this.#ended === undefined;
  }

  /** @returns the next batch, or the same one until it is acknowledged; undefined when the range is complete */
  async next(): Promise<Prepared | undefined> {
    this.#batches.restart(this.#at);
    await this.#batches.fill();
    return this.#batches.take();
  }

  /** Carries the sink's present position, so that a replay does not move it. */
  batchOf({ messages, bytes }: Prepared, present: Position): Batch {
    return { messages, bytes, /* mutant: replay-position */ through: present, uncertain: true, onDemand: 'replay' };
  }

  acknowledged({ messages, through, count }: Prepared, rejected: number): void {
    this.#at = through.seq;
    this.#passed += count;
    // An entry that could not be encoded is rejected without a message.
    this.#sent += Math.max(0, messages.length - rejected);
    this.#rejected += rejected;
  }

  end(now: number): void {
    this.#ended = now;
  }

  /** The range that the journal records as sent again. */
  resent(): Resent {
    const { range, began } = this.#parts;
    return { ...range, first: this.#from, began: began * 1000 };
  }

  progress(): ReplayProgress {
    const { range, expected, began } = this.#parts;
    return {
      ...range,
      state: this.isRunning ? 'running' : 'done',
      ...{ at: this.#at, passed: this.#passed, expected, sent: this.#sent, rejected: this.#rejected, began, ended: this.#ended },
    };
  }

  /** Skips entries that were pruned since the replay began. */
  async #read(given: number, limit: Limit): Promise<readonly Entry[]> {
    const { journal, range } = this.#parts;
    const { after, entries } = await journal.readRange(given, range, limit);
    if (after > given) this.#from = after + 1;
    return entries;
  }

  #isInTime(entry: Entry): boolean {
    const { times } = this.#parts.range;
    if (!times) return true;
    const { time } = entry;
    return time !== undefined && times.from <= time && time < times.to;
  }
}
