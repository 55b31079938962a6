import { expect, test } from 'vitest';
import { VisibilityCheck } from '../../../src/collect/visibility.ts';
import { queryOf } from '../../../src/collect/windows.ts';
import { readWindow } from '../../../src/collect/read-window.ts';
import type { Micros } from '../../../src/model/time.ts';
import type { RecordFields } from '../../../src/model/record.ts';
import { readText } from '../../../src/record/read.ts';
import { base, day, hour, minute, recordText, second } from '../../support/records.ts';
import { source as sourceId } from '../../support/journal/opening.ts';
import { appended, owned, closeDelay, world } from '../../support/collect/world.ts';
import type { World } from '../../support/collect/world.ts';

const rich = { userNetwork: { ipAddress: '192.0.2.7' }, userEmailAddress: 'a@example.com' };
const everything = { from: 0, to: Number.MAX_SAFE_INTEGER };

/** Removes the permission to see fields: every record is served without them. */
function hide(it: World): () => void {
  const page = it.source.page.bind(it.source);
  let isHidden = true;
  it.source.page = async (request, signal) => {
    const answer = await page(request, signal);
    if (!isHidden) return answer;
    const poor = ({ bytes }: RecordFields): RecordFields => {
      const shown = Object.entries(JSON.parse(bytes.toString()) as Record<string, unknown>);
      return readText(JSON.stringify(Object.fromEntries(shown.filter(([name]) => !(name in rich)))));
    };
    return { ...answer, items: answer.items.map(poor) };
  };
  return () => (isHidden = false);
}

/** A source whose first windows are closed; every record showed its fields. */
async function watched(): Promise<World> {
  const it = await world({ after: 4 * closeDelay });
  for (let id = 1; id <= 20; id += 1) it.source.add(id, base + id * minute, 0, rich);
  while (await it.closer.closeNext(it.source.now(), it.signal));
  it.source.requests.length = 0;
  return it;
}

function add(it: World, id: number, time: Micros, more: Readonly<Record<string, unknown>> = rich): void {
  it.source.add(id, time, 0, more);
}

test('a page without a usual field waits for the reference record; if that lacks the field too, the source is suspended and no copy without it is stored', async () => {
  const it = await watched();
  const { polledUntil: tip } = it.journal.progress(sourceId);
  const restore = hide(it);
  add(it, 50, it.source.now() - second);
  await it.poll();
  expect(appended(it.beside())).toHaveLength(20);
  expect(it.journal.progress(sourceId).polledUntil).toBe(tip);
  expect(it.source.renewed).toBe(3);
  expect(it.suspensions.current).toMatchObject({ reason: 'fields', fields: ['userNetwork', 'userEmailAddress'] });
  expect(it.reported.suspensions).toEqual(['fields']);
  // The reference record is the first record of the newest proven window, requested by its second.
  const asked = it.source.requests.filter(({ query }) => query.endTime !== undefined);
  expect(asked.length).toBeGreaterThanOrEqual(4);
  const at = base + 15 * minute;
  expect(asked.every(({ query }) => JSON.stringify(query) === JSON.stringify(queryOf({ from: at, to: at + second })))).toBe(true);
  // During the suspension no further request tests it, and the window is not read to its end.
  it.source.requests.length = 0;
  await it.poll();
  expect(it.source.requests).toHaveLength(1);
  const window = { from: it.journal.progress(sourceId).live.closedUntil, to: it.source.now() };
  expect(await readWindow(it.reading, window, queryOf(window), 'any', it.signal)).toEqual({ kind: 'suspended' });
  expect(appended(it.beside())).toHaveLength(20);
  // Restored: the test passes, and the withheld records arrive in full.
  expect(await it.visibility.test(it.suspensions.current?.fields ?? [], it.signal)).toBe(false);
  restore();
  expect(await it.visibility.test(it.suspensions.current?.fields ?? [], it.signal)).toBe(true);
  await it.poll();
  expect(appended(it.beside())).toEqual(owned(it.source.records, everything));
  const kept = await it.journal.read(it.journal.head().seq - 1, { records: 1, bytes: 1e6 });
  const texts = [...kept, ...(await it.journal.read(0, { records: 1_000, bytes: 1e7 }))].filter(({ kind }) => kind === 'record');
  expect(texts.every(({ text }) => text.includes('userNetwork') && text.includes('userEmailAddress'))).toBe(true);
});

test('during a suspension a page with the fields is appended and ends the suspension', async () => {
  const it = await watched();
  const restore = hide(it);
  add(it, 50, it.source.now() - second);
  await it.poll();
  restore();
  await it.poll();
  expect(it.suspensions.current).toBeUndefined();
  expect(it.journal.progress(sourceId)).toMatchObject({ state: 'active' });
  expect(appended(it.beside())).toHaveLength(21);
});

test('records that lack the field by nature are appended: the reference record shows it before and after, and they are checked only once', async () => {
  const it = await watched();
  add(it, 50, it.source.now() - second, {});
  await it.poll();
  // The page, its reference record, the page again, and the reference record.
  expect(it.source.requests.map(({ query }) => (query.endTime === undefined ? 'page' : 'referenceRecord'))).toEqual([
    'page',
    'referenceRecord',
    'page',
    'referenceRecord',
  ]);
  expect(appended(it.beside())).toHaveLength(21);
  expect(it.suspensions.current).toBeUndefined();
  it.source.requests.length = 0;
  await it.poll();
  expect(it.source.requests).toHaveLength(1);
});

test('when rights come back between a page and the reference record, the page is read again in full', async () => {
  const it = await watched();
  const restore = hide(it);
  add(it, 50, it.source.now() - second);
  it.source.before = (_request, count) => {
    if (count === 2) restore();
  };
  await it.poll();
  expect(it.source.requests.length).toBeGreaterThan(2);
  expect(it.suspensions.current).toBeUndefined();
  expect(appended(it.beside())).toHaveLength(20);
  await it.poll();
  const [last] = await it.journal.read(it.journal.head().seq - 1, { records: 1, bytes: 1e6 });
  expect(last).toMatchObject({ kind: 'record', text: expect.stringContaining('userNetwork') as string });
});

test('when a page differs at the second request, only records of both answers are stored without the field', async () => {
  const it = await watched();
  add(it, 50, it.source.now() - second, {});
  it.source.before = (_request, count) => {
    if (count === 3) it.source.records.pop();
    if (count === 4) add(it, 50, it.source.now() - second, {});
  };
  await it.poll();
  expect(appended(it.beside())).toHaveLength(20);
  expect(it.suspensions.current).toBeUndefined();
  await it.poll();
  expect(appended(it.beside())).toHaveLength(21);
});

test('the first reference record of a field is saved at once; later ones are not', async () => {
  const { requester, paging, journal, suspensions, log } = await world();
  let writes = 0;
  const visibility: VisibilityCheck = new VisibilityCheck({ sourceId, requester, paging, journal, suspensions, log, learned: () => {
    // The profile written then contains it.
    expect(Object.keys(visibility.profile().referenceRecords)).not.toEqual([]);
    writes += 1;
    return Promise.resolve();
  } }); // prettier-ignore
  const referenceRecord = { uid: 'u', time: base };
  await visibility.proven({});
  expect(writes).toBe(0);
  await visibility.proven({ userNetwork: referenceRecord });
  expect(writes).toBe(1);
  await visibility.proven({ userNetwork: { ...referenceRecord, time: base + hour } });
  expect(writes).toBe(1);
  await visibility.proven({ userNetwork: { ...referenceRecord, time: base + 2 * hour }, userEmailAddress: referenceRecord });
  expect(writes).toBe(2);
});

test('a field that a fresh token shows again does not suspend the source, and the copy without it is not stored', async () => {
  const it = await watched();
  const restore = hide(it);
  it.source.renewing = restore;
  add(it, 50, it.source.now() - second);
  await it.poll();
  expect(it.suspensions.current).toBeUndefined();
  expect(appended(it.beside())).toHaveLength(20);
  await it.poll();
  expect(appended(it.beside())).toHaveLength(21);
});

test('a suspension survives a restart, and so do shares and reference records', async () => {
  const it = await watched();
  const { recent, referenceRecords } = it.visibility.profile();
  expect(recent).toHaveLength(20);
  expect(referenceRecords).toMatchObject({ userNetwork: { time: base + 15 * minute }, userEmailAddress: { time: base + 15 * minute } });
  expect(JSON.parse(JSON.stringify(it.visibility.profile()))).toEqual(it.visibility.profile());
  hide(it);
  add(it, 50, it.source.now() - second);
  await it.poll();
  expect(it.journal.progress(sourceId).suspension).toEqual(it.suspensions.current);
});

test('one request at a time: no page is requested ahead of one without a usual field', async () => {
  const it = await watched();
  it.source.delay = 20;
  hide(it);
  for (let i = 0; i < 40; i += 1) add(it, 100 + i, it.source.now() - second);
  await it.poll();
  expect(it.suspensions.current).toMatchObject({ reason: 'fields' });
  expect(it.source.mostAtOnce).toBe(1);
});

/** Records without a readable time, served by every query. */
function timeless(it: World, count: number): void {
  const page = it.source.page.bind(it.source);
  it.source.page = async (request, signal) => {
    const answer = await page(request, signal);
    const items = Array.from({ length: count }, (_, i) =>
      readText(recordText(10_000 + i, base).replace(/"logTimestamp":"[^"]*"/, `"logTimestamp":"day ${i}"`)),
    );
    return { ...answer, items: [...items, ...answer.items], total: (answer.total ?? 0) + count };
  };
}

test('a page of a hundred records without a readable time suspends the source; the first page with readable times ends it', async () => {
  const it = await world({ after: 2 * hour, pageSize: 1000 });
  timeless(it, 100);
  await it.poll();
  expect(it.suspensions.current).toMatchObject({ reason: 'timestamp' });
  // The records are stored and flagged nevertheless.
  expect(appended(it.beside())).toHaveLength(100);
  add(it, 1, it.source.now() - second);
  await it.poll();
  expect(it.suspensions.current).toBeUndefined();
  // The same page again brings no new record: no second suspension.
  it.source.records.length = 0;
  await it.poll();
  expect(it.reported.suspensions).toEqual(['timestamp']);
});

test('ninety-nine such records, or a hundred and a readable one, do not suspend the source', async () => {
  const few = await world({ after: 2 * hour, pageSize: 1000 });
  timeless(few, 99);
  await few.poll();
  expect(few.suspensions.current).toBeUndefined();
  const mixed = await world({ after: 2 * hour, pageSize: 1000 });
  timeless(mixed, 100);
  add(mixed, 1, mixed.source.now() - second);
  await mixed.poll();
  expect(mixed.suspensions.current).toBeUndefined();
});

test('more than 100,000 uids without a readable time suspend the source, and no more are stored', async () => {
  const it = await world({ after: 2 * hour, pageSize: 1000 });
  const uids = Buffer.alloc(16 * 100_000, 7);
  it.beside()
    .prepare('INSERT INTO seen VALUES (1, ?, 0, ?)')
    .run(-Math.floor(base / day), uids);
  timeless(it, 3);
  await it.poll();
  expect(it.suspensions.current).toMatchObject({ reason: 'timestamp' });
  expect(appended(it.beside())).toHaveLength(3);
  const page = it.source.page.bind(it.source);
  it.source.page = async (request, signal) => {
    const answer = await page(request, signal);
    return { ...answer, items: answer.items.map(({ bytes }) => readText(bytes.toString().replace('"logId":1', '"logId":2'))) };
  };
  await it.poll();
  expect(appended(it.beside())).toHaveLength(3);
});
