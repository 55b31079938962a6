/**
 * `npm run simulate -- --seeds N --from S`: runs seeds on all cores, prints progress, and exits
 * with 1 at the first seed that fails. It prints the environment of that seed, and the command that
 * repeats it. `--shard`: the journal is a shard of a fleet, on a model of its database. `--trace` prints each step of one seed; `--json` prints the figures as one line of
 * JSON at the end.
 *
 * promise: Kills and power failures at any statement, with random faults of service and receivers: nothing lost, nothing twice, no false proof.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { addTo, nothing, Runner, tooSeldom } from './campaign.ts';
import type { Result, Sums, Task } from './campaign.ts';
import type { Environment } from './environment.ts';
import { commandOf, scripts, undisturbed } from './every-effect.ts';
import type { Script } from './simulate.ts';
import { serve, share, workerArgument } from './workers.ts';

const progressMs = 10_000;

async function work(): Promise<void> {
  const runner = await Runner.make();
  serve(
    async (task) => {
      try {
        const { outcome, sums } = await runner.task(task);
        const { faults, environment } = outcome;
        return { task, faults, environment: faults.length > 0 && 'seed' in task ? environment : undefined, sums };
      } catch (thrown) {
        const fault = `the run ended with an error: ${thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)}`;
        return { task, faults: [fault], environment: undefined, sums: nothing() };
      }
    },
    () => runner.leave(),
  );
}

async function trace(task: Task): Promise<boolean> {
  const runner = await Runner.make();
  const { outcome } = await runner.task(task, true);
  for (const line of outcome.trace ?? []) console.log(line);
  console.log(JSON.stringify(outcome.environment));
  for (const fault of outcome.faults) console.log(`fault: ${fault}`);
  console.log(`trace ${outcome.hash} ${JSON.stringify(outcome.figures)} ${JSON.stringify(outcome.sometimes)}`);
  runner.leave();
  return outcome.faults.length === 0;
}

/** Gives tasks to workers until there are no more, or one has failed. */
async function campaign(
  tasks: Iterator<Task, unknown>,
  many: number,
  unit: string,
  workers: number,
  keepGoing: boolean,
): Promise<{ sums: Sums; failed: Result[]; seconds: number }> {
  const sums = nothing();
  const failed: Result[] = [];
  const began = performance.now();
  let printedAt = began;
  const seconds = (): number => (performance.now() - began) / 1_000;
  await share(import.meta.filename, tasks, workers, (result) => {
    addTo(sums, result.sums);
    if (result.faults.length > 0) {
      failed.push(result);
      console.error(`${nameOf(result.task)} failed: ${result.faults[0] ?? ''}`);
    }
    if (performance.now() - printedAt > progressMs) {
      printedAt = performance.now();
      const { figures } = sums;
      console.error(`${figures.seeds} of ${many} ${unit}, ${(figures.seeds / seconds()).toFixed(1)} a second, ${figures.kills} kills`);
    }
    return failed.length === 0 || keepGoing;
  });
  return { sums, failed, seconds: seconds() };
}

function nameOf(task: Task): string {
  if ('seed' in task) return `seed ${task.seed}`;
  const { ends, isPowerCut } = task.script;
  return `the end at ${ends.join(' and ')}${isPowerCut ? ' (power cut)' : ''}`;
}

function commandTo(task: Task): string {
  return 'seed' in task ? `npm run simulate --${shardOption()} --from ${task.seed} --trace` : commandOf(task.script);
}

function shardOption(): string {
  return process.env['WAYBILL_SIMULATION_SHARD'] === undefined ? '' : ' --shard';
}

/** Runs the fixed scene once for each effect, and ends the daemon at that effect. */
async function everyEffect(only: string | undefined, isPowerCut: boolean, every: number, pairs: number, workers: number): Promise<boolean> {
  if (only !== undefined) return trace({ script: { ends: only.split(',').map(Number), isPowerCut } });
  const runner = await Runner.make();
  const { outcome } = await runner.task({ script: undisturbed });
  runner.leave();
  const all = [...scripts(outcome.effects, pairs, every)];
  const rest = `${outcome.figures.records} records, ${outcome.effects} effects`;
  if (outcome.faults.length > 0) console.log(`the undisturbed scene fails: ${outcome.faults.join('; ')}`);
  if (outcome.faults.length > 0) return false;
  const tasks = all.map((script) => ({ script })).values();
  const { sums, failed, seconds } = await campaign(tasks, all.length, 'ends', workers, false);
  for (const { task, faults } of failed) printFailed(task, faults, undefined);
  const count = (isIt: (script: Script) => boolean): number => all.filter(isIt).length;
  const single = `${count((s) => s.ends.length === 1 && !s.isPowerCut)} killed once, ${count((s) => s.ends.length === 1 && s.isPowerCut)} by a power cut`;
  console.log(`${rest}; ${sums.figures.seeds} runs of ${all.length} (${single}, ${count((s) => s.ends.length === 2)} twice)`);
  printFigures(sums, seconds, 'runs');
  return failed.length === 0;
}

function printFailed(task: Task, faults: readonly string[], environment: Environment | undefined): void {
  console.log(`${nameOf(task)} failed:`);
  for (const fault of faults) console.log(`  ${fault}`);
  if (environment) console.log(`  ${JSON.stringify(environment)}`);
  console.log(`  repeat with: ${commandTo(task)}`);
}

/** @returns the runs per second */
function printFigures({ figures, sometimes, twice }: Sums, seconds: number, unit: string): number {
  const rate = Math.round((figures.seeds / seconds) * 10) / 10;
  const counts = (of: object): string =>
    Object.entries(of)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ');
  console.log(`${counts(figures)}; ${twice} run twice; ${rate} ${unit}/s`);
  console.log(counts(sometimes));
  return rate;
}

function* seedsFrom(from: number, many: number): Generator<Task, undefined> {
  for (let seed = from; seed < from + many; seed += 1) yield { seed };
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '300' },
      from: { type: 'string', default: '1' },
      workers: { type: 'string', default: String(availableParallelism()) },
      trace: { type: 'boolean', default: false },
      json: { type: 'boolean', default: false },
      'keep-going': { type: 'boolean', default: false },
      'every-effect': { type: 'boolean', default: false },
      step: { type: 'string', default: '1' },
      pairs: { type: 'string', default: '500' },
      only: { type: 'string' },
      'power-cut': { type: 'boolean', default: false },
      shard: { type: 'boolean', default: false },
    },
  });
  // The workers inherit it.
  if (values.shard) process.env['WAYBILL_SIMULATION_SHARD'] = 'yes';
  const from = Number(values.from);
  const seeds = Number(values.seeds);
  const workers = Number(values.workers);
  if (values['every-effect']) {
    const { only, step, pairs, 'power-cut': isPowerCut } = values;
    return (await everyEffect(only, isPowerCut, Number(step), Number(pairs), workers)) ? 0 : 1;
  }
  if (values.trace) return (await trace({ seed: from })) ? 0 : 1;
  const { sums, failed, seconds } = await campaign(seedsFrom(from, seeds), seeds, 'seeds', workers, values['keep-going']);
  for (const { task, faults, environment } of failed) printFailed(task, faults, environment);
  const rare = failed.length > 0 ? [] : tooSeldom(sums);
  for (const state of rare) console.log(`too seldom: ${state}`);
  const rate = printFigures(sums, seconds, 'seeds');
  const faults = failed.length + rare.length;
  if (values.json)
    console.log(
      JSON.stringify({
        from,
        failed: failed.map(({ task }) => ('seed' in task ? task.seed : task)),
        ...sums,
        seconds: Math.round(seconds),
        seedsPerSecond: rate,
      }),
    );
  return faults === 0 ? 0 : 1;
}

if (process.argv[2] === workerArgument) await work();
else process.exitCode = await main();
