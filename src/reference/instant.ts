/**
 * Instants as the service compares them: whole nanoseconds since 1970 as a bigint, because
 * `logTimestamp` may have more digits than a number of milliseconds can hold. Text is the form of
 * the specification: UTC, ISO 8601, no offset, a fraction.
 */

/**
 * Years 1678 to 2262, which fit a 64-bit integer of SQLite; instants outside become the nearest of
 * these.
 */
const earliest = -9_214_560_000n * 1_000_000_000n;
const latest = 9_214_560_000n * 1_000_000_000n;

/** Nanoseconds of `YYYY-MM-DDTHH:MM:SS[.f…][Z]`; undefined for another form or an invalid time. */
export function instantOf(text: string): bigint | undefined {
  const match = /^(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?Z?$/.exec(text);
  if (!match) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [number, number, number, number, number, number];
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  const real = date.getUTCMonth() === month - 1 && date.getUTCDate() === day && hour < 24 && minute < 60 && second < 60;
  if (!real) return undefined;
  const nanos = BigInt(date.getTime()) * 1_000_000n + BigInt((match[7] ?? '').padEnd(9, '0'));
  return nanos < earliest ? earliest : nanos > latest ? latest : nanos;
}

/** The text with `digits` digits in the fraction, truncated. */
export function instantText(nanos: bigint, digits: number): string {
  const seconds = floorDivide(nanos, 1_000_000_000n);
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  const fraction = (nanos - seconds * 1_000_000_000n).toString().padStart(9, '0').slice(0, digits);
  return digits === 0 ? whole : `${whole}.${fraction}`;
}

/** Division that rounds towards the past. */
export function floorDivide(value: bigint, by: bigint): bigint {
  return value >= 0n || value % by === 0n ? value / by : value / by - 1n;
}
