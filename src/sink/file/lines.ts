/** Joins messages to lines in one reused buffer: a new one for each batch, a megabyte or more, would cause garbage collection. */
import type { Message } from '../../model/sink.ts';

const lineBreak = 0x0a;
const startBytes = 256 * 1024;

export class LineBuffer {
  #bytes = Buffer.allocUnsafeSlow(startBytes);

  /** The lines of these messages, after a line break if the file ends within a line. Valid until the next call. */
  lines(messages: readonly Message[], isWithinLine: boolean): Buffer {
    const length = messages.reduce((sum, { bytes }) => sum + bytes.length + 1, isWithinLine ? 1 : 0);
    const { length: kept } = this.#bytes;
    if (length > kept) this.#bytes = Buffer.allocUnsafeSlow(Math.max(kept * 2, length));
    // Frees the buffer of a backlog when batches are small again.
    else if (length * 8 < kept && kept > startBytes) this.#bytes = Buffer.allocUnsafeSlow(Math.max(startBytes, length));
    let at = isWithinLine ? this.#bytes.writeUInt8(lineBreak, 0) : 0;
    for (const { bytes } of messages) {
      this.#bytes.set(bytes, at);
      at += bytes.length;
      this.#bytes[at] = lineBreak;
      at += 1;
    }
    return this.#bytes.subarray(0, at);
  }
}
