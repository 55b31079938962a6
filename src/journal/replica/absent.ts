/**
 * The large columns of a working copy. A take-over leaves them in the database, so that it takes seconds for a journal of any size: they are
 * empty in the copy until they are needed. A journal never stores an empty value in these columns, so empty means absent. The rows never change, so a fetched value stays valid.
 */
import type { Database, Statement } from 'better-sqlite3';
import { kindLedger } from '../segment.ts';
import type { Capture } from './capture.ts';
import type { SeenColumns, SegmentColumns, ShardDatabase } from './shard-database.ts';

/** Segments that one call of `shrink` empties. */
const shrinkSegments = 64;
/** Buckets of ten minutes whose uids stay in the copy. */
const keptBuckets = 144;

/** The segments, as SQL, that are never empty: reports read lines about suspensions and operations synchronously. */
export const isMoment = `kind & 255 = ${kindLedger} AND min_us = max_us`;

/** Requests to the database of the shard. */
interface Requests {
  /** Repeats a request until it is answered. */
  answered<Result>(request: (database: ShardDatabase) => Promise<Result>): Promise<Result>;
  /** Why the database does not have what its owner needs. */
  whyGone(what: string): Promise<Error>;
}

export class Absent {
  readonly #db: Database;
  readonly #capture: Capture;
  readonly #requests: Requests;

  constructor(db: Database, capture: Capture, requests: Requests) {
    this.#db = db;
    this.#capture = capture;
    this.#requests = requests;
    db.exec(`CREATE INDEX absent_segments ON segments (seq) WHERE length(body) = 0;
      CREATE INDEX absent_seen ON seen (source, bucket) WHERE length(uids) = 0`);
  }

  /** Fetches the segment that holds entry `seq`, and some after it, unless the copy has it. @returns the last entry before the next absent one */
  async segments(seq: number): Promise<number> {
    const holding = this.#db.prepare<[number], { seq: number; size: number }>(
      'SELECT seq, length(body) AS size FROM segments WHERE seq <= ? ORDER BY seq DESC LIMIT 1',
    );
    const first = holding.get(seq);
    if (first?.size === 0) {
      const rows = await this.#requests.answered((database) => database.segments(first.seq));
      this.#capture.uncaptured(() => this.#putSegments(rows));
      if (holding.get(seq)?.size === 0) throw await this.#requests.whyGone(`the segment at entry ${first.seq}`);
    }
    const next = this.#db.prepare<[number], { seq: number | null }>(
      'SELECT min(seq) AS seq FROM segments WHERE seq > ? AND length(body) = 0',
    );
    return (next.get(seq)?.seq ?? Infinity) - 1;
  }

  /** Fetches the uids of buckets. @returns undefined if the copy has them */
  seen(source: number, buckets: Iterable<number>): Promise<void> | undefined {
    const isAbsent = this.#db.prepare<[number, number]>('SELECT 1 FROM seen WHERE source = ? AND bucket = ? AND length(uids) = 0');
    const absent = [...buckets].filter((bucket) => isAbsent.get(source, bucket) !== undefined);
    return absent.length === 0 ? undefined : this.#fetchSeen(source, absent, isAbsent);
  }

  async #fetchSeen(source: number, absent: readonly number[], isAbsent: Statement<[number, number]>): Promise<void> {
    const rows = await this.#requests.answered((database) => database.seen(source, absent));
    this.#capture.uncaptured(() => this.#putSeen(rows));
    const missed = absent.find((bucket) => isAbsent.get(source, bucket) !== undefined);
    if (missed !== undefined) throw await this.#requests.whyGone(`the uids in bucket ${missed} of source ${source}`);
  }

  /**
   * Empties some values that the copy needs no more, when the database has every commit.
   * @param through  every sink has acknowledged the entries until then, and no repair needs them
   * @returns the number of emptied rows
   */
  shrink(through: number): number {
    return this.#capture.uncaptured(() => {
      const segments = this.#db.prepare<[number, number]>(
        `UPDATE segments SET uids = x'', ends = x'', body = x'' WHERE seq IN (SELECT seq FROM segments
           WHERE seq + n - 1 <= ? AND length(body) > 0 AND NOT (${isMoment}) ORDER BY seq LIMIT ?)`,
      );
      const { changes } = segments.run(through, shrinkSegments);
      if (changes > 0) return changes;
      return this.#db
        .prepare<[number, number]>(
          `UPDATE seen SET uids = x'' WHERE bucket >= 0 AND length(uids) > 0
             AND seq <= ? AND bucket < (SELECT max(bucket) FROM seen AS newest WHERE newest.source = seen.source) - ?`,
        )
        .run(through, keptBuckets).changes;
    });
  }

  #putSegments(rows: readonly SegmentColumns[]): void {
    const put = this.#db.prepare('UPDATE segments SET uids = ?, ends = ?, body = ? WHERE seq = ? AND length(body) = 0');
    for (const { seq, uids, ends, body } of rows) put.run(uids, ends, body, seq);
  }

  #putSeen(rows: readonly SeenColumns[]): void {
    const put = this.#db.prepare('UPDATE seen SET uids = ? WHERE source = ? AND bucket = ? AND seq = ? AND length(uids) = 0');
    for (const { source, bucket, seq, uids } of rows) put.run(uids, source, bucket, seq);
  }
}
