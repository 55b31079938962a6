import { expect, test } from 'vitest';
import { WaybillError } from '../../../src/errors.ts';
import type { ErrorCode } from '../../../src/errors.ts';
import type { Page, PageRequest, Source } from '../../../src/model/source.ts';
import { calibrate, changesOf, emptyIsMissing } from '../../../src/source/calibrate.ts';
import { ModelService } from '../../support/model-service.ts';
import type { ModelLimits } from '../../support/model-service.ts';

const never = new AbortController().signal;

/**
 * The model service as a source, without HTTP. `silent`: responses contain neither page number nor
 * size.
 */
function sourceOf(limits: Partial<ModelLimits>, records: number, silent = false): Source & { readonly asked: PageRequest[] } {
  const model = new ModelService(limits);
  model.fill(records, Date.UTC(2026, 10, 20));
  const asked: PageRequest[] = [];
  return {
    asked,
    async page(request: PageRequest): Promise<Page> {
      asked.push(request);
      const parameters = new URLSearchParams({
        pageSize: String(request.pageSize),
        ...(request.page === undefined ? {} : { page: String(request.page) }),
        ...(request.query.startTime === undefined ? {} : { startTime: request.query.startTime }),
      });
      const { status, body } = model.answer(parameters, 1);
      if (status === 400) throw new WaybillError('page_refused', 'too large');
      const { data, pagination } = JSON.parse(body) as { data: unknown[]; pagination: Record<string, number> };
      const items = data.map((item) => new TextEncoder().encode(JSON.stringify(item)));
      const numbers = silent ? { page: undefined, pageSize: undefined } : { page: pagination['page'], pageSize: pagination['pageSize'] };
      return { items, ...numbers, total: pagination['totalRecords'], date: 1, age: 0, received: 1, receivedMonotonic: 1 };
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

test('sends one request, without page and times, when the service grants the size', async () => {
  const source = sourceOf({}, 3);
  expect(await calibrate(source, 'auto', never)).toEqual({ firstPage: 1, pageSize: 1000, total: 3, dated: true });
  expect(source.asked).toEqual([{ query: {}, page: undefined, pageSize: 1000 }]);
});

test('uses a smaller size that is granted, and another first page', async () => {
  expect(await calibrate(sourceOf({ pageSizeMax: 250, firstPage: 0 }, 3), 'auto', never)).toMatchObject({ firstPage: 0, pageSize: 250 });
});

test('tries smaller sizes when one is refused', async () => {
  const source = sourceOf({ pageSizeMax: 300, refuseGreater: true }, 3);
  expect(await calibrate(source, 'auto', never)).toMatchObject({ pageSize: 200 });
  expect(source.asked.map(({ pageSize }) => pageSize)).toEqual([1000, 500, 200]);
});

test('requests the configured size, and smaller ones if it is refused', async () => {
  expect(await calibrate(sourceOf({}, 3), 7, never)).toMatchObject({ pageSize: 7 });
  const source = sourceOf({ pageSizeMax: 100, refuseGreater: true }, 3);
  expect(await calibrate(source, 300, never)).toMatchObject({ pageSize: 100 });
  expect(source.asked.map(({ pageSize }) => pageSize)).toEqual([300, 200, 100]);
});

test('gives up when the last size is refused', async () => {
  const source = sourceOf({ pageSizeMax: 0, refuseGreater: true }, 3);
  await expect(calibrate(source, 'auto', never)).rejects.toThrow('too large');
  expect(source.asked.map(({ pageSize }) => pageSize)).toEqual([1000, 500, 200, 100, 50, 20, 10, 5, 2, 1]);
});

test.each([
  [0, 30],
  [1, 30],
  [1, 0],
])('finds first page %d of %d records if responses do not state the page number', async (firstPage, records) => {
  expect(await calibrate(sourceOf({ firstPage }, records, true), 'auto', never)).toMatchObject({ firstPage });
});

test('finds a hidden size by the number of records', async () => {
  expect(await calibrate(sourceOf({ pageSizeMax: 20 }, 30, true), 'auto', never)).toMatchObject({ pageSize: 20 });
});

/**
 * The same service, but pages with one of these records, or with more than so many, are unreadable.
 */
function broken(source: ReturnType<typeof sourceOf>, bad: readonly number[], most = Infinity): ReturnType<typeof sourceOf> {
  return {
    ...source,
    page: async (request, signal) => {
      const page = await source.page(request, signal);
      const ids = page.items.map((item) => (JSON.parse(Buffer.from(item).toString()) as { logId: number }).logId);
      if (ids.length <= most && !ids.some((id) => bad.includes(id))) return page;
      throw new WaybillError('page_malformed', 'cannot read the page');
    },
  };
}

test.each([
  ['too large to be read', [], 99, 1],
  ['spoilt by one record in it', [150], Infinity, 1],
  ['spoilt by its first records', [1, 2, 3], Infinity, 1],
  ['spoilt by its first record, and pages count from 0', [1], Infinity, 0],
] as const)('a first page that is %s does not stop it: pages of one record provide the rest', async (_what, bad, most, firstPage) => {
  const source = sourceOf({ firstPage }, 300);
  expect(await calibrate(broken(source, bad, most), 'auto', never)).toEqual({ firstPage, pageSize: 1000, total: 300, dated: true });
  expect(source.asked.length).toBeLessThan(8);
});

test('a service without a readable page is not calibrated', async () => {
  const source = sourceOf({}, 300);
  await expect(calibrate(broken(source, [], 0), 'auto', never)).rejects.toMatchObject({ code: 'page_malformed' });
  expect(source.asked.length).toBeLessThan(30);
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
  expect(await calibrate(sourceOf({ pageSizeMax: most, refuseGreater: true }, 200), wanted, never)).toMatchObject({ pageSize: size });
});
