import { expect, test } from 'vitest';
import { handCount } from '../../../src/collect/hand-count.ts';
import type { HandCount } from '../../../src/collect/hand-count.ts';
import { base, day, minute, second } from '../../support/records.ts';
import { world } from '../../support/collect/world.ts';
import type { Options, World } from '../../support/collect/world.ts';

function counted(it: World, total: number): Promise<HandCount | undefined> {
  const { requester, paging, log, clock, signal } = it;
  return handCount({ requester, paging, log, clock }, total, signal);
}

/** 200 records, one a minute. */
async function aRecordAMinute(options: Options = {}): Promise<World> {
  const it = await world({ after: day, ...options });
  for (let i = 0; i < 200; i += 1) it.source.add(i, base + i * minute + 250_000);
  return it;
}

test('a window in the middle of all records takes three requests: a page of 20, the page of its query, its count', async () => {
  const it = await aRecordAMinute({ pageSize: 100 });
  // The page of 20 holds records 100 to 119; the middle half of them are 105 to 115.
  const window = { from: base + 105 * minute, to: base + 115 * minute + second };
  expect(await counted(it, 200)).toEqual({ ...window, read: 11, counted: 11, agrees: true });
  expect(it.source.requests).toMatchObject([
    { query: {}, page: 6, pageSize: 20 },
    { query: { startTime: '2026-11-20T03:44:59.00', endTime: '2026-11-20T03:55:02.00' }, pageSize: 100 },
    { query: { startTime: '2026-11-20T03:44:59.00', endTime: '2026-11-20T03:55:02.00' }, page: 1, pageSize: 1 },
  ]);
});

test('records of several pages are counted once each; known page sizes do not change', async () => {
  const it = await aRecordAMinute({ pageSize: 4, switches: { order: 'unstable ties', pastEnd: 'last', pageCap: 3 } });
  expect(await counted(it, 200)).toMatchObject({ read: 3, counted: 3, agrees: true });
  expect([it.paging.first, it.paging.size]).toEqual([1, 4]);
});

test.each(['one more', 'one less'] as const)(
  'a total of %s than the records returned does not agree, counted three times',
  async (total) => {
    const it = await aRecordAMinute({ pageSize: 100, switches: { total } });
    expect(await counted(it, 200)).toMatchObject({ read: 11, counted: total === 'one more' ? 12 : 10, agrees: false });
    expect(it.source.counts).toBe(3);
  },
);

test('a service that ignores the times of a query is not reported as a wrong total', async () => {
  const it = await aRecordAMinute({ pageSize: 100, switches: { noFilter: true } });
  expect(await counted(it, 200)).toMatchObject({ read: 200, counted: 200, agrees: true });
});

test('a page number other than the requested one is reported', async () => {
  const it = await aRecordAMinute({ pageSize: 100, switches: { echo: 'first' } });
  expect(await counted(it, 200)).toMatchObject({ read: 11, agrees: true, misnumbered: { requested: 6, reported: 1 } });
});

test('a record that becomes visible between reading and counting is found by the second try', async () => {
  const it = await aRecordAMinute({ pageSize: 100 });
  it.source.before = ({ pageSize }, count) => {
    if (pageSize === 1 && count === 3) it.source.add(999, base + 110 * minute);
  };
  expect(await counted(it, 200)).toMatchObject({ read: 12, counted: 12, agrees: true });
  expect(it.source.requests).toHaveLength(5);
});

test.each<[string, Options, number]>([
  ['no record', {}, 0],
  ['no usable total', { switches: { total: 'missing' } }, 200],
  ['no page so far behind', { switches: { pastEnd: '404' } }, 10_000],
  ['a page that cannot be read', { switches: { unreadable: new Set([110]) } }, 200],
  ['a period that the service refuses', { switches: { widest: 5 * minute } }, 200],
  ['more than a few pages', { pageSize: 2 }, 200],
])('there is no result if there is %s', async (_, options, total) => {
  const it = total === 0 ? await world() : await aRecordAMinute(options);
  expect(await counted(it, total)).toBeUndefined();
});

test('an error that smaller pages cannot avoid is thrown', async () => {
  const it = await aRecordAMinute();
  it.source.before = () => it.abort.abort(new Error('enough'));
  await expect(counted(it, 200)).rejects.toThrow('enough');
});

test('a service that refuses pages of 20 records gets requests for the page size that it grants', async () => {
  const it = await aRecordAMinute({ pageSize: 10, switches: { refuseAbove: 10 } });
  // The page of 10 holds records 100 to 109; the middle half of them are 102 to 107.
  expect(await counted(it, 200)).toMatchObject({ read: 6, counted: 6, agrees: true });
});
