/**
 * The columns of the completeness report by window, day or month. CSV prints the values; the text
 * and the page print the same cells for people. Pure.
 */
import type { LedgerReportSinkWindow, LedgerReportWindow, LongLedgerReportSource } from '../../model/ledger-report.ts';
import type { LedgerPeriod } from './periods.ts';
import { delayText, endText, local } from './sentences.ts';
import type { LedgerTally } from './tally.ts';
import { countedState } from '../../journal/window-counts.ts';
import { counted, grouped } from '../format-time.ts';

export type Cell = string | number | boolean | null;

interface ValueColumn<Row> {
  readonly name: string;
  readonly value: (row: Row) => Cell;
}

/** A column of the text and of the page. */
export interface ShownColumn<Row> {
  /** The heading. `cased` converts a word to the case of the format; ids and zones are not converted. */
  readonly head: (cased: (word: string) => string) => string;
  readonly kind: 'text' | 'number' | 'time' | 'state';
  readonly show: (row: Row) => string;
  /** The cell if the line is too long; null: the column is left out. */
  readonly short?: ((row: Row) => string) | null;
  /** The sum over the windows; absent if the numbers must not be added up. */
  readonly sum?: (tally: LedgerTally) => string;
}

type Column<Row> = ValueColumn<Row> | ShownColumn<Row> | (ValueColumn<Row> & ShownColumn<Row>);

/** In groups, because their order differs: the sinks are last in CSV, and before the recounts in text and page. */
export interface LedgerColumns<Row> {
  readonly counts: readonly Column<Row>[];
  readonly recounts: readonly Column<Row>[];
  readonly evidence: readonly Column<Row>[];
  readonly sinks: readonly Column<Row>[];
  /** In place of `sinks`, if the line is too long. */
  readonly allSinks: ShownColumn<Row>;
}

export function csvColumns<Row>({ counts, recounts, evidence, sinks }: LedgerColumns<Row>): ValueColumn<Row>[] {
  return [...counts, ...recounts, ...evidence, ...sinks].filter((column) => 'value' in column);
}

export function shownColumns<Row>({ counts, sinks, recounts }: LedgerColumns<Row>): ShownColumn<Row>[] {
  return [...counts, ...sinks, ...recounts].filter((column) => 'show' in column);
}

/** The columns of ever shorter lines: without recounts, without the longest delays, and with one column for all sinks. */
export function narrowColumns<Row>({ counts, sinks, allSinks }: LedgerColumns<Row>): ShownColumn<Row>[][] {
  const first = counts.filter((column) => 'show' in column);
  const each = sinks.filter((column) => 'show' in column);
  const short = first.flatMap((column) => (column.short === null ? [] : column.short ? { ...column, show: column.short } : column));
  return [
    [...first, ...each],
    [...short, ...each],
    [...short, allSinks],
  ];
}

/** The part that a window and a period share. */
type LedgerRow = Pick<
  LedgerReportWindow,
  'from' | 'to' | 'records' | 'late' | 'lateLongestSeconds' | 'passes' | 'recounts' | 'recountsDue' | 'nextRecount' | 'sinks'
>;

/** @param tz  zone of the displayed times; the values of CSV are UTC */
export function windowColumns(sinks: readonly string[], tz: string): LedgerColumns<LedgerReportWindow> {
  return {
    counts: [
      {
        name: 'from',
        value: ({ from }) => from,
        head: (cased) => `${cased('from')} (${tz})`,
        kind: 'time',
        show: ({ from }) => local(from, tz),
      },
      endColumn(tz),
      { name: 'state', value: ({ state }) => state },
      { name: 'reason', value: ({ reason }) => reason },
      {
        head: (cased) => cased('state'),
        kind: 'state',
        show: (window) => withReason(countedState(window), window.reason),
        sum: ({ all }) => counted(all, 'window'),
      },
      { name: 'message', value: ({ message }) => message },
      { name: 'total', value: ({ total }) => total },
      { name: 'received', value: ({ received }) => received },
      {
        head: (cased) => cased('counted =\nreceived'),
        kind: 'number',
        show: ({ total, received }) => `${total === null ? '-' : grouped(total)} ${total === received ? '=' : '≠'} ${grouped(received)}`,
      },
      ...recordColumns('records\nin window'),
    ],
    recounts: recountColumns(tz),
    evidence: [
      { name: 'closed_at', value: ({ closedAt }) => closedAt },
      { name: 'start_time', value: ({ query }) => query.startTime ?? null },
      { name: 'end_time', value: ({ query }) => query.endTime ?? null },
      { name: 'digest', value: ({ digest }) => digest },
    ],
    sinks: sinkColumns(sinks),
    allSinks: allSinksColumn,
  };
}

export function periodColumns(sinks: readonly string[], by: 'day' | 'month', tz: string): LedgerColumns<LedgerPeriod> {
  return {
    counts: [
      { name: by, value: ({ name }) => name, head: (cased) => `${cased(by)} (${tz})`, kind: 'text', show: ({ name }) => name },
      {
        name: 'from',
        value: ({ from }) => from,
        head: (cased) => cased('from'),
        kind: 'time',
        show: ({ from }) => local(from, tz).slice(by === 'day' ? 11 : 0),
        short: null,
      },
      { ...endColumn(tz), short: null },
      { name: 'state', value: ({ state }) => state },
      { name: 'reasons', value: ({ reasons }) => reasons.join(' ') },
      { head: (cased) => cased('state'), kind: 'state', show: periodState },
      number('windows', ({ windows }) => windows, 'all'),
      { name: 'proven', value: ({ counts }) => counts.proven },
      { name: 'final', value: ({ counts }) => counts.final },
      { name: 'accepted', value: ({ counts }) => counts.accepted },
      { name: 'gaps', value: ({ counts }) => counts.gap },
      ...recordColumns('records'),
    ],
    recounts: recountColumns(tz),
    // At the end, so that the columns before it keep their places.
    evidence: [{ name: 'in_doubt', value: ({ counts }) => counts.inDoubt }],
    sinks: sinkColumns(sinks),
    allSinks: allSinksColumn,
  };
}

function recordColumns(head: string): readonly Column<LedgerRow>[] {
  return [
    { ...number<LedgerRow>('records', ({ records }) => records, 'records'), head: (cased) => cased(head) },
    {
      ...number<LedgerRow>('late', ({ late }) => late, 'late'),
      show: ({ late, lateLongestSeconds }) => `${grouped(late)}${late === 0 ? '' : ` (${delayText(lateLongestSeconds ?? 0)})`}`,
      short: ({ late }) => grouped(late),
    },
    { name: 'late_longest_seconds', value: ({ lateLongestSeconds }) => lateLongestSeconds },
  ];
}

function recountColumns(tz: string): readonly Column<LedgerRow>[] {
  return [
    number('passes', ({ passes }) => passes),
    { ...number<LedgerRow>('recounts', ({ recounts }) => recounts, 'recounts'), show: recountText },
    { name: 'recounts_due', value: ({ recountsDue }) => recountsDue },
    {
      name: 'next_recount',
      value: ({ nextRecount }) => nextRecount,
      head: (cased) => cased('next recount'),
      kind: 'time',
      show: ({ nextRecount }) => (nextRecount === null ? '-' : local(nextRecount, tz)),
    },
  ];
}

function sinkColumns(ids: readonly string[]): readonly Column<Pick<LedgerRow, 'sinks'>>[] {
  return ids.flatMap((id) => [
    {
      name: `${id}.complete`,
      value: ({ sinks }) => sinks[id]?.complete ?? null,
      head: () => id,
      kind: 'text',
      show: ({ sinks }) => sinkText(sinks[id]),
    },
    { name: `${id}.dead_letters`, value: ({ sinks }) => sinks[id]?.deadLetters ?? null },
  ]);
}

const allSinksColumn: ShownColumn<Pick<LedgerRow, 'sinks'>> = {
  head: (cased) => cased('sinks'),
  kind: 'text',
  show: ({ sinks }) => {
    const all = Object.entries(sinks).map(([id, delivery]) => ({ id, text: sinkText(delivery) }));
    const short = all.filter(({ text }) => text !== 'all');
    const [first] = short;
    if (!first) return all.length === 0 ? '-' : 'all';
    return short.length === 1 ? `${first.id}: ${first.text}` : `${short.length} of ${all.length} not all`;
  },
};

function endColumn(tz: string): Column<LedgerRow> {
  return {
    name: 'to',
    value: ({ to }) => to,
    head: (cased) => cased('to'),
    kind: 'time',
    show: (row) => endText(row, tz),
    // A window ends on the day of its start, or with that day.
    short: ({ to }) => local(to, tz).slice(11),
  };
}

function number<Row>(
  name: string,
  value: (row: Row) => number | null,
  sum?: 'all' | 'records' | 'late' | 'recounts',
): ValueColumn<Row> & ShownColumn<Row> {
  const show = (row: Row): string => {
    const count = value(row);
    return count === null ? '-' : grouped(count);
  };
  return { name, value, head: (cased) => cased(name), kind: 'number', show, ...(sum && { sum: (tally) => grouped(tally[sum]) }) };
}

/** `2 gap (total, count), 1 in doubt`: the number of windows in each state that is not proven, unless all are in it. */
function periodState({ state, counts, windows, reasons }: LedgerPeriod): string {
  const numbers = { gap: counts.gap, accepted: counts.accepted, 'in doubt': counts.inDoubt };
  const parts = Object.entries(numbers).filter(([, count]) => count > 0);
  const [only] = parts;
  const shown = only?.[1] === windows ? state : parts.map(([name, count]) => `${grouped(count)} ${name}`).join(', ');
  return withReason(shown || state, reasons.length === 0 ? null : reasons.join(', '));
}

function withReason(state: string, reason: string | null): string {
  return reason === null ? state : `${state} (${reason})`;
}

/** `2 of 7`: completed recounts of all planned ones. `none due`: the window was older than the last age of `recountAfter` when it was closed. */
function recountText({ recounts, recountsDue }: LedgerRow): string {
  if (recounts === 0 && recountsDue === 0) return 'none due';
  return recountsDue === null ? grouped(recounts) : `${grouped(recounts)} of ${grouped(recounts + recountsDue)}`;
}

function sinkText(delivery: LedgerReportSinkWindow | undefined): string {
  if (!delivery) return '-';
  const { complete, lost, deadLetters } = delivery;
  if (complete) return deadLetters === 0 ? 'all' : `all but ${grouped(deadLetters)}`;
  return `${lost ? 'lost' : 'not yet'}${deadLetters === 0 ? '' : `, ${counted(deadLetters, 'dead letter')}`}`;
}

export function sinkIds(sources: readonly Pick<LongLedgerReportSource, 'sinks'>[]): string[] {
  return [...new Set(sources.flatMap(({ sinks }) => sinks.map(({ id }) => id)))];
}
