import { expect, test } from 'vitest';
import type { Snapshot } from '../../../src/model/snapshot.ts';
import { journalForecast } from '../../../src/report/journal-forecast.ts';
import { statusJson } from '../../../src/report/status-json.ts';
import { sink, snapshot } from '../../support/report/snapshots.ts';

const mib = 2 ** 20;
const journal = (change: Partial<Snapshot['journal']> = {}): Snapshot['journal'] => ({
  ...{ bytes: 200 * mib, maxSize: 1_000 * mib, head: 3_000, pruned: 1_000, paused: undefined, directory: '/state' },
  ...change,
});
const blocked = sink({ state: 'blocked', lagEntries: 1_000, lagSeconds: 3_600 });

test('the free space is divided by the rate since the sink stopped', () => {
  // 2,000 entries take 200 MiB. 1,000 of them, 100 MiB, came within the hour; 900 MiB are left.
  expect(journalForecast({ journal: journal(), sinks: [sink(), blocked] })).toEqual({ secondsUntilFull: 9 * 3_600, sink: blocked.id });
  expect(journalForecast({ journal: journal({ bytes: 300 * mib, setAside: 100 * mib }), sinks: [blocked] })?.secondsUntilFull).toBe(
    8 * 3_600,
  );
});

test('the slowest sink determines it, unless it delivers', () => {
  const slow = { ...blocked, id: 'slow', state: 'retrying', lagEntries: 2_000, lagSeconds: 7_200 };
  const busy = { ...blocked, id: 'busy', state: 'active', lagEntries: 2_900 };
  expect(journalForecast({ journal: journal(), sinks: [busy, blocked, slow] })).toEqual({ secondsUntilFull: 8 * 3_600, sink: 'slow' });
});

test.each<[string, Partial<Snapshot['journal']>, object]>([
  ['no sink fails', {}, { state: 'active' }],
  ['no daemon runs', {}, { state: 'stopped' }],
  ['a sink has failed for minutes', {}, { lagSeconds: 599 }],
  ['a failing sink lacks nothing', {}, { lagEntries: 0 }],
  ['collection is paused', { paused: 'journal_full' }, {}],
  ['the limit is unknown', { maxSize: 0 }, {}],
])('no forecast while %s', (_what, of, change) => {
  expect(journalForecast({ journal: journal(of), sinks: [{ ...blocked, ...change }] })).toBeUndefined();
});

test('a journal that is over its limit is full now', () => {
  expect(journalForecast({ journal: journal({ bytes: 2_000 * mib }), sinks: [blocked] })?.secondsUntilFull).toBe(0);
});

test('the JSON of status carries the forecast, and null while the journal does not grow', () => {
  const forecast = (...sinks: Snapshot['sinks']) => statusJson(snapshot({ journal: journal(), sinks })).journal.forecast;
  expect(forecast(sink(), blocked)).toEqual({ secondsUntilFull: 9 * 3_600, sink: blocked.id });
  expect(forecast(sink())).toBeNull();
});
