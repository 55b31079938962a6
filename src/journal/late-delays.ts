/**
 * The delays of the late records of a window: the longest, and the number within each age. Stored
 * as the column `late_delays` of the window, for the life of the ledger. Pure.
 */
import type { LateDelays } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import { storedJson } from './damage.ts';

const hour: Micros = 3_600_000_000;
const day = 24 * hour;
/** Upper bounds, equal to the default recount ages. The last count of `within` is for longer delays. */
const lateBounds: readonly Micros[] = [hour, 6 * hour, day, 3 * day, 7 * day, 14 * day, 30 * day];

const none: LateDelays = { longest: 0, within: lateBounds.map(() => 0).concat(0) };

/** @param text  the stored column; null for a window without late records */
export function readLate(text: string | null): LateDelays {
  return text === null ? none : (storedJson(text) as LateDelays);
}

/** Returns the new column. @param delays  first seen minus logTimestamp, µs */
export function withLate(text: string | null, delays: readonly Micros[]): string {
  const { longest, within } = readLate(text);
  const counts = [...within];
  for (const delay of delays) {
    const at = lateBounds.findIndex((bound) => delay <= bound);
    const place = at < 0 ? lateBounds.length : at;
    counts[place] = (counts[place] ?? 0) + 1;
  }
  return JSON.stringify({ longest: delays.reduce((max, delay) => Math.max(max, delay), longest), within: counts } satisfies LateDelays);
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
