/**
 * How far a live poll reaches back before the newest record of the polls before it, because records become visible out of order. The
 * overlap follows the measured depths, so that a poll reads few records twice. It decides only how soon a record is found: closing its
 * window finds every record that no poll reached. It sends nothing and reads no clock.
 */
import type { Micros } from '../model/time.ts';
import { secondMicros } from './windows.ts';

/** The overlap of each poll until enough records are measured, and of one poll every ten minutes after that. */
export const fullOverlap: Micros = 120 * secondMicros;
const fullEveryMs = 600_000;
/** Upper bounds of the depths that are counted, µs. */
const depths: readonly Micros[] = [0, 1, 2, 5, 10, 20, 30, 60].map((seconds) => seconds * secondMicros);
/** Of this many new records, one may be older than the overlap reaches. With fewer records nothing is measured. */
const recordsPerDeeper = 1_000;
/** A measurement counts for one to two hours, and longer if records are few. */
const periodMs = 3_600_000;

export class PollOverlap {
  /** New records by depth; one more place counts those beyond the last bound. */
  #recent = none();
  #before = none();
  #since = 0;
  #fullAt = -Infinity;
  readonly #recordsPerDeeper: number;
  readonly #fullEveryMs: number;

  /** The parameters are for the simulation, which has few records. */
  constructor(perDeeper = recordsPerDeeper, everyMs = fullEveryMs) {
    this.#recordsPerDeeper = perDeeper;
    this.#fullEveryMs = everyMs;
  }

  /**
   * The overlap of a poll that begins now.
   * @param now  ms of the monotonic clock
   */
  next(now: number): Micros {
    if (sum(this.#recent) >= this.#recordsPerDeeper && now - this.#since >= periodMs) {
      this.#before = this.#recent;
      this.#recent = none();
      this.#since = now;
    }
    if (now - this.#fullAt < this.#fullEveryMs) return this.#measured();
    this.#fullAt = now;
    return fullOverlap;
  }

  /**
   * A poll found a new record.
   * @param depth  µs by which it is older than the newest record of the polls before; negative for a younger one
   */
  found(depth: Micros): void {
    const place = depths.findIndex((bound) => depth <= bound);
    const at = place < 0 ? depths.length : place;
    this.#recent[at] = (this.#recent[at] ?? 0) + 1;
  }

  #measured(): Micros {
    let deeper = sum(this.#recent) + sum(this.#before);
    const accepted = Math.floor(deeper / this.#recordsPerDeeper);
    if (accepted === 0) return fullOverlap;
    for (const [i, depth] of depths.entries()) {
      deeper -= (this.#recent[i] ?? 0) + (this.#before[i] ?? 0);
      // A second more: the service may exclude the bound, or truncate times to seconds.
      if (deeper <= accepted) return depth + secondMicros;
    }
    return fullOverlap;
  }
}

function none(): number[] {
  return depths.map(() => 0).concat(0);
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, count) => all + count, 0);
}
