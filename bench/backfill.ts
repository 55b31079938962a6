/**
 * `npm run bench -- backfill [--records 2000000] [--file] [--json]`: history added to a ledger by
 * `waybill backfill`, while the daemon continues to poll. Measures the rate, resident memory at
 * each tenth of the records, and the cost of one `kill -9` half-way. Machines are shared: quote
 * ratios.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Snapshot } from '../src/model/snapshot.ts';
import { configuration } from './configuration.ts';
import { flag, options, positiveInteger } from './options.ts';
import { ask, cpuSeconds, memoryMiB, sleep, start } from './process.ts';
import type { Program } from './process.ts';
import { waybill } from './program.ts';
import { perSecond } from './record.ts';

/** `file`: also delivers to a file of raw records. */
const { records, file, json } = options({ records: positiveInteger(2_000_000), file: flag, json: flag });
const root = fileURLToPath(new URL('..', import.meta.url));
const program = waybill();
const directory = mkdtempSync(join(tmpdir(), 'waybill-bench-backfill-'));
const work = join(directory, 'daemon');
mkdirSync(work);
const seconds = Math.ceil(records / perSecond);
// All records lie before the start of the ledger.
const endMs = Math.floor(Date.now() / 1000) * 1000 - 600_000;
const beginMs = endMs - seconds * 1000;
const socketPath = join(work, 'state', 'waybill.sock');
const config = join(work, 'waybill.yaml');
const say = (line: string): void => void process.stderr.write(`${line}\n`);

interface Phase {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMiB: number;
  readonly collected: number;
}

const snapshot = (): Promise<Snapshot | undefined> => ask<Snapshot>({ socketPath }, '/snapshot');
const collected = (of: Snapshot): number => of.sources[0]?.collected ?? 0;
const memory: number[] = [];

const server = start(process.execPath, [join(root, 'bench/server.ts'), String(records), String(beginMs)]);
try {
  const { port } = JSON.parse(await server.firstLine) as { port: number };
  const sinks = file ? [{ id: 'file', type: 'file', path: join(work, 'records.ndjson'), format: 'raw' }] : [];
  writeFileSync(config, configuration(port, endMs, sinks));
  const phases: Phase[] = [];
  let daemon = run();
  while (((await snapshot())?.sources[0]?.windows.proven ?? 0) === 0) await sleep(50);
  await backfill();
  phases.push(await phase(daemon, (now) => collected(now) >= records / 2));
  process.kill(daemon.pid, 'SIGKILL');
  await daemon.ended;
  const killed = performance.now();
  daemon = run();
  let begun = 0;
  while (begun === 0) {
    const now = await snapshot();
    if (now && collected(now) > (phases[0]?.collected ?? 0) + 5_000) begun = performance.now();
    else await sleep(20);
  }
  phases.push(
    await phase(daemon, (now) => now.sources[0]?.backfills?.length === 0 && now.sinks.every(({ lagEntries }) => lagEntries === 0)),
  );
  const last = await snapshot();
  const source = last?.sources[0];
  if (source?.collected !== records) throw new Error(`${source?.collected ?? 0} of ${records} records`);
  if (source.windows.gap !== 0) throw new Error('a window was not proven');
  await daemon[Symbol.asyncDispose]();
  const spent = phases.reduce((sum, each) => sum + each.seconds, 0);
  const result = {
    records,
    file,
    recordsPerSecond: Math.round(collectedIn(phases) / spent),
    cpuPer100k: (phases.reduce((sum, each) => sum + each.cpuSeconds, 0) / records) * 100_000,
    secondsUntilItGoesOn: (begun - killed) / 1000,
    peakMiB: Math.round(Math.max(...phases.map(({ peakMiB }) => peakMiB))),
    memory,
    windows: source.windows.proven,
  };
  if (json) process.stdout.write(`${JSON.stringify(result)}\n`);
  else say(JSON.stringify(result, null, 2));
} finally {
  await server[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
}

/** Records appended during the phases, without those between the kill and the next sample. */
function collectedIn([first, second]: readonly Phase[]): number {
  return (first?.collected ?? 0) + (second?.collected ?? 0);
}

function run(): Program {
  const daemon = start(program, ['run', '--config', config], work);
  daemon.firstLine.catch(() => undefined);
  return daemon;
}

async function backfill(): Promise<void> {
  const from = new Date(beginMs).toISOString();
  const asked = start(program, ['backfill', '--config', config, '--from', from, '--no-wait', '--yes', '--json'], work);
  say(await asked.firstLine);
  if ((await asked.ended) !== 0) throw new Error('the backfill was not added');
}

async function phase(daemon: Program, done: (now: Snapshot) => boolean): Promise<Phase> {
  const begin = performance.now();
  const cpu = cpuSeconds(daemon.pid);
  let first: number | undefined;
  for (;;) {
    await sleep(200);
    const now = await snapshot();
    if (!now) continue;
    first ??= collected(now);
    if (memory.length < Math.floor((collected(now) / records) * 10)) {
      memory.push(Math.round(memoryMiB(daemon.pid).now));
      say(`${collected(now)} records, ${memory.at(-1)} MiB, ${Math.round(now.sources[0]?.backfills?.[0]?.perSecond ?? 0)} records/s`);
    }
    if (!done(now)) continue;
    const { peak } = memoryMiB(daemon.pid);
    return {
      seconds: (performance.now() - begin) / 1000,
      cpuSeconds: cpuSeconds(daemon.pid) - cpu,
      peakMiB: peak,
      collected: collected(now) - first,
    };
  }
}
