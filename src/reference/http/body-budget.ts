/**
 * Limits the bytes of large bodies in memory. A body without space waits unread, in the order of
 * arrival, until another one is released. A single body is always admitted.
 */
export class BodyBudget {
  readonly #bytesMax: number;
  readonly #waiting: { readonly bytes: number; readonly admit: () => void }[] = [];
  #reserved = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Resolves when there is space, with a function that releases it. Rejects with the reason of an
   * aborted signal.
   */
  async reserve(bytes: number, signal: AbortSignal): Promise<Disposable> {
    if (this.#waiting.length > 0 || !this.#hasSpaceFor(bytes)) await this.#wait(bytes, signal);
    else this.#reserved += bytes;
    let isReserved = true;
    return {
      [Symbol.dispose]: () => {
        if (!isReserved) return;
        isReserved = false;
        this.#reserved -= bytes;
        this.#admit();
      },
    };
  }

  #wait(bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const aborted = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal.reason as Error);
        this.#admit();
      };
      const waiter = {
        bytes,
        admit: () => {
          signal.removeEventListener('abort', aborted);
          resolve();
        },
      };
      this.#waiting.push(waiter);
      signal.addEventListener('abort', aborted, { once: true });
    });
  }

  #hasSpaceFor(bytes: number): boolean {
    return this.#reserved === 0 || this.#reserved + bytes <= this.#bytesMax;
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next && this.#hasSpaceFor(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#reserved += next.bytes;
      next.admit();
    }
  }
}
