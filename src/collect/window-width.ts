/**
 * Chooses the width of the next window of a range by the number of records in the last windows. The service must be able to answer a query
 * of this width. Each range has its own widths, because history may hold more records in an hour than the present.
 */
import type { Micros } from '../model/time.ts';
import { nextWidth, secondMicros, wholeSecond } from './windows.ts';

/** A bound is tested again after this many windows, and after twice as many each time it is confirmed. */
const windowsFirst = 8;
const maxWindows = 1_024;

export class Widths {
  #width: Micros = Number.MAX_SAFE_INTEGER;
  /** The narrowest window that the service has refused or not answered in time. */
  readonly #refused = new Bound();
  /** The smallest number of records with which a window could not be proven. The cause may have been temporary. */
  readonly #crowded = new Bound();

  /** @param pace  the width of the first windows, µs */
  constructor(pace?: Micros) {
    if (pace !== undefined) this.#refused.met(2 * pace);
  }

  /** @returns at most `widest` */
  requestWidth(widest: Micros): Micros {
    const width = Math.min(this.#width, widest);
    return this.#refused.forbids(width) ? Math.max(secondMicros, wholeSecond(this.#refused.smallest / 2)) : width;
  }

  /** A window of that width was refused, and narrower ones are answered. */
  refused(width: Micros): void {
    this.#refused.met(width);
  }

  crowded(records: number): void {
    this.#crowded.met(records);
  }

  /**
   * A window was read.
   * @param requested  the chosen width
   * @param width  the actual width: the window may have ended earlier, at an edge of the clock
   */
  read(requested: Micros, width: Micros, records: number): void {
    if (width >= this.#refused.smallest) this.#refused.lift();
    this.#refused.passed();
    this.#crowded.passed();
    const next = nextWidth(requested, records, width);
    this.#width = next > requested && this.#crowded.forbids((records * next) / width) ? requested : next;
  }
}

/** A limit that holds for a number of windows. */
class Bound {
  smallest = Number.MAX_SAFE_INTEGER;
  #left = 0;
  #wait = 0;

  forbids(value: number): boolean {
    return value >= this.smallest && this.#left > 0;
  }

  met(value: number): void {
    const isConfirmed = this.#left === 0;
    if (isConfirmed) this.#wait = this.#wait === 0 ? windowsFirst : Math.min(maxWindows, this.#wait * 2);
    this.smallest = isConfirmed ? value : Math.min(this.smallest, value);
    this.#left = this.#wait;
  }

  passed(): void {
    this.#left = Math.max(0, this.#left - 1);
  }

  lift(): void {
    this.smallest = Number.MAX_SAFE_INTEGER;
    this.#left = 0;
    this.#wait = 0;
  }
}
