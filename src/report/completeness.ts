/**
 * Decides whether everything due in a period is proven and delivered. One pure function serves the
 * report in every format, and `status` for the whole ledger up to now.
 */
import { endOf, secondMicros, steadyWidth } from '../collect/windows.ts';
import { StateCounts } from '../journal/window-counts.ts';
import type { Window } from '../model/ledger.ts';
import { cut } from '../record/text.ts';
import type { Coverage, SinkCoverage, SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';

/** Characters of the last error of a source in a summary, which is one line. */
const maxTroubleLength = 160;

type SourceFacts = Pick<
  SourceSnapshot,
  | 'id'
  | 'state'
  | 'closeDelaySeconds'
  | 'serverNow'
  | 'trouble'
  | 'failing'
  | 'held'
  | 'clock'
  | 'nextProof'
  | 'undated'
  | 'retiredAt'
  | 'contradiction'
> &
  Partial<Pick<SourceSnapshot, 'lastSuccess'>>;

/** The current facts that a summary depends on. */
export interface Present {
  /** Set when no daemon runs. */
  readonly stopped: Snapshot['stopped'];
  /** When the state was created; undefined if unknown. */
  readonly created?: Micros | undefined;
  readonly paused: string | undefined;
  readonly sources: readonly SourceFacts[];
  readonly sinks: readonly (Pick<SinkSnapshot, 'id' | 'lastError'> & Partial<Pick<SinkSnapshot, 'state'>>)[];
}

/**
 * The facts for the summary of a period: the period, the current state, and the parts of the period that the ledger covers. Times in µs.
 */
export interface Facts extends Present {
  readonly now: Micros;
  /** undefined: from the start of each ledger. */
  readonly from: Micros | undefined;
  /** undefined: up to now. */
  readonly to: Micros | undefined;
  readonly coverage: ReadonlyMap<string, Coverage>;
}

export const holeReasons = [
  ...(['before_ledger', 'not_requested', 'history_unread', 'retired', 'unconfigured'] as const),
  ...(['daemon_stopped', 'journal_full', 'suspended', 'source_failing', 'behind'] as const),
];
type HoleReason = (typeof holeReasons)[number];

/** A time range that is due and not proven, [from, to). */
interface Hole {
  readonly source: string;
  readonly from: Micros;
  readonly to: Micros;
  readonly reason: HoleReason;
  readonly message: string;
}

/** A sink that has not received every window of the period. */
export interface Shortfall extends SinkCoverage {
  readonly lastError: string | undefined;
}

/** A sink that does not answer for some windows, or a source without a sink. */
interface Unanswered {
  readonly source: string;
  readonly sink: Pick<SinkCoverage, 'id' | 'since'> | undefined;
}

export interface Completeness {
  /** Everything due is proven: no gap (accepted or not), no window in doubt and no hole. At least one window is proven. */
  readonly complete: boolean;
  /** A part of the period is neither due nor proven. */
  readonly soFar: boolean;
  /**
   * Every sink has received every window that it is to receive and every record without a readable time, and each window of the period is to be
   * received by a sink. A sink without a window yet has no undelivered records. Null: nothing is lacking, but no sink answers for some windows.
   */
  readonly delivered: boolean | null;
  /** Windows for which no sink answers, and why. */
  readonly unanswered: { readonly windows: number; readonly reasons: readonly Unanswered[] };
  /** The ledger covers the whole period, and no window of it will be counted again. */
  readonly final: boolean;
  readonly windows: number;
  readonly gaps: number;
  readonly accepted: number;
  readonly inDoubt: number;
  readonly uncovered: readonly Hole[];
  /** What sources show that their ledgers cannot hold. */
  readonly contradictions: readonly string[];
  /** Sources whose ledger has not started. */
  readonly unknown: readonly string[];
  /** Set if the period has no start, and the ledger of every source starts after its end: these sources. */
  readonly later: readonly { readonly id: string; readonly startsAt: Micros }[];
  /** Set when the period has no window and no part of it is due. `firstProof`: if known. */
  readonly nothingDue?: { readonly firstProof: Micros | undefined; readonly now: Micros };
  /** Set in the first minutes of a state: nothing was ever proven, and no failure is known. `firstProof`: once the service has responded. */
  readonly catchingUp?: { readonly firstProof: Micros | undefined; readonly now: Micros };
  readonly shortfalls: readonly Shortfall[];
  /** With several sources, each hole names its source. */
  readonly isOfSeveral: boolean;
  readonly isStopped: boolean;
}

/**
 * A window is closed when its end is older than the close delay (docs/guarantees.md), so its start is proven at the latest after the close
 * delay plus the width of a window. One more close delay is allowed for reading it.
 */
export function dueAfterSeconds(closeDelaySeconds: number): number {
  return 2 * closeDelaySeconds + steadyWidth(closeDelaySeconds * secondMicros) / secondMicros;
}

/** Every summary comes from this function. */
export function completeness(facts: Facts): Completeness {
  const all = facts.sources.map((source) => examine(source, facts));
  const taking = all.filter(({ takesPart }) => takesPart);
  // A source does not count if its ledger begins after the period, or if it was retired before the period.
  // If no source would count, all do.
  const parts = taking.length > 0 ? taking : all;
  const { all: windows, gap: gaps, accepted, inDoubt } = StateCounts.sum(parts.map(({ coverage }) => coverage.windows));
  const uncovered = parts.flatMap((part) => part.uncovered);
  const contradictions = parts.flatMap(({ id, contradiction }) =>
    contradiction === undefined ? [] : [`${parts.length > 1 ? `${id}: ` : ''}${contradiction}`],
  );
  const unknown = parts.filter(({ isUnknown }) => isUnknown).map(({ id }) => id);
  // With a start of the period, the time before the ledger is uncovered.
  const later = parts.flatMap(({ id, takesPart, coverage: { startsAt } }) =>
    takesPart || facts.from !== undefined || startsAt === undefined || startsAt < (facts.to ?? facts.now) ? [] : [{ id, startsAt }],
  );
  const soFar = parts.some(({ isPending }) => isPending);
  const isNothingDue = windows === 0 && parts.length > 0 && parts.every(({ isAllPending }) => isAllPending);
  const proofs = parts.flatMap(({ firstProof }) => firstProof ?? []);
  const firstProof = proofs.length === 0 ? undefined : Math.min(...proofs);
  const hasAnswered = facts.sources.every(({ lastSuccess }) => lastSuccess !== undefined);
  const shortfalls = shortfallsOf(
    parts.flatMap(({ coverage }) => coverage.sinks),
    facts,
  );
  const unanswered = unansweredOf(parts);
  return {
    complete:
      windows > 0 && gaps + accepted + inDoubt === 0 && uncovered.length === 0 && unknown.length === 0 && contradictions.length === 0,
    soFar,
    delivered: shortfalls.length > 0 ? false : unanswered.windows > 0 ? null : true,
    unanswered,
    final:
      parts.length > 0 &&
      parts.every(({ coverage: { windows: count } }) => count.all > 0 && count.final === count.all) &&
      uncovered.length === 0 &&
      contradictions.length === 0 &&
      // Without a requested end, the open end does not make the period provisional.
      (facts.to === undefined || !soFar),
    windows,
    gaps,
    accepted,
    inDoubt,
    uncovered,
    contradictions,
    unknown,
    later,
    shortfalls,
    ...(isNothingDue && contradictions.length === 0 && { nothingDue: { firstProof, now: facts.now } }),
    ...(!isNothingDue &&
      contradictions.length === 0 &&
      windows === 0 &&
      isNew(parts, facts) && { catchingUp: { firstProof: hasAnswered ? firstProof : undefined, now: facts.now } }),
    isOfSeveral: parts.length > 1,
    isStopped: facts.stopped !== undefined,
  };
}

/** The clock of the service is measured for five minutes. */
const clockSeconds = 300;

/** True while a new state cannot have a proof yet: the clock is measured, the first window ends, and nothing is known to fail. */
function isNew(parts: readonly Examined[], { created = 0, now, stopped, sources }: Facts): boolean {
  const known = sources.filter(({ id }) => parts.some((part) => part.id === id));
  return (
    parts.length > 0 &&
    stopped === undefined &&
    parts.every(({ uncovered }) => uncovered.every(({ reason }) => reason === 'behind')) &&
    known.every(
      ({ held, failing, trouble, lastSuccess, closeDelaySeconds }) =>
        !held &&
        !failing &&
        (trouble === undefined || lastSuccess === undefined) &&
        (now - created) / 1e6 < clockSeconds + steadyWidth(closeDelaySeconds * secondMicros) / secondMicros,
    )
  );
}

interface Examined {
  readonly id: string;
  readonly coverage: Coverage;
  readonly takesPart: boolean;
  readonly isUnknown: boolean;
  readonly isPending: boolean;
  /** No part of the period is due or proven. */
  readonly isAllPending?: boolean;
  /** If no part of the period is proven, and the time is known. */
  readonly firstProof?: Micros | undefined;
  readonly uncovered: readonly Hole[];
  readonly contradiction: string | undefined;
}

const nothingCovered: Coverage = {
  startsAt: undefined,
  liveFrom: undefined,
  history: [],
  read: [],
  sinks: [],
  windows: new StateCounts(),
};

function examine(source: SourceFacts, facts: Facts): Examined {
  const { id, retiredAt } = source;
  const coverage = facts.coverage.get(id) ?? nothingCovered;
  const begin = facts.from ?? coverage.startsAt;
  // A retired source must cover the time up to its retirement.
  const asked = facts.to ?? facts.now;
  const end = Math.min(asked, retiredAt ?? asked);
  const { read } = coverage;
  const isOver = retiredAt !== undefined && begin !== undefined && retiredAt <= begin;
  const takesPart = !isOver && (coverage.startsAt === undefined || coverage.startsAt < end);
  const common = { id, coverage, takesPart, contradiction: source.contradiction };
  if (begin === undefined) return { ...common, isUnknown: true, isPending: false, uncovered: [] };
  // The earlier of both clocks, as for closing windows.
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
  // A period entirely in the future has no parts.
  const isAllPending = uncovered.length === 0 && (asked <= begin ? begin >= due && !isOver : pendingFrom === begin);
  const firstProof = isAllPending || read.length === 0 ? firstProofOf(begin, source) : undefined;
  return { ...common, isUnknown: false, isPending: pendingFrom !== undefined, uncovered, isAllPending, firstProof };
}

/**
 * The earliest server time at which the window that begins at `from` can be proven: its end, by the widths that collection uses, plus the
 * close delay. Undefined while the time of the service is unknown.
 */
function firstProofOf(from: Micros, { closeDelaySeconds, nextProof = 0, undated }: SourceFacts): Micros | undefined {
  if (undated && undated.known === undefined) return undefined;
  const closeDelay = closeDelaySeconds * secondMicros;
  return Math.ceil(Math.max(endOf(from, steadyWidth(closeDelay)) + closeDelay, nextProof));
}

/** Splits [begin, end) at the edges. */
function between(begin: Micros, end: Micros, edges: readonly Micros[]): Window[] {
  if (begin >= end) return [];
  const cuts = [...new Set([begin, ...edges.filter((edge) => begin < edge && edge < end), end])].sort((a, b) => a - b);
  return cuts.slice(1).map((to, i) => ({ from: cuts[i] ?? begin, to }));
}

function add(holes: Hole[], hole: Hole): void {
  const last = holes.at(-1);
  if (last?.to === hole.from && last.reason === hole.reason) holes[holes.length - 1] = { ...last, to: hole.to };
  else holes.push(hole);
}

function reasonAt(
  at: Micros,
  { state, trouble, failing, lastSuccess, held, clock, contradiction }: SourceFacts,
  { startsAt, liveFrom, history }: Coverage,
  { stopped, paused }: Facts,
): Pick<Hole, 'reason' | 'message'> {
  if (startsAt !== undefined && at < startsAt) return { reason: 'before_ledger', message: 'before the start of the ledger' };
  if (liveFrom !== undefined && at < liveFrom) {
    const range = history.find(({ from, to }) => from <= at && at < to);
    if (!range) return { reason: 'not_requested', message: 'no backfill was requested' };
    return { reason: 'history_unread', message: range.paused ? 'the backfill is paused' : 'the backfill is not finished' };
  }
  if (state === 'retired') return { reason: 'retired', message: 'the source was retired' };
  if (state === 'unconfigured') return { reason: 'unconfigured', message: 'the source is not in the configuration' };
  if (stopped) return { reason: 'daemon_stopped', message: 'the daemon is not running' };
  if (paused !== undefined) return { reason: 'journal_full', message: `collection is paused (${paused})` };
  const why = held?.message === contradiction ? '' : `: ${held?.message ?? ''}`;
  if (held) return { reason: 'suspended', message: `collection is suspended (${held.reason})${why}` };
  const hasAnswered = failing !== undefined || lastSuccess !== undefined;
  if (!hasAnswered && trouble !== undefined) return { reason: 'behind', message: 'the source has not responded yet' };
  if (trouble !== undefined && trouble !== contradiction)
    return { reason: 'source_failing', message: `the source fails: ${shortened(trouble)}` };
  return { reason: 'behind', message: clock ? 'the clock of the service is being measured' : 'collection is behind' };
}

/** The message may quote a long response; `status` and the log have all of it. */
function shortened(message: string): string {
  return message.length <= maxTroubleLength ? message : `${cut(message, maxTroubleLength)}…`;
}

function unansweredOf(parts: readonly Examined[]): Completeness['unanswered'] {
  const some = parts.filter(({ coverage }) => (coverage.unanswered ?? 0) > 0);
  return {
    windows: some.reduce((sum, { coverage }) => sum + (coverage.unanswered ?? 0), 0),
    reasons: some.flatMap(({ id: source, coverage: { sinks } }) =>
      (sinks.length === 0 ? [undefined] : sinks).map((sink) => ({ source, sink })),
    ),
  };
}

function shortfallsOf(parts: readonly SinkCoverage[], { sinks }: Facts): Shortfall[] {
  const sums = new Map<string, SinkCoverage>();
  for (const part of parts) {
    const { windows = 0, lacking = 0, lost = 0, deadLetters = 0, undated = 0, ...known } = sums.get(part.id) ?? {};
    const sum = { windows: windows + part.windows, lacking: lacking + part.lacking, lost: lost + part.lost };
    const all = undated + (part.undated ?? 0);
    sums.set(part.id, { ...known, ...part, ...sum, deadLetters: deadLetters + part.deadLetters, ...(all === 0 ? {} : { undated: all }) });
  }
  // The configuration no longer sends to the others.
  const isRemoved = (id: string): boolean => sinks.find((sink) => sink.id === id)?.state === 'unconfigured';
  const wanted = [...sums.values()].filter(({ id }) => !isRemoved(id));
  return (wanted.length > 0 ? wanted : [...sums.values()])
    .filter(({ lacking, undated = 0, waits = false }) => lacking > 0 || undated > 0 || waits)
    .map((sum) => ({ ...sum, lastError: sinks.find(({ id }) => id === sum.id)?.lastError }));
}

export function presentOf({ created, stopped, journal, sources, sinks }: Snapshot): Present {
  return {
    created,
    stopped,
    paused: journal.paused,
    sources,
    // An error that no longer occurs explains nothing.
    sinks: sinks.map((sink) => ({ id: sink.id, state: sink.state, lastError: failsNow(sink) ? sink.lastError : undefined })),
  };
}

function failsNow({ state, attempts = 0, trouble }: SinkSnapshot): boolean {
  return state === 'retrying' || state === 'blocked' || attempts > 0 || trouble !== undefined;
}
