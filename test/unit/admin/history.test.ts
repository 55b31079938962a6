/**
 * The history of the status page: bounded, with the largest lag of each interval, and rates of the
 * last minute.
 */
import { expect, test } from 'vitest';
import { History } from '../../../src/admin/page/history.ts';
import type { Sample } from '../../../src/admin/page/history.ts';

const second = 1_000_000;
const bounds = { maxSamples: 10, minInterval: 2 * second, maxInterval: 16 * second };

function sample(seconds: number, lagSeconds: number | null = 0, count = 0): Sample {
  return {
    at: seconds * second,
    sources: new Map([['production', { lagSeconds, collected: count }]]),
    sinks: new Map([['siem', { lagSeconds: lagSeconds ?? 0, acknowledged: count }]]),
  };
}

const times = (history: History) => history.samples.map(({ at }) => at / second);
const lags = (history: History) => history.samples.map(({ sources }) => sources.get('production')?.lagSeconds);

test('an hour of samples, one per second, stays within its bound and reaches back by its longest interval', () => {
  const history = new History(bounds);
  for (let at = 1; at <= 3_600; at += 1) {
    history.add(sample(at));
    expect(history.samples.length).toBeLessThanOrEqual(bounds.maxSamples);
  }
  expect(history.interval).toBe(bounds.maxInterval);
  expect(times(history).at(-1)).toBe(3_600);
  expect(times(history)[0]).toBeGreaterThanOrEqual(3_600 - 10 * 16);
  expect(times(history)[0]).toBeLessThanOrEqual(3_600 - 8 * 16);
});

test('a peak stays visible when samples are merged', () => {
  const history = new History(bounds);
  for (let at = 0; at < 60; at += 1) history.add(sample(at, at === 31 ? 500 : 3));
  expect(Math.max(...lags(history).map((lag) => lag ?? 0))).toBe(500);
  expect(history.samples.some(({ sinks }) => sinks.get('siem')?.lagSeconds === 500)).toBe(true);
});

test('a source whose ledger has not started has no lag, also when merged with a number', () => {
  const history = new History(bounds);
  history.add(sample(0, null));
  expect(lags(history)).toEqual([null]);
  history.add(sample(1, 7));
  expect(lags(history)).toEqual([7]);
});

test('rates cover the last minute, and are never negative', () => {
  const history = new History(bounds);
  expect(history.sourceRate('production')).toBeUndefined();
  for (let at = 0; at <= 300; at += 2) history.add(sample(at, 0, at <= 240 ? at * 100 : 24_000 + (at - 240) * 5));
  expect(history.sourceRate('production')).toBe(5);
  expect(history.sinkRate('siem')).toBe(5);
  expect(history.sinkRate('other')).toBeUndefined();
  // A position that went back.
  history.add(sample(302, 0, 10));
  expect(history.sinkRate('siem')).toBe(0);
});

test('a wall clock that is set back restarts the history', () => {
  const history = new History(bounds);
  for (const at of [100, 102, 104]) history.add(sample(at));
  history.add(sample(50));
  expect(times(history)).toEqual([50]);
});
