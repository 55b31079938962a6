/**
 * `npm run simulate -- --seeds N --from S`: runs seeds on all cores, says how far it is, and ends with 1 at the first seed that fails, with what
 * it had drawn and the command that repeats it. `--trace` prints everything that happened in one seed; `--json` ends with one line of figures.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { addTo, neverReached, nothing, Runner } from './campaign.ts';
import type { Sums } from './campaign.ts';
import type { Environment } from './environment.ts';

/** What a worker says of one seed. */
interface Said {
  readonly seed: number;
  readonly faults: readonly string[];
  readonly environment: Environment | undefined;
  readonly sums: Sums;
}

const sayMs = 10_000;
const workerArgument = '--worker';

async function work(): Promise<void> {
  const runner = await Runner.make();
  process.on('message', (seed: number) => {
    void runner.seed(seed).then(({ outcome: { faults, environment }, sums }) => {
      process.send?.({ seed, faults, environment: faults.length > 0 ? environment : undefined, sums } satisfies Said);
    });
  });
  process.on('disconnect', () => {
    runner.leave();
    process.exit();
  });
  process.send?.('ready');
}

async function trace(seed: number): Promise<boolean> {
  const runner = await Runner.make();
  const { outcome } = await runner.seed(seed, true);
  for (const line of outcome.trace ?? []) console.log(line);
  console.log(JSON.stringify(outcome.environment));
  for (const fault of outcome.faults) console.log(`fault: ${fault}`);
  console.log(`trace ${outcome.hash} ${JSON.stringify(outcome.figures)} ${JSON.stringify(outcome.sometimes)}`);
  runner.leave();
  return outcome.faults.length === 0;
}

/** Hands seeds to workers until there are no more, or one has failed. */
async function campaign(
  from: number,
  seeds: number,
  workers: number,
  keepGoing: boolean,
): Promise<{ sums: Sums; failed: Said[]; seconds: number }> {
  const sums = nothing();
  const failed: Said[] = [];
  const began = performance.now();
  let next = from;
  let isCut = false;
  // Stopped early, it still says what it has seen.
  process.once('SIGINT', () => (isCut = true)).once('SIGTERM', () => (isCut = true));
  let saidAt = began;
  const seconds = (): number => (performance.now() - began) / 1_000;
  const run = (child: ChildProcess): Promise<void> =>
    new Promise((resolve, reject) => {
      const give = (): void => {
        if (isCut || next >= from + seeds || (failed.length > 0 && !keepGoing)) {
          child.disconnect();
          resolve();
          return;
        }
        child.send((next += 1) - 1);
      };
      child.on('message', (said: Said | 'ready') => {
        if (said !== 'ready') {
          addTo(sums, said.sums);
          if (said.faults.length > 0) {
            failed.push(said);
            console.error(`seed ${said.seed} failed: ${said.faults[0] ?? ''}`);
          }
        }
        if (performance.now() - saidAt > sayMs) {
          saidAt = performance.now();
          const { figures } = sums;
          console.error(`${figures.seeds} of ${seeds} seeds, ${(figures.seeds / seconds()).toFixed(1)} a second, ${figures.kills} kills`);
        }
        give();
      });
      child.on('error', reject);
      child.on('exit', (code) => {
        if (child.connected || code !== 0) reject(new Error(`a worker ended with ${code ?? 'a signal'}`));
      });
    });
  await Promise.all(
    Array.from({ length: workers }, () => run(fork(import.meta.filename, [workerArgument], { execArgv: ['--max-semi-space-size=32'] }))),
  );
  return { sums, failed, seconds: seconds() };
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
    },
  });
  const from = Number(values.from);
  if (values.trace) return (await trace(from)) ? 0 : 1;
  const { sums, failed, seconds } = await campaign(from, Number(values.seeds), Number(values.workers), values['keep-going']);
  for (const { seed, faults, environment } of failed) {
    console.log(`seed ${seed} failed:`);
    for (const fault of faults) console.log(`  ${fault}`);
    console.log(`  ${JSON.stringify(environment)}`);
    console.log(`  repeat it: npm run simulate -- --from ${seed} --trace`);
  }
  const rare = failed.length > 0 ? [] : neverReached(sums);
  for (const words of rare) console.log(`too seldom: ${words}`);
  const rate = Math.round((sums.figures.seeds / seconds) * 10) / 10;
  console.log(
    `${Object.entries(sums.figures)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')}; ${sums.twice} run twice; ${rate} seeds/s`,
  );
  console.log(
    Object.entries(sums.sometimes)
      .map(([state, count]) => `${state} ${count}`)
      .join(', '),
  );
  const faults = failed.length + rare.length;
  if (values.json)
    console.log(
      JSON.stringify({ from, failed: failed.map(({ seed }) => seed), ...sums, seconds: Math.round(seconds), seedsPerSecond: rate }),
    );
  return faults === 0 ? 0 : 1;
}

if (process.argv[2] === workerArgument) await work();
else process.exitCode = await main();
