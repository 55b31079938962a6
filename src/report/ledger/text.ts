/**
 * `waybill ledger` as text: the summary of the period, then for each source a table by window, day
 * or month, and sums. It has the same numbers as the JSON.
 */
import type { LongLedgerReport, LongLedgerReportSource } from '../../model/ledger-report.ts';
import { StateCounts } from '../../journal/window-counts.ts';
import { periodColumns, shownColumns, sinkIds, windowColumns } from './columns.ts';
import type { ShownColumn } from './columns.ts';
import { byPeriod } from './periods.ts';
import { tallyOf } from './tally.ts';
import type { LedgerTally } from './tally.ts';
import { crossingSentence, delayText, detailText, holesOf, local, overlapSentence, reach, suspensionText } from './sentences.ts';
import { joined, mapped } from '../chunks.ts';
import { printable } from '../../escape.ts';
import { right, table, tableLines } from '../text-table.ts';
import { counted, grouped } from '../format-time.ts';

interface LedgerTextOptions {
  readonly by: 'window' | 'day' | 'month';
  /** IANA name of the zone of all times and days. */
  readonly tz: string;
  /** Colours the first line. The caller checks the terminal and NO_COLOR. */
  readonly color?: boolean;
  /** Set if `by` was chosen because of the number of windows; this is reported at the end. */
  readonly isShortened?: boolean;
}

/** In chunks, without a final line break. */
export function* ledgerText(report: LongLedgerReport, options: LedgerTextOptions): Generator<string, void, void> {
  const { by, tz, color = false, isShortened = false } = options;
  const tallies = report.sources.map(({ windows }) => tallyOf(windows));
  yield paragraph(report, tallies, tz, color);
  for (const [i, source] of report.sources.entries()) {
    const tally = tallies[i] ?? tallyOf(source.windows);
    const sinks = sinkIds([source]);
    const periods = by === 'window' ? [] : byPeriod(source.windows, by, tz);
    const lines =
      by === 'window'
        ? tableOf(shownColumns(windowColumns(sinks, tz)), source.windows)
        : tableOf(shownColumns(periodColumns(sinks, by, tz)), periods);
    const crossing = by === 'window' ? [] : crossingSentence(periods, by, tz);
    yield '\n\n';
    yield* joined(
      [`Source ${printable(source.id)}: ${reach(source, tz)}`, joined(lines, '\n'), sums(tally), ...crossing, ...notes(report, source, tz)],
      '\n',
    );
  }
  if (report.operations.length > 0) yield `\n\n${operationLines(report, tz)}`;
  if (isShortened) yield `\n\n${counted(StateCounts.sum(tallies).all, 'window')}, shown by ${by}; --by window lists each one.`;
}

/** A line with the summary, then the counts of windows, records, gaps and late records. */
function paragraph(report: LongLedgerReport, tallies: readonly LedgerTally[], tz: string, color: boolean): string {
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
  const summary = printable(report.summary);
  const tone = !report.complete ? '31' : report.delivered ? '32' : '33';
  const sentences = [
    ...(windows === 0 ? ['No window is closed in this period, so gaps are unknown.'] : numbers),
    ...overlapSentence(report, tallies, tz),
    ...(empty.length === 0 || windows === 0 ? [] : [`Nothing is proven for ${empty.join(', ')}: no window is closed in this period.`]),
    ...(changed === 0 ? [] : [`${counted(changed, 'proven window')} changed later (reread, shrunk); see STATE.`]),
  ];
  return `${color ? `\u001b[${tone};1m${summary}\u001b[0m` : summary}\n${sentences.join(' ')}`;
}

function tableOf<Row>(columns: readonly ShownColumn<Row>[], rows: Iterable<Row>): Iterable<string> {
  return tableLines(
    columns.map(({ head, kind }) => {
      const shown = printable(head((word) => word.toUpperCase()));
      return kind === 'number' ? right(shown) : shown;
    }),
    mapped(rows, (row) => columns.map(({ show }) => show(row))),
  );
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
    `Collected since the ledger started: ${counted(lifetime.collected, 'record')} = ${grouped(lifetime.inWindows)} in windows + ${grouped(lifetime.outside)} outside (window not closed yet, found after the last count, or without a readable time)`,
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

function operationLines({ operations }: LongLedgerReport, tz: string): string {
  return table(
    [`CHANGED (${tz})`, 'ACTOR (NOT AUTHENTICATED)', 'OPERATION', 'DETAILS'],
    operations.map((operation) => [local(operation.at, tz), operation.actor ?? '-', operation.operation, detailText(operation)]),
  ).join('\n');
}
