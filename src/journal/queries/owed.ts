/** The records that a sink must receive: its sources, the start of each, and the backfills that include it. Read-only. */
import type { Database } from 'better-sqlite3';
import type { BackfillOrder, Window } from '../../model/ledger.ts';
import type { Micros } from '../../model/time.ts';
import { storedJson } from '../damage.ts';
import { selectionOf, takes } from '../selection.ts';

export interface CoverageQuery {
  /** Windows that start before `to` and end after `from`. */
  readonly from?: Micros | undefined;
  readonly to?: Micros | undefined;
  /** The sources of each sink; a sink without an entry receives all. */
  readonly sinkSources?: ReadonlyMap<string, readonly string[]> | undefined;
  /** Sinks with a `filter`. The ledger does not know how many records they should have, so only their position counts. */
  readonly filteredSinks?: ReadonlySet<string> | undefined;
}

export interface SinkDbRow {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  readonly acknowledged: number;
  readonly begun_us: number;
  /** True if `begun_us` is the time of a changed selection instead of the start. */
  readonly isReselected?: boolean;
  /** The sink receives no earlier record, backfills included. */
  readonly from_us: number | null;
  /** StoredSelection as JSON; null until a daemon has used the sink. */
  readonly selection?: string | null;
}

export interface RangeDbRow {
  readonly from_us: number;
  readonly to_us: number | null;
  readonly closed_until_us: number;
  readonly backfill: string | null;
}

/** A backfill with its parsed options. */
export interface HistoryRange extends Window {
  readonly closedUntil: Micros;
  readonly order: BackfillOrder | undefined;
}

export const forever = Number.MAX_SAFE_INTEGER;

/** The sinks that are not retired. */
export function owingSinks(db: Database): SinkDbRow[] {
  return db.prepare<[], SinkDbRow>("SELECT * FROM sinks WHERE state <> 'retired' ORDER BY id").all();
}

/**
 * The sink with its start for one source; undefined if it does not receive the source. The stored
 * selection counts; without one, the configuration.
 */
function asTaking(sink: SinkDbRow, source: string, query: CoverageQuery): SinkDbRow | undefined {
  const selection = selectionOf(sink.selection) ?? { sources: query.sinkSources?.get(sink.id) };
  if (!takes(selection, source)) return undefined;
  const since = selection.since?.[source] ?? 0;
  return { ...sink, begun_us: Math.max(sink.begun_us, since), isReselected: since > sink.begun_us };
}

export function isFiltered({ id, selection }: SinkDbRow, query: CoverageQuery): boolean {
  const known = selectionOf(selection);
  return known ? known.filter !== undefined : (query.filteredSinks?.has(id) ?? false);
}

/** The sinks that receive a source, each with its start for that source. */
export function takingSinks(sinks: readonly SinkDbRow[], source: string, query: CoverageQuery): SinkDbRow[] {
  return sinks.flatMap((sink) => asTaking(sink, source, query) ?? []);
}

export function rangesOf(db: Database, source: number): RangeDbRow[] {
  const sql = 'SELECT from_us, to_us, closed_until_us, backfill FROM ranges WHERE source = ? ORDER BY from_us';
  return db.prepare<[number], RangeDbRow>(sql).all(source);
}

export function historyOf(ranges: readonly RangeDbRow[]): HistoryRange[] {
  return ranges.flatMap(({ from_us: from, to_us: to, closed_until_us: closedUntil, backfill }) =>
    to === null ? [] : [{ from, to, closedUntil, order: backfill ? (storedJson(backfill) as BackfillOrder) : undefined }],
  );
}

/** True if a sink receives a backfill: the sink existed at the time of the request, and the request includes it. */
function getsHistory(sink: SinkDbRow, order: BackfillOrder): boolean {
  return order.asked >= sink.begun_us && (order.sinks?.includes(sink.id) ?? true);
}

/**
 * The ranges of window starts that a sink must receive: the live range from the sink's start on, and backfills completely or not at all. If
 * the setting `start` is a time, nothing that starts before it counts, backfills included, because the sink receives no earlier record. The
 * window that contains this time does not count: the sink cannot have all of it. Ascending, disjoint.
 */
export function owedStretches(sink: SinkDbRow, history: readonly HistoryRange[]): Window[] {
  const owed: Window[] = [];
  let at = sink.begun_us;
  for (const { from, to, order } of history) {
    if (!order) continue;
    if (from > at) owed.push({ from: at, to: from });
    if (getsHistory(sink, order)) owed.push({ from, to });
    at = Math.max(at, to);
  }
  const { from_us: least } = sink;
  const all = [...owed, { from: at, to: forever }];
  return least === null ? all : all.flatMap(({ from, to }) => (to > least ? [{ from: Math.max(from, least), to }] : []));
}
