/**
 * Reads the headers of an answer that the source relies on: `Date`, `Age` and `Retry-After` (RFC 9110 sections 5.6.7, 6.6.1 and 10.2.3,
 * RFC 9111 section 5.1). Pure; whatever does not suit the RFC counts as not sent.
 */

/** A header as HTTP clients give it: several of one name are a list, of which the first counts. */
export type Header = string | readonly string[] | undefined;

/** The shortest and the longest wait that an answer can ask for. */
export const retryAfterMinMs = 1_000;
export const retryAfterMaxMs = 15 * 60_000;

/**
 * An HTTP date in any of its three forms, ms since 1970.
 * @param now  ms since 1970: a year of two digits means the one that lies at most 50 years ahead of it
 */
export function parseHttpDate(header: Header, now: number): number | undefined {
  const text = first(header);
  const parts = imfFixdate.exec(text)?.groups ?? rfc850.exec(text)?.groups ?? asctime.exec(text)?.groups;
  if (parts === undefined) return undefined;
  const month = months.indexOf(parts['month'] ?? '');
  let year = Number(parts['year']);
  if (parts['year']?.length === 2) {
    const ahead = new Date(now).getUTCFullYear() + 50;
    year += Math.floor(ahead / 100) * 100;
    if (year > ahead) year -= 100;
  }
  const [day, hour, minute, second] = [parts['day'], parts['hour'], parts['minute'], parts['second']].map(Number) as [
    number,
    number,
    number,
    number,
  ];
  if (month < 0 || year < 1970 || hour > 23 || minute > 59 || second > 60) return undefined;
  const at = Date.UTC(year, month, day, hour, minute, Math.min(second, 59));
  return new Date(at).getUTCDate() === day ? at : undefined;
}

/** `Age` in seconds, 0 when there is none or it is no number. */
export function parseAge(header: Header): number {
  const text = first(header).split(',')[0]?.trim() ?? '';
  // RFC 9111 section 1.2.2: what is greater than one can hold counts as 2^31.
  return /^\d+$/.test(text) ? Math.min(Number(text), 2 ** 31) : 0;
}

/**
 * How long to wait, in ms, held to 1 s - 15 min.
 * @param now  what a date is compared with: the answer's own `Date`, else the wall clock, ms since 1970
 */
export function parseRetryAfter(header: Header, now: number): number | undefined {
  const text = first(header);
  const date = parseHttpDate(text, now);
  const wait = /^\d+$/.test(text) ? Number(text) * 1000 : date === undefined ? undefined : date - now;
  return wait === undefined ? undefined : Math.min(Math.max(wait, retryAfterMinMs), retryAfterMaxMs);
}

const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];
const imfFixdate =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), (?<day>\d{2}) (?<month>\w{3}) (?<year>\d{4}) (?<hour>\d{2}):(?<minute>\d{2}):(?<second>\d{2}) GMT$/;
const rfc850 =
  /^(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, (?<day>\d{2})-(?<month>\w{3})-(?<year>\d{2}) (?<hour>\d{2}):(?<minute>\d{2}):(?<second>\d{2}) GMT$/;
const asctime =
  /^(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?<month>\w{3}) (?<day>[ \d]\d) (?<hour>\d{2}):(?<minute>\d{2}):(?<second>\d{2}) (?<year>\d{4})$/;

function first(header: Header): string {
  const text = typeof header === 'string' ? header : header?.[0];
  return text?.trim() ?? '';
}
