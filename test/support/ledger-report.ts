/**
 * The completeness report with its verdict, whole in memory, for tests that read the state next to
 * a journal.
 */
import type { Database } from 'better-sqlite3';
import { openLedgerReport } from '../../src/journal/queries/ledger.ts';
import type { ReportQuery } from '../../src/journal/queries/ledger.ts';
import type { LedgerReport } from '../../src/model/ledger-report.ts';
import { assessed } from '../../src/report/summary.ts';
import type { Present } from '../../src/report/completeness.ts';

/** A running daemon without any known problem. */
export const running: Present = { stopped: undefined, paused: undefined, sources: [], sinks: [] };

export function ledgerReport(db: Database, query: ReportQuery = {}, present: Present = running, tz = 'UTC'): LedgerReport {
  using reading = openLedgerReport(db, query);
  const { report } = assessed(reading, { now: query.now ?? 0, from: query.from, to: query.to }, present, tz);
  return { ...report, sources: report.sources.map((source) => ({ ...source, windows: [...source.windows] })) };
}
