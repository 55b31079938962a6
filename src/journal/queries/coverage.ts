/** Reads the coverage of a period from the state: the facts for the summary of the report and of `status`. Read-only. */
import type { Database } from 'better-sqlite3';
import type { Window } from '../../model/ledger.ts';
import type { Coverage } from '../../model/snapshot.ts';
import type { Micros } from '../../model/time.ts';
import { Losses } from '../losses.ts';
import { StateCounts } from '../window-counts.ts';
import {
  forever,
  historyOf,
  isFiltered,
  owedStretches,
  rangesOf,
  takingSinks,
  type CoverageQuery,
  type RangeDbRow,
  type SinkDbRow,
} from './owed.ts';
import { sinkCoverage } from './sink-coverage.ts';
import { windowGroups } from './window-groups.ts';

/** A source as stored. `start` is the setting, if it is a time. */
interface CoveredSource {
  readonly n: number;
  readonly id: string;
  readonly start?: Micros | undefined;
}

/** @param suspended  starts of the proven windows that a suspension lists as shrunk */
export function coverageOf(
  db: Database,
  source: CoveredSource,
  sinks: readonly SinkDbRow[],
  suspended: ReadonlySet<Micros> = new Set(),
  query: CoverageQuery = {},
): Coverage {
  const ranges = rangesOf(db, source.n);
  const losses = new Losses(db);
  const history = historyOf(ranges);
  const startsAt = beginsOf(db, source.n, query);
  const taking = takingSinks(sinks, source.id, query);
  const unanswered = without(
    startsAt,
    taking.flatMap((sink) => owedStretches(sink, history)),
  ).reduce((sum, stretch) => sum + StateCounts.of(windowGroups(db, source.n, stretch)).all, 0);
  return {
    startsAt: ranges[0]?.from_us ?? source.start,
    liveFrom: ranges.find(({ to_us: to }) => to === null)?.from_us,
    history: history.map(({ from, to, order }) => ({ from, to, paused: order?.paused ?? false })),
    read: readOf(ranges),
    windows: StateCounts.of(windowGroups(db, source.n, startsAt, suspended)),
    ...(unanswered > 0 && { unanswered }),
    sinks: taking.map((sink) =>
      sinkCoverage(db, source.n, sink, { history, startsAt, isFiltered: isFiltered(sink, query), losses, from: query.from }),
    ),
  };
}

/** The ranges whose windows are all proven, gaps or accepted. */
function readOf(ranges: readonly RangeDbRow[]): Window[] {
  return ranges.map(({ from_us: from, closed_until_us: to }) => ({ from, to })).filter(({ from, to }) => from < to);
}

/** The parts of a range that none of the others covers. */
function without({ from, to }: Window, others: readonly Window[]): Window[] {
  const left: Window[] = [];
  let at = from;
  for (const other of [...others, { from: to, to }].toSorted((a, b) => a.from - b.from)) {
    if (other.from > at && at < to) left.push({ from: at, to: Math.min(other.from, to) });
    at = Math.max(at, other.to);
  }
  return left;
}

/** Clips ranges to the edges and merges adjacent ones. */
export function within(stretches: readonly Window[], edges: Window): Window[] {
  const parts: Window[] = [];
  for (const stretch of stretches) {
    const part = { from: Math.max(stretch.from, edges.from), to: Math.min(stretch.to, edges.to) };
    if (part.from >= part.to) continue;
    const last = parts.at(-1);
    if (last?.to === part.from) parts[parts.length - 1] = { from: last.from, to: part.to };
    else parts.push(part);
  }
  return parts;
}

/** The starts of the windows that overlap a period. Windows do not overlap each other. */
function beginsOf(db: Database, source: number, { from = 0, to = forever }: CoverageQuery): Window {
  const sql = 'SELECT from_us, to_us FROM windows WHERE source = ? AND from_us <= ? ORDER BY from_us DESC LIMIT 1';
  const spanning = db.prepare<[number, number], { from_us: number; to_us: number }>(sql).get(source, from);
  return { from: spanning && spanning.to_us > from ? spanning.from_us : from, to: to };
}
