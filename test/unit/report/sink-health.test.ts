import { expect, test } from 'vitest';
import { isFailing, isHealthy } from '../../../src/report/sink-health.ts';
import { sink } from './snapshots.ts';

// The rule: a sink that never delivered, or whose last three attempts failed, is not healthy.
test.each([
  [{ tries: 0 }, { failing: false, healthy: true }],
  [
    { tries: 2, state: 'waiting' },
    { failing: false, healthy: false },
  ],
  [
    { tries: 3, state: 'waiting' },
    { failing: true, healthy: false },
  ],
  [
    { everDelivered: false, tries: 0 },
    { failing: false, healthy: false },
  ],
  [
    { everDelivered: false, tries: 1, state: 'waiting' },
    { failing: true, healthy: false },
  ],
  [
    { tries: 0, trouble: 'over its time' },
    { failing: false, healthy: false },
  ],
  [
    { tries: 9, state: 'retired' },
    { failing: false, healthy: false },
  ],
  [
    { everDelivered: false, lagSeconds: 59 },
    { failing: false, healthy: false },
  ],
  [
    { everDelivered: false, lagSeconds: 60 },
    { failing: true, healthy: false },
  ],
  // What a stopped daemon tried is not known.
  [
    { everDelivered: false, state: 'stopped', lagSeconds: 900 },
    { failing: false, healthy: false },
  ],
])('%j', (change, expected) => {
  const each = sink(change);
  expect({ failing: isFailing(each), healthy: isHealthy(each) }).toEqual(expected);
});
