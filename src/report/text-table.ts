/** Aligned tables for a terminal. A cell may hold text of a server, so its control characters are escaped. */
import { printable } from '../escape.ts';

export interface Column {
  readonly head: string;
  readonly align?: 'left' | 'right';
}

/** Rows of cells as lines of equal columns, two blanks between them, no blanks at the end; the head first. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  return [...tableLines(columns, rows)];
}

/** The same line by line, for more rows than memory should hold: they are gone through twice, once for the widths. */
export function* tableLines(columns: readonly Column[], rows: Iterable<readonly string[]>): Generator<string, void, void> {
  const widths = columns.map(({ head }) => head.length);
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, printable(cell).length);
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => (columns[i]?.align === 'right' ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  yield line(columns.map(({ head }) => head));
  for (const row of rows) yield line(row.map(printable));
}

/** Cut to a width, with `…` where something is missing. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** Broken at blanks into at most `lines` lines of a width; what does not fit ends in `…`. */
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
