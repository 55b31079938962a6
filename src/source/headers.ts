/** Parses `Date`, `Age` and `Retry-After` (RFC 9110 5.6.7, 6.6.1 and 10.2.3, RFC 9111 5.1). Pure. An invalid one counts as absent. */

/** A header as HTTP clients return it. Of several with one name the first counts. */
export type Header = string | readonly string[] | undefined;

export const retryAfterMinMs = 1_000;
export const retryAfterMaxMs = 15 * 60_000;

/** ms since 1970 of an HTTP date in any of its three forms. @param now  ms since 1970; a two-digit year is at most 50 years after it */
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

/** `Age` in seconds; 0 when it is absent or not a number. */
export function parseAge(header: Header): number {
  const text = first(header).split(',')[0]?.trim() ?? '';
  // RFC 9111 section 1.2.2: larger values count as 2^31.
  return /^\d+$/.test(text) ? Math.min(Number(text), 2 ** 31) : 0;
}

/** The requested wait in ms, limited to 1 s - 15 min. @param now  the `Date` of the response, else the wall clock, ms since 1970 */
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
