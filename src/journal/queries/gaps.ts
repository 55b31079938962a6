/** The windows that need attention or were accepted, as `gaps list --json` prints them. Reads only the database. */
import type { Database } from 'better-sqlite3';
import type { LedgerReportWindow } from '../../model/ledger-report.ts';
import { parseTimestamp } from '../../record/timestamp.ts';
import { suspendedTogether } from './suspensions.ts';
import { openLedgerReport } from './ledger.ts';

/** Times are RFC 3339. */
export interface ListedWindow extends Pick<LedgerReportWindow, 'from' | 'to' | 'state' | 'reason' | 'message' | 'total' | 'received'> {
  readonly source: string;
  readonly inWindow: number;
  /** Distinct records received for the query; compare with `total`. */
  readonly received: number;
  readonly nextTry: string | null;
  /** True if the current suspension lists the window together with others of its source. */
  readonly together: boolean;
}

/** The windows that status, metrics and ledger count under the same names. Each list is sorted by source and start. */
export interface GapLists {
  readonly gaps: ListedWindow[];
  readonly inDoubt: ListedWindow[];
  readonly accepted: ListedWindow[];
}

/** The windows of a state, or of the shards of a fleet. */
export function gapsOf(dbs: readonly Database[], source?: string): GapLists {
  const found = dbs.map((db) => gapsIn(db, source));
  const all = (list: keyof GapLists): ListedWindow[] =>
    found.flatMap((lists) => lists[list]).toSorted((one, other) => one.source.localeCompare(other.source, 'en'));
  return { gaps: all('gaps'), inDoubt: all('inDoubt'), accepted: all('accepted') };
}

function gapsIn(db: Database, source: string | undefined): GapLists {
  const suspended = suspendedTogether(db);
  const isSuspended = (id: string, from: string): boolean => suspended.get(id)?.has(parseTimestamp(from)?.us ?? NaN) ?? false;
  using report = openLedgerReport(db, { source });
  const lists: GapLists = { gaps: [], inDoubt: [], accepted: [] };
  for (const { id, windows } of report.sources) {
    for (const { from, to, state, reason, message, total, received, records: inWindow, nextRecount } of windows) {
      const together = isSuspended(id, from) && state !== 'accepted' && reason !== 'shrunk';
      if (state !== 'gap' && state !== 'accepted' && reason !== 'reread' && !together) continue;
      lists[state === 'gap' ? 'gaps' : state === 'accepted' ? 'accepted' : 'inDoubt'].push({
        source: id,
        from,
        to,
        state,
        reason: together ? 'reread' : reason,
        message,
        total,
        received,
        inWindow,
        nextTry: together ? null : nextRecount,
        together,
      });
    }
  }
  return lists;
}
