/** The state of a window as every report shows it, and the windows of a source grouped by it. Reads only the database. */
import type { Database } from 'better-sqlite3';
import type { Window } from '../../model/ledger.ts';
import type { LedgerReportState } from '../../model/ledger-report.ts';
import type { Micros } from '../../model/time.ts';
import type { CountedWindow } from '../window-counts.ts';
import type { WindowDbRow } from '../window-rows.ts';
import { forever } from './owed.ts';

type StateRow = Pick<WindowDbRow, 'state' | 'reason'>;

/** A proven window that a suspension lists is in doubt: the service now shows fewer records, for an unknown reason. */
export function withDoubt<Row extends StateRow & { from_us: Micros; message?: string | null }>(
  row: Row,
  suspended: ReadonlySet<Micros>,
): Row {
  if (row.state !== 'proven' || row.reason !== null || !suspended.has(row.from_us)) return row;
  return { ...row, reason: 'reread', message: 'the service shows fewer records than the proven total' };
}

/** `final`: proven, with the last recount done. A proven window in doubt is `proven` with the reason `reread`, never final. */
export function stateOf({ state, reason, next_us: next }: StateRow & { readonly next_us: Micros | null }): LedgerReportState {
  if (state !== 'proven') return state;
  return next === null && reason !== 'reread' ? 'final' : 'proven';
}

/**
 * The windows of a source that start in a range, in groups. Counting reads no row of a window that was always proven: the index on `next_us`
 * also contains every start.
 * @param suspended  starts of the proven windows that a suspension lists
 */
export function windowGroups(
  db: Database,
  source: number,
  { from, to }: Window = { from: 0, to: forever },
  suspended: ReadonlySet<Micros> = new Set(),
): CountedWindow[] {
  type Group = StateRow & { next_us: 0 | null; n: number };
  const bounds = [source, from, to] as const;
  const shared = 'WHERE source = ? AND from_us >= ? AND from_us < ?';
  const allSql = `SELECT nullif(next_us IS NULL, 1) AS next_us, count(*) AS n FROM windows INDEXED BY windows_due ${shared} GROUP BY 1`;
  const all = db.prepare<[number, number, number], Pick<Group, 'next_us' | 'n'>>(allSql).all(...bounds);
  const openSql = `SELECT state, reason, nullif(next_us IS NULL, 1) AS next_us, count(*) AS n FROM windows INDEXED BY windows_open ${shared}
       AND (state <> 'proven' OR reason IS NOT NULL) GROUP BY state, reason, 3`;
  const open = db.prepare<[number, number, number], Group>(openSql).all(...bounds);
  const listedSql = `SELECT 'proven' AS state, 'reread' AS reason, nullif(next_us IS NULL, 1) AS next_us, count(*) AS n FROM windows ${shared}
       AND state = 'proven' AND reason IS NULL AND from_us IN (SELECT value FROM json_each(?)) GROUP BY 3`;
  const listed = db.prepare<[number, number, number, string], Group>(listedSql).all(...bounds, JSON.stringify([...suspended]));
  const others = [...open, ...listed];
  const rest = all.map(({ next_us, n }): Group => {
    const known = others.reduce((sum, other) => sum + (other.next_us === next_us ? other.n : 0), 0);
    return { state: 'proven', reason: null, next_us, n: n - known };
  });
  return [...rest, ...others].map((group) => ({ state: stateOf(group), reason: group.reason, count: group.n }));
}
