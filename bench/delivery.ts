/**
 * `npm run bench -- delivery [--records 200000] [--rounds 5]
 * [--to file,relp,elasticsearch,kafka,kafka-ecs] [--save]`: records per second and CPU seconds per
 * 100,000 records from a filled journal to each real receiver, beside a bare client with the same
 * messages in the same batches, in interleaved rounds. The ids of the records are compared at the
 * receiver.
 */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Snapshot } from '../src/model/snapshot.ts';
import { configuration } from './configuration.ts';
import type { FloorOrder, FloorResult } from './delivery-floor.ts';
import { flag, options, positiveInteger, refuse, someOf } from './options.ts';
import { requireAll } from './peers/check.ts';
import { ask, cpuSeconds, sleep, start } from './process.ts';
import { waybill } from './program.ts';
import { machine, publish } from './publish.ts';
import { perSecond } from './record.ts';
import { endReceivers, kinds } from './receivers.ts';
import type { Kind, Target } from './receivers.ts';
import { digits, rangeOf, rangeText } from './result.ts';
import type { Bar } from './result.ts';
import { Tally } from './tally.ts';

const names = kinds.map(({ name }) => name);
const { records, to, rounds, save } = options({
  records: positiveInteger(200_000),
  to: someOf(names),
  rounds: positiveInteger(5),
  save: flag,
});
if (save && names.some((name) => !to.includes(name))) refuse('--save needs all receivers: run it without --to');
/** For one run of the daemon or of the bare client. */
const timeoutMs = 900_000;
/** A snapshot reads the ledger, at the cost of the measured program: twenty a second were a fifth of its CPU. */
const snapshotMs = 500;
const sentence = machine();
const root = fileURLToPath(new URL('..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'waybill-bench-delivery-'));
process.on('exit', () => rmSync(directory, { recursive: true, force: true }));
const beginMs = Math.floor(Date.now() / 1000) * 1000 - Math.ceil(records / perSecond) * 1000 - 600_000;
const endMs = beginMs + Math.ceil(records / perSecond) * 1000;
const say = (line: string): void => void process.stderr.write(`${line}\n`);

const rows: string[][] = [];
const bars: Bar[] = [];
const left: string[] = [];
let daemons = 0;
const server = start(process.execPath, [join(root, 'bench/server.ts'), String(records), String(beginMs)]);
try {
  const { port } = JSON.parse(await server.firstLine) as { port: number };
  say(`${records} records are collected into the journal first`);
  await runDaemon('filled', port, undefined, (snapshot) => (snapshot.sources[0]?.closedUntil ?? 0) >= endMs * 1000);
  for (const kind of kinds.filter(({ name }) => to.includes(name))) {
    if (kind.missing === undefined) await compare(kind, port);
    else left.push(`${kind.what}: left out, ${kind.missing}.`);
  }
} finally {
  await server[Symbol.asyncDispose]();
  await endReceivers();
}
publish(
  'delivery',
  {
    title: 'A filled journal to receivers',
    command: `npm run bench -- delivery --records ${records} --rounds ${rounds} --to ${to.join(',')}`,
    text: [
      sentence,
      `${records.toLocaleString('en-US')} records, median (lowest–highest) of ${rounds} interleaved rounds; the receiver runs on the same cores.`,
      ...left,
    ],
    tables: [{ caption: 'Each beside a bare client:', columns: ['', 'records/s', 'of bare', 'CPU s per 100,000', 'of bare'], rows }],
    bars,
  },
  save,
);

/** Rounds of the bare client and the daemon, in turn. Each round is compared with itself. */
async function compare(kind: Kind, port: number): Promise<void> {
  const pairs: { readonly floor: FloorResult; readonly own: FloorResult }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const pair = { floor: await bare(kind), own: await delivered(kind, port) };
    pairs.push(pair);
    say(`${kind.what}, round ${round + 1}: ${digits(pair.floor.seconds / pair.own.seconds)} of the bare client`);
  }
  const rate = rangeOf(pairs.map(({ floor, own }) => floor.seconds / own.seconds)).median;
  const cpu = rangeOf(pairs.map(({ floor, own }) => own.cpuSeconds / floor.cpuSeconds)).median;
  const cells = (of: 'floor' | 'own'): [string, string] => [
    rangeText(rangeOf(pairs.map((pair) => records / pair[of].seconds))),
    rangeText(rangeOf(pairs.map((pair) => (pair[of].cpuSeconds / records) * 100_000))),
  ];
  const [[bareRate, bareCpu], [ownRate, ownCpu]] = [cells('floor'), cells('own')];
  rows.push([`bare: ${kind.what}`, bareRate, '1.00', bareCpu, '1.00'], [kind.what, ownRate, rate.toFixed(2), ownCpu, cpu.toFixed(2)]);
  // A bare file has no client: its program only writes and syncs, far faster than any formatter.
  if (kind.kind !== 'file')
    bars.push({ what: `rate to ${kind.name}, of the bare client`, value: rate, limit: 'at least', bar: 0.8, goal: 0.9 });
}

async function bare({ kind, format, batch, start: startTarget }: Kind): Promise<FloorResult> {
  await using target = await startTarget(directory);
  const order: FloorOrder = { kind, format, records, beginMs, batch, target: target.bare };
  const program = start(process.execPath, [join(root, 'bench/delivery-floor.ts'), JSON.stringify(order)]);
  const limit = setTimeout(() => void program[Symbol.asyncDispose](), timeoutMs);
  const result = JSON.parse(await program.firstLine) as FloorResult;
  await program.ended;
  clearTimeout(limit);
  await arrived(target);
  return result;
}

async function delivered({ start: startTarget }: Kind, port: number): Promise<FloorResult> {
  await using target = await startTarget(directory);
  const work = mkdtempSync(join(directory, 'daemon-'));
  cpSync(join(directory, 'filled', 'state'), join(work, 'state'), { recursive: true });
  const result = await runDaemon(work, port, target.sink, (snapshot) => snapshot.sinks[0]?.lagEntries === 0);
  await arrived(target);
  rmSync(work, { recursive: true });
  return result;
}

/** Waits for the receiver's count: it queues accepted messages for a moment. Then compares the ids. */
async function arrived(target: Target): Promise<void> {
  for (let tries = 0; (await target.count()) < records && tries < 300; tries += 1) await sleep(100);
  const tally = new Tally(records);
  let changed = 0;
  for (const logId of await target.logIds()) if (!tally.add(logId)) changed += 1;
  requireAll('at the receiver', { lost: tally.lost(), doubled: tally.doubled, changed });
}

/** Runs the daemon in a directory until `done`, and measures from the first acknowledgement on, or from its start when it has no sink. */
async function runDaemon(
  name: string,
  port: number,
  sink: object | undefined,
  done: (snapshot: Snapshot) => boolean,
): Promise<FloorResult> {
  // A Kafka sink stores its position at the broker, by its id.
  daemons += 1;
  const work = name.startsWith('/') ? name : join(directory, name);
  mkdirSync(work, { recursive: true });
  writeFileSync(
    join(work, 'waybill.yaml'),
    configuration(port, beginMs, sink === undefined ? [] : [{ id: `receiver-${daemons}`, ...sink }]),
  );
  await using daemon = start(waybill(), ['run', '--config', join(work, 'waybill.yaml')], work);
  daemon.firstLine.catch(() => undefined);
  const socketPath = join(work, 'state', 'waybill.sock');
  const snapshot = (): Promise<Snapshot | undefined> => ask<Snapshot>({ socketPath }, '/snapshot');
  const acknowledged = (found: Snapshot | undefined): number => found?.sinks[0]?.acknowledged ?? 0;
  const giveUpAt = performance.now() + timeoutMs;
  const pause = async (ms: number, found: Snapshot | undefined): Promise<void> => {
    if (performance.now() > giveUpAt) throw new Error(`${acknowledged(found)} records were delivered in ${timeoutMs / 1000} s`);
    await sleep(ms);
  };
  let first = await snapshot();
  while (first === undefined || (sink !== undefined && acknowledged(first) === 0)) {
    await pause(5, first);
    first = await snapshot();
  }
  const begin = performance.now();
  const cpu = cpuSeconds(daemon.pid);
  let last = first;
  while (!done(last)) {
    await pause(snapshotMs, last);
    last = (await snapshot()) ?? last;
  }
  const share = sink === undefined ? 1 : records / Math.max(1, acknowledged(last) - acknowledged(first));
  // Some records are acknowledged before the first sample. Their time is left out in proportion to
  // their number.
  return { seconds: (share * (performance.now() - begin)) / 1000, cpuSeconds: share * (cpuSeconds(daemon.pid) - cpu) };
}
