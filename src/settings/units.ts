/** Durations, sizes and times as the configuration, the command line and the admin server write them. */
import type { Micros } from '../model/time.ts';
import { parseTimestamp } from '../record/timestamp.ts';

export const durationPattern = String.raw`(\d+(ms|s|m|h|d))+`;
const msOf: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
export const longestMs = 36_500 * 86_400_000;

/** ms of `10s`, `5m`, `2h`, `30d`, `1h30m`; undefined for anything else. */
export function parseDuration(text: string): number | undefined {
  if (!new RegExp(`^${durationPattern}$`).test(text)) return undefined;
  let total = 0;
  for (const [, digits = '', unit = ''] of text.matchAll(/(\d+)(ms|[smhd])/g)) total += Number(digits) * (msOf[unit] ?? Number.NaN);
  return total <= longestMs ? total : undefined;
}

/** `1h30m`, as the configuration writes it. */
export function durationText(ms: number): string {
  let left = ms;
  const parts = ['d', 'h', 'm', 's', 'ms'].flatMap((unit) => {
    const count = Math.floor(left / (msOf[unit] ?? 1));
    left -= count * (msOf[unit] ?? 1);
    return count > 0 ? [`${count}${unit}`] : [];
  });
  return parts.join('') || '0s';
}

const unitBytes: Readonly<Record<string, number>> = { B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

/** `512KiB`: in the largest unit that divides it, as the configuration writes it. */
export function sizeText(bytes: number): string {
  const unit = ['TiB', 'GiB', 'MiB', 'KiB'].find((each) => bytes > 0 && bytes % (unitBytes[each] ?? 1) === 0) ?? 'B';
  return `${bytes / (unitBytes[unit] ?? 1)}${unit}`;
}

/** Bytes of `512KiB`; undefined for anything else. */
export function bytesOf(text: string): number | undefined {
  const [, digits, unit = ''] = /^(\d+)(B|KiB|MiB|GiB|TiB)$/.exec(text) ?? [];
  const bytes = digits === undefined ? Number.NaN : Number(digits) * (unitBytes[unit] ?? Number.NaN);
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** µs of an RFC 3339 time with `Z` or an offset; undefined for anything else, and outside 1970 to 2254. */
export function parseInstant(text: string): Micros | undefined {
  return instantPattern.test(text) ? parseTimestamp(text)?.us : undefined;
}

export const instantPattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
