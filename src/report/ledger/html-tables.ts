/**
 * The tables of the report page: sinks, late records, windows, periods and suspensions of a source.
 */
import type { LedgerReportSinkWindow, LedgerReportWindow, LongLedgerReportSource } from '../../model/ledger-report.ts';
import { mapped } from '../chunks.ts';
import { counted, grouped } from '../format-time.ts';
import { lines, markup, none } from '../markup.ts';
import type { Html } from '../markup.ts';
import { byPeriod } from './periods.ts';
import { delayText, endText, local, suspensionText } from './sentences.ts';
import type { LedgerTally } from './tally.ts';

export function sinkTable(source: LongLedgerReportSource): Html {
  if (source.sinks.length === 0) return none;
  const rows = source.sinks.map((sink) => [
    rowHead(sink.id),
    text(sink.type),
    text(sink.state),
    text(sink.since === null ? 'the start' : sink.since),
    number(`${grouped(sink.complete)} of ${grouped(sink.windows)}${sink.lost === 0 ? '' : ` (${grouped(sink.lost)} lost)`}`),
    number(sink.records === null ? 'by its filter' : grouped(sink.records)),
    number(grouped(sink.deadLetters)),
  ]);
  return table('Delivery of these windows by sink', ['Sink', 'Type', 'State', 'From', '#Windows', '#Records', '#Dead letters'], rows);
}

export function lateTable(source: LongLedgerReportSource): Html {
  if (source.late === 0) return none;
  const entries = Object.entries(source.lateDelays.within).filter(([, count]) => count > 0);
  const rows = entries.map(([within, count]) => [
    rowHead(within === 'later' ? 'later than 30d' : `within ${within}`),
    number(grouped(count)),
  ]);
  const foot = [rowHead('Sum'), number(grouped(entries.reduce((sum, [, count]) => sum + count, 0)))];
  return table('Late records by delay: first seen minus logTimestamp', ['First seen', '#Records'], rows, foot);
}

export function windowTable(
  source: LongLedgerReportSource,
  windows: Iterable<LedgerReportWindow>,
  caption: string,
  tz: string,
  /** The windows to add up. */
  tally?: LedgerTally,
): Html {
  const sinks = source.sinks.map(({ id }) => id);
  const rows = mapped(windows, (window) => [
    markup`<th scope="row" class="t">${local(window.from, tz)}</th>`,
    to(window, tz),
    stateCell(window.state, window.reason, undefined, window.message),
    number(window.total === null ? '-' : grouped(window.total)),
    number(grouped(window.received)),
    number(grouped(window.records)),
    number(window.late === 0 ? '0' : `${grouped(window.late)} (${delayText(window.lateLongestSeconds ?? 0)})`),
    ...sinks.map((id) => text(sinkText(window.sinks[id]))),
    number(recountText(window)),
    window.nextRecount === null ? text('-') : time(window.nextRecount, tz),
  ]);
  const heads = [
    ...[`From (${tz})`, 'To', 'State', '#Counted', '#Received', '#Records', '#Late (longest)'],
    ...sinks,
    ...['#Recounts (done + due)', 'Next'],
  ];
  const foot = tally && [
    ...[rowHead('Sum'), text(''), text(counted(tally.windows, 'window')), number(''), number(''), number(grouped(source.collected))],
    number(grouped(source.late)),
    ...sinks.map(() => text('')),
    ...[number(grouped(tally.recounts)), text('')],
  ];
  return table(caption, heads, rows, foot);
}

export function periodTable(source: LongLedgerReportSource, by: 'day' | 'month', tz: string): Html {
  const sinks = source.sinks.map(({ id }) => id);
  const periods = byPeriod(source.windows, by, tz);
  const rows = periods.map((period) => [
    rowHead(period.name),
    time(period.from, tz),
    to(period, tz),
    number(grouped(period.windows)),
    stateCell(
      period.state,
      period.reasons.join(', ') || null,
      period.counts[period.state] === period.windows ? undefined : period.counts[period.state],
    ),
    number(grouped(period.records)),
    number(period.late === 0 ? '0' : `${grouped(period.late)} (${delayText(period.lateLongestSeconds ?? 0)})`),
    ...sinks.map((id) => text(sinkText(period.sinks[id]))),
    number(recountText(period)),
    period.nextRecount === null ? text('-') : time(period.nextRecount, tz),
  ]);
  const heads = [
    ...[by === 'day' ? 'Day' : 'Month', `From (${tz})`, 'To', '#Windows', 'State', '#Records', '#Late (longest)'],
    ...sinks,
    ...['#Recounts (done + due)', 'Next'],
  ];
  const sum = (of: (period: (typeof periods)[number]) => number): string =>
    grouped(periods.reduce((total, period) => total + of(period), 0));
  const foot = [
    ...[rowHead('Sum'), text(''), text(''), number(sum(({ windows }) => windows)), text(''), number(sum(({ records }) => records))],
    number(sum(({ late }) => late)),
    ...sinks.map(() => text('')),
    ...[number(sum(({ recounts }) => recounts)), text('')],
  ];
  const caption = `By ${by}; a window belongs to the ${by} in which it starts`;
  return table(caption, heads, rows, foot);
}

export function suspensionTable(source: LongLedgerReportSource, tz: string): Html {
  if (source.suspensions.length === 0) return none;
  const rows = source.suspensions.map((suspension) => {
    const [what, reason, known] = suspensionText(suspension);
    return [
      markup`<th scope="row" class="t">${local(suspension.at, tz)}</th>`,
      ...[text(what), text(reason === '' ? '-' : reason)],
      markup`<td class="words">${known}</td>`,
    ];
  });
  return table('Suspensions of collection', [`At (${tz})`, 'Event', 'Reason', 'Details'], rows);
}

/** `#` at the start of a heading marks a numeric column. A wide table scrolls, also by keyboard. */
export function table(caption: string, heads: readonly string[], rows: Iterable<readonly Html[]>, foot?: readonly Html[]): Html {
  const label = caption === '' ? 'Operator actions' : caption;
  return lines([
    markup`<div class="scroll" role="region" tabindex="0" aria-label="${label}"><table>`,
    caption === '' ? none : markup`<caption>${label}</caption>`,
    markup`<thead><tr>${heads.map(columnHead)}</tr></thead>`,
    markup`<tbody>${lines(mapped(rows, (row) => markup`<tr>${row}</tr>`))}</tbody>`,
    foot === undefined ? none : markup`<tfoot><tr>${foot}</tr></tfoot>`,
    markup`</table></div>`,
  ]);
}

function columnHead(name: string): Html {
  return name.startsWith('#') ? markup`<th scope="col" class="n">${name.slice(1)}</th>` : markup`<th scope="col">${name}</th>`;
}

function sinkText(has: LedgerReportSinkWindow | undefined): string {
  if (!has) return 'not owed';
  const deadLetters = has.deadLetters === 0 ? '' : `, ${counted(has.deadLetters, 'dead letter')}`;
  return `${has.complete ? 'complete' : has.lost ? 'lost' : 'not yet'}${deadLetters}`;
}

function stateCell(state: string, reason: string | null, count?: number, message: string | null = null): Html {
  const tone = state === 'gap' ? 'bad' : state === 'accepted' || reason !== null ? 'warn' : 'good';
  const known = message === null ? none : markup`<small>${message}</small>`;
  const number = count === undefined ? '' : `${grouped(count)} `;
  return markup`<td class="${tone}">${number}${state}${reason === null ? '' : ` (${reason})`}${known}</td>`;
}

function recountText({ recounts, recountsDue }: { readonly recounts: number; readonly recountsDue: number | null }): string {
  return recountsDue === null ? grouped(recounts) : `${grouped(recounts)} + ${grouped(recountsDue)}`;
}

function rowHead(value: string): Html {
  return markup`<th scope="row">${value}</th>`;
}

export function text(value: string): Html {
  return markup`<td>${value}</td>`;
}

function number(value: string): Html {
  return markup`<td class="n">${value}</td>`;
}

function time(value: string, tz: string): Html {
  return markup`<td class="t">${local(value, tz)}</td>`;
}

function to(row: { readonly from: string; readonly to: string }, tz: string): Html {
  return markup`<td class="t">${endText(row, tz)}</td>`;
}
