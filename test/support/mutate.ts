/**
 * `npm run mutants [-- name…]`: applies each mutant to a copy of the repository and runs the suite that must fail. Exits with 1 when a mutant
 * survives or its suite does not end. `--seeds N`: how many seeds of the simulation a mutant may survive (2,000); `--from S`: the first seed.
 * `--parallel N`: how many mutants run at once (2). A suite stops at its first failure.
 *
 * promise: A test fails for each broken mechanism of the list of mutants.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { applyToFiles } from './hooks.ts';
import { mutants } from './mutants.ts';
import type { Mutant } from './mutants.ts';

const root = resolve(import.meta.dirname, '../..');
const copied = readdirSync(root).filter((name) => !['.git', 'dist', 'node_modules'].includes(name));
/** A suite that runs longer is `stuck`. */
const suiteMostMs = 30 * 60_000;
const reasonMost = 150;

/** The result of a suite on a mutant. */
interface Verdict {
  readonly suite: string;
  /** `stuck`: the suite did not start or did not end; the exit code is 1 then, too. */
  readonly outcome: 'caught' | 'alive' | 'stuck';
  /** The seed or the test that failed, with its message; for another outcome, the reason. */
  readonly by: string;
  readonly seconds: number;
}

interface Ended {
  /** `null` after a signal or a timeout. */
  readonly status: number | null;
  readonly output: string;
}

const running = new Set<ChildProcess>();
/** The time between SIGTERM and SIGKILL. */
const graceMs = 15_000;
const stop = new AbortController();
const sources = new Map(
  readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .map((path) => [path, readFileSync(join(root, 'src', path), 'utf8')]),
);

function isStopping(): boolean {
  return stop.signal.aborted;
}

/** Runs a program in its own process group, so that its children end with it. */
function run(parameters: readonly string[], cwd: string): Promise<Ended> {
  return new Promise((done, reject) => {
    const child = spawn(process.execPath, parameters, {
      cwd,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
      // The copy cannot be built: its node_modules is a link. Its bin/waybill.js runs the sources.
      env: { ...process.env, NO_COLOR: '1', WAYBILL_TEST_PROGRAM: cwd, WAYBILL_TEST_SERVERS: '1' },
    });
    running.add(child);
    let output = '';
    const hear = (chunk: Buffer): void => {
      output = (output + chunk.toString('utf8')).slice(-1_000_000);
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
      done({ status: isLate ? null : status, output });
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

/** One worker takes the seeds in order, so the reported seed is always the same. */
async function simulated(copy: string, seeds: string, from: string, isShard: boolean): Promise<Omit<Verdict, 'suite' | 'seconds'>> {
  const program = ['test/simulation/main.ts', ...(isShard ? ['--shard'] : [])];
  const { status, output } = await run([...program, '--workers', '1', '--seeds', seeds, '--from', from], copy);
  const failed = /^seed (\d+) failed:\n\s*(.*)$/m.exec(output);
  if (failed) return { outcome: 'caught', by: `seed ${failed[1] ?? ''}: ${failed[2] ?? ''}` };
  // A campaign also fails if it reaches states too seldom: then all seeds ran, and none detected
  // the mutant.
  if (status === 0 || (status === 1 && /^too seldom: /m.test(output))) return { outcome: 'alive', by: `${seeds} seeds from ${from}` };
  return { outcome: 'stuck', by: output.slice(-600) };
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
  const { status, output } = await run(['node_modules/vitest/vitest.mjs', 'run', suite, '--bail=1', '--maxWorkers=1', ...report], copy);
  if (!existsSync(path)) return { outcome: 'stuck', by: output.slice(-600) };
  const { testResults } = JSON.parse(readFileSync(path, 'utf8')) as VitestReport;
  rmSync(path);
  const failed = testResults.flatMap(({ assertionResults }) => assertionResults).find((test) => test.status === 'failed');
  if (failed) return { outcome: 'caught', by: `${failed.fullName}: ${failed.failureMessages[0] ?? ''}` };
  const hasPassed = testResults.some(({ assertionResults }) => assertionResults.some((test) => test.status === 'passed'));
  // Every test is skipped where its receiver is not installed.
  return status === 0 && hasPassed ? { outcome: 'alive', by: 'all tests passed' } : { outcome: 'stuck', by: output.slice(-600) };
}

async function judge(mutant: Mutant, seeds: string, from: string): Promise<Verdict> {
  const copy = mkdtempSync(join(tmpdir(), 'waybill-mutant-'));
  try {
    for (const name of copied) cpSync(join(root, name), join(copy, name), { recursive: true });
    symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
    for (const [path, text] of applyToFiles(sources, mutant.changes)) writeFileSync(join(copy, 'src', path), text);
    const began = performance.now();
    const { suite } = mutant;
    const found = await (suite.startsWith('simulation') ? simulated(copy, seeds, from, suite !== 'simulation') : tested(copy, suite));
    return { ...found, by: oneLine(found.by), suite, seconds: (performance.now() - began) / 1_000 };
  } catch (thrown) {
    return { suite: mutant.suite, outcome: 'stuck', by: oneLine(String(thrown)), seconds: 0 };
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length > reasonMost ? `${line.slice(0, reasonMost)}…` : line;
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seeds: { type: 'string', default: '2000' },
    from: { type: 'string', default: '1' },
    parallel: { type: 'string', default: '2' },
  },
});
const unknown = positionals.filter((name) => !mutants.some((mutant) => mutant.name === name));
if (unknown.length > 0) throw new Error(`no such mutant: ${unknown.join(', ')}`);
const chosen = mutants.filter(({ name }) => positionals.length === 0 || positionals.includes(name));
const verdicts = new Map<string, Verdict>();
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
      verdicts.set(mutant.name, found);
      const { suite, outcome, by, seconds } = found;
      const where = suite.startsWith('simulation') ? '' : `${suite}: `;
      console.log(`${verdicts.size}/${chosen.length} ${mutant.name} ${outcome} in ${seconds.toFixed(0)} s: ${mutant.what} — ${where}${by}`);
    }
  }),
);

console.log('\n| mutant | what is broken | verdict | by | s |\n|---|---|---|---|---|');
for (const { name, what } of chosen) {
  const verdict = verdicts.get(name);
  if (verdict) {
    const { suite, outcome, by, seconds } = verdict;
    const where = suite.startsWith('simulation') ? (/^seed \d+/.exec(by)?.[0] ?? suite) : suite.replace('test/', '');
    console.log(`| ${name} | ${what} | ${outcome} | ${where} | ${seconds.toFixed(0)} |`);
  }
}
const outcomes = chosen.map(({ name }) => ({ name, outcome: verdicts.get(name)?.outcome ?? 'stuck' }));
const counted = (wanted: Verdict['outcome'], word: string): string => {
  const names = outcomes.filter(({ outcome }) => outcome === wanted).map(({ name }) => name);
  return `${names.length} ${word}${wanted !== 'caught' && names.length > 0 ? ` (${names.join(', ')})` : ''}`;
};
console.log(
  `\n${chosen.length} mutants in ${((performance.now() - began) / 60_000).toFixed(1)} min, seeds ${values.from} to ${Number(values.from) + Number(values.seeds) - 1}: ` +
    [counted('caught', 'caught'), counted('alive', 'alive'), counted('stuck', 'not decided')].join(', '),
);
process.exitCode = outcomes.every(({ outcome }) => outcome === 'caught') ? 0 : 1;
