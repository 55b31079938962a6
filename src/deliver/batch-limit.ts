/** How much a batch may hold: what is configured, and less for a receiver that is too slow to take that within its deadline. */
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

  /** A batch was not taken in time, or was too much for the receiver: the next has half of it. */
  late(batch: Size): void {
    if (this.records > 1) this.#share *= Math.min(1, this.#fraction(batch)) / 2;
  }

  /** A batch was taken in so many ms. The next may have twice as much where that should take half the deadline at most: so none is late again and again. */
  took(batch: Size, ms: number): void {
    if (this.#share < 1 && (2 * ms) / this.#fraction(batch) <= this.#deadline / 2) this.#share = Math.min(1, 2 * this.#share);
  }

  /** Of what a batch may hold now. */
  #fraction({ messages, bytes }: Size): number {
    return Math.max(messages.length / this.records, bytes / this.bytes);
  }
}
