import { expect, test } from 'vitest';
import { Budget, Budgets } from '../../../src/source/limits.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

const never = new AbortController().signal;

test('after an idle second a burst is possible, then one request follows another at the rate', async () => {
  const clock = new VirtualClock(0, 'manual');
  const budget = new Budget(clock, 10);
  const at: number[] = [];
  const start = clock.monotonic();
  const all = Promise.all(Array.from({ length: 25 }, () => budget.take(never).then(() => at.push(clock.monotonic() - start))));
  await clock.advance(5_000);
  await all;
  expect(at.slice(0, 10)).toEqual(Array(10).fill(0));
  expect(at.slice(10).map((ms) => Math.round(ms))).toEqual(Array.from({ length: 15 }, (_, n) => (n + 1) * 100));
});

test('never more in any second than the rate plus the burst, for any pattern', async () => {
  const clock = new VirtualClock(0, 'manual');
  const budget = new Budget(clock, 3);
  const at: number[] = [];
  for (let n = 0; n < 60; n += 1) {
    void budget.take(never).then(() => at.push(clock.monotonic()));
    await clock.advance((n * 7919) % 500);
  }
  await clock.advance(60_000);
  expect(at).toHaveLength(60);
  for (const from of at) expect(at.filter((each) => each >= from && each < from + 999).length).toBeLessThanOrEqual(6);
});

test('less than one a second is possible', async () => {
  const clock = new VirtualClock(0, 'manual');
  const budget = new Budget(clock, 0.1);
  await budget.take(never);
  const second = budget.take(never).then(() => clock.monotonic());
  const asked = clock.monotonic();
  await clock.advance(30_000);
  expect(await second).toBe(asked + 10_000);
});

test('waiting requests are served in order; an aborted one uses nothing and delays none', async () => {
  const clock = new VirtualClock(0, 'manual');
  const budget = new Budget(clock, 1);
  await budget.take(never);
  const stop = new AbortController();
  const served: string[] = [];
  const first = budget.take(stop.signal).catch((reason: unknown) => served.push(`first left: ${(reason as Error).message}`));
  const middle = new AbortController();
  void budget.take(middle.signal).catch(() => served.push('middle left'));
  const last = budget.take(never).then(() => served.push('last'));
  await clock.advance(500);
  middle.abort(new Error('enough'));
  stop.abort(new Error('enough'));
  await first;
  await clock.advance(499);
  expect(served.toSorted()).toEqual(['first left: enough', 'middle left']);
  await clock.advance(1);
  await last;
  expect(served.at(-1)).toBe('last');
});

test('an aborted signal uses nothing', async () => {
  const budget = new Budget(new VirtualClock(0, 'manual'), 1);
  await expect(budget.take(AbortSignal.abort(new Error('stop')))).rejects.toThrow('stop');
  await budget.take(never);
});

test('the sources of a group share one budget, at the lowest rate; other sources have separate ones', () => {
  const budgets = new Budgets(new VirtualClock(0, 'manual'));
  const one = budgets.of('one', 10, 'shared');
  expect(budgets.of('two', 4, 'shared')).toBe(one);
  expect(one.perSecond).toBe(4);
  expect(budgets.of('three', 10, undefined)).not.toBe(budgets.of('four', 10, undefined));
  expect(budgets.of('shared', 10, undefined)).not.toBe(one);
});

test('a source that has ended no longer limits the rate of its group', () => {
  const budgets = new Budgets(new VirtualClock(0, 'manual'));
  const shared = budgets.of('a', 10, 'tenant');
  budgets.of('b', 2, 'tenant');
  expect(shared.perSecond).toBe(2);
  budgets.release('b');
  expect(shared.perSecond).toBe(10);
  budgets.release('a');
  expect(budgets.of('a', 5, 'tenant')).toBe(shared);
  expect(shared.perSecond).toBe(5);
});
