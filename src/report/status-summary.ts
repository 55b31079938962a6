/** The summary that begins `status`, and the rules on sources that it shares with the tables. Pure. */
import type { Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { completeness, firstProofOf, presentOf } from './completeness.ts';
import type { Completeness } from './completeness.ts';
import { ago, clockTime, counted } from './format-time.ts';
import { sinkNeedsAttention } from './sink-health.ts';
import { summaryOf, whenDue } from './summary.ts';

/**
 * The first line of `status`: the summary of the whole ledger up to now, and what needs attention.
 *
 * @param tz  IANA name of the time zone
 */
export function statusSummary(snapshot: Snapshot, tz = 'UTC'): string {
  const { sources, sinks, journal, now, created, stopped } = snapshot;
  const deadLetters = sinks.reduce((sum, sink) => sum + sink.deadLetters, 0);
  const isNew = now - created < hour;
  const clauses = [
    summaryClause(snapshot, tz),
    ...(journal.paused === undefined ? [] : [`collection is paused (${journal.paused})`]),
    needs(sources.filter(sourceNeedsAttention).length, 'source'),
    needs(sinks.filter(sinkNeedsAttention).length, 'sink'),
    ...(deadLetters === 0 ? [] : [counted(deadLetters, 'dead letter')]),
    // This clause is the only sign that a state was lost (docs/operations.md, "State lost").
    ...(isNew ? [`state created ${ago(created, now)}`] : []),
  ];
  const line = clauses.filter((clause) => clause !== '').join(', ');
  return stopped ? `DAEMON NOT RUNNING since about ${clockTime(stopped.since, now, tz)} (${ago(stopped.since, now)}); ${line}` : line;
}

/**
 * The summary of a report on every source, from its start until now; undefined without a source.
 */
export function statusCompleteness(snapshot: Snapshot): Completeness | undefined {
  const { sources } = snapshot;
  if (sources.length === 0) return undefined;
  const coverage = new Map(sources.flatMap(({ id, coverage: found }) => (found ? [[id, found] as const] : [])));
  return completeness({ ...presentOf(snapshot), now: snapshot.now, from: undefined, to: undefined, coverage });
}

export function sourceNeedsAttention(source: SourceSnapshot): boolean {
  return source.state === 'suspended' || source.state === 'unconfigured' || (source.state !== 'retired' && source.trouble !== undefined);
}

/** The time at the service; the local time while that is unknown. */
export function serverTime(source: SourceSnapshot, snapshot: Snapshot): Micros {
  return source.serverNow ?? snapshot.now;
}

/** False before the ledger has a start: with `start: now` that is before the first response. */
export function begun(source: SourceSnapshot): boolean {
  return source.frontier !== 0;
}

/**
 * The frontier, once it has passed the start of the live range: before that, no window is complete.
 */
export function completeUntil({ frontier, coverage }: SourceSnapshot): Micros | undefined {
  return coverage?.liveFrom !== undefined && frontier > coverage.liveFrom ? frontier : undefined;
}

const hour = 3_600 * 1e6;

function summaryClause(snapshot: Snapshot, tz: string): string {
  const found = statusCompleteness(snapshot);
  if (!found) return 'NO SOURCE is configured';
  const polled = snapshot.sources.filter(({ state }) => state !== 'unconfigured' && state !== 'retired');
  if (polled.length === 0) return `NO SOURCE is polled; ${summaryOf(found, tz)}`;
  const fresh = polled.filter(({ coverage }) => coverage === undefined || coverage.windows.all === 0);
  const known = polled.filter((source) => !fresh.includes(source) && completeUntil(source) !== undefined);
  const summary = `${failure(found, snapshot)}${summaryOf(found, tz)}`;
  // This summary names the time of the first proof.
  if (found.nothingDue) return summary;
  const [slowest] = known.toSorted((a, b) => a.frontier - b.frontier);
  const proofs = fresh.map((source) => firstProof(source, snapshot, tz));
  return [
    summary,
    ...(slowest ? [`proven up to ${when(slowest, snapshot, tz)}`] : []),
    ...(proofs[0] === undefined ? [] : [known.length === 0 ? proofs[0] : `${proofs[0]} of ${nameOrCount(fresh, 'source')}`]),
  ].join(', ');
}

/**
 * A failure that precedes the summary, because a summary of proven windows cannot show it: no newer
 * window is closed, or none of the proven windows has a record that waits for a failing sink.
 */
function failure({ complete, nothingDue, delivered }: Completeness, { sources, sinks, stopped }: Snapshot): string {
  const suspended = sources.filter(({ state }) => state === 'suspended');
  if (suspended.length > 0) return `COLLECTION SUSPENDED at ${nameOrCount(suspended, 'source')}; `;
  if (stopped || delivered === false || !(complete || nothingDue)) return '';
  const failing = sinks.filter((sink) => sink.state !== 'unconfigured' && sinkNeedsAttention(sink));
  return failing.length === 0 ? '' : `DELIVERY FAILS at ${nameOrCount(failing, 'sink')}; `;
}

/**
 * The bound of the alert WaybillFrontierLate. A healthy frontier lags about twice the close delay.
 */
export function isLate(source: SourceSnapshot, time: Micros, snapshot: Snapshot): boolean {
  return serverTime(source, snapshot) - time > (2 * source.closeDelaySeconds + 900) * 1e6;
}

function when(source: SourceSnapshot, snapshot: Snapshot, tz: string): string {
  const now = serverTime(source, snapshot);
  return `${clockTime(source.frontier, now, tz)} (${ago(source.frontier, now)})`;
}

function firstProof(source: SourceSnapshot, snapshot: Snapshot, tz: string): string {
  if (!begun(source)) return source.lastSuccess === undefined ? 'waiting for the first response' : 'its start is not known yet';
  if (source.undated && source.undated.known === undefined) return 'first proof due with its first record, because responses carry no Date';
  const now = serverTime(source, snapshot);
  return `first proof due ${whenDue(firstProofOf(source.frontier, source) ?? 0, now, tz)}`;
}

function nameOrCount(items: readonly { readonly id: string }[], what: string): string {
  return items.length === 1 && items[0] ? items[0].id : counted(items.length, what);
}

function needs(count: number, what: string): string {
  return count === 0 ? '' : `${counted(count, what)} ${count === 1 ? 'needs' : 'need'} attention`;
}
