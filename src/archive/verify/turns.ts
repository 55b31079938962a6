/**
 * Lets a signal end long computations: JavaScript receives signals between two turns of the event
 * loop only.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** Verified in a tenth of a second. */
const bytesEach = 4 * 1024 * 1024;

export class Turns {
  readonly #signal: AbortSignal | undefined;
  #bytes = 0;

  constructor(signal?: AbortSignal) {
    this.#signal = signal;
  }

  /**
   * @param bytes  worked on since the last call
   * @returns true after every 4 MiB: the caller then awaits `next`
   */
  isDue(bytes: number): boolean {
    this.#bytes += bytes;
    return this.#bytes >= bytesEach;
  }

  /**
   * Waits for the next turn of the event loop.
   * @throws the reason of the signal when it is aborted
   */
  async next(): Promise<void> {
    this.#bytes = 0;
    await nextTurn();
    this.#signal?.throwIfAborted();
  }
}
