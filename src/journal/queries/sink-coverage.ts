/** The coverage of a period by one sink: what it has not acknowledged, has lost, or has as dead letters. Read-only. */
import type { Database } from 'better-sqlite3';
import type { Window } from '../../model/ledger.ts';
import type { SinkCoverage } from '../../model/snapshot.ts';
import type { Micros } from '../../model/time.ts';
import type { Losses } from '../losses.ts';
import { SinkCounts } from '../window-counts.ts';
import { flagNoTime, kindRecords } from '../segment.ts';
import { forever, owedStretches, type HistoryRange, type SinkDbRow } from './owed.ts';

/** The facts about a source and a period that the coverage of each sink needs. */
interface Covered {
  readonly history: readonly HistoryRange[];
  /** The starts of the windows of the period. */
  readonly startsAt: Window;
  readonly isFiltered: boolean;
  readonly losses: Losses;
  readonly from: Micros | undefined;
}

export function sinkCoverage(
  db: Database,
  source: number,
  sink: SinkDbRow,
  { history, startsAt, isFiltered, losses, from: begin = 0 }: Covered,
): SinkCoverage {
  const count = db.prepare<[number, number, number], { n: number }>(
    'SELECT count(*) AS n FROM windows INDEXED BY windows_due WHERE source = ? AND from_us >= ? AND from_us < ?',
  );
  const touched = db.prepare<[number, number, number], { from_us: number }>(
    'SELECT from_us FROM windows WHERE source = ? AND from_us < ? AND to_us > ?',
  );
  const unsent = unacknowledged(db, source, sink.acknowledged);
  const waiting = unsent.flatMap(({ from, to }) => touched.all(source, to, from));
  const losing = losses
    .of(sink.id, source)
    .map(({ from, to, ...loss }) => ({ ...loss, startsAt: touched.all(source, to, from).map((row) => row.from_us) }));
  const lostBegins = new Set(losing.flatMap(({ startsAt: some }) => some));
  const deadLetters = isFiltered ? new Map<Micros, number>() : deadLettersOf(db, source, sink.id);
  const unacknowledgedBegins = new Set(waiting.map((row) => row.from_us));
  const lacked = new Set([...unacknowledgedBegins, ...lostBegins, ...deadLetters.keys()]);
  const lost = new Set<Micros>();
  const counts = new SinkCounts();
  let isWaiting = false;
  for (const stretch of owedStretches(sink, history)) {
    const from = Math.max(stretch.from, startsAt.from);
    const to = Math.min(stretch.to, startsAt.to);
    if (from >= to) continue;
    isWaiting ||= unsent.some((each) => each.from < to && each.to > from);
    const isHere = (at: Micros): boolean => at >= from && at < to;
    const lackedHere = [...lacked].filter(isHere);
    counts.add({ complete: true, deadLetters: 0 }, 0, (count.get(source, from, to)?.n ?? 0) - lackedHere.length);
    for (const at of lackedHere) {
      const isLost = lostBegins.has(at);
      if (isLost) lost.add(at);
      counts.add({
        complete: !isLost && !unacknowledgedBegins.has(at),
        deadLetters: deadLetters.get(at) ?? 0,
        ...(isLost && { lost: true }),
      });
    }
  }
  const found = losing.filter(({ startsAt: some }) => some.some((at) => lost.has(at)));
  const newest = found.at(-1);
  const lostEntries = { first: Math.min(...found.map(({ first }) => first)), last: Math.max(...found.map(({ last }) => last)) };
  const undated = undatedLacking(db, source, sink, isFiltered, begin);
  return {
    id: sink.id,
    ...(sink.begun_us > 0 && { since: { at: sink.begun_us, reason: sink.isReselected ? 'selection' : 'start' } }),
    windows: counts.windows,
    lacking: counts.lacking,
    lost: counts.lost,
    ...(newest ? { loss: newest.message, lostEntries } : {}),
    deadLetters: counts.deadLetters,
    ...(undated === 0 ? {} : { undated }),
    ...(counts.windows === 0 && isWaiting ? { waits: true } : {}),
  };
}

/**
 * The ranges of time with records of a source that a sink has not acknowledged; ascending, disjoint. A window that overlaps none is
 * delivered. Ledger entries do not count: each recount adds one without a record.
 */
export function unacknowledged(db: Database, source: number, acknowledged: number): Window[] {
  const sql = `SELECT min_us AS "from", max_us + 1 AS "to" FROM segments
       WHERE seq >= (SELECT coalesce(max(seq), 0) FROM segments WHERE seq <= ?) AND seq + n - 1 > ? AND source = ? AND kind & 255 = ${kindRecords}
         AND min_us IS NOT NULL ORDER BY min_us`;
  const segments = db.prepare<[number, number, number], { from: number; to: number }>(sql).all(acknowledged + 1, acknowledged, source);
  const merged: Window[] = [];
  for (const { from, to } of segments) {
    const last = merged.at(-1);
    if (last && from <= last.to) merged[merged.length - 1] = { from: last.from, to: Math.max(last.to, to) };
    else merged.push({ from, to });
  }
  return merged;
}

/**
 * The number of records without a readable time that a sink lacks: not acknowledged, or dead
 * letters. They belong to no window, and to no period that starts after their receipt.
 */
function undatedLacking(db: Database, source: number, { id, acknowledged }: SinkDbRow, filtered: boolean, from: Micros): number {
  const deadLettersSql = `SELECT count(*) AS n FROM dead_letters WHERE sink = ? AND source = ? AND kind = ${kindRecords} AND time_us IS NULL AND received_us >= ?`;
  const deadLetters = db.prepare<[string, number, number], { n: number }>(deadLettersSql).get(id, source, from);
  const segmentsSql = `SELECT seq, flags FROM segments
       WHERE seq >= (SELECT coalesce(max(seq), 0) FROM segments WHERE seq <= ?) AND seq + n - 1 > ? AND source = ? AND kind & 255 = ${kindRecords}
         AND length(flags) > 0 AND received_us >= ?`;
  const segments = db
    .prepare<[number, number, number, number], { seq: number; flags: Buffer }>(segmentsSql)
    .iterate(acknowledged + 1, acknowledged, source, from);
  let waiting = 0;
  for (const { seq, flags } of segments)
    flags.forEach((flag, i) => (waiting += seq + i > acknowledged && (flag & flagNoTime) !== 0 ? 1 : 0));
  return waiting + (filtered ? 0 : (deadLetters?.n ?? 0));
}

/** Numbers of dead letters, by the start of their window. */
export function deadLettersOf(db: Database, source: number, sink: string): ReadonlyMap<Micros, number> {
  const sql = 'SELECT time_us AS at FROM dead_letters WHERE sink = ? AND source = ? AND time_us IS NOT NULL ORDER BY time_us';
  const times = db.prepare<[string, number], { at: number }>(sql).all(sink, source);
  const windowAt = db.prepare<[number, number], { from_us: number; to_us: number }>(
    'SELECT from_us, to_us FROM windows WHERE source = ? AND from_us <= ? ORDER BY from_us DESC LIMIT 1',
  );
  const found = new Map<Micros, number>();
  for (let i = 0; i < times.length;) {
    const at = times[i]?.at ?? forever;
    const window = windowAt.get(source, at);
    let next = i + 1;
    if (window && at < window.to_us) {
      while ((times[next]?.at ?? forever) < window.to_us) next += 1;
      found.set(window.from_us, next - i);
    }
    i = next;
  }
  return found;
}
