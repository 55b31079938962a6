import { expect, test } from 'vitest';
import { StateCounts } from '../../../src/journal/window-counts.ts';

// Status, coverage and metrics count groups of equal windows; the report counts them one by one.
test('a group of equal windows counts each of them', () => {
  const states = (['gap', 'accepted', 'final'] as const).map((state, i) => ({ state, reason: null, count: 3 + i }));
  const groups = [...states, { state: 'proven', reason: 'reread', count: 6 } as const];
  const counts = { all: 18, proven: 5, final: 5, gap: 3, accepted: 4, inDoubt: 6 };
  expect(StateCounts.of(groups)).toMatchObject(counts);
  expect(StateCounts.sum([StateCounts.of(groups), StateCounts.of(groups)])).toEqual({
    all: 36,
    proven: 10,
    final: 10,
    gap: 6,
    accepted: 8,
    inDoubt: 12,
  });
});
