/** Times in the parameters of reports: an instant, a date, a quarter, or a duration before now. */
import { parseDuration, parseInstant } from './units.ts';
import { WaybillError } from '../errors/errors.ts';
import type { Micros } from '../model/time.ts';

/**
 * `2026-11-21T00:00:00Z`, `2026-11-21` (its start in the zone), `2026-Q3` (the start of the quarter, or its end for `to`), `-7d` (before
 * `now`).
 * @param tz  IANA name of the zone of dates
 * @throws WaybillError `usage`
 */
export function parseTime(text: string, option: string, now: Micros, isEnd: boolean, tz = 'UTC'): Micros {
  const at = parseInstant(text);
  if (at !== undefined) return at;
  const [, year, quarter] = /^(\d{4})-Q([1-4])$/.exec(text) ?? [];
  if (year !== undefined && quarter !== undefined)
    return startOfDay(Date.UTC(Number(year), (Number(quarter) - 1 + (isEnd ? 1 : 0)) * 3, 1), tz);
  const [, month, day] = /^(\d{4}-\d{2})(-\d{2})?$/.exec(text) ?? [];
  if (month !== undefined) {
    const ms = Date.parse(`${month}${day ?? '-01'}T00:00:00Z`);
    // A date that does not exist must not become one of the next month.
    if (!Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)) return startOfDay(isEnd ? endOf(ms, day === undefined) : ms, tz);
  }
  const before = text.startsWith('-') ? parseDuration(text.slice(1)) : undefined;
  if (before !== undefined) return now - before * 1000;
  throw new WaybillError(
    'usage',
    `cannot read ${option} "${text}": not a time such as 2026-11-21T00:00:00Z, 2026-11-21, 2026-11, 2026-Q3 or -7d`,
  );
}

interface GivenPeriod {
  readonly from?: string | undefined;
  readonly to?: string | undefined;
}

/** @throws WaybillError `usage` */
export function parsePeriod(
  { from, to }: GivenPeriod,
  now: Micros,
  tz = 'UTC',
  prefix = '--',
): { readonly from: Micros | undefined; readonly to: Micros | undefined } {
  return {
    from: from === undefined ? undefined : parseTime(from, `${prefix}from`, now, false, tz),
    to: to === undefined ? undefined : parseTime(to, `${prefix}to`, now, true, tz),
  };
}

/** @throws WaybillError `usage` for a period with two ends that is not longer than 0 */
export function assertForward(verb: string, from: Micros | undefined, to: Micros | undefined, given: GivenPeriod): void {
  if (from === undefined || to === undefined || from < to) return;
  throw new WaybillError('usage', `cannot ${verb} from "${given.from ?? ''}" to "${given.to ?? 'now'}": the end is not after the start`);
}

const takesTime = /^--(from|to|before)$/;

/** `--from -7d` as `--from=-7d`: a value that starts with a hyphen would be read as an option. */
export function joinSpans(args: readonly string[]): string[] {
  return args.flatMap((arg, i) => {
    if (/^-\d/.test(arg) && takesTime.test(args[i - 1] ?? '')) return [];
    const next = args[i + 1];
    return takesTime.test(arg) && next !== undefined && /^-\d/.test(next) ? [`${arg}=${next}`] : [arg];
  });
}

/** The end of a day, or of a month: a period that ends with a date includes that date. */
function endOf(ms: number, isMonth: boolean): number {
  if (!isMonth) return ms + 86_400_000;
  const begin = new Date(ms);
  return Date.UTC(begin.getUTCFullYear(), begin.getUTCMonth() + 1, 1);
}

/** The first instant of a day. @param ms  the day's midnight in UTC */
function startOfDay(ms: number, tz: string): Micros {
  const [before = 0, after = 0] = [ms - 86_400_000, ms + 86_400_000].map((at) => offsetMs(at, tz));
  const midnights = [ms - before, ms - after].filter((at) => at + offsetMs(at, tz) === ms);
  // Where summer time starts at midnight, the day starts at 01:00.
  return (midnights.length === 0 ? ms - before : Math.min(...midnights)) * 1000;
}

/** Local time minus UTC. */
function offsetMs(at: number, tz: string): number {
  const format = new Intl.DateTimeFormat('sv-SE', { timeZone: tz, dateStyle: 'short', timeStyle: 'medium' });
  return Date.parse(`${format.format(at).replace(' ', 'T')}Z`) - at;
}

/** The name as given (the library may prefer an older one), or `UTC` for its aliases. @throws WaybillError `usage` for an unknown zone */
export function parseZone(tz: string, option = '--tz'): string {
  try {
    const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: tz }).resolvedOptions();
    return timeZone === 'UTC' ? timeZone : tz;
  } catch {
    throw new WaybillError('usage', `cannot use ${option} "${tz}": not a time zone such as Europe/Berlin or UTC`);
  }
}
