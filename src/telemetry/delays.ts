/**
 * Delays from `logTimestamp` until a record is first seen: counted in buckets, stored in the source's profile, and used to advise on the
 * close delay. A measure covers the last one to two weeks, so that it follows changes of the service. Pure.
 */
import type { DelayMeasure } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';

/** Upper bounds in seconds, also for the metric. One more bucket counts the delays beyond the last bound. */
export const delayBounds: readonly number[] = [
  ...[1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600],
  ...[86_400, 259_200, 604_800, 1_209_600, 2_592_000],
];

const week: Micros = 7 * 86_400_000_000;
/** Minimum time without a response that counts as an outage. Delays caused by an outage do not count. */
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

  /** @param stored  the measure of an earlier process @param pollMs  the poll interval */
  constructor(stored: DelayMeasure | undefined, pollMs: number) {
    const fits = stored?.recent.length === delayBounds.length + 1;
    this.#outage = Math.max(minOutage, 3 * pollMs * 1000);
    this.#since = fits ? stored.since : 0;
    this.#to = fits ? stored.to : 0;
    this.#recent = fits ? [...stored.recent] : none();
    this.#before = fits ? [...stored.before] : none();
    this.#longest = fits ? stored.longest : 0;
  }

  /** Call for each response of the source; `now` is the wall clock. */
  answered(now: Micros): void {
    if (now - this.#to > this.#outage) this.#quiet = { from: this.#to, to: now };
    this.#to = Math.max(this.#to, now);
  }

  /** Call for each record first seen at `now`. @returns false when an outage caused the delay: it does not count */
  add(seconds: number, now: Micros): boolean {
    const time = now - seconds * 1e6;
    // Also shortly before the outage: the next poll would have returned these records.
    if (this.#quiet && time >= this.#quiet.from - this.#outage && time < this.#quiet.to) return false;
    this.#startWeek(now);
    const at = delayBounds.findIndex((bound) => seconds <= bound);
    const place = at < 0 ? delayBounds.length : at;
    this.#recent[place] = (this.#recent[place] ?? 0) + 1;
    this.#longest = Math.max(this.#longest, seconds);
    return true;
  }

  measure(): DelayMeasure {
    return { since: this.#since, to: this.#to, recent: [...this.#recent], before: [...this.#before], longest: this.#longest };
  }

  #startWeek(now: Micros): void {
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

/** The lowest bound, in seconds, that covers this share of the records; undefined without records, Infinity beyond the last bound. */
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

/** The number of records first seen later than `seconds`, including the bucket that contains `seconds`. */
export function seenLater(measure: DelayMeasure, seconds: number): number {
  return samples(measure) - delayBounds.reduce((sum, bound, i) => (bound <= seconds ? sum + countAt(measure, i) : sum), 0);
}

function countAt({ recent, before }: DelayMeasure, i: number): number {
  return (recent[i] ?? 0) + (before[i] ?? 0);
}

function none(): number[] {
  return delayBounds.map(() => 0).concat(0);
}
