/**
 * The lengths that the answers of a broker announce, read from its bytes as they come: each answer is a length of four bytes and so many bytes
 * (Kafka protocol, "Protocol Primitive Types" and "Common Request and Response Structure"). The client keeps an answer until it is whole.
 */

/** More than any answer to us: a fetch brings 10 MiB at most. */
export const maxAnswerBytes = 64 * 1024 * 1024;

export class AnswerLengths {
  readonly #head = Buffer.alloc(4);
  /** Bytes of the length that are there. */
  #known = 0;
  /** Bytes of the answer that are still to come. */
  #left = 0;

  /** Reads on. @returns the first length above `answerMost`; what comes behind it is not looked at */
  read(bytes: Buffer): number | undefined {
    for (let at = 0; at < bytes.length;) {
      if (this.#left > 0) {
        const part = Math.min(this.#left, bytes.length - at);
        this.#left -= part;
        at += part;
        continue;
      }
      const copied = bytes.copy(this.#head, this.#known, at, at + 4 - this.#known);
      this.#known += copied;
      at += copied;
      if (this.#known < 4) break;
      this.#known = 0;
      this.#left = this.#head.readUInt32BE();
      if (this.#left > maxAnswerBytes) return this.#left;
    }
    return undefined;
  }
}
