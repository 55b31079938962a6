import { expect, test } from 'vitest';
import { joinSpans, parseTime, parseZone } from '../../../src/settings/period.ts';

const now = Date.parse('2026-11-21T12:00:00Z') * 1000;
const at = (text: string): number => Date.parse(text) * 1000;

test.for([
  ['2026-11-20T08:30:00Z', false, '2026-11-20T08:30:00Z'],
  ['2026-11-20', false, '2026-11-20T00:00:00Z'],
  ['2026-11-20', true, '2026-11-21T00:00:00Z'],
  ['2026-12', false, '2026-12-01T00:00:00Z'],
  ['2026-12', true, '2027-01-01T00:00:00Z'],
  ['2026-Q3', false, '2026-07-01T00:00:00Z'],
  ['2026-Q3', true, '2026-10-01T00:00:00Z'],
  ['2026-Q4', true, '2027-01-01T00:00:00Z'],
  ['-7d', false, '2026-11-14T12:00:00Z'],
  ['-90m', true, '2026-11-21T10:30:00Z'],
] as const)('%s (end: %s) is %s', ([text, isEnd, expected]) => {
  expect(parseTime(text, '--from', now, isEnd)).toBe(at(expected));
});

test.for([
  ['2026-11-22', false, 'America/New_York', '2026-11-22T05:00:00Z'],
  ['2026-11-22', true, 'America/New_York', '2026-11-23T05:00:00Z'],
  // The day on which summer time ends has 25 hours.
  ['2026-10-25', false, 'Europe/Berlin', '2026-10-24T22:00:00Z'],
  ['2026-10-25', true, 'Europe/Berlin', '2026-10-25T23:00:00Z'],
  ['2026-11', false, 'Asia/Kolkata', '2026-10-31T18:30:00Z'],
  ['2026-Q3', true, 'Europe/Berlin', '2026-09-30T22:00:00Z'],
  // Summer time starts at midnight: the day starts at 01:00.
  ['2018-11-04', false, 'America/Sao_Paulo', '2018-11-04T03:00:00Z'],
  ['2026-11-20T08:30:00Z', false, 'America/New_York', '2026-11-20T08:30:00Z'],
  ['-7d', false, 'America/New_York', '2026-11-14T12:00:00Z'],
] as const)('%s (end: %s) in %s is %s', ([text, isEnd, tz, expected]) => {
  expect(parseTime(text, '--from', now, isEnd, tz)).toBe(at(expected));
});

test.for(['2026-02-30', '2026-13', '2026-Q5', '7d', 'yesterday', '-7', ''])('%s is refused, and the option named', (text) => {
  expect(() => parseTime(text, '--to', now, false)).toThrow(`cannot read --to "${text}": not a time`);
});

test('a zone keeps its given name, and must be valid', () => {
  for (const name of ['Asia/Kolkata', 'Asia/Calcutta', 'Europe/Kyiv', 'Europe/Berlin', 'America/Argentina/Buenos_Aires', '+05:30']) {
    expect(parseZone(name)).toBe(name);
  }
  for (const name of ['UTC', 'utc', 'Etc/UTC']) expect(parseZone(name)).toBe('UTC');
  expect(() => parseZone('Asia/Kolkatta')).toThrow('cannot use --tz "Asia/Kolkatta": not a time zone');
});

test('a duration before now equals the time it denotes', () => {
  expect(joinSpans(['--from', '-7d', '--by', 'day', '--to', '-1h'])).toEqual(['--from=-7d', '--by', 'day', '--to=-1h']);
  expect(joinSpans(['--from=-7d', '--to', '2026-Q3', '--json'])).toEqual(['--from=-7d', '--to', '2026-Q3', '--json']);
  expect(joinSpans(['--before', '-400d', '--yes'])).toEqual(['--before=-400d', '--yes']);
  expect(joinSpans(['--from', '--json'])).toEqual(['--from', '--json']);
});
