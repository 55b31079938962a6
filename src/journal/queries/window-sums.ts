/** Sums over the windows of a source, for the completeness report. */
import type { LateDelays, Window } from '../../model/ledger.ts';
import type { LedgerReportSinkWindow } from '../../model/ledger-report.ts';
import { readLate, sumLate } from '../late-delays.ts';
import type { WindowDbRow } from '../window-rows.ts';

export interface SinkSums {
  windows: number;
  complete: number;
  lost: number;
  /** Records of the complete windows minus dead letters. */
  records: number;
  deadLetters: number;
}

export class WindowSums {
  /** From the start of the first window to the end of the last. */
  edges: Window | undefined;
  inWindow = 0;
  late = 0;
  /** Undefined when no window has late records. */
  delays: LateDelays | undefined;
  readonly #sinks = new Map<string, SinkSums>();

  add(row: WindowDbRow, sinks: readonly [string, LedgerReportSinkWindow][]): void {
    this.edges = { from: this.edges?.from ?? row.from_us, to: row.to_us };
    this.inWindow += row.records;
    this.late += row.late;
    if (row.late > 0) {
      const late = readLate(row.late_delays);
      this.delays = this.delays ? sumLate([this.delays, late]) : late;
    }
    for (const [id, { complete, lost, deadLetters }] of sinks) {
      const sum = this.sink(id);
      this.#sinks.set(id, sum);
      sum.windows += 1;
      sum.deadLetters += deadLetters;
      if (lost) sum.lost += 1;
      if (!complete) continue;
      sum.complete += 1;
      sum.records += row.records - deadLetters;
    }
  }

  sink(id: string): SinkSums {
    return this.#sinks.get(id) ?? { windows: 0, complete: 0, lost: 0, records: 0, deadLetters: 0 };
  }
}
