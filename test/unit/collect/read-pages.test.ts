import { expect, test } from 'vitest';
import { pass } from '../../../src/collect/read-pages.ts';
import type { Answer } from '../../../src/collect/requester.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { CollectedRecord } from '../../../src/model/journal.ts';
import type { WindowQuery } from '../../../src/model/source.ts';
import type { Switches } from '../../support/model-source.ts';
import { base, second } from '../../support/records.ts';
import { source as sourceId } from '../../support/journal/opening.ts';
import { world } from '../../support/collect/world.ts';
import type { World } from '../../support/collect/world.ts';

interface Read {
  /** The `logId`s of each page returned. */
  readonly pages: number[][];
  readonly unreadable: number[];
  /** The requested pages, as page/size. */
  readonly asked: string;
}

async function run(
  it: World,
  options: { pagesMax?: number; ahead?: boolean; stopAfter?: number; query?: WindowQuery } = {},
): Promise<Read> {
  const pages: number[][] = [];
  const unreadable: number[] = [];
  const read = pass({
    requester: it.requester,
    paging: it.paging,
    query: options.query ?? {},
    pagesMax: options.pagesMax ?? 1_000,
    ahead: () => options.ahead ?? false,
    log: it.log,
    signal: it.signal,
    unreadable: (page) => unreadable.push(page),
  });
  for await (const { answer } of read) {
    pages.push(answer.records.map(({ text }) => (JSON.parse(text) as { logId: number }).logId));
    if (pages.length === options.stopAfter) break;
  }
  return { pages, unreadable, asked: it.source.requests.map(({ page, pageSize }) => `${page ?? '-'}/${pageSize}`).join(' ') };
}

async function filled(count: number, pageSize: number, switches: Partial<Switches> = {}): Promise<World> {
  const it = await world({ pageSize, switches });
  for (let id = 1; id <= count; id += 1) it.source.add(id, base + id * second);
  return it;
}

test.each<[string, number, number, Partial<Switches>, string]>([
  ['a short page ends it', 5, 2, {}, '1/2 2/2 3/2'],
  ['a full last page is followed by one more', 4, 2, {}, '1/2 2/2 3/2'],
  ['nothing is one page', 0, 2, {}, '1/2'],
  ['404 after the last page ends it', 4, 2, { pastEnd: '404' }, '1/2 2/2 3/2'],
  ['the last page again ends it, by its number', 4, 2, { pastEnd: 'last' }, '1/2 2/2 3/2'],
  ['the last page again ends it, by its records', 4, 2, { pastEnd: 'last', echo: 'nothing' }, '1/2 2/2 3/2'],
  ['pages may count from 0', 3, 2, { firstPage: 0 }, '0/2 1/2'],
  ['the size that is granted is the size', 5, 4, { pageCap: 2 }, '1/4 2/2 3/2'],
  ['a cap that is not admitted shows in a short first page', 5, 4, { pageCap: 2, admitsCap: false }, '1/4 2/2 3/2'],
  ['after a refused size comes a smaller one, once another request is answered', 3, 8, { refuseAbove: 3 }, '1/8 -/1 1/5 1/2 2/2'],
])('%s', async (_what, count, size, switches, asked) => {
  const it = await filled(count, size, switches);
  const found = await run(it);
  expect(found.asked).toBe(asked);
  expect(found.pages.flat().filter((id, i, all) => all.indexOf(id) === i)).toEqual(Array.from({ length: count }, (_, i) => i + 1));
});

test.each([0, 1].flatMap((firstPage) => (['empty', 'last', '404'] as const).map((pastEnd) => ({ firstPage, pastEnd }))))(
  'while the first page is unknown no page is skipped: pages count from $firstPage, after the last one: $pastEnd',
  async ({ firstPage, pastEnd }) => {
    for (const total of ['true', 'missing'] as const)
      for (const echo of ['page', 'nothing', 'first'] as const)
        for (const count of [1, 2, 3, 4, 7, 8]) {
          const it = await filled(count, 2, { firstPage, pastEnd, echo, total });
          it.paging.first = undefined;
          const { pages } = await run(it);
          expect([total, echo, count, [...new Set(pages.flat())]]).toEqual([
            total,
            echo,
            count,
            Array.from({ length: count }, (_, i) => i + 1),
          ]);
        }
  },
);

test('the log names the source whose page size is refused', async () => {
  const it = await filled(3, 8, { refuseAbove: 3 });
  await run(it);
  const refused = it.log.lines.filter(({ event }) => event === 'source.page_size_refused');
  expect(refused[0]).toMatchObject({ fields: { source: sourceId, pageSize: 8 } });
});

test('pages are halved around an unreadable record, stay aligned, and have the full size after it', async () => {
  const it = await filled(20, 8, { unreadable: new Set([11]) });
  const found = await run(it);
  expect(found.unreadable).toEqual([11]);
  expect(found.pages.flat()).toEqual(Array.from({ length: 20 }, (_, i) => i + 1).filter((id) => id !== 11));
  // Each size is tried three times before it is halved.
  expect(found.asked).toBe('1/8 2/8 2/8 2/8 -/1 3/4 3/4 3/4 5/2 6/2 6/2 6/2 11/1 11/1 11/1 12/1 13/1 14/1 15/1 16/1 3/8');
});

test.each([
  ['8 where 4 is refused', 8, 11, '1/8 2/8 2/8 2/8 -/1 -/100 -/100 2/8 3/4 3/8 4/8', 2, 9, 16],
  ['4 where 2 is refused', 4, 11, '1/8 2/8 2/8 2/8 -/1 -/100 -/100 2/8 3/4 3/4 3/4 5/2 4/4 3/8 4/8', 3, 9, 12],
  ['the first page', 8, 3, '1/8 1/8 1/8 -/1 -/100 -/100 1/8 1/4 2/8 3/8 4/8', 1, 1, 8],
])(
  'an unreadable page is skipped in the smallest pages that the service grants: %s',
  async (_what, refuseBelow, bad, asked, page, from, to) => {
    const it = await filled(28, 8, { unreadable: new Set([bad]), refuseBelow });
    askedAtMost(it, 50);
    const found = await run(it);
    expect(found.unreadable).toEqual([page]);
    expect(found.pages.flat()).toEqual(Array.from({ length: 28 }, (_, i) => i + 1).filter((id) => id < from || id > to));
    expect(found.asked).toBe(asked);
    expect(it.paging.size).toBe(8);
  },
);

test('after several such places the rest is still read, and no smaller page is requested again', async () => {
  const it = await filled(60, 8, { unreadable: new Set([3, 11, 19, 43]), refuseBelow: 8 });
  askedAtMost(it, 50);
  const found = await run(it);
  expect(found.unreadable).toEqual([1, 2, 3, 6]);
  expect(found.pages.flat()).toEqual([...Array.from({ length: 16 }, (_, i) => i + 25), ...Array.from({ length: 12 }, (_, i) => i + 49)]);
  expect(it.source.requests.filter(({ page, pageSize }) => page !== undefined && pageSize < 8)).toHaveLength(1);
});

test('records too large for full pages are read in smaller pages; the full size is tried once more', async () => {
  const it = await filled(24, 8);
  const [{ text } = { text: '' }] = it.source.records;
  it.source.switches.bytesMax = text.length * 5;
  const found = await run(it);
  expect(found.pages.flat()).toEqual(Array.from({ length: 24 }, (_, i) => i + 1));
  expect(found.asked).toBe('1/8 1/8 1/8 -/1 1/4 2/4 2/8 2/8 2/8 3/4 4/4 5/4 6/4 7/4');
});

test('two unreadable records in neighbouring pages do not reduce the other pages to one record', async () => {
  const it = await filled(96, 16, { unreadable: new Set([3, 20]) });
  const found = await run(it);
  expect(found.unreadable).toEqual([3, 20]);
  expect(found.pages.flat()).toEqual(Array.from({ length: 96 }, (_, i) => i + 1).filter((id) => id !== 3 && id !== 20));
  const behind = it.source.requests.filter(({ page = 0, pageSize }) => (page - 1) * pageSize >= 32);
  expect(Math.min(...behind.map(({ pageSize }) => pageSize))).toBe(8);
});

test.each([
  ['continues after two equal pages before the end that the total counts', 7, '1 2 3 4'],
  ['treats a page repeated after that end as the last one', 4, '1 2 3'],
  ['treats a repeated page as the last one if there is no total', undefined, '1 2'],
])('it %s', async (_what, total, expected) => {
  const asked: number[] = [];
  // Ties in another order with each request: the same two by chance.
  const served = [['a', 'b'], ['a', 'b'], ['a', 'b'], ['e']];
  if (total === 7) served[2] = ['c', 'd'];
  const ask = (page: number): Answer => {
    asked.push(page);
    const records = (served[page - 1] ?? []).map((uid) => ({ uid }) as CollectedRecord);
    return { records, page, pageSize: 2, total, received: 0, serverNow: 0 } as unknown as Answer;
  };
  const it = await world({ pageSize: 2 });
  const read = pass({
    requester: {
      ask: (request) => Promise.resolve(ask(request.page ?? 0)),
    },
    ...{ paging: { first: 1, size: 2 }, query: {}, pagesMax: 50, ahead: () => false, log: it.log, signal: it.signal },
    unreadable: () => undefined,
  });
  for await (const { answer } of read) expect(answer.records.length).toBeGreaterThan(0);
  expect(asked.join(' ')).toBe(expected);
});

/** The limit of requests: an endless pass must fail instead of hanging. */
function askedAtMost(it: World, most: number): void {
  it.source.before = (_request, count) => {
    if (count > most) throw new Error('requests never end');
  };
}

test.each<[string, number, number, Partial<Switches>, string]>([
  ['always the first', 5, 2, { echo: 'first' }, '1/2 2/2 3/2'],
  ['always the first, and more comes than is counted', 5, 2, { echo: 'first', total: 'one less' }, '1/2 2/2 3/2'],
  ['always the first, and the last page is repeated after the end', 4, 2, { echo: 'first', pastEnd: 'last' }, '1/2 2/2 3/2'],
])('each page is yielded whatever its page number: %s', async (_what, count, size, switches, asked) => {
  const it = await filled(count, size, switches);
  const found = await run(it);
  expect(found.asked).toBe(asked);
  expect(found.pages.flat()).toEqual(Array.from({ length: count }, (_, i) => i + 1));
});

test.each(['page', 'nothing', 'asked'] as const)(
  'a last page repeated in another order each time ends the pass (page numbers: %s)',
  async (echo) => {
    const it = await world({ pageSize: 10, switches: { order: 'unstable ties', pastEnd: 'last', echo } });
    for (let id = 1; id <= 10; id += 1) it.source.add(id, base);
    askedAtMost(it, 4);
    const found = await run(it);
    expect(new Set(found.pages.flat()).size).toBe(10);
  },
);

test('equal times in another order without new records do not end the pass before the counted end, whatever page number the responses report', async () => {
  const served = [['a', 'b', 'c'], ['c', 'a', 'b'], ['d', 'e', 'f'], ['g']];
  const it = await world();
  const answerOf = (page: number): Answer => {
    const records = (served[page - 1] ?? []).map((uid) => ({ uid }) as CollectedRecord);
    return { records, page: 1, pageSize: 3, total: 10, received: 0, serverNow: 0 } as unknown as Answer;
  };
  const pages = pass({
    ...{ paging: { first: 1, size: 3 }, query: {}, pagesMax: Infinity, ahead: () => false, log: it.log, signal: it.signal },
    requester: {
      ask: (request) => Promise.resolve(answerOf(request.page ?? 0)),
    },
    unreadable: () => undefined,
  });
  const found: string[] = [];
  for await (const { answer } of pages) found.push(...answer.records.map(({ uid }) => uid));
  expect(found).toEqual(served.flat());
});

const tens = Array.from({ length: 49 }, (_, i) => i);
test.each<[string, number | undefined, (page: number) => number[], number]>([
  ['the same records again and again, under a total without end', 1e12, (page) => [page % 3, (page + 1) % 3], 22],
  ['the same records again and again, and no total', undefined, (page) => [page % 3, (page + 1) % 3], 5],
  ['one new record per page without end, after the end that is counted', 10, (page) => [0, 1, 2, 3, 4, 5, 6, 7, 8, 100 + page], 75],
  ['one new record on every page, and no total', undefined, (page) => [0, 1, 2, 3, 4, 5, 6, 7, 8, 100 + page], 75],
  ['one new record in every tenth page', 1e12, (page) => [...tens, page % 10 === 1 ? 1_000 + page : 0], 10_200],
])('a pass ends whatever is served: %s', async (_what, total, served, most) => {
  let asked = 0;
  const ask = (page: number): Answer => {
    asked += 1;
    const records = served(page).map((uid) => ({ uid: String(uid) }) as CollectedRecord);
    return { records, page, pageSize: records.length, total, received: 0, serverNow: 0 } as unknown as Answer;
  };
  const it = await world();
  const read = pass({
    requester: {
      ask: (request) => Promise.resolve(ask(request.page ?? 0)),
    },
    ...{ paging: { first: 1, size: served(1).length }, query: {}, pagesMax: Infinity, ahead: () => false, log: it.log, signal: it.signal },
    unreadable: () => undefined,
  });
  for await (const { answer } of read) {
    expect(answer.records.length).toBeGreaterThan(0);
    if (asked > most) throw new Error('requests never end');
  }
  expect(asked).toBeLessThanOrEqual(most);
});

test.each([
  ['the first', [1], '1/20 2/19 3/19 4/19 5/19 6/19'],
  ['one in the middle', [41], '1/20 2/20 3/20 4/20 5/20 6/20'],
  ['a whole page', Array.from({ length: 20 }, (_, i) => i + 21), '1/20 2/20 3/20 4/20 5/20 6/20'],
  ['the first page', Array.from({ length: 20 }, (_, i) => i + 1), '1/20 2/20 3/20 4/20 5/20 6/20'],
  ['nearly all', Array.from({ length: 98 }, (_, i) => i + 2), '1/20 2/1 2/20 3/20 4/20 5/20'],
])('all shown records are yielded if %s of the counted ones are hidden', async (_what, hidden, asked) => {
  const it = await filled(100, 20, { hidden: new Set(hidden) });
  askedAtMost(it, 50);
  const found = await run(it);
  expect([...new Set(found.pages.flat())].sort((a, b) => a - b)).toEqual(
    Array.from({ length: 100 }, (_, i) => i + 1).filter((id) => !hidden.includes(id)),
  );
  expect(found.asked).toBe(asked);
  expect(it.paging.size).toBe(20);
});

test('a page is returned also if its response shows that the page size has shrunk', async () => {
  const it = await filled(9, 4);
  it.source.before = (_request, count) => {
    if (count === 2) it.source.switches.pageCap = 2;
  };
  const found = await run(it);
  expect(found.pages).toEqual([[1, 2, 3, 4], [3, 4], ...[[1, 2], [3, 4], [5, 6], [7, 8], [9]]]);
});

test('an ever larger total ends the pass after a bounded number of empty pages', async () => {
  const it = await filled(3, 2, { total: 'cap', totalCap: Infinity });
  const page = it.source.page.bind(it.source);
  it.source.page = async (request, signal) => ({ ...(await page(request, signal)), total: 1e12 });
  const found = await run(it);
  expect(found.pages.flat()).toEqual([1, 2, 3]);
  expect(it.source.requests).toHaveLength(22);
});

test('pages beyond the paging depth are reported once, all before them are read, and the page size stays', async () => {
  const it = await filled(120, 15, { deepest: 100 });
  askedAtMost(it, 50);
  const found = await run(it);
  expect(found.pages.flat()).toEqual(Array.from({ length: 100 }, (_, i) => i + 1));
  expect(found.unreadable).toEqual([101]);
  expect(it.paging.size).toBe(15);
});

test('a query that is refused while others are answered is reported, and makes no page smaller', async () => {
  const it = await filled(3, 8);
  askedAtMost(it, 50);
  const page = it.source.page.bind(it.source);
  it.source.page = async (request, signal) => {
    const answer = await page(request, signal);
    if (request.query.startTime !== undefined) throw new WaybillError('page_refused', 'cannot read the page: 400 too old');
    return answer;
  };
  const found = await run(it, { query: { startTime: '2026-11-20T02:00:00.00' } });
  expect(found).toMatchObject({ pages: [], unreadable: [1] });
  expect(it.paging.size).toBe(8);
});

test('no more pages are read than requested, and no request is sent ahead of the last', async () => {
  const it = await filled(20, 2);
  expect((await run(it, { pagesMax: 3, ahead: true })).asked).toBe('1/2 2/2 3/2');
});

test('a pass that is left early waits for its request in flight', async () => {
  const it = await filled(20, 2);
  it.source.delay = 100;
  await run(it, { ahead: true, stopAfter: 1 });
  expect(it.source.requests).toHaveLength(2);
  expect(it.clock.monotonic()).toBe(200);
});

test('a missing first page is retried: a wrong address is not an empty result', async () => {
  const it = await filled(3, 2);
  it.source.before = (_request, count) => {
    if (count < 6) throw new WaybillError('page_not_found', 'cannot read the page: 404');
  };
  expect((await run(it)).pages).toEqual([[1, 2], [3]]);
  expect(it.clock.monotonic()).toBeGreaterThan(0);
  expect(it.requester.health.lastError).toContain('404');
});
