/**
 * Wide windows are counted, and their pages found, by minutes: the results must equal a
 * record-by-record scan.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DataFile } from '../../src/reference/data-file.ts';
import { Store, type Arrival } from '../../src/reference/logs/store.ts';

const minute = 60_000_000_000n;
const keys = {
  ...{ userId: null, payloadId: null, payloadName: null, currentPayloadOwnerId: null },
  ...{ actionAttempted: null, result: null, resultReason: null, userLastNameFirstName: null },
};
let folder: string;
let data: DataFile;
let store: Store;
/** Times of visible records, oldest first; the text of a record is its time. */
let instants: bigint[];

const arrivals = (times: readonly bigint[], shownAt: number): Arrival[] =>
  times.map((at) => ({ record: { ...keys, at, head: at.toString(), network: '', personal: '', tail: '' }, shownAt }));

/**
 * From eight minutes before to eight minutes after the start of 1970, 1,500 records per minute, some
 * exactly on the minute.
 */
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reference-tally-'));
  data = new DataFile(join(folder, 'data.db'), false);
  store = new Store(data);
  const times = Array.from({ length: 12_000 }, (_, i) => (BigInt(i - 6000) * minute) / 1500n);
  const isLate = (_: bigint, i: number): boolean => i % 7 === 0;
  store.add(
    arrivals(
      times.filter((at, i) => !isLate(at, i)),
      0,
    ),
    1,
  );
  store.add(arrivals(times.filter(isLate), 5), 1);
  expect(store.count({ from: undefined, until: undefined, equal: {}, ownOf: undefined })).toBe(12_000 - Math.ceil(12_000 / 7));
  store.reveal(5);
  instants = times;
});
afterAll(() => {
  data.close();
  rmSync(folder, { recursive: true });
});

const bounds = [undefined, -3n * minute, -3n * minute + 1n, -1n, 0n, 1n, minute / 2n, 2n * minute - 1n, 2n * minute, 9n * minute];
const windows = bounds.flatMap((from) => bounds.map((until) => ({ from, until })));
const within = ({ from, until }: (typeof windows)[number]): bigint[] =>
  instants.filter((at) => (from === undefined || at >= from) && (until === undefined || at < until));

test('every window has the count of its records', () => {
  for (const window of windows) {
    expect(store.count({ ...window, equal: {}, ownOf: undefined }), `${window.from} ${window.until}`).toBe(within(window).length);
  }
});

test.each([false, true])('every page is correct, descending: %s', (descending) => {
  const order = { by: 'logTimestamp', descending, tiesBy: undefined } as const;
  for (const window of windows) {
    const all = descending ? within(window).reverse() : within(window);
    for (const offset of [0, 1001, 1499, 1500, 4321, 9000, all.length - 1].filter((each) => each >= 0)) {
      const page = store.page({ ...window, equal: {}, ownOf: undefined }, { network: true, personal: true }, order, 3, offset, ['', '']);
      expect(page.toString(), `${window.from} ${window.until} ${offset}`).toBe(all.slice(offset, offset + 3).join());
    }
  }
});

test('a file without a tally gets one when it is opened', () => {
  data.exec('DROP TRIGGER records_tallied; DROP TABLE tally');
  const reopened = new Store(data);
  reopened.add(arrivals([0n], 0), 1);
  expect(reopened.count({ from: -minute, until: 3n * minute, equal: {}, ownOf: undefined })).toBe(1500 * 4 + 1);
});
