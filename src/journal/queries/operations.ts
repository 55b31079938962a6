/** Operator actions, as `operations list --json` prints them. Reads only the database. */
import type { Database } from 'better-sqlite3';
import type { Micros } from '../../model/time.ts';
import { detailOf, instant, withTimes, type Detail } from '../operation-detail.ts';

interface OperationRow {
  readonly n: number;
  readonly at: Micros;
  readonly actor: string | null;
  readonly operation: string;
  /** JSON. */
  readonly detail: string | null;
}

export interface OperationItem {
  readonly n: number;
  /** RFC 3339. */
  readonly at: string;
  /** The name that the operator gave; null when unknown. */
  readonly actor: string | null;
  readonly operation: string;
  readonly source: unknown;
  readonly sink: unknown;
  readonly reason: unknown;
  readonly detail: Detail;
}

/** Operator actions in `[from, to)` on a state, or on the shards of a fleet; oldest first. */
export function operationList(dbs: readonly Database[], from: Micros, to: Micros): OperationItem[] {
  const found = dbs.flatMap((db) => operationsIn(db, from, to));
  // Of one state, they are in the order in which they were stored.
  return dbs.length === 1 ? found : found.toSorted((one, other) => (one.at < other.at ? -1 : 1));
}

function operationsIn(db: Database, from: Micros, to: Micros): OperationItem[] {
  return operationsOf(db, from, to).map(({ n, at, actor, operation, detail }) => {
    const { source = null, sink = null, reason = null, ...rest } = detailOf(detail);
    return { n, at: instant(at), actor, operation, source, sink, reason, detail: withTimes(rest) };
  });
}

/** Operator actions in [from, to), oldest first; times in µs. */
export function operationsOf(db: Database, from: Micros, to: Micros): OperationRow[] {
  const sql =
    'SELECT operation_no AS n, at_us AS at, actor, operation, detail FROM operations WHERE at_us >= ? AND at_us < ? ORDER BY operation_no';
  return db.prepare<[number, number], OperationRow>(sql).all(from, to);
}
