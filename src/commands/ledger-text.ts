/**
 * `waybill ledger` for people: first a paragraph that says whether the period is complete, then a table for each source, by window or by
 * day, then sums. The same report as the JSON; nothing is counted here that is not in it.
 */
import type { LedgerReport, LedgerReportSource, LedgerReportWindow } from '../model.ts';
import { byDay } from '../observe/ledger-days.ts';
import { printable, table, type Column } from '../observe/table.ts';
import { counted, grouped, zoned } from '../observe/time-words.ts';

export interface LedgerTextOptions {
  readonly by: 'window' | 'day';
  /** IANA name of the zone of all times and days. */
  readonly tz: string;
  /** Colours the first word; only when asked (the one who calls knows the terminal and NO_COLOR). */
  readonly color?: boolean;
}

export function ledgerText(report: LedgerReport, { by, tz, color = false }: LedgerTextOptions): string {
  const days = by === 'day' ? byDay(report, tz) : [];
  const blocks = report.sources.map((source, i) => {
    const lines = by === 'day' ? dayTable(source, days[i]?.days ?? [], tz) : windowTable(source, tz);
    return [`Source ${printable(source.id)}: ${reach(source, tz)}`, ...lines, sums(source)].join('\n');
  });
  return [paragraph(report, color), ...blocks].join('\n\n');
}

/** What an auditor reads first: windows proven of windows, records, gaps, what came late. */
function paragraph(report: LedgerReport, color: boolean): string {
  const windows = report.sources.flatMap((source) => source.windows);
  const of = (state: LedgerReportWindow['state']): number => windows.filter((window) => window.state === state).length;
  const proven = of('proven') + of('final');
  const word = report.complete ? 'COMPLETE' : windows.length === 0 ? 'NOTHING PROVEN' : 'NOT COMPLETE';
  const gaps = of('gap') === 0 ? 'No gap' : counted(of('gap'), 'gap');
  const accepted = of('accepted') === 0 ? '' : `, ${counted(of('accepted'), 'gap')} accepted by a person`;
  const reread = windows.filter(({ state, reason }) => (state === 'proven' || state === 'final') && reason !== null).length;
  return [
    `${color ? `\u001b[${report.complete ? '32' : '31'};1m${word}\u001b[0m` : word}.`,
    `${grouped(proven)} of ${counted(windows.length, 'window')} ${proven === 1 ? 'is' : 'are'} proven, ${grouped(of('final'))} of them final.`,
    `${counted(total(windows, 'own'), 'record')} collected, each once; ${grouped(total(windows, 'late'))} of them late.`,
    `${gaps}${accepted}.`,
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
      ...[window.own, window.late, window.passes, window.recounts].map(grouped),
      window.nextRecount === null ? '-' : local(window.nextRecount, tz),
      ...sinks.map((id) => sinkWords(window.sinks[id])),
    ]),
  );
}

function dayTable(source: LedgerReportSource, days: ReturnType<typeof byDay>[number]['days'], tz: string): string[] {
  const sinks = sinkIds(source);
  const columns: Column[] = [
    ...heads([`DAY (${tz})`, 'FROM', 'UNTIL', 'STATE', 'REASON'], 'left'),
    ...heads(['WINDOWS', 'OWN', 'LATE', 'PASSES', 'RECOUNTS'], 'right'),
    ...heads(['NEXT RECOUNT', ...sinks.map(printable)], 'left'),
  ];
  return table(
    columns,
    days.map((day) => [
      day.date,
      local(day.from, tz).slice(11),
      untilText(day, tz),
      day.counts[day.state] === day.windows ? day.state : `${grouped(day.counts[day.state])} ${day.state}`,
      day.reasons.length === 0 ? '-' : day.reasons.join(','),
      ...[day.windows, day.own, day.late, day.passes, day.recounts].map(grouped),
      day.nextRecount === null ? '-' : local(day.nextRecount, tz),
      ...sinks.map((id) => sinkWords(day.sinks[id])),
    ]),
  );
}

function sums(source: LedgerReportSource): string {
  const { windows } = source;
  const sinks = sinkIds(source).map((id) => {
    const missing = windows.filter((window) => window.sinks[id]?.complete !== true).length;
    const letters = windows.reduce((sum, window) => sum + (window.sinks[id]?.deadLetters ?? 0), 0);
    const has = missing === 0 ? 'has every window' : `has ${grouped(windows.length - missing)} of ${counted(windows.length, 'window')}`;
    return `; ${printable(id)} ${has}${letters === 0 ? '' : ` but for ${counted(letters, 'dead letter')}`}`;
  });
  return `Sum: ${counted(windows.length, 'window')}, ${counted(total(windows, 'own'), 'record')}, ${grouped(total(windows, 'late'))} late${sinks.join('')}`;
}

function reach(source: LedgerReportSource, tz: string): string {
  const at = (time: string | null): string => (time === null ? 'not begun' : `${local(time, tz)} ${tz}`);
  return source.frontier === source.reached
    ? `frontier ${at(source.frontier)}`
    : `frontier ${at(source.frontier)}, read up to ${at(source.reached)} (what lies between waits for a gap)`;
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

/** `2026-11-20 02:45`, with seconds where an edge has them: a window may be a second wide. */
function local(time: string, tz: string): string {
  const { date, time: clock } = zoned(Date.parse(time) * 1_000, tz);
  return `${date} ${clock.endsWith(':00') ? clock.slice(0, 5) : clock}`;
}

/** The end without its date where that is the date of the beginning. */
function untilText({ from, until }: { readonly from: string; readonly until: string }, tz: string): string {
  const end = local(until, tz);
  return end.slice(0, 10) === local(from, tz).slice(0, 10) ? end.slice(11) : end;
}
