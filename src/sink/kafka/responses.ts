/**
 * Reads the announced lengths of a broker's responses: four bytes before each (Kafka protocol, "Protocol Primitive Types" and "Common
 * Request and Response Structure"). The client holds a response in memory until it is complete.
 */

/** More than any expected response: a fetch returns at most 10 MiB. */
export const maxAnswerBytes = 64 * 1024 * 1024;

export class AnswerLengths {
  readonly #head = Buffer.alloc(4);
  /** Received bytes of the length. */
  #known = 0;
  /** Missing bytes of the response. */
  #left = 0;

  /** @returns the first announced length above `maxAnswerBytes`; the bytes after it are not read */
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
