/**
 * Limits the bytes of large bodies in memory. A body without space waits unread, in the order of
 * arrival, until another one is released. A single body is always admitted.
 */
export class Gate {
  readonly #bytesMax: number;
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = [];
  #inside = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Resolves when there is space, with a function that releases it. Rejects with the reason of an
   * aborted signal.
   */
  async enter(bytes: number, signal: AbortSignal): Promise<Disposable> {
    if (this.#waiting.length > 0 || !this.#hasRoomFor(bytes)) await this.#wait(bytes, signal);
    else this.#inside += bytes;
    let isInside = true;
    return {
      [Symbol.dispose]: () => {
        if (!isInside) return;
        isInside = false;
        this.#inside -= bytes;
        this.#admit();
      },
    };
  }

  #wait(bytes: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const gone = (): void => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1);
        reject(signal.reason as Error);
        this.#admit();
      };
      const waiter = {
        bytes,
        enter: () => {
          signal.removeEventListener('abort', gone);
          resolve();
        },
      };
      this.#waiting.push(waiter);
      signal.addEventListener('abort', gone, { once: true });
    });
  }

  #hasRoomFor(bytes: number): boolean {
    return this.#inside === 0 || this.#inside + bytes <= this.#bytesMax;
  }

  #admit(): void {
    for (let next = this.#waiting[0]; next && this.#hasRoomFor(next.bytes); next = this.#waiting[0]) {
      this.#waiting.shift();
      this.#inside += next.bytes;
      next.enter();
    }
  }
}
