/** The tables of the report page: sinks, late records, windows, periods and suspensions of a source. */
import type { LedgerReportWindow, LongLedgerReportSource } from '../../model/ledger-report.ts';
import { mapped } from '../chunks.ts';
import { grouped } from '../format-time.ts';
import { lines, markup, none, type Html } from '../markup.ts';
import { periodColumns, shownColumns, sinkIds, windowColumns, type ShownColumn } from './columns.ts';
import { byPeriod, type LedgerPeriod } from './periods.ts';
import { capital, crossingSentence, local, suspensionText } from './sentences.ts';
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
  return ledgerTable(caption, shownColumns(windowColumns(sinkIds([source]), tz)), windows, tally);
}

export function periodTable(source: LongLedgerReportSource, tally: LedgerTally, by: 'day' | 'month', tz: string): Html {
  const periods = byPeriod(source.windows, by, tz);
  const caption = [`By ${by}; a window belongs to the ${by} in which it starts`, ...crossingSentence(periods, by, tz)].join('. ');
  return ledgerTable(caption, shownColumns(periodColumns(sinkIds([source]), by, tz)), periods, tally);
}

function ledgerTable<Row extends LedgerReportWindow | LedgerPeriod>(
  caption: string,
  columns: readonly ShownColumn<Row>[],
  rows: Iterable<Row>,
  tally: LedgerTally | undefined,
): Html {
  const heads = columns.map(({ head, kind }) => `${kind === 'number' ? '#' : ''}${head(capital).replace('\n', ' ')}`);
  const cells = mapped(rows, (row) => columns.map((column, i) => (i === 0 ? rowHead(column.show(row)) : cell(column, row))));
  const foot =
    tally && columns.map(({ kind, sum }, i) => (i === 0 ? rowHead('Sum') : (kind === 'number' ? number : text)(sum?.(tally) ?? '')));
  return table(caption, heads, cells, foot);
}

function cell<Row extends LedgerReportWindow | LedgerPeriod>({ kind, show }: ShownColumn<Row>, row: Row): Html {
  const shown = show(row);
  if (kind === 'number') return number(shown);
  if (kind === 'time') return markup`<td class="t">${shown}</td>`;
  return kind === 'state' ? stateCell(row, shown) : text(shown);
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

function stateCell(row: LedgerReportWindow | LedgerPeriod, shown: string): Html {
  const isChanged = 'reason' in row ? row.reason !== null : row.reasons.length > 0;
  const tone = row.state === 'gap' ? 'bad' : row.state === 'accepted' || isChanged ? 'warn' : 'good';
  const message = 'message' in row && row.message !== null ? markup`<small>${row.message}</small>` : none;
  return markup`<td class="${tone}">${shown}${message}</td>`;
}

function rowHead(value: string): Html {
  return markup`<th scope="row">${value}</th>`;
}

export function text(value: string): Html {
  return markup`<td>${value}</td>`;
}

export function number(value: string): Html {
  return markup`<td class="n">${value}</td>`;
}
