/** Small reads for the status page: the newest windows of a source, and the progress of all sources and sinks. Their cost does not grow with the ledger. */
import type { Database } from 'better-sqlite3';
import type { ShownWindow } from '../../model/snapshot.ts';
import type { Micros } from '../../model/time.ts';
import { suspendedTogether } from './suspensions.ts';
import { stateOf, withDoubt } from './window-groups.ts';
import type { WindowDbRow } from '../window-rows.ts';
import { lagSeconds, sinkRows, sourceRows } from './snapshot.ts';

type RecentDbRow = Pick<WindowDbRow, 'from_us' | 'to_us' | 'state' | 'records' | 'total' | 'next_us' | 'reason'>;

/** By source, the newest windows, oldest first. */
export function recentWindows(db: Database, maxWindows: number): ReadonlyMap<string, readonly ShownWindow[]> {
  const newest = db.prepare<[number, number], RecentDbRow>(
    'SELECT from_us, to_us, state, records, total, next_us, reason FROM windows WHERE source = ? ORDER BY from_us DESC LIMIT ?',
  );
  const suspended = suspendedTogether(db);
  return new Map(
    sourceRows(db).map(({ n, id }) => {
      const doubted = suspended.get(id) ?? new Set();
      const windows = newest.all(n, maxWindows).map((row): ShownWindow => ({
        from: row.from_us,
        to: row.to_us,
        state: stateOf(row),
        records: row.records,
        total: row.total,
        isInDoubt: row.state === 'proven' && withDoubt(row, doubted).reason === 'reread',
      }));
      return [id, windows.reverse()] as const;
    }),
  );
}

/** Records of the windows that begin at or after `since`, of all sources, and the late ones among them. */
export function recordsSince(db: Database, since: Micros): { readonly records: number; readonly late: number } {
  const sums = db.prepare<[number, number], { records: number | null; late: number | null }>(
    'SELECT sum(records) AS records, sum(late) AS late FROM windows WHERE source = ? AND from_us >= ?',
  );
  const rows = sourceRows(db).map(({ n }) => sums.get(n, since));
  const sum = (of: 'records' | 'late'): number => rows.reduce((total, row) => total + (row?.[of] ?? 0), 0);
  return { records: sum('records'), late: sum('late') };
}

export interface Progress {
  readonly at: Micros;
  readonly sources: ReadonlyMap<string, { readonly frontier: Micros; readonly collected: number }>;
  /** Without retired ones. */
  readonly sinks: ReadonlyMap<string, { readonly acknowledged: number; readonly lagSeconds: number }>;
}

export function progressOf(db: Database, now: Micros): Progress {
  return db.transaction((): Progress => {
    const { seq: head } = db.prepare<[], { seq: number }>('SELECT seq FROM head WHERE one = 1').get() ?? { seq: 0 };
    const sinks = sinkRows(db).filter(({ state }) => state !== 'retired');
    return {
      at: now,
      sources: new Map(sourceRows(db).map(({ id, frontier, collected }) => [id, { frontier, collected }])),
      sinks: new Map(
        sinks.map(({ id, acknowledged }) => [
          id,
          { acknowledged, lagSeconds: acknowledged >= head ? 0 : lagSeconds(db, acknowledged, now) },
        ]),
      ),
    };
  })();
}
