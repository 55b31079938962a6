/**
 * Where the messages of a batch are put as UTF-8. A text of a few kilobytes that waits until its batch is taken would be copied by each collection
 * of garbage in between, and a new buffer for each batch would be mostly garbage: two batches, one made while the other is on its way, take turns
 * in the same places.
 */
import type { Message } from '../model/sink.ts';

const startBytes = 256 * 1024;
/** A batch that was larger than this does not hold its memory for ever. */
const heldBytes = 4 * 1024 * 1024;
/** UTF-8 needs at most three bytes for a UTF-16 code unit. */
const maxBytes = 3;

/** Writes a text into the space of the batch that is being made. */
export type Put = (text: string) => Uint8Array;

export class BatchSpace {
  #now = new Space();
  #before = new Space();

  /** Begins a batch: what was put for the batch before the last is not valid any more. */
  next(): void {
    [this.#now, this.#before] = [this.#before, this.#now];
    this.#now.clear();
  }

  /** Leaves both places to whoever still reads from them, as a send may whose outcome is unknown. */
  renew(): void {
    this.#now = new Space();
    this.#before = new Space();
  }

  readonly put: Put = (text) => this.#now.put(text);

  /** The same message, in the space of the batch that is being made. */
  moved(message: Message): Message {
    return { ...message, bytes: this.#now.copy(message.bytes) };
  }
}

class Space {
  /** The last has room; those before it are full. */
  #blocks: Buffer[] = [];
  #used = 0;

  put(text: string): Uint8Array {
    const block = this.#blockFor(text.length * maxBytes);
    const from = this.#used;
    this.#used += block.write(text, from, 'utf8');
    return block.subarray(from, this.#used);
  }

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

  /** Keeps the largest block: the next batch will need as much. */
  clear(): void {
    const last = this.#blocks.at(-1);
    this.#blocks = last && last.length <= heldBytes ? [last] : [];
    this.#used = 0;
  }
}
