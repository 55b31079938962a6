/** The backfills of the sources, and the time that no ledger covers. Reads only the database. */
import type { Database } from 'better-sqlite3';
import type { BackfillOrder, BackfillProgress, Window } from '../../model/ledger.ts';
import type { Unread, RequestedStart } from '../../model/snapshot.ts';
import type { Micros } from '../../model/time.ts';
import { storedJson } from '../damage.ts';
import { uncovered } from '../sources.ts';
import { StateCounts } from '../window-counts.ts';
import { windowGroups } from './window-groups.ts';

type Reach = Pick<BackfillProgress, 'from' | 'to' | 'closedUntil' | 'order'>;

function progressOf(db: Database, source: number, { from, to, closedUntil, order }: Reach): BackfillProgress {
  const sql = 'SELECT sum(records) AS records FROM windows WHERE source = ? AND from_us >= ? AND from_us < ?';
  const { records } = db.prepare<[number, number, number], { records: number | null }>(sql).get(source, from, to) ?? { records: 0 };
  const { all, gap } = StateCounts.of(windowGroups(db, source, { from, to }));
  const state = closedUntil >= to ? 'done' : order.paused ? 'paused' : 'running';
  return { from, to, closedUntil, state, windows: all, records: records ?? 0, gaps: gap, order };
}

/** The backfills of every source, oldest first; completed ones only with `all`. */
export function backfillsOf(db: Database, all: boolean): (BackfillProgress & { readonly source: string })[] {
  const sql = `SELECT source_no AS n, id AS source, from_us AS "from", to_us AS "to", closed_until_us AS closedUntil, backfill
       FROM ranges JOIN sources ON source_no = source WHERE backfill IS NOT NULL ORDER BY id, from_us`;
  return db
    .prepare<[], Window & { n: number; source: string; closedUntil: Micros; backfill: string }>(sql)
    .all()
    .filter(({ to, closedUntil }) => all || closedUntil < to)
    .map(({ n, source, backfill, ...range }) => ({
      source,
      ...progressOf(db, n, { ...range, order: storedJson(backfill) as BackfillOrder }),
    }));
}

/** The parts of a period that the ledger of a source does not cover, read from the file; undefined for an unknown source. */
export function uncoveredOf(db: Database, id: string, span: Window): Window[] | undefined {
  const source = db.prepare<[string], { n: number }>('SELECT source_no AS n FROM sources WHERE id = ?').get(id);
  if (!source) return undefined;
  const ranges = db.prepare<[number], { from: number; to: number | null }>(
    'SELECT from_us AS "from", to_us AS "to" FROM ranges WHERE source = ?',
  );
  return uncovered(ranges.all(source.n), span);
}

/** The uncovered time between the requested start and the start of the ledger, read from the file; undefined when none. */
export function unreadOf(db: Database, id: string, requested: RequestedStart): Unread | undefined {
  const sql = 'SELECT from_us FROM ranges JOIN sources ON source_no = source WHERE id = ? AND to_us IS NULL';
  const live = db.prepare<[string], { from_us: number }>(sql).get(id);
  if (!live || requested.from >= live.from_us - requested.apart) return undefined;
  const parts = uncoveredOf(db, id, { from: requested.from, to: live.from_us }) ?? [];
  const [first, last] = [parts[0], parts.at(-1)];
  return first && last && { from: first.from, to: last.to, startsAt: live.from_us };
}
