/**
 * `waybill ledger` for people: first a paragraph that says whether the period is complete, then a table for each source, by window, day or
 * month, then sums. The same report as the JSON; nothing is counted here that is not in it.
 */
import type { LedgerReport, LedgerReportSource, LedgerReportWindow } from '../model.ts';
import { byPeriod } from '../observe/ledger-periods.ts';
import type { LedgerPeriod } from '../observe/ledger-periods.ts';
import { delayWords, detailWords, local, reach } from '../observe/ledger-words.ts';
import { printable, table, type Column } from '../observe/table.ts';
import { counted, grouped } from '../observe/time-words.ts';

export interface LedgerTextOptions {
  readonly by: 'window' | 'day' | 'month';
  /** IANA name of the zone of all times and days. */
  readonly tz: string;
  /** Colours the first word; only when asked (the one who calls knows the terminal and NO_COLOR). */
  readonly color?: boolean;
}

export function ledgerText(report: LedgerReport, { by, tz, color = false }: LedgerTextOptions): string {
  const blocks = report.sources.map((source) => {
    const lines = by === 'window' ? windowTable(source, tz) : periodTable(source, byPeriod(source.windows, by, tz), by, tz);
    return [`Source ${printable(source.id)}: ${reach(source, tz)}`, ...lines, sums(source), ...notes(source, tz)].join('\n');
  });
  const operations = report.operations.length === 0 ? [] : [operationLines(report, tz)];
  return [paragraph(report, color), ...blocks, ...operations].join('\n\n');
}

/** What an auditor reads first: windows proven of windows, records, gaps, what came late. */
function paragraph(report: LedgerReport, color: boolean): string {
  const windows = report.sources.flatMap((source) => source.windows);
  const of = (state: LedgerReportWindow['state']): number => windows.filter((window) => window.state === state).length;
  const proven = of('proven') + of('final');
  const empty = report.sources.filter((source) => source.windows.length === 0).map(({ id }) => printable(id));
  const word = report.complete ? 'COMPLETE' : windows.length === 0 ? 'NOTHING PROVEN' : 'NOT COMPLETE';
  const gaps = of('gap') === 0 ? 'No gap' : counted(of('gap'), 'gap');
  const accepted = of('accepted') === 0 ? '' : `, ${counted(of('accepted'), 'gap')} accepted by a person`;
  const reread = windows.filter(({ state, reason }) => (state === 'proven' || state === 'final') && reason !== null).length;
  const numbers = [
    `${grouped(proven)} of ${counted(windows.length, 'window')} ${proven === 1 ? 'is' : 'are'} proven, ${grouped(of('final'))} of them final.`,
    `${counted(total(windows, 'own'), 'record')} collected, each once; ${grouped(total(windows, 'late'))} of them late.`,
    `${gaps}${accepted}.`,
  ];
  return [
    `${color ? `\u001b[${report.complete ? '32' : '31'};1m${word}\u001b[0m` : word}.`,
    ...(windows.length === 0 ? ['No window is closed in this period, so nothing is known of gaps.'] : numbers),
    ...(empty.length === 0 || windows.length === 0
      ? []
      : [`Nothing is proven of ${empty.join(', ')}: no window is closed in this period.`]),
    ...(report.sources.some(({ uncovered }) => uncovered.length > 0) ? ['The ledger does not cover the whole period.'] : []),
    ...(reread === 0 ? [] : [`${counted(reread, 'proven window')} changed since (reread, vanished): see the reasons.`]),
  ].join(' ');
}

function windowTable(source: LedgerReportSource, tz: string): string[] {
  const sinks = sinkIds(source);
  const columns: Column[] = [
    ...heads([`FROM (${tz})`, 'UNTIL', 'STATE', 'REASON'], 'left'),
    ...heads(['TOTAL', 'OWN', 'LATE', 'PASSES', 'RECOUNTS'], 'right'),
    ...heads(['NEXT RECOUNT', ...sinks.map(printable)], 'left'),
  ];
  return table(
    columns,
    source.windows.map((window) => [
      local(window.from, tz),
      untilText(window, tz),
      window.state,
      window.reason ?? '-',
      window.total === null ? '-' : grouped(window.total),
      ...[window.own, window.late, window.passes].map(grouped),
      recountWords(window),
      window.nextRecount === null ? '-' : local(window.nextRecount, tz),
      ...sinks.map((id) => sinkWords(window.sinks[id])),
    ]),
  );
}

function periodTable(source: LedgerReportSource, periods: readonly LedgerPeriod[], by: 'day' | 'month', tz: string): string[] {
  const sinks = sinkIds(source);
  const columns: Column[] = [
    ...heads([`${by.toUpperCase()} (${tz})`, 'FROM', 'UNTIL', 'STATE', 'REASON'], 'left'),
    ...heads(['WINDOWS', 'OWN', 'LATE', 'PASSES', 'RECOUNTS'], 'right'),
    ...heads(['NEXT RECOUNT', ...sinks.map(printable)], 'left'),
  ];
  return table(
    columns,
    periods.map((period) => [
      period.name,
      by === 'day' ? local(period.from, tz).slice(11) : local(period.from, tz),
      untilText(period, tz),
      period.counts[period.state] === period.windows ? period.state : `${grouped(period.counts[period.state])} ${period.state}`,
      period.reasons.length === 0 ? '-' : period.reasons.join(','),
      ...[period.windows, period.own, period.late, period.passes].map(grouped),
      recountWords(period),
      period.nextRecount === null ? '-' : local(period.nextRecount, tz),
      ...sinks.map((id) => sinkWords(period.sinks[id])),
    ]),
  );
}

/** `2 of 7`: done, of those that there will be. */
function recountWords({ recounts, recountsDue }: { readonly recounts: number; readonly recountsDue: number | null }): string {
  return recountsDue === null ? grouped(recounts) : `${grouped(recounts)} of ${grouped(recounts + recountsDue)}`;
}

function sums(source: LedgerReportSource): string {
  const { windows } = source;
  const sinks = sinkIds(source).map((id) => {
    const own = windows.filter((window) => Object.hasOwn(window.sinks, id));
    const missing = own.filter((window) => window.sinks[id]?.complete !== true).length;
    const letters = own.reduce((sum, window) => sum + (window.sinks[id]?.deadLetters ?? 0), 0);
    const every =
      own.length === windows.length
        ? 'has every window'
        : `has each of ${counted(own.length, 'window')} that ${own.length === 1 ? 'is' : 'are'} for it`;
    const has = missing === 0 ? every : `has ${grouped(own.length - missing)} of ${counted(own.length, 'window')}`;
    return `; ${printable(id)} ${has}${letters === 0 ? '' : ` but for ${counted(letters, 'dead letter')}`}`;
  });
  return `Sum: ${counted(windows.length, 'window')}, ${counted(total(windows, 'own'), 'record')}, ${grouped(total(windows, 'late'))} late${sinks.join('')}`;
}

/** What stands beside the windows: how late, what is in no window, what the ledger does not cover, hold. */
function notes(source: LedgerReportSource, tz: string): string[] {
  const { ever, lateDelays, uncovered, holds } = source;
  const delays = Object.entries(lateDelays.within).filter(([, count]) => count > 0);
  return [
    ...(delays.length === 0
      ? []
      : [
          `Late: ${delays.map(([within, count]) => `${grouped(count)} ${within === 'later' ? 'later' : `within ${within}`}`).join(', ')}; the longest by ${delayWords(lateDelays.longestSeconds ?? 0)}`,
        ]),
    `Ever: ${counted(ever.collected, 'record')} = ${grouped(ever.inWindows)} in windows + ${grouped(ever.outside)} not (not closed yet, found since the last count, or without a readable time)`,
    ...uncovered.map(({ from, until }) => `Not covered: ${local(from, tz)} to ${local(until, tz)} ${tz}`),
    ...holds.map(({ at, what, reason, words }) =>
      printable(`Hold: ${local(at, tz)} ${[what, reason, words].filter((w) => w !== null).join(', ')}`),
    ),
  ];
}

function operationLines({ operations }: LedgerReport, tz: string): string {
  const columns = heads([`CHANGED (${tz})`, 'BY (CLAIMED)', 'WHAT', 'DETAILS'], 'left');
  return table(
    columns,
    operations.map((operation) => [local(operation.at, tz), operation.who ?? '-', operation.what, detailWords(operation)]),
  ).join('\n');
}

function sinkIds(source: LedgerReportSource): string[] {
  return [...new Set(source.windows.flatMap((window) => Object.keys(window.sinks)))];
}

function sinkWords(has: { readonly complete: boolean; readonly deadLetters: number } | undefined): string {
  if (!has) return '-';
  if (has.complete) return has.deadLetters === 0 ? 'complete' : `all but ${grouped(has.deadLetters)}`;
  return has.deadLetters === 0 ? 'not yet' : `not yet, ${grouped(has.deadLetters)} dead`;
}

function total(windows: readonly LedgerReportWindow[], what: 'own' | 'late'): number {
  return windows.reduce((sum, window) => sum + window[what], 0);
}

function heads(names: readonly string[], align: 'left' | 'right'): Column[] {
  return names.map((head) => ({ head, align }));
}

/** The end without its date where that is the date of the beginning. */
function untilText({ from, until }: { readonly from: string; readonly until: string }, tz: string): string {
  const end = local(until, tz);
  return end.slice(0, 10) === local(from, tz).slice(0, 10) ? end.slice(11) : end;
}
