/**
 * The time of a simulation, and the order of all events. Time stands still while anything can run,
 * then jumps to the next timer; timers due together fire in the order in which they were set.
 * Events are hashed: two runs of one seed must agree.
 */
import type { Clock, Micros } from '../../src/model/time.ts';

interface Timer {
  readonly due: number;
  readonly order: number;
  fire: (() => void) | undefined;
}

export class World {
  /** True time, ms since 1970: the clock of the service. */
  ms: number;
  /** The wall clock of the machine minus true time, ms: it may be wrong, and jump. */
  skew = 0;
  steps = 0;
  /** Event lines, if requested. */
  readonly trace: string[] | undefined;
  #order = 0;
  #heap: Timer[] = [];
  #hash = [0x811c9dc5, 0x01234567] as [number, number];

  constructor(ms: number, traced: boolean) {
    this.ms = ms;
    this.trace = traced ? [] : undefined;
  }

  /** True time in µs. */
  get now(): Micros {
    return Math.floor(this.ms * 1000);
  }

  /** Adds an event that another run of this seed must repeat. */
  note(what: string): void {
    let [one, other] = this.#hash;
    const line = `${this.ms.toFixed(3)} ${what}`;
    for (let i = 0; i < line.length; i += 1) {
      const code = line.charCodeAt(i);
      one = Math.imul(one ^ code, 0x01000193);
      other = Math.imul(other ^ code, 0x85ebca6b) + 0x9e37 + (other >>> 13);
    }
    this.#hash = [one, other];
    this.trace?.push(line);
  }

  get hash(): string {
    return this.#hash.map((half) => (half >>> 0).toString(16).padStart(8, '0')).join('');
  }

  /** Calls `fire` after `ms`; the returned function cancels it. */
  after(ms: number, fire: () => void): () => void {
    const timer: Timer = { due: this.ms + Math.max(0, ms), order: (this.#order += 1), fire };
    this.#push(timer);
    return () => (timer.fire = undefined);
  }

  /** Lets time pass until the condition holds (true) or the time is over (false). */
  async run(until: number, condition: () => boolean): Promise<boolean> {
    for (;;) {
      await quiet();
      if (condition()) return true;
      const timer = this.#heap[0];
      if (!timer || timer.due > until) {
        this.ms = Math.max(this.ms, until);
        return false;
      }
      this.#pop();
      if (!timer.fire) continue;
      this.ms = Math.max(this.ms, timer.due);
      timer.fire();
    }
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(timer);
    for (let parent = (at - 1) >> 1; at > 0; parent = (at - 1) >> 1) {
      const above = heap[parent];
      if (!above || !before(timer, above)) break;
      heap[at] = above;
      heap[parent] = timer;
      at = parent;
    }
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    heap[0] = last;
    for (let at = 0; ;) {
      const [left, right] = [heap[2 * at + 1], heap[2 * at + 2]];
      const [child, index] = right && left && before(right, left) ? [right, 2 * at + 2] : [left, 2 * at + 1];
      if (!child || !before(child, last)) break;
      heap[at] = child;
      heap[index] = last;
      at = index;
    }
  }
}

/** The clock of one life of the daemon. After that life its sleepers never wake. */
export class LifeClock implements Clock {
  readonly #world: World;
  readonly #born: number;
  readonly #isOver: () => boolean;
  readonly #sleepers = new Set<() => void>();
  #going: PromiseWithResolvers<undefined> | undefined;

  constructor(world: World, isOver: () => boolean) {
    this.#world = world;
    this.#born = world.ms;
    this.#isOver = isOver;
  }

  now(): number {
    return Math.floor(this.#world.ms + this.#world.skew);
  }

  monotonic(): number {
    return this.#world.ms - this.#born;
  }

  /** The process is stopped. Its clock goes on, but nothing of it runs. */
  stop(): void {
    this.#going ??= Promise.withResolvers();
  }

  go(): void {
    this.#going?.resolve(undefined);
    this.#going = undefined;
  }

  get isStopped(): boolean {
    return this.#going !== undefined;
  }

  /** Resolves when the process goes on, each at its own moment, as its timers and answers do; undefined while it is not stopped. */
  get going(): Promise<void> | undefined {
    return this.#going?.promise.then(() => new Promise((resolve) => void this.#world.after(0, () => resolve())));
  }

  sleep(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#isOver()) return;
      if (signal.aborted) {
        reject(signal.reason as Error);
        return;
      }
      const forget = (): void => {
        this.#sleepers.delete(forget);
        cancel();
        signal.removeEventListener('abort', abort);
      };
      const abort = (): void => {
        forget();
        if (!this.#isOver()) reject(signal.reason as Error);
      };
      const cancel = this.#world.after(ms, () => {
        forget();
        const wake = (): void => {
          if (!this.#isOver()) resolve();
        };
        const { going } = this;
        if (going) void going.then(wake);
        else wake();
      });
      signal.addEventListener('abort', abort, { once: true });
      this.#sleepers.add(forget);
    });
  }

  /**
   * Removes the abort listeners of sleepers when the life is over: a signal keeps its listeners,
   * and all they refer to, in memory.
   */
  leave(): void {
    for (const forget of this.#sleepers) forget();
  }
}

/** Resolves when all code that can run without a timer has run. */
function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function before(one: Timer, other: Timer): boolean {
  return one.due < other.due || (one.due === other.due && one.order < other.order);
}
