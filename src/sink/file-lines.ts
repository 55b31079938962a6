/**
 * The bytes of a batch, one message a line, put together in the same place each time: a batch is a megabyte or more, and a new buffer for each
 * would be mostly garbage.
 */
import type { Message } from '../model.ts';

const lineBreak = 0x0a;
/** UTF-8 needs at most three bytes for a UTF-16 code unit. */
const bytesMost = 3;

export class LineBuffer {
  #bytes = Buffer.allocUnsafeSlow(256 * 1024);

  /** The lines of these messages; valid until the next call. */
  lines(messages: readonly Message[]): Buffer {
    let at = 0;
    for (const { text } of messages) {
      this.#reserve(at, text.length * bytesMost + 1);
      at += this.#bytes.write(text, at, 'utf8');
      this.#bytes[at] = lineBreak;
      at += 1;
    }
    return this.#bytes.subarray(0, at);
  }

  #reserve(used: number, more: number): void {
    if (used + more <= this.#bytes.length) return;
    const wider = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, used + more));
    this.#bytes.copy(wider, 0, 0, used);
    this.#bytes = wider;
  }
}
