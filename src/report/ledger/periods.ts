/**
 * The completeness report by day or month. A window counts for the period in which it begins. The numbers are sums of the records in the
 * windows. Totals must never be summed, because a total also counts the padding of its query. Pure.
 */
import type { WindowStates } from '../../model/ledger.ts';
import type { LedgerReportSinkWindow, LedgerReportState, LedgerReportWindow } from '../../model/ledger-report.ts';
import { zoned } from '../format-time.ts';
import { LedgerTally } from './tally.ts';

export interface LedgerPeriod {
  /** `2026-11-20`, or `2026-11`, in the requested zone. */
  readonly name: string;
  /** The start of the first window and the end of the last. */
  readonly from: string;
  readonly to: string;
  readonly windows: number;
  /** Windows that end in a later day or month of the zone. They count here alone. */
  readonly crossing: number;
  /** The worst state of its windows, in the order gap, accepted, in doubt, proven, final. */
  readonly state: LedgerReportState | 'in doubt';
  readonly counts: WindowStates;
  /** Without duplicates. */
  readonly reasons: readonly string[];
  readonly records: number;
  readonly late: number;
  readonly lateLongestSeconds: number | null;
  readonly passes: number;
  readonly recounts: number;
  /** Null if it is unknown for one of the windows. */
  readonly recountsDue: number | null;
  /** The earliest pending recount. */
  readonly nextRecount: string | null;
  readonly sinks: Readonly<Record<string, LedgerReportSinkWindow>>;
}

/** The periods of a source in order; those without a window have no row. */
export function byPeriod(windows: Iterable<LedgerReportWindow>, by: 'day' | 'month', tz = 'UTC'): readonly LedgerPeriod[] {
  const length = by === 'day' ? 10 : 7;
  const tallies = new Map<string, { readonly tally: LedgerTally; crossing: number }>();
  for (const window of windows) {
    const nameAt = (ms: number): string => zoned(ms * 1_000, tz).date.slice(0, length);
    const name = nameAt(Date.parse(window.from));
    const period = tallies.get(name) ?? { tally: new LedgerTally(), crossing: 0 };
    tallies.set(name, period);
    period.tally.add(window);
    // In UTC only a window of several empty days crosses midnight.
    if (tz !== 'UTC' && nameAt(Date.parse(window.to) - 1) !== name) period.crossing += 1;
  }
  return [...tallies].map(([name, { tally, crossing }]) => periodOf(name, tally, crossing)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function periodOf(name: string, tally: LedgerTally, crossing: number): LedgerPeriod {
  const { all, proven, final, gap, accepted, inDoubt, reasons, records, late, lateLongestSeconds, passes, recounts, recountsDue } = tally;
  return {
    name,
    from: tally.from ?? '',
    to: tally.to ?? '',
    windows: all,
    crossing,
    state: gap > 0 ? 'gap' : accepted > 0 ? 'accepted' : inDoubt > 0 ? 'in doubt' : final < all ? 'proven' : 'final',
    counts: { all, proven, final, gap, accepted, inDoubt },
    reasons: [...reasons],
    records,
    late,
    lateLongestSeconds,
    passes,
    recounts,
    recountsDue,
    nextRecount: tally.nextRecount ?? null,
    sinks: Object.fromEntries(
      [...tally.sinks].map(([id, { windows, complete, lost, deadLetters }]) => [
        id,
        // A sink that is missing in some windows has not received the whole period.
        { complete: complete === windows && windows === all, ...(lost > 0 ? { lost: true } : {}), deadLetters },
      ]),
    ),
  };
}
