/**
 * A clock that only the test advances; the wall clock can be set separately from the monotonic one.
 */
import type { Clock } from '../../../src/model/time.ts';

export class VirtualClock implements Clock {
  #monotonic = 1_000;
  #wall: number;
  #sleepers: { readonly at: number; readonly wake: () => void }[] = [];

  constructor(wall = Date.UTC(2026, 10, 21, 12)) {
    this.#wall = wall;
  }

  now(): number {
    return this.#wall;
  }

  monotonic(): number {
    return this.#monotonic;
  }

  /** Moves only the wall clock. */
  jump(ms: number): void {
    this.#wall += ms;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const sleeper = { at: this.#monotonic + ms, wake: resolve };
      this.#sleepers.push(sleeper);
      signal.addEventListener('abort', () => {
        this.#sleepers = this.#sleepers.filter((each) => each !== sleeper);
        reject(signal.reason as Error);
      });
    });
  }

  /** Advances the time, and wakes sleepers in the order in which they are due. */
  async pass(ms: number): Promise<void> {
    const until = this.#monotonic + ms;
    for (;;) {
      await settled();
      const next = this.#sleepers.filter(({ at }) => at <= until).sort((one, other) => one.at - other.at)[0];
      if (next === undefined) break;
      this.#sleepers = this.#sleepers.filter((each) => each !== next);
      this.#advance(next.at);
      next.wake();
    }
    this.#advance(until);
    await settled();
  }

  /** Advances the time without waking sleepers. */
  advance(ms: number): void {
    this.#advance(this.#monotonic + ms);
  }

  #advance(to: number): void {
    this.#wall += to - this.#monotonic;
    this.#monotonic = to;
  }
}

async function settled(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}
