import Database from 'better-sqlite3';
import { onTestFinished, expect, test } from 'vitest';
import { SeenUids } from '../../../src/journal/seen-uids.ts';
import { uidOf } from '../../support/records.ts';

const uid = (n: number): string => uidOf(`{"logId":${n}}`);

/** Memory of a set of up to twelve uids. */
const setBytes = 256;

function seen(
  idleBytes: number,
  maxBytes = 2 ** 30,
): { db: Database.Database; sets: SeenUids; add: (added: Record<number, number[]>) => void } {
  const db = new Database(':memory:');
  onTestFinished(() => void db.close());
  db.exec(
    'CREATE TABLE seen (source INTEGER, bucket INTEGER, seq INTEGER, uids BLOB, PRIMARY KEY (source, bucket, seq)) STRICT, WITHOUT ROWID',
  );
  const sets = new SeenUids(db, { idleBytes, maxBytes });
  let seq = 0;
  /**
   * Like a page: looks up every bucket, stores the new uids, and adds them to the sets after the
   * commit.
   */
  const add = (added: Record<number, number[]>): void => {
    seq += 1;
    const buckets = new Map(Object.entries(added).map(([bucket, ids]) => [Number(bucket), ids.map(uid)]));
    for (const bucket of buckets.keys()) sets.bucket(1, bucket);
    for (const [bucket, uids] of buckets) sets.store(1, bucket, seq, uids);
    sets.committed(1, buckets);
  };
  return { db, sets, add };
}

/** True if a bucket is in memory: then it does not notice that its rows are gone. */
function isHeld({ db, sets }: ReturnType<typeof seen>, bucket: number, id: number): boolean {
  db.exec('BEGIN; DELETE FROM seen');
  const held = sets.bucket(1, bucket).has(uid(id));
  db.exec('ROLLBACK');
  return held;
}

test('a uid is not known before its transaction has committed', () => {
  const { sets, db } = seen(setBytes);
  sets.bucket(1, 5);
  db.exec('BEGIN');
  sets.store(1, 5, 1, [uid(1)]);
  db.exec('ROLLBACK');
  expect(sets.bucket(1, 5).has(uid(1))).toBe(false);
});

test('the least recently used buckets leave memory, but not one of the current page, and nothing is forgotten by that', () => {
  const state = seen(2 * setBytes);
  const { sets, add } = state;
  add({ 1: [10, 11] });
  add({ 2: [20, 21] });
  sets.bucket(1, 1);
  add({ 3: [30, 31] });
  // The least recently used: 2.
  expect(isHeld(state, 1, 10)).toBe(true);
  // Loading 2 again exceeds the capacity during deduplication.
  const big = { 3: [32, 33], 1: [12, 13], 2: [22], 4: [40, 41, 42] };
  add(big);
  for (const [bucket, ids] of Object.entries(big)) for (const id of ids) expect(isHeld(state, Number(bucket), id)).toBe(true);
  for (const [bucket, ids] of Object.entries({ 1: [10, 11, 12, 13], 2: [20, 21, 22], 3: [30, 31, 32, 33], 4: [40, 41, 42] }))
    for (const id of ids) expect(sets.bucket(1, Number(bucket)).has(uid(id))).toBe(true);
});

test('a bucket that is not in use leaves memory', () => {
  const state = seen(2 * setBytes);
  state.add({ 1: [10, 11] });
  state.add({ 2: [20, 21, 22] });
  state.add({ 3: [30] });
  expect(isHeld(state, 1, 10)).toBe(false);
});

test('buckets of other sources and before 1970 are separate', () => {
  const { sets, add, db } = seen(4 * setBytes);
  add({ 7: [1], [-7]: [2] });
  expect(sets.bucket(2, 7).has(uid(1))).toBe(false);
  expect(sets.bucket(1, -7).has(uid(1))).toBe(false);
  expect(sets.negativeBuckets(1)).toEqual([-7]);
  // Known again on another day without a new segment, more than once.
  sets.store(1, -8, undefined, [uid(2)]);
  sets.store(1, -8, undefined, [uid(3)]);
  expect(db.prepare('SELECT count(*) AS n FROM seen WHERE bucket = -8').get()).toEqual({ n: 2 });
});

test('a deleted bucket leaves memory too', () => {
  const { sets, add, db } = seen(4 * setBytes);
  add({ 7: [1] });
  db.exec('DELETE FROM seen');
  expect(sets.bucket(1, 7).has(uid(1))).toBe(true);
  sets.forget(1, 7);
  expect(sets.bucket(1, 7).has(uid(1))).toBe(false);
});

test('the two last used buckets of a source stay in memory at any size, also after a page without new records', () => {
  const state = seen(2 * setBytes);
  const { sets, add } = state;
  add({ 1: [10, 11, 12, 13, 14, 15] });
  add({ 2: [20] });
  // All records of the page are known.
  sets.bucket(1, 1);
  sets.committed(1, new Map());
  expect(isHeld(state, 1, 10)).toBe(true);
  expect(isHeld(state, 2, 20)).toBe(true);
  // A page of another source does not evict them either.
  sets.bucket(2, 1);
  sets.committed(2, new Map());
  expect(isHeld(state, 1, 10)).toBe(true);
  expect(isHeld(state, 2, 20)).toBe(true);
  // A third bucket does.
  add({ 3: [30] });
  expect(isHeld(state, 1, 10)).toBe(false);
});

test('records without a readable time do not evict the bucket last used', () => {
  const state = seen(2 * setBytes);
  state.add({ 5: [1, 2, 3, 4, 5, 6] });
  state.add({ [-3]: [7] });
  state.add({ [-4]: [8] });
  expect(isHeld(state, 5, 1)).toBe(true);
});

test('the last used buckets of many sources stay within the bound, and the current page is in memory', () => {
  const { sets, db } = seen(2 * setBytes, 5 * setBytes);
  const page = (source: number): void => {
    sets.bucket(source, 1);
    sets.store(source, 1, source, [uid(source)]);
    sets.committed(source, new Map([[1, [uid(source)]]]));
  };
  const sources = Array.from({ length: 20 }, (_, i) => i + 1);
  for (const source of sources) page(source);
  // A bucket in memory does not notice that its rows are gone. Newest first: each look-up loads a
  // bucket, which evicts nothing by itself.
  db.exec('BEGIN; DELETE FROM seen');
  const held = sources.toReversed().filter((source) => sets.bucket(source, 1).has(uid(source)));
  db.exec('ROLLBACK');
  expect(held).toEqual([20, 19, 18, 17, 16]);
});

test('a removed source leaves memory, also its buckets last used', () => {
  const state = seen(4 * setBytes);
  state.add({ 1: [10], 2: [20], [-3]: [30] });
  state.sets.release(1);
  expect([isHeld(state, 1, 10), isHeld(state, 2, 20), isHeld(state, -3, 30)]).toEqual([false, false, false]);
});
