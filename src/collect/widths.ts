/**
 * How wide the next window of a range is wished for: as records are dense, and no wider than the service answers. History may be denser than the
 * present, so each range has its own.
 */
import type { Micros } from '../model.ts';
import { nextWidth, secondMicros, wholeSecond } from './windows.ts';

/** After so many windows a width that was refused is tried again, and after twice as many each time it is refused once more. */
const windowsFirst = 8;
const windowsMost = 1_024;

export class Widths {
  #width: Micros = Number.MAX_SAFE_INTEGER;
  /** With so many records a window was found too crowded to be proven: it is not widened to that again. */
  #crowded = Number.MAX_SAFE_INTEGER;
  /** The narrowest that the service has refused or not answered in time, how many windows are read before it is tried again, and after how many it was. */
  #refused: Micros = Number.MAX_SAFE_INTEGER;
  #left = 0;
  #wait = 0;

  /** The width to ask for, at most `widest`. */
  wish(widest: Micros): Micros {
    const width = Math.min(this.#width, widest);
    return width >= this.#refused && this.#left > 0 ? Math.max(secondMicros, wholeSecond(this.#refused / 2)) : width;
  }

  /** A window of that width was refused, and narrower ones are answered. */
  refused(width: Micros): void {
    this.#wait = width >= this.#refused ? Math.min(windowsMost, this.#wait * 2) : windowsFirst;
    this.#left = this.#wait;
    this.#refused = width;
  }

  crowded(records: number): void {
    this.#crowded = Math.min(this.#crowded, records);
  }

  /** A window of that width was read, and held so many records. */
  read(width: Micros, records: number): void {
    if (width >= this.#refused) this.#refused = Number.MAX_SAFE_INTEGER;
    this.#left = Math.max(0, this.#left - 1);
    const next = nextWidth(width, records);
    this.#width = next > width && records * 2 >= this.#crowded ? width : next;
  }
}
