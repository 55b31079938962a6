/**
 * A separate sender for kills: opens the sink, continues from the position in Kafka, its only
 * state, and sends batches up to a number. `node kafka-sender.ts BROKER TOPIC THROUGH SIZE`; prints
 * `open` and then a dot for each accepted batch.
 */
import { kafka } from '../../../src/sink/kafka/index.ts';
import { batchOf, contextOf, messages, ModelKept } from '../sinks/sink-batches.ts';

const [, , broker = '', topic = '', through = '0', size = '100'] = process.argv;
const never = new AbortController().signal;
const sink = await kafka.open(kafka.config.parse({ brokers: [broker], topic }), contextOf(`k-${topic}`), new ModelKept(), never);
process.stdout.write('open\n');
let seq = (await sink.position?.(never))?.position.seq ?? 0;
while (seq < Number(through)) {
  const batch = batchOf(messages(seq + 1, Math.min(Number(through), seq + Number(size))), true);
  await sink.send(batch, never);
  seq = batch.through.seq;
  process.stdout.write('.');
}
await sink[Symbol.asyncDispose]();
