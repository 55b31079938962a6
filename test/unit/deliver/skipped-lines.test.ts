import { expect, test } from 'vitest';
import { reached, type Reached } from '../../../src/deliver/skipped-lines.ts';
import { skippedLines, type LineRange } from '../../../src/model/journal.ts';

const lines = (...ends: readonly (readonly [number, number])[]): LineRange[] => ends.map(([after, through]) => ({ after, through }));
const begin: Reached = { at: 0 };

test('keeps missing lines up to the last line read, and merges adjacent ranges', () => {
  const first = reached(begin, { after: 0, through: 50 }, lines([0, 10], [10, 20], [30, 40], [60, 70]));
  expect(first).toEqual({ at: 50, skipped: lines([0, 20], [30, 40]), abandoned: 0 });
  expect(skippedLines(first)).toBe(30);
  expect(reached(first, { after: 50, through: 80 }, lines([60, 70]))).toEqual({
    ...{ at: 80, skipped: lines([0, 20], [30, 40], [60, 70]), abandoned: 0 },
  });
});

test('removes the lines that were restored, and only these', () => {
  const skipped: Reached = { at: 100, skipped: lines([0, 20], [30, 40], [60, 70]) };
  const first = reached(skipped, { after: 0, through: 5 }, []);
  expect(first).toMatchObject({ at: 100, skipped: lines([5, 20], [30, 40], [60, 70]) });
  // Line 12 to 20 are still missing, and all of the second range.
  const second = reached(first, { after: 5, through: 65 }, lines([12, 20], [30, 40]));
  expect(second).toMatchObject({ at: 100, skipped: lines([12, 20], [30, 40], [65, 70]) });
  expect(reached(second, { after: 65, through: 120 }, [])).toMatchObject({ at: 120, skipped: lines([12, 20], [30, 40]) });
});

test('keeps the longest ranges of an archive with very many holes, and counts the others', () => {
  let progress = begin;
  let missing = 0;
  for (let i = 0; i < 2_000; i += 1) {
    const length = 1 + (i % 7);
    missing += length;
    progress = reached(progress, { after: i * 10, through: (i + 1) * 10 }, lines([i * 10, i * 10 + length]));
  }
  expect(progress.skipped).toHaveLength(256);
  expect(skippedLines(progress)).toBe(missing);
  expect(new Set(progress.skipped?.map(({ after, through }) => through - after))).toEqual(new Set([7]));
  expect(JSON.stringify(progress).length).toBeLessThan(10_000);
});

test('looks for each of the 256 ranges before it gives one up', () => {
  const skipped = Array.from({ length: 256 }, (_, i) => ({ after: i * 20, through: i * 20 + 10 }));
  const first = reached({ at: 9_000, skipped }, { after: 0, through: 5 }, lines([0, 4]));
  expect(first).toEqual({ at: 9_000, skipped: [...lines([0, 4], [5, 10]), ...skipped.slice(1)], abandoned: 0 });
  const missing = skipped.slice(1).flatMap(({ after, through }) => lines([after, after + 4], [after + 5, through]));
  expect(reached(first, { after: 5, through: 9_000 }, missing).skipped).toHaveLength(256);
});

test('stays bounded when each attempt ends earlier than the one before', () => {
  let progress: Reached = { at: 2 ** 20 };
  for (let through = 2 ** 20; through > 2 ** 10; through /= 2) {
    const step = through / 256;
    const missing = Array.from({ length: 256 }, (_, i) => ({ after: i * step, through: i * step + step / 2 }));
    progress = reached(progress, { after: 0, through }, missing);
  }
  expect(progress.skipped).toHaveLength(1_024);
});
