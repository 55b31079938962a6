/**
 * The columns in memory compared with a plain search and sort of the same records: every filter
 * with every order, also for late records.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { DataFile } from '../../src/reference/data-file.ts';
import type { Keys, Selection } from '../../src/reference/logs/selection.ts';
import { Store, type SortField, type StoredRecord } from '../../src/reference/logs/store.ts';

const seed = Number(process.env['WAYBILL_TEST_SEED'] ?? Date.now() % 1_000_000);
/** Deterministic (Lehmer). */
let state = seed * 2 + 1;
const below = (limit: number): number => (state = (state * 48_271) % 2_147_483_647) % limit;

/** Texts whose order differs between UTF-16 and code points, and some that differ only in case. */
const texts = ['a', 'A', 'b', 'ab', '', '\u{ffff}x', '\u{1f600}', 'é', 'z\u0000', 'z'];
const fields: (keyof Keys)[] = [
  'userId',
  'payloadId',
  'payloadName',
  'currentPayloadOwnerId',
  'actionAttempted',
  'result',
  'resultReason',
  'userLastNameFirstName',
];
let made = 0;
const recordOf = (at: bigint, variety: number): StoredRecord => {
  made += 1;
  const text = (): string | null => (below(12) === 0 ? null : (texts[below(variety)] ?? `text ${below(variety)}`));
  const keys = Object.fromEntries(fields.map((field) => [field, text()])) as unknown as Keys;
  return { ...keys, at, head: `{"n":${made}`, network: '', personal: '', tail: '}' };
};

let folder: string;
let data: DataFile;
let store: Store;
const records: { n: number; record: StoredRecord }[] = [];
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'reference-columns-'));
  data = new DataFile(join(folder, 'data.db'), false);
  store = new Store(data);
});
afterAll(() => {
  data.close();
  rmSync(folder, { recursive: true });
});

const add = (count: number, time: () => bigint, variety = 2000): void => {
  const added = Array.from({ length: count }, () => recordOf(time(), variety));
  store.add(
    added.map((record) => ({ record, shownAt: 0 })),
    1,
  );
  records.push(...added.map((record) => ({ n: Number(record.head.slice(5)), record })));
};
const ask = (selection: Selection, by: SortField, descending: boolean, limit: number, offset: number): number[] => {
  const order = { by, descending, tiesBy: undefined };
  const page = store.page(selection, { network: true, personal: true }, order, limit, offset, ['[', ']']);
  return (JSON.parse(page.toString()) as { n: number }[]).map(({ n }) => n);
};
const bytesOf = new Map<string | null, Buffer>();
/** Absent before every text, and texts in the order of their bytes. */
const bytes = (text: string | null): Buffer => {
  const known = bytesOf.get(text);
  if (known) return known;
  const made = text === null ? Buffer.alloc(0) : Buffer.from(`x${text}`);
  bytesOf.set(text, made);
  return made;
};
/** The numbers of all matching records in order, oldest of equal values first. */
const expected = ({ from, until, equal, ownOf }: Selection, by: SortField, descending: boolean): number[] => {
  const found = records.filter(
    ({ record }) =>
      (from === undefined || record.at >= from) &&
      (until === undefined || record.at < until) &&
      Object.entries(equal).every(([field, text]) => record[field as keyof Keys] === text) &&
      (ownOf === undefined || record.userId === ownOf || record.currentPayloadOwnerId === ownOf),
  );
  found.sort((one, other) => {
    const byField = by === 'logTimestamp' ? 0 : Buffer.compare(bytes(one.record[by]), bytes(other.record[by]));
    return byField || Number(one.record.at - other.record.at) || one.n - other.n;
  });
  const numbers = found.map(({ n }) => n);
  return descending ? numbers.reverse() : numbers;
};
const compare = (count: number): void => {
  const sorts: SortField[] = ['logTimestamp', ...fields];
  for (let left = count; left > 0; left -= 1) {
    const equal = Object.fromEntries(fields.filter(() => below(6) === 0).map((field) => [field, texts[below(texts.length)] ?? '']));
    const [start, length] = [BigInt(below(1000)), BigInt(below(1000))];
    const selection: Selection = {
      from: below(2) === 0 ? undefined : start,
      until: below(2) === 0 ? undefined : start + length,
      equal: below(3) === 0 ? {} : equal,
      ownOf: below(4) === 0 ? (texts[below(texts.length)] ?? '') : undefined,
    };
    const [by, descending] = [sorts[below(sorts.length)] ?? 'result', below(2) === 0];
    const all = expected(selection, by, descending);
    const what = `seed ${seed}: ${JSON.stringify({ ...selection, from: String(selection.from), until: String(selection.until), by, descending })}`;
    expect(store.count(selection), what).toBe(all.length);
    const [limit, offset] = [1 + below(60), below(Math.max(1, all.length + 30))];
    expect(ask(selection, by, descending, limit, offset), what).toEqual(all.slice(offset, offset + limit));
  }
};

test('any filter, order and page give the same records as a plain search, also for late or simultaneous records', () => {
  add(3000, () => BigInt(below(1000)), 10);
  compare(120);
  // Later than all, then among the existing ones, then at one time; with few new texts, and with
  // many.
  add(50, () => 1000n + BigInt(below(5)), 20);
  compare(50);
  add(700, () => BigInt(below(1005)), 4000);
  compare(60);
  add(300, () => 500n);
  compare(60);
});

test('rolled-back records are in no response, and the records that reuse their ids are', () => {
  const everything: Selection = { from: undefined, until: undefined, equal: {}, ownOf: 'a' };
  const before = store.count(everything);
  expect(() =>
    data.transaction(() => {
      store.add([{ record: { ...recordOf(7n, 10), userId: 'a' }, shownAt: 0 }], 1);
      throw new Error('taken back');
    }),
  ).toThrow('taken back');
  made -= 1;
  expect(store.count(everything)).toBe(before);
  add(1, () => 7n, 10);
  compare(50);
});

test('a store that is opened again reads all records', async () => {
  const again = new Store(data);
  await again.load(new AbortController().signal);
  const selection: Selection = { from: undefined, until: undefined, equal: { result: 'b' }, ownOf: undefined };
  expect(again.count(selection)).toBe(store.count(selection));
  const ended = new AbortController();
  ended.abort(new Error('ended'));
  await expect(new Store(data).load(ended.signal)).rejects.toThrow('ended');
});
