/**
 * Which uids a source has delivered already, by bucket of ten minutes of `logTimestamp`: rows in the journal's file, sets in memory for the
 * buckets in use. Memory follows the file: a uid joins its set only after the transaction that stored it was committed.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Micros } from '../model/time.ts';
import { UidSet } from './uid-set.ts';

export const bucketMicros = 600_000_000;
const dayMicros = 86_400_000_000;

/** The bucket of a readable time: 0 or more. */
export function bucketOf(time: Micros): number {
  return Math.floor(time / bucketMicros);
}

/** The bucket of records without a readable time, by the day on which they were received: below 0. */
export function negativeBucketOf(received: Micros): number {
  return -Math.floor(received / dayMicros);
}

/** The end of the day that a negative bucket stands for. */
function endOfNegativeBucket(bucket: number): Micros {
  return (-bucket + 1) * dayMicros;
}

/** The uids of one bucket, to be asked only: they change when a transaction was committed, and only here. */
export type Known = Pick<UidSet, 'has'>;

export class SeenUids {
  readonly #load: Statement<[number, number], { uids: Buffer }>;
  readonly #negative: Statement<[number], { bucket: number }>;
  readonly #insert: Statement<[number, number, number, Buffer]>;
  readonly #least: Statement<[number, number], { seq: number | null }>;
  readonly #timeless: Statement<[number], { n: number }>;
  readonly #oldest: Statement<[number], { bucket: number | null }>;
  readonly #older: Statement<[number, number], { bucket: number }>;
  readonly #remove: Statement<[number, number]>;
  readonly #capacity: number;
  /** Insertion order is the order of use: the first key is the least recently used. */
  readonly #sets = new Map<string, UidSet>();
  #held = 0;

  constructor(db: Database, capacity = 300_000) {
    this.#load = db.prepare('SELECT uids FROM seen WHERE source = ? AND bucket = ?');
    this.#negative = db.prepare('SELECT DISTINCT bucket FROM seen WHERE source = ? AND bucket < 0');
    this.#insert = db.prepare('INSERT INTO seen (source, bucket, seq, uids) VALUES (?, ?, ?, ?)');
    this.#least = db.prepare('SELECT min(seq) AS seq FROM seen WHERE source = ? AND bucket = ?');
    this.#timeless = db.prepare('SELECT coalesce(sum(length(uids)), 0) / 16 AS n FROM seen WHERE source = ? AND bucket < 0');
    this.#oldest = db.prepare('SELECT min(bucket) AS bucket FROM seen WHERE source = ? AND bucket >= 0');
    this.#older = db.prepare('SELECT DISTINCT bucket FROM seen WHERE source = ? AND bucket >= 0 AND bucket < ?');
    this.#remove = db.prepare('DELETE FROM seen WHERE source = ? AND bucket = ?');
    this.#capacity = capacity;
  }

  /** The uids of one bucket, loaded when they are not in memory. */
  bucket(source: number, bucket: number): Known {
    const key = `${source}/${bucket}`;
    const held = this.#sets.get(key);
    if (held) {
      this.#sets.delete(key);
      this.#sets.set(key, held);
      return held;
    }
    const uids = new UidSet();
    for (const row of this.#load.iterate(source, bucket)) uids.addBytes(row.uids);
    this.#sets.set(key, uids);
    this.#held += uids.size;
    return uids;
  }

  /** The negative buckets that a source has: all of them are asked about a record without a readable time. */
  negativeBuckets(source: number): number[] {
    return this.#negative.all(source).map((row) => row.bucket);
  }

  /** Buckets that lie wholly before a time. Negative ones stay five days longer. */
  bucketsBefore(source: number, time: Micros): number[] {
    const negative = this.negativeBuckets(source).filter(
      (bucket) => /* mutant: forget-unreadable */ endOfNegativeBucket(bucket) + 5 * 86_400_000_000 < time,
    );
    const oldest = this.#oldest.get(source)?.bucket;
    if (oldest === null || oldest === undefined || (oldest + 1) * bucketMicros > time) return negative;
    return [...negative, ...this.#older.all(source, Math.floor(time / bucketMicros)).map(({ bucket }) => bucket)];
  }

  /** Within a transaction: deletes buckets from the file. After COMMIT, `forget` drops them from memory. */
  remove(source: number, buckets: readonly number[]): void {
    for (const bucket of buckets) this.#remove.run(source, bucket);
  }

  /** How many uids stand in the negative buckets of a source. */
  timeless(source: number): number {
    return this.#timeless.get(source)?.n ?? 0;
  }

  /** Stores the new uids of one bucket, inside the transaction that stores their segment; `seq` undefined where there is no segment. */
  store(source: number, bucket: number, seq: number | undefined, uids: readonly string[]): void {
    const bytes = Buffer.allocUnsafe(uids.length * 16);
    uids.forEach((uid, i) => bytes.write(uid, i * 16, 16, 'base64url'));
    // A row is never rewritten: uids that are only known again, without a segment, count down from 0.
    this.#insert.run(source, bucket, seq ?? Math.min(0, this.#least.get(source, bucket)?.seq ?? 0) - 1, bytes);
  }

  /** Called after COMMIT. Evicts the least recently used buckets, never one of those just added to. */
  committed(source: number, added: ReadonlyMap<number, readonly string[]>): void {
    for (const [bucket, uids] of added) {
      const key = `${source}/${bucket}`;
      const held = this.#sets.get(key);
      if (!held) continue;
      const before = held.size;
      for (const uid of uids) held.add(uid);
      this.#held += held.size - before;
      this.#sets.delete(key);
      this.#sets.set(key, held);
    }
    for (const [key, held] of this.#sets) {
      if (this.#held <= this.#capacity) break;
      const [of, bucket] = key.split('/').map(Number);
      if (of === source && added.has(bucket ?? NaN)) continue;
      this.#sets.delete(key);
      this.#held -= held.size;
    }
  }

  /** Drops from memory what was deleted from the file. */
  forget(source: number, bucket: number): void {
    const key = `${source}/${bucket}`;
    const held = this.#sets.get(key);
    if (!held) return;
    this.#sets.delete(key);
    this.#held -= held.size;
  }
}
