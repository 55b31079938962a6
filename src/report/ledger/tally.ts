/** What the text and the page say of some windows of a source, in one pass. Pure. */
import { WindowCounts } from '../../journal/window-counts.ts';
import type { LedgerReportWindow } from '../../model/ledger-report.ts';

export class LedgerTally extends WindowCounts {
  /** The start of the first window and the end of the last; undefined without a window. */
  from: string | undefined;
  to: string | undefined;
  readonly reasons = new Set<string>();
  lateLongestSeconds: number | null = null;
  passes = 0;
  /** Null if it is unknown for one of the windows. */
  recountsDue: number | null = 0;
  /** The earliest pending recount, and the latest next recount of a proven window. */
  nextRecount: string | undefined;
  lastRecount: string | undefined;
  /** Windows that need attention, see `isNotable`. */
  notable = 0;
  readonly acceptedStarts: string[] = [];

  override add(window: LedgerReportWindow): void {
    super.add(window);
    const { state, reason, nextRecount, lateLongestSeconds } = window;
    this.from = earlier(this.from, window.from);
    this.to = later(this.to, window.to);
    if (reason !== null) this.reasons.add(reason);
    if (lateLongestSeconds !== null) this.lateLongestSeconds = Math.max(this.lateLongestSeconds ?? 0, lateLongestSeconds);
    this.passes += window.passes;
    this.recountsDue = this.recountsDue === null || window.recountsDue === null ? null : this.recountsDue + window.recountsDue;
    if (nextRecount !== null) this.nextRecount = earlier(this.nextRecount, nextRecount);
    if (nextRecount !== null && state === 'proven' && reason !== 'reread') this.lastRecount = later(this.lastRecount, nextRecount);
    if (isNotable(window)) this.notable += 1;
    if (state === 'accepted') this.acceptedStarts.push(window.from);
  }
}

export function tallyOf(windows: Iterable<LedgerReportWindow>): LedgerTally {
  const tally = new LedgerTally();
  for (const window of windows) tally.add(window);
  return tally;
}

/** True for a gap, accepted or not, a window that changed after it was closed, or one with late records. */
export function isNotable({ state, reason, late }: LedgerReportWindow): boolean {
  return state === 'gap' || state === 'accepted' || reason !== null || late > 0;
}

/** Compares instants: RFC 3339 texts with and without a fraction do not sort as text. */
function earlier(known: string | undefined, at: string): string {
  return known === undefined || Date.parse(at) < Date.parse(known) ? at : known;
}

function later(known: string | undefined, at: string): string {
  return known === undefined || Date.parse(at) > Date.parse(known) ? at : known;
}
