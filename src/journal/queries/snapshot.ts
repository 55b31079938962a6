/**
 * Reads the state of the daemon for status and metrics, on the daemon's connection or a read-only
 * one. The completeness report is in ledger.ts.
 */
import { dirname, resolve } from 'node:path';
import type { Database } from 'better-sqlite3';
import type { ReplayProgress, Replays } from '../../model/journal.ts';
import { suspensionMessage, type BackfillProgress, type Suspension } from '../../model/ledger.ts';
import type { SinkSnapshot, Snapshot, SourceSnapshot, RequestedStart } from '../../model/snapshot.ts';
import type { DelayMeasure } from '../../model/telemetry.ts';
import type { Micros } from '../../model/time.ts';
import { coverageOf } from './coverage.ts';
import { owingSinks, type CoverageQuery } from './owed.ts';
import { backfillsOf, unreadOf } from './backfills.ts';
import { suspendedTogether } from './suspensions.ts';
import { windowGroups } from './window-groups.ts';
import type { ReportQuery } from './ledger.ts';
import { diskBudgetOf, setAsideBytes, usedBytes } from '../disk-budget.ts';
import { createdAt } from '../schema.ts';
import { selectionOf, takes } from '../selection.ts';
import { replaysOf } from '../sink-positions.ts';
import { storedJson } from '../damage.ts';
import { StateCounts } from '../window-counts.ts';

interface SourceDbRow extends Pick<SourceSnapshot, 'id' | 'liveFrom' | 'frontier' | 'polledUntil' | 'closedUntil' | 'collected' | 'late'> {
  readonly n: number;
  readonly state: string;
  readonly lastRecord: Micros | null;
  readonly profile: string | null;
}

interface SinkDbRow {
  id: string;
  type: string;
  state: string;
  acknowledged: number;
  delivered: number;
  from_seq: number;
  selection: string | null;
}

interface Profile {
  readonly delays?: DelayMeasure;
  readonly suspension?: Suspension;
  readonly earliest?: Micros;
  readonly visibility?: { readonly contradictions?: { readonly outside?: string } };
}

/** Facts that only the running daemon knows, by id. Without them the snapshot is of a stopped daemon. */
export interface LiveFacts {
  readonly source: (id: string) => Partial<SourceSnapshot> | undefined;
  readonly sink: (id: string) => Partial<SinkSnapshot> | undefined;
  readonly backfill?: (source: string, range: BackfillProgress) => Pick<BackfillProgress, 'perSecond' | 'secondsLeft'>;
  readonly closeDelaySeconds: (id: string) => number;
  readonly paused: string | undefined;
  readonly maxSize: number;
  readonly commits?: number;
  /** Set when no daemon runs. */
  readonly stopped?: Snapshot['stopped'];
  /**
   * Configured source ids; undefined when unknown. A configured source without a response has no row
   * yet; a row without a configured source is unconfigured.
   */
  readonly configured: readonly string[] | undefined;
  /** The start of a source that its setting `start` requests, given its profile; undefined unless it is a time. */
  readonly requested?: (id: string, profile: { readonly earliest?: Micros }, now: Micros) => RequestedStart | undefined;
}

/** The state of everything at one moment: the file, combined with the facts of the running daemon. */
export function snapshotOf(db: Database, version: string, now: Micros, live: LiveFacts): Snapshot {
  const headSql = 'SELECT seq, pruned_seq AS pruned FROM head WHERE one = 1';
  const { seq: head, pruned } = db.prepare<[], { seq: number; pruned: number }>(headSql).get() ?? { seq: 0, pruned: 0 };
  const usedSql = 'SELECT page_count - freelist_count AS pages FROM pragma_page_count, pragma_freelist_count';
  const used = db.prepare<[], { pages: number }>(usedSql).get();
  const sources = sourceSnapshots(db, now, live);
  for (const id of live.configured ?? []) if (!sources.some((source) => source.id === id)) sources.push(unanswered(id, live));
  return {
    version,
    created: createdAt(db),
    now,
    journal: {
      bytes: usedBytes(used?.pages ?? 0, db, diskBudgetOf(live.maxSize)),
      setAside: setAsideBytes(db, diskBudgetOf(live.maxSize)),
      maxSize: live.maxSize,
      head,
      pruned,
      paused: live.paused,
      directory: resolve(dirname(db.name)),
      ...(live.commits !== undefined && { commits: live.commits }),
    },
    sources,
    sinks: sinkSnapshots(db, head, now, live),
    ...(live.stopped && { stopped: live.stopped }),
  };
}

function sourceSnapshots(db: Database, now: Micros, live: LiveFacts): SourceSnapshot[] {
  const suspended = suspendedTogether(db);
  const overdue = db.prepare<[number, number], { n: number }>('SELECT count(*) AS n FROM windows WHERE source = ? AND next_us < ?');
  const retired = db.prepare<[string], { at: Micros | null }>(
    "SELECT max(at_us) AS at FROM operations WHERE operation = 'sources retire' AND json_extract(detail, '$.source') = ?",
  );
  const history = backfillsOf(db, false);
  return sourceRows(db).map(({ n, profile: stored, lastRecord, ...row }): SourceSnapshot => {
    const view = live.source(row.id);
    // Recounts are due by the clock that closes windows. Without `Date` the records determine the time.
    const due = view?.undated ? (view.undated.known ?? 0) : (view?.serverNow ?? now);
    const profile = stored === null ? {} : (storedJson(stored) as Profile);
    const { suspension } = profile;
    const requested = live.requested?.(row.id, profile, now);
    return {
      ...row,
      // While the daemon is stopped, the configuration may have changed: shows the state that its next start will set.
      state: row.state === 'retired' || (live.configured?.includes(row.id) ?? true) ? row.state : 'unconfigured',
      // Of a source that is held before it is polled; the others report it themselves.
      trouble: live.stopped || !suspension ? undefined : suspensionMessage(suspension),
      windows: StateCounts.of(windowGroups(db, n, undefined, suspended.get(row.id))),
      recountsOverdue: overdue.get(n, due - 60_000_000)?.n ?? 0,
      closeDelaySeconds: live.closeDelaySeconds(row.id),
      // The last response of a stopped daemon is not older than `polledUntil`, except for the difference of the clocks.
      lastSuccess: live.stopped && row.polledUntil > 0 ? row.polledUntil : undefined,
      lastRecord: lastRecord ?? undefined,
      delays: profile.delays,
      unread: requested === undefined ? undefined : unreadOf(db, row.id, requested),
      held: suspension && { reason: suspension.reason, message: suspension.message, since: suspension.since },
      contradiction: suspension?.reason === 'filter' ? suspension.message : profile.visibility?.contradictions?.outside,
      ...(row.state === 'retired' && { retiredAt: retired.get(row.id)?.at ?? undefined }),
      ...view,
      backfills: history.filter(({ source }) => source === row.id).map((range) => ({ ...range, ...live.backfill?.(row.id, range) })),
    };
  });
}

function sinkSnapshots(db: Database, head: number, now: Micros, live: LiveFacts): SinkSnapshot[] {
  const deadLetters = new Map(
    db
      .prepare<[], { sink: string; n: number }>("SELECT sink, count(*) AS n FROM dead_letters WHERE state = 'stored' GROUP BY sink")
      .all()
      .map((row) => [row.sink, row.n]),
  );
  const replays = replaysOf(db);
  return sinkRows(db).map((row): SinkSnapshot => {
    const view = live.sink(row.id);
    // The daemon may not have stored its last acknowledgements yet.
    const { acknowledged = row.acknowledged } = view ?? {};
    const lag = Math.max(0, head - acknowledged);
    return {
      id: row.id,
      type: row.type,
      state: live.stopped && row.state === 'active' ? 'stopped' : row.state,
      acknowledged,
      lagSeconds: lag === 0 ? 0 : lagSeconds(db, acknowledged, now),
      deadLetters: deadLetters.get(row.id) ?? 0,
      unselected: unselected(db, row),
      ...view,
      replays: view?.replays ?? stoppedReplays(replays.get(row.id)),
      lagEntries: lag,
      lagRecords: lag === 0 ? 0 : recordsAfter(db, acknowledged),
      // A sink starts with `delivered` = `from_seq`. An acknowledgement may still be pending in memory.
      hasDelivered: row.delivered > row.from_seq || view?.lastSuccess !== undefined,
    };
  });
}

/** From the state alone: positions in memory are newer, and not of one moment. */
function unselected(db: Database, { id, acknowledged, delivered, from_seq: start, selection: stored }: SinkDbRow): number | undefined {
  const selection = selectionOf(stored);
  const from = Math.max(start, selection?.changedAfter ?? 0);
  if (selection?.filter === undefined || delivered > from) return undefined;
  // A dead letter has passed the filter.
  if (db.prepare('SELECT 1 FROM dead_letters WHERE sink = ? AND seq > ?').get(id, from) !== undefined) return undefined;
  const collected = sourceRows(db).reduce((sum, source) => sum + (takes(selection, source.id) ? source.collected : 0), 0);
  const held = Math.min(collected - recordsAfter(db, acknowledged), acknowledged - from);
  return held > 0 ? held : undefined;
}

/** The records after an entry; the other entries are lines of the ledger. */
function recordsAfter(db: Database, seq: number): number {
  const sql =
    'SELECT coalesce(sum(seq + n - 1 - max(seq - 1, @seq)), 0) AS records FROM segments WHERE number IS NOT NULL AND seq + n - 1 > @seq';
  return db.prepare<{ seq: number }, { records: number }>(sql).get({ seq })?.records ?? 0;
}

/** The replay that the next loop continues. The number of lines of an archive is not known. */
function stoppedReplays({ range, archive: stored }: Replays = {}): ReplayProgress[] {
  const ofRange = range ? [{ ...range, state: 'stopped' as const, ended: undefined }] : [];
  if (!stored) return ofRange;
  const { archive, times, at, leftOut = 0, sent, rejected, began } = stored;
  const lines = { first: 1, last: at, at, passed: at, expected: at, leftOut };
  return [...ofRange, { state: 'stopped', archive, times, sent, rejected, began, ended: undefined, ...lines }];
}

/**
 * Adds to the snapshot, for the summary, which times the whole ledger of each source covers.
 * @param query `configured` gives the start of a source that is not in the state yet
 */
export function withCoverage(db: Database, snapshot: Snapshot, query: Pick<ReportQuery, keyof CoverageQuery | 'configured'>): Snapshot {
  return db.transaction((): Snapshot => {
    const sinks = owingSinks(db);
    const suspended = suspendedTogether(db);
    const numbers = new Map(sourceRows(db).map(({ id, n }) => [id, n]));
    const sources = snapshot.sources.map((source) => {
      const { id } = source;
      // No row of any table has the source number 0.
      const coverage = coverageOf(db, { n: numbers.get(id) ?? 0, id, start: query.configured?.get(id) }, sinks, suspended.get(id), query);
      return { ...source, coverage };
    });
    return { ...snapshot, sources };
  })();
}

/** A source without a ledger: `start: now` awaits the first response. */
function unanswered(id: string, live: LiveFacts): SourceSnapshot {
  return {
    id,
    state: 'active',
    trouble: live.stopped ? undefined : 'no answer yet',
    liveFrom: 0,
    frontier: 0,
    closedUntil: 0,
    polledUntil: 0,
    collected: 0,
    late: 0,
    windows: new StateCounts(),
    recountsOverdue: 0,
    closeDelaySeconds: live.closeDelaySeconds(id),
    ...live.source(id),
  };
}

export function sourceRows(db: Database): SourceDbRow[] {
  const sql = `SELECT source_no AS n, id, state, profile, from_us AS liveFrom, frontier_us AS frontier, polled_until_us AS polledUntil,
              closed_until_us AS closedUntil, collected, late, last_record_us AS lastRecord
       FROM sources JOIN ranges ON ranges.source = source_no AND to_us IS NULL ORDER BY id`;
  return db.prepare<[], SourceDbRow>(sql).all();
}

export function sinkRows(db: Database): SinkDbRow[] {
  return db.prepare<[], SinkDbRow>('SELECT id, type, state, acknowledged, delivered, from_seq, selection FROM sinks ORDER BY id').all();
}

/** The age of the first record that is not acknowledged. It is in the last segment that starts at or before it. */
export function lagSeconds(db: Database, acknowledged: number, now: Micros): number {
  const sql =
    'SELECT received_us FROM segments WHERE seq >= (SELECT coalesce(max(seq), 0) FROM segments WHERE seq <= ?) ORDER BY seq LIMIT 1';
  const next = db.prepare<[number], { received_us: number }>(sql).get(acknowledged + 1);
  return next ? Math.max(0, (now - next.received_us) / 1e6) : 0;
}
