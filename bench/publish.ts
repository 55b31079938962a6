/**
 * Prints the result of a benchmark. With `--save` it also writes `bench/results/NAME.json`, RESULTS.md, and the chart of README.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg } from 'node:os';
import { writeReport } from './report.ts';
import { barCells, barColumns, missingFigure } from './result.ts';
import type { Result } from './result.ts';
import { table } from './table.ts';

const resultsUrl = new URL('results/', import.meta.url);

/** @param name  of the JSON file, and of the benchmark */
export function publish(name: string, result: Result, isSaved: boolean): void {
  process.stdout.write(`\n${result.text.join('\n')}\n`);
  for (const { caption, columns, rows } of result.tables) process.stdout.write(`\n${caption}\n${table(columns, rows)}\n`);
  if (result.bars.length > 0) process.stdout.write(`\n${table(barColumns, result.bars.map(barCells))}\n`);
  if (!isSaved) return;
  const missing = missingFigure(result);
  if (missing !== undefined) {
    process.stderr.write(`cannot save the result: ${missing}\n`);
    process.exit(1);
  }
  mkdirSync(resultsUrl, { recursive: true });
  writeFileSync(new URL(`${name}.json`, resultsUrl), `${JSON.stringify({ ...result, ...provenance() }, null, 2)}\n`);
  writeReport();
}

/** Describes the machine in one sentence; call it before the measurement, because of the load. */
export function machine(): string {
  const [load = 0] = loadavg();
  return `${availableParallelism()} cores (${cpus()[0]?.model.trim() ?? 'unknown'}), Node ${process.versions.node}, load average ${load.toFixed(1)} at the start.`;
}

function provenance(): { readonly measuredAt: string; readonly commit: string } {
  const git = (...args: string[]): string => execFileSync('git', args, { cwd: import.meta.dirname, encoding: 'utf8' }).trim();
  const isChanged = git('status', '--porcelain', '--', '../src') !== '';
  return {
    measuredAt: new Date().toISOString().slice(0, 10),
    commit: `${git('rev-parse', '--short', 'HEAD')}${isChanged ? ', changed' : ''}`,
  };
}
