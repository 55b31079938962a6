/**
 * Reads the completeness report from the state: the service's count, the collected records and the deliveries of each window. Read-only.
 * Sums add the records in the windows, never totals, which include the padding of their queries.
 */
import type { Database } from 'better-sqlite3';
import { completeUntil, type LateDelays, type Window } from '../../model/ledger.ts';
import type {
  LedgerReportDelays,
  LedgerReportSuspension,
  LedgerReportOperation,
  LedgerReportSink,
  LedgerReportSinkWindow,
  LedgerReportWindow,
  LedgerReportWindows,
  LedgerTables,
  LongLedgerReportSource,
} from '../../model/ledger-report.ts';
import type { Coverage } from '../../model/snapshot.ts';
import type { WindowQuery } from '../../model/source.ts';
import type { Micros } from '../../model/time.ts';
import { coverageOf, within } from './coverage.ts';
import { historyOf, isFiltered, owedStretches, owingSinks, rangesOf, takingSinks, type CoverageQuery, type SinkDbRow } from './owed.ts';
import { deadLettersOf, unacknowledged } from './sink-coverage.ts';
import { storedSources } from './stored.ts';
import { suspendedTogether } from './suspensions.ts';
import { readLate, sumLate } from '../late-delays.ts';
import type { WindowDbRow } from '../window-rows.ts';
import { WindowCopy } from './window-copy.ts';
import { kindLedger, unpackBody } from '../segment.ts';
import { detailOf, flat, instant } from '../operation-detail.ts';
import { Losses } from '../losses.ts';
import { storedJson } from '../damage.ts';
import { stateOf, withDoubt } from './window-groups.ts';
import { SinkCounts, WindowCounts } from '../window-counts.ts';

export interface ReportQuery extends CoverageQuery {
  readonly source?: string | undefined;
  /** The time of the report, wall clock. */
  readonly now?: Micros | undefined;
  /** The configured sources, with the start of the ledger if the setting is a time. */
  readonly configured?: ReadonlyMap<string, Micros | undefined> | undefined;
  /** The recount ages of each source, ms. */
  readonly recountAges?: ReadonlyMap<string, readonly number[]> | undefined;
}

/** The tables of a report, and the coverage by source. The summary also needs the present (src/report/). */
interface LedgerReading extends LedgerTables<LedgerReportWindows>, Disposable {
  readonly coverage: ReadonlyMap<string, Coverage>;
}

interface SourceDbRow {
  n: number;
  id: string;
  state: string;
  frontier_us: number | null;
  /** Null while the ledger has not started. */
  begins_us: number | null;
}

const lateNames = ['1h', '6h', '1d', '3d', '7d', '14d', '30d', 'later'];

/**
 * Opens the completeness report of one moment. Sums are computed at once. Windows are read from a copy in each iteration, so that memory
 * does not grow with their number. The copy ends with the report; a connection has one at a time.
 */
export function openLedgerReport(db: Database, query: ReportQuery = {}): LedgerReading {
  const copy = new WindowCopy(db);
  try {
    // One short snapshot: an open read transaction would delay the checkpoints of the running daemon.
    return db.transaction(() => ({ ...reportOf(db, query, copy), [Symbol.dispose]: () => copy[Symbol.dispose]() }))();
  } catch (thrown) {
    copy[Symbol.dispose]();
    throw thrown;
  }
}

/** The report of a state, or of the shards of a fleet, which have different sources. See openLedgerReport. */
export function openLedgerReports(dbs: readonly Database[], query: ReportQuery = {}): LedgerReading {
  using opened = new DisposableStack();
  const stored = new Set(dbs.flatMap((db) => storedSources(db)).map(({ id }) => id));
  // Sources without a row in any shard count once.
  const unbegun = new Map([...(query.configured ?? [])].filter(([id]) => !stored.has(id)));
  const readings = dbs.map((db, i) => opened.use(openLedgerReport(db, { ...query, configured: i === 0 ? unbegun : new Map() })));
  const [first] = readings;
  if (!first) throw new RangeError('there is no state');
  const kept = opened.move();
  return {
    ...first,
    sources: readings.flatMap(({ sources }) => sources).toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    operations: readings.flatMap((reading) => reading.operations).toSorted((one, other) => (one.at < other.at ? -1 : 1)),
    coverage: new Map(readings.flatMap(({ coverage }) => [...coverage])),
    [Symbol.dispose]: () => kept.dispose(),
  };
}

function reportOf(db: Database, query: ReportQuery, copy: WindowCopy): Omit<LedgerReading, keyof Disposable> {
  const sinks = owingSinks(db);
  const losses = new Losses(db);
  const suspended = suspendedTogether(db);
  const rows = sourceRows(db, query);
  const coverage = new Map<string, Coverage>();
  const sources = rows.map((source) => {
    const { n, id, begins_us: start } = source;
    const found = coverageOf(db, { n, id, start: start ?? undefined }, sinks, suspended.get(id), query);
    coverage.set(id, found);
    const inWindow = takingSinks(sinks, id, query);
    return sourceReport(db, query, source, found, inWindow, losses, copy.take(n, query.from, query.to), suspended.get(id));
  });
  return {
    generatedAt: instant(query.now ?? 0),
    from: query.from === undefined ? null : instant(query.from),
    to: query.to === undefined ? null : instant(query.to),
    sources,
    operations: operations(db, query),
    coverage,
  };
}

/** The requested sources. A configured source without a response has no row in the state and still counts. */
function sourceRows(db: Database, { source: requested, configured = new Map() }: ReportQuery): SourceDbRow[] {
  const sql =
    'SELECT source_no AS n, id, state, frontier_us, (SELECT min(from_us) FROM ranges WHERE source = source_no) AS begins_us FROM sources';
  const known = db.prepare<[], SourceDbRow>(sql).all();
  const ids = new Set(known.map(({ id }) => id));
  const unbegun = [...configured]
    .filter(([id]) => !ids.has(id))
    // No row of any table has the source number 0.
    .map(([id, start]) => ({ n: 0, id, state: 'active', frontier_us: null, begins_us: start ?? null }));
  return [...known, ...unbegun].filter(({ id }) => requested === undefined || id === requested).sort((a, b) => (a.id < b.id ? -1 : 1));
}

function sourceReport(
  db: Database,
  query: ReportQuery,
  source: SourceDbRow,
  coverage: Coverage,
  sinks: readonly SinkDbRow[],
  losses: Losses,
  rows: Iterable<WindowDbRow>,
  suspended: ReadonlySet<Micros> = new Set(),
): LongLedgerReportSource {
  const ranges = rangesOf(db, source.n);
  const ages = query.recountAges?.get(source.id)?.map((ms) => ms * 1000);
  const history = historyOf(ranges);
  const owed = new Map(sinks.map((sink) => [sink.id, owedStretches(sink, history)]));
  const deadLetters = new Map(sinks.map(({ id }) => [id, deadLettersOf(db, source.n, id)]));
  const waiting = new Map(sinks.map(({ id, acknowledged }) => [id, unacknowledged(db, source.n, acknowledged)]));
  const isWaiting = ({ from_us: from, to_us: to }: WindowDbRow, sink: string): boolean =>
    waiting.get(sink)?.some((stretch) => stretch.from < to && stretch.to > from) ?? false;
  const has = (row: WindowDbRow): LedgerReportWindow['sinks'] =>
    Object.fromEntries(
      sinks
        .filter(({ id }) => owed.get(id)?.some(({ from, to }) => row.from_us >= from && row.from_us < to) ?? false)
        .map(({ id }): [string, LedgerReportSinkWindow] => {
          const isLost = losses.has(id, source.n, row.from_us, row.to_us);
          const complete = !isWaiting(row, id) && !isLost;
          return [id, { complete, ...(isLost ? { lost: true } : {}), deadLetters: deadLetters.get(id)?.get(row.from_us) ?? 0 }];
        }),
    );
  function* stored(): Generator<WindowDbRow, void, void> {
    for (const row of rows) yield withDoubt(row, suspended);
  }
  const counts = new WindowCounts();
  let edges: Window | undefined;
  let delays: LateDelays | undefined;
  for (const row of stored()) {
    const { reason, records, late, recounts } = row;
    counts.add({ state: stateOf(row), reason, records, late, recounts, sinks: has(row) });
    edges = { from: edges?.from ?? row.from_us, to: row.to_us };
    if (row.late > 0) delays = sumLate([delays ?? readLate(null), readLate(row.late_delays)]);
  }
  const windows: LedgerReportWindows = {
    *[Symbol.iterator]() {
      for (const row of stored()) yield windowOf(row, ages, has(row));
    },
  };
  const sql =
    'SELECT collected, (SELECT coalesce(sum(records), 0) FROM windows WHERE source = source_no) AS inWindows FROM sources WHERE source_no = ?';
  const ever = db.prepare<[number], { collected: number; inWindows: number }>(sql).get(source.n) ?? { collected: 0, inWindows: 0 };
  const live = ranges.find((range) => range.to_us === null);
  const until = live && completeUntil({ frontier: source.frontier_us ?? 0, liveFrom: live.from_us });
  return {
    id: source.id,
    state: source.state,
    startsAt: ranges[0] ? instant(ranges[0].from_us) : null,
    completeUntil: until === undefined ? null : instant(until),
    readUntil: live ? instant(live.closed_until_us) : null,
    collected: counts.records,
    late: counts.late,
    lateDelays: delaysOf(delays),
    lifetime: { ...ever, outside: ever.collected - ever.inWindows },
    sinks: sinks.map((sink) => sinkReport(sink, isFiltered(sink, query), counts.sinks.get(sink.id) ?? new SinkCounts())),
    covered: edges ? within(coverage.read, edges).map(({ from, to }) => ({ from: instant(from), to: instant(to) })) : [],
    suspensions: suspensions(db, source.n, query),
    windows,
  };
}

function windowOf(row: WindowDbRow, ages: readonly Micros[] | undefined, sinks: LedgerReportWindow['sinks']): LedgerReportWindow {
  return {
    from: instant(row.from_us),
    to: instant(row.to_us),
    state: stateOf(row),
    reason: row.reason,
    message: row.message,
    total: row.total,
    received: row.received,
    records: row.records,
    late: row.late,
    lateLongestSeconds: row.late === 0 ? null : seconds(readLate(row.late_delays).longest),
    passes: row.proof === null ? row.attempts : (storedJson(row.proof) as { passes: number }).passes,
    recounts: row.recounts,
    recountsDue: recountsDue(row, ages),
    nextRecount: row.next_us === null ? null : instant(row.next_us),
    closedAt: row.state === 'gap' ? null : instant(row.closed_us),
    digest: row.digest?.toString('hex') ?? null,
    query: storedJson(row.query) as WindowQuery,
    sinks,
  };
}

function sinkReport(sink: SinkDbRow, filtered: boolean, { windows, complete, lost, records, deadLetters }: SinkCounts): LedgerReportSink {
  return {
    id: sink.id,
    type: sink.type,
    state: sink.state,
    since: sink.begun_us === 0 ? null : instant(sink.begun_us),
    filtered,
    windows,
    complete,
    lost,
    records: filtered ? null : records,
    deadLetters,
  };
}

function recountsDue(row: WindowDbRow, ages: readonly Micros[] | undefined): number | null {
  if (row.state === 'gap') return null;
  if (row.next_us === null) return 0;
  if (ages === undefined) return null;
  const next = row.next_us - row.to_us;
  return ages.filter((age) => age >= next).length;
}

function delaysOf(delays: LateDelays | undefined): LedgerReportDelays {
  return {
    longestSeconds: delays ? seconds(delays.longest) : null,
    within: Object.fromEntries(lateNames.map((name, i) => [name, delays?.within[i] ?? 0])),
  };
}

/** Operator actions in the period, and all operator actions on its windows. */
function operations(db: Database, query: ReportQuery): LedgerReportOperation[] {
  const isRequested = (at: unknown): boolean =>
    typeof at === 'number' && at >= (query.from ?? 0) && at < (query.to ?? Number.MAX_SAFE_INTEGER);
  const sql = 'SELECT at_us, actor, operation, detail FROM operations ORDER BY operation_no';
  return db
    .prepare<[], { at_us: number; actor: string | null; operation: string; detail: string | null }>(sql)
    .all()
    .map(({ at_us: at, actor, operation, detail }) => ({ at, actor, operation, detail: detailOf(detail) }))
    .filter(({ at, detail }) => isRequested(at) || isRequested(detail['from']))
    .filter(({ detail: { source } }) => query.source === undefined || source === undefined || source === query.source)
    .map(({ at, actor, operation, detail }) => ({ at: instant(at), actor, operation, detail: flat(detail) }));
}

/** Ledger entries about suspensions, which have a single moment instead of a window. */
function suspensions(db: Database, source: number, query: ReportQuery): LedgerReportSuspension[] {
  const lines = db.prepare<[number, number, number], { kind: number; body: Buffer; min_us: number }>(
    `SELECT kind, body, min_us FROM segments WHERE source = ? AND kind & 255 = ${kindLedger} AND min_us = max_us AND min_us >= ? AND min_us < ?
     ORDER BY seq`,
  );
  let isSuspended = false;
  return lines.all(source, query.from ?? 0, query.to ?? Number.MAX_SAFE_INTEGER).flatMap(({ kind, body, min_us: at }) => {
    const line = storedJson(Buffer.from(unpackBody(kind, body)).toString('utf8')) as Readonly<Record<string, unknown>>;
    const text = (name: string): string | null => (typeof line[name] === 'string' ? line[name] : null);
    const operation = text('ledger');
    if (operation === null || operation === 'operation') return [];
    const state = text('state') ?? operation;
    // A line is written also when the facts of a suspension change.
    const event = state === 'suspended' && isSuspended ? 'changed' : state;
    isSuspended = state === 'suspended';
    return [{ at: instant(at), event, reason: text('reason'), message: text('message') }];
  });
}

function seconds(micros: Micros): number {
  return micros / 1e6;
}
