/** Short reads of a state for commands, on a read-only connection. */
import type { Database } from 'better-sqlite3';
import type { Micros } from '../../model/time.ts';

export interface StoredSource {
  readonly id: string;
  readonly state: string;
  readonly destination: string | null;
  /** JSON; null before the first calibration. */
  readonly profile: string | null;
}

interface KnownSource {
  readonly id: string;
  readonly state: string;
  readonly startsAt: Micros;
  readonly liveFrom: Micros;
  readonly frontier: Micros;
  readonly closedUntil: Micros;
  readonly records: number;
}

export interface StoredSink {
  readonly id: string;
  readonly type: string;
  readonly destination: string;
}

export function storedSources(db: Database): StoredSource[] {
  return db.prepare<[], StoredSource>('SELECT id, state, destination, profile FROM sources ORDER BY id').all();
}

export function sourcesOf(db: Database): KnownSource[] {
  const sql = `SELECT id, state, (SELECT min(from_us) FROM ranges WHERE source = source_no) AS startsAt, from_us AS liveFrom, frontier_us AS frontier,
              closed_until_us AS closedUntil, collected AS records
       FROM sources JOIN ranges ON source = source_no AND to_us IS NULL ORDER BY id`;
  return db.prepare<[], KnownSource>(sql).all();
}

export function storedSinks(db: Database): StoredSink[] {
  return db.prepare<[], StoredSink>('SELECT id, type, destination FROM sinks').all();
}

/** Average size of a record in the file, over the last 200 segments; undefined without records. */
export function bytesPerRecord(db: Database): number | undefined {
  const sql = `SELECT sum(length(body) + length(uids) * 2) AS bytes, sum(n) AS records
       FROM (SELECT body, uids, n FROM segments WHERE kind & 255 = 1 AND length(body) > 0 ORDER BY seq DESC LIMIT 200)`;
  const stored = db.prepare<[], { bytes: number | null; records: number | null }>(sql).get();
  return stored?.bytes && stored.records ? stored.bytes / stored.records : undefined;
}
