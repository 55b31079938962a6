/** The size limit of a batch: as configured, or smaller while the receiver cannot process a full batch within the deadline. */
import type { Limit } from '../model/journal.ts';
import type { Batch } from '../model/sink.ts';

type Size = Pick<Batch, 'messages' | 'bytes'>;

export class BatchLimit implements Limit {
  readonly #max: Limit;
  readonly #deadline: number;
  #share = 1;

  /** @param deadline  ms that a send may take */
  constructor(max: Limit, deadline: number) {
    this.#max = max;
    this.#deadline = deadline;
  }

  get records(): number {
    return Math.max(1, Math.floor(this.#max.records * this.#share));
  }

  get bytes(): number {
    return Math.max(1, Math.floor(this.#max.bytes * this.#share));
  }

  /** The batch missed its deadline or was too large for the receiver: the next batch is half its size. */
  late(batch: Size): void {
    if (this.records > 1) this.#share *= Math.min(1, this.#fraction(batch)) / 2;
  }

  /** The batch was delivered in `ms`. Doubles the limit only if a full batch would then need at most half the deadline. */
  took(batch: Size, ms: number): void {
    if (this.#share < 1 && (2 * ms) / this.#fraction(batch) <= this.#deadline / 2) this.#share = Math.min(1, 2 * this.#share);
  }

  /** The share of the present limit that the batch uses. */
  #fraction({ messages, bytes }: Size): number {
    return Math.max(messages.length / this.records, bytes / this.bytes);
  }
}
