/**
 * A clock for tests: it stands still until all sleep (automatic) or the test advances it (manual).
 * Sleepers wake one at a time in the order in which they are due, each after the event loop is
 * idle, so every run is the same.
 */
import { setImmediate } from 'node:timers/promises';
import type { Clock } from '../../src/model/time.ts';

interface Sleeper {
  readonly due: number;
  readonly wake: () => void;
}

export class VirtualClock implements Clock {
  /** Wall clock minus monotonic clock, ms: a test may make it jump. */
  wall: number;
  #at = 0;
  #sleepers: Sleeper[] = [];
  #running = false;
  readonly #automatic: boolean;

  constructor(wallMs: number, mode: 'automatic' | 'manual' = 'automatic') {
    this.wall = wallMs;
    this.#automatic = mode === 'automatic';
  }

  now(): number {
    return this.wall + this.#at;
  }

  monotonic(): number {
    return this.#at;
  }

  get sleeping(): number {
    return this.#sleepers.length;
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const sleeper: Sleeper = { due: this.#at + Math.max(0, ms), wake: () => finish(resolve) };
      const abort = (): void => finish(() => reject(signal.reason as Error));
      const finish = (settle: () => void): void => {
        signal.removeEventListener('abort', abort);
        this.#sleepers = this.#sleepers.filter((each) => each !== sleeper);
        settle();
      };
      signal.addEventListener('abort', abort, { once: true });
      this.#sleepers.push(sleeper);
      if (this.#automatic) void this.#run();
    });
  }

  /** Advances the time by hand, and wakes all sleepers due by then. */
  async advance(ms: number): Promise<void> {
    const end = this.#at + ms;
    await setImmediate();
    while (this.#wakeNext(end)) await setImmediate();
    this.#at = end;
  }

  /** Advances the time by hand, and wakes nobody. */
  skip(ms: number): void {
    this.#at += ms;
  }

  async #run(): Promise<void> {
    if (this.#running) return;
    this.#running = true;
    do await setImmediate();
    while (this.#wakeNext(Infinity));
    this.#running = false;
  }

  #wakeNext(until: number): boolean {
    let next: Sleeper | undefined;
    for (const sleeper of this.#sleepers) if (sleeper.due <= until && (next === undefined || sleeper.due < next.due)) next = sleeper;
    if (next === undefined) return false;
    this.#at = Math.max(this.#at, next.due);
    next.wake();
    return true;
  }
}
