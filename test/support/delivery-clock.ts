/**
 * A clock that stands still until a test moves it. Between two timers, all code that is ready to
 * run has run, so a test sees the waiting program at an exact time.
 */
import type { Clock } from '../../src/model/time.ts';

interface Timer {
  readonly at: number;
  readonly fire: () => void;
}

export class DeliveryClock implements Clock {
  #ms = 0;
  readonly #timers = new Set<Timer>();

  now(): number {
    return Date.UTC(2026, 10, 20, 12) + this.#ms;
  }

  monotonic(): number {
    return this.#ms;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      signal.throwIfAborted();
      const abort = (): void => {
        this.#timers.delete(timer);
        reject(signal.reason as Error);
      };
      const timer: Timer = {
        at: this.#ms + Math.max(0, ms),
        fire: () => {
          this.#timers.delete(timer);
          signal.removeEventListener('abort', abort);
          resolve();
        },
      };
      this.#timers.add(timer);
      signal.addEventListener('abort', abort, { once: true });
    });
  }

  /** Simulates work of this duration: nothing else runs, and timers due in that time fire late. */
  spend(ms: number): void {
    this.#ms += ms;
  }

  /** Advances the time from timer to timer. */
  async advance(ms: number): Promise<void> {
    await this.until(() => false, ms, false);
  }

  /**
   * Advances the time from timer to timer until the condition holds; throws if it does not within
   * `mostMs`.
   */
  async until(condition: () => boolean, mostMs = 3_600_000, isExpected = true): Promise<void> {
    const end = this.#ms + mostMs;
    await quiet();
    for (let next = this.#next(end); next && !condition(); next = this.#next(end)) {
      this.#ms = Math.max(this.#ms, next.at);
      next.fire();
      await quiet();
    }
    if (condition()) return;
    this.#ms = Math.max(this.#ms, end);
    if (isExpected) throw new Error(`${String(condition)} did not become true within ${mostMs} ms`);
  }

  #next(end: number): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) if (timer.at <= end && (!first || timer.at < first.at)) first = timer;
    return first;
  }
}

/** Resolves when all code that can run without a timer has run. */
export async function quiet(): Promise<void> {
  for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve));
}
