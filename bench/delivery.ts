/**
 * `npm run bench -- delivery [--records 200000] [--to file,relp,elasticsearch]`: records per second and CPU seconds per 100,000 records from a filled journal
 * to each real receiver, beside what a bare client reaches with the same messages in the same batches in the same run. The daemon is the real one;
 * what arrived is counted at the receiver.
 */
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import type { Format } from '../src/encode/index.ts';
import type { Snapshot } from '../src/model/snapshot.ts';
import { elasticsearchSettings } from '../src/sink/elasticsearch/settings.ts';
import { stepsFor } from '../src/sink/elasticsearch/templates.ts';
import { Elasticsearch, elasticsearchMissing } from '../test/servers/elasticsearch.ts';
import { rsyslog, rsyslogMissing } from '../test/servers/rsyslog.ts';
import { SyslogReceiver } from '../test/servers/syslog-receiver.ts';
import { configuration } from './configuration.ts';
import type { FloorOrder, FloorResult } from './delivery-floor.ts';
import { ask, cpuSeconds, sleep, start } from './process.ts';
import { perSecond } from './record.ts';
import { table } from './table.ts';

const { values } = parseArgs({
  options: {
    records: { type: 'string', default: '200000' },
    to: { type: 'string', default: 'file,relp,elasticsearch' },
    json: { type: 'boolean', default: false },
  },
});
const records = Number(values.records);
const root = fileURLToPath(new URL('..', import.meta.url));
const directory = mkdtempSync(join(tmpdir(), 'waybill-bench-delivery-'));
const beginMs = Math.floor(Date.now() / 1000) * 1000 - Math.ceil(records / perSecond) * 1000 - 600_000;
const endMs = beginMs + Math.ceil(records / perSecond) * 1000;
const say = (line: string): void => void process.stderr.write(`${line}\n`);

/** A receiver that has nothing yet. */
interface Target extends AsyncDisposable {
  /** Settings of the sink, without its id. */
  readonly sink: object;
  /** For the bare client: the path of a file, a port, or the address of a data stream. */
  readonly bare: string;
  /** Messages that are at the receiver. */
  count(): number | Promise<number>;
}

interface Kind {
  readonly kind: FloorOrder['kind'];
  readonly what: string;
  readonly format: Format;
  readonly batch: number;
  readonly missing: string | undefined;
  readonly start: () => Promise<Target>;
}

const kinds: readonly Kind[] = [
  {
    kind: 'file',
    what: 'file, ECS, batches of 250',
    format: 'ecs',
    batch: 250,
    missing: undefined,
    async start() {
      const path = join(mkdtempSync(join(directory, 'file-')), 'events.ndjson');
      const nothing = async (): Promise<void> => undefined;
      return { sink: { type: 'file', path }, bare: path, count: () => linesOf(path), [Symbol.asyncDispose]: nothing };
    },
  },
  {
    kind: 'relp',
    what: 'syslog by RELP to rsyslog, CEF, batches of 500',
    format: 'cef',
    batch: 500,
    missing: rsyslogMissing(),
    async start() {
      const receiver = await SyslogReceiver.start(rsyslog());
      const address = receiver.address('relp');
      return {
        sink: { type: 'syslog', address, format: 'cef', hostname: 'bench', batch: { maxRecords: 500 } },
        bare: new URL(address.replace('relp:', 'http:')).port,
        count: () => linesOf(join(receiver.directory, 'relp.json')),
        [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
      };
    },
  },
  {
    kind: 'elasticsearch',
    what: 'Elasticsearch 9.5.3, a data stream with our templates, ECS, batches of 1,000',
    format: 'ecs',
    batch: 1_000,
    missing: elasticsearchMissing('elasticsearch-9.5.3'),
    async start() {
      const node = (server9 ??= await startNode());
      const namespace = `bench${(streams += 1)}`;
      const stream = `logs-dpas.audit-${namespace}`;
      return {
        sink: { type: 'elasticsearch', nodes: node.url, namespace, templates: 'ignore' },
        bare: `${node.url}/${stream}`,
        count: () => node.count(stream),
        [Symbol.asyncDispose]: async (): Promise<void> => undefined,
      };
    },
  },
];

/** One node for all runs: each writes to a stream of its own. */
let server9: Elasticsearch | undefined;
let streams = 0;

async function startNode(): Promise<Elasticsearch> {
  const node = await Elasticsearch.start('elasticsearch-9.5.3', false, []);
  const settings = elasticsearchSettings.parse({ nodes: node.url });
  const facts = { version: [9, 5], isServerless: false, builtIn: new Set<string>() } as const;
  for (const { path, body } of stepsFor(settings, 'receiver', facts)) {
    const { status } = await node.ask('PUT', path, body);
    if (status !== 200) throw new Error(`${path} is answered with ${status}`);
  }
  return node;
}

const rows: string[][] = [];
const figures: object[] = [];
const server = start(process.execPath, [join(root, 'bench/server.ts'), String(records), String(beginMs)]);
try {
  const { port } = JSON.parse(await server.firstLine) as { port: number };
  say(`${records} records are collected into the journal first`);
  await runDaemon('filled', port, undefined, (snapshot) => (snapshot.sources[0]?.closedUntil ?? 0) >= endMs * 1000);
  const asked = values.to.split(',');
  for (const kind of kinds.filter((each) => asked.includes(each.kind))) {
    if (kind.missing === undefined) await compare(kind, port);
    else say(`${kind.what}: left out, ${kind.missing}`);
  }
} finally {
  await server[Symbol.asyncDispose]();
  await server9?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
}
process.stdout.write(`${table(['', 'records/s', 'of floor', 'CPU s/100k', 'of floor'], rows)}\n`);
if (values.json) process.stdout.write(`${JSON.stringify({ records, rows: figures })}\n`);

/** The bare client, the daemon, and the bare client again: its mean is the floor. */
async function compare(kind: Kind, port: number): Promise<void> {
  say(kind.what);
  const first = await bare(kind);
  const own = await delivered(kind, port);
  const last = await bare(kind);
  const floor = { seconds: (first.seconds + last.seconds) / 2, cpuSeconds: (first.cpuSeconds + last.cpuSeconds) / 2 };
  for (const [what, result] of [
    [`bare: ${kind.what}`, floor],
    [kind.what, own],
  ] as const) {
    rows.push([
      what,
      Math.round(records / result.seconds).toLocaleString('en-US'),
      (floor.seconds / result.seconds).toFixed(2),
      ((result.cpuSeconds / records) * 100_000).toFixed(2),
      (result.cpuSeconds / floor.cpuSeconds).toFixed(2),
    ]);
    figures.push({ what, ...result });
  }
}

async function bare({ kind, format, batch, start: startTarget }: Kind): Promise<FloorResult> {
  await using target = await startTarget();
  const order: FloorOrder = { kind, format, records, beginMs, batch, target: target.bare };
  const program = start(process.execPath, [join(root, 'bench/delivery-floor.ts'), JSON.stringify(order)]);
  const result = JSON.parse(await program.firstLine) as FloorResult;
  await program.ended;
  await arrived(target);
  return result;
}

async function delivered({ start: startTarget }: Kind, port: number): Promise<FloorResult> {
  await using target = await startTarget();
  const work = mkdtempSync(join(directory, 'daemon-'));
  cpSync(join(directory, 'filled', 'state'), join(work, 'state'), { recursive: true });
  const result = await runDaemon(work, port, target.sink, (snapshot) => snapshot.sinks[0]?.lagRecords === 0);
  await arrived(target);
  rmSync(work, { recursive: true });
  return result;
}

/** What was taken stands at the receiver a moment later: it has a queue of its own. */
async function arrived(target: Target): Promise<void> {
  for (let tries = 0; (await target.count()) < records && tries < 300; tries += 1) await sleep(100);
  const found = await target.count();
  if (found !== records) throw new Error(`${found} of ${records} messages arrived`);
}

/** Runs the daemon in a directory until `done`, and measures from the first acknowledgement on, or from its start when it has no sink. */
async function runDaemon(
  name: string,
  port: number,
  sink: object | undefined,
  done: (snapshot: Snapshot) => boolean,
): Promise<FloorResult> {
  const work = name.startsWith('/') ? name : join(directory, name);
  mkdirSync(work, { recursive: true });
  writeFileSync(join(work, 'waybill.yaml'), configuration(port, beginMs, sink === undefined ? [] : [{ id: 'receiver', ...sink }]));
  await using daemon = start(join(root, 'bin/waybill.js'), ['run', '--config', join(work, 'waybill.yaml')], work);
  daemon.firstLine.catch(() => undefined);
  const socketPath = join(work, 'state', 'waybill.sock');
  const snapshot = (): Promise<Snapshot | undefined> => ask<Snapshot>({ socketPath }, '/snapshot');
  const acknowledged = (found: Snapshot | undefined): number => found?.sinks[0]?.acknowledged ?? 0;
  let first = await snapshot();
  while (first === undefined || (sink !== undefined && acknowledged(first) === 0)) {
    await sleep(5);
    first = await snapshot();
  }
  const begin = performance.now();
  const cpu = cpuSeconds(daemon.pid);
  let last = first;
  while (!done(last)) {
    await sleep(50);
    last = (await snapshot()) ?? last;
  }
  const share = sink === undefined ? 1 : records / Math.max(1, acknowledged(last) - acknowledged(first));
  // What was acknowledged before the first look is not in the time: as if all had gone at the rate that was seen.
  return { seconds: (share * (performance.now() - begin)) / 1000, cpuSeconds: share * (cpuSeconds(daemon.pid) - cpu) };
}

function linesOf(path: string): number {
  if (!existsSync(path) || statSync(path).size === 0) return 0;
  const bytes = readFileSync(path);
  let count = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count += 1;
  return count;
}
