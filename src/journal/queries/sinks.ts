/** The sinks in the state, for commands. Reads only the database. */
import type { Database } from 'better-sqlite3';
import type { SinkOrders } from '../../model/journal.ts';
import type { Micros } from '../../model/time.ts';
import { ordersOf, type SinkRow } from '../sink-positions.ts';

export interface KnownSink {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  readonly destination: string;
  readonly acknowledged: number;
  /** The number of entries after `acknowledged`. */
  readonly lag: number;
  /** The number of records among them. */
  readonly lagRecords: number;
  readonly deadLetters: number;
  /** The sink receives records collected since this time; 0: all. */
  readonly since: Micros;
  readonly orders: SinkOrders;
}

export function sinksOf(db: Database): KnownSink[] {
  interface Row extends SinkRow {
    begun_us: number;
    head: number;
    records: number;
    deadLetters: number;
  }
  const sql = `SELECT sinks.*, (SELECT seq FROM head) AS head,
              (SELECT coalesce(sum(seq + n - 1 - max(seq - 1, acknowledged)), 0) FROM segments WHERE number IS NOT NULL AND seq + n - 1 > acknowledged) AS records,
              (SELECT count(*) FROM dead_letters WHERE sink = sinks.id AND dead_letters.state = 'stored') AS deadLetters
       FROM sinks ORDER BY id`;
  return db
    .prepare<[], Row>(sql)
    .all()
    .map((row) => ({
      id: row.id,
      type: row.type,
      state: row.state,
      destination: row.destination,
      acknowledged: row.acknowledged,
      lag: row.head - row.acknowledged,
      lagRecords: row.records,
      deadLetters: row.deadLetters,
      since: row.begun_us,
      orders: ordersOf(row.orders),
    }));
}
