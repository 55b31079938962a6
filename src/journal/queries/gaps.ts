/** The windows that are not proven, as `gaps list --json` prints them: read from the file alone. */
import type { Database } from 'better-sqlite3';
import { parseTimestamp } from '../../record/timestamp.ts';
import { suspendedTogether } from '../backfills.ts';
import { openLedgerReport } from './ledger.ts';

/** Times are RFC 3339. */
export interface Gap {
  readonly source: string;
  readonly from: string;
  readonly to: string;
  readonly state: string;
  readonly reason: string | null;
  /** The reason for a person: `received 14, the service counted 5`. */
  readonly message: string | null;
  /** What the service counted; null where it gave no number. */
  readonly total: number | null;
  readonly inWindow: number;
  /** Distinct records received for the query, to be held against `total`. */
  readonly received: number;
  readonly nextTry: string | null;
  /** A suspension lists it: it shrank by the same event as the others of its source that have this. */
  readonly together: boolean;
}

/** Gaps, accepted gaps, and proven windows that a later count put in doubt; by source and begin. */
export function gapsOf(db: Database, source?: string): Gap[] {
  const suspended = suspendedTogether(db);
  const isSuspended = (id: string, from: string): boolean => suspended.get(id)?.has(parseTimestamp(from)?.us ?? NaN) ?? false;
  using report = openLedgerReport(db, { source });
  const gaps: Gap[] = [];
  for (const { id, windows } of report.sources) {
    for (const { from, to, state, reason, message, total, received, records: inWindow, nextRecount } of windows) {
      const together = isSuspended(id, from) && state !== 'accepted' && reason !== 'shrunk';
      if (state !== 'gap' && state !== 'accepted' && reason !== 'reread' && !together) continue;
      gaps.push({
        ...{ source: id, from, to, state, reason: together ? 'reread' : reason, message: message, total, received, inWindow },
        ...{ nextTry: together ? null : nextRecount, together },
      });
    }
  }
  return gaps;
}
