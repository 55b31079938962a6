import { expect, test } from 'vitest';
import { fullOverlap, PollOverlap } from '../../../src/collect/poll-overlap.ts';
import { second } from '../../support/records.ts';

const minuteMs = 60_000;

/** The overlap after this many records of each depth, in seconds. */
function measured(counts: Readonly<Record<string, number>>): number {
  const overlap = new PollOverlap();
  overlap.next(0);
  for (const [depth, count] of Object.entries(counts)) for (let i = 0; i < count; i += 1) overlap.found(Number(depth) * second);
  return overlap.next(1) / second;
}

test.each([
  ['without a record', {}, 120],
  ['with too few records', { '-1': 999 }, 120],
  ['in order', { '-1': 1_000 }, 1],
  ['with equal times', { 0: 1_000 }, 1],
  ['with records up to a second older', { '-1': 500, 0.5: 500 }, 2],
  ['at a bound', { '-1': 500, 10: 500 }, 11],
  ['after a bound', { '-1': 500, 10.001: 500 }, 21],
  ['with one in 1,000 beyond', { '-1': 1_998, 55: 2 }, 1],
  ['with more than one in 1,000 beyond', { '-1': 1_997, 55: 3 }, 61],
  ['with records older than the last bound', { '-1': 1_000, 61: 10 }, 120],
])('%s (%j) the overlap is %i s', (_what, counts, seconds) => {
  expect(measured(counts)).toBe(seconds);
});

test('one poll in ten minutes has the full overlap, whatever the measurement', () => {
  const overlap = new PollOverlap();
  for (let i = 0; i < 1_000; i += 1) overlap.found(-1);
  const full: number[] = [];
  for (let at = 0; at <= 30 * minuteMs; at += 10_000) if (overlap.next(at) === fullOverlap) full.push(at / minuteMs);
  expect(full).toEqual([0, 10, 20, 30]);
});

test('a measured depth expires after one to two hours, if as many records were measured since', () => {
  const overlap = new PollOverlap();
  overlap.next(0);
  const at = (minutes: number, records: number): number => {
    const now = minutes * minuteMs;
    const found = overlap.next(now);
    for (let i = 0; i < records; i += 1) overlap.found(-1);
    return found / second;
  };
  for (let i = 0; i < 30; i += 1) overlap.found(15 * second);
  at(1, 900);
  expect(at(9, 0), 'too few').toBe(120);
  expect(at(65, 0), 'too few to forget').toBe(120);
  at(66, 200);
  expect(at(67, 0), 'before').toBe(21);
  at(68, 1_000);
  expect(at(69, 0)).toBe(21);
  at(127, 0);
  expect(at(128, 0), 'forgotten').toBe(1);
});
