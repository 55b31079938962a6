/**
 * Delivered records that a sink lost and reported: as a range of entries, and as the range of their
 * times. The ledger does not count windows of these times as delivered.
 */
import type { Database } from 'better-sqlite3';
import type { RangeReplay } from '../model/journal.ts';
import type { SinkLoss } from '../model/sink.ts';
import type { Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import type { Store } from './store.ts';

/**
 * Within a transaction: stores the time ranges of lost records. The times of pruned records are no
 * longer known: their range ends at the newest record time of the source.
 */
export function writeLoss({ db }: Store, sink: string, { first, last, message }: SinkLoss, at: Micros): void {
  const isPruned = prunedThrough(db) >= first;
  const known = timesOf(db, first, last);
  const all = db.prepare<[], { n: number }>('SELECT source_no AS n FROM sources').all();
  for (const source of isPruned ? all.map(({ n }) => n) : known.keys()) {
    const row = known.get(source);
    insert(db, { sink, source, first, last, from_us: isPruned ? 0 : (row?.from ?? 0), to_us: row?.to ?? at, at_us: at, message });
  }
}

/** Within a transaction: removes all losses of a sink. */
export function removeLosses({ db }: Store, sink: string): void {
  db.prepare('DELETE FROM sink_losses WHERE sink = ?').run(sink);
}

/**
 * Within a transaction: removes a range that was sent again from the losses of a sink. A loss of which
 * a time in the middle was sent again stays.
 * @param replay  a later loss than its request may concern what it sent
 * @param before  under another selection, the sink received entries up to this one, perhaps more than it was sent now
 * @param isWhole  true for a source of which the sink is sent every record: then `before` does not matter
 */
export function shrinkLosses(
  { db }: Store,
  sink: string,
  { completeFrom: sentFrom, last, times, began }: Pick<RangeReplay, 'completeFrom' | 'last' | 'times' | 'began'>,
  before: number,
  isWhole: (source: number) => boolean,
): void {
  const sql = 'SELECT * FROM sink_losses WHERE sink = ? AND at_us <= ? AND last >= ? AND first <= ? ORDER BY first';
  const rows = db.prepare<[string, Micros, number, number], LossRow>(sql).all(sink, began * 1000, sentFrom, last);
  const remove = db.prepare('DELETE FROM sink_losses WHERE sink = ? AND source = ? AND first = ?');
  for (const row of rows) {
    const first = /* mutant: narrowed-replay */ isWhole(row.source) ? sentFrom : Math.max(sentFrom, before + 1);
    const left = times ? leftInTime(row, first, last, times) : leftOf(db, row, first, last);
    if (left === undefined) continue;
    remove.run(sink, row.source, row.first);
    for (const part of left) insert(db, part);
  }
}

/** The parts of a loss before and after entries that were sent again. Undefined: none of them belongs to it. */
function leftOf(db: Database, row: LossRow, first: number, last: number): LossRow[] | undefined {
  if (first > row.last || first > last) return undefined;
  const parts = [
    { first: row.first, last: first - 1 },
    /* mutant: loss-after-replay */ { first: last + 1, last: row.last },
  ].filter((part) => part.first <= part.last);
  const pruned = prunedThrough(db);
  return parts.flatMap((part) => {
    if (pruned >= part.first) return [{ ...row, ...part }];
    const found = timesOf(db, part.first, part.last).get(row.source);
    return found
      ? [{ ...row, ...part, from_us: Math.max(row.from_us, found.from ?? 0), to_us: Math.min(row.to_us, found.to ?? Infinity) }]
      : [];
  });
}

/** The times of a loss before or after those that were sent again. Undefined: only a part of its entries, or a time in the middle, was sent. */
function leftInTime(row: LossRow, first: number, last: number, { from, to }: Window): LossRow[] | undefined {
  if (first > row.first || row.last > last || from > row.to_us || to <= row.from_us) return undefined;
  if (from <= row.from_us) return row.to_us < to ? [] : [{ ...row, from_us: to }];
  return row.to_us < to ? [{ ...row, to_us: from - 1 }] : undefined;
}

function prunedThrough(db: Database): number {
  return db.prepare<[], { pruned: number }>('SELECT pruned_seq AS pruned FROM head WHERE one = 1').get()?.pruned ?? 0;
}

/** By source: the first and the last time of its records among these entries, as far as the journal holds them. */
function timesOf(db: Database, first: number, last: number): Map<number, { from: Micros | null; to: Micros | null }> {
  const sql =
    'SELECT source, min(min_us) AS "from", max(max_us) AS "to" FROM segments WHERE seq + n - 1 >= ? AND seq <= ? AND number IS NOT NULL GROUP BY source';
  const rows = db.prepare<[number, number], { source: number; from: Micros | null; to: Micros | null }>(sql).all(first, last);
  return new Map(rows.map((row) => [row.source, row]));
}

function insert(db: Database, { sink, source, first, last, from_us, to_us, at_us, message }: LossRow): void {
  db.prepare(
    `INSERT INTO sink_losses (sink, source, first, last, from_us, to_us, at_us, message) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (sink, source, first) DO UPDATE SET last = max(last, excluded.last), from_us = min(from_us, excluded.from_us),
     to_us = max(to_us, excluded.to_us), at_us = max(at_us, excluded.at_us), message = excluded.message`,
  ).run(sink, source, first, last, from_us, to_us, at_us, message);
}

interface LossRow {
  readonly sink: string;
  readonly source: number;
  readonly first: number;
  readonly last: number;
  readonly from_us: Micros;
  readonly to_us: Micros;
  readonly at_us: Micros;
  readonly message: string;
}

/** The losses of all sinks, read once for a report. */
export class Losses {
  readonly #rows: readonly LossRow[];

  constructor(db: Database) {
    this.#rows = db.prepare<[], LossRow>('SELECT * FROM sink_losses ORDER BY at_us, first').all();
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
