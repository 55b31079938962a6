/** Counts the windows of a source for the text and the page, in one pass. Pure. */
import type { LedgerReportState, LedgerReportWindow } from '../../model/ledger-report.ts';

export interface LedgerTally {
  readonly windows: number;
  readonly counts: Readonly<Record<LedgerReportState, number>>;
  readonly records: number;
  readonly late: number;
  readonly recounts: number;
  /** Proven windows that are in doubt, or with fewer records at the service than were proven. */
  readonly reread: number;
  readonly shrunk: number;
  /** Windows with pending recounts: proven, neither in doubt nor final. */
  readonly open: number;
  /** The latest of their next recounts, ms since 1970, or 0. */
  readonly lastDue: number;
  /** Windows that need attention, see `isNotable`. */
  readonly notable: number;
  /** Starts of the accepted windows. */
  readonly accepted: readonly string[];
  readonly first: string | undefined;
  readonly last: string | undefined;
  /** In the order of their first window. */
  readonly sinks: ReadonlyMap<string, SinkTally>;
}

interface SinkTally {
  readonly windows: number;
  readonly complete: number;
  readonly lost: number;
  readonly deadLetters: number;
}

export function tallyOf(windows: Iterable<LedgerReportWindow>): LedgerTally {
  const counts = { gap: 0, accepted: 0, proven: 0, final: 0 };
  const tally = { windows: 0, records: 0, late: 0, recounts: 0, reread: 0, shrunk: 0, open: 0, lastDue: 0, notable: 0 };
  const accepted: string[] = [];
  const sinks = new Map<string, SinkTally>();
  let first: string | undefined;
  let last: string | undefined;
  for (const window of windows) {
    const { state, reason } = window;
    first ??= window.from;
    last = window.to;
    counts[state] += 1;
    tally.windows += 1;
    tally.records += window.records;
    tally.late += window.late;
    tally.recounts += window.recounts;
    if (isNotable(window)) tally.notable += 1;
    if (state === 'accepted') accepted.push(window.from);
    if (state === 'proven' || state === 'final') {
      if (reason === 'reread') tally.reread += 1;
      else if (reason !== null) tally.shrunk += 1;
    }
    if (state === 'proven' && reason !== 'reread') {
      tally.open += 1;
      if (window.nextRecount !== null) tally.lastDue = Math.max(tally.lastDue, Date.parse(window.nextRecount));
    }
    for (const [id, { complete, lost, deadLetters }] of Object.entries(window.sinks)) {
      const sum = sinks.get(id) ?? { windows: 0, complete: 0, lost: 0, deadLetters: 0 };
      sinks.set(id, {
        windows: sum.windows + 1,
        complete: sum.complete + (complete ? 1 : 0),
        lost: sum.lost + (lost ? 1 : 0),
        deadLetters: sum.deadLetters + deadLetters,
      });
    }
  }
  return { ...tally, counts, accepted, first, last, sinks };
}

/**
 * True for a gap, accepted or not, a window that changed after it was closed, or one with late
 * records.
 */
export function isNotable({ state, reason, late }: LedgerReportWindow): boolean {
  return state === 'gap' || state === 'accepted' || reason !== null || late > 0;
}
