/**
 * Reads `logTimestamp`: UTC without an offset, with any number of fraction digits, which `new Date(text)` would take for local time. The
 * same reading gives the window that owns a record, its identity and `@timestamp`.
 */
import type { Micros, Timestamp } from '../model/time.ts';

/** Builds its texts only where they are used. */
class ScannedTimestamp implements Timestamp {
  readonly us: Micros;
  readonly #text: string;
  readonly #scan: Scan;

  constructor(text: string, scan: Scan) {
    this.us = scan.us;
    this.#text = text;
    this.#scan = scan;
  }

  get ms(): number {
    return Math.floor(this.us / 1000);
  }

  get iso(): string {
    return this.#scan.leap ? `${this.#seconds.slice(0, 17)}59.999999Z` : `${this.#seconds}${isoFraction(this.#digits)}Z`;
  }

  get identity(): string {
    return identityOf(this.#scan.leap ? `${this.#seconds.slice(0, 17)}60` : this.#seconds, this.#digits);
  }

  get identityLength(): number | undefined {
    const { leap, shifted, fractionEnd } = this.#scan;
    if (leap || shifted) return undefined;
    let end = fractionEnd;
    while (end > 20 && this.#text.charCodeAt(end - 1) === zero) end -= 1;
    return end === 20 ? 19 : end;
  }

  get #seconds(): string {
    return this.#scan.shifted ? isoSeconds(this.us) : this.#text.slice(0, 19);
  }

  get #digits(): string {
    return this.#text.slice(20, Math.max(20, this.#scan.fractionEnd));
  }
}

/** 2255-01-01T00:00:00Z in µs: integers of microseconds are exact before it, so from then on a time counts as unreadable. */
export const microsEnd: Micros = 8_993_721_600_000_000;

/**
 * Reads `YYYY-MM-DDThh:mm:ss[.digits][Z|+hh:mm|-hh:mm]`. A leap second counts as `:59.999999`.
 * @returns undefined for anything else, for days that do not exist, and for times before 1970 or from 2255 on
 */
export function parseTimestamp(text: string): Timestamp | undefined {
  const found = scan(text);
  return found && new ScannedTimestamp(text, found);
}

/** RFC 3339 in UTC with milliseconds and `Z`, for times of receipt. `Date` must be able to represent the time. */
export function microsToIso(us: Micros): string {
  return new Date(Math.floor(us / 1000)).toISOString();
}

interface Scan {
  readonly us: Micros;
  readonly leap: boolean;
  /** An offset other than zero was applied. */
  readonly shifted: boolean;
  /** Where the fraction's digits end; 19 when there are none. */
  readonly fractionEnd: number;
}

const zero = 0x30;
const minus = 0x2d;
const plus = 0x2b;
const point = 0x2e;
const colon = 0x3a;
const letterT = 0x54;
const letterZ = 0x5a;
const daysOfMonth = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] as const;

function scan(text: string): Scan | undefined {
  if (text.length < 19 || text.charCodeAt(4) !== minus || text.charCodeAt(7) !== minus || text.charCodeAt(10) !== letterT) return undefined;
  if (text.charCodeAt(13) !== colon || text.charCodeAt(16) !== colon) return undefined;
  const year = two(text, 0) * 100 + two(text, 2);
  const month = two(text, 5);
  const day = two(text, 8);
  const hour = two(text, 11);
  const minute = two(text, 14);
  const second = two(text, 17);
  // Other characters are NaN, and every comparison with NaN is false.
  if (!(year >= 1969 && month >= 1 && month <= 12 && day >= 1 && day <= lengthOfMonth(year, month))) return undefined;
  if (!(hour <= 23 && minute <= 59 && second <= 60)) return undefined;

  let at = 19;
  let micros = 0;
  if (text.charCodeAt(at) === point) {
    at += 1;
    let scale = 100_000;
    for (; at < text.length; at += 1) {
      const digit = text.charCodeAt(at) - zero;
      if (digit < 0 || digit > 9) break;
      micros += digit * scale;
      scale = scale > 1 ? scale / 10 : 0;
    }
    if (at === 20) return undefined;
  }
  const offset = at === text.length ? 0 : offsetMinutes(text, at);
  if (offset === undefined) return undefined;

  const leap = second === 60;
  const seconds = Date.UTC(year, month - 1, day, hour, minute - offset, leap ? 59 : second) / 1000;
  const us = seconds * 1_000_000 + (leap ? 999_999 : micros);
  return us >= 0 && us < microsEnd ? { us, leap, shifted: offset !== 0, fractionEnd: at } : undefined;
}

/** Minutes east of UTC of the `Z` or `±hh:mm` that ends the text at `at`. */
function offsetMinutes(text: string, at: number): number | undefined {
  const sign = text.charCodeAt(at);
  if (sign === letterZ) return at + 1 === text.length ? 0 : undefined;
  if ((sign !== plus && sign !== minus) || at + 6 !== text.length || text.charCodeAt(at + 3) !== colon) return undefined;
  const hours = two(text, at + 1);
  const minutes = two(text, at + 4);
  if (!(hours <= 23 && minutes <= 59)) return undefined;
  return sign === plus ? hours * 60 + minutes : -(hours * 60 + minutes);
}

/** The number of two digits, NaN when they are none. */
function two(text: string, at: number): number {
  const tens = text.charCodeAt(at) - zero;
  const ones = text.charCodeAt(at + 1) - zero;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : NaN;
}

function lengthOfMonth(year: number, month: number): number {
  if (month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)) return 29;
  return daysOfMonth[month - 1] ?? 0;
}

function isoSeconds(us: Micros): string {
  return new Date(Math.floor(us / 1_000_000) * 1000).toISOString().slice(0, 19);
}

/** A fraction with its point, three to nine digits: some receivers read no time without a fraction. */
function isoFraction(digits: string): string {
  return `.${digits.length < 3 ? digits.padEnd(3, '0') : digits.slice(0, 9)}`;
}

function identityOf(seconds: string, digits: string): string {
  let end = digits.length;
  while (end > 0 && digits.charCodeAt(end - 1) === zero) end -= 1;
  return end === 0 ? seconds : `${seconds}.${digits.slice(0, end)}`;
}
