/**
 * A sender of its own, to be killed: opens the sink, goes on from the position that it finds, and sends batches up to a number. Nothing of an earlier life is
 * there but what lies in Kafka. `node kafka-sender.ts BROKER TOPIC THROUGH SIZE`; says `open` and then a dot for each batch that was taken.
 */
import { kafka } from '../../src/sink/kafka/index.ts';
import { batchOf, contextOf, messages, ModelKept } from '../contract/sink-batches.ts';

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
