import { afterEach, describe, expect, test } from 'vitest';
import { microsEnd, microsToIso, parseTimestamp } from '../../../src/record/timestamp.ts';

const zone = process.env.TZ;
afterEach(() => {
  if (zone === undefined) delete process.env.TZ;
  else process.env.TZ = zone;
});

/** The table of docs/formats.md, "Time": received, `@timestamp`, ms, identity. */
const readable: readonly (readonly [string, string, number, string])[] = [
  ['2024-05-01T12:34:56', '2024-05-01T12:34:56.000Z', 1714566896000, '2024-05-01T12:34:56'],
  ['2024-05-01T12:34:56.1', '2024-05-01T12:34:56.100Z', 1714566896100, '2024-05-01T12:34:56.1'],
  ['2024-05-01T12:34:56.10', '2024-05-01T12:34:56.100Z', 1714566896100, '2024-05-01T12:34:56.1'],
  ['2024-05-01T12:34:56.1234567', '2024-05-01T12:34:56.1234567Z', 1714566896123, '2024-05-01T12:34:56.1234567'],
  ['2024-05-01T12:34:56.9999999', '2024-05-01T12:34:56.9999999Z', 1714566896999, '2024-05-01T12:34:56.9999999'],
  ['2024-05-01T12:34:56.0000000', '2024-05-01T12:34:56.0000000Z', 1714566896000, '2024-05-01T12:34:56'],
  ['2024-05-01T12:34:56.123456789012', '2024-05-01T12:34:56.123456789Z', 1714566896123, '2024-05-01T12:34:56.123456789012'],
  ['2024-05-01T12:34:56Z', '2024-05-01T12:34:56.000Z', 1714566896000, '2024-05-01T12:34:56'],
  ['2024-05-01T12:34:56.5+02:00', '2024-05-01T10:34:56.500Z', 1714559696500, '2024-05-01T10:34:56.5'],
  ['2024-05-01T23:34:56-05:30', '2024-05-02T05:04:56.000Z', 1714626296000, '2024-05-02T05:04:56'],
  ['2016-12-31T23:59:60', '2016-12-31T23:59:59.999999Z', 1483228799999, '2016-12-31T23:59:60'],
  ['2016-12-31T23:59:60.7', '2016-12-31T23:59:59.999999Z', 1483228799999, '2016-12-31T23:59:60.7'],
  ['2017-01-01T00:59:60+01:00', '2016-12-31T23:59:59.999999Z', 1483228799999, '2016-12-31T23:59:60'],
  ['2024-02-29T00:00:00', '2024-02-29T00:00:00.000Z', 1709164800000, '2024-02-29T00:00:00'],
  ['1970-01-01T00:00:00', '1970-01-01T00:00:00.000Z', 0, '1970-01-01T00:00:00'],
  ['1969-12-31T23:30:00-01:00', '1970-01-01T00:30:00.000Z', 1800000, '1970-01-01T00:30:00'],
  ['2254-12-31T23:59:59.999999', '2254-12-31T23:59:59.999999Z', 8993721599999, '2254-12-31T23:59:59.999999'],
];

const unreadable: readonly string[] = [
  '',
  '2024-05-01',
  '2024-05-01 12:34:56',
  '2024-05-01t12:34:56',
  '2024-05-01T12:34',
  '2024-05-01T12:34:56.',
  '2024-05-01T12:34:56,5',
  '2024-05-01T12:34:56.5z',
  '2024-05-01T12:34:56+0200',
  '2024-05-01T12:34:56+24:00',
  '2024-05-01T12:34:56+02:60',
  '2024-05-01T12:34:56Z ',
  ' 2024-05-01T12:34:56',
  '2024-05-01T24:00:00',
  '2024-05-01T12:60:00',
  '2024-05-01T12:34:61',
  '2024-02-30T00:00:00',
  '2023-02-29T00:00:00',
  '2100-02-29T00:00:00',
  '2024-13-01T00:00:00',
  '2024-00-01T00:00:00',
  '2024-01-00T00:00:00',
  '2024-04-31T00:00:00',
  '1969-12-31T23:59:59.999',
  '1970-01-01T00:30:00+01:00',
  '2255-01-01T00:00:00',
  '2254-12-31T23:59:59-00:01',
  '٢٠٢٤-05-01T12:34:56',
  '1714566896000',
];

describe.each(['UTC', 'America/New_York', 'Asia/Kolkata'])('with the machine in %s', (timeZone) => {
  test('the time zone is active', () => {
    process.env.TZ = timeZone;
    expect(new Date(2024, 0, 1).getTimezoneOffset()).toBe({ UTC: 0, 'America/New_York': 300, 'Asia/Kolkata': -330 }[timeZone]);
  });

  test.each(readable)('%s is read', (text, iso, ms, identity) => {
    process.env.TZ = timeZone;
    expect(parseTimestamp(text)).toMatchObject({ iso, ms, identity });
  });
});

test.each(unreadable)('%j is not read', (text) => {
  expect(parseTimestamp(text)).toBeUndefined();
});

test('smaller fractions than a microsecond are truncated', () => {
  expect(parseTimestamp('2024-05-01T12:34:56.1234569')?.us).toBe(1714566896123456);
  expect(parseTimestamp('2016-12-31T23:59:60.5')?.us).toBe(1483228799999999);
});

test('the end is 2255, before integers of microseconds stop being exact', () => {
  expect(microsEnd).toBe(Date.UTC(2255, 0, 1) * 1000);
  expect(Number.isSafeInteger(microsEnd)).toBe(true);
});

test('microseconds as text', () => {
  expect(microsToIso(1714566910000000)).toBe('2024-05-01T12:35:10.000Z');
  expect(microsToIso(1714566910123999)).toBe('2024-05-01T12:35:10.123Z');
});

/**
 * A second implementation: by a regular expression, big integers and the calendar of `Date` in UTC.
 */
function secondReader(text: string): bigint | undefined {
  const found = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:)(\d\d)(?:\.(\d+))?(?:Z|([+-])(\d\d):(\d\d))?$/.exec(text);
  if (found === null) return undefined;
  const [, start = '', second = '', fraction = '', sign, hours = '0', minutes = '0'] = found;
  const leap = second === '60';
  const plain = `${start}${leap ? '59' : second}.000Z`;
  const ms = Date.parse(plain);
  if (Number.isNaN(ms) || new Date(ms).toISOString() !== plain || Number(hours) > 23 || Number(minutes) > 59) return undefined;
  const shift = BigInt(Number(hours) * 60 + Number(minutes)) * 60_000_000n * (sign === '-' ? -1n : 1n);
  const us = BigInt(ms) * 1000n + (leap ? 999_999n : BigInt(fraction.padEnd(6, '0').slice(0, 6))) - shift;
  return us >= 0n && us < BigInt(Date.UTC(2255, 0, 1)) * 1000n ? us : undefined;
}

test('the second implementation agrees on any text', () => {
  const seed = Number(process.env.SEED ?? 20241121);
  let state = seed;
  const below = (n: number) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
  const two = (n: number) => String(below(n)).padStart(2, '0');
  let read = 0;
  for (let i = 0; i < 20_000; i += 1) {
    const digits = Array.from({ length: below(13) }, () => String(below(10))).join('');
    const offset = ['', '', '', 'Z', `+${two(25)}:${two(62)}`, `-${two(25)}:${two(62)}`][below(6)] ?? '';
    const year = below(20) === 0 ? 1960 + below(300) : 2000 + below(50);
    let text = `${year}-${two(14)}-${two(33)}T${two(25)}:${two(61)}:${two(62)}${digits === '' ? '' : `.${digits}`}${offset}`;
    if (below(4) === 0) {
      const at = below(text.length);
      text = text.slice(0, at) + 'T:-.+Z 0x'.charAt(below(9)) + text.slice(at + 1);
    }
    const expected = secondReader(text);
    expect(parseTimestamp(text)?.us, `seed ${seed}: ${text}`).toBe(expected === undefined ? undefined : Number(expected));
    if (expected !== undefined) read += 1;
  }
  expect(read).toBeGreaterThan(5_000);
});
