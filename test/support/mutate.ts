/**
 * `npm run mutants [-- C1 C2]`: applies each mutant to a copy of the repository and runs the suites that must fail. Ends with 1 when one lives.
 * `--seeds N` says how many seeds a mutant of the simulation may live (2,000), `--from S` with which it begins; a suite stops at its first
 * failure. `--parallel N` says how many mutants run at once (2).
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { mutants } from './mutants.ts';
import type { Edit, Mutant } from './mutants.ts';

const root = resolve(import.meta.dirname, '../..');
const copied = ['src', 'test', 'config', 'content', 'docs', 'package.json', 'vitest.config.ts', 'tsconfig.json'];
/** A suite that has not ended by then has neither failed nor passed. */
const suiteMostMs = 30 * 60_000;
const reasonMost = 150;

/** What a suite said of a mutant. */
interface Verdict {
  readonly suite: string;
  /** `stuck`: the suite did not run, or did not end. That is no failure of a test, and ends with 1 as well. */
  readonly outcome: 'caught' | 'alive' | 'stuck';
  /** The seed or the test, and what it found. */
  readonly by: string;
  readonly seconds: number;
}

interface Ended {
  /** `null` when it was ended by a signal, or had not ended in time. */
  readonly status: number | null;
  readonly said: string;
}

const running = new Set<ChildProcess>();
/** So long a suite may take to tidy up when it is ended. */
const graceMs = 15_000;
const stop = new AbortController();

function isStopping(): boolean {
  return stop.signal.aborted;
}

/** Replaces the one place of a text. */
function applied(source: string, { file, text, replacement }: Edit): string {
  const [before, after, ...more] = source.split(text);
  if (before === undefined || after === undefined || more.length > 0)
    throw new Error(`the text stands ${more.length + (after === undefined ? 0 : 1)} times in ${file}: ${text}`);
  return before + replacement + after;
}

/** Runs a program in a group of its own, so that what it started ends with it. */
function run(parameters: readonly string[], cwd: string): Promise<Ended> {
  return new Promise((done, reject) => {
    const child = spawn(process.execPath, parameters, {
      cwd,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, NO_COLOR: '1' },
    });
    running.add(child);
    let said = '';
    const hear = (chunk: Buffer): void => {
      said = (said + chunk.toString('utf8')).slice(-1_000_000);
    };
    child.stdout.on('data', hear);
    child.stderr.on('data', hear);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      end(child);
    }, suiteMostMs);
    child.on('error', reject);
    child.on('close', (status) => {
      clearTimeout(timer);
      running.delete(child);
      done({ status: isLate ? null : status, said });
    });
  });
}

function end(child: ChildProcess): void {
  child.kill('SIGTERM');
  const timer = setTimeout(() => {
    if (child.pid !== undefined && running.has(child)) process.kill(-child.pid, 'SIGKILL');
  }, graceMs);
  timer.unref();
}

/** The campaign of one worker takes its seeds in order, so the seed that is named is always the same. */
async function simulated(copy: string, seeds: string, from: string): Promise<Omit<Verdict, 'suite' | 'seconds'>> {
  const { status, said } = await run(['test/simulation/main.ts', '--workers', '1', '--seeds', seeds, '--from', from], copy);
  const failed = /^seed (\d+) failed:\n\s*(.*)$/m.exec(said);
  if (failed) return { outcome: 'caught', by: `seed ${failed[1] ?? ''}: ${failed[2] ?? ''}` };
  // States that are reached too seldom fail a campaign too: then all seeds were run, and none showed what is broken.
  if (status === 0 || (status === 1 && /^too seldom: /m.test(said))) return { outcome: 'alive', by: `${seeds} seeds from ${from}` };
  return { outcome: 'stuck', by: said.slice(-600) };
}

interface VitestReport {
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

async function tested(copy: string, suite: string): Promise<Omit<Verdict, 'suite' | 'seconds'>> {
  const path = join(copy, 'report.json');
  const report = ['--reporter=json', `--outputFile=${path}`];
  const { status, said } = await run(['node_modules/vitest/vitest.mjs', 'run', suite, '--bail=1', '--maxWorkers=1', ...report], copy);
  if (!existsSync(path)) return { outcome: 'stuck', by: said.slice(-600) };
  const { testResults } = JSON.parse(readFileSync(path, 'utf8')) as VitestReport;
  rmSync(path);
  const failed = testResults.flatMap(({ assertionResults }) => assertionResults).find((test) => test.status === 'failed');
  if (failed) return { outcome: 'caught', by: `${failed.fullName}: ${failed.failureMessages[0] ?? ''}` };
  return status === 0 ? { outcome: 'alive', by: 'all tests passed' } : { outcome: 'stuck', by: said.slice(-600) };
}

async function judge(mutant: Mutant, seeds: string, from: string): Promise<Verdict[]> {
  const copy = mkdtempSync(join(tmpdir(), 'waybill-mutant-'));
  try {
    for (const name of copied) cpSync(join(root, name), join(copy, name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const edit of mutant.edits) writeFileSync(join(copy, edit.file), applied(readFileSync(join(copy, edit.file), 'utf8'), edit));
    const verdicts: Verdict[] = [];
    for (const suite of [mutant.suite, ...(mutant.also ?? [])]) {
      const began = performance.now();
      const found = await (suite === 'simulation' ? simulated(copy, seeds, from) : tested(copy, suite));
      verdicts.push({ ...found, by: oneLine(found.by), suite, seconds: (performance.now() - began) / 1_000 });
    }
    return verdicts;
  } catch (thrown) {
    return [{ suite: mutant.suite, outcome: 'stuck', by: oneLine(String(thrown)), seconds: 0 }];
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > reasonMost ? `${line.slice(0, reasonMost)}…` : line;
}

/** Every suite that is named must have failed. */
function outcomeOf(found: readonly Verdict[]): Verdict['outcome'] {
  if (found.some(({ outcome }) => outcome === 'alive')) return 'alive';
  return found.length > 0 && found.every(({ outcome }) => outcome === 'caught') ? 'caught' : 'stuck';
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '2' },
  },
});
const unknown = positionals.filter((id) => !mutants.some((mutant) => mutant.id === id));
if (unknown.length > 0) throw new Error(`no such mutant: ${unknown.join(', ')}`);
const chosen = mutants.filter(({ id }) => positionals.length === 0 || positionals.includes(id));
const verdicts = new Map<string, readonly Verdict[]>();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    stop.abort();
    for (const child of running) end(child);
  });
}
const began = performance.now();
const waiting = [...chosen];
await Promise.all(
  Array.from({ length: Number(values.parallel) }, async () => {
    for (let mutant = waiting.shift(); mutant && !isStopping(); mutant = waiting.shift()) {
      const found = await judge(mutant, values.seeds, values.from);
      if (isStopping()) return;
      verdicts.set(mutant.id, found);
      for (const { suite, outcome, by, seconds } of found) {
        console.log(
          `${verdicts.size}/${chosen.length} ${mutant.id} ${outcome} in ${seconds.toFixed(0)} s: ${mutant.what} — ${suite === 'simulation' ? '' : `${suite}: `}${by}`,
        );
      }
    }
  }),
);

console.log('\n| mutant | what is broken | verdict | by | s |\n|---|---|---|---|---|');
for (const { id, what } of chosen) {
  for (const { suite, outcome, by, seconds } of verdicts.get(id) ?? []) {
    const where = suite === 'simulation' ? (/^seed \d+/.exec(by)?.[0] ?? suite) : suite.replace('test/', '');
    console.log(`| ${id} | ${what} | ${outcome} | ${where} | ${seconds.toFixed(0)} |`);
  }
}
const outcomes = chosen.map(({ id }) => ({ id, outcome: outcomeOf(verdicts.get(id) ?? []) }));
const idsWith = (wanted: Verdict['outcome']): string[] => outcomes.filter(({ outcome }) => outcome === wanted).map(({ id }) => id);
const counted = (wanted: Verdict['outcome'], word: string): string => {
  const ids = idsWith(wanted);
  return `${ids.length} ${word}${wanted !== 'caught' && ids.length > 0 ? ` (${ids.join(', ')})` : ''}`;
};
console.log(
  `\n${chosen.length} mutants in ${((performance.now() - began) / 60_000).toFixed(1)} min, seeds ${values.from} to ${Number(values.from) + Number(values.seeds) - 1}: ` +
    [counted('caught', 'caught'), counted('alive', 'alive'), counted('stuck', 'not decided')].join(', '),
);
process.exitCode = outcomes.every(({ outcome }) => outcome === 'caught') ? 0 : 1;
