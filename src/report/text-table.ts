/**
 * Aligned tables for a terminal. Cells may contain text of a server, so control characters are
 * escaped.
 */
import { printable } from '../escape.ts';

/** A head alone is a column that is aligned left. */
export type Column = string | { readonly head: string; readonly align: 'right' };

export function right(head: string): Column {
  return { head, align: 'right' };
}

/** Lines with two spaces between columns and none at the end; the first line is the head. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  return [...tableLines(columns, rows)];
}

/**
 * The same as a generator, for many rows. Iterates over `rows` twice; the first time for the
 * widths.
 */
export function* tableLines(columns: readonly Column[], rows: Iterable<readonly string[]>): Generator<string, void, void> {
  const heads = columns.map((column) => (typeof column === 'string' ? column : column.head));
  const widths = heads.map((head) => head.length);
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, printable(cell).length);
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => (typeof columns[i] === 'object' ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  yield line(heads);
  for (const row of rows) yield line(row.map(printable));
}

/** Cuts a text to a width; `…` marks the cut. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** Wraps a text at spaces into at most `lines` lines; `…` marks omitted text. */
export function wrapped(text: string, width: number, lines: number, indent = ''): string[] {
  const broken: string[] = [];
  let line = '';
  for (const word of printable(text).split(' ')) {
    const longer = line === '' ? `${broken.length > 0 ? indent : ''}${word}` : `${line} ${word}`;
    if (longer.length > width && line !== '') {
      broken.push(line);
      line = `${indent}${word}`;
    } else line = longer;
  }
  broken.push(line);
  const kept = broken.slice(0, lines).map((l) => cut(l, width));
  if (broken.length > lines) kept[lines - 1] = `${(kept[lines - 1] ?? '').slice(0, width - 2)} …`;
  return kept.map((l) => l.trimEnd());
}
