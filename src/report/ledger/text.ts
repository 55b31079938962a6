/**
 * `waybill ledger` as text: the summary of the period, then for each source a table by window, day
 * or month, and sums. It has the same numbers as the JSON.
 */
import type { LongLedgerReport, LongLedgerReportSource } from '../../model/ledger-report.ts';
import { StateCounts } from '../../journal/window-counts.ts';
import { narrowColumns, periodColumns, shownColumns, sinkIds, windowColumns, type LedgerColumns, type ShownColumn } from './columns.ts';
import { operationHeads, operationRows } from './operations.ts';
import { byPeriod } from './periods.ts';
import { tallyOf, type LedgerTally } from './tally.ts';
import { crossingSentence, delayText, holesOf, local, overlapSentence, paddingSentence, reach, suspensionText } from './sentences.ts';
import { joined, mapped } from '../chunks.ts';
import { printable } from '../../errors/escape.ts';
import { fittedTable, right, tableLines, wrapped } from '../text-table.ts';
import { counted, grouped } from '../format-time.ts';

interface LedgerTextOptions {
  readonly by: 'window' | 'day' | 'month';
  /** IANA name of the zone of all times and days. */
  readonly tz: string;
  /** Colours the first line. The caller checks the terminal and NO_COLOR. */
  readonly color?: boolean;
  /** Set if `by` was chosen because of the number of windows; this is reported at the end. */
  readonly isShortened?: boolean;
  /** Columns of the terminal; default without a limit. */
  readonly width?: number;
  /** Lists at most so many windows of a source, the newest; sums and summary count all. */
  readonly newest?: number;
}

/** A narrower terminal does not show the columns of recounts. */
const wide = 120;

/** In chunks, without a final line break. */
export function* ledgerText(report: LongLedgerReport, options: LedgerTextOptions): Generator<string, void, void> {
  const { by, tz, color = false, isShortened = false, width = Infinity, newest = Infinity } = options;
  const tallies = report.sources.map(({ windows }) => tallyOf(windows));
  const fit = (line: string): string => wrapped(line, width, Infinity, '  ').join('\n');
  const { summary, tone, sentences } = paragraph(report, tallies, tz);
  const head = wrapped(summary, width, Infinity, '  ').map((line) => (color ? `\u001b[${tone};1m${line}\u001b[0m` : line));
  yield `${head.join('\n')}\n${fit(sentences)}`;
  for (const [i, source] of report.sources.entries()) {
    const tally = tallies[i] ?? tallyOf(source.windows);
    const sinks = sinkIds([source]);
    const periods = by === 'window' ? [] : byPeriod(source.windows, by, tz);
    const lines =
      by === 'window'
        ? tableOf(windowColumns(sinks, tz), last(source.windows, tally.all, newest), width)
        : tableOf(periodColumns(sinks, by, tz), periods, width);
    const below = [
      ...(by === 'window' && tally.all > newest
        ? [`(the last ${grouped(newest)} of ${counted(tally.all, 'window')}; the sums count all)`]
        : []),
      sums(tally),
      ...(by === 'window' ? [] : crossingSentence(periods, by, tz)),
      ...notes(report, source, tz),
    ];
    yield '\n\n';
    yield* joined([fit(`Source ${printable(source.id)}: ${reach(source, tz)}`), joined(lines, '\n'), ...below.map(fit)], '\n');
  }
  if (report.operations.length > 0) yield `\n\n${operationLines(report, tz, width)}`;
  const windows = StateCounts.sum(tallies).all;
  if (by === 'window' && windows > 0) yield `\n\n${fit(paddingSentence)}`;
  if (isShortened) yield `\n\n${fit(`${counted(windows, 'window')}, shown by ${by}; --by window lists each one.`)}`;
}

function last<Item>(items: Iterable<Item>, all: number, count: number): Iterable<Item> {
  return { [Symbol.iterator]: () => Iterator.from(items).drop(Math.max(0, all - count)) };
}

/** The summary with its colour, and the counts of windows, records, gaps and late records. */
function paragraph(
  report: LongLedgerReport,
  tallies: readonly LedgerTally[],
  tz: string,
): { readonly [part in 'summary' | 'tone' | 'sentences']: string } {
  const sum = (of: (tally: LedgerTally) => number): number => tallies.reduce((total, tally) => total + of(tally), 0);
  const { all: windows, proven, final, gap, accepted: acceptedCount } = StateCounts.sum(tallies);
  const empty = report.sources.filter((_, i) => tallies[i]?.all === 0).map(({ id }) => printable(id));
  const gaps = gap === 0 ? 'No gap' : counted(gap, 'gap');
  const accepted = acceptedCount === 0 ? '' : `, ${counted(acceptedCount, 'gap')} accepted by an operator`;
  const changed = sum(({ inDoubt, shrunk }) => inDoubt + shrunk);
  const numbers = [
    `${grouped(proven)} of ${counted(windows, 'window')} ${proven === 1 ? 'is' : 'are'} proven, ${grouped(final)} of them final.`,
    `${counted(
      sum(({ records }) => records),
      'record',
    )} collected, each once; ${grouped(sum(({ late }) => late))} of them late.`,
    `${gaps}${accepted}.`,
  ];
  const tone = !report.complete ? '31' : report.delivered ? '32' : '33';
  const sentences = [
    ...(windows === 0 ? ['No window is closed in this period, so gaps are unknown.'] : numbers),
    ...overlapSentence(report, tallies, tz),
    ...(empty.length === 0 || windows === 0 ? [] : [`Nothing is proven for ${empty.join(', ')}: no window is closed in this period.`]),
    ...(changed === 0 ? [] : [`${counted(changed, 'proven window')} changed later (reread, shrunk); see STATE.`]),
  ];
  return { summary: report.summary, tone, sentences: sentences.join(' ') };
}

/** The table with all columns, or on a narrow terminal the widest that fits. */
function tableOf<Row>(groups: LedgerColumns<Row>, rows: Iterable<Row>, width: number): Iterable<string> {
  const whole = width < wide ? [] : [linesOf(shownColumns(groups), rows, ' ')];
  const narrow = narrowColumns(groups);
  const layouts = [...whole, ...narrow.map((columns) => linesOf(columns, rows, '\n'))];
  const fits = (lines: Iterable<string>): boolean => {
    for (const line of lines) if (line.length > width) return false;
    return true;
  };
  return layouts.find((lines) => width === Infinity || fits(lines)) ?? linesOf(narrow.at(-1) ?? [], rows, '\n', width);
}

/** @param between  parts of a head */
function linesOf<Row>(columns: readonly ShownColumn<Row>[], rows: Iterable<Row>, between: ' ' | '\n', width = Infinity): Iterable<string> {
  const heads = columns.map(({ head, kind }) => {
    const shown = head((word) => word.toUpperCase())
      .split('\n')
      .map(printable)
      .join(between);
    return kind === 'number' ? right(shown) : shown;
  });
  return {
    [Symbol.iterator]: () =>
      tableLines(
        heads,
        mapped(rows, (row) => columns.map(({ show }) => show(row))),
        width,
      ),
  };
}

function sums(tally: LedgerTally): string {
  const sinks = [...tally.sinks].map(([id, { windows, complete, lost, deadLetters }]) => {
    const every = windows === tally.all ? 'has every window' : `has each of ${counted(windows, 'window')} that it owes`;
    const has =
      complete === windows
        ? every
        : `has ${grouped(complete)} of ${counted(windows, 'window')}${lost === 0 ? '' : ` (${grouped(lost)} lost)`}`;
    return `; ${printable(id)} ${has}${deadLetters === 0 ? '' : `, without ${counted(deadLetters, 'dead letter')}`}`;
  });
  return `Sum: ${counted(tally.all, 'window')}, ${counted(tally.records, 'record')}, ${grouped(tally.late)} late${sinks.join('')}`;
}

/** Lines below the windows: delays, records in no window, uncovered time, suspensions. */
function notes(report: LongLedgerReport, source: LongLedgerReportSource, tz: string): string[] {
  const { lifetime, lateDelays, suspensions } = source;
  const delays = Object.entries(lateDelays.within).filter(([, count]) => count > 0);
  return [
    ...(delays.length === 0
      ? []
      : [
          `Late: ${delays.map(([within, count]) => `${grouped(count)} ${within === 'later' ? 'later' : `within ${within}`}`).join(', ')}; the longest by ${delayText(lateDelays.longestSeconds ?? 0)}`,
        ]),
    // These numbers are not of a period.
    ...(report.from !== null || report.to !== null
      ? []
      : [
          `Collected since the ledger started: ${counted(lifetime.collected, 'record')} = ${grouped(lifetime.inWindows)} in windows + ${grouped(lifetime.outside)} outside (window not closed yet, found after the last count, or without a readable time)`,
        ]),
    ...holesOf(report, source.id, tz).map((hole) => printable(`Not covered: ${hole}`)),
    ...suspensions.map((suspension) =>
      printable(
        `${local(suspension.at, tz)} ${suspensionText(suspension)
          .filter((message) => message !== '')
          .join(', ')}`,
      ),
    ),
  ];
}

function operationLines({ operations }: LongLedgerReport, tz: string, width: number): string {
  const heads = [`changed (${tz})`, ...operationHeads].map((head) => (head === 'count' ? right('COUNT') : head.toUpperCase()));
  const rows = operationRows(operations).map(({ at, cells }) => [local(at, tz), ...cells]);
  return fittedTable(heads, rows, width).join('\n');
}
