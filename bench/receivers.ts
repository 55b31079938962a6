/** The real receivers of `npm run bench -- delivery`, each with the settings of its sink and an address for the bare client. */
import { existsSync, mkdtempSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import kafkajs from 'kafkajs';
import type { Format } from '../src/encode/index.ts';
import { elasticsearchSettings } from '../src/sink/elasticsearch/settings.ts';
import { stepsFor } from '../src/sink/elasticsearch/templates.ts';
import { quietTimers } from '../src/sink/kafka/timers.ts';
import { Elasticsearch, elasticsearchMissing } from '../test/support/servers/elasticsearch.ts';
import { KafkaBroker, kafkaMissing, kafkaVersions } from '../test/support/servers/kafka-broker.ts';
import { rsyslog, rsyslogMissing } from '../test/support/servers/rsyslog.ts';
import { SyslogReceiver } from '../test/support/servers/syslog-receiver.ts';
import type { FloorOrder } from './delivery-floor.ts';

/** An empty receiver. */
export interface Target extends AsyncDisposable {
  /** Settings of the sink, without its id. */
  readonly sink: object;
  /** For the bare client: the path of a file, a port, or the address of a data stream. */
  readonly bare: string;
  /** The number of messages at the receiver. */
  count(): number | Promise<number>;
  /** The `logId` of each message at the receiver; NaN for a message without one. */
  logIds(): readonly number[] | Promise<readonly number[]>;
}

export interface Kind {
  /** For `--to`. */
  readonly name: string;
  readonly kind: FloorOrder['kind'];
  readonly what: string;
  readonly format: Format;
  readonly batch: number;
  readonly missing: string | undefined;
  /** @param directory  for its files */
  readonly start: (directory: string) => Promise<Target>;
}

export const kinds: readonly Kind[] = [
  {
    name: 'file',
    kind: 'file',
    what: 'file, ECS, batches of 250',
    format: 'ecs',
    batch: 250,
    missing: undefined,
    async start(directory) {
      const path = join(mkdtempSync(join(directory, 'file-')), 'events.ndjson');
      const nothing = async (): Promise<void> => undefined;
      return {
        sink: { type: 'file', path },
        bare: path,
        count: () => linesOf(path),
        logIds: () => logIdsOf(path, 'ecs'),
        [Symbol.asyncDispose]: nothing,
      };
    },
  },
  {
    name: 'relp',
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
        logIds: () => logIdsOf(join(receiver.directory, 'relp.json'), 'cef'),
        [Symbol.asyncDispose]: () => receiver[Symbol.asyncDispose](),
      };
    },
  },
  {
    name: 'elasticsearch',
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
        logIds: () => logIdsIn(node, stream),
        [Symbol.asyncDispose]: async (): Promise<void> => undefined,
      };
    },
  },
  // So many messages per transaction that its overhead is negligible.
  kafkaKind('kafka', 'cef', 1_000),
  kafkaKind('kafka-ecs', 'ecs', 300),
];

function kafkaKind(name: string, format: Format, batch: number): Kind {
  return {
    name,
    kind: 'kafka',
    what: `Kafka ${kafkaVersions[0]}, ${format.toUpperCase()}, transactions of ${batch.toLocaleString('en-US')}`,
    format,
    batch,
    missing: kafkaMissing(kafkaVersions[0]),
    async start() {
      const server = (broker ??= await KafkaBroker.start(kafkaVersions[0]));
      const topic = `bench-${(streams += 1)}`;
      await createTopic(server.address(), topic, 6);
      return {
        sink: { type: 'kafka', brokers: [server.address()], topic, format, batch: { maxRecords: batch } },
        bare: `${server.address()}/${topic}`,
        // kcat reads with `read_committed`: the count shows lost and duplicate messages.
        count: () => server.count(topic),
        logIds: async () => (await server.values(topic, (value) => logIdText(value, format))).map(Number),
        [Symbol.asyncDispose]: async (): Promise<void> => undefined,
      };
    },
  };
}

async function createTopic(address: string, topic: string, numPartitions: number): Promise<void> {
  quietTimers();
  const admin = new kafkajs.Kafka({ brokers: [address], logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  const progress = { topic: `${topic}-progress`, numPartitions: 1, replicationFactor: 1 };
  await admin.createTopics({ waitForLeaders: true, topics: [{ topic, numPartitions, replicationFactor: 1 }, progress] });
  await admin.disconnect();
}

/** One server for all runs: each run writes to another stream or topic. */
let server9: Elasticsearch | undefined;
let broker: KafkaBroker | undefined;
let streams = 0;

export async function endReceivers(): Promise<void> {
  await server9?.[Symbol.asyncDispose]();
  await broker?.[Symbol.asyncDispose]();
}

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

function linesOf(path: string): number {
  if (!existsSync(path) || statSync(path).size === 0) return 0;
  const bytes = readFileSync(path);
  let count = 0;
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) count += 1;
  return count;
}

/** The text of the `logId` in a message. */
function logIdText(message: string, format: Format): string {
  return (format === 'cef' ? / externalId=(\d+) / : /"event":\{[^{}]*?"id":"(\d+)"/).exec(message)?.[1] ?? 'none';
}

function logIdsOf(path: string, format: Format): number[] {
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  return lines.map((line) => Number(logIdText(line, format)));
}

async function logIdsIn(node: Elasticsearch, stream: string): Promise<number[]> {
  const found: number[] = [];
  for (let after: unknown; ;) {
    const query = {
      size: 10_000,
      _source: false,
      fields: ['event.id'],
      sort: ['_index', '_seq_no'],
      ...(after ? { search_after: after } : {}),
    };
    const { body } = await node.ask('POST', `/${stream}/_search`, query);
    const { hits } = (body as { hits: { hits: { fields?: { 'event.id'?: string[] }; sort: unknown }[] } }).hits;
    if (hits.length === 0) return found;
    for (const { fields } of hits) found.push(Number(fields?.['event.id']?.[0]));
    after = hits.at(-1)?.sort;
  }
}
