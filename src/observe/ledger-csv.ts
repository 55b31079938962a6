/**
 * The completeness report as CSV (RFC 4180, one header, no sums) for scripts and spreadsheets. The rows by window are also what the digest
 * of a report is taken over: the same ledger gives the same bytes, whenever it is asked.
 */
import { createHash } from 'node:crypto';
import type { LongLedgerReport } from '../model.ts';
import { byPeriod } from './ledger-periods.ts';
import { gathered } from './pieces.ts';

type Cell = string | number | boolean | null;

/** @param tz  zone in which days and months begin; times are UTC always */
export function* ledgerCsv(report: LongLedgerReport, by: 'window' | 'day' | 'month', tz: string): Generator<string, void, void> {
  const rows = by === 'window' ? windowRows(report) : periodRows(report, by, tz);
  for (const row of rows) yield `${row.map(cell).join(',')}\r\n`;
}

/** SHA-256 over the CSV by window, hex: `waybill ledger --format csv … | sha256sum` gives the same. */
export function reportDigest(report: LongLedgerReport): string {
  const hash = createHash('sha256');
  for (const piece of gathered(ledgerCsv(report, 'window', 'UTC'), 16_384)) hash.update(piece);
  return hash.digest('hex');
}

function* windowRows(report: LongLedgerReport): Generator<Cell[], void, void> {
  const sinks = sinkIds(report);
  const head = [
    ...['source', 'from', 'until', 'state', 'reason', 'words', 'total', 'received', 'own', 'late', 'late_longest_seconds', 'passes'],
    ...['recounts', 'recounts_due', 'next_recount', 'closed', 'start_time', 'end_time', 'digest'],
    ...sinks.flatMap((id) => [`${id}.complete`, `${id}.dead_letters`]),
  ];
  yield head;
  for (const source of report.sources) {
    let isEmpty = true;
    for (const window of source.windows) {
      isEmpty = false;
      yield [
        ...[source.id, window.from, window.until, window.state, window.reason, window.words, window.total, window.received, window.own],
        ...[window.late, window.lateLongestSeconds, window.passes, window.recounts, window.recountsDue, window.nextRecount, window.closed],
        ...[window.query.startTime ?? null, window.query.endTime ?? null, window.digest],
        ...sinkCells(sinks, window.sinks),
      ];
    }
    if (isEmpty) yield nothing(source.id, head);
  }
}

function* periodRows(report: LongLedgerReport, by: 'day' | 'month', tz: string): Generator<Cell[], void, void> {
  const sinks = sinkIds(report);
  const head = [
    ...['source', by, 'from', 'until', 'state', 'reasons', 'windows', 'final', 'proven', 'accepted', 'gaps', 'own', 'late'],
    ...['late_longest_seconds', 'passes', 'recounts', 'recounts_due', 'next_recount'],
    ...sinks.flatMap((id) => [`${id}.complete`, `${id}.dead_letters`]),
  ];
  yield head;
  for (const source of report.sources) {
    const periods = byPeriod(source.windows, by, tz);
    if (periods.length === 0) yield nothing(source.id, head);
    for (const period of periods) {
      const { counts } = period;
      yield [
        ...[source.id, period.name, period.from, period.until, period.state, period.reasons.join(' '), period.windows],
        ...[counts.final, counts.proven, counts.accepted, counts.gap, period.own, period.late, period.lateLongestSeconds],
        ...[period.passes, period.recounts, period.recountsDue, period.nextRecount],
        ...sinkCells(sinks, period.sinks),
      ];
    }
  }
}

/** The row of a source that has no window in the period: a file that did not name it would look whole. */
function nothing(id: string, head: readonly Cell[]): Cell[] {
  const row = new Map<Cell, Cell>([
    ['source', id],
    ['state', 'nothing'],
  ]);
  return head.map((name) => row.get(name) ?? null);
}

function sinkIds(report: LongLedgerReport): string[] {
  return [...new Set(report.sources.flatMap((source) => source.sinks.map(({ id }) => id)))];
}

function sinkCells(ids: readonly string[], sinks: Readonly<Record<string, { complete: boolean; deadLetters: number }>>): Cell[] {
  return ids.flatMap((id) => [sinks[id]?.complete ?? null, sinks[id]?.deadLetters ?? null]);
}

/** Words may hold what a server said: what a spreadsheet would take for a formula gets an apostrophe in front. */
function cell(value: Cell): string {
  if (value === null) return '';
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
