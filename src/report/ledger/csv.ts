/**
 * The completeness report as CSV (RFC 4180, without sums): a comment line with the verdict, a
 * header, rows. The digest of a report covers the header and the rows by window, which are the same
 * bytes as long as the ledger is the same. It excludes the verdict, which changes with time.
 */
import { createHash } from 'node:crypto';
import type { LongLedgerReport } from '../../model/ledger-report.ts';
import { byPeriod } from './periods.ts';
import { gathered } from '../chunks.ts';
import { printable } from '../../escape.ts';

type Cell = string | number | boolean | null;

/** @param tz  zone of days and months; times are always UTC */
export function* ledgerCsv(report: LongLedgerReport, by: 'window' | 'day' | 'month', tz: string): Generator<string, void, void> {
  yield `# ${harmless(printable(report.summary))}\r\n`;
  yield* lines(by === 'window' ? windowRows(report) : periodRows(report, by, tz));
}

function* lines(rows: Iterable<readonly Cell[]>): Generator<string, void, void> {
  for (const row of rows) yield `${row.map(cell).join(',')}\r\n`;
}

/** The same as `waybill ledger --format csv … | tail -n +2 | sha256sum`, by window. */
export function reportDigest(report: LongLedgerReport): string {
  const hash = createHash('sha256');
  for (const chunk of gathered(lines(windowRows(report)), 16_384)) hash.update(chunk);
  return hash.digest('hex');
}

function* windowRows(report: LongLedgerReport): Generator<Cell[], void, void> {
  const sinks = sinkIds(report);
  const head = [
    ...['source', 'from', 'to', 'state', 'reason', 'message', 'total', 'received', 'records', 'late', 'late_longest_seconds', 'passes'],
    ...['recounts', 'recounts_due', 'next_recount', 'closed_at', 'start_time', 'end_time', 'digest'],
    ...sinks.flatMap((id) => [`${id}.complete`, `${id}.dead_letters`]),
  ];
  yield head;
  for (const source of report.sources) {
    let isEmpty = true;
    for (const window of source.windows) {
      isEmpty = false;
      yield [
        ...[source.id, window.from, window.to, window.state, window.reason, window.message, window.total, window.received, window.records],
        ...[
          window.late,
          window.lateLongestSeconds,
          window.passes,
          window.recounts,
          window.recountsDue,
          window.nextRecount,
          window.closedAt,
        ],
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
    ...['source', by, 'from', 'to', 'state', 'reasons', 'windows', 'final', 'proven', 'accepted', 'gaps', 'records', 'late'],
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
        ...[source.id, period.name, period.from, period.to, period.state, period.reasons.join(' '), period.windows],
        ...[counts.final, counts.proven, counts.accepted, counts.gap, period.records, period.late, period.lateLongestSeconds],
        ...[period.passes, period.recounts, period.recountsDue, period.nextRecount],
        ...sinkCells(sinks, period.sinks),
      ];
    }
  }
}

/** A row for a source without a window in the period: without it, the file would look complete. */
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

/**
 * Text may quote a server, so an apostrophe precedes what a spreadsheet would evaluate as a
 * formula. This applies within a text too, because a spreadsheet may split at `;` or another
 * character.
 */
function harmless(text: string): string {
  return text.replace(/(^|[,;|\t\r\n])(?=[\s"]*[=+\-@\uff1d\uff0b\uff0d\uff20])/g, "$1'").replace(/^[\t\r]/, "'$&");
}

function cell(value: Cell): string {
  if (value === null) return '';
  const text = typeof value === 'string' ? harmless(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
