/**
 * Delivered records that a sink lost and reported: as a range of entries, and as the range of their
 * times. The ledger does not count windows of these times as delivered.
 */
import type { Database } from 'better-sqlite3';
import type { Resent } from '../model/journal.ts';
import type { SinkLoss } from '../model/sink.ts';
import type { Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import type { Store } from './store.ts';

/**
 * Within a transaction: stores the time ranges of lost records. The times of pruned records are no
 * longer known: their range ends at the newest record time of the source.
 */
export function writeLoss(store: Store, sink: string, { first, last, message }: SinkLoss, at: Micros): void {
  const { db } = store;
  const { pruned } = db.prepare<[], { pruned: number }>('SELECT pruned_seq AS pruned FROM head WHERE one = 1').get() ?? { pruned: 0 };
  const sources = db
    .prepare<[number, number], { source: number; from: Micros | null; to: Micros | null }>(
      'SELECT source, min(min_us) AS "from", max(max_us) AS "to" FROM segments WHERE seq + n - 1 >= ? AND seq <= ? AND number IS NOT NULL GROUP BY source',
    )
    .all(first, last);
  const known = new Map(sources.map((row) => [row.source, row]));
  const ids =
    pruned >= first
      ? db
          .prepare<[], { n: number }>('SELECT source_no AS n FROM sources')
          .all()
          .map(({ n }) => n)
      : [...known.keys()];
  const insert = db.prepare(
    'INSERT INTO sink_losses (sink, source, first, last, from_us, to_us, at_us, message) VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (sink, source, first) DO UPDATE SET last = excluded.last, from_us = min(from_us, excluded.from_us), to_us = max(to_us, excluded.to_us), at_us = excluded.at_us, message = excluded.message',
  );
  for (const source of ids) {
    const row = known.get(source);
    insert.run(sink, source, first, last, pruned >= first ? 0 : (row?.from ?? 0), row?.to ?? at, at, message);
  }
}

/**
 * Within a transaction: removes a range that was sent again from the losses of a sink. A loss that
 * cannot be divided exactly stays.
 */
export function shrinkLosses({ db }: Store, sink: string, { first, last, times, began }: Resent): void {
  const rows = db
    .prepare<[string, Micros, number, number], { source: number; first: number; last: number; from: Micros; to: Micros }>(
      'SELECT source, first, last, from_us AS "from", to_us AS "to" FROM sink_losses WHERE sink = ? AND at_us <= ? AND last >= ? AND first <= ?',
    )
    .all(sink, began, first, last);
  const remove = db.prepare('DELETE FROM sink_losses WHERE sink = ? AND source = ? AND first = ?');
  const set = db.prepare('UPDATE sink_losses SET last = ?, from_us = ?, to_us = ? WHERE sink = ? AND source = ? AND first = ?');
  for (const row of rows) {
    const isWhole = first <= row.first && row.last <= last;
    const from = times?.from ?? 0;
    const to = times?.to ?? Number.MAX_SAFE_INTEGER;
    if (isWhole && from <= row.from && row.to < to) remove.run(sink, row.source, row.first);
    else if (isWhole && from <= row.from && row.from < to) set.run(row.last, to, row.to, sink, row.source, row.first);
    else if (isWhole && row.from < from && row.to < to && from <= row.to)
      set.run(row.last, row.from, from - 1, sink, row.source, row.first);
    else if (!times && row.first < first && row.last <= last) set.run(first - 1, row.from, row.to, sink, row.source, row.first);
  }
}

interface LossRow {
  readonly sink: string;
  readonly source: number;
  readonly first: number;
  readonly last: number;
  readonly from_us: Micros;
  readonly to_us: Micros;
  readonly message: string;
}

/** The losses of all sinks, read once for a report. */
export class Losses {
  readonly #rows: readonly LossRow[];

  constructor(db: Database) {
    // The table is missing until a daemon of this release has opened the state.
    const exists = db.prepare("SELECT 1 FROM sqlite_master WHERE name = 'sink_losses'").get() !== undefined;
    this.#rows = exists
      ? db.prepare<[], LossRow>('SELECT sink, source, first, last, from_us, to_us, message FROM sink_losses ORDER BY at_us, first').all()
      : [];
  }

  /** The times [from, to) and the entries of lost records of a source, oldest loss first. */
  of(sink: string, source: number): (Window & Pick<LossRow, 'first' | 'last' | 'message'>)[] {
    return this.#rows
      .filter((row) => row.sink === sink && row.source === source)
      .map(({ first, last, message, from_us, to_us }) => ({ from: from_us, to: to_us + 1, first, last, message }));
  }

  has(sink: string, source: number, from: Micros, to: Micros): boolean {
    return this.of(sink, source).some((lost) => lost.from < to && lost.to > from);
  }
}
