/**
 * How many bytes of large bodies may be in memory at a time. A body for which there is no room waits on the way, in the order of coming: the
 * service does not read it until another one is done with. What one body needs alone is always let in.
 */
export class Gate {
  readonly #bytesMax: number;
  readonly #waiting: { readonly bytes: number; readonly enter: () => void }[] = [];
  #inside = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Resolves when there is room; what it gives back leaves the room. Rejects with the reason of a signal that is aborted while it waits. */
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
