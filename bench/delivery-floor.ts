/**
 * The floors of delivery, each in a separate process: the rate of a bare client with the same
 * messages in the same batches, without positions and error handling. Each prepares its bodies before
 * the clock starts; `file` appends and syncs each batch. Arguments: JSON of `FloorOrder`. Prints one
 * line of JSON.
 */
import { open } from 'node:fs/promises';
import { connect } from 'node:net';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import kafkajs from 'kafkajs';
import type { Format } from '../src/encode/index.ts';
import { partitionFor } from '../src/sink/kafka/messages.ts';
import { quietTimers } from '../src/sink/kafka/timers.ts';
import { messagesIn, uid } from './encoding.ts';

export interface FloorOrder {
  readonly kind: 'file' | 'relp' | 'elasticsearch' | 'kafka';
  readonly format: Format;
  readonly records: number;
  readonly beginMs: number;
  /** Messages per batch, as the sink forms them. */
  readonly batch: number;
  /** The path of a file, a port on loopback, the address of a data stream, or `HOST:PORT/TOPIC`. */
  readonly target: string;
}

export interface FloorResult {
  readonly seconds: number;
  readonly cpuSeconds: number;
}

const order = JSON.parse(process.argv[2] ?? '{}') as FloorOrder;
const encoded = messagesIn(order.format, order.beginMs);
const message = (i: number): string => encoded(i).text;

/** The sequence numbers of each batch, in order. */
function* batches(): Generator<readonly number[]> {
  for (let from = 0; from < order.records; from += order.batch) {
    yield Array.from({ length: Math.min(order.batch, order.records - from) }, (_, i) => from + i);
  }
}

async function toFile(): Promise<FloorResult> {
  const bodies = [...batches()].map((batch) => Buffer.from(`${batch.map(message).join('\n')}\n`));
  const file = await open(order.target, 'w');
  const clock = started();
  for (const body of bodies) {
    await file.write(body);
    await file.datasync();
  }
  const result = clock();
  await file.close();
  return result;
}

/**
 * A RELP sender that keeps 128 messages in flight and waits for the responses to a batch before the
 * next one.
 */
async function toRelp(): Promise<FloorResult> {
  const bodies = [...batches()].map((batch) =>
    batch.map((i) =>
      Buffer.from(`<166>1 ${new Date(order.beginMs).toISOString()} bench waybill 1 Open [meta sequenceId="${i + 1}"] ${message(i)}`),
    ),
  );
  const socket = connect(Number(order.target), '127.0.0.1');
  socket.setNoDelay(true);
  let answered = 0;
  let rest = '';
  let wake: (() => void) | undefined;
  socket.on('data', (bytes) => {
    const lines = (rest + bytes.toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (/^\d+ rsp /.test(line)) answered += 1;
    wake?.();
  });
  const until = async (count: number): Promise<void> => {
    while (answered < count) await new Promise<void>((resolve) => (wake = resolve));
  };
  const offers = 'relp_version=0\nrelp_software=bare\ncommands=syslog';
  socket.write(`1 open ${offers.length} ${offers}\n`);
  await until(1);
  const clock = started();
  let number = 1;
  const lineFeed = Buffer.from('\n');
  for (const batch of bodies) {
    for (const body of batch) {
      await until(number - 127);
      number += 1;
      socket.write(Buffer.concat([Buffer.from(`${number} syslog ${body.length} `), body, lineFeed]));
    }
    await until(number);
  }
  const result = clock();
  socket.end();
  return result;
}

/** A client that compresses as the sink does, and as Filebeat does by default. */
async function toElasticsearch(): Promise<FloorResult> {
  const pack = promisify(gzip);
  const stream = order.target.split('/').at(-1) ?? '';
  const bodies = [...batches()].map((batch) =>
    Buffer.from(batch.map((i) => `{"create":{"_index":"${stream}","_id":"bare-${i}"}}\n${message(i)}\n`).join('')),
  );
  const clock = started();
  for (const body of bodies) {
    const answer = await fetch(new URL('/_bulk', order.target), {
      method: 'POST',
      body: await pack(body, { level: 1 }),
      headers: { 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' },
    });
    const { errors } = (await answer.json()) as { errors: boolean };
    if (errors) throw new Error('an item was refused');
  }
  return clock();
}

/** A producer of kafkajs that sends each batch, and its position to another topic, in one transaction. */
async function toKafka(): Promise<FloorResult> {
  const [broker = '', topic = ''] = order.target.split('/');
  const partitions = 6;
  const prepared = [...batches()].map((batch) =>
    batch.map((i) => {
      const { event, text } = encoded(i);
      const key = event.key ?? '';
      const headers = { id: uid, number: String(i + 1), source: 'bench' };
      return { key, partition: partitionFor(key, partitions), headers, value: Buffer.from(text) };
    }),
  );
  quietTimers();
  const client = new kafkajs.Kafka({ brokers: [broker], logLevel: kafkajs.logLevel.NOTHING, retry: { initialRetryTime: 20, retries: 15 } });
  const producer = client.producer({
    transactionalId: topic,
    maxInFlightRequests: 1,
    allowAutoTopicCreation: false,
    createPartitioner:
      () =>
      ({ message }) =>
        message.partition ?? 0,
  });
  await producer.connect();
  const progress = (value: string): kafkajs.TopicMessages => ({
    topic: `${topic}-progress`,
    messages: [{ partition: 0, key: 'bare', value }],
  });
  const first = await producer.transaction();
  await first.sendBatch({ acks: -1, topicMessages: [progress('0')] });
  await first.commit();
  const clock = started();
  for (const [number, messages] of prepared.entries()) {
    const transaction = await producer.transaction();
    await transaction.sendBatch({ acks: -1, topicMessages: [{ topic, messages }, progress(String(number + 1))] });
    await transaction.commit();
  }
  const result = clock();
  await producer.disconnect();
  return result;
}

function started(): () => FloorResult {
  const begin = performance.now();
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return { seconds: (performance.now() - begin) / 1000, cpuSeconds: (user + system) / 1e6 };
  };
}

const result = await { file: toFile, relp: toRelp, elasticsearch: toElasticsearch, kafka: toKafka }[order.kind]();
process.stdout.write(`${JSON.stringify(result)}\n`);
