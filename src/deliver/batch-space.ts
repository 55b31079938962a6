/**
 * Reusable memory for the UTF-8 bytes of messages. The garbage collector would copy waiting strings, and new buffers would be mostly
 * garbage. Two spaces alternate: for the batch in flight and for the next one.
 */
import type { Message } from '../model/sink.ts';

const startBytes = 256 * 1024;
/** The next batch does not reuse a larger block. */
const heldBytes = 4 * 1024 * 1024;

/** Copies the bytes of a message into the space of the next batch. */
export type Put = (bytes: Uint8Array) => Uint8Array;

export class BatchSpace {
  #now = new Space();
  #before = new Space();

  /** Starts another batch, and invalidates the bytes of the batch before the last. */
  next(): void {
    [this.#now, this.#before] = [this.#before, this.#now];
    this.#now.clear();
  }

  /** Replaces both spaces: a send of unknown outcome may still read from the old ones. */
  renew(): void {
    this.#now = new Space();
    this.#before = new Space();
  }

  readonly put: Put = (bytes) => this.#now.copy(bytes);

  /** Copies the message into the space of the next batch. */
  moved(message: Message): Message {
    return { ...message, bytes: this.#now.copy(message.bytes) };
  }
}

class Space {
  /** All but the last are full. */
  #blocks: Buffer[] = [];
  #used = 0;

  copy(bytes: Uint8Array): Uint8Array {
    const block = this.#blockFor(bytes.length);
    const from = this.#used;
    block.set(bytes, from);
    this.#used += bytes.length;
    return block.subarray(from, this.#used);
  }

  #blockFor(bytes: number): Buffer {
    const last = this.#blocks.at(-1);
    if (last && this.#used + bytes <= last.length) return last;
    const block = Buffer.allocUnsafeSlow(Math.max(startBytes, 2 * (last?.length ?? 0), bytes));
    this.#blocks.push(block);
    this.#used = 0;
    return block;
  }

  /** Keeps the largest block if its batch needed it: the next batch may need as much. An idle daemon frees the block of a past backlog. */
  clear(): void {
    const last = this.#blocks.at(-1);
    const needed = this.#blocks.length > 1 || this.#used * 8 >= (last?.length ?? 0);
    this.#blocks = last && last.length <= heldBytes && needed ? [last] : [];
    this.#used = 0;
  }
}
