import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { WaybillError } from '../../../src/errors.ts';
import type { ErrorCode } from '../../../src/errors.ts';
import { calibrate, changesOf, emptyIsMissing } from '../../../src/source/calibrate.ts';
import { ModelSource, type Switches } from '../../support/model-source.ts';
import { base } from '../../support/records.ts';

const never = new AbortController().signal;

function sourceOf(switches: Partial<Switches>, records: number): ModelSource {
  const source = new ModelSource(systemClock);
  Object.assign(source.switches, switches);
  source.fill(records, base);
  return source;
}

test('sends one request, without page and times, when the service grants the size', async () => {
  const source = sourceOf({}, 3);
  expect(await calibrate(source, 'auto', never)).toEqual({ firstPage: 1, pageSize: 1000, total: 3, dated: true });
  expect(source.requests).toEqual([{ query: {}, page: undefined, pageSize: 1000 }]);
});

test('uses a smaller size that is granted, and another first page', async () => {
  expect(await calibrate(sourceOf({ pageCap: 250, firstPage: 0 }, 3), 'auto', never)).toMatchObject({ firstPage: 0, pageSize: 250 });
});

test('tries smaller sizes when one is refused', async () => {
  const source = sourceOf({ refuseAbove: 300 }, 3);
  expect(await calibrate(source, 'auto', never)).toMatchObject({ pageSize: 200 });
  expect(source.requests.map(({ pageSize }) => pageSize)).toEqual([1000, 500, 200]);
});

test('requests the configured size, and smaller ones if it is refused', async () => {
  expect(await calibrate(sourceOf({}, 3), 7, never)).toMatchObject({ pageSize: 7 });
  const source = sourceOf({ refuseAbove: 100 }, 3);
  expect(await calibrate(source, 300, never)).toMatchObject({ pageSize: 100 });
  expect(source.requests.map(({ pageSize }) => pageSize)).toEqual([300, 200, 100]);
});

test('gives up when the last size is refused', async () => {
  const source = sourceOf({ refuseAbove: 0 }, 3);
  await expect(calibrate(source, 'auto', never)).rejects.toMatchObject({ code: 'page_refused' });
  expect(source.requests.map(({ pageSize }) => pageSize)).toEqual([1000, 500, 200, 100, 50, 20, 10, 5, 2, 1]);
});

test.each([
  [0, 30],
  [1, 30],
  [1, 0],
])('finds first page %d of %d records if responses do not state the page number', async (firstPage, records) => {
  expect(await calibrate(sourceOf({ firstPage, echo: 'nothing' }, records), 'auto', never)).toMatchObject({ firstPage });
});

test('finds a hidden size by the number of records', async () => {
  expect(await calibrate(sourceOf({ pageCap: 20, echo: 'nothing' }, 30), 'auto', never)).toMatchObject({ pageSize: 20 });
});

/**
 * The same service, but pages with one of these records, or with more than so many, are unreadable.
 */
function broken(source: ModelSource, bad: readonly number[], most = Infinity): ModelSource {
  const read = source.page.bind(source);
  source.page = async (request, signal) => {
    const page = await read(request, signal);
    const ids = page.items.map(({ bytes }) => (JSON.parse(bytes.toString()) as { logId: number }).logId);
    if (ids.length <= most && !ids.some((id) => bad.includes(id))) return page;
    throw new WaybillError('page_malformed', 'cannot read the page');
  };
  return source;
}

test.each([
  ['too large to be read', [], 99, 1],
  ['spoilt by one record in it', [150], Infinity, 1],
  ['spoilt by its first records', [1, 2, 3], Infinity, 1],
  ['spoilt by its first record, and pages count from 0', [1], Infinity, 0],
] as const)('a first page that is %s does not stop it: pages of one record provide the rest', async (_what, bad, most, firstPage) => {
  const source = sourceOf({ firstPage }, 300);
  expect(await calibrate(broken(source, bad, most), 'auto', never)).toEqual({ firstPage, pageSize: 1000, total: 300, dated: true });
  expect(source.requests.length).toBeLessThan(8);
});

test('a service without a readable page is not calibrated', async () => {
  const source = sourceOf({}, 300);
  await expect(calibrate(broken(source, [], 0), 'auto', never)).rejects.toMatchObject({ code: 'page_malformed' });
  expect(source.requests.length).toBeLessThan(30);
});

test('a change is another first page or page size, or total or Date appearing or disappearing; a larger total is none', () => {
  const before = { firstPage: 1, pageSize: 1000, total: 3, dated: true };
  expect(changesOf(before, { ...before, total: 4_000 })).toEqual([]);
  expect(changesOf(before, { firstPage: 0, pageSize: 100, total: undefined, dated: false })).toEqual([
    'firstPage',
    'pageSize',
    'total',
    'dated',
  ]);
});

test.each<[string, ErrorCode | undefined, string | undefined]>([
  ['an empty page', undefined, undefined],
  ['404', 'page_not_found', 'no records'],
  ['400, which says nothing of empty periods', 'page_refused', undefined],
])('a query without matches is answered with %s', async (_what, code, expected) => {
  const source = sourceOf({}, 3);
  const page = source.page.bind(source);
  source.page = async (request, signal) => {
    const answer = await page(request, signal);
    if (code !== undefined && answer.items.length === 0) throw new WaybillError(code, 'no records');
    return answer;
  };
  expect(await emptyIsMissing(source, 100, never)).toBe(expected);
});

test.each([
  ['auto', 99, 50],
  ['auto', 17, 10],
  ['auto', 4, 2],
  ['auto', 1, 1],
  [50, 17, 10],
  [18, 17, 10],
  [17, 17, 17],
  [2, 1, 1],
] as const)('with pageSize %s a service that refuses more than %i records a page is read with %i', async (wanted, most, size) => {
  expect(await calibrate(sourceOf({ refuseAbove: most }, 200), wanted, never)).toMatchObject({ pageSize: size });
});
