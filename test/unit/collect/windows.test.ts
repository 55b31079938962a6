import { expect, test } from 'vitest';
import {
  endOf,
  lowerHalf,
  nextRecount,
  nextTry,
  nextWidth,
  nextWindow,
  owns,
  queryFrom,
  queryOf,
  recordsMax,
  widestMicros,
} from '../../../src/collect/windows.ts';
import type { Window } from '../../../src/model/ledger.ts';
import { base, between, day, hour, minute, second, seeded } from '../../support/records.ts';
import { ages, closeDelay, span } from '../../support/collect/world.ts';

const at = (text: string): number => Date.parse(`${text}Z`) * 1000;

test('a query has whole seconds, with one more second on both sides', () => {
  expect(queryOf({ from: at('2026-11-20T02:00:00'), to: at('2026-11-20T02:15:00') })).toEqual({
    startTime: '2026-11-20T01:59:59.00',
    endTime: '2026-11-20T02:15:01.00',
  });
  expect(queryOf({ from: at('2027-01-01T00:00:00'), to: at('2027-01-01T00:00:01') })).toEqual({
    startTime: '2026-12-31T23:59:59.00',
    endTime: '2027-01-01T00:00:02.00',
  });
  expect(queryFrom(at('2026-11-20T02:00:00') + 999_999)).toEqual({ startTime: '2026-11-20T02:00:00.00' });
});

test('a window includes its start and excludes its end: each instant belongs to exactly one of two neighbours', () => {
  const [a, b] = [span(0, 10), span(10, 20)];
  for (const [time, inA, inB] of [
    [base - 1, false, false],
    [base, true, false],
    [base + 10 * second - 1, true, false],
    [base + 10 * second, false, true],
    [base + 20 * second, false, false],
  ] as const)
    expect([owns(a, time), owns(b, time)]).toEqual([inA, inB]);
});

test('the halves of a window cover exactly the window, down to one second', () => {
  const random = seeded(5);
  for (let i = 0; i < 500; i += 1) {
    const window = span(0, between(random, 1, 90_000));
    let reached = window.from;
    let turns = 0;
    // The upper half is the next window: advancing `reached` must end at the window's end.
    while (reached < window.to) {
      let part: Window = { from: reached, to: window.to };
      for (let depth = between(random, 0, 20); depth > 0; depth -= 1) part = lowerHalf(part) ?? part;
      expect(part.from).toBe(reached);
      expect(part.to).toBeGreaterThan(part.from);
      expect(part.to).toBeLessThanOrEqual(window.to);
      expect((part.to - part.from) % second).toBe(0);
      reached = part.to;
      if ((turns += 1) > 60) reached = window.to;
    }
    expect(reached).toBe(window.to);
  }
  expect(lowerHalf(span(0, 1))).toBeUndefined();
  expect(lowerHalf(span(0, 2))).toEqual(span(0, 1));
  expect(lowerHalf(span(0, 3))).toEqual(span(0, 1));
  expect(lowerHalf(span(5, 15))).toEqual(span(5, 10));
  // Half of a quarter of an hour is 450 s; half of that, 225 s, divides it too, but 112 s does not:
  // 100 s divide the quarter.
  expect(lowerHalf(span(0, 900))).toEqual(span(0, 450));
  expect(lowerHalf(span(0, 225))).toEqual(span(0, 100));
  // An irregular start: the first cut is at the next edge.
  expect(lowerHalf(span(51, 900))).toEqual(span(51, 300));
});

test.each([
  // base is 02:00:00. Aligned to a quarter of an hour after the first window, whatever the start.
  ['02:00:00', 15 * minute, '02:15:00'],
  ['02:00:51', 15 * minute, '02:15:00'],
  ['02:14:59', 15 * minute, '02:15:00'],
  ['02:07:00', 29 * minute, '02:15:00'],
  ['02:07:00', 30 * minute, '02:30:00'],
  ['02:07:00', hour, '03:00:00'],
  // Narrower windows divide it.
  ['02:00:00', 14 * minute, '02:07:30'],
  ['02:00:00', 10 * minute, '02:07:30'],
  ['02:00:00', 10 * second, '02:00:10'],
  ['02:00:07', 10 * second, '02:00:10'],
  ['02:00:00', 7 * second, '02:00:06'],
  ['02:00:00', 8 * second, '02:00:06'],
  ['02:00:03', second, '02:00:04'],
  ['02:00:03', 1, '02:00:04'],
  // Midnight is an edge of every width.
  ['23:59:59', hour, '00:00:00'],
  ['17:23:45', day, '00:00:00'],
  ['23:00:00', 10 * hour, '00:00:00'],
  ['02:00:00', 13 * hour, '12:00:00'],
  ['00:00:00', day, '00:00:00'],
])('a window that begins at %s and may span %i µs ends at %s', (from, most, end) => {
  const begin = at(`2026-11-20T${from}`);
  expect(new Date(endOf(begin, most) / 1000).toISOString().slice(11, 19)).toBe(end);
  expect(endOf(begin, most)).toBeGreaterThan(begin);
  expect(endOf(begin, most) - begin).toBeLessThanOrEqual(Math.max(most, second));
});

test('for any start, width and density, a window crosses no midnight, and after its second boundary no quarter of an hour unless both boundaries lie on one', () => {
  const random = seeded(12);
  for (let run = 0; run < 300; run += 1) {
    const most = between(random, 1, 86_400) * second;
    let from = base + between(random, 0, 86_400) * second;
    for (let n = 0; n < 40; n += 1) {
      const until = endOf(from, random() < 0.2 ? most / 2 : most);
      expect(Math.floor(from / day)).toBe(Math.floor((until - 1) / day));
      const isWithin = Math.floor(from / (15 * minute)) === Math.floor((until - 1) / (15 * minute));
      if (n > 0) expect(isWithin || (from % (15 * minute) === 0 && until % (15 * minute) === 0)).toBe(true);
      from = until;
    }
  }
});

test('windows tile whole seconds, end at least closeDelay ago, and are never wider than allowed', () => {
  const random = seeded(6);
  for (let i = 0; i < 300; i += 1) {
    const settles = [500_000, 10 * second, 15 * minute, 2 * hour][between(random, 0, 4)] ?? 0;
    const serverNow = base + between(random, 0, 40 * 86_400) * second + between(random, 0, second);
    let reached = base;
    for (let turn = 0; turn < 30; turn += 1) {
      const wish = between(random, 1, 100_000) * second + between(random, 0, 2) * 300_000;
      const window = nextWindow(reached, wish, serverNow, settles);
      if (!window) {
        // No window is due: closeDelay has not passed for the end of the next possible window.
        expect(reached + Math.min(wish, day)).toBeGreaterThan(serverNow - settles - second);
        break;
      }
      expect(window.from).toBe(reached);
      expect(window.to - window.from).toBeGreaterThanOrEqual(second);
      expect((window.to - base) % second).toBe(0);
      expect(Math.floor(window.from / day)).toBe(Math.floor((window.to - 1) / day));
      expect(window.to).toBeLessThanOrEqual(serverNow - settles);
      expect(window.to - window.from).toBeLessThanOrEqual(Math.max(second, Math.min(wish, day)));
      reached = window.to;
    }
  }
});

test.each([
  ['closeDelay, near the present', closeDelay, closeDelay, closeDelay],
  ['not below 10 s', second, second, 10 * second],
  ['not above 1 h', 5 * hour, hour, hour],
  ['the remaining history', closeDelay, 10 * hour, 10 * hour],
  ['at most a day', closeDelay, 400 * day, day],
])('the widest window is %s', (_what, settles, left, widest) => {
  expect(widestMicros(base, base + left, settles)).toBe(widest);
});

test.each([
  [600, 602 * 15, 598],
  [600, 602 * 100, 88],
  [600, 602 * 8, 1_123],
  [600, 602, 1_200],
  [600, 0, 1_200],
  [1, 9_999, 1],
  [3, 99_999, 1],
  [86_400, 0, 86_400],
])('after a window of %i s with %i records the next is %i s wide', (width, total, next) => {
  expect(nextWidth(width * second, total)).toBe(next * second);
  // The next window of the same density, with its padding, is proven without a split.
  if (next > 1) expect(((next + 2) * total) / (width + 2)).toBeLessThanOrEqual(recordsMax);
});

test('the density comes from the actual window, the bound from the width chosen before', () => {
  expect(nextWidth(600 * second, 62 * 100, 60 * second)).toBe(88 * second);
  expect(nextWidth(600 * second, 62, 60 * second)).toBe(1_200 * second);
});

test('the next recount is due at the first age still ahead; after the last age none is due', () => {
  const until = base;
  for (const [now, next] of [
    [base, hour],
    [base + hour - 1, hour],
    [base + hour, 6 * hour],
    [base + 2 * day, 3 * day],
    [base + 14 * day, 30 * day],
    [base + 30 * day - 1, 30 * day],
  ] as const)
    expect(nextRecount(until, ages, now)).toBe(until + next);
  expect(nextRecount(until, ages, base + 30 * day)).toBeUndefined();
  expect(nextRecount(until, [], base)).toBeUndefined();
});

test('a gap is retried after 1, 5 and 15 minutes, then at the ages of recounts, then once a day', () => {
  let now = base + closeDelay;
  const tried: number[] = [];
  for (let tries = 1; tries <= 13; tries += 1) {
    now = nextTry(base, tries, ages, now);
    tried.push(now - base);
  }
  const first = [1, 6, 21].map((minutes) => closeDelay + minutes * minute);
  expect(tried).toEqual([...first, ...ages, 31 * day, 32 * day, 33 * day]);
});
