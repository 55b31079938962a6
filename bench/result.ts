/** The result of a benchmark: tables, and figures beside their bars. */

/** A figure that a benchmark must reach (`bar`) and should reach (`goal`). */
export interface Bar {
  readonly what: string;
  readonly value: number;
  readonly unit?: string;
  readonly limit: 'at least' | 'at most';
  readonly bar?: number;
  readonly goal?: number;
}

export interface Range {
  readonly median: number;
  readonly min: number;
  readonly max: number;
}

/** A program in the chart. */
export interface ChartRow {
  readonly name: string;
  readonly recordsPerSecond: Range;
  readonly cpuPer100k: Range;
}

export interface Result {
  readonly title: string;
  readonly command: string;
  /** Sentences before the tables: the subject of the comparison, and the machine. */
  readonly text: readonly string[];
  readonly tables: readonly {
    readonly caption: string;
    readonly columns: readonly string[];
    readonly rows: readonly (readonly string[])[];
  }[];
  readonly bars: readonly Bar[];
  readonly chart?: readonly ChartRow[];
}

export const barColumns = ['figure', 'value', 'bar', '', 'goal', ''];

/** Cells of `barColumns`, with `met` or the amount by which the limit is missed. */
export function barCells({ what, value, unit = '', limit, bar, goal }: Bar): string[] {
  const sign = limit === 'at least' ? '≥' : '≤';
  const cells = (bound: number | undefined): string[] =>
    bound === undefined ? ['', ''] : [`${sign} ${bound}${unit}`, verdict(value, bound, limit)];
  return [what, `${digits(value)}${unit}`, ...cells(bar), ...cells(goal)];
}

function verdict(value: number, bound: number, limit: Bar['limit']): string {
  const missed = (limit === 'at least' ? bound - value : value - bound) / bound;
  return missed <= 0 ? 'met' : `missed by ${Math.max(1, Math.round(missed * 100))} %`;
}

/** @returns why the result must not replace a published one: it has no rows, or a figure is missing */
export function missingFigure({ tables, bars, chart = [] }: Result): string | undefined {
  const empty = tables.find(({ rows }) => rows.length === 0);
  if (tables.length === 0 || empty !== undefined) return `the table "${empty?.caption ?? ''}" has no rows`;
  for (const { caption, columns, rows } of tables)
    for (const row of rows) {
      const at = columns.findIndex((_, i) => /NaN|Infinity|undefined/.test(row[i] ?? 'undefined'));
      if (at >= 0) return `"${columns[at] ?? ''}" of "${row[0] ?? ''}" is missing in the table "${caption}"`;
    }
  const bar = bars.find(({ value }) => !Number.isFinite(value));
  if (bar !== undefined) return `the value of "${bar.what}" is missing`;
  const program = chart.find(({ recordsPerSecond, cpuPer100k }) => !Number.isFinite(recordsPerSecond.median + cpuPer100k.median));
  return program && `the chart has no figures of "${program.name}"`;
}

/** Three significant digits. */
export function digits(value: number): string {
  return value >= 100 ? Math.round(value).toLocaleString('en-US') : value.toPrecision(3);
}

export function rangeOf(values: readonly number[]): Range {
  const sorted = [...values].sort((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  const middle = sorted.length % 2 === 1 ? [half] : [half - 1, half];
  const median = middle.reduce((sum, i) => sum + (sorted[i] ?? NaN), 0) / middle.length;
  return { median, min: sorted[0] ?? NaN, max: sorted.at(-1) ?? NaN };
}

/** Median, and the spread if there is more than one value. */
export function rangeText({ median, min, max }: Range): string {
  return min === max ? digits(median) : `${digits(median)} (${digits(min)}–${digits(max)})`;
}
