/**
 * `waybill status --json` and `GET /status` (contract: docs/operations.md, "JSON of status"). Pure.
 */
import type { ReplayProgress } from '../model/journal.ts';
import type { BackfillProgress } from '../model/ledger.ts';
import type { Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { samples, seenWithin } from '../telemetry/delays.ts';
import { rfc3339 } from './format-time.ts';
import { journalForecast } from './journal-forecast.ts';
import type { JournalForecast } from './journal-forecast.ts';
import { begun, serverTime, statusCompleteness, statusSummary } from './status-summary.ts';

interface StatusJson {
  readonly summary: string;
  /** For the whole ledger of every source until now, as in the report; false without a source. */
  readonly complete: boolean;
  readonly delivered: boolean;
  readonly version: string;
  readonly journal: {
    readonly bytes: number;
    readonly maxSize: number;
    readonly head: number;
    /** Set while a failing sink makes the journal grow. */
    readonly forecast: JournalForecast | null;
  };
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
    /** Omitted without an unfinished backfill. */
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
    /**
     * First seen minus logTimestamp, over the last one to two weeks. Percentiles in seconds; null
     * without records, or beyond 30 d.
     */
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
    /** True once the sink has accepted a message, in any run with this state. */
    readonly hasDelivered: boolean;
    /**
     * Consecutive; null without a running daemon. The times below are null then too, and while no
     * attempt fails.
     */
    readonly failedAttempts: number | null;
    readonly failingSince: string | null;
    readonly nextAttempt: string | null;
    /** Of an archive with time stamps; omitted otherwise. */
    readonly timeStamp?: { readonly newest: string | null; readonly lastError: string | null };
    /**
     * The replay in progress, the last one, or an unfinished one that the next start resumes; omitted without one. `skipped`: lines that were
     * left out, because the archive does not have their segments. `error`: the archive cannot be read.
     */
    readonly replay?: {
      readonly archive: string | null;
      readonly state: ReplayProgress['state'];
      readonly sent: number;
      readonly rejected: number;
      readonly skipped: number;
      readonly error: string | null;
    };
  }[];
  /** The approximate end of the daemon; null while one runs. */
  readonly stoppedSince: string | null;
}

export function statusJson(snapshot: Snapshot): StatusJson {
  const found = statusCompleteness(snapshot);
  const { bytes, maxSize, head } = snapshot.journal;
  return {
    summary: statusSummary(snapshot),
    complete: found?.complete ?? false,
    delivered: found?.delivered ?? false,
    version: snapshot.version,
    journal: { bytes, maxSize, head, forecast: journalForecast(snapshot) ?? null },
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
        id,
        type,
        state,
        acknowledged,
        lagRecords,
        lagSeconds,
        deadLetters,
        lastError: lastError ?? null,
        hasDelivered,
        failedAttempts: attempts.attempts ?? null,
        failingSince: attempts.failingSince === undefined ? null : rfc3339(attempts.failingSince),
        nextAttempt: attempts.nextAttempt === undefined ? null : rfc3339(attempts.nextAttempt),
        ...(attempts.timeStamp && {
          timeStamp: { newest: instant(attempts.timeStamp.newest ?? 0), lastError: attempts.timeStamp.lastError ?? null },
        }),
        ...(attempts.replay && { replay: replayJson(attempts.replay) }),
      }),
    ),
    stoppedSince: snapshot.stopped ? rfc3339(snapshot.stopped.since) : null,
  };
}

function replayJson({ archive, state, sent, rejected, skipped, error }: ReplayProgress) {
  return { archive: archive ?? null, state, sent, rejected, skipped: skipped ?? 0, error: error ?? null };
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

function instant(at: Micros): string | null {
  return at === 0 ? null : rfc3339(at);
}
