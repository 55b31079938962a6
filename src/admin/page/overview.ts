/**
 * The data of the status page as JSON: `GET /status` with the most urgent problem, the waits of the
 * daemon, the newest windows, rates, and the history of one source. Summary and order are the same
 * as in `status`: sources and sinks with problems come first. Pure.
 */
import type { LedgerReportState } from '../../model/ledger-report.ts';
import type { SinkSnapshot, Snapshot, SourceSnapshot } from '../../model/snapshot.ts';
import type { Micros } from '../../model/time.ts';
import { WaybillError } from '../../errors.ts';
import { worst } from '../../report/advice.ts';
import { rfc3339 } from '../../report/format-time.ts';
import { sinkNeedsAttention } from '../../report/sink-health.ts';
import { byTrouble, sinkTrouble, sourceTrouble, waitLines } from '../../report/status-text.ts';
import { dueAfterSeconds } from '../../report/completeness.ts';
import { begun, serverTime, sourceNeedsAttention, statusCompleteness } from '../../report/status-summary.ts';
import { statusJson } from '../../report/status-json.ts';
import type { History } from './history.ts';

/** A window as stored in the journal. */
interface ShownWindow {
  readonly from: Micros;
  readonly to: Micros;
  readonly state: LedgerReportState;
  readonly isInDoubt: boolean;
  readonly records: number;
  readonly total: number | null;
}

export interface Overview {
  /**
   * @param source  includes the windows and history of this source; default the source with the worst problem
   * @throws WaybillError `usage` when the source does not exist
   */
  text(source: string | undefined): string;
}

/** The parsed text of an overview: the type of the data in the page's script. */
export type OverviewJson = Omit<ReturnType<typeof commonOf>, 'sources' | 'sinks'> & {
  readonly sources: readonly ReturnType<typeof sourceJson>[];
  readonly sinks: readonly ReturnType<typeof sinkJson>[];
  /** The windows and history of one source; null without any source. */
  readonly detail: ReturnType<typeof detailOf> | null;
};

/** Limit for all sources together: the page reads the overview every few seconds, so its size must not grow with the number of sources. */
const maxWindowsShown = 2_400;
const windowsOfOne = 240;
const sinksDrawn = 8;

export function windowsWanted(sources: number): number {
  return Math.max(24, Math.min(windowsOfOne, Math.floor(maxWindowsShown / Math.max(1, sources))));
}

export function overviewOf(snapshot: Snapshot, windows: ReadonlyMap<string, readonly ShownWindow[]>, history: History): Overview {
  const sources = snapshot.sources.toSorted(byTrouble(sourceTrouble));
  const sinks = snapshot.sinks.toSorted(byTrouble(sinkTrouble));
  const common = JSON.stringify({
    ...commonOf(snapshot),
    sources: sources.map((source) => sourceJson(source, snapshot, windows.get(source.id) ?? [], history)),
    sinks: sinks.map((sink) => sinkJson(sink, history)),
  });
  const texts = new Map<string | undefined, string>();
  return {
    text: (id) => {
      const source = id === undefined ? sources[0] : sources.find((each) => each.id === id);
      if (id !== undefined && !source) throw new WaybillError('usage', `there is no source "${id}"`);
      const known = texts.get(source?.id);
      if (known !== undefined) return known;
      const used = sinks.filter(({ state }) => state !== 'retired').slice(0, sinksDrawn);
      // Sorted by name, so that each sink keeps the color of its line.
      const drawn = used.map(({ id: sink }) => sink).sort();
      const detail = source ? detailOf(source.id, windows.get(source.id) ?? [], drawn, history) : null;
      const text = `${common.slice(0, -1)},"detail":${JSON.stringify(detail)}}`;
      texts.set(source?.id, text);
      return text;
    },
  };
}

function commonOf(snapshot: Snapshot) {
  const { version, summary, complete, delivered, journal } = statusJson(snapshot);
  const found = statusCompleteness(snapshot);
  const firstProof = found?.nothingDue?.firstProof;
  return {
    generatedAt: rfc3339(snapshot.now),
    created: rfc3339(snapshot.created),
    version,
    summary,
    complete,
    delivered,
    tone: toneOf(found, snapshot),
    lacking: (found?.shortfalls ?? []).map(({ id }) => id),
    /** The approximate time of the first proof, while nothing is due yet. */
    firstProof: firstProof === undefined ? null : rfc3339(firstProof),
    advice: worst(snapshot) ?? null,
    waits: waitLines(snapshot, 'UTC'),
    // Like the text of `status`, this omits the space that is set aside.
    journal: { ...journal, bytes: journal.bytes - (snapshot.journal.setAside ?? 0), paused: snapshot.journal.paused ?? null },
  };
}

/**
 * The color of the summary: nothing to do, nothing due yet, attention needed, or a part of the
 * ledger is not proven.
 */
function toneOf(found: ReturnType<typeof statusCompleteness>, snapshot: Snapshot): 'good' | 'waiting' | 'warning' | 'bad' {
  const isAdvised = worst(snapshot) !== undefined;
  if (!found) return 'warning';
  if (found.nothingDue) return isAdvised ? 'warning' : 'waiting';
  if (!found.complete) return 'bad';
  return found.delivered && !isAdvised ? 'good' : 'warning';
}

function sourceJson(source: SourceSnapshot, snapshot: Snapshot, windows: readonly ShownWindow[], history: History) {
  const { id, state, frontier, lastSuccess, collected, late, gaps, trouble, lastError, held, recountsOverdue } = source;
  return {
    id,
    state: snapshot.stopped && state === 'active' ? 'stopped' : state,
    needsAttention: sourceNeedsAttention(source),
    message: held?.message ?? trouble ?? null,
    lastError: lastError ?? null,
    frontier: begun(source) ? rfc3339(frontier) : null,
    lagSeconds: begun(source) ? Math.max(0, (serverTime(source, snapshot) - frontier) / 1e6) : null,
    dueAfterSeconds: dueAfterSeconds(source.closeDelaySeconds),
    lastSuccess: lastSuccess === undefined ? null : rfc3339(lastSuccess),
    collected,
    late,
    gaps,
    recountsOverdue,
    recordsPerSecond: history.sourceRate(id) ?? null,
    /** One letter for each window, oldest first. */
    strip: windows.map(letterOf).join(''),
  };
}

function sinkJson(sink: SinkSnapshot, history: History) {
  const { id, type, state, lagRecords, lagSeconds, deadLetters, lastSuccess, lastError, trouble, hasDelivered, attempts, nextAttempt } =
    sink;
  return {
    id,
    type,
    state,
    needsAttention: sinkNeedsAttention(sink),
    lagRecords,
    lagSeconds,
    deadLetters,
    hasDelivered,
    perSecond: history.sinkRate(id) ?? null,
    message: trouble ?? null,
    // After a recovery, `isFailing` is false and `lastError` stays.
    lastError: lastError ?? null,
    isFailing: state === 'retrying' || state === 'blocked' || (attempts ?? 0) > 0,
    lastSuccess: lastSuccess === undefined ? null : rfc3339(lastSuccess),
    attempts: attempts ?? null,
    nextAttempt: nextAttempt === undefined ? null : rfc3339(nextAttempt),
  };
}

/** `p` proven, `f` final, `g` gap, `a` accepted, `d` in doubt. */
function letterOf({ state, isInDoubt }: ShownWindow): string {
  return isInDoubt ? 'd' : state.slice(0, 1);
}

/** Times are seconds since 1970: half the size of RFC 3339. */
function detailOf(source: string, windows: readonly ShownWindow[], sinks: readonly string[], history: History) {
  const seconds = (at: Micros): number => Math.round(at / 1e5) / 10;
  const tenths = (value: number | null | undefined): number | null => (typeof value === 'number' ? Math.round(value * 10) / 10 : null);
  return {
    source,
    windows: windows.map((window) => [seconds(window.from), seconds(window.to), letterOf(window), window.records, window.total] as const),
    intervalSeconds: history.interval / 1e6,
    samples: history.samples.map(({ at }) => seconds(at)),
    lag: history.samples.map((sample) => tenths(sample.sources.get(source)?.lagSeconds)),
    sinks: sinks.map((id) => ({ id, lag: history.samples.map((sample) => tenths(sample.sinks.get(id)?.lagSeconds)) })),
  };
}
