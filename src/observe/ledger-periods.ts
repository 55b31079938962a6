/**
 * The completeness report by day or month: windows added up, pure. A window counts for the period in which it begins; numbers are sums over
 * what the windows own, because a total counts the padding of its query too and must never be summed.
 */
import type { LedgerReportState, LedgerReportWindow } from '../model.ts';
import { zoned } from './time-words.ts';

export interface LedgerPeriod {
  /** `2026-11-20`, or `2026-11`, in the zone asked for. */
  readonly name: string;
  /** Where its first window begins and its last one ends. */
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
  readonly lateLongestSeconds: number | null;
  readonly passes: number;
  readonly recounts: number;
  /** null when it is not known of one of its windows. */
  readonly recountsDue: number | null;
  /** The earliest recount still to come. */
  readonly nextRecount: string | null;
  readonly sinks: Readonly<Record<string, { readonly complete: boolean; readonly deadLetters: number }>>;
}

/** The periods of a source in order; those without a window have no row. */
export function byPeriod(windows: readonly LedgerReportWindow[], by: 'day' | 'month', tz = 'UTC'): readonly LedgerPeriod[] {
  const length = by === 'day' ? 10 : 7;
  const groups = Map.groupBy(windows, ({ from }) => zoned(Date.parse(from) * 1_000, tz).date.slice(0, length));
  return [...groups].map(([name, of]) => period(name, of)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

const worstFirst: readonly LedgerReportState[] = ['gap', 'accepted', 'proven', 'final'];

function period(name: string, windows: readonly LedgerReportWindow[]): LedgerPeriod {
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
  // A sink that some windows do not name has not all of the period.
  for (const [id, sum] of Object.entries(sinks)) sum.complete &&= windows.every((window) => Object.hasOwn(window.sinks, id));
  const due = windows.map((window) => window.recountsDue);
  const longest = windows.map((window) => window.lateLongestSeconds).filter((seconds) => seconds !== null);
  return {
    name,
    from: earliest(windows.map((window) => window.from)) ?? '',
    until: latest(windows.map((window) => window.until)) ?? '',
    windows: windows.length,
    state: worstFirst.find((state) => counts[state] > 0) ?? 'final',
    counts,
    reasons: [...new Set(windows.map((window) => window.reason).filter((reason) => reason !== null))],
    own: sum(windows.map((window) => window.own)),
    late: sum(windows.map((window) => window.late)),
    lateLongestSeconds: longest.length === 0 ? null : longest.reduce((a, b) => Math.max(a, b)),
    passes: sum(windows.map((window) => window.passes)),
    recounts: sum(windows.map((window) => window.recounts)),
    recountsDue: due.includes(null) ? null : sum(due.map((count) => count ?? 0)),
    nextRecount: earliest(windows.map((window) => window.nextRecount).filter((at) => at !== null)) ?? null,
    sinks,
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Compared as instants: RFC 3339 text with and without a fraction does not sort by itself. */
function earliest(times: readonly string[]): string | undefined {
  return times.length === 0 ? undefined : times.reduce((a, b) => (Date.parse(b) < Date.parse(a) ? b : a));
}

function latest(times: readonly string[]): string | undefined {
  return times.length === 0 ? undefined : times.reduce((a, b) => (Date.parse(b) > Date.parse(a) ? b : a));
}
