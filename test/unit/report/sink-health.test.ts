import { expect, test } from 'vitest';
import type { SinkSnapshot } from '../../../src/model/snapshot.ts';
import { isFailing, sinkNeedsAttention } from '../../../src/report/sink-health.ts';
import { replay, sink } from '../../support/report/snapshots.ts';

// The rule: a sink that never delivered, or whose last three attempts failed, fails.
test.each([
  [{ attempts: 0 }, false],
  [{ attempts: 2, state: 'retrying' }, false],
  [{ attempts: 3, state: 'retrying' }, true],
  [{ hasDelivered: false, attempts: 0 }, false],
  [{ hasDelivered: false, attempts: 1, state: 'retrying' }, true],
  [{ attempts: 0, trouble: 'over its time' }, false],
  [{ attempts: 9, state: 'retired' }, false],
  [{ hasDelivered: false, lagSeconds: 59 }, false],
  [{ hasDelivered: false, lagSeconds: 60 }, true],
  // Attempts of a stopped daemon are unknown.
  [{ hasDelivered: false, state: 'stopped', lagSeconds: 900 }, false],
])('%j', (change, expected) => {
  expect(isFailing(sink(change))).toBe(expected);
});

test.each<[string, Partial<SinkSnapshot>, boolean]>([
  ['that delivers', {}, false],
  ['that failed twice in a row', { state: 'retrying', attempts: 2, lagSeconds: 500, lagRecords: 1 }, false],
  ['that failed three times in a row', { state: 'retrying', attempts: 3 }, true],
  ['that never delivered and failed once', { hasDelivered: false, state: 'retrying', attempts: 1 }, true],
  ['that never delivered while records wait for a minute', { hasDelivered: false, lagRecords: 1, lagSeconds: 60 }, true],
  ['that never delivered, and has had less than a minute', { hasDelivered: false, lagRecords: 1, lagSeconds: 59.9 }, false],
  ['that never delivered, and there is nothing to deliver', { hasDelivered: false }, false],
  ['that was retired', { hasDelivered: false, state: 'retired', attempts: 9 }, false],
  ['that is blocked', { state: 'blocked' }, true],
  ['that is not in the configuration', { state: 'unconfigured' }, true],
  ['of a stopped daemon, whose attempts are not known', { hasDelivered: false, state: 'stopped', lagSeconds: 900 }, false],
  ['in trouble', { trouble: 'no answer for 15 min' }, true],
  ['whose replay reads an archive', { replay: replay() }, false],
  ['whose replay cannot read its archive', { replay: replay({ state: 'failed', error: 'cannot read "checkpoint"' }) }, true],
])('a sink %s needs attention or not', (_, change, needs) => {
  expect(sinkNeedsAttention(sink(change))).toBe(needs);
});
