/**
 * The completeness report by day or month. A window counts for the period in which it begins. The
 * numbers are sums of the records in the windows. Totals must never be summed, because a total also
 * counts the padding of its query. Pure.
 */
import type { LedgerReportSinkWindow, LedgerReportState, LedgerReportWindow } from '../../model/ledger-report.ts';
import { zoned } from '../format-time.ts';

export interface LedgerPeriod {
  /** `2026-11-20`, or `2026-11`, in the requested zone. */
  readonly name: string;
  /** The start of the first window and the end of the last. */
  readonly from: string;
  readonly to: string;
  readonly windows: number;
  /** Windows that end in a later day or month of the zone. They count here alone. */
  readonly crossing: number;
  /** The worst state of its windows, in the order gap, accepted, proven, final. */
  readonly state: LedgerReportState;
  readonly counts: Readonly<Record<LedgerReportState, number>>;
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
  const sums = new Map<string, PeriodSums>();
  for (const window of windows) {
    const nameAt = (ms: number): string => zoned(ms * 1_000, tz).date.slice(0, length);
    const name = nameAt(Date.parse(window.from));
    const sum = sums.get(name) ?? new PeriodSums(window);
    sums.set(name, sum);
    // In UTC no window crosses midnight.
    sum.add(window, tz !== 'UTC' && nameAt(Date.parse(window.to) - 1) !== name);
  }
  return [...sums].map(([name, sum]) => sum.period(name)).sort((a, b) => (a.name < b.name ? -1 : 1));
}

const worstFirst: readonly LedgerReportState[] = ['gap', 'accepted', 'proven', 'final'];

class PeriodSums {
  #from: string;
  #to: string;
  #windows = 0;
  #crossing = 0;
  readonly #counts = { gap: 0, accepted: 0, proven: 0, final: 0 };
  readonly #reasons = new Set<string>();
  #records = 0;
  #late = 0;
  #longest: number | null = null;
  #passes = 0;
  #recounts = 0;
  #due: number | null = 0;
  #next: string | null = null;
  readonly #sinks: Record<string, { windows: number; complete: boolean; lost: boolean; deadLetters: number }> = {};

  constructor({ from, to }: LedgerReportWindow) {
    this.#from = from;
    this.#to = to;
  }

  add(window: LedgerReportWindow, isCrossing: boolean): void {
    this.#from = earlier(this.#from, window.from);
    this.#to = later(this.#to, window.to);
    this.#windows += 1;
    if (isCrossing) this.#crossing += 1;
    this.#counts[window.state] += 1;
    if (window.reason !== null) this.#reasons.add(window.reason);
    this.#records += window.records;
    this.#late += window.late;
    if (window.lateLongestSeconds !== null) this.#longest = Math.max(this.#longest ?? 0, window.lateLongestSeconds);
    this.#passes += window.passes;
    this.#recounts += window.recounts;
    this.#due = this.#due === null || window.recountsDue === null ? null : this.#due + window.recountsDue;
    if (window.nextRecount !== null) this.#next = this.#next === null ? window.nextRecount : earlier(this.#next, window.nextRecount);
    for (const [id, { complete, lost = false, deadLetters }] of Object.entries(window.sinks)) {
      const sum = (this.#sinks[id] ??= { windows: 0, complete: true, lost: false, deadLetters: 0 });
      sum.windows += 1;
      sum.complete &&= complete;
      sum.lost ||= lost;
      sum.deadLetters += deadLetters;
    }
  }

  period(name: string): LedgerPeriod {
    return {
      name,
      from: this.#from,
      to: this.#to,
      windows: this.#windows,
      crossing: this.#crossing,
      state: worstFirst.find((state) => this.#counts[state] > 0) ?? 'final',
      counts: this.#counts,
      reasons: [...this.#reasons],
      records: this.#records,
      late: this.#late,
      lateLongestSeconds: this.#longest,
      passes: this.#passes,
      recounts: this.#recounts,
      recountsDue: this.#due,
      nextRecount: this.#next,
      sinks: Object.fromEntries(
        Object.entries(this.#sinks).map(([id, { windows, complete, lost, deadLetters }]) => [
          id,
          // A sink that is missing in some windows has not received the whole period.
          { complete: complete && windows === this.#windows, ...(lost ? { lost } : {}), deadLetters },
        ]),
      ),
    };
  }
}

/** Compares instants: RFC 3339 texts with and without a fraction do not sort as text. */
function earlier(a: string, b: string): string {
  return Date.parse(b) < Date.parse(a) ? b : a;
}

function later(a: string, b: string): string {
  return Date.parse(b) > Date.parse(a) ? b : a;
}
