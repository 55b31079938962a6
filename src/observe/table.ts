/** Aligned tables and harmless text for a terminal: what stands in a cell may come from a server, so nothing in it can steer the terminal. */

export interface Column {
  readonly head: string;
  readonly align?: 'left' | 'right';
}

/** Rows of cells as lines of equal columns, two blanks between them, no blanks at the end; the head first. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const cells = [columns.map(({ head }) => head), ...rows.map((row) => row.map(printable))];
  const widths = columns.map((_, i) => Math.max(...cells.map((row) => (row[i] ?? '').length)));
  return cells.map((row) =>
    row
      .map((cell, i) => (columns[i]?.align === 'right' ? cell.padStart(widths[i] ?? 0) : cell.padEnd(widths[i] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

/** Control characters and marks of direction as `\u001b`, line breaks too: one line stays one line. */
export function printable(text: string): string {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
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
