/** The findings of `waybill check` as a table: check, status, and the detail, wrapped in its column. Pure. */
import { printable } from '../../../errors/escape.ts';
import { wrapped } from '../../../report/text-table.ts';
import type { Line } from './state.ts';

/** Minimum columns of the detail: on a narrower terminal, its lines are longer than the terminal. */
const minDetail = 40;
const statusWidth = 'warning'.length;

/** @param width  columns of the terminal */
export function checkText(lines: readonly Line[], width: number): string[] {
  const checkWidth = Math.max('CHECK'.length, ...lines.map(({ subject }) => subject.length));
  const start = (check: string, status: string): string => `${check.padEnd(checkWidth)}  ${status.padEnd(statusWidth)}  `;
  const blank = start('', '');
  const detailWidth = Math.max(minDetail, width - blank.length);
  const rows = lines.flatMap(({ subject, level, message }) =>
    wrapped(message, detailWidth, Infinity).map((line, i) => `${i === 0 ? start(printable(subject), level) : blank}${line}`),
  );
  return [`${start('CHECK', 'STATUS')}DETAIL`, ...rows];
}
