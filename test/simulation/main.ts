/**
 * `npm run simulate -- --seeds N --from S`: runs seeds on all cores, says how far it is, and ends with 1 at the first seed that fails, with what
 * it had drawn and the command that repeats it. `--trace` prints everything that happened in one seed; `--json` ends with one line of figures.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { addTo, neverReached, nothing, Runner } from './campaign.ts';
import type { Said, Sums, Task } from './campaign.ts';
import type { Environment } from './environment.ts';
import { commandOf, scripts, undisturbed } from './every-effect.ts';
import type { Script } from './simulate.ts';
import { serve, share, workerArgument } from './workers.ts';

const sayMs = 10_000;

async function work(): Promise<void> {
  const runner = await Runner.make();
  serve(
    async (task) => {
      const { outcome, sums } = await runner.task(task);
      const { faults, environment } = outcome;
      return { task, faults, environment: faults.length > 0 && 'seed' in task ? environment : undefined, sums };
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

/** Hands tasks to workers until there are no more, or one has failed. */
async function campaign(
  tasks: Iterator<Task, unknown>,
  many: number,
  words: string,
  workers: number,
  keepGoing: boolean,
): Promise<{ sums: Sums; failed: Said[]; seconds: number }> {
  const sums = nothing();
  const failed: Said[] = [];
  const began = performance.now();
  let saidAt = began;
  const seconds = (): number => (performance.now() - began) / 1_000;
  await share(import.meta.filename, tasks, workers, (said) => {
    addTo(sums, said.sums);
    if (said.faults.length > 0) {
      failed.push(said);
      console.error(`${nameOf(said.task)} failed: ${said.faults[0] ?? ''}`);
    }
    if (performance.now() - saidAt > sayMs) {
      saidAt = performance.now();
      const { figures } = sums;
      console.error(`${figures.seeds} of ${many} ${words}, ${(figures.seeds / seconds()).toFixed(1)} a second, ${figures.kills} kills`);
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
  return 'seed' in task ? `npm run simulate -- --from ${task.seed} --trace` : commandOf(task.script);
}

/** One script ended at every effect. */
async function everyEffect(only: string | undefined, isPowerCut: boolean, every: number, pairs: number, workers: number): Promise<boolean> {
  if (only !== undefined) return trace({ script: { ends: only.split(',').map(Number), isPowerCut } });
  const runner = await Runner.make();
  const { outcome } = await runner.task({ script: undisturbed });
  runner.leave();
  const all = [...scripts(outcome.effects, pairs, every)];
  const rest = `${outcome.figures.records} records, ${outcome.effects} effects`;
  if (outcome.faults.length > 0) console.log(`the scene itself fails: ${outcome.faults.join('; ')}`);
  if (outcome.faults.length > 0) return false;
  const tasks = all.map((script) => ({ script })).values();
  const { sums, failed, seconds } = await campaign(tasks, all.length, 'ends', workers, false);
  for (const { task, faults } of failed) sayFailed(task, faults, undefined);
  const count = (isIt: (script: Script) => boolean): number => all.filter(isIt).length;
  const single = `${count((s) => s.ends.length === 1 && !s.isPowerCut)} killed once, ${count((s) => s.ends.length === 1 && s.isPowerCut)} by a power cut`;
  console.log(`${rest}; ${sums.figures.seeds} runs of ${all.length} (${single}, ${count((s) => s.ends.length === 2)} twice)`);
  sayFigures(sums, seconds, 'runs');
  return failed.length === 0;
}

function sayFailed(task: Task, faults: readonly string[], environment: Environment | undefined): void {
  console.log(`${nameOf(task)} failed:`);
  for (const fault of faults) console.log(`  ${fault}`);
  if (environment) console.log(`  ${JSON.stringify(environment)}`);
  console.log(`  repeat it: ${commandTo(task)}`);
}

/** @returns how many there were a second */
function sayFigures({ figures, sometimes, twice }: Sums, seconds: number, words: string): number {
  const rate = Math.round((figures.seeds / seconds) * 10) / 10;
  const counts = (of: object): string =>
    Object.entries(of)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ');
  console.log(`${counts(figures)}; ${twice} run twice; ${rate} ${words}/s`);
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
    },
  });
  const from = Number(values.from);
  const seeds = Number(values.seeds);
  const workers = Number(values.workers);
  if (values['every-effect']) {
    const { only, step, pairs, 'power-cut': isPowerCut } = values;
    return (await everyEffect(only, isPowerCut, Number(step), Number(pairs), workers)) ? 0 : 1;
  }
  if (values.trace) return (await trace({ seed: from })) ? 0 : 1;
  const { sums, failed, seconds } = await campaign(seedsFrom(from, seeds), seeds, 'seeds', workers, values['keep-going']);
  for (const { task, faults, environment } of failed) sayFailed(task, faults, environment);
  const rare = failed.length > 0 ? [] : neverReached(sums);
  for (const words of rare) console.log(`too seldom: ${words}`);
  const rate = sayFigures(sums, seconds, 'seeds');
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
