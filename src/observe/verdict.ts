/**
 * The verdict: is the trail whole, up to when, and who needs a person, in one sentence. It stands first on the page, in `status` and in the
 * report; all of them call this one pure function. Below it the same snapshot as JSON for programs.
 */
import type { BackfillProgress, Micros, SinkSnapshot, Snapshot, SourceSnapshot } from '../model.ts';
import { samples, seenWithin } from './delays.ts';
import { ago, clockTime, counted, rfc3339 } from './time-words.ts';

export interface StatusJson {
  readonly verdict: string;
  readonly version: string;
  readonly journal: { readonly bytes: number; readonly quota: number; readonly head: number };
  readonly sources: readonly {
    readonly id: string;
    readonly mode: string;
    readonly frontier: string | null;
    readonly reached: string | null;
    readonly tip: string | null;
    /** Server time minus frontier. */
    readonly lagSeconds: number | null;
    readonly gaps: number;
    readonly lastError: string | null;
    /** Only where history is being added. */
    readonly backfills?: readonly {
      readonly from: string;
      readonly until: string;
      readonly reached: string;
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
    readonly acked: number;
    readonly lagRecords: number;
    readonly lagSeconds: number;
    readonly deadLetters: number;
    readonly lastError: string | null;
    /** Whether it has accepted a message, in this run or an earlier one of the same state. */
    readonly everDelivered: boolean;
    /** In a row; null where no daemon runs. Then the times below are null too, as they are while no attempt fails. */
    readonly failedAttempts: number | null;
    readonly failingSince: string | null;
    readonly nextAttempt: string | null;
  }[];
  /** About when the daemon ended; null while one runs. */
  readonly stoppedSince: string | null;
}

/** @param tz  the zone of the times in it, an IANA name */
export function verdict(snapshot: Snapshot, tz = 'UTC'): string {
  const { sources, sinks, journal } = snapshot;
  const letters = sinks.reduce((sum, sink) => sum + sink.deadLetters, 0);
  const clauses = [
    headline(snapshot, tz),
    ...(journal.paused === undefined ? [] : [`collecting is paused (${journal.paused})`]),
    needs(sources.filter(sourceNeedsYou).length, 'source'),
    needs(sinks.filter(sinkNeedsYou).length, 'sink'),
    ...(letters === 0 ? [] : [counted(letters, 'dead letter')]),
    // A state that somebody lost begins anew without any other sign (docs/operations.md, "State lost").
    ...(snapshot.now - snapshot.created < hour ? [`ledger begins ${ago(snapshot.created, snapshot.now)}`] : []),
  ];
  return clauses.filter((clause) => clause !== '').join(', ');
}

/** What `status --json` prints and `GET /status` answers (contract: docs/operations.md, "JSON of status"). */
export function statusJson(snapshot: Snapshot): StatusJson {
  return {
    verdict: verdict(snapshot),
    version: snapshot.version,
    journal: { bytes: snapshot.journal.bytes, quota: snapshot.journal.quota, head: snapshot.journal.head },
    sources: snapshot.sources.map((source) => ({
      id: source.id,
      mode: source.mode,
      frontier: instant(source.frontier),
      reached: instant(source.reached),
      tip: instant(source.tip),
      lagSeconds: begun(source) ? Math.max(0, (serverTime(source, snapshot) - source.frontier) / 1e6) : null,
      gaps: source.gaps,
      lastError: source.lastError ?? null,
      ...(source.backfills?.length ? { backfills: source.backfills.map(backfillJson) } : {}),
      delays: delaysOf(source),
    })),
    sinks: snapshot.sinks.map(({ id, type, state, acked, lagRecords, lagSeconds, deadLetters, lastError, everDelivered, ...attempts }) => ({
      ...{ id, type, state, acked, lagRecords, lagSeconds, deadLetters },
      lastError: lastError ?? null,
      everDelivered,
      failedAttempts: attempts.tries ?? null,
      failingSince: attempts.failingSince === undefined ? null : rfc3339(attempts.failingSince),
      nextAttempt: attempts.nextAttempt === undefined ? null : rfc3339(attempts.nextAttempt),
    })),
    stoppedSince: snapshot.stopped ? rfc3339(snapshot.stopped.since) : null,
  };
}

function backfillJson({ from, until, reached, state, records, order, perSecond, secondsLeft }: BackfillProgress) {
  return {
    from: rfc3339(from),
    until: rfc3339(until),
    reached: rfc3339(reached),
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
  return source.mode === 'hold' || source.mode === 'orphaned' || (source.mode !== 'retired' && source.trouble !== undefined);
}

export function sinkNeedsYou(sink: SinkSnapshot): boolean {
  return sink.state === 'blocked' || sink.state === 'orphaned' || (sink.state !== 'retired' && sink.trouble !== undefined);
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

function headline(snapshot: Snapshot, tz: string): string {
  const polled = snapshot.sources.filter(({ mode }) => mode !== 'orphaned' && mode !== 'retired');
  const [first] = polled;
  if (!first) return snapshot.sources.length === 0 ? 'NO SOURCE is configured' : 'NO SOURCE is polled any more';
  const proofless = polled.filter(({ windows, gaps }) => windows.closed === 0 && windows.accepted === 0 && gaps === 0);
  const known = polled.filter((source) => !proofless.includes(source));
  const held = polled.filter(({ mode }) => mode === 'hold');
  const gaps = polled.reduce((sum, source) => sum + source.gaps, 0);
  const accepted = polled.reduce((sum, source) => sum + source.windows.accepted, 0);
  const proofs = proofless.map((source) => firstProof(source, snapshot, tz));
  const begins = proofs[0] === undefined || known.length === 0 ? '' : `, ${proofs[0]} of ${nameOrCount(proofless)}`;

  const [oldest] = (known.length > 0 ? known : polled).toSorted((a, b) => a.frontier - b.frontier);
  const worst = oldest ?? first;
  const butFor = accepted === 0 ? '' : ` but for ${counted(accepted, 'accepted gap')}`;
  const upTo = begun(worst) ? `${butFor} up to ${when(worst, snapshot, tz)}` : butFor;
  if (held.length > 0) {
    const at = begun(worst) ? `, whole${upTo}` : '';
    return `TRAIL ON HOLD at ${nameOrCount(held)}${at}${gaps === 0 ? '' : `, ${counted(gaps, 'gap')}`}`;
  }
  if (known.length === 0) return `TRAIL BEGINS, ${proofs[0] ?? ''}`;
  if (gaps > 0) return `TRAIL HAS ${counted(gaps, 'GAP', 'GAPS')}, whole${upTo}${begins}`;
  const behind = known.some((source) => isLate(source, source.frontier, snapshot));
  return behind ? `TRAIL BEHIND, whole${upTo}${begins}` : `TRAIL WHOLE${upTo}${begins}`;
}

/** The bound of the alert WaybillFrontierLate: a frontier lags about twice `settle` when all is well. */
export function isLate(source: SourceSnapshot, time: Micros, snapshot: Snapshot): boolean {
  return serverTime(source, snapshot) - time > (2 * source.settleSeconds + 900) * 1e6;
}

function when(source: SourceSnapshot, snapshot: Snapshot, tz: string): string {
  const now = serverTime(source, snapshot);
  return `${clockTime(source.frontier, now, tz)} (${ago(source.frontier, now)})`;
}

/** The first window is as wide as `settle`, held between 10 s and 1 h, and is closed when its end has that age (docs/guarantees.md). */
function firstProof(source: SourceSnapshot, snapshot: Snapshot, tz: string): string {
  if (!begun(source)) return source.lastSuccess === undefined ? 'first answer awaited' : 'where it begins is not known yet';
  if (source.undated && source.undated.known === undefined) return 'first proof due with its first record, as its answers carry no Date';
  const width = Math.min(3_600, Math.max(10, source.settleSeconds));
  const due = source.frontier + (width + source.settleSeconds) * 1e6;
  const now = serverTime(source, snapshot);
  return due <= now ? 'first proof due now' : `first proof due about ${clockTime(due, now, tz)}`;
}

function nameOrCount(sources: readonly SourceSnapshot[]): string {
  return sources.length === 1 && sources[0] ? sources[0].id : counted(sources.length, 'source');
}

function needs(count: number, what: string): string {
  return count === 0 ? '' : `${counted(count, what)} ${count === 1 ? 'needs' : 'need'} you`;
}

function instant(at: Micros): string | null {
  return at === 0 ? null : rfc3339(at);
}
