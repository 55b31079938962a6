/**
 * The completeness report, read from the state: for each window what the service counted, what was collected, what each sink has. Only reads;
 * nothing is summed here but what the windows own, because a total counts the padding of its query too.
 */
import type { Database } from 'better-sqlite3';
import type {
  BackfillOrder,
  LateDelays,
  LedgerReport,
  LedgerReportDelays,
  LedgerReportHold,
  LedgerReportOperation,
  LedgerReportSink,
  LedgerReportSource,
  LedgerReportState,
  LedgerReportWindow,
  Micros,
  WindowQuery,
} from '../model.ts';
import { heldTogether } from './history.ts';
import { readLate, sumLate } from './late.ts';
import type { WindowDbRow } from './ledger.ts';
import { kindLedger, unpackBody } from './segment.ts';
import { detailOf, flat, instant } from './operation-detail.ts';
import { storedJson } from './damage.ts';

export interface ReportQuery {
  readonly source?: string | undefined;
  /** Windows that begin before `to` and end behind `from`. */
  readonly from?: Micros | undefined;
  readonly to?: Micros | undefined;
  /** Wall clock: when the report is made. */
  readonly now?: Micros | undefined;
  /** Which sources a sink takes; a sink that is not named takes all. */
  readonly sinkSources?: ReadonlyMap<string, readonly string[]> | undefined;
  /** Sinks with a `where`. */
  readonly filteredSinks?: ReadonlySet<string> | undefined;
  /** The sources of the configuration, and where the ledger of each begins when the configuration says a time. */
  readonly configured?: ReadonlyMap<string, Micros | undefined> | undefined;
  /** Ages of recount of each source, ms. */
  readonly recountAges?: ReadonlyMap<string, readonly number[]> | undefined;
}

interface SourceDbRow {
  n: number;
  id: string;
  mode: string;
  frontier_us: number | null;
  /** null: not known, its ledger has not begun. */
  begins_us: number | null;
}

interface RangeDbRow {
  from_us: number;
  until_us: number | null;
  reached_us: number;
  backfill: string | null;
}

interface SinkDbRow {
  id: string;
  type: string;
  state: string;
  acked: number;
  begun_us: number;
}

const rowsAtOnce = 2_000;
const lateNames = ['1h', '6h', '1d', '3d', '7d', '14d', '30d', 'later'];

/** The completeness report (contract, "JSON"). */
export function ledgerReport(db: Database, query: ReportQuery = {}): LedgerReport {
  const sinks = db.prepare<[], SinkDbRow>("SELECT id, type, state, acked, begun_us FROM sinks WHERE state <> 'retired' ORDER BY id").all();
  const letters = new DeadLetterTimes(db);
  const held = heldTogether(db);
  const rows = sourceRows(db, query);
  const sources = rows.map((source) => {
    const own = sinks.filter((sink) => query.sinkSources?.get(sink.id)?.includes(source.id) ?? true);
    return sourceReport(db, query, source, own, letters, held.get(source.id));
  });
  const windows = sources.flatMap((source) => source.windows);
  // Of a period without a window nothing can be said, unless the source begins behind it.
  const isWhole = (source: LedgerReportSource, begins: Micros | null): boolean =>
    source.windows.length === 0 ? begins !== null && query.to !== undefined && query.to <= begins : source.windows.every(isProven);
  return {
    complete: windows.length > 0 && sources.every((source, i) => isWhole(source, rows[i]?.begins_us ?? null)),
    final:
      windows.length > 0 &&
      windows.every(({ state }) => state === 'final') &&
      sources.every((source) => source.windows.length > 0 && source.uncovered.length === 0),
    made: instant(query.now ?? 0),
    from: query.from === undefined ? null : instant(query.from),
    to: query.to === undefined ? null : instant(query.to),
    sources,
    operations: operations(db, query),
  };
}

/** The sources that are asked for. One of the configuration that has never answered has no row in the state: it counts all the same. */
function sourceRows(db: Database, { source: asked, configured = new Map() }: ReportQuery): SourceDbRow[] {
  const known = db
    .prepare<[], SourceDbRow>(
      'SELECT n, id, mode, frontier_us, (SELECT min(from_us) FROM ranges WHERE source = n) AS begins_us FROM sources',
    )
    .all();
  const ids = new Set(known.map(({ id }) => id));
  const unbegun = [...configured]
    .filter(([id]) => !ids.has(id))
    // No row of any table has this number.
    .map(([id, start]) => ({ n: 0, id, mode: 'normal', frontier_us: null, begins_us: start ?? null }));
  return [...known, ...unbegun].filter(({ id }) => asked === undefined || id === asked).sort((a, b) => (a.id < b.id ? -1 : 1));
}

/** Closed with a proof that no later count has put in doubt. */
export function isProven({ state, reason }: LedgerReportWindow): boolean {
  return (state === 'proven' || state === 'final') && reason !== 'reread';
}

function sourceReport(
  db: Database,
  query: ReportQuery,
  source: SourceDbRow,
  sinks: readonly SinkDbRow[],
  letters: DeadLetterTimes,
  held: ReadonlySet<Micros> = new Set(),
): LedgerReportSource {
  const ranges = db
    .prepare<[number], RangeDbRow>('SELECT from_us, until_us, reached_us, backfill FROM ranges WHERE source = ? ORDER BY from_us')
    .all(source.n);
  const ages = query.recountAges?.get(source.id)?.map((ms) => ms * 1000);
  const delays: LateDelays[] = [];
  const windows: LedgerReportWindow[] = [];
  for (const stored of windowRows(db, source.n, query)) {
    const row = held.has(stored.from_us) ? inDoubt(stored) : stored;
    const late = readLate(row.late_delays);
    if (row.late > 0) delays.push(late);
    windows.push({
      from: instant(row.from_us),
      until: instant(row.until_us),
      state: stateOf(row),
      reason: row.reason,
      words: row.words,
      total: row.total,
      received: row.seen,
      own: row.own,
      late: row.late,
      lateLongestSeconds: row.late === 0 ? null : seconds(late.longest),
      passes: row.proof === null ? row.tries : (storedJson(row.proof) as { passes: number }).passes,
      recounts: row.recounts,
      recountsDue: recountsDue(row, ages),
      nextRecount: row.next_us === null ? null : instant(row.next_us),
      closed: row.state === 'gap' ? null : instant(row.closed_us),
      digest: row.digest?.toString('hex') ?? null,
      query: storedJson(row.query) as WindowQuery,
      sinks: Object.fromEntries(
        sinks
          .filter((sink) => isFor(sink, row, ranges))
          .map((sink) => [
            sink.id,
            { complete: row.seq <= sink.acked, deadLetters: letters.count(sink.id, source.n, row.from_us, row.until_us) },
          ]),
      ),
    });
  }
  // In one statement: beside a running daemon both grow.
  const ever = db
    .prepare<[number], { collected: number; inWindows: number }>(
      'SELECT collected, (SELECT coalesce(sum(own), 0) FROM windows WHERE source = n) AS inWindows FROM sources WHERE n = ?',
    )
    .get(source.n) ?? { collected: 0, inWindows: 0 };
  const live = ranges.find((range) => range.until_us === null);
  return {
    id: source.id,
    mode: source.mode,
    begins: ranges[0] ? instant(ranges[0].from_us) : null,
    frontier: source.frontier_us === null ? null : instant(source.frontier_us),
    reached: live ? instant(live.reached_us) : null,
    collected: sum(windows.map((window) => window.own)),
    late: sum(windows.map((window) => window.late)),
    lateDelays: delaysOf(delays),
    ever: { ...ever, outside: ever.collected - ever.inWindows },
    uncovered: uncovered(ranges, source.begins_us, query),
    sinks: sinks.map((sink) => sinkSums(sink, query.filteredSinks?.has(sink.id) ?? false, windows)),
    holds: holds(db, source.n, query),
    windows,
  };
}

/** Whether a sink gets all that a window owns: it began before the window did, or before somebody asked for the history that the window is of. */
function isFor(sink: SinkDbRow, window: WindowDbRow, ranges: readonly RangeDbRow[]): boolean {
  const range = ranges.find(({ from_us: from, until_us: until }) => until !== null && window.from_us >= from && window.from_us < until);
  if (!range?.backfill) return window.from_us >= sink.begun_us;
  const order = storedJson(range.backfill) as BackfillOrder;
  return order.asked >= sink.begun_us && (order.sinks?.includes(sink.id) ?? true);
}

/** A few thousand at a time: a reading transaction that lasts would hold back the checkpoints of the daemon beside it. */
function* windowRows(
  db: Database,
  source: number,
  { from = 0, to = Number.MAX_SAFE_INTEGER }: ReportQuery,
): Generator<WindowDbRow, void, void> {
  const page = db.prepare<[number, number, number, number], WindowDbRow>(
    `SELECT * FROM windows WHERE source = ? AND from_us > ? AND from_us < ? AND until_us > ? ORDER BY from_us LIMIT ${rowsAtOnce}`,
  );
  for (let last = -1; ;) {
    const rows = page.all(source, last, to, from);
    yield* rows;
    if (rows.length < rowsAtOnce) return;
    last = rows.at(-1)?.from_us ?? last;
  }
}

function sinkSums(sink: SinkDbRow, filtered: boolean, windows: readonly LedgerReportWindow[]): LedgerReportSink {
  const named = windows.flatMap((window) => {
    const has = window.sinks[sink.id];
    return has ? [{ own: window.own, ...has }] : [];
  });
  const complete = named.filter((window) => window.complete);
  return {
    id: sink.id,
    type: sink.type,
    state: sink.state,
    since: sink.begun_us === 0 ? null : instant(sink.begun_us),
    filtered,
    windows: named.length,
    complete: complete.length,
    records: filtered ? null : sum(complete.map(({ own, deadLetters }) => own - deadLetters)),
    deadLetters: sum(named.map(({ deadLetters }) => deadLetters)),
  };
}

/** The stretches of the period asked for in which no window was ever closed or left as a gap. An end that was not asked for is no promise. */
function uncovered(ranges: readonly RangeDbRow[], begins: Micros | null, { from, to }: ReportQuery): { from: string; until: string }[] {
  const begin = from ?? begins ?? to ?? 0;
  const end = to ?? Math.max(begin, ...ranges.map((range) => range.reached_us));
  const holes: { from: string; until: string }[] = [];
  let at = begin;
  for (const range of ranges) {
    if (range.from_us > at && at < end) holes.push({ from: instant(at), until: instant(Math.min(range.from_us, end)) });
    at = Math.max(at, range.reached_us);
  }
  if (at < end) holes.push({ from: instant(at), until: instant(end) });
  return holes;
}

/** A closed window that a hold for `rows` lists: the service shows fewer records of it now, and what that means is not known yet. */
function inDoubt(row: WindowDbRow): WindowDbRow {
  if (row.state !== 'closed' || row.reason !== null) return row;
  return { ...row, reason: 'reread', words: 'the service shows fewer records than were proven' };
}

/** `final`: proven, and its last recount is done. A closed window that a later count put in doubt is `proven` with the reason `reread`, never final. */
function stateOf(row: WindowDbRow): LedgerReportState {
  if (row.state !== 'closed') return row.state;
  return row.next_us === null && row.reason !== 'reread' ? 'final' : 'proven';
}

function recountsDue(row: WindowDbRow, ages: readonly Micros[] | undefined): number | null {
  if (row.state === 'gap') return null;
  if (row.next_us === null) return 0;
  if (ages === undefined) return null;
  const next = row.next_us - row.until_us;
  return ages.filter((age) => age >= next).length;
}

function delaysOf(parts: readonly LateDelays[]): LedgerReportDelays {
  const { longest, within } = sumLate(parts);
  return {
    longestSeconds: parts.length === 0 ? null : seconds(longest),
    within: Object.fromEntries(lateNames.map((name, i) => [name, within[i] ?? 0])),
  };
}

/** What people changed in the period, and what they ever changed about a window of it. */
function operations(db: Database, query: ReportQuery): LedgerReportOperation[] {
  const isAsked = (at: unknown): boolean => typeof at === 'number' && at >= (query.from ?? 0) && at < (query.to ?? Number.MAX_SAFE_INTEGER);
  return db
    .prepare<[], { at_us: number; who: string | null; what: string; detail: string | null }>(
      'SELECT at_us, who, what, detail FROM operations ORDER BY n',
    )
    .all()
    .map(({ at_us: at, who, what, detail }) => ({ at, who, what, detail: detailOf(detail) }))
    .filter(({ at, detail }) => isAsked(at) || isAsked(detail['from']))
    .filter(({ detail: { source } }) => query.source === undefined || source === undefined || source === query.source)
    .map(({ at, who, what, detail }) => ({ at: instant(at), who, what, detail: flat(detail) }));
}

/** Entries of the ledger that are no window's: hold and its end stand at one moment, as lines in the journal. */
function holds(db: Database, source: number, query: ReportQuery): LedgerReportHold[] {
  const lines = db.prepare<[number, number, number], { kind: number; body: Buffer; min_us: number }>(
    `SELECT kind, body, min_us FROM segments WHERE source = ? AND kind & 255 = ${kindLedger} AND min_us = max_us AND min_us >= ? AND min_us < ?
     ORDER BY seq`,
  );
  return lines.all(source, query.from ?? 0, query.to ?? Number.MAX_SAFE_INTEGER).flatMap(({ kind, body, min_us: at }) => {
    const line = storedJson(Buffer.from(unpackBody(kind, body)).toString('utf8')) as Readonly<Record<string, unknown>>;
    const text = (name: string): string | null => (typeof line[name] === 'string' ? line[name] : null);
    const what = text('ledger');
    if (what === null || what === 'operation') return [];
    return [{ at: instant(at), what: text('state') ?? what, reason: text('reason'), words: text('words') }];
  });
}

/** How many records of a stretch of time one sink refused for good: times sorted once, then found by halving. */
class DeadLetterTimes {
  readonly #times = new Map<string, number[]>();

  constructor(db: Database) {
    const rows = db
      .prepare<[], { sink: string; source: number; time_us: number }>(
        'SELECT sink, source, time_us FROM dead_letters WHERE time_us IS NOT NULL ORDER BY time_us',
      )
      .iterate();
    for (const { sink, source, time_us: time } of rows) {
      const key = `${sink} ${source}`;
      const times = this.#times.get(key);
      if (times) times.push(time);
      else this.#times.set(key, [time]);
    }
  }

  count(sink: string, source: number, from: Micros, until: Micros): number {
    const times = this.#times.get(`${sink} ${source}`);
    return times === undefined ? 0 : before(times, until) - before(times, from);
  }
}

/** How many of the sorted times lie before `at`. */
function before(times: readonly number[], at: number): number {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((times[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  return low;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

function seconds(micros: Micros): number {
  return micros / 1e6;
}
