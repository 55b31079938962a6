import { expect, test } from 'vitest';
import { PageStore } from '../../../src/collect/page-store.ts';
import type { CollectedPage } from '../../../src/model/journal.ts';
import { base, day, hour, minute, second } from '../../support/records.ts';
import { lastAge, proven, source as sourceId } from '../../support/journal/opening.ts';
import { closeDelay, Lines, span, world } from '../../support/collect/world.ts';

interface Setup {
  readonly store: PageStore;
  readonly close: (to: number) => Promise<void>;
  readonly pages: CollectedPage[];
  readonly collected: number[];
  readonly delays: number[];
  readonly informed: number[];
  readonly lines: Lines;
  /** The values of `laggingPosition` in sequence; the last one stays. */
  laggingPosition: (number | undefined)[];
  readonly clock: Awaited<ReturnType<typeof world>>['clock'];
  /** Stores one record with this time. */
  readonly add: (id: number, time: number, place?: Parameters<PageStore['store']>[1], serverNow?: number) => ReturnType<PageStore['store']>;
}

async function setup(polledFrom?: number): Promise<Setup> {
  const it = await world();
  const [collected, delays, informed, lines]: [number[], number[], number[], Lines] = [[], [], [], new Lines()];
  const laggingPosition: Setup['laggingPosition'] = [undefined];
  const journal = {
    append: (page: CollectedPage) => it.journal.append(page),
    progress: (source: string) => it.journal.progress(source),
    laggingPosition: () => (laggingPosition.length > 1 ? laggingPosition.shift() : laggingPosition[0]),
  };
  const store = new PageStore({
    ...{ sourceId, journal, clock: it.clock, log: lines, closeDelay, polledFrom },
    visibility: {
      appended: (records) => {
        informed.push(records.length);
        return Promise.resolve();
      },
    },
    meters: {
      recordsCollected: (_source, records) => collected.push(records),
      recordsLate: () => undefined,
      recordDelay: (_source, seconds) => delays.push(seconds),
    },
  });
  const add: Setup['add'] = (id, time, place, serverNow = base) => {
    const text = `{"logId":${id}}`;
    const uid = Buffer.alloc(16, id).toString('base64url');
    const records = [{ uid, time, text, bytes: Buffer.from(text), isObject: true }];
    return store.store({ records, received: time + 3 * second, serverNow }, place);
  };
  const close = (to: number): Promise<void> => it.journal.close(sourceId, span(0, to), proven(), lastAge);
  return { store, close, pages: it.pages, collected, delays, informed, lines, laggingPosition, clock: it.clock, add };
}

test('stores a page with its place, counts it, and informs the visibility check', async () => {
  const { store, pages, collected, informed, lines, add } = await setup();
  expect(await add(1, base, { polledUntil: base + minute })).toMatchObject({ appended: 1 });
  expect(pages).toMatchObject([{ source: sourceId, polledUntil: base + minute, records: [{ text: '{"logId":1}' }] }]);
  expect(await add(1, base)).toMatchObject({ appended: 0, known: 1 });
  expect([collected, informed]).toEqual([[1], [1, 1]]);
  expect(store.windowRecords).toBe(0);
  await add(2, base + second, { window: span(0, 60) });
  expect(store.windowRecords).toBe(1);
  expect(lines.lines.map(({ event }) => event)).toEqual(['source.first_record']);
});

test('measures the delay of new records that a live poll could have waited for', async () => {
  const { delays, add } = await setup(base);
  await add(1, base - 1);
  expect(delays).toEqual([]);
  await add(2, base);
  await add(3, base + second, { window: span(0, 60) }, base);
  expect(delays).toEqual([3, 3]);
  // Already known.
  await add(2, base);
  // The live range is days behind: this is history, read for the first time.
  await add(4, base + 2 * second, { window: span(0, 60) }, base + day);
  expect(delays).toEqual([3, 3]);
});

test('a record found when its window is closed counts with closeDelay at most, a late one with its whole delay', async () => {
  const { delays, store, close } = await setup(base);
  const page = (id: number): Parameters<PageStore['store']>[0] => {
    const text = `{"logId":${id}}`;
    const record = { uid: Buffer.alloc(16, id).toString('base64url'), time: base, text, bytes: Buffer.from(text), isObject: true };
    return { records: [record], received: base + closeDelay + minute, serverNow: base };
  };
  await store.store(page(1), { window: span(0, 60) });
  await close(60);
  await store.store(page(2), { window: span(0, 60) });
  await store.store(page(3));
  expect(delays).toEqual([900, 960, 960]);
});

test('measures no delay before the first live poll', async () => {
  const { store, delays, add } = await setup();
  await add(1, base + hour);
  expect(delays).toEqual([]);
  store.polledFrom = base;
  await add(2, base + hour);
  expect(delays).toEqual([3]);
});

test('waits up to 20 ms for sinks that fall behind while a window is read, and not again for a sink without progress', async () => {
  const { laggingPosition, clock, add } = await setup();
  const waited = async (work: () => Promise<unknown>): Promise<number> => {
    const before = clock.monotonic();
    await work();
    return clock.monotonic() - before;
  };
  laggingPosition.splice(0, 1, 3, 4, undefined);
  expect(await waited(() => add(1, base, { window: span(0, 60) }))).toBe(8);
  laggingPosition.splice(0, laggingPosition.length, 7);
  expect(await waited(() => add(2, base, { window: span(0, 60) }))).toBe(20);
  expect(await waited(() => add(3, base, { window: span(0, 60) }))).toBe(0);
  laggingPosition.splice(0, laggingPosition.length, 8);
  // A live poll never waits, nor does a page without new records.
  expect(await waited(() => add(4, base))).toBe(0);
  expect(await waited(() => add(3, base, { window: span(0, 60) }))).toBe(0);
  expect(await waited(() => add(5, base, { window: span(0, 60) }))).toBe(20);
});
