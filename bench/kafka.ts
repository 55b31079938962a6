/**
 * `node bench/kafka.ts [--records 200000] [--format cef,ecs] [--batch N] [--broker HOST:PORT] [--json]`: a filled journal to a real Kafka by the daemon, in
 * transactions of 1,000 messages of CEF and of 300 of ECS, beside kafkajs alone with the same messages, made before, in the same run. Without `--broker` one
 * is started as for `npm run test:servers`. Machines are shared: quote ratios.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import kafkajs from 'kafkajs';
import type { Snapshot } from '../src/model/snapshot.ts';
import { quietTimers } from '../src/sink/kafka/timers.ts';
import { KafkaBroker, kafkaMissing, kafkaVersions } from '../test/servers/kafka-broker.ts';
import { configuration } from './configuration.ts';
import { ask, cpuSeconds, memoryMiB, sleep, start } from './process.ts';
import { perSecond } from './record.ts';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '200000' },
    format: { type: 'string', default: 'cef,ecs' },
    batch: { type: 'string' },
    broker: { type: 'string' },
    json: { type: 'boolean', default: false },
  },
});
const records = Number(values.records);
/** Messages of a transaction: so many that what is between two of them is not what is measured. */
const usual = { cef: 1_000, ecs: 300 } as const;
type Format = keyof typeof usual;
const partitions = 6;
const root = fileURLToPath(new URL('..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'waybill-bench-kafka-'));
const beginMs = Math.floor(Date.now() / 1000) * 1000 - Math.ceil(records / perSecond) * 1000 - 600_000;
const endMs = beginMs + Math.ceil(records / perSecond) * 1000;
const say = (line: string): void => void process.stderr.write(`${line}\n`);

interface Run {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

const missing = values.broker === undefined ? kafkaMissing(kafkaVersions[0]) : undefined;
if (missing !== undefined) throw new Error(`no Kafka: ${missing}`);
const broker = values.broker === undefined ? await KafkaBroker.start(kafkaVersions[0]) : undefined;
const address = broker?.address() ?? values.broker ?? '';
const server = start(process.execPath, [join(root, 'bench/server.ts'), String(records), String(beginMs)]);
try {
  const { port } = JSON.parse(await server.firstLine) as { port: number };
  quietTimers();
  const admin = new kafkajs.Kafka({ brokers: [address], logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  const replicationFactor = 1;
  const formats = values.format.split(',').map((name): Format => {
    if (name in usual) return name as Format;
    throw new Error(`no format "${name}": there are ${Object.keys(usual).join(', ')}`);
  });
  const topics = formats
    .flatMap((format) => [`bench-${format}`, `bench-bare-1-${format}`, `bench-bare-2-${format}`])
    .map((topic) => ({ topic, numPartitions: partitions, replicationFactor }));
  await admin.createTopics({
    waitForLeaders: true,
    topics: [...topics, { topic: 'bench-bare-progress', numPartitions: 1, replicationFactor }],
  });
  await admin.disconnect();
  await fill(port);
  const compared = [];
  for (const format of formats)
    compared.push(await compare(port, format, values.batch === undefined ? usual[format] : Number(values.batch)));
  if (values.json) process.stdout.write(`${JSON.stringify({ records, compared })}\n`);
} finally {
  await server[Symbol.asyncDispose]();
  await broker?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
}

/** The bare client, the daemon on a copy of the filled state, and the bare client again: its mean is the floor. */
async function compare(port: number, format: Format, batch: number): Promise<object> {
  const before = await bare(`bench-bare-1-${format}`, format, batch);
  const daemon = await deliver(port, format, batch);
  const after = await bare(`bench-bare-2-${format}`, format, batch);
  const floor = { seconds: (before.seconds + after.seconds) / 2, cpuSeconds: (before.cpuSeconds + after.cpuSeconds) / 2 };
  // Counted by kcat: what was not committed would be missing, what was sent twice too many.
  const count = (await broker?.count(`bench-${format}`)) ?? records;
  if (count !== records) throw new Error(`${count} of ${records} records are in Kafka`);
  return report(`${batch} messages of ${format} a transaction`, floor, daemon);
}

async function bare(topic: string, format: Format, batch: number): Promise<Run> {
  const parameters = [address, topic, 'bench-bare-progress', String(records), String(batch), String(partitions), String(beginMs), format];
  const program = start(process.execPath, [join(root, 'bench/kafka-bare.ts'), ...parameters]);
  const run = JSON.parse(await program.firstLine) as Run;
  await program.ended;
  return run;
}

/** Everything into the journal, with nothing to send it to. */
async function fill(port: number): Promise<void> {
  const daemon = run(port, 'filled', []);
  while (((await snapshot('filled'))?.sources[0]?.closedUntil ?? 0) < endMs * 1000) await sleep(250);
  await daemon[Symbol.asyncDispose]();
}

/** From the first batch that was taken to the last record. */
async function deliver(port: number, format: Format, batch: number): Promise<Run & { readonly peakMiB: number }> {
  const sink = { id: `bench-${format}`, type: 'kafka', brokers: [address], topic: `bench-${format}`, format, batch: { maxRecords: batch } };
  cpSync(join(directory, 'filled', 'state'), join(directory, format, 'state'), { recursive: true });
  await using daemon = run(port, format, [sink]);
  let first = 0;
  while ((first = (await snapshot(format))?.sinks[0]?.acknowledged ?? 0) === 0) await sleep(5);
  const [began, cpu] = [performance.now(), cpuSeconds(daemon.pid)];
  for (;;) {
    await sleep(50);
    const now = await snapshot(format);
    if (now?.sinks[0]?.lagRecords === 0) break;
  }
  // What was taken before the first look is left out of both.
  const share = records / (records - first);
  const seconds = ((performance.now() - began) / 1000) * share;
  return { seconds, cpuSeconds: (cpuSeconds(daemon.pid) - cpu) * share, peakMiB: memoryMiB(daemon.pid).peak };
}

function run(port: number, name: string, sinks: readonly object[]): ReturnType<typeof start> {
  const work = join(directory, name);
  mkdirSync(work, { recursive: true });
  writeFileSync(join(work, 'waybill.yaml'), configuration(port, beginMs, sinks));
  const daemon = start(join(root, 'bin/waybill.js'), ['run', '--config', join(work, 'waybill.yaml')], work);
  daemon.firstLine.catch(() => undefined);
  return daemon;
}

function snapshot(name: string): Promise<Snapshot | undefined> {
  return ask<Snapshot>({ socketPath: join(directory, name, 'state', 'waybill.sock') }, '/snapshot');
}

function report(what: string, floor: Run, daemon: Run & { readonly peakMiB: number }): object {
  const per100k = ({ cpuSeconds: used }: Run): number => (used / records) * 100_000;
  const rows = [
    { what: `kafkajs alone, messages made before, ${what}`, rate: records / floor.seconds, cpu: per100k(floor) },
    { what: `filled journal to Kafka, ${what}`, rate: records / daemon.seconds, cpu: per100k(daemon) },
  ];
  for (const row of rows) say(`${row.what}: ${Math.round(row.rate)} records/s, ${row.cpu.toFixed(2)} CPU s per 100,000`);
  const ratio = floor.seconds / daemon.seconds;
  say(
    `of the floor: ${ratio.toFixed(2)} of its rate, ${(per100k(daemon) / per100k(floor)).toFixed(2)} of its CPU; at most ${Math.round(daemon.peakMiB)} MiB`,
  );
  return { what, rows, ratio, peakMiB: daemon.peakMiB };
}
