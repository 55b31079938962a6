/**
 * How wide the next window of a range is wished for: as records are dense, and no wider than the service answers. History may be denser than the
 * present, so each range has its own.
 */
import type { Micros } from '../model/time.ts';
import { nextWidth, secondMicros, wholeSecond } from './windows.ts';

/** A bound that was met is tried again after so many windows, and after twice as many each time it is met once more. */
const windowsFirst = 8;
const maxWindows = 1_024;

export class Widths {
  #width: Micros = Number.MAX_SAFE_INTEGER;
  /** The narrowest that the service has refused or not answered in time. */
  readonly #refused = new Bound();
  /** With so many records a window was found too crowded to be proven. That may have been the hour's fault and not the crowd's. */
  readonly #crowded = new Bound();

  /** The width to ask for, at most `widest`. */
  requestWidth(widest: Micros): Micros {
    const width = Math.min(this.#width, widest);
    return this.#refused.forbids(width) ? Math.max(secondMicros, wholeSecond(this.#refused.least / 2)) : width;
  }

  /** A window of that width was refused, and narrower ones are answered. */
  refused(width: Micros): void {
    this.#refused.met(width);
  }

  crowded(records: number): void {
    this.#crowded.met(records);
  }

  /**
   * A window was read that was to have a width, and held so many records.
   * @param width  what it had: it may have ended earlier, at an edge of the clock
   */
  read(asked: Micros, width: Micros, records: number): void {
    if (width >= this.#refused.least) this.#refused.lift();
    this.#refused.passed();
    this.#crowded.passed();
    const next = nextWidth(asked, records);
    this.#width = next > asked && this.#crowded.forbids(records * 2) ? asked : next;
  }
}

/** What is kept below, for a number of windows. */
class Bound {
  least = Number.MAX_SAFE_INTEGER;
  #left = 0;
  #wait = 0;

  forbids(value: number): boolean {
    return value >= this.least && this.#left > 0;
  }

  met(value: number): void {
    const isAgain = this.#left === 0;
    if (isAgain) this.#wait = this.#wait === 0 ? windowsFirst : Math.min(maxWindows, this.#wait * 2);
    this.least = isAgain ? value : Math.min(this.least, value);
    this.#left = this.#wait;
  }

  passed(): void {
    this.#left = Math.max(0, this.#left - 1);
  }

  lift(): void {
    this.least = Number.MAX_SAFE_INTEGER;
    this.#left = 0;
    this.#wait = 0;
  }
}
