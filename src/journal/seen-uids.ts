/**
 * The uids that a source has delivered, in buckets of ten minutes of `logTimestamp`: rows in the file, and sets in memory for the buckets
 * in use. A uid enters its set only after its transaction has committed.
 */
import type { Database, Statement } from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import type { Micros } from '../model/time.ts';
import { UidSet } from '../record/uid-set.ts';

export const bucketMicros = 600_000_000;
const dayMicros = 86_400_000_000;

/** The bucket of a readable time: 0 or more. */
export function bucketOf(time: Micros): number {
  return Math.floor(time / bucketMicros);
}

/** The bucket of records without a readable time: the day of receipt as a negative number. */
export function negativeBucketOf(received: Micros): number {
  return -Math.floor(received / dayMicros);
}

function endOfNegativeBucket(bucket: number): Micros {
  return (-bucket + 1) * dayMicros;
}

/** The uids of one bucket, read-only. They change only here, after a COMMIT. */
export type Known = Pick<UidSet, 'has'>;

interface Limits {
  /** Memory above which the buckets that are not in use are evicted. */
  readonly idleBytes: number;
  /** Memory above which buckets in use are evicted too: with many busy sources, each page then loads its bucket again. */
  readonly maxBytes: number;
}

export class SeenUids {
  readonly #load: Statement<[number, number], { uids: Buffer }>;
  readonly #count: Statement<[number, number], { n: number }>;
  readonly #negative: Statement<[number], { bucket: number }>;
  readonly #insert: Statement<[number, number, number, Buffer]>;
  readonly #minSeq: Statement<[number, number], { seq: number | null }>;
  readonly #timeless: Statement<[number], { n: number }>;
  readonly #oldest: Statement<[number], { bucket: number | null }>;
  readonly #older: Statement<[number, number], { bucket: number }>;
  readonly #remove: Statement<[number, number]>;
  readonly #limits: Limits;
  /** In order of use: the first key is the least recently used. */
  readonly #sets = new Map<string, UidSet>();
  #bytes = 0;
  /**
   * The two buckets last used of each source. A live poll and a window that is closed alternate
   * between them: eviction would load the uids of ten minutes for each page.
   */
  readonly #lastUsed = new Map<number, readonly [number, number]>();

  constructor(db: Database, limits: Limits = { idleBytes: 10 * 2 ** 20, maxBytes: 128 * 2 ** 20 }) {
    this.#load = db.prepare('SELECT uids FROM seen WHERE source = ? AND bucket = ?');
    this.#count = db.prepare('SELECT coalesce(sum(length(uids)), 0) / 16 AS n FROM seen WHERE source = ? AND bucket = ?');
    this.#negative = db.prepare('SELECT DISTINCT bucket FROM seen WHERE source = ? AND bucket < 0');
    this.#insert = db.prepare('INSERT INTO seen (source, bucket, seq, uids) VALUES (?, ?, ?, ?)');
    this.#minSeq = db.prepare('SELECT min(seq) AS seq FROM seen WHERE source = ? AND bucket = ?');
    this.#timeless = db.prepare('SELECT coalesce(sum(length(uids)), 0) / 16 AS n FROM seen WHERE source = ? AND bucket < 0');
    this.#oldest = db.prepare('SELECT min(bucket) AS bucket FROM seen WHERE source = ? AND bucket >= 0');
    this.#older = db.prepare('SELECT DISTINCT bucket FROM seen WHERE source = ? AND bucket >= 0 AND bucket < ?');
    this.#remove = db.prepare('DELETE FROM seen WHERE source = ? AND bucket = ?');
    this.#limits = limits;
  }

  /** The uids of one bucket, loaded from the file if necessary. */
  bucket(source: number, bucket: number): Known {
    const key = `${source}/${bucket}`;
    this.#use(source, bucket);
    const held = this.#sets.get(key);
    if (held) {
      this.#sets.delete(key);
      this.#sets.set(key, held);
      return held;
    }
    const uids = new UidSet(this.#count.get(source, bucket)?.n ?? 0);
    for (const row of this.#load.iterate(source, bucket)) {
      if (row.uids.length === 0)
        throw new WaybillError('internal_error', `the uids in bucket ${bucket} of source ${source} were not fetched`);
      uids.addBytes(row.uids);
    }
    this.#sets.set(key, uids);
    this.#bytes += uids.bytes;
    return uids;
  }

  /** Notes the last two buckets of a source. Negative buckets are left out: they are small, and are looked up together with another bucket. */
  #use(source: number, bucket: number): void {
    if (bucket < 0) return;
    const [last] = this.#lastUsed.get(source) ?? [bucket];
    if (last !== bucket || !this.#lastUsed.has(source)) this.#lastUsed.set(source, [bucket, last]);
  }

  /** The negative buckets of a source. A record without a readable time is looked up in all of them. */
  negativeBuckets(source: number): number[] {
    return this.#negative.all(source).map((row) => row.bucket);
  }

  /** Buckets that end before a time. Negative buckets are kept five days longer. */
  bucketsBefore(source: number, time: Micros): number[] {
    const negative = this.negativeBuckets(source).filter(
      (bucket) => /* mutant: forget-unreadable */ endOfNegativeBucket(bucket) + 5 * 86_400_000_000 < time,
    );
    const oldest = this.#oldest.get(source)?.bucket;
    if (oldest === null || oldest === undefined || (oldest + 1) * bucketMicros > time) return negative;
    return [...negative, ...this.#older.all(source, Math.floor(time / bucketMicros)).map(({ bucket }) => bucket)];
  }

  /** Within a transaction: deletes buckets from the file. After COMMIT, `forget` removes them from memory. */
  remove(source: number, buckets: readonly number[]): void {
    for (const bucket of buckets) this.#remove.run(source, bucket);
  }

  /** The number of uids in the negative buckets of a source. */
  timeless(source: number): number {
    return this.#timeless.get(source)?.n ?? 0;
  }

  /** Within a transaction: stores new uids of one bucket. `seq` is undefined for uids without a segment. */
  store(source: number, bucket: number, seq: number | undefined, uids: readonly string[]): void {
    const bytes = Buffer.allocUnsafe(uids.length * 16);
    uids.forEach((uid, i) => bytes.write(uid, i * 16, 16, 'base64url'));
    // Rows are never rewritten. Rows without a segment count down from 0.
    this.#insert.run(source, bucket, seq ?? Math.min(0, this.#minSeq.get(source, bucket)?.seq ?? 0) - 1, bytes);
  }

  /** Called after COMMIT. Evicts the least recently used buckets, but none of `added`. */
  committed(source: number, added: ReadonlyMap<number, readonly string[]>): void {
    for (const [bucket, uids] of added) {
      const key = `${source}/${bucket}`;
      const held = this.#sets.get(key);
      if (!held) continue;
      const before = held.bytes;
      for (const uid of uids) held.add(uid);
      this.#bytes += held.bytes - before;
      this.#sets.delete(key);
      this.#sets.set(key, held);
    }
    const isAdded = (of: number, bucket: number): boolean => of === source && added.has(bucket);
    this.#evict(this.#limits.idleBytes, (of, bucket) => isAdded(of, bucket) || this.#lastUsed.get(of)?.includes(bucket) === true);
    this.#evict(this.#limits.maxBytes, isAdded);
  }

  #evict(maxBytes: number, isKept: (source: number, bucket: number) => boolean): void {
    for (const key of this.#sets.keys()) {
      if (this.#bytes <= maxBytes) break;
      const [source = NaN, bucket = NaN] = key.split('/').map(Number);
      if (!isKept(source, bucket)) this.forget(source, bucket);
    }
  }

  /** Frees the memory of a source that is no longer collected. */
  release(source: number): void {
    this.#evict(-1, (of) => of !== source);
    this.#lastUsed.delete(source);
  }

  forget(source: number, bucket: number): void {
    const key = `${source}/${bucket}`;
    const held = this.#sets.get(key);
    if (!held) return;
    this.#sets.delete(key);
    this.#bytes -= held.bytes;
  }
}
