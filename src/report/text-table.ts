/** Aligned tables for a terminal. Cells may contain text of a server, so control characters are escaped. */
import { printable } from '../errors/escape.ts';

/** A head alone is a column that is aligned left. A head may have several lines. */
export type Column = string | { readonly head: string; readonly align: 'right' };

export function right(head: string): Column {
  return { head, align: 'right' };
}

/** Lines with two spaces between columns and none at the end; the head comes first. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  return [...tableLines(columns, rows)];
}

/**
 * The same as a generator, for many rows. Iterates over `rows` twice; the first time for the
 * widths. In a line that is wider than `width`, the last cell follows below.
 */
export function* tableLines(
  columns: readonly Column[],
  rows: Iterable<readonly string[]>,
  width = Infinity,
): Generator<string, void, void> {
  const heads = columns.map((column) => (typeof column === 'string' ? column : column.head).split('\n'));
  const deep = Math.max(...heads.map((lines) => lines.length));
  const widths = heads.map((lines) => Math.max(...lines.map(({ length }) => length)));
  for (const row of rows) for (const [i, cell] of row.entries()) widths[i] = Math.max(widths[i] ?? 0, printable(cell).length);
  const line = (row: readonly string[]): string =>
    row
      .map((cell, i) => (typeof columns[i] === 'object' ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd();
  for (let i = 0; i < deep; i += 1) yield line(heads.map((lines) => lines[i - deep + lines.length] ?? ''));
  for (const row of rows) {
    const cells = row.map(printable);
    if (line(cells).length <= width) yield line(cells);
    else yield* [line(cells.slice(0, -1)), ...wrapped(cells.at(-1) ?? '', width - 2, Infinity, '  ').map((each) => `  ${each}`)];
  }
}

/** The same for a terminal: the last columns are printed below each row, with their names, as far as they do not fit. */
export function fittedTable(columns: readonly Column[], rows: readonly (readonly string[])[], width: number): string[] {
  for (let kept = columns.length; ; kept -= 1) {
    const [head = '', ...lines] = table(
      columns.slice(0, kept),
      rows.map((row) => row.slice(0, kept)),
    );
    if (kept > 1 && [head, ...lines].some((line) => line.length > width)) continue;
    const below = (row: readonly string[]): string[] =>
      columns.slice(kept).flatMap((column, i) => {
        const cell = row[kept + i] ?? '';
        return cell === '' || cell === '-' ? [] : [`${(typeof column === 'string' ? column : column.head).toLowerCase()} ${cell}`];
      });
    return [
      head,
      ...lines.flatMap((line, i) => {
        const rest = below(rows[i] ?? []).join(', ');
        return rest === '' ? [line] : [line, ...wrapped(rest, width - 2, Infinity, '  ').map((each) => `  ${each}`)];
      }),
    ];
  }
}

/** Cuts a text to a width; `…` marks the cut. */
export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

/** Wraps a text at spaces into at most `lines` lines; `…` marks omitted text. */
export function wrapped(text: string, width: number, lines: number, indent = ''): string[] {
  const broken: string[] = [];
  let line = '';
  const words = printable(text).split(' ');
  for (const word of lines === Infinity ? words.flatMap((each) => pieces(each, width - indent.length)) : words) {
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

/** Divides a word that is wider than a line, such as a path. */
function pieces(word: string, width: number): string[] {
  if (word.length <= width) return [word];
  return [word.slice(0, width), ...pieces(word.slice(width), width)];
}
