import { expect, test } from 'vitest';
import type { Micros } from '../../../src/model/time.ts';
import { base, day, hour, minute, second } from '../../support/records.ts';
import { lastAge, proven, source as sourceId } from '../../support/journal/opening.ts';
import { appended, owned, world } from '../../support/collect/world.ts';
import type { World } from '../../support/collect/world.ts';

/**
 * The start of the last poll, in seconds from `base`. Polls have no end, so that records of a node
 * whose clock is ahead arrive.
 */
function began(it: World): number {
  const query = it.source.requests.at(-1)?.query ?? {};
  expect(query.endTime).toBeUndefined();
  return (Date.parse(`${query.startTime ?? ''}Z`) * 1000 - base) / second;
}

async function closeUntil(it: World, until: Micros): Promise<void> {
  await it.journal.close(sourceId, { from: it.journal.progress(sourceId).live.closedUntil, to: until }, proven(), lastAge);
}

test('the first poll starts at the present, not in history that is read window by window', async () => {
  const it = await world({ after: 10 * hour });
  await it.poll();
  expect(began(it)).toBe(10 * 3_600 - 120);
  expect(it.journal.progress(sourceId).polledUntil).toBe(it.source.now());
});

test('a poll reaches two minutes before the newest record, and never into closed windows', async () => {
  const it = await world({ after: hour });
  it.source.add(1, it.source.now() - 10 * second);
  await it.poll();
  expect(it.journal.progress(sourceId).polledUntil).toBe(base + hour - 10 * second);
  it.clock.wall += 30_000;
  await it.poll();
  expect(began(it)).toBe(3_600 - 10 - 120);
  await closeUntil(it, base + hour - 60 * second);
  it.clock.wall += 20 * 60_000;
  await it.poll();
  expect(began(it)).toBe(3_600 - 60);
});

test('a poll starts closeDelay ago if the ledger has closed later windows', async () => {
  const it = await world({ after: hour });
  // In true time, closedUntil is never later than serverNow − closeDelay; after a clock was
  // measured again it may be.
  await closeUntil(it, base + hour);
  it.source.add(1, base + hour - 3 * second);
  await it.poll();
  await it.poll();
  expect(began(it)).toBe(3_600 - 3 - 120);
  expect(appended(it.beside())).toHaveLength(1);
});

test('polledUntil is the newest time read, at most server time: a record dated next year does not move it there', async () => {
  const it = await world({ after: hour });
  it.source.add(1, base + hour - 30 * second);
  it.source.add(2, base + 365 * day, 0);
  await it.poll();
  expect(it.journal.progress(sourceId).polledUntil).toBe(it.source.now());
  expect(appended(it.beside())).toHaveLength(2);
  // A record of the present is still found ten minutes later.
  it.clock.wall += 600_000;
  it.source.add(3, it.source.now() - second);
  await it.poll();
  expect(appended(it.beside())).toEqual(owned(it.source.records, { from: 0, to: Number.MAX_SAFE_INTEGER }));
});

test('a poll without a readable time leaves polledUntil, or sets it back to server time', async () => {
  const it = await world({ after: hour });
  it.source.add(1, base + hour - 30 * second);
  await it.poll();
  it.source.records.length = 0;
  it.clock.wall += 60_000;
  await it.poll();
  expect(it.journal.progress(sourceId).polledUntil).toBe(base + hour - 30 * second);
  it.clock.wall -= 120_000;
  await it.poll();
  expect(it.journal.progress(sourceId).polledUntil).toBe(base + hour - 60 * second);
});

test('once 1,000 new records are measured, a poll reaches back 1 s, and as far as records become visible out of order', async () => {
  const it = await world({ after: hour, pageSize: 1000 });
  const add = (id: number, delay: Micros): void => it.source.add(id, it.source.now() - delay, 0);
  await it.poll();
  for (let id = 1; id <= 999; id += 1) add(id, 0);
  await it.poll();
  it.clock.wall += 10_000;
  await it.poll();
  expect(began(it), 'too few to tell').toBe(3_600 - 120);
  add(1_000, 0);
  await it.poll();
  it.clock.wall += 10_000;
  await it.poll();
  expect(began(it)).toBe(3_610 - 1);
  // One in 1,000 may be older than the overlap; a full poll finds two.
  for (const id of [1_001, 1_002]) it.source.add(id, base + hour - 5 * second, it.source.now() + 30 * second);
  await it.clock.sleep(600_000, it.signal);
  await it.poll();
  expect(began(it)).toBe(3_610 - 120);
  await it.poll();
  expect(began(it), '15 s').toBe(3_610 - 20 - 1);
  expect(appended(it.beside())).toEqual(owned(it.source.records, { from: 0, to: Number.MAX_SAFE_INTEGER }));
});

test('polledUntil advances in the transaction of the last page, not before', async () => {
  const it = await world({ after: hour, pageSize: 2 });
  for (let id = 1; id <= 5; id += 1) it.source.add(id, base + hour - 60 * second + id * second);
  await it.poll();
  expect(it.pages.map(({ polledUntil: tip }) => tip)).toEqual([undefined, undefined, base + hour - 55 * second]);
});

test.each(['empty', 'last', '404'] as const)('a poll of full pages, followed by %s, still advances the position', async (pastEnd) => {
  const it = await world({ after: hour, pageSize: 2, switches: { pastEnd } });
  for (let id = 1; id <= 4; id += 1) it.source.add(id, base + hour - 60 * second + id * second);
  expect(await it.poll()).toBeUndefined();
  expect(it.journal.progress(sourceId).polledUntil).toBe(base + hour - 56 * second);
});

test('a poll ends at its 20th page, and the next resumes 2 s before the newest time read, until a short page', async () => {
  const it = await world({ after: hour, pageSize: 2 });
  for (let id = 1; id <= 100; id += 1) it.source.add(id, base + hour - 101 * second + id * second);
  const resumeAt = await it.poll();
  expect(it.source.requests).toHaveLength(20);
  // The 40th record.
  expect(it.journal.progress(sourceId).polledUntil).toBe(base + hour - 61 * second);
  expect(resumeAt).toEqual({ from: base + hour - 63 * second, skip: 0 });
  await it.poll();
  expect(began(it)).toBe(3_600 - 63);
  expect(await it.poll()).toBeUndefined();
  expect(appended(it.beside())).toEqual(owned(it.source.records, { from: 0, to: Number.MAX_SAFE_INTEGER }));
  await it.poll();
  expect(began(it)).toBe(3_600 - 1 - 120);
});

test('a page that the live poll cannot read is logged, and does not stop the poll', async () => {
  const it = await world({ after: hour, pageSize: 4 });
  for (let id = 1; id <= 6; id += 1) it.source.add(id, base + hour - 60 * second + id * second);
  it.source.switches.unreadable = new Set([3]);
  await it.poll();
  expect(appended(it.beside())).toHaveLength(5);
  expect(it.log.lines.filter(({ event }) => event === 'source.page_unreadable')).toMatchObject([{ level: 'warn', fields: { page: 3 } }]);
});

test('records before the start of the ledger are not appended by a poll', async () => {
  const it = await world({ after: minute });
  it.source.add(1, base - 1);
  it.source.add(2, base);
  await it.poll();
  expect(began(it)).toBeLessThanOrEqual(0);
  expect(appended(it.beside())).toEqual(owned(it.source.records, { from: base, to: base + 1 }));
});

test('more than 20 pages of records in two seconds are read to their end: each poll skips the pages read before', async () => {
  const it = await world({ after: hour, pageSize: 2 });
  for (let id = 1; id <= 130; id += 1) it.source.add(id, base + hour - 30 * second + id);
  it.source.add(131, base + hour - 5 * second);
  const first = await it.poll();
  expect(first).toEqual({ from: base + hour - 32 * second, skip: 0 });
  const again = await it.poll();
  expect(again).toEqual({ from: base + hour - 32 * second, skip: 20 });
  const third = await it.poll();
  expect(third).toEqual({ from: base + hour - 32 * second, skip: 40 });
  const fourth = await it.poll();
  expect(fourth).toEqual({ from: base + hour - 32 * second, skip: 60 });
  expect(await it.poll()).toBeUndefined();
  expect(appended(it.beside())).toEqual(owned(it.source.records, { from: 0, to: Number.MAX_SAFE_INTEGER }));
});

test('a second with more records than the paging depth does not hide later records', async () => {
  const it = await world({ after: hour, switches: { deepest: 30 } });
  const crowded = it.source.now() - 30 * second;
  for (let id = 1; id <= 40; id += 1) it.source.add(id, crowded);
  it.source.add(41, crowded + 10 * second);
  // To the depth, once more from just before that second, and after it.
  await it.poll();
  await it.poll();
  expect(appended(it.beside())).toHaveLength(30);
  expect(await it.poll()).toBeUndefined();
  expect(began(it)).toBe(3_600 - 29);
  expect(appended(it.beside())).toHaveLength(31);
  expect(it.paging.size).toBe(10);
});

test('a poll that is refused while other requests are answered ends, and the next one is sent again', async () => {
  const it = await world({ after: hour, switches: { emptyIs404: true } });
  it.source.before = (_request, count) => {
    if (count > 20) throw new Error('requests never end');
  };
  expect(await it.poll()).toBeUndefined();
  it.source.add(1, it.source.now() - second);
  await it.poll();
  expect(appended(it.beside())).toHaveLength(1);
});
