/**
 * How late the late records of a window were, kept beside its count for as long as the ledger is: the longest delay, and how many came within
 * each age. Pure; the text is the column `late_delays` of a window.
 */
import type { LateDelays } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import { storedJson } from './damage.ts';

const hour: Micros = 3_600_000_000;
const day = 24 * hour;
/** Upper bounds, those of the default recounts; the last count of `within` is of what is beyond them. */
const lateBounds: readonly Micros[] = [hour, 6 * hour, day, 3 * day, 7 * day, 14 * day, 30 * day];

const none: LateDelays = { longest: 0, within: lateBounds.map(() => 0).concat(0) };

/** @param text  the column as it was; null for a window without late records */
export function readLate(text: string | null): LateDelays {
  return text === null ? none : (storedJson(text) as LateDelays);
}

/** The column once more records came. @param delays  first seen minus logTimestamp, µs */
export function withLate(text: string | null, delays: readonly Micros[]): string {
  const { longest, within } = readLate(text);
  const counts = [...within];
  for (const delay of delays) {
    const at = lateBounds.findIndex((bound) => delay <= bound);
    const place = at < 0 ? lateBounds.length : at;
    counts[place] = (counts[place] ?? 0) + 1;
  }
  return JSON.stringify({ longest: delays.reduce((most, delay) => Math.max(most, delay), longest), within: counts } satisfies LateDelays);
}

export function sumLate(parts: readonly LateDelays[]): LateDelays {
  return parts.reduce(
    (sum, { longest, within }) => ({
      longest: Math.max(sum.longest, longest),
      within: sum.within.map((count, i) => count + (within[i] ?? 0)),
    }),
    none,
  );
}
