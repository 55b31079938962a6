/** Counts windows. Every number of windows in a report, on a screen or in a metric comes from here; SQL only groups. Pure. */
import type { LedgerReportSinkWindow, LedgerReportState } from '../model/ledger-report.ts';
import type { WindowStates } from '../model/ledger.ts';

/** A window, or `count` windows that are equal in all of this. */
export interface CountedWindow {
  readonly state: LedgerReportState;
  readonly reason: string | null;
  readonly count?: number;
}

/** A window with its records. */
interface CountedRecords extends CountedWindow {
  readonly records: number;
  readonly late: number;
  readonly recounts: number;
  readonly sinks: Readonly<Record<string, LedgerReportSinkWindow>>;
}

/** The state by which a window counts: a proven window that a later count contradicts (`reread`) is in doubt. */
export function countedState({ state, reason }: CountedWindow): LedgerReportState | 'in doubt' {
  if (state === 'gap' || state === 'accepted') return state;
  return /* mutant: counted-in-doubt */ reason === 'reread' ? 'in doubt' : state;
}

export class StateCounts implements WindowStates {
  all = 0;
  proven = 0;
  final = 0;
  gap = 0;
  accepted = 0;
  inDoubt = 0;

  static of(windows: Iterable<CountedWindow>): StateCounts {
    const counts = new StateCounts();
    for (const window of windows) counts.add(window);
    return counts;
  }

  /** The sum of the counts of several ledgers. */
  static sum(parts: readonly WindowStates[]): WindowStates {
    const of = (name: keyof WindowStates): number => parts.reduce((sum, part) => sum + part[name], 0);
    return { all: of('all'), proven: of('proven'), final: of('final'), gap: of('gap'), accepted: of('accepted'), inDoubt: of('inDoubt') };
  }

  add(window: CountedWindow): void {
    const { count = 1 } = window;
    const state = countedState(window);
    this.all += count;
    if (state === 'gap' || state === 'accepted') this[state] += /* mutant: counted-group */ count;
    else if (state === 'in doubt') this.inDoubt += count;
    else {
      this.proven += count;
      if (state === 'final') this.final += count;
    }
  }
}

export class SinkCounts {
  windows = 0;
  complete = 0;
  lost = 0;
  deadLetters = 0;
  /** Windows that lack a record: one that the sink has not acknowledged, has lost or has as a dead letter. */
  lacking = 0;
  /** Records of the complete windows minus dead letters. */
  records = 0;

  add({ complete, lost, deadLetters }: LedgerReportSinkWindow, records = 0, count = 1): void {
    this.windows += count;
    this.deadLetters += deadLetters;
    if (lost) this.lost += count;
    if (/* mutant: counted-lacking */ !complete || deadLetters > 0) this.lacking += count;
    if (!complete) return;
    this.complete += count;
    this.records += records - deadLetters;
  }
}

export class WindowCounts extends StateCounts {
  records = 0;
  late = 0;
  recounts = 0;
  /** Proven windows for which the service later showed fewer records. */
  shrunk = 0;
  /** Windows that no sink is to receive completely. */
  unanswered = 0;
  /** In the order of their first window. */
  readonly sinks = new Map<string, SinkCounts>();

  override add(window: CountedRecords): void {
    super.add(window);
    this.records += window.records;
    this.late += window.late;
    this.recounts += window.recounts;
    if (window.reason === 'shrunk') this.shrunk += 1;
    if (Object.keys(window.sinks).length === 0) this.unanswered += 1;
    for (const [id, delivery] of Object.entries(window.sinks)) {
      const sink = this.sinks.get(id) ?? new SinkCounts();
      this.sinks.set(id, sink);
      sink.add(delivery, window.records);
    }
  }
}
