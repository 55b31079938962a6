/**
 * The verdict on a period: is everything that is due proven, and is it delivered. One pure function serves the report in every format, and
 * `status` over the whole ledger up to now. Below it the headline of `status`, and the same snapshot as JSON for programs.
 */
import type { BackfillProgress, Window } from '../model/ledger.ts';
import type { LedgerReportWindows, LedgerTables, LongLedgerReport } from '../model/ledger-report.ts';
import type { Coverage, SinkCoverage, SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { samples, seenWithin } from '../telemetry/delays.ts';
import { sinkNeedsYou } from './sink-health.ts';
import { ago, clockTime, counted, grouped, rfc3339, span, stretchWords } from './format-time.ts';

type SourceFacts = Pick<
  SourceSnapshot,
  'id' | 'state' | 'closeDelaySeconds' | 'serverNow' | 'trouble' | 'held' | 'clock' | 'nextProof' | 'undated' | 'retiredAt'
>;

/** What the verdict takes into account of the present. */
export interface Present {
  /** Set when no daemon runs. */
  readonly stopped: Snapshot['stopped'];
  /** Why collection is paused. */
  readonly paused: string | undefined;
  readonly sources: readonly SourceFacts[];
  readonly sinks: readonly Pick<SinkSnapshot, 'id' | 'lastError'>[];
}

/** A period, the present, and what the ledger has of the period. Times in µs. */
export interface Facts extends Present {
  readonly now: Micros;
  /** undefined: from the begin of each ledger. */
  readonly from: Micros | undefined;
  /** undefined: up to now. */
  readonly to: Micros | undefined;
  readonly coverage: ReadonlyMap<string, Coverage>;
}

type HoleReason =
  | 'before_ledger'
  | 'not_requested'
  | 'history_unread'
  | 'retired'
  | 'unconfigured'
  | 'daemon_stopped'
  | 'journal_full'
  | 'suspended'
  | 'source_failing'
  | 'behind';

/** Time that was due and is not proven, [from, to). */
interface Hole {
  readonly source: string;
  readonly from: Micros;
  readonly to: Micros;
  readonly reason: HoleReason;
  readonly message: string;
}

/** A sink that does not have every window that it owes. */
interface Shortfall extends SinkCoverage {
  readonly lastError: string | undefined;
}

export interface Completeness {
  /** Everything that is due is proven: no gap, accepted or not, no window in doubt, no hole; and something is proven at all. */
  readonly complete: boolean;
  /** A part of the period is not due yet, and not proven. */
  readonly soFar: boolean;
  /** Every sink has every window that it owes, and every record without a readable time; where it owes no window yet, nothing waits for it. */
  readonly delivered: boolean;
  /** Nothing of the period will be looked at again, and nothing of it is outside of the ledger. */
  readonly final: boolean;
  readonly windows: number;
  readonly gaps: number;
  readonly accepted: number;
  readonly inDoubt: number;
  readonly uncovered: readonly Hole[];
  /** Sources of which nothing is known, not even where their ledger begins. */
  readonly unknown: readonly string[];
  /** Set where no window is in the period and none of it is due: about when the first window is proven, where that is known. */
  readonly nothingDue?: { readonly firstProof: Micros | undefined; readonly now: Micros };
  readonly shortfalls: readonly Shortfall[];
  /** Several sources take part: a hole names its own. */
  readonly isOfSeveral: boolean;
  readonly isStopped: boolean;
}

const secondMicros = 1_000_000;

/**
 * A window is as wide as the close delay, between 10 s and 1 h, and is closed when its end has the age of the close delay (docs/guarantees.md):
 * so time is proven at the latest after one close delay and one window. One more close delay is for the work itself.
 */
export function dueAfterSeconds(closeDelaySeconds: number): number {
  return 2 * closeDelaySeconds + widthSeconds(closeDelaySeconds);
}

function widthSeconds(closeDelaySeconds: number): number {
  return Math.min(3_600, Math.max(10, closeDelaySeconds));
}

/** The one function from which every verdict comes. */
export function completeness(facts: Facts): Completeness {
  const all = facts.sources.map((source) => examine(source, facts));
  const taking = all.filter(({ takesPart }) => takesPart);
  // A source whose ledger begins after the period, or that was retired before, has no part in it; but where that is so of all, nothing is proven.
  const parts = taking.length > 0 ? taking : all;
  const sum = (count: (coverage: Coverage) => number): number => parts.reduce((total, { coverage }) => total + count(coverage), 0);
  const windows = sum(({ windows: { all: count } }) => count);
  const gaps = sum((coverage) => coverage.windows.gaps);
  const accepted = sum((coverage) => coverage.windows.accepted);
  const inDoubt = sum((coverage) => coverage.windows.inDoubt);
  const uncovered = parts.flatMap((part) => part.uncovered);
  const unknown = parts.filter(({ isUnknown }) => isUnknown).map(({ id }) => id);
  const soFar = parts.some(({ isPending }) => isPending);
  const isNothingDue = windows === 0 && parts.length > 0 && parts.every(({ isAllPending }) => isAllPending);
  const proofs = parts.flatMap(({ firstProof }) => firstProof ?? []);
  const firstProof = proofs.length === 0 ? undefined : Math.min(...proofs);
  const shortfalls = shortfallsOf(
    parts.flatMap(({ coverage }) => coverage.sinks),
    facts,
  );
  return {
    complete: windows > 0 && gaps + accepted + inDoubt === 0 && uncovered.length === 0 && unknown.length === 0,
    soFar,
    delivered: shortfalls.length === 0,
    final:
      parts.length > 0 &&
      parts.every(({ coverage: { windows: count } }) => count.all > 0 && count.final === count.all) &&
      uncovered.length === 0 &&
      // An end that was not asked for is no promise.
      (facts.to === undefined || !soFar),
    ...{ windows, gaps, accepted, inDoubt, uncovered, unknown, shortfalls },
    ...(isNothingDue && { nothingDue: { firstProof, now: facts.now } }),
    isOfSeveral: parts.length > 1,
    isStopped: facts.stopped !== undefined,
  };
}

interface Examined {
  readonly id: string;
  readonly coverage: Coverage;
  readonly takesPart: boolean;
  readonly isUnknown: boolean;
  readonly isPending: boolean;
  /** Nothing of the period is due, nor proven before it is due. */
  readonly isAllPending?: boolean;
  /** Only with it, where it is known. */
  readonly firstProof?: Micros | undefined;
  readonly uncovered: readonly Hole[];
}

const nothingCovered: Coverage = {
  ...{ startsAt: undefined, liveFrom: undefined, history: [], read: [], sinks: [] },
  windows: { all: 0, final: 0, gaps: 0, accepted: 0, inDoubt: 0 },
};

function examine(source: SourceFacts, facts: Facts): Examined {
  const { id, retiredAt } = source;
  const coverage = facts.coverage.get(id) ?? nothingCovered;
  const begin = facts.from ?? coverage.startsAt;
  // A source that was retired owes the time up to its retirement, as far as it was read or not.
  const asked = facts.to ?? facts.now;
  const end = Math.min(asked, retiredAt ?? asked);
  const { read } = coverage;
  const isOver = retiredAt !== undefined && begin !== undefined && retiredAt <= begin;
  const takesPart = !isOver && (coverage.startsAt === undefined || coverage.startsAt < end);
  const common = { id, coverage, takesPart };
  if (begin === undefined) return { ...common, isUnknown: true, isPending: false, uncovered: [] };
  // What both clocks have reached, as where windows are closed.
  const closedUntil = Math.min(facts.now, source.serverNow ?? facts.now);
  const due = Math.floor((closedUntil - dueAfterSeconds(source.closeDelaySeconds) * 1e6) / secondMicros) * secondMicros;
  const edges = [due, coverage.startsAt ?? begin, ...[...read, ...coverage.history].flatMap(({ from, to }) => [from, to])];
  const uncovered: Hole[] = [];
  let pendingFrom: Micros | undefined;
  for (const part of between(begin, end, edges)) {
    if (read.some(({ from, to }) => from <= part.from && part.from < to)) continue;
    if (part.from >= due) {
      pendingFrom ??= part.from;
    } else add(uncovered, { source: id, from: part.from, to: part.to, ...reasonAt(part.from, source, coverage, facts) });
  }
  // A period that is wholly in the future has no stretch to look at.
  const isAllPending = uncovered.length === 0 && (asked <= begin ? begin >= due && !isOver : pendingFrom === begin);
  const firstProof = isAllPending ? firstProofOf(begin, source) : undefined;
  return { ...common, isUnknown: false, isPending: pendingFrom !== undefined, uncovered, isAllPending, firstProof };
}

/** When time from there on is proven at the earliest; undefined where nobody knows yet what time it is at the service. */
function firstProofOf(from: Micros, { closeDelaySeconds, nextProof = 0, undated }: SourceFacts): Micros | undefined {
  if (undated && undated.known === undefined) return undefined;
  return Math.max(from + (widthSeconds(closeDelaySeconds) + closeDelaySeconds) * 1e6, nextProof);
}

/** A stretch of time cut at these edges. */
function between(begin: Micros, end: Micros, edges: readonly Micros[]): Window[] {
  if (begin >= end) return [];
  const cuts = [...new Set([begin, ...edges.filter((edge) => begin < edge && edge < end), end])].sort((a, b) => a - b);
  return cuts.slice(1).map((to, i) => ({ from: cuts[i] ?? begin, to }));
}

/** Two adjacent holes with one reason are one. */
function add(holes: Hole[], hole: Hole): void {
  const last = holes.at(-1);
  if (last?.to === hole.from && last.reason === hole.reason) holes[holes.length - 1] = { ...last, to: hole.to };
  else holes.push(hole);
}

function reasonAt(
  at: Micros,
  { state, trouble, held, clock }: SourceFacts,
  { startsAt, liveFrom, history }: Coverage,
  { stopped, paused }: Facts,
): Pick<Hole, 'reason' | 'message'> {
  if (startsAt !== undefined && at < startsAt) return { reason: 'before_ledger', message: 'the ledger had not begun' };
  if (liveFrom !== undefined && at < liveFrom) {
    const range = history.find(({ from, to }) => from <= at && at < to);
    if (!range) return { reason: 'not_requested', message: 'this history was not requested' };
    return { reason: 'history_unread', message: range.paused ? 'the backfill is paused' : 'the backfill is not finished' };
  }
  if (state === 'retired') return { reason: 'retired', message: 'the source was retired' };
  if (state === 'unconfigured') return { reason: 'unconfigured', message: 'the source is not in the configuration' };
  if (stopped) return { reason: 'daemon_stopped', message: 'the daemon is not running' };
  if (paused !== undefined) return { reason: 'journal_full', message: `collection is paused (${paused})` };
  if (held) return { reason: 'suspended', message: `collection is suspended (${held.reason}): ${held.message}` };
  if (trouble !== undefined) return { reason: 'source_failing', message: `the source fails: ${trouble}` };
  return { reason: 'behind', message: clock ? 'the clock of the service is being measured' : 'collection is behind' };
}

/** Of all sources together, by sink. */
function shortfallsOf(parts: readonly SinkCoverage[], { sinks }: Facts): Shortfall[] {
  const sums = new Map<string, SinkCoverage>();
  for (const part of parts) {
    const { windows = 0, lacking = 0, lost = 0, deadLetters = 0, undated = 0, ...known } = sums.get(part.id) ?? {};
    const sum = { windows: windows + part.windows, lacking: lacking + part.lacking, lost: lost + part.lost };
    const all = undated + (part.undated ?? 0);
    sums.set(part.id, { ...known, ...part, ...sum, deadLetters: deadLetters + part.deadLetters, ...(all === 0 ? {} : { undated: all }) });
  }
  return [...sums.values()]
    .filter(({ lacking, undated = 0, waits = false }) => lacking > 0 || undated > 0 || waits)
    .map((sum) => ({ ...sum, lastError: sinks.find(({ id }) => id === sum.id)?.lastError }));
}

/** More than these are counted, not named. */
const maxNamed = 3;

/** The first line of a report. @param tz  the zone of the times in it, an IANA name */
export function summaryOf(found: Completeness, tz: string): string {
  const head = found.soFar ? 'COMPLETE SO FAR' : 'COMPLETE';
  if (found.nothingDue) {
    const { firstProof, now } = found.nothingDue;
    return `NOTHING DUE YET: first proof ${firstProof === undefined ? 'with its first record' : whenDue(firstProof, now, tz)}`;
  }
  if (!found.complete) return `INCOMPLETE: ${missing(found, tz).join('; ')}`;
  if (found.delivered) return `${head} AND DELIVERED`;
  return `${head}, NOT ALL DELIVERED: ${named(found.shortfalls.map((one) => shortfallWords(one, found)))}`;
}

function missing({ windows, gaps, accepted, inDoubt, unknown, uncovered, isOfSeveral }: Completeness, tz: string): string[] {
  const open = [
    ...(gaps === 0 ? [] : [counted(gaps, 'gap')]),
    ...(accepted === 0 ? [] : [counted(accepted, 'accepted gap')]),
    ...(inDoubt === 0 ? [] : [`${counted(inDoubt, 'window')} in doubt`]),
  ];
  const holes = uncovered.map(
    ({ source, from, to, message }) => `${isOfSeveral ? `${source} ` : ''}${stretchWords(from, to, tz)}, ${message}`,
  );
  return [
    ...(windows === 0 ? ['nothing is proven'] : []),
    ...(open.length === 0 ? [] : [open.join(', ')]),
    ...unknown.map((id) => `nothing is known of ${id}: its ledger has not begun yet`),
    ...(holes.length === 0 ? [] : [`not covered: ${named(holes)}`]),
  ];
}

function shortfallWords(
  { id, windows, lacking, lost, loss, deadLetters, undated = 0, lastError }: Shortfall,
  { isStopped }: Completeness,
): string {
  const losses = lost === 0 ? [] : [`lost ${grouped(lost)}${loss === undefined ? '' : `: ${loss}`}`];
  const refused = deadLetters === 0 ? [] : [counted(deadLetters, 'dead letter')];
  const reasons = [...losses, ...(lastError === undefined ? [] : [lastError]), ...refused];
  const otherwise = isStopped ? 'the daemon is not running' : 'delivery is in progress';
  const lacks = [
    ...(lacking === 0 ? [] : [`${grouped(lacking)} of ${counted(windows, 'window')}`]),
    ...(undated === 0 ? [] : [`${counted(undated, 'record')} without a readable time`]),
  ];
  const what = lacks.length === 0 ? 'records that wait for it' : lacks.join(' and ');
  // Without a window that lacks, records without a time may be dead letters alone: nothing is said of what is not known.
  const why = reasons.length > 0 ? reasons.join('; ') : lacking === 0 && undated > 0 ? '' : otherwise;
  return `${id} lacks ${what}${why === '' ? '' : ` (${why})`}`;
}

function named(items: readonly string[]): string {
  const rest = items.length - maxNamed;
  return rest <= 0 ? items.join('; ') : `${items.slice(0, maxNamed).join('; ')}; and ${grouped(rest)} more`;
}

/** The tables of a report with the verdict on its period in front: what `ledger --json` prints. */
export function assessed(
  { generatedAt, from, to, sources, operations, coverage }: LedgerTables<LedgerReportWindows> & { readonly coverage: Facts['coverage'] },
  period: Pick<Facts, 'now' | 'from' | 'to'>,
  present: Present,
  tz: string,
): { readonly report: LongLedgerReport; readonly found: Completeness } {
  const known = new Map(present.sources.map((source) => [source.id, source]));
  const facts = sources.map(
    ({ id, state }) => known.get(id) ?? { id, state, closeDelaySeconds: 0, serverNow: undefined, trouble: undefined, held: undefined },
  );
  const found = completeness({ ...present, ...period, sources: facts, coverage });
  const { complete, delivered, final } = found;
  const summary = summaryOf(found, tz);
  const uncovered = found.uncovered.map((hole) => ({ ...hole, from: rfc3339(hole.from), to: rfc3339(hole.to) }));
  return { report: { summary, complete, delivered, final, uncovered, generatedAt, from, to, sources, operations }, found };
}

export function presentOf({ stopped, journal, sources, sinks }: Snapshot): Present {
  return {
    stopped,
    paused: journal.paused,
    sources: sources.map(({ id, state, closeDelaySeconds, serverNow, trouble, held, clock, nextProof, undated, retiredAt }) => ({
      ...{ id, state, closeDelaySeconds, serverNow, trouble, held, clock, nextProof, undated, retiredAt },
    })),
    // The error of a failure that is over is no reason for anything.
    sinks: sinks.map((sink) => ({ id: sink.id, lastError: failsNow(sink) ? sink.lastError : undefined })),
  };
}

function failsNow({ state, attempts = 0, trouble }: SinkSnapshot): boolean {
  return state === 'retrying' || state === 'blocked' || attempts > 0 || trouble !== undefined;
}

interface StatusJson {
  readonly summary: string;
  /** Over the whole ledger of every source, up to now, as in the report; false where there is none. */
  readonly complete: boolean;
  readonly delivered: boolean;
  readonly version: string;
  readonly journal: { readonly bytes: number; readonly maxSize: number; readonly head: number };
  readonly sources: readonly {
    readonly id: string;
    readonly state: string;
    readonly frontier: string | null;
    readonly closedUntil: string | null;
    readonly polledUntil: string | null;
    /** Server time minus frontier. */
    readonly lagSeconds: number | null;
    readonly gaps: number;
    readonly lastError: string | null;
    /** Only where history is being added. */
    readonly backfills?: readonly {
      readonly from: string;
      readonly to: string;
      readonly closedUntil: string;
      readonly state: string;
      readonly records: number;
      readonly expected: number | null;
      readonly perSecond: number | null;
      readonly secondsLeft: number | null;
    }[];
    /** First seen minus logTimestamp, of the last one to two weeks: seconds within which a share was seen; null without records, or beyond 30 d. */
    readonly delays: {
      readonly records: number;
      readonly p50: number | null;
      readonly p90: number | null;
      readonly p99: number | null;
      readonly p999: number | null;
    };
  }[];
  readonly sinks: readonly {
    readonly id: string;
    readonly type: string;
    readonly state: string;
    readonly acknowledged: number;
    readonly lagRecords: number;
    readonly lagSeconds: number;
    readonly deadLetters: number;
    readonly lastError: string | null;
    /** Whether it has accepted a message, in this run or an earlier one of the same state. */
    readonly hasDelivered: boolean;
    /** In a row; null where no daemon runs. Then the times below are null too, as they are while no attempt fails. */
    readonly failedAttempts: number | null;
    readonly failingSince: string | null;
    readonly nextAttempt: string | null;
  }[];
  /** About when the daemon ended; null while one runs. */
  readonly stoppedSince: string | null;
}

/**
 * The headline of `status`: the verdict on the whole ledger up to now, and what else a person should know first.
 *
 * @param tz  the zone of the times in it, an IANA name
 */
export function verdict(snapshot: Snapshot, tz = 'UTC'): string {
  const { sources, sinks, journal, now, created, stopped } = snapshot;
  const deadLetters = sinks.reduce((sum, sink) => sum + sink.deadLetters, 0);
  const isNew = now - created < hour;
  const clauses = [
    verdictClause(snapshot, tz),
    ...(journal.paused === undefined ? [] : [`collection is paused (${journal.paused})`]),
    needs(sources.filter(sourceNeedsYou).length, 'source'),
    needs(sinks.filter(sinkNeedsYou).length, 'sink'),
    ...(deadLetters === 0 ? [] : [counted(deadLetters, 'dead letter')]),
    // A lost state starts anew without any other sign (docs/operations.md, "State lost").
    ...(isNew ? [`new state since ${span((now - created) / 1e6)}`] : []),
  ];
  const line = clauses.filter((clause) => clause !== '').join(', ');
  return stopped ? `DAEMON NOT RUNNING since about ${clockTime(stopped.since, now, tz)} (${ago(stopped.since, now)}); ${line}` : line;
}

/** The verdict over the whole ledger of every source, up to now, as the report has it; undefined where there is no source. */
export function statusVerdict(snapshot: Snapshot): Completeness | undefined {
  const { sources } = snapshot;
  if (sources.length === 0) return undefined;
  const coverage = new Map(sources.flatMap(({ id, coverage: found }) => (found ? [[id, found] as const] : [])));
  return completeness({ ...presentOf(snapshot), now: snapshot.now, from: undefined, to: undefined, coverage });
}

/** What `status --json` prints and `GET /status` answers (contract: docs/operations.md, "JSON of status"). */
export function statusJson(snapshot: Snapshot): StatusJson {
  const found = statusVerdict(snapshot);
  return {
    summary: verdict(snapshot),
    complete: found?.complete ?? false,
    delivered: found?.delivered ?? false,
    version: snapshot.version,
    journal: { bytes: snapshot.journal.bytes, maxSize: snapshot.journal.maxSize, head: snapshot.journal.head },
    sources: snapshot.sources.map((source) => ({
      id: source.id,
      state: source.state,
      frontier: instant(source.frontier),
      closedUntil: instant(source.closedUntil),
      polledUntil: instant(source.polledUntil),
      lagSeconds: begun(source) ? Math.max(0, (serverTime(source, snapshot) - source.frontier) / 1e6) : null,
      gaps: source.gaps,
      lastError: source.lastError ?? null,
      ...(source.backfills?.length ? { backfills: source.backfills.map(backfillJson) } : {}),
      delays: delaysOf(source),
    })),
    sinks: snapshot.sinks.map(
      ({ id, type, state, acknowledged, lagRecords, lagSeconds, deadLetters, lastError, hasDelivered, ...attempts }) => ({
        ...{ id, type, state, acknowledged, lagRecords, lagSeconds, deadLetters },
        lastError: lastError ?? null,
        hasDelivered,
        failedAttempts: attempts.attempts ?? null,
        failingSince: attempts.failingSince === undefined ? null : rfc3339(attempts.failingSince),
        nextAttempt: attempts.nextAttempt === undefined ? null : rfc3339(attempts.nextAttempt),
      }),
    ),
    stoppedSince: snapshot.stopped ? rfc3339(snapshot.stopped.since) : null,
  };
}

function backfillJson({ from, to, closedUntil, state, records, order, perSecond, secondsLeft }: BackfillProgress) {
  return {
    from: rfc3339(from),
    to: rfc3339(to),
    closedUntil: rfc3339(closedUntil),
    state,
    records,
    expected: order.expected ?? null,
    perSecond: perSecond ?? null,
    secondsLeft: secondsLeft ?? null,
  };
}

function delaysOf({ delays }: SourceSnapshot): StatusJson['sources'][number]['delays'] {
  const within = (share: number): number | null => {
    const seconds = delays && seenWithin(delays, share);
    return seconds !== undefined && Number.isFinite(seconds) ? seconds : null;
  };
  return { records: delays ? samples(delays) : 0, p50: within(0.5), p90: within(0.9), p99: within(0.99), p999: within(0.999) };
}

export function sourceNeedsYou(source: SourceSnapshot): boolean {
  return source.state === 'suspended' || source.state === 'unconfigured' || (source.state !== 'retired' && source.trouble !== undefined);
}

/** The moment at the source, as far as it is known. */
export function serverTime(source: SourceSnapshot, snapshot: Snapshot): Micros {
  return source.serverNow ?? snapshot.now;
}

/** Whether the source has a place in time yet: before the first answer of `start: now` it has none. */
export function begun(source: SourceSnapshot): boolean {
  return source.frontier !== 0;
}

const hour = 3_600 * 1e6;

function verdictClause(snapshot: Snapshot, tz: string): string {
  const found = statusVerdict(snapshot);
  if (!found) return 'NO SOURCE is configured';
  const polled = snapshot.sources.filter(({ state }) => state !== 'unconfigured' && state !== 'retired');
  if (polled.length === 0) return `NO SOURCE is polled any more; ${summaryOf(found, tz)}`;
  const fresh = polled.filter(({ coverage }) => coverage === undefined || coverage.windows.all === 0);
  const known = polled.filter((source) => !fresh.includes(source) && begun(source));
  const suspended = polled.filter(({ state }) => state === 'suspended');
  // It says itself when the first proof is due.
  if (found.nothingDue) return summaryOf(found, tz);
  const [slowest] = known.toSorted((a, b) => a.frontier - b.frontier);
  const proofs = fresh.map((source) => firstProof(source, snapshot, tz));
  return [
    `${suspended.length === 0 ? '' : `COLLECTION SUSPENDED at ${nameOrCount(suspended)}; `}${summaryOf(found, tz)}`,
    ...(slowest ? [`proven up to ${when(slowest, snapshot, tz)}`] : []),
    ...(proofs[0] === undefined ? [] : [known.length === 0 ? proofs[0] : `${proofs[0]} of ${nameOrCount(fresh)}`]),
  ].join(', ');
}

/** The bound of the alert WaybillFrontierLate: a frontier lags about twice the close delay when all is well. */
export function isLate(source: SourceSnapshot, time: Micros, snapshot: Snapshot): boolean {
  return serverTime(source, snapshot) - time > (2 * source.closeDelaySeconds + 900) * 1e6;
}

function when(source: SourceSnapshot, snapshot: Snapshot, tz: string): string {
  const now = serverTime(source, snapshot);
  return `${clockTime(source.frontier, now, tz)} (${ago(source.frontier, now)})`;
}

/** The first window is as wide as the close delay, within 10 s and 1 h, and is closed when its end has that age (docs/guarantees.md). */
function firstProof(source: SourceSnapshot, snapshot: Snapshot, tz: string): string {
  if (!begun(source)) return source.lastSuccess === undefined ? 'first answer awaited' : 'where it begins is not known yet';
  if (source.undated && source.undated.known === undefined) return 'first proof due with its first record, as its answers carry no Date';
  const now = serverTime(source, snapshot);
  const measured = source.clock ? now + source.clock.remainingMs * 1000 : 0;
  return `first proof due ${whenDue(Math.max(firstProofOf(source.frontier, source) ?? 0, measured), now, tz)}`;
}

function whenDue(due: Micros, now: Micros, tz: string): string {
  return due <= now ? 'now' : `about ${clockTime(due, now, tz)}`;
}

function nameOrCount(sources: readonly SourceSnapshot[]): string {
  return sources.length === 1 && sources[0] ? sources[0].id : counted(sources.length, 'source');
}

function needs(count: number, what: string): string {
  return count === 0 ? '' : `${counted(count, what)} ${count === 1 ? 'needs' : 'need'} attention`;
}

function instant(at: Micros): string | null {
  return at === 0 ? null : rfc3339(at);
}
