/**
 * The completeness report as CSV (RFC 4180, without sums): a comment line with the summary, a
 * header, rows. The digest of a report covers the header and the rows by window, which are the same
 * bytes as long as the ledger is the same. It excludes the summary, which changes with time.
 */
import { createHash } from 'node:crypto';
import type { LongLedgerReport, LongLedgerReportSource } from '../../model/ledger-report.ts';
import { csvColumns, periodColumns, sinkIds, windowColumns, type Cell, type LedgerColumns } from './columns.ts';
import { byPeriod } from './periods.ts';
import { gathered } from '../chunks.ts';
import { printable } from '../../errors/escape.ts';

/** @param tz  zone of days and months; times are always UTC */
export function* ledgerCsv(report: LongLedgerReport, by: 'window' | 'day' | 'month', tz: string): Generator<string, void, void> {
  yield `# ${harmless(printable(report.summary))}\r\n`;
  if (by === 'window') yield* windowLines(report);
  else yield* lines(report, periodColumns(sinkIds(report.sources), by, tz), ({ windows }) => byPeriod(windows, by, tz));
}

/** The same as `waybill ledger --format csv … | tail -n +2 | sha256sum`, by window. */
export function reportDigest(report: LongLedgerReport): string {
  const hash = createHash('sha256');
  for (const chunk of gathered(windowLines(report), 16_384)) hash.update(chunk);
  return hash.digest('hex');
}

function windowLines(report: LongLedgerReport): Iterable<string> {
  return lines(report, windowColumns(sinkIds(report.sources), 'UTC'), ({ windows }) => windows);
}

/** The header, and the rows of each source. A source without a window has one row, else the file would look complete. */
function* lines<Row>(
  { sources }: LongLedgerReport,
  groups: LedgerColumns<Row>,
  rowsOf: (source: LongLedgerReportSource) => Iterable<Row>,
): Generator<string, void, void> {
  const columns = csvColumns(groups);
  yield line(['source', ...columns.map(({ name }) => name)]);
  for (const source of sources) {
    let isEmpty = true;
    for (const row of rowsOf(source)) {
      isEmpty = false;
      yield line([source.id, ...columns.map(({ value }) => value(row))]);
    }
    if (isEmpty) yield line([source.id, ...columns.map(({ name }) => (name === 'state' ? 'nothing' : null))]);
  }
}

function line(cells: readonly Cell[]): string {
  return `${cells.map(cell).join(',')}\r\n`;
}

/**
 * Text may quote a server, so an apostrophe precedes what a spreadsheet would evaluate as a formula. This applies within a text too,
 * because a spreadsheet may split at `;` or another character.
 */
function harmless(text: string): string {
  return text.replace(/(^|[,;|\t\r\n])(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g, "$1'").replace(/^[\t\r]/, "'$&");
}

function cell(value: Cell): string {
  if (value === null) return '';
  const text = typeof value === 'string' ? harmless(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
