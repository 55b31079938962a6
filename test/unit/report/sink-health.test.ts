import { expect, test } from 'vitest';
import type { SinkSnapshot } from '../../../src/model/snapshot.ts';
import { isFailing, sinkNeedsYou } from '../../../src/report/sink-health.ts';
import { sink } from './snapshots.ts';

// The rule: a sink that never delivered, or whose last three attempts failed, fails.
test.each([
  [{ tries: 0 }, false],
  [{ tries: 2, state: 'waiting' }, false],
  [{ tries: 3, state: 'waiting' }, true],
  [{ everDelivered: false, tries: 0 }, false],
  [{ everDelivered: false, tries: 1, state: 'waiting' }, true],
  [{ tries: 0, trouble: 'over its time' }, false],
  [{ tries: 9, state: 'retired' }, false],
  [{ everDelivered: false, lagSeconds: 59 }, false],
  [{ everDelivered: false, lagSeconds: 60 }, true],
  // What a stopped daemon tried is not known.
  [{ everDelivered: false, state: 'stopped', lagSeconds: 900 }, false],
])('%j', (change, expected) => {
  expect(isFailing(sink(change))).toBe(expected);
});

test.each<[string, Partial<SinkSnapshot>, boolean]>([
  ['that delivers', {}, false],
  ['that failed twice in a row', { state: 'waiting', tries: 2, lagSeconds: 500, lagRecords: 1 }, false],
  ['that failed three times in a row', { state: 'waiting', tries: 3 }, true],
  ['that never delivered and failed once', { everDelivered: false, state: 'waiting', tries: 1 }, true],
  ['that never delivered while records wait for a minute', { everDelivered: false, lagRecords: 1, lagSeconds: 60 }, true],
  ['that never delivered, and has had less than a minute', { everDelivered: false, lagRecords: 1, lagSeconds: 59.9 }, false],
  ['that never delivered, and there is nothing to deliver', { everDelivered: false }, false],
  ['that was retired', { everDelivered: false, state: 'retired', tries: 9 }, false],
  ['that is blocked', { state: 'blocked' }, true],
  ['that is gone from the configuration', { state: 'orphaned' }, true],
  ['of a stopped daemon, whose attempts are not known', { everDelivered: false, state: 'stopped', lagSeconds: 900 }, false],
  ['in trouble', { trouble: 'no answer for 15 min' }, true],
])('a sink %s needs attention or not', (_, change, needs) => {
  expect(sinkNeedsYou(sink(change))).toBe(needs);
});
