/**
 * The floor of `bench/kafka.ts`: kafkajs alone, in a process of its own. The messages are made before the clock starts; then they are sent in transactions of
 * the same size, with the same settings, to the same broker.
 */
import kafkajs from 'kafkajs';
import type { Format } from '../src/encode/index.ts';
import { partitionFor } from '../src/sink/kafka/messages.ts';
import { quietTimers } from '../src/sink/kafka/timers.ts';
import { messagesIn, uid } from './encoding.ts';

const [, , broker = '', topic = '', progress = '', count = '0', size = '500', partitions = '6', begin = '0', format = 'ecs'] = process.argv;
const records = Number(count);
const batch = Number(size);

const encoded = messagesIn(format as Format, Number(begin));
const prepared = Array.from({ length: records }, (_, i) => {
  const { event, text } = encoded(i);
  const key = event.key ?? '';
  const headers = { id: uid, number: String(i + 1), source: 'bench' };
  return { key, partition: partitionFor(key, Number(partitions)), headers, value: Buffer.from(text) };
});

quietTimers();
const client = new kafkajs.Kafka({ brokers: [broker], logLevel: kafkajs.logLevel.NOTHING, retry: { initialRetryTime: 20, retries: 15 } });
const producer = client.producer({
  ...{ transactionalId: 'bench-bare', maxInFlightRequests: 1, allowAutoTopicCreation: false },
  createPartitioner:
    () =>
    ({ message }) =>
      message.partition ?? 0,
});
await producer.connect();
const warm = await producer.transaction();
await warm.send({ topic: progress, messages: [{ partition: 0, key: 'bare', value: '0' }] });
await warm.commit();

const started = performance.now();
const cpu = process.cpuUsage();
for (let i = 0; i < records; i += batch) {
  const transaction = await producer.transaction();
  await transaction.sendBatch({
    acks: -1,
    topicMessages: [
      { topic, messages: prepared.slice(i, i + batch) },
      { topic: progress, messages: [{ partition: 0, key: 'bare', value: String(i + batch) }] },
    ],
  });
  await transaction.commit();
}
const used = process.cpuUsage(cpu);
const seconds = (performance.now() - started) / 1000;
process.stdout.write(`${JSON.stringify({ seconds, cpuSeconds: (used.user + used.system) / 1e6 })}\n`);
await producer.disconnect();
