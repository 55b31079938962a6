/** The times that reports take: an instant, a date, a quarter, or a span before now. */
import { parseDuration, parseInstant } from './units.ts';
import { WaybillError } from '../errors.ts';
import type { Micros } from '../model/time.ts';

/**
 * `2026-11-21T00:00:00Z`, `2026-11-21` (its begin in UTC), `2026-Q3` (the begin of the quarter, or its end for `to`), `-7d` (before `now`).
 * @throws WaybillError `usage`
 */
export function parseTime(text: string, option: string, now: Micros, isEnd: boolean): Micros {
  const at = parseInstant(text);
  if (at !== undefined) return at;
  const [, year, quarter] = /^(\d{4})-Q([1-4])$/.exec(text) ?? [];
  if (year !== undefined && quarter !== undefined) return Date.UTC(Number(year), (Number(quarter) - 1 + (isEnd ? 1 : 0)) * 3, 1) * 1000;
  const [, month, day] = /^(\d{4}-\d{2})(-\d{2})?$/.exec(text) ?? [];
  if (month !== undefined) {
    const ms = Date.parse(`${month}${day ?? '-01'}T00:00:00Z`);
    // A date that does not exist is not one of the next month.
    if (!Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)) return (isEnd ? endOf(ms, day === undefined) : ms) * 1000;
  }
  const before = text.startsWith('-') ? parseDuration(text.slice(1)) : undefined;
  if (before !== undefined) return now - before * 1000;
  throw new WaybillError(
    'usage',
    `cannot read ${option} "${text}": not a time such as 2026-11-21T00:00:00Z, 2026-11-21, 2026-11, 2026-Q3 or -7d`,
  );
}

/** `--from -7d` as `--from=-7d`: a value that begins with a hyphen would be taken for an option. */
export function joinSpans(args: readonly string[]): string[] {
  return args.flatMap((arg, i) => {
    if (/^-\d/.test(arg) && /^--(from|to)$/.test(args[i - 1] ?? '')) return [];
    const next = args[i + 1];
    return /^--(from|to)$/.test(arg) && next !== undefined && /^-\d/.test(next) ? [`${arg}=${next}`] : [arg];
  });
}

/** The end of a day, or of a month: a period that ends with a date holds that date. */
function endOf(ms: number, isMonth: boolean): number {
  if (!isMonth) return ms + 86_400_000;
  const begin = new Date(ms);
  return Date.UTC(begin.getUTCFullYear(), begin.getUTCMonth() + 1, 1);
}

/** The name as it was given, for the one that the library prefers may be an older one; or UTC, whatever that was called. @throws WaybillError `usage` when the zone is none that is known */
export function parseZone(tz: string): string {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: tz }).resolvedOptions();
    return timeZone === 'UTC' ? timeZone : tz;
  } catch {
    throw new WaybillError('usage', `cannot use --tz "${tz}": not a time zone such as Europe/Berlin or UTC`);
  }
}
