/**
 * What the ledger of a source has of one period, read from the state: the facts on which the verdict rests. The report and `status` both read them
 * here. Only reads.
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
  /** Windows that begin before `to` and end after `from`. */
  readonly from?: Micros | undefined;
  readonly to?: Micros | undefined;
  /** Which sources a sink gets; a sink that is not named gets all. */
  readonly sinkSources?: ReadonlyMap<string, readonly string[]> | undefined;
  /** Sinks with a `where`: how many records they should have is not in the ledger, so their position alone counts. */
  readonly filteredSinks?: ReadonlySet<string> | undefined;
}

/** A source as its row has it; `start` is that of the configuration, where it is a time. */
export interface CoveredSource {
  readonly n: number;
  readonly id: string;
  readonly start?: Micros | undefined;
}

export interface SinkDbRow {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  readonly acked: number;
  readonly begun_us: number;
  /** It gets no record dated before this, not of requested history either. */
  readonly from_us: number | null;
  /** JSON of StoredSelection; a state that no daemon of this release has opened has none. */
  readonly selection?: string | null;
}

export interface RangeDbRow {
  readonly from_us: number;
  readonly until_us: number | null;
  readonly reached_us: number;
  readonly backfill: string | null;
}

/** A range of history with its order, parsed once. */
export interface HistoryRange extends Window {
  readonly reached: Micros;
  readonly order: BackfillOrder | undefined;
}

const forever = Number.MAX_SAFE_INTEGER;

/** The sinks that owe something: all but those that were retired. */
export function owingSinks(db: Database): SinkDbRow[] {
  return db.prepare<[], SinkDbRow>("SELECT * FROM sinks WHERE state <> 'retired' ORDER BY id").all();
}

/** The sink as it is to one source; undefined where it does not take it. What the sink uses counts, and the configuration where that is not known. */
function asTaking(sink: SinkDbRow, source: string, query: CoverageQuery): SinkDbRow | undefined {
  const selection = selectionOf(sink.selection) ?? { sources: query.sinkSources?.get(sink.id) };
  if (!takes(selection, source)) return undefined;
  return { ...sink, begun_us: Math.max(sink.begun_us, selection.since?.[source] ?? 0) };
}

export function isFiltered({ id, selection }: SinkDbRow, query: CoverageQuery): boolean {
  const known = selectionOf(selection);
  return known ? known.where !== undefined : (query.filteredSinks?.has(id) ?? false);
}

/** The sinks that take a source, each with its begin there. */
export function takingSinks(sinks: readonly SinkDbRow[], source: string, query: CoverageQuery): SinkDbRow[] {
  return sinks.flatMap((sink) => asTaking(sink, source, query) ?? []);
}

export function rangesOf(db: Database, source: number): RangeDbRow[] {
  return db
    .prepare<[number], RangeDbRow>('SELECT from_us, until_us, reached_us, backfill FROM ranges WHERE source = ? ORDER BY from_us')
    .all(source);
}

export function historyOf(ranges: readonly RangeDbRow[]): HistoryRange[] {
  return ranges.flatMap(({ from_us: from, until_us: until, reached_us: reached, backfill }) =>
    until === null ? [] : [{ from, until, reached, order: backfill ? (storedJson(backfill) as BackfillOrder) : undefined }],
  );
}

/** Whether a sink gets a range of history: it had begun when the history was requested, and the request is for it. */
function getsHistory(sink: SinkDbRow, order: BackfillOrder): boolean {
  return order.asked >= sink.begun_us && (order.sinks?.includes(sink.id) ?? true);
}

/** @param held  begins of the closed windows that a suspension lists: the service shows fewer records of them now */
export function coverageOf(
  db: Database,
  source: CoveredSource,
  sinks: readonly SinkDbRow[],
  held: ReadonlySet<Micros> = new Set(),
  query: CoverageQuery = {},
): Coverage {
  const ranges = rangesOf(db, source.n);
  const losses = new Losses(db);
  const history = historyOf(ranges);
  const begins = beginsOf(db, source.n, query);
  const bounds = [source.n, begins.from, begins.until] as const;
  // The index on the next look holds every begin too: no row is read for a number.
  const { all, settled } = db
    .prepare<[number, number, number], { all: number; settled: number }>(
      `SELECT count(*) AS "all", count(*) FILTER (WHERE next_us IS NULL) AS settled
       FROM windows INDEXED BY windows_due WHERE source = ? AND from_us >= ? AND from_us < ?`,
    )
    .get(...bounds) ?? { all: 0, settled: 0 };
  const remarked = db
    .prepare<[number, number, number], { state: string; reason: string | null; isSettled: number; n: number }>(
      `SELECT state, reason, next_us IS NULL AS isSettled, count(*) AS n FROM windows INDEXED BY windows_open
       WHERE source = ? AND from_us >= ? AND from_us < ? AND (state <> 'closed' OR reason IS NOT NULL) GROUP BY state, reason, isSettled`,
    )
    .all(...bounds);
  const listed = db
    .prepare<[number, number, number, string], { isSettled: number }>(
      `SELECT next_us IS NULL AS isSettled FROM windows
       WHERE source = ? AND from_us >= ? AND from_us < ? AND state = 'closed' AND reason IS NULL AND from_us IN (SELECT value FROM json_each(?))`,
    )
    .all(...bounds, JSON.stringify([...held]));
  const sum = (rows: typeof remarked): number => rows.reduce((total, { n }) => total + n, 0);
  const inState = (state: string): typeof remarked => remarked.filter((row) => row.state === state);
  const reread = inState('closed').filter(({ reason }) => reason === 'reread');
  const doubted = [...inState('gap'), ...inState('accepted'), ...reread].filter(({ isSettled }) => isSettled === 1);
  return {
    startsAt: ranges[0]?.from_us ?? source.start,
    liveFrom: ranges.find(({ until_us: until }) => until === null)?.from_us,
    history: history.map(({ from, until, order }) => ({ from, until, paused: order?.paused ?? false })),
    read: readOf(ranges),
    windows: {
      all,
      final: settled - sum(doubted) - listed.filter(({ isSettled }) => isSettled === 1).length,
      gaps: sum(inState('gap')),
      accepted: sum(inState('accepted')),
      inDoubt: sum(reread) + listed.length,
    },
    sinks: takingSinks(sinks, source.id, query).map((sink) =>
      sinkCoverage(db, source.n, sink, history, begins, isFiltered(sink, query), losses, query),
    ),
  };
}

/** Where every window is closed, a gap or accepted. */
function readOf(ranges: readonly RangeDbRow[]): Window[] {
  return ranges.map(({ from_us: from, reached_us: until }) => ({ from, until })).filter(({ from, until }) => from < until);
}

/** What of these stretches lies between two edges; those that touch are one. */
export function within(stretches: readonly Window[], edges: Window): Window[] {
  const parts: Window[] = [];
  for (const stretch of stretches) {
    const part = { from: Math.max(stretch.from, edges.from), until: Math.min(stretch.until, edges.until) };
    if (part.from >= part.until) continue;
    const last = parts.at(-1);
    if (last?.until === part.from) parts[parts.length - 1] = { from: last.from, until: part.until };
    else parts.push(part);
  }
  return parts;
}

/** Where the windows begin that a period touches: one that spans its begin counts. Windows do not overlap. */
function beginsOf(db: Database, source: number, { from = 0, to = forever }: CoverageQuery): Window {
  const spanning = db
    .prepare<[number, number], { from_us: number; until_us: number }>(
      'SELECT from_us, until_us FROM windows WHERE source = ? AND from_us <= ? ORDER BY from_us DESC LIMIT 1',
    )
    .get(source, from);
  return { from: spanning && spanning.until_us > from ? spanning.from_us : from, until: to };
}

function sinkCoverage(
  db: Database,
  source: number,
  sink: SinkDbRow,
  history: readonly HistoryRange[],
  begins: Window,
  isFiltered: boolean,
  losses: Losses,
  query: CoverageQuery,
): SinkCoverage {
  const count = db.prepare<[number, number, number], { n: number }>(
    'SELECT count(*) AS n FROM windows INDEXED BY windows_due WHERE source = ? AND from_us >= ? AND from_us < ?',
  );
  const touched = db.prepare<[number, number, number], { from_us: number }>(
    'SELECT from_us FROM windows WHERE source = ? AND from_us < ? AND until_us > ?',
  );
  const unsent = unacknowledged(db, source, sink.acked);
  const waiting = unsent.flatMap(({ from, until }) => touched.all(source, until, from));
  const losing = losses
    .of(sink.id, source)
    .map(({ from, until, words }) => ({ words, begins: touched.all(source, until, from).map((row) => row.from_us) }));
  const lostBegins = new Set(losing.flatMap(({ begins: some }) => some));
  const letters = isFiltered ? [] : lettersOf(db, source, sink.id);
  const lacked = new Set([...waiting.map((row) => row.from_us), ...lostBegins, ...letters.map(({ from }) => from)]);
  const lost = new Set<Micros>();
  let [windows, lacking, deadLetters] = [0, 0, 0];
  let isWaiting = false;
  for (const stretch of owedStretches(sink, history)) {
    const from = Math.max(stretch.from, begins.from);
    const until = Math.min(stretch.until, begins.until);
    if (from >= until) continue;
    isWaiting ||= unsent.some((each) => each.from < until && each.until > from);
    const isHere = (at: Micros): boolean => at >= from && at < until;
    windows += count.get(source, from, until)?.n ?? 0;
    lacking += [...lacked].filter(isHere).length;
    for (const at of lostBegins) if (isHere(at)) lost.add(at);
    deadLetters += letters.reduce((sum, letter) => sum + (isHere(letter.from) ? letter.records : 0), 0);
  }
  const newest = losing.findLast(({ begins: some }) => some.some((at) => lost.has(at)));
  const undated = undatedLacking(db, source, sink, isFiltered, query.from ?? 0);
  return {
    ...{ id: sink.id, windows, lacking, lost: lost.size, ...(newest ? { loss: newest.words } : {}), deadLetters },
    ...(undated === 0 ? {} : { undated }),
    ...(windows === 0 && isWaiting ? { waits: true } : {}),
  };
}

/**
 * Where the windows begin that a sink owes: from its start on, but of requested history all or nothing. With `from` as an instant nothing that begins
 * before it, not of history either: the sink gets no record dated before it. The window that spans the instant is not owed, as the sink cannot have
 * all of it. Ascending, disjoint.
 */
export function owedStretches(sink: SinkDbRow, history: readonly HistoryRange[]): Window[] {
  const owed: Window[] = [];
  let at = sink.begun_us;
  for (const { from, until, order } of history) {
    if (!order) continue;
    if (from > at) owed.push({ from: at, until: from });
    if (getsHistory(sink, order)) owed.push({ from, until });
    at = Math.max(at, until);
  }
  const { from_us: least } = sink;
  const all = [...owed, { from: at, until: forever }];
  return least === null ? all : all.flatMap(({ from, until }) => (until > least ? [{ from: Math.max(from, least), until }] : []));
}

/**
 * Where the records of a source lie that a sink has not acknowledged: stretches of time, ascending, disjoint. A window that touches none is all
 * there. Lines of the ledger do not count: each recount adds one, and brings no record.
 */
export function unacknowledged(db: Database, source: number, acked: number): Window[] {
  const segments = db
    .prepare<[number, number, number], { from: number; until: number }>(
      `SELECT min_us AS "from", max_us + 1 AS until FROM segments
       WHERE seq >= (SELECT coalesce(max(seq), 0) FROM segments WHERE seq <= ?) AND seq + n - 1 > ? AND source = ? AND kind & 255 = ${kindRecords}
         AND min_us IS NOT NULL ORDER BY min_us`,
    )
    .all(acked + 1, acked, source);
  const merged: Window[] = [];
  for (const { from, until } of segments) {
    const last = merged.at(-1);
    if (last && from <= last.until) merged[merged.length - 1] = { from: last.from, until: Math.max(last.until, until) };
    else merged.push({ from, until });
  }
  return merged;
}

/**
 * How many records without a readable time a sink lacks: those that wait for it, and its dead letters. They belong to no window, and to no period that
 * begins after they were received.
 */
function undatedLacking(db: Database, source: number, { id, acked }: SinkDbRow, filtered: boolean, from: Micros): number {
  const letters = db
    .prepare<[string, number, number], { n: number }>(
      'SELECT count(*) AS n FROM dead_letters WHERE sink = ? AND source = ? AND time_us IS NULL AND received_us >= ?',
    )
    .get(id, source, from);
  const segments = db
    .prepare<[number, number, number, number], { seq: number; flags: Buffer }>(
      `SELECT seq, flags FROM segments
       WHERE seq >= (SELECT coalesce(max(seq), 0) FROM segments WHERE seq <= ?) AND seq + n - 1 > ? AND source = ? AND kind & 255 = ${kindRecords}
         AND length(flags) > 0 AND received_us >= ?`,
    )
    .iterate(acked + 1, acked, source, from);
  let waiting = 0;
  for (const { seq, flags } of segments) flags.forEach((flag, i) => (waiting += seq + i > acked && (flag & flagNoTime) !== 0 ? 1 : 0));
  return waiting + (filtered ? 0 : (letters?.n ?? 0));
}

interface LetterWindow {
  readonly from: Micros;
  readonly records: number;
}

/** The windows in which a sink rejected records for good. */
function lettersOf(db: Database, source: number, sink: string): LetterWindow[] {
  const times = db
    .prepare<[string, number], { at: number }>(
      'SELECT time_us AS at FROM dead_letters WHERE sink = ? AND source = ? AND time_us IS NOT NULL ORDER BY time_us',
    )
    .all(sink, source);
  const windowAt = db.prepare<[number, number], { from_us: number; until_us: number }>(
    'SELECT from_us, until_us FROM windows WHERE source = ? AND from_us <= ? ORDER BY from_us DESC LIMIT 1',
  );
  const found: LetterWindow[] = [];
  for (let i = 0; i < times.length;) {
    const at = times[i]?.at ?? forever;
    const window = windowAt.get(source, at);
    let next = i + 1;
    if (window && at < window.until_us) {
      while ((times[next]?.at ?? forever) < window.until_us) next += 1;
      found.push({ from: window.from_us, records: next - i });
    }
    i = next;
  }
  return found;
}
