/** The changes that people made, as `operations list --json` prints them: read from the file alone. */
import type { Database } from 'better-sqlite3';
import type { Micros } from '../../model/time.ts';
import { operationsOf } from '../backfills.ts';
import { detailOf, instant, withTimes } from '../operation-detail.ts';
import type { Detail } from '../operation-detail.ts';

export interface OperationItem {
  readonly n: number;
  /** RFC 3339. */
  readonly at: string;
  /** What the person claimed; null where nobody was named. */
  readonly actor: string | null;
  readonly operation: string;
  readonly source: unknown;
  readonly sink: unknown;
  readonly reason: unknown;
  readonly detail: Detail;
}

/** Oldest first; `[from, to)`. */
export function operationList(db: Database, from: Micros, to: Micros): OperationItem[] {
  return operationsOf(db, from, to).map(({ n, at, actor, operation, detail }) => {
    const { source = null, sink = null, reason = null, ...rest } = detailOf(detail);
    return { n, at: instant(at), actor: actor ?? null, operation, source, sink, reason, detail: withTimes(rest) };
  });
}
