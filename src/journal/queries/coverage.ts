/**
 * Reads the coverage of a period from the state: the facts for the verdict of the report and of
 * `status`. Read-only.
 */
import type { Database } from 'better-sqlite3';
import type { BackfillOrder, Window } from '../../model/ledger.ts';
import type { Coverage, SinkCoverage } from '../../model/snapshot.ts';
import type { Micros } from '../../model/time.ts';
import { Losses } from '../losses.ts';
import { storedJson } from '../damage.ts';
import { flagNoTime, kindRecords } from '../segment.ts';
import { selectionOf, takes } from '../selection.ts';

export interface CoverageQuery {
  /** Windows that start before `to` and end after `from`. */
  readonly from?: Micros | undefined;
  readonly to?: Micros | undefined;
  /** The sources of each sink; a sink without an entry receives all. */
  readonly sinkSources?: ReadonlyMap<string, readonly string[]> | undefined;
  /**
   * Sinks with a `filter`. The ledger does not know how many records they should have, so only their
   * position counts.
   */
  readonly filteredSinks?: ReadonlySet<string> | undefined;
}

/** A source as stored. `start` is the setting, if it is a time. */
interface CoveredSource {
  readonly n: number;
  readonly id: string;
  readonly start?: Micros | undefined;
}

export interface SinkDbRow {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  readonly acknowledged: number;
  readonly begun_us: number;
  /** The sink receives no earlier record, backfills included. */
  readonly from_us: number | null;
  /** StoredSelection as JSON; missing until a daemon of this release has opened the state. */
  readonly selection?: string | null;
}

interface RangeDbRow {
  readonly from_us: number;
  readonly to_us: number | null;
  readonly closed_until_us: number;
  readonly backfill: string | null;
}

/** A backfill with its parsed options. */
interface HistoryRange extends Window {
  readonly closedUntil: Micros;
  readonly order: BackfillOrder | undefined;
}

const forever = Number.MAX_SAFE_INTEGER;

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
  return { ...sink, begun_us: Math.max(sink.begun_us, selection.since?.[source] ?? 0) };
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
  return db
    .prepare<[number], RangeDbRow>('SELECT from_us, to_us, closed_until_us, backfill FROM ranges WHERE source = ? ORDER BY from_us')
    .all(source);
}

export function historyOf(ranges: readonly RangeDbRow[]): HistoryRange[] {
  return ranges.flatMap(({ from_us: from, to_us: to, closed_until_us: closedUntil, backfill }) =>
    to === null ? [] : [{ from, to, closedUntil, order: backfill ? (storedJson(backfill) as BackfillOrder) : undefined }],
  );
}

/**
 * True if a sink receives a backfill: the sink existed at the time of the request, and the request
 * includes it.
 */
function getsHistory(sink: SinkDbRow, order: BackfillOrder): boolean {
  return order.asked >= sink.begun_us && (order.sinks?.includes(sink.id) ?? true);
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
  const bounds = [source.n, startsAt.from, startsAt.to] as const;
  // The index on `next_us` also contains every start, so counting reads no rows.
  const { all, resolved } = db
    .prepare<[number, number, number], { all: number; resolved: number }>(
      `SELECT count(*) AS "all", count(*) FILTER (WHERE next_us IS NULL) AS resolved
       FROM windows INDEXED BY windows_due WHERE source = ? AND from_us >= ? AND from_us < ?`,
    )
    .get(...bounds) ?? { all: 0, resolved: 0 };
  const remarked = db
    .prepare<[number, number, number], { state: string; reason: string | null; isResolved: number; n: number }>(
      `SELECT state, reason, next_us IS NULL AS isResolved, count(*) AS n FROM windows INDEXED BY windows_open
       WHERE source = ? AND from_us >= ? AND from_us < ? AND (state <> 'proven' OR reason IS NOT NULL) GROUP BY state, reason, isResolved`,
    )
    .all(...bounds);
  const listed = db
    .prepare<[number, number, number, string], { isResolved: number }>(
      `SELECT next_us IS NULL AS isResolved FROM windows
       WHERE source = ? AND from_us >= ? AND from_us < ? AND state = 'proven' AND reason IS NULL AND from_us IN (SELECT value FROM json_each(?))`,
    )
    .all(...bounds, JSON.stringify([...suspended]));
  const sum = (rows: typeof remarked): number => rows.reduce((total, { n }) => total + n, 0);
  const inState = (state: string): typeof remarked => remarked.filter((row) => row.state === state);
  const reread = inState('proven').filter(({ reason }) => reason === 'reread');
  const doubted = [...inState('gap'), ...inState('accepted'), ...reread].filter(({ isResolved }) => isResolved === 1);
  return {
    startsAt: ranges[0]?.from_us ?? source.start,
    liveFrom: ranges.find(({ to_us: to }) => to === null)?.from_us,
    history: history.map(({ from, to, order }) => ({ from, to, paused: order?.paused ?? false })),
    read: readOf(ranges),
    windows: {
      all,
      final: resolved - sum(doubted) - listed.filter(({ isResolved }) => isResolved === 1).length,
      gaps: sum(inState('gap')),
      accepted: sum(inState('accepted')),
      inDoubt: sum(reread) + listed.length,
    },
    sinks: takingSinks(sinks, source.id, query).map((sink) =>
      sinkCoverage(db, source.n, sink, history, startsAt, isFiltered(sink, query), losses, query),
    ),
  };
}

/** The ranges whose windows are all proven, gaps or accepted. */
function readOf(ranges: readonly RangeDbRow[]): Window[] {
  return ranges.map(({ from_us: from, closed_until_us: to }) => ({ from, to })).filter(({ from, to }) => from < to);
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
  const spanning = db
    .prepare<[number, number], { from_us: number; to_us: number }>(
      'SELECT from_us, to_us FROM windows WHERE source = ? AND from_us <= ? ORDER BY from_us DESC LIMIT 1',
    )
    .get(source, from);
  return { from: spanning && spanning.to_us > from ? spanning.from_us : from, to: to };
}

function sinkCoverage(
  db: Database,
  source: number,
  sink: SinkDbRow,
  history: readonly HistoryRange[],
  startsAt: Window,
  isFiltered: boolean,
  losses: Losses,
  query: CoverageQuery,
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
  const deadLetters = isFiltered ? [] : deadLettersOf(db, source, sink.id);
  const lacked = new Set([...waiting.map((row) => row.from_us), ...lostBegins, ...deadLetters.map(({ from }) => from)]);
  const lost = new Set<Micros>();
  let [windows, lacking, deadLetterCount] = [0, 0, 0];
  let isWaiting = false;
  for (const stretch of owedStretches(sink, history)) {
    const from = Math.max(stretch.from, startsAt.from);
    const to = Math.min(stretch.to, startsAt.to);
    if (from >= to) continue;
    isWaiting ||= unsent.some((each) => each.from < to && each.to > from);
    const isHere = (at: Micros): boolean => at >= from && at < to;
    windows += count.get(source, from, to)?.n ?? 0;
    lacking += [...lacked].filter(isHere).length;
    for (const at of lostBegins) if (isHere(at)) lost.add(at);
    deadLetterCount += deadLetters.reduce((sum, deadLetter) => sum + (isHere(deadLetter.from) ? deadLetter.records : 0), 0);
  }
  const found = losing.filter(({ startsAt: some }) => some.some((at) => lost.has(at)));
  const newest = found.at(-1);
  const lostEntries = { first: Math.min(...found.map(({ first }) => first)), last: Math.max(...found.map(({ last }) => last)) };
  const undated = undatedLacking(db, source, sink, isFiltered, query.from ?? 0);
  return {
    ...{
      id: sink.id,
      windows,
      lacking,
      lost: lost.size,
      ...(newest ? { loss: newest.message, lostEntries } : {}),
      deadLetters: deadLetterCount,
    },
    ...(undated === 0 ? {} : { undated }),
    ...(windows === 0 && isWaiting ? { waits: true } : {}),
  };
}

/**
 * The ranges of window starts that a sink must receive: the live range from the sink's start on,
 * and backfills completely or not at all. If the setting `start` is a time, nothing that starts
 * before it counts, backfills included, because the sink receives no earlier record. The window
 * that contains this time does not count: the sink cannot have all of it. Ascending, disjoint.
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

/**
 * The ranges of time with records of a source that a sink has not acknowledged; ascending,
 * disjoint. A window that overlaps none is delivered. Ledger entries do not count: each recount
 * adds one without a record.
 */
export function unacknowledged(db: Database, source: number, acknowledged: number): Window[] {
  const segments = db
    .prepare<[number, number, number], { from: number; to: number }>(
      `SELECT min_us AS "from", max_us + 1 AS "to" FROM segments
       WHERE seq >= (SELECT coalesce(max(seq), 0) FROM segments WHERE seq <= ?) AND seq + n - 1 > ? AND source = ? AND kind & 255 = ${kindRecords}
         AND min_us IS NOT NULL ORDER BY min_us`,
    )
    .all(acknowledged + 1, acknowledged, source);
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
  const deadLetters = db
    .prepare<[string, number, number], { n: number }>(
      `SELECT count(*) AS n FROM dead_letters WHERE sink = ? AND source = ? AND kind = ${kindRecords} AND time_us IS NULL AND received_us >= ?`,
    )
    .get(id, source, from);
  const segments = db
    .prepare<[number, number, number, number], { seq: number; flags: Buffer }>(
      `SELECT seq, flags FROM segments
       WHERE seq >= (SELECT coalesce(max(seq), 0) FROM segments WHERE seq <= ?) AND seq + n - 1 > ? AND source = ? AND kind & 255 = ${kindRecords}
         AND length(flags) > 0 AND received_us >= ?`,
    )
    .iterate(acknowledged + 1, acknowledged, source, from);
  let waiting = 0;
  for (const { seq, flags } of segments)
    flags.forEach((flag, i) => (waiting += seq + i > acknowledged && (flag & flagNoTime) !== 0 ? 1 : 0));
  return waiting + (filtered ? 0 : (deadLetters?.n ?? 0));
}

interface DeadLetterWindow {
  readonly from: Micros;
  readonly records: number;
}

/** The windows with dead letters of a sink. */
function deadLettersOf(db: Database, source: number, sink: string): DeadLetterWindow[] {
  const times = db
    .prepare<[string, number], { at: number }>(
      'SELECT time_us AS at FROM dead_letters WHERE sink = ? AND source = ? AND time_us IS NOT NULL ORDER BY time_us',
    )
    .all(sink, source);
  const windowAt = db.prepare<[number, number], { from_us: number; to_us: number }>(
    'SELECT from_us, to_us FROM windows WHERE source = ? AND from_us <= ? ORDER BY from_us DESC LIMIT 1',
  );
  const found: DeadLetterWindow[] = [];
  for (let i = 0; i < times.length;) {
    const at = times[i]?.at ?? forever;
    const window = windowAt.get(source, at);
    let next = i + 1;
    if (window && at < window.to_us) {
      while ((times[next]?.at ?? forever) < window.to_us) next += 1;
      found.push({ from: window.from_us, records: next - i });
    }
    i = next;
  }
  return found;
}
