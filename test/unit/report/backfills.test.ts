import { describe, expect, test } from 'vitest';
import { nextWindow } from '../../../src/collect/windows.ts';
import { estimate, estimateText } from '../../../src/cli/commands/backfill/watch.ts';
import type { BackfillProgress } from '../../../src/model/ledger.ts';
import { backfillLines, backfillText, shorten, secondsLeft, share } from '../../../src/report/backfills.ts';

const at = (text: string): number => Date.parse(text) * 1000;
const progress = (more: Partial<BackfillProgress> = {}): BackfillProgress => ({
  from: at('2026-01-01T00:00:00Z'),
  to: at('2026-01-11T00:00:00Z'),
  closedUntil: at('2026-01-03T12:00:00Z'),
  state: 'running',
  windows: 12,
  records: 1_234_567,
  gaps: 0,
  order: { asked: 0, paused: false, expected: 2_995_000 },
  ...more,
});

describe('the progress of a backfill', () => {
  test('by records if the service counted them, otherwise by time; 100 % only at its end', () => {
    expect(share(progress())).toBeCloseTo(1_234_567 / 2_995_000);
    expect(share(progress({ order: { asked: 0, paused: false } }))).toBe(0.25);
    // The count includes padding and grows; a share above 1 is capped.
    expect(share(progress({ records: 3_000_000 }))).toBe(0.999);
    expect(share(progress({ records: 2_000_000, state: 'done' }))).toBe(1);
    expect(share(progress({ records: 0, closedUntil: at('2026-01-01T00:00:00Z'), order: { asked: 0, paused: false, expected: 0 } }))).toBe(
      0,
    );
  });

  test('as text: share, records, position, gaps, speed and remaining time; a paused one has no speed', () => {
    expect(backfillText(progress({ perSecond: 3_100.4, secondsLeft: 760 }))).toBe(
      '41.2 % (1,234,567 of 2,995,000 records), up to 2026-01-03T12:00:00Z, 3,100 records/s, 12 min left',
    );
    expect(backfillText(progress({ state: 'paused', gaps: 1, perSecond: 5 }))).toBe(
      '41.2 % (1,234,567 of 2,995,000 records), up to 2026-01-03T12:00:00Z, 1 window is a gap, paused',
    );
    expect(backfillText(progress({ order: { asked: 0, paused: false } }))).toBe('25.0 % (1,234,567 records), up to 2026-01-03T12:00:00Z');
  });

  test('the remaining time follows from the speed, and is absent without a count', () => {
    expect(secondsLeft(progress({ records: 995_000 }), 1_000)).toBe(2_000);
    expect(secondsLeft(progress(), 0)).toBeUndefined();
    expect(secondsLeft(progress({ order: { asked: 0, paused: false } }), 1_000)).toBeUndefined();
  });

  test('status shows at most two lines, the last of which counts the others', () => {
    const sources = [{ id: 'a', backfills: [progress()] }, { id: 'b' }, { id: 'c', backfills: [progress(), progress()] }];
    const lines = backfillLines(sources, 2);
    expect(lines).toHaveLength(2);
    expect(lines[0]).toMatch(/^BACKFILL {2}a, 2026-01-01T00:00:00Z to 2026-01-11T00:00:00Z: 41\.2 %/);
    expect(lines[1]).toBe('BACKFILL  and 2 more: waybill backfill list');
    expect(backfillLines([{ id: 'a' }], 2)).toEqual([]);
  });
});

test.each([
  ['2026-01-01T00:00:00Z', 'cancelled: nothing was collected'],
  ['2026-01-03T12:00:00Z', 'cancelled: the range now ends at 2026-01-03T12:00:00Z'],
  [
    '2026-01-11T00:00:00Z',
    'nothing was cancelled: the window in progress reaches the end of the range, 2026-01-11T00:00:00Z, and is still read',
  ],
])('a cancelled backfill, which ends at %s', (ends, words) => {
  expect(shorten(progress(), at(ends))).toBe(words);
});

describe('the estimate of a backfill', () => {
  const days = (count: number) => [{ from: at('2026-01-01T00:00:00Z'), to: at('2026-01-01T00:00:00Z') + count * 86_400_000_000 }];

  const closeDelay = 900_000_000;
  const long = { settled: at('2026-06-01T00:00:00Z'), closeDelay };
  const pace = (perSecond: number, bytes?: number) => ({ pageSize: 1_000, perSecond, bytes });

  test('windows by records or by days, whichever are more; requests by windows and pages; the duration by the rate', () => {
    expect(estimate(0, days(30), pace(10), long)).toEqual({ records: 0, windows: 30, requests: 60, seconds: 6, bytes: 0 });
    // A window of 9,000 records spans 388.8 s: the widest width that divides a quarter of an hour is
    // 300 s, 288 of them a day.
    expect(estimate(2_000_000, days(1), pace(2, 90), long)).toEqual({
      records: 2_000_000,
      windows: 288,
      requests: 2_576,
      seconds: 1_288,
      bytes: 180_000_000,
    });
    // With many requests per second the records determine the duration.
    expect(estimate(2_000_000, days(1), pace(1_000, 90), long).seconds).toBe(100);
  });

  test('near the present windows are narrower: at most the time before the closed limit', () => {
    const to = at('2026-01-01T10:00:00Z');
    // 8 h and 2 h divide the day; 9 h and 10 h do not.
    const range = { from: to - 36_000_000_000, to: to };
    expect(estimate(0, [range], pace(10), { settled: to, closeDelay }).windows).toBe(2);
    // As the collector plans them.
    let planned = 0;
    for (let closedUntil = range.from; closedUntil < to; planned += 1)
      closedUntil = nextWindow(closedUntil, Number.MAX_SAFE_INTEGER, to + closeDelay, closeDelay, to)?.to ?? to;
    expect(planned).toBe(2);
    // If the range is eleven days older, one window holds all ten hours.
    expect(estimate(0, [range], pace(10), { settled: to + 11 * 86_400_000_000, closeDelay }).windows).toBe(1);
  });

  test('in one line', () => {
    expect(estimateText(estimate(2_000_000, days(1), pace(2, 90), long))).toBe(
      'about 2,000,000 records, 288 windows, 2,576 requests, 21 min (0.36 hours) at least, 172 MiB in the journal',
    );
  });
});
