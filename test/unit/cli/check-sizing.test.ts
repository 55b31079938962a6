import { expect, test } from 'vitest';
import { sizingLines } from '../../../src/cli/commands/check/sizing.ts';

const measured = {
  ...{ source: 'production', recordsPerSecond: 10, seconds: 7 * 86_400, recordBytes: 800, storedBytes: 200 },
  ...{ idleRequests: 9_792, pageSize: 1_000 },
};

test('journal size and requests per day follow from the rate, and the outage from the limit', () => {
  // 864,000 records a day: 172,800,000 bytes, and 1,728 pages more than when idle.
  expect(sizingLines([measured], 1_728_000_000)).toEqual([
    {
      subject: 'source production',
      level: 'ok',
      message: 'measured over 7 d: 10 records/s of 800 bytes; 165 MiB a day in the journal, at least 11,520 requests a day',
    },
    {
      subject: 'journal',
      level: 'ok',
      message: 'journal.maxSize 1.6 GiB is enough for an outage of every sink of about 10 d at the measured rate',
    },
  ]);
});

test('less than a day is a warning, over all sources together', () => {
  const [, , journal] = sizingLines([measured, { ...measured, source: 'other' }], 172_800_000);
  expect(journal).toMatchObject({ level: 'warning', message: expect.stringContaining('about 12 h') as string });
});

test('prints nothing without a measurement, and no outage without records', () => {
  expect(sizingLines([], 1)).toEqual([]);
  expect(sizingLines([{ ...measured, recordsPerSecond: 0 }], 1)).toHaveLength(1);
});
