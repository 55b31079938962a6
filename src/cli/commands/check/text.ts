/** The findings of `waybill check` as text: status and check, and below them the detail, wrapped. Pure. */
import { wrapped } from '../../../report/text-table.ts';
import type { Line } from './state.ts';

const indent = ' '.repeat(9);

/** @param width  columns of the terminal */
export function checkText(lines: readonly Line[], width: number): string[] {
  return lines.flatMap(({ subject, level, message }, i) => {
    const before = lines[i - 1];
    const isSame = before?.subject === subject && before.level === level;
    const reason = wrapped(message, width - indent.length, Infinity).map((line) => `${indent}${line}`);
    return isSame ? reason : [`${level.padEnd(indent.length)}${subject}`, ...reason];
  });
}
