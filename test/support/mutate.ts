/**
 * `npm run mutants [-- C1 C2]`: applies each mutant to a copy of the repository and runs the suite that must fail. Ends with 1 when one survives.
 * `--seeds N` says how many seeds a mutant of the simulation may live (2,000), `--from S` with which it begins.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { absent, mutants } from './mutants.ts';
import type { Edit, Mutant } from './mutants.ts';

const root = resolve(import.meta.dirname, '../..');

/** Replaces the one place of a text. */
export function applied(source: string, { file, text, replacement }: Edit): string {
  const [before, after, ...more] = source.split(text);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`the text stands ${more.length + (after === undefined ? 0 : 1)} times in ${file}: ${text}`);
  return before + replacement + after;
}

/** The command that must fail. */
function commandOf({ suite }: Mutant, seeds: string, from: string): readonly string[] {
  if (suite === 'simulation') return [process.execPath, 'test/simulation/main.ts', '--seeds', seeds, '--from', from];
  return [process.execPath, 'node_modules/vitest/vitest.mjs', 'run', suite];
}

/** Why the mutant fell; undefined when no test failed, but something else went wrong. */
function reasonOf({ suite }: Mutant, said: string): string | undefined {
  const pattern = suite === 'simulation' ? /^seed \d+ failed:\n.*$/m : /AssertionError.*$|^.*Error: .*$/m;
  const hasFailed = suite === 'simulation' ? pattern.test(said) : /Tests .*failed/.test(said);
  return hasFailed ? (pattern.exec(said)?.[0] ?? '').replace(/\s+/g, ' ').slice(0, 170) : undefined;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { seeds: { type: 'string', default: '2000' }, from: { type: 'string', default: '1' } },
});
const unknown = positionals.filter((id) => !mutants.some((mutant) => mutant.id === id));
if (unknown.length > 0)
  throw new Error(`no such mutant: ${unknown.join(', ')}; absent in this release are ${Object.keys(absent).join(', ')}`);
const chosen = mutants.filter(({ id }) => positionals.length === 0 || positionals.includes(id));
const survivors: string[] = [];
for (const mutant of chosen) {
  const copy = mkdtempSync(join(tmpdir(), 'waybill-mutant-'));
  try {
    for (const name of ['src', 'test', 'config', 'docs', 'package.json', 'vitest.config.ts', 'tsconfig.json'])
      cpSync(join(root, name), join(copy, name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const edit of mutant.edits) writeFileSync(join(copy, edit.file), applied(readFileSync(join(copy, edit.file), 'utf8'), edit));
    const began = performance.now();
    const [program = '', ...parameters] = commandOf(mutant, values.seeds, values.from);
    const { status, stdout, stderr } = spawnSync(program, parameters, {
      cwd: copy,
      encoding: 'utf8',
      maxBuffer: 1e8,
      env: { ...process.env, NO_COLOR: '1' },
    });
    const seconds = ((performance.now() - began) / 1_000).toFixed(0);
    const reason = status === 0 ? undefined : reasonOf(mutant, stdout + stderr);
    if (status !== 0 && reason === undefined) throw new Error(`the suite of ${mutant.id} did not run:\n${(stdout + stderr).slice(-2_000)}`);
    if (reason === undefined) survivors.push(mutant.id);
    console.log(
      `${mutant.id} ${reason === undefined ? 'LIVES' : 'falls'} (${seconds} s): ${mutant.what}${reason === undefined ? '' : ` — ${reason}`}`,
    );
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
console.log(
  `${chosen.length - survivors.length} of ${chosen.length} mutants fell${survivors.length > 0 ? `; alive: ${survivors.join(', ')}` : ''}`,
);
process.exitCode = survivors.length > 0 ? 1 : 0;
