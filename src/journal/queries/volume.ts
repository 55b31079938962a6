/** The measured volume of a source, for `waybill check`. Its cost does not grow with the ledger. */
import type { Database } from 'better-sqlite3';
import type { Micros } from '../../model/time.ts';

export interface Volume {
  readonly recordsPerSecond: number;
  /** The time that the proven windows cover. */
  readonly seconds: number;
  /** Average of a record at the source, and in the file of the journal. */
  readonly recordBytes: number;
  readonly storedBytes: number;
}

const periodMicros = 7 * 86_400_000_000;
/** A shorter time is not representative of a day. */
const minSeconds = 3_600;

/**
 * Averages over the proven windows of the last seven days, and over the last 200 pages of records.
 * @returns undefined before an hour is proven and a record is in the journal
 */
export function volumeOf(db: Database, source: string): Volume | undefined {
  const windowsSql = `SELECT sum(records) AS records, sum(to_us - from_us) AS micros
       FROM windows JOIN (SELECT source_no, frontier_us FROM sources WHERE id = ?) ON source = source_no
       WHERE state = 'proven' AND from_us >= frontier_us - ? AND to_us <= frontier_us`;
  const windows = db.prepare<[string, Micros], { records: number | null; micros: number | null }>(windowsSql).get(source, periodMicros);
  const seconds = (windows?.micros ?? 0) / 1e6;
  const pagesSql = `SELECT n, substr(ends, -4) AS end, length(body) + length(ends) + length(uids) * 2 AS stored
       FROM segments WHERE source = (SELECT source_no FROM sources WHERE id = ?) AND kind & 255 = 1 AND length(body) > 0 ORDER BY seq DESC LIMIT 200`;
  const pages = db.prepare<[string], { n: number; end: Buffer; stored: number }>(pagesSql).all(source);
  const records = pages.reduce((sum, { n }) => sum + n, 0);
  if (seconds < minSeconds || records === 0) return undefined;
  return {
    recordsPerSecond: (windows?.records ?? 0) / seconds,
    seconds,
    // The table of ends closes with the length of the body before compression.
    recordBytes: pages.reduce((sum, { end }) => sum + end.readUInt32LE(), 0) / records,
    storedBytes: pages.reduce((sum, { stored }) => sum + stored, 0) / records,
  };
}
