/**
 * `npm run bench -- sources [--records 500000] [--sources 50] [--rounds 5] [--save]`: the same
 * number of records of the same period from many sources and from one, into a file, in interleaved
 * rounds: CPU from process start until every window is proven and every record delivered. The file
 * is checked record by record.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Snapshot } from '../src/model/snapshot.ts';
import { configuration, tenants } from './configuration.ts';
import { flag, options, positiveInteger, refuse } from './options.ts';
import { check, requireAll } from './peers/check.ts';
import { ask, cpuSeconds, memoryMiB, sleep, start } from './process.ts';
import { waybill } from './program.ts';
import { machine, publish } from './publish.ts';
import { perSecond } from './record.ts';
import { digits, rangeOf, rangeText } from './result.ts';

const {
  records,
  sources: many,
  rounds,
  save,
} = options({ records: positiveInteger(500_000), sources: positiveInteger(50), rounds: positiveInteger(5), save: flag });
if (records % many !== 0) refuse(`--records ${records} is not a multiple of --sources ${many}`);
/**
 * A source recounts a sample window every third of the close delay, by default every five minutes.
 * With the 3 s of the other benchmarks such recounts would be half of all requests.
 */
const closeDelay = '60s';
const timeoutMs = 1_200_000;
/** A snapshot reads the ledger of every source: ten a second would be a third of the CPU of 50 sources. */
const snapshotMs = 2_000;
const sentence = machine();
const directory = mkdtempSync(join(tmpdir(), 'waybill-sources-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const seconds = Math.ceil(records / perSecond);
// The log ends a while ago, so that all of it is history.
const beginMs = Math.floor(Date.now() / 1000) * 1000 - seconds * 1000 - 600_000;

interface Run {
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly peakMiB: number;
  readonly requests: number;
}

const runs = { one: [] as Run[], many: [] as Run[] };
for (let round = 0; round < rounds; round += 1) {
  runs.one.push(await measure(1));
  runs.many.push(await measure(many));
  const [one, all] = [runs.one.at(-1), runs.many.at(-1)];
  process.stderr.write(`round ${round + 1}: ${digits((all?.cpuSeconds ?? NaN) / (one?.cpuSeconds ?? NaN))} times the CPU of one source\n`);
}
report();

async function measure(sources: number): Promise<Run> {
  const each = records / sources;
  const rate = perSecond / sources;
  await using server = start(process.execPath, [join(import.meta.dirname, 'server.ts'), String(each), String(beginMs), String(rate)]);
  const { port } = JSON.parse(await server.firstLine) as { port: number };
  const folder = join(directory, 'run');
  mkdirSync(folder);
  const file = join(folder, 'events.ndjson');
  writeFileSync(
    join(folder, 'waybill.yaml'),
    configuration(port, beginMs, [{ id: 'file', type: 'file', path: file }], { sources, closeDelay }),
  );
  const begin = performance.now();
  await using daemon = start(waybill(), ['run', '--config', 'waybill.yaml'], folder);
  daemon.firstLine.catch(() => undefined);
  const socketPath = join(folder, 'state', 'waybill.sock');
  for (;;) {
    await sleep(snapshotMs);
    const now = await ask<Snapshot>({ socketPath }, '/snapshot');
    if (now !== undefined && isDone(now)) break;
    if (performance.now() - begin > timeoutMs) throw new Error(`${sources} sources have not finished after ${timeoutMs / 1000} s`);
  }
  const used = { seconds: (performance.now() - begin) / 1000, cpuSeconds: cpuSeconds(daemon.pid), peakMiB: memoryMiB(daemon.pid).peak };
  const stats = await ask<{ pages: number; counts: number }>({ port }, '/stats');
  requireAll(`${sources} sources`, await check(file, 'ECS', { records: each, beginMs, rate, tenants: tenants(sources) }));
  await daemon[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true });
  return { ...used, requests: (stats?.pages ?? 0) + (stats?.counts ?? 0) };
}

/** Every window of the log is proven, and every record delivered. */
function isDone({ sources, sinks }: Snapshot): boolean {
  const collected = sources.reduce((sum, source) => sum + source.collected, 0);
  const isProven = sources.every(({ closedUntil, windows }) => closedUntil >= (beginMs + seconds * 1000) * 1000 && windows.gap === 0);
  return collected === records && isProven && sinks.every(({ lagEntries }) => lagEntries === 0);
}

function report(): void {
  const per100k = ({ cpuSeconds: used }: Run): number => (used / records) * 100_000;
  const row = (name: string, of: readonly Run[]): string[] => [
    name,
    rangeText(rangeOf(of.map((run) => records / run.seconds))),
    rangeText(rangeOf(of.map(per100k))),
    rangeText(rangeOf(of.map(({ requests }) => requests))),
    digits(rangeOf(of.map(({ peakMiB }) => peakMiB)).max),
  ];
  // Each round is compared with itself.
  const ratio = rangeOf(runs.many.flatMap((run, i) => runs.one.slice(i, i + 1).map((one) => run.cpuSeconds / one.cpuSeconds))).median;
  publish(
    'sources',
    {
      title: 'Many sources',
      command: `npm run bench -- sources --records ${records} --sources ${many} --rounds ${rounds}`,
      text: [sentence, `From process start to the last window and record; median (lowest–highest) of ${rounds} interleaved rounds.`],
      tables: [
        {
          caption: `${records.toLocaleString('en-US')} records of the same ${(seconds / 3600).toFixed(1)} h:`,
          columns: ['', 'records/s', 'CPU s per 100,000', 'requests', 'peak MiB'],
          rows: [row('one source', runs.one), row(`${many} sources`, runs.many)],
        },
      ],
      bars: [{ what: `CPU of ${many} sources, of one source`, value: ratio, limit: 'at most', bar: 1.3, goal: 1.15 }],
    },
    save,
  );
}
