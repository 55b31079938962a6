/**
 * `npm run bench -- report`: writes bench/RESULTS.md, docs/images/peers.svg and the figures of README from bench/results. `--save` of a benchmark does the same.
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { chart } from './chart.ts';
import { options } from './options.ts';
import { barCells, barColumns } from './result.ts';
import type { Result } from './result.ts';

type Saved = Result & { readonly measuredAt: string; readonly commit: string };

const results = new URL('results/', import.meta.url);
const order = ['peers', 'live', 'delivery', 'outage', 'sources', 'collection', 'backfill', 'archive', 'fleet'];

/** The files that `report` writes, by their path from the root. */
export function reportFiles(): ReadonlyMap<string, string> {
  const names = readdirSync(results)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -5))
    .sort((a, b) => rank(a) - rank(b) || a.localeCompare(b));
  const saved = names.map((name) => JSON.parse(readFileSync(new URL(`${name}.json`, results), 'utf8')) as Saved);
  const charts = saved.flatMap((result) => {
    if (result.chart === undefined) return [];
    const readme = readFileSync(new URL('../README.md', import.meta.url), 'utf8');
    return [
      ['docs/images/peers.svg', chart(result.chart)],
      ['README.md', readme.replace(/(<!-- speed: generated -->\n)[^]*(<!-- end of speed -->)/, `$1\n${speed(result)}\n\n$2`)],
    ] as const;
  });
  return new Map([['bench/RESULTS.md', [head, ...saved.map(section)].join('\n')], ...charts]);
}

/** The section of README: the chart, and the columns of the first table that a reader compares. */
function speed({ text, tables: [table], measuredAt }: Saved): string {
  const shown = ['program', 'version', 'records/s', 'CPU s per 100,000', 'lost', 'doubled'];
  const columns = shown.filter((name) => table?.columns.includes(name));
  const rows = table?.rows.map((row) => columns.map((name) => row[table.columns.indexOf(name)] ?? '')) ?? [];
  const [machine = '', what = '', , others = ''] = text;
  const programs = rows.flatMap(([name = '']) => (name.startsWith('Waybill ') ? [] : [name]));
  return [
    '## Speed',
    `![Records per second and CPU of ${programs.join(', ')}](docs/images/peers.svg)`,
    wrapped(
      `${what} Measured ${measuredAt} on ${machine} ${others}${programs.includes('Benthos') ? ' Benthos is the engine of Redpanda Connect.' : ''}`,
    ),
    markdown(columns, rows),
    wrapped(
      '`npm run bench -- peers --save` repeats this on a quiet machine and renews the figures. [bench/RESULTS.md](bench/RESULTS.md) has what each program does, and the other measurements with their bars.',
    ),
  ].join('\n\n');
}

/** Lines of at most 100 columns. */
function wrapped(text: string): string {
  return text.replace(/(.{1,100})( +|$)/g, '$1\n').trimEnd();
}

export function writeReport(): void {
  for (const [path, text] of reportFiles()) writeFileSync(new URL(`../${path}`, import.meta.url), text);
}

const head = `# Results

\`npm run bench -- report\` writes this file from \`bench/results\`; do not edit it. Compare the rows of one table: each table was
measured in one run, beside a floor without any durability. Absolute figures depend on the machine and its load; bars compare the figures
of one run.
`;

function rank(name: string): number {
  const at = order.indexOf(name);
  return at < 0 ? order.length : at;
}

function section({ title, command, measuredAt, commit, text, tables, bars }: Saved): string {
  const parts = [
    `## ${title}`,
    `\`${command}\`, ${measuredAt}, commit ${commit}. ${text.join(' ')}`,
    ...tables.map(({ caption, columns, rows }) => `${caption}\n\n${markdown(columns, rows)}`),
    ...(bars.length === 0 ? [] : [markdown(barColumns, bars.map(barCells))]),
  ];
  return `${parts.join('\n\n')}\n`;
}

function markdown(columns: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  return [line(columns), line(columns.map(() => '---')), ...rows.map(line)].join('\n');
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  options({});
  writeReport();
}
