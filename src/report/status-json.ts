/**
 * The one JSON of the status: `waybill status --json`, `GET /status` and, with the windows and rates of the page, `GET /overview` (contract:
 * docs/operations.md, "JSON of status"). Times are RFC 3339 in UTC; null: not known yet, or none. Pure.
 */
import type { ReplayProgress } from '../model/journal.ts';
import { completeUntil, type BackfillProgress } from '../model/ledger.ts';
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { samples, seenWithin } from '../telemetry/delays.ts';
import { problems } from './advice.ts';
import { dueAfterSeconds } from './completeness.ts';
import { rfc3339 } from './format-time.ts';
import { journalForecast } from './journal-forecast.ts';
import { begun, serverTime, sinkState, sourceState } from './states.ts';
import { statusCompleteness, statusSummary } from './status-summary.ts';
import { waitLines } from './status-text.ts';

/** A failure of everything must not make the page slow. */
const maxProblems = 50;

export function statusJson(snapshot: Snapshot) {
  const found = statusCompleteness(snapshot);
  const all = problems(snapshot);
  const [certificate] = (snapshot.certificates ?? []).toSorted((a, b) => a.at - b.at);
  const { bytes, maxSize, head, setAside = 0, paused } = snapshot.journal;
  return {
    generatedAt: rfc3339(snapshot.now),
    created: rfc3339(snapshot.created),
    version: snapshot.version,
    summary: statusSummary(snapshot),
    tone: toneOf(found, all.length > 0),
    /** For the whole ledger of every source until now, as in the report; false without a source. */
    complete: found?.complete ?? false,
    delivered: found ? found.delivered : false,
    /** Sinks that lack a proven window. */
    lacking: (found?.shortfalls ?? []).map(({ id }) => id),
    /** While nothing is due yet. */
    firstProof: optional((found?.nothingDue ?? found?.catchingUp)?.firstProof),
    /** The certificate in use that ends first. */
    nextCertificateEnd: certificate ? { target: certificate.target, at: rfc3339(certificate.at) } : null,
    host: snapshot.host ?? null,
    problems: all.slice(0, maxProblems),
    problemCount: all.length,
    rejected: snapshot.rejected ? { since: rfc3339(snapshot.rejected.since), problems: snapshot.rejected.problems } : null,
    waits: waitLines(snapshot, 'UTC'),
    /** `bytes` includes `reserved`. `forecast`: set while a failing sink makes the journal grow. */
    journal: { bytes, reserved: setAside, maxSize, head, paused: paused ?? null, forecast: journalForecast(snapshot) ?? null },
    sources: snapshot.sources.map((source) => sourceJson(source, snapshot)),
    sinks: snapshot.sinks.map((sink) => sinkJson(sink, snapshot)),
    /** The approximate end of the daemon; null while one runs. */
    stoppedSince: optional(snapshot.stopped?.since),
    ...(snapshot.fleet && { fleet: fleetJson(snapshot.fleet) }),
  };
}

function fleetJson({ members, shards, rollbacks }: NonNullable<Snapshot['fleet']>) {
  return { members, shards, rollbacks: rollbacks.map((each) => ({ ...each, at: rfc3339(each.at) })) };
}

function sourceJson(source: SourceSnapshot, snapshot: Snapshot) {
  const { id, frontier, trouble, held, failing, lastError, collected, late, windows, recountsOverdue } = source;
  return {
    id,
    state: sourceState(source, snapshot),
    message: held?.message ?? trouble ?? null,
    lastError: lastError ?? null,
    completeUntil: optional(completeUntil(source)),
    readUntil: instant(source.closedUntil),
    polledUntil: instant(source.polledUntil),
    /** Age of the oldest time that is not proven, by the time of the service. */
    lagSeconds: begun(source) ? Math.max(0, (serverTime(source, snapshot) - frontier) / 1e6) : null,
    dueAfterSeconds: dueAfterSeconds(source.closeDelaySeconds),
    lastSuccess: optional(source.lastSuccess),
    failingSince: optional(failing?.since),
    nextAttempt: optional(failing?.nextAttempt),
    records: collected,
    late,
    gaps: windows.gap,
    inDoubt: windows.inDoubt,
    recountsOverdue,
    ...(source.backfills?.length ? { backfills: source.backfills.map(backfillJson) } : {}),
    delays: delaysOf(source),
  };
}

function sinkJson(sink: SinkSnapshot, snapshot: Snapshot) {
  const {
    id,
    type,
    acknowledged,
    lagEntries,
    lagRecords,
    lagSeconds,
    deadLetters,
    hasDelivered,
    timeStamp,
    cosignatures,
    replays = [],
  } = sink;
  const [replay] = replays;
  return {
    id,
    type,
    state: sinkState(sink, snapshot),
    message: sink.trouble ?? null,
    acknowledged,
    lagEntries,
    lagRecords,
    lagSeconds,
    deadLetters,
    /** Records that the filter held back, while none has passed it. */
    unselected: sink.unselected ?? null,
    /** Stays after a recovery: then `failedAttempts` is 0. */
    lastError: sink.lastError ?? null,
    recoveredAt: optional(sink.recoveredAt),
    lastSuccess: optional(sink.lastSuccess),
    /** True once the sink has accepted a message, in any run with this state. */
    hasDelivered,
    /** Consecutive; null without a running daemon. */
    failedAttempts: sink.attempts ?? null,
    failingSince: optional(sink.failingSince),
    nextAttempt: optional(sink.nextAttempt),
    ...(timeStamp && { timeStamp: { newest: optional(timeStamp.newest), lastError: timeStamp.lastError ?? null } }),
    ...(cosignatures && {
      cosignatures: cosignatures.map(({ witness, newest, lastError }) => ({
        witness,
        newest: optional(newest),
        lastError: lastError ?? null,
      })),
    }),
    ...(replay && { replay: replayJson(replay) }),
  };
}

function replayJson({ archive, state, sent, rejected, leftOut, error }: ReplayProgress) {
  return { archive: archive ?? null, state, sent, rejected, leftOut: leftOut ?? 0, error: error ?? null };
}

function backfillJson({ from, to, closedUntil, state, records, order, perSecond, secondsLeft }: BackfillProgress) {
  return {
    from: rfc3339(from),
    to: rfc3339(to),
    readUntil: rfc3339(closedUntil),
    state,
    records,
    expected: order.expected ?? null,
    perSecond: perSecond ?? null,
    secondsLeft: secondsLeft ?? null,
  };
}

/** First seen minus logTimestamp, over the last one to two weeks. Percentiles in seconds; null without records, or beyond 30 d. */
function delaysOf({ delays }: SourceSnapshot) {
  const within = (share: number): number | null => {
    const seconds = delays && seenWithin(delays, share);
    return seconds !== undefined && Number.isFinite(seconds) ? seconds : null;
  };
  return { records: delays ? samples(delays) : 0, p50: within(0.5), p90: within(0.9), p99: within(0.99), p999: within(0.999) };
}

function instant(at: Micros): string | null {
  return at === 0 ? null : rfc3339(at);
}

function optional(at: Micros | undefined): string | null {
  return at === undefined ? null : rfc3339(at);
}

/** The color of the summary: nothing to do, nothing due yet, attention needed, or a part of the ledger is not proven. */
function toneOf(found: ReturnType<typeof statusCompleteness>, isAdvised: boolean): 'good' | 'waiting' | 'warning' | 'bad' {
  if (!found) return 'warning';
  if (found.nothingDue || found.catchingUp) return isAdvised ? 'warning' : 'waiting';
  if (!found.complete) return 'bad';
  return found.delivered !== false && !isAdvised ? 'good' : 'warning';
}
