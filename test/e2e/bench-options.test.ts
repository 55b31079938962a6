/** Each benchmark ends at once, with one line, if an option is wrong. */
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';

const run = join(resolve(import.meta.dirname, '../..'), 'bench/run.ts');

test.each([
  [['nonsense']],
  [['--save']],
  [['bars', '--records', '5']],
  [['peers', '--only', 'nonsense']],
  [['peers', '--only', 'Waybill', '--save']],
  [['delivery', '--to', 'nowhere']],
  [['delivery', '--to', 'file', '--save']],
  [['sources', '--sources', '0']],
  [['sources', '--records', '100', '--sources', '3']],
  [['live', '--rate', 'x']],
  [['archive', '--rounds', '0']],
  [['collection', '--only', 'nonsense']],
  [['flood', '--only', 'nonsense']],
  [['logs-endpoint', '--seconds', 'x']],
  [['outage', 'nonsense']],
  [['backfill', '--records', 'x']],
  [['sizing', '--file', 'no such file']],
  [['report', '--save']],
])('%j ends with 2 and one line', (args) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [run, ...args], { encoding: 'utf8', timeout: 30_000 });
  expect({ status, stdout, lines: stderr.trimEnd().split('\n').length }, stderr).toEqual({ status: 2, stdout: '', lines: 1 });
});
