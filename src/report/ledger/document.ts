/** The completeness report in each format, for the command and the admin server. */
import type { LongLedgerReport } from '../../model/ledger-report.ts';
import { ledgerCsv } from './csv.ts';
import { ledgerHtml, type LedgerHtmlOptions } from './html.ts';
import { byPeriod } from './periods.ts';
import { jsonChunks } from '../chunks.ts';

export type LedgerFormat = 'json' | 'csv' | 'html';

/** The zone of the times in the summary; csv and json use UTC everywhere. */
export function zoneOfWords(format: LedgerFormat | 'text', tz: string): string {
  return format === 'csv' || format === 'json' ? 'UTC' : tz;
}

export interface LedgerDocument {
  readonly type: string;
  /** The text in chunks; can be read once. */
  readonly chunks: Iterable<string>;
}

export type LedgerDocumentOptions = LedgerHtmlOptions;

export function ledgerDocument(report: LongLedgerReport, format: LedgerFormat, options: LedgerDocumentOptions): LedgerDocument {
  const { by, tz } = options;
  if (format === 'csv') return { type: 'text/csv; charset=utf-8', chunks: ledgerCsv(report, by, tz) };
  if (format === 'html') return { type: 'text/html; charset=utf-8', chunks: ledgerHtml(report, options) };
  const asked = by === 'window' ? report : { ...report, sources: report.sources.map((source) => withPeriods(source, by, tz)) };
  return { type: 'application/json; charset=utf-8', chunks: jsonText(asked) };
}

function* jsonText(value: unknown): Generator<string, void, void> {
  yield* jsonChunks(value);
  yield '\n';
}

/** Adds `days` or `months` before the windows. */
function withPeriods(source: LongLedgerReport['sources'][number], by: 'day' | 'month', tz: string): object {
  const { windows, ...rest } = source;
  return { ...rest, [by === 'day' ? 'days' : 'months']: byPeriod(windows, by, tz), windows };
}
