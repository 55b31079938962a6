/** The changes that people made, as `operations list --json` prints them: read from the file alone. */
import type { Database } from 'better-sqlite3';
import type { Micros } from '../../model/time.ts';
import { operationsOf } from '../history.ts';
import { detailOf, instant, withTimes } from '../operation-detail.ts';
import type { Detail } from '../operation-detail.ts';

export interface OperationItem {
  readonly n: number;
  /** RFC 3339. */
  readonly at: string;
  /** What the person claimed; null where nobody was named. */
  readonly who: string | null;
  readonly what: string;
  readonly source: unknown;
  readonly sink: unknown;
  readonly why: unknown;
  readonly detail: Detail;
}

/** Oldest first; `[from, to)`. */
export function operationList(db: Database, from: Micros, to: Micros): OperationItem[] {
  return operationsOf(db, from, to).map(({ n, at, who, what, detail }) => {
    const { source = null, sink = null, why = null, ...rest } = detailOf(detail);
    return { n, at: instant(at), who: who ?? null, what, source, sink, why, detail: withTimes(rest) };
  });
}
