import { describe, expect, test } from 'vitest';
import { mayBeForgotten } from '../../../src/journal/uid-retention.ts';
import { bucketMicros } from '../../../src/journal/seen-uids.ts';
import { base, collected, day, hour, second } from '../../support/records.ts';
import { beside, gap, lastAge, opened, pageOf, proven, source, temporary } from '../../support/journal/opening.ts';

const at = (days: number): number => base + days * day;

test('uids are kept for the last recount age, and no longer', async () => {
  const { journal, beside } = await opened();
  const records = [collected(1, base), collected(2, at(1)), collected(3, at(31) - second)];
  await journal.append(pageOf(records));
  await journal.close(source, { from: base, to: at(30) }, proven(2), lastAge);
  expect(journal.progress(source).live.uidsKeptSince).toBe(base);
  expect(await journal.append(pageOf(records))).toMatchObject({ known: 3 });
  await journal.close(source, { from: at(30), to: at(31) }, proven(1), lastAge);
  expect(journal.progress(source).live.uidsKeptSince).toBe(at(1));
  // The first is before the limit: outside, not appended again; the second is exactly on it.
  expect(await journal.append(pageOf(records))).toMatchObject({ appended: 0, known: 2, outside: 1 });
  expect(
    beside()
      .prepare('SELECT count(*) AS n FROM seen WHERE bucket < ?')
      .get(at(1) / (600 * second)),
  ).toEqual({ n: 0 });
  expect(beside().prepare('SELECT count(*) AS n FROM seen').get()).toEqual({ n: 2 });
});

test('a window with a pending recount keeps its uids', async () => {
  const { journal } = await opened();
  await journal.close(source, { from: base, to: at(1) }, proven(), lastAge);
  await journal.close(source, { from: at(1), to: at(2) }, proven(0, at(2), at(90)), lastAge);
  await journal.close(source, { from: at(2), to: at(80) }, proven(), lastAge);
  expect(journal.progress(source).live.uidsKeptSince).toBe(at(1));
  await journal.confirm(source, { from: at(1), to: at(2) }, undefined, at(90), lastAge);
  expect(journal.progress(source).live.uidsKeptSince).toBe(at(50));
});

test('a gap keeps its uids until it is final', async () => {
  const { journal } = await opened();
  const record = collected(1, at(1) + hour);
  await journal.append(pageOf([record]));
  await journal.close(source, { from: base, to: at(1) }, proven(), lastAge);
  await journal.close(source, { from: at(1), to: at(2) }, gap({}, undefined), lastAge);
  await journal.close(source, { from: at(2), to: at(80) }, proven(), lastAge);
  expect(journal.progress(source).live.uidsKeptSince).toBe(at(1));
  expect(await journal.append(pageOf([record]))).toMatchObject({ known: 1 });
  await journal.close(source, { from: at(1), to: at(2) }, proven(1), lastAge);
  expect(journal.progress(source).live.uidsKeptSince).toBe(at(50));
});

test('windows closed since the last full visibility are remembered, and so are windows that a suspension lists', async () => {
  const { journal } = await opened();
  const remembered = (): number => journal.progress(source).live.uidsKeptSince;
  journal.lastFullVisibility(source, at(40));
  await journal.close(source, { from: base, to: at(1) }, proven(0, at(39)), lastAge);
  await journal.close(source, { from: at(1), to: at(2) }, proven(0, at(40)), lastAge);
  await journal.close(source, { from: at(2), to: at(80) }, proven(0, at(80)), lastAge);
  expect(remembered()).toBe(at(1));
  journal.lastFullVisibility(source, at(80));
  const listed = { reason: 'reread', message: 'the service shows fewer', next: undefined, attempts: 1 } as const;
  await journal.remark(source, { from: at(2), to: at(80) }, listed, at(81), lastAge);
  expect(remembered()).toBe(at(2));
  await journal.close(source, { from: at(80), to: at(120) }, proven(0, at(120)), lastAge);
  expect(remembered()).toBe(at(2));
  await journal.acceptGap(source, at(2), { at: at(121), actor: 'uid 1000', reason: 'deleted' });
  journal.lastFullVisibility(source, at(121));
  await journal.close(source, { from: at(120), to: at(121) }, proven(0, at(121) - 1), lastAge);
  expect(remembered()).toBe(at(91));
});

test('a range of history read without confirmed visibility is forgotten completely once visibility is confirmed', async () => {
  const { journal, beside } = await opened();
  journal.history.add(source, { from: base - 10 * day, to: base }, {}, { actor: 'uid 1000', reason: undefined });
  await journal.append(pageOf([collected(1, base - day)], { window: { from: base - 10 * day, to: base } }));
  journal.lastFullVisibility(source, 0);
  await journal.close(source, { from: base - 10 * day, to: base }, proven(1, at(1)), 0);
  await journal.close(source, { from: base, to: at(60) }, proven(0, at(60)), lastAge);
  const seen = (): unknown => beside().prepare('SELECT count(*) AS n FROM seen').get();
  expect(seen()).toEqual({ n: 1 });
  journal.lastFullVisibility(source, at(61));
  await journal.close(source, { from: at(60), to: at(61) }, proven(0, at(61)), lastAge);
  expect(seen()).toEqual({ n: 0 });
});

test('uidsKeptSince never goes back, not even with a longer last recount age', async () => {
  const { journal } = await opened();
  await journal.close(source, { from: base, to: at(40) }, proven(), lastAge);
  expect(journal.progress(source).live.uidsKeptSince).toBe(at(10));
  await journal.close(source, { from: at(40), to: at(41) }, proven(), 90 * day);
  expect(journal.progress(source).live.uidsKeptSince).toBe(at(10));
});

test('a window read for a proof never loses a record to deleted uids: an invariant', async () => {
  const { journal } = await opened();
  await journal.close(source, { from: base, to: at(31) }, proven(), lastAge);
  const window = { from: base, to: at(2) };
  await expect(journal.append(pageOf([collected(1, base + hour)], { window }))).rejects.toMatchObject({ code: 'internal_error' });
});

test('padding before the limit, or before the start, is outside', async () => {
  const { journal } = await opened();
  await journal.close(source, { from: base, to: at(31) }, proven(), lastAge);
  const window = { from: at(31), to: at(31) + hour };
  const before = collected(1, base - 1);
  const forgotten = collected(2, at(1) - 1);
  const padding = collected(3, at(31) - 1);
  const page = pageOf([before, forgotten, padding], { window });
  expect(await journal.append(page)).toMatchObject({ appended: 1, outside: 2, late: 1 });
});

test('with two ranges both must have passed a bucket, or a day, before it is forgotten', async () => {
  const directory = temporary();
  const first = await opened({ directory });
  await first.close();
  // A backfill range before the live one, as `backfill` writes it; the journal reads ranges when it
  // is opened.
  const db = beside(directory);
  db.prepare('INSERT INTO ranges (source, from_us, to_us, closed_until_us, uids_kept_since_us) VALUES (1, ?, ?, ?, ?)').run(
    base - 10 * day,
    base,
    base - 10 * day,
    base - 10 * day,
  );
  const { journal } = await opened({ directory });
  const page = [collected(1, base + hour), collected(2, undefined), collected(3, base - day)];
  await journal.append(pageOf(page, { window: { from: base - 10 * day, to: base } }));
  await journal.close(source, { from: base, to: at(60) }, proven(), lastAge);
  expect(journal.progress(source).live.uidsKeptSince).toBe(at(30));
  const buckets = (): number[] =>
    journal.db
      .prepare<[], { bucket: number }>('SELECT bucket FROM seen ORDER BY bucket')
      .all()
      .map(({ bucket }) => bucket);
  expect(buckets()).toHaveLength(3);
  // A backfill moves no frontier.
  await journal.close(source, { from: base - 10 * day, to: base }, gap(), 0);
  expect(journal.progress(source).frontier).toBe(at(60));
  expect(buckets()).toHaveLength(3);
  await journal.close(source, { from: base - 10 * day, to: base }, proven(), 0);
  // The range is read to its end and resolved: forgotten completely, it blocks nothing, and the
  // live range has passed all buckets.
  expect(buckets()).toEqual([]);
});

describe('which uids may be deleted', () => {
  // Times in buckets of ten minutes.
  const range = (from: number, to: number | null, remembered: number): { from: number; to: number | null; uidsKeptSince: number } => ({
    from: from * bucketMicros,
    to: to === null ? null : to * bucketMicros,
    uidsKeptSince: remembered * bucketMicros,
  });
  const live = range(100, null, 140);
  test.each([
    ['nothing of a range that has just begun', [range(0, 50, 0), live], 0, 10, false],
    ['all of a range that is forgotten whole, whatever older ranges remember', [range(0, 50, 0), range(50, 90, 90), live], 60, 60.5, true],
    ['its last bucket too, where it ends within one', [range(50, 89.5, 89.5), live], 89.1, 89.4, true],
    ['not the bucket in which a range that is still read remembers', [range(50, 90, 70.5), live], 70.1, 70.2, false],
    ['the bucket before it', [range(50, 90, 70.5), live], 69.1, 69.2, true],
    ['a bucket that starts before the limit and ends after it', [live], 138, 150, true],
    ['no bucket after the limit', [live], 140, 150, false],
    [
      'the newer part of a bucket of two ranges, although the older one is remembered',
      [range(0, 50, 0), range(50, 90, 90)],
      49.9,
      50.1,
      true,
    ],
    ['none without a range', [range(50, 90, 90), live], 95, 99, false],
  ])('%s', (_, ranges, min, max, expected) => {
    expect(mayBeForgotten(ranges, min * bucketMicros, max * bucketMicros)).toBe(expected);
  });
});
