/** Formats instants and durations for `status` and reports. Pure: `now` is always a parameter. */
import type { Micros } from '../model/time.ts';

/** RFC 3339 in UTC, without trailing zeros of the fraction: `2026-11-20T02:45:00Z`, `…:41.25Z`. */
export function rfc3339(time: Micros): string {
  // A computed time, such as that of the next attempt, may have a fraction of a microsecond.
  const at = Math.round(time);
  const wholeMs = Math.floor(at / 1_000);
  const fraction = String((((wholeMs % 1_000) + 1_000) % 1_000) * 1_000 + (at - wholeMs * 1_000))
    .padStart(6, '0')
    .replace(/0+$/, '');
  return `${new Date(wholeMs).toISOString().slice(0, 19)}${fraction === '' ? '' : `.${fraction}`}Z`;
}

/** `45 s`, `18 min`, `5 h`, `3 d`: one unit, rounded down. */
export function span(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 90) return `${whole} s`;
  if (whole < 90 * 60) return `${Math.floor(whole / 60)} min`;
  if (whole < 36 * 3_600) return `${Math.floor(whole / 3_600)} h`;
  return `${Math.floor(whole / 86_400)} d`;
}

/** `18 min ago`; of a time in the future `18 min after now`. */
export function ago(at: Micros, now: Micros): string {
  const seconds = (now - at) / 1e6;
  return seconds > -1 ? `${span(seconds)} ago` : `${span(-seconds)} after now`;
}

/** Date and time of day in a zone: `{ date: '2026-11-20', time: '02:45:00' }`. */
export function zoned(at: Micros, tz: string): { readonly date: string; readonly time: string } {
  let format = formats.get(tz);
  if (!format) formats.set(tz, (format = new Intl.DateTimeFormat('sv-SE', { timeZone: tz, dateStyle: 'short', timeStyle: 'medium' })));
  const [date = '', time = ''] = format.format(new Date(Math.floor(at / 1_000))).split(' ');
  return { date, time };
}

/** `02:45 UTC`; the date precedes it unless it is the date of `now`. */
export function clockTime(at: Micros, now: Micros, tz: string): string {
  const { date, time } = zoned(at, tz);
  return `${date === zoned(now, tz).date ? '' : `${date} `}${time.slice(0, 5)} ${tz}`;
}

/** `2026-11-20 02:45–03:15 UTC`, `2026-11-20 23:45–2026-11-21 00:15:30 UTC`: no repeated date, no zero seconds. */
export function stretchWords(from: Micros, to: Micros, tz: string): string {
  const [begin, end] = [zoned(from, tz), zoned(to, tz)];
  const clock = (time: string): string => (time.endsWith(':00') ? time.slice(0, 5) : time);
  return `${begin.date} ${clock(begin.time)}–${begin.date === end.date ? '' : `${end.date} `}${clock(end.time)} ${tz}`;
}

/** `1 gap`, `2 gaps`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${grouped(count)} ${count === 1 ? one : many}`;
}

/** `1,204,311`. */
export function grouped(count: number): string {
  return String(count).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** Cached: creating a format is slow, and a report formats thousands of times. */
const formats = new Map<string, Intl.DateTimeFormat>();
