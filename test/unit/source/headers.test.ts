import { describe, expect, test } from 'vitest';
import { parseAge, parseHttpDate, parseRetryAfter, retryAfterMaxMs, retryAfterMinMs } from '../../../src/source/headers.ts';

const now = Date.UTC(2026, 10, 21, 12);

describe('Date', () => {
  // The three forms of RFC 9110 section 5.6.7, all for the same time.
  test.each([
    'Sun, 06 Nov 1994 08:49:37 GMT',
    'Sunday, 06-Nov-94 08:49:37 GMT',
    'Sun Nov  6 08:49:37 1994',
    ' Sun, 06 Nov 1994 08:49:37 GMT ',
  ])('%s', (text) => {
    expect(parseHttpDate(text, now)).toBe(784_111_777_000);
  });

  test('a year of two digits is at most 50 years ahead', () => {
    expect(parseHttpDate('Saturday, 21-Nov-76 00:00:00 GMT', now)).toBe(Date.UTC(2076, 10, 21));
    expect(parseHttpDate('Monday, 21-Nov-77 00:00:00 GMT', now)).toBe(Date.UTC(1977, 10, 21));
  });

  test('the first of several counts; a leap second is the second before it', () => {
    expect(parseHttpDate(['Sat, 21 Nov 2026 12:00:00 GMT', 'Sat, 21 Nov 2026 13:00:00 GMT'], now)).toBe(now);
    expect(parseHttpDate('Sat, 31 Dec 2016 23:59:60 GMT', now)).toBe(Date.UTC(2016, 11, 31, 23, 59, 59));
  });

  test.each([
    undefined,
    '',
    '2026-11-21T12:00:00Z',
    '1763726400',
    'Sat, 21 Nov 2026 12:00:00',
    'Sat, 21 Nov 2026 12:00:00 +0100',
    'Sat, 31 Feb 2026 12:00:00 GMT',
    'Sat, 21 Foo 2026 12:00:00 GMT',
    'Sat, 21 Nov 2026 24:00:00 GMT',
    'Sat, 21 Nov 2026 12:60:00 GMT',
    'Sat, 00 Nov 2026 12:00:00 GMT',
    'Sat, 21 Nov 2026 12:00:00 GMT, Sat, 21 Nov 2026 12:00:00 GMT',
  ])('%s is not a date', (text) => {
    expect(parseHttpDate(text, now)).toBeUndefined();
  });

  test('every day of 60 years is parsed as by the platform', () => {
    for (let at = Date.UTC(1990, 0, 1, 23, 59, 59); at < Date.UTC(2050, 0, 1); at += 86_400_000) {
      expect(parseHttpDate(new Date(at).toUTCString(), now)).toBe(at);
    }
  });
});

test.each([
  [undefined, 0],
  ['0', 0],
  ['17', 17],
  ['5, 0', 5],
  [['3', '9'], 3],
  ['-1', 0],
  ['1.5', 0],
  ['many', 0],
  ['99999999999999999999', 2 ** 31],
] as const)('Age %j is %d s', (header, seconds) => {
  expect(parseAge(header)).toBe(seconds);
});

test.each([
  [undefined, undefined],
  ['7', 7_000],
  ['0', retryAfterMinMs],
  ['315360000', retryAfterMaxMs],
  ['99999999999999999999999999', retryAfterMaxMs],
  ['Sat, 21 Nov 2026 12:00:30 GMT', 30_000],
  ['Sat, 21 Nov 2026 11:00:00 GMT', retryAfterMinMs],
  ['Sat, 21 Nov 2036 12:00:00 GMT', retryAfterMaxMs],
  ['Saturday, 21-Nov-26 12:01:00 GMT', 60_000],
  ['-5', undefined],
  ['1.5', undefined],
  ['soon', undefined],
  ['', undefined],
] as const)('Retry-After %j is %s ms', (header, ms) => {
  expect(parseRetryAfter(header, now)).toBe(ms);
});

const seed = Number(process.env['SEED'] ?? 4711);
test(`for any headers, waits are within limits and nothing throws (SEED=${seed})`, () => {
  const random = generator(seed);
  const parts = [
    'Sat, ',
    '21',
    ' Nov ',
    '2026 ',
    '12:00:00',
    ' GMT',
    '0',
    '9',
    '-',
    ',',
    '.',
    ' ',
    'e5',
    '\u0000',
    'ä',
    'Sunday, 06-Nov-94 ',
    '08:49:37',
    'Sun Nov  6 ',
    ' 1994',
  ];
  for (let run = 0; run < 50_000; run += 1) {
    const text = Array.from({ length: Math.floor(random() * 8) }, () => parts[Math.floor(random() * parts.length)]).join('');
    const wait = parseRetryAfter(text, now);
    if (wait !== undefined && !(wait >= 1_000 && wait <= 900_000))
      expect.fail(`SEED=${seed}: Retry-After ${JSON.stringify(text)} gives ${wait}`);
    const age = parseAge(text);
    if (!(Number.isInteger(age) && age >= 0)) expect.fail(`SEED=${seed}: Age ${JSON.stringify(text)} gives ${age}`);
    const date = parseHttpDate(text, now);
    if (date !== undefined && !Number.isInteger(date / 1000)) expect.fail(`SEED=${seed}: Date ${JSON.stringify(text)} gives ${date}`);
  }
});

/** mulberry32 */
function generator(from: number): () => number {
  let state = from >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
