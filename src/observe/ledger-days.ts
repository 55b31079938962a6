/**
 * The completeness report by day: windows added up, pure. A window counts for the day in which it begins; numbers are sums over what the
 * windows own, because a total counts the padding of its query too and must never be summed.
 */
import type { LedgerReport, LedgerReportState, LedgerReportWindow } from '../model.ts';
import { zoned } from './time-words.ts';

export interface LedgerDay {
  /** `2026-11-20`, in the zone asked for. */
  readonly date: string;
  /** Where the first window of the day begins and the last one ends. */
  readonly from: string;
  readonly until: string;
  readonly windows: number;
  /** The worst of its windows: gap, accepted, proven, final. */
  readonly state: LedgerReportState;
  readonly counts: Readonly<Record<LedgerReportState, number>>;
  /** Each once. */
  readonly reasons: readonly string[];
  readonly own: number;
  readonly late: number;
  readonly passes: number;
  readonly recounts: number;
  /** The earliest recount still to come. */
  readonly nextRecount: string | null;
  readonly sinks: Readonly<Record<string, { readonly complete: boolean; readonly deadLetters: number }>>;
}

/** The days of every source in order; days without a window have no row. */
export function byDay(report: LedgerReport, tz = 'UTC'): { readonly id: string; readonly days: readonly LedgerDay[] }[] {
  return report.sources.map(({ id, windows }) => {
    const days = Map.groupBy(windows, ({ from }) => zoned(Date.parse(from) * 1_000, tz).date);
    return { id, days: [...days].map(([date, of]) => day(date, of)).sort((a, b) => (a.date < b.date ? -1 : 1)) };
  });
}

const worstFirst: readonly LedgerReportState[] = ['gap', 'accepted', 'proven', 'final'];

function day(date: string, windows: readonly LedgerReportWindow[]): LedgerDay {
  const counts = { gap: 0, accepted: 0, proven: 0, final: 0 };
  const sinks: Record<string, { complete: boolean; deadLetters: number }> = {};
  for (const window of windows) {
    counts[window.state] += 1;
    for (const [id, { complete, deadLetters }] of Object.entries(window.sinks)) {
      const sum = (sinks[id] ??= { complete: true, deadLetters: 0 });
      sum.complete &&= complete;
      sum.deadLetters += deadLetters;
    }
  }
  // A sink that some windows do not name has not all of the day.
  for (const [id, sum] of Object.entries(sinks)) sum.complete &&= windows.every((window) => Object.hasOwn(window.sinks, id));
  return {
    date,
    from:
      extreme(
        windows.map((w) => w.from),
        -1,
      ) ?? '',
    until:
      extreme(
        windows.map((w) => w.until),
        1,
      ) ?? '',
    windows: windows.length,
    state: worstFirst.find((state) => counts[state] > 0) ?? 'final',
    counts,
    reasons: [...new Set(windows.map((w) => w.reason).filter((reason) => reason !== null))],
    own: sum(windows.map((w) => w.own)),
    late: sum(windows.map((w) => w.late)),
    passes: sum(windows.map((w) => w.passes)),
    recounts: sum(windows.map((w) => w.recounts)),
    nextRecount:
      extreme(
        windows.map((w) => w.nextRecount).filter((at) => at !== null),
        -1,
      ) ?? null,
    sinks,
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Compared as instants: RFC 3339 text with and without a fraction does not sort by itself. */
function extreme(times: readonly string[], sign: 1 | -1): string | undefined {
  return times.toSorted((a, b) => sign * (Date.parse(b) - Date.parse(a)))[0];
}
