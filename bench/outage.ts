/**
 * `npm run bench -- outage [--records 2000000] [--save]`: delivers history to three sinks of which
 * one is down. Measures the CPU of each tenth of the records, which must not grow with the backlog,
 * and memory. The files of the other two sinks are checked record by record.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Snapshot } from '../src/model/snapshot.ts';
import { configuration } from './configuration.ts';
import { flag, options, positiveInteger } from './options.ts';
import { check, requireAll } from './peers/check.ts';
import { ask, cpuSeconds, memoryMiB, sleep, start } from './process.ts';
import { waybill } from './program.ts';
import { machine, publish } from './publish.ts';
import { perSecond } from './record.ts';
import { digits } from './result.ts';

const { records, save } = options({ records: positiveInteger(2_000_000), save: flag });
const sentence = machine();
const directory = mkdtempSync(join(tmpdir(), 'waybill-outage-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const files = ['one', 'two'].map((name) => join(directory, `${name}.ndjson`));
// The log ends a while ago, so that all of it is history.
const beginMs = Math.floor(Date.now() / 1000) * 1000 - Math.ceil(records / perSecond) * 1000 - 600_000;
const timeoutMs = 3_600_000;
/** A snapshot reads the ledger, at the cost of the measured program. */
const snapshotMs = 1_000;

interface Sample {
  /** The share of all records that both files have. */
  readonly share: number;
  readonly cpu: number;
  readonly atMs: number;
  readonly mebibytes: number;
}

await using server = start(process.execPath, [join(import.meta.dirname, 'server.ts'), String(records), String(beginMs)]);
const { port } = JSON.parse(await server.firstLine) as { port: number };
const sinks = [
  ...files.map((path, i) => ({ id: `file-${i + 1}`, type: 'file', path })),
  // The discard port: nothing listens there.
  { id: 'down', type: 'elasticsearch', nodes: 'http://127.0.0.1:9' },
];
writeFileSync(join(directory, 'waybill.yaml'), configuration(port, beginMs, sinks));
await using daemon = start(waybill(), ['run', '--config', 'waybill.yaml'], directory);
daemon.firstLine.catch(() => undefined);
const samples = await collect();
const peak = memoryMiB(daemon.pid).peak;
await daemon[Symbol.asyncDispose]();
await server[Symbol.asyncDispose]();
for (const file of files) requireAll(file, await check(file, 'ECS', { records, beginMs }));
report();

async function collect(): Promise<Sample[]> {
  const socketPath = join(directory, 'state', 'waybill.sock');
  const found: Sample[] = [];
  const begin = performance.now();
  for (;;) {
    await sleep(snapshotMs);
    const now = await ask<Snapshot>({ socketPath }, '/snapshot');
    const atMs = performance.now() - begin;
    if (now === undefined) continue;
    const delivered = now.sinks.filter(({ id }) => id !== 'down').map(({ acknowledged }) => acknowledged);
    const share = Math.min(...delivered) / records;
    found.push({ share, cpu: cpuSeconds(daemon.pid), atMs, mebibytes: memoryMiB(daemon.pid).now });
    if (share >= 1) return found;
    if (atMs > timeoutMs) throw new Error(`${Math.round(share * 100)} % of the records were delivered in ${timeoutMs / 1000} s`);
  }
}

/** The interpolated value at the moment when a share of the records was delivered. */
function valueAt(share: number, key: 'cpu' | 'atMs' | 'mebibytes'): number {
  const after = Math.max(
    0,
    samples.findIndex((sample) => sample.share >= share),
  );
  const [a, b] = [samples[Math.max(0, after - 1)], samples[after]];
  if (a === undefined || b === undefined) throw new Error('no sample was taken');
  return a.share === b.share ? b[key] : a[key] + ((b[key] - a[key]) * (share - a.share)) / (b.share - a.share);
}

function report(): void {
  const tenths = Array.from({ length: 10 }, (_, i) => {
    const [from, to] = [i / 10, (i + 1) / 10];
    return {
      cpu: ((valueAt(to, 'cpu') - valueAt(from, 'cpu')) / (records / 10)) * 100_000,
      rate: records / 10 / ((valueAt(to, 'atMs') - valueAt(from, 'atMs')) / 1000),
      mebibytes: valueAt(to, 'mebibytes'),
    };
  });
  const flat = (tenths[9]?.cpu ?? NaN) / (tenths[1]?.cpu ?? NaN);
  publish(
    'outage',
    {
      title: 'Three sinks, one of them down',
      command: `npm run bench -- outage --records ${records}`,
      text: [sentence, `${records.toLocaleString('en-US')} records to two files and to an Elasticsearch that does not run.`],
      tables: [
        {
          caption: 'Each tenth of the records:',
          columns: ['tenth', 'records/s', 'CPU s per 100,000', 'resident MiB'],
          rows: tenths.map(({ rate, cpu, mebibytes }, i) => [String(i + 1), digits(rate), digits(cpu), digits(mebibytes)]),
        },
      ],
      bars: [
        { what: 'CPU of the last tenth, of the second', value: flat, limit: 'at most', bar: 1.1 },
        { what: 'peak memory', unit: ' MiB', value: peak, limit: 'at most', bar: 300, goal: 220 },
      ],
    },
    save,
  );
}
