/**
 * How long after its `logTimestamp` a record is first seen: counted in buckets while it happens, kept over a restart in the source's profile,
 * and what follows from it for the close delay. Pure; a measure covers the last one to two weeks, so that it follows the service.
 */
import type { DelayMeasure } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';

/** Upper bounds in seconds; what is beyond the last is counted behind it. Also those of the metric. */
export const delayBounds: readonly number[] = [
  ...[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600],
  ...[86_400, 259_200, 604_800, 1_209_600, 2_592_000],
];

const week: Micros = 7 * 86_400_000_000;
/** So long without an answer at least counts as an outage, of the service or of ours: what it held up tells nothing about lateness. */
const minOutage: Micros = 60_000_000;

export class Delays {
  readonly #outage: Micros;
  #since: Micros;
  #to: Micros;
  #recent: number[];
  #before: number[];
  #longest: number;
  /** The last outage: records dated in it were seen late because nothing was polled. */
  #quiet: { readonly from: Micros; readonly to: Micros } | undefined;

  /**
   * @param kept  what an earlier process measured
   * @param pollMs  the poll interval
   */
  constructor(kept: DelayMeasure | undefined, pollMs: number) {
    const fits = kept?.recent.length === delayBounds.length + 1;
    this.#outage = Math.max(minOutage, 3 * pollMs * 1000);
    this.#since = fits ? kept.since : 0;
    this.#to = fits ? kept.to : 0;
    this.#recent = fits ? [...kept.recent] : none();
    this.#before = fits ? [...kept.before] : none();
    this.#longest = fits ? kept.longest : 0;
  }

  /** An answer of the source at `now` (wall clock). */
  answered(now: Micros): void {
    if (now - this.#to > this.#outage) this.#quiet = { from: this.#to, to: now };
    this.#to = Math.max(this.#to, now);
  }

  /** A record that was first seen at `now`. @returns whether it counts: not when an outage held it up */
  add(seconds: number, now: Micros): boolean {
    const time = now - seconds * 1e6;
    // Less a poll or so: what was to be asked for when the outage began.
    if (this.#quiet && time >= this.#quiet.from - this.#outage && time < this.#quiet.to) return false;
    this.#turn(now);
    const at = delayBounds.findIndex((bound) => seconds <= bound);
    const place = at < 0 ? delayBounds.length : at;
    this.#recent[place] = (this.#recent[place] ?? 0) + 1;
    this.#longest = Math.max(this.#longest, seconds);
    return true;
  }

  measure(): DelayMeasure {
    return { since: this.#since, to: this.#to, recent: [...this.#recent], before: [...this.#before], longest: this.#longest };
  }

  #turn(now: Micros): void {
    const age = now - this.#since;
    if (this.#since !== 0 && age <= week) return;
    this.#before = this.#since === 0 || age > 2 * week ? none() : this.#recent;
    this.#recent = none();
    this.#since = now;
  }
}

export function samples({ recent, before }: DelayMeasure): number {
  return recent.reduce((sum, count) => sum + count, 0) + before.reduce((sum, count) => sum + count, 0);
}

/** The bound in seconds within which at least this share of the records was first seen; undefined without records, Infinity beyond the last bound. */
export function seenWithin(measure: DelayMeasure, share: number): number | undefined {
  const all = samples(measure);
  if (all === 0) return undefined;
  let sum = 0;
  for (const [i, bound] of delayBounds.entries()) {
    sum += countAt(measure, i);
    if (sum >= all * share) return bound;
  }
  return Infinity;
}

/** How many records were first seen later than `seconds`; the bucket that `seconds` lies in counts as later. */
export function seenLater(measure: DelayMeasure, seconds: number): number {
  return samples(measure) - delayBounds.reduce((sum, bound, i) => (bound <= seconds ? sum + countAt(measure, i) : sum), 0);
}

function countAt({ recent, before }: DelayMeasure, i: number): number {
  return (recent[i] ?? 0) + (before[i] ?? 0);
}

function none(): number[] {
  return delayBounds.map(() => 0).concat(0);
}
