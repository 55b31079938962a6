import { describe, expect, test } from 'vitest';
import { closeDelayAdvice } from '../../../src/report/close-delay-advice.ts';
import { delayBounds, Delays, samples, seenLater, seenWithin } from '../../../src/telemetry/delays.ts';
import { between, seeded } from '../../support/records.ts';
import { now } from '../../support/report/snapshots.ts';

const second = 1e6;
const week = 7 * 86_400 * second;

/** A measurement in use: polled every 10 s, so that it contains no outage. */
function measured(seconds: readonly number[], kept?: ReturnType<Delays['measure']>): Delays {
  const delays = new Delays(kept, 10_000);
  // The first response ends the unobserved time: records dated before it do not count.
  delays.answered(now - 40 * 86_400 * second);
  expect(seconds.every((one) => delays.add(one, now))).toBe(true);
  return delays;
}

test('shares and counts agree with the sorted list, at the bucket bounds', () => {
  const random = seeded(5);
  const list = Array.from({ length: 5_000 }, () => Math.exp(random() * 12)).sort((a, b) => a - b);
  const measure = measured(list).measure();
  expect(samples(measure)).toBe(5_000);
  expect(measure.longest).toBe(list.at(-1));
  for (const share of [0.001, 0.5, 0.9, 0.99, 0.999, 1]) {
    const exact = list[Math.ceil(share * list.length) - 1] ?? 0;
    expect(seenWithin(measure, share)).toBe(delayBounds.find((bound) => bound >= exact));
  }
  for (const bound of delayBounds) expect(seenLater(measure, bound)).toBe(list.filter((one) => one > bound).length);
  // Between two bounds: never too few.
  for (const seconds of [7, 45, 700])
    expect(seenLater(measure, seconds)).toBeGreaterThanOrEqual(list.filter((one) => one > seconds).length);
});

test('no records, and delays above the last bound', () => {
  expect(seenWithin(new Delays(undefined, 10_000).measure(), 0.5)).toBeUndefined();
  const month = measured([2_592_000, 2_592_001]).measure();
  expect([seenWithin(month, 0.5), seenWithin(month, 1)]).toEqual([2_592_000, Infinity]);
});

describe('records delayed by an outage do not count', () => {
  test('records dated in it do not, but those before and after it do', () => {
    const delays = new Delays(undefined, 10_000);
    delays.answered(now - 7_200 * second);
    for (let at = 7_200; at >= 3_600; at -= 10) delays.answered(now - at * second);
    delays.answered(now);
    expect(delays.add(1_800, now + second)).toBe(false);
    expect(delays.add(3_605, now + second)).toBe(false);
    expect(delays.add(5_400, now + second)).toBe(true);
    expect(delays.add(5, now + 10 * second)).toBe(true);
    expect(samples(delays.measure())).toBe(2);
  });

  test('the time between two processes is an outage, and so is the time before the first response', () => {
    const first = new Delays(undefined, 10_000);
    first.answered(now);
    expect(first.add(30, now + second)).toBe(false);
    expect(first.add(3, now + 10 * second)).toBe(true);
    const after = new Delays(first.measure(), 10_000);
    after.answered(now + 3_600 * second);
    expect(after.add(1_800, now + 3_601 * second)).toBe(false);
    expect(after.add(10, now + 3_700 * second)).toBe(true);
    expect(samples(after.measure())).toBe(2);
  });

  test('an infrequent poll is not an outage', () => {
    const delays = new Delays(undefined, 3_600_000);
    delays.answered(now);
    delays.answered(now + 3_600 * second);
    expect(delays.add(3_000, now + 3_601 * second)).toBe(true);
  });
});

test('old weeks are forgotten: a measurement covers one to two weeks', () => {
  const delays = new Delays(undefined, 10_000);
  delays.answered(now - 40 * 86_400 * second);
  delays.add(1, now);
  delays.add(2, now + 0.9 * week);
  expect(samples(delays.measure())).toBe(2);
  delays.add(3, now + 1.1 * week);
  expect(delays.measure()).toMatchObject({ before: expect.arrayContaining([1]) as number[] });
  expect(samples(delays.measure())).toBe(3);
  delays.add(4, now + 2.2 * week);
  expect(samples(delays.measure())).toBe(2);
  delays.add(5, now + 9 * week);
  expect(samples(delays.measure())).toBe(1);
});

test('stored counts are restored; counts of another release with other bounds are discarded', () => {
  const kept = JSON.parse(JSON.stringify(measured([1, 70, 4_000]).measure())) as ReturnType<Delays['measure']>;
  expect(samples(measured([5], kept).measure())).toBe(4);
  expect(samples(measured([5], { ...kept, recent: [1, 2, 3] }).measure())).toBe(1);
});

describe('advice on closeDelay', () => {
  const some = (quick: number, slow: number, seconds: number) =>
    measured([...Array.from({ length: quick }, (_, i) => 1 + (i % 40)), ...Array.from({ length: slow }, () => seconds)]).measure();

  test('too short: the smallest value that leaves one in a thousand', () => {
    expect(closeDelayAdvice(some(9_900, 100, 1_500), 900)).toEqual({
      level: 'warning',
      message:
        'of 10,000 records 99 % were first seen within 60 s, 99.9 % within 30 min; 1.00 % were later than closeDelay (15 min), with closeDelay: 30m it would be 0.00 %',
    });
    expect(closeDelayAdvice(some(9_900, 100, 100_000), 900)?.message).toContain('with closeDelay: 6h it would be 1.00 %');
    expect(closeDelayAdvice(some(9_900, 100, 100_000), 21_600)).toMatchObject({ level: 'ok' });
  });

  test('long enough, or longer than needed; never so short that polling becomes too frequent', () => {
    expect(closeDelayAdvice(some(9_995, 5, 1_500), 900)).toMatchObject({
      level: 'ok',
      message: expect.stringContaining('closeDelay (15 min) is appropriate') as string,
    });
    expect(closeDelayAdvice(some(10_000, 0, 0), 900)).toMatchObject({
      level: 'ok',
      message: expect.stringContaining('closeDelay: 5m would be enough: each record would be proven about 20 min sooner') as string,
    });
    expect(closeDelayAdvice(some(10_000, 0, 0), 300)?.message).toContain('is appropriate');
  });

  test('few records give no advice', () => {
    expect(closeDelayAdvice(some(500, 499, 1_500), 900)).toMatchObject({
      level: 'ok',
      message: expect.stringContaining('too few') as string,
    });
    expect(closeDelayAdvice(new Delays(undefined, 10_000).measure(), 900)).toBeUndefined();
  });

  test('of a random list: the suggested value is the smallest sufficient one, counted in the list', () => {
    const random = seeded(11);
    for (let round = 0; round < 40; round += 1) {
      const spread = 1 + random() * 9;
      const list = Array.from({ length: 2_000 }, () => Math.exp(random() * random() * spread));
      const closeDelay = [300, 900, 3_600][between(random, 0, 3)] ?? 900;
      const found = closeDelayAdvice(measured(list).measure(), closeDelay);
      const later = (seconds: number): number => list.filter((one) => one > seconds).length / list.length;
      const suggested = /closeDelay: (\d+)([mh])/.exec(found?.message ?? '');
      const seconds = suggested ? Number(suggested[1]) * (suggested[2] === 'h' ? 3_600 : 60) : undefined;
      if (later(closeDelay) > 0.001) {
        expect(found?.level).toBe('warning');
        expect(seconds).toBe([300, 600, 900, 1_800, 3_600, 7_200, 21_600].find((one) => one > closeDelay && later(one) <= 0.001));
      } else expect(found?.level).toBe('ok');
      if (seconds !== undefined && seconds < closeDelay) expect(later(seconds)).toBeLessThanOrEqual(0.0001);
    }
  });
});
