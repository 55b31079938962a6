/** Settings of sinks that conflict: a shared location of their positions. */
import { expect, test } from 'vitest';
import { problemsOf, valid } from '../../support/config/loading.ts';

/** The errors about sinks of the type `kafka`, without the place. */
async function problemsWith(...sinks: readonly string[]): Promise<readonly string[]> {
  const text = valid({}).replace(/sinks:[^]*/, '');
  const lines = sinks.map((own, i) => `  - { id: s${i}, type: kafka, topic: audit, ${own} }\n`).join('');
  return (await problemsOf(`${text}sinks:\n${lines}`)).map((problem) => problem.replace(/ \(line \d+\)/, ''));
}

const brokers = 'brokers: [a.example:9092, b.example:9092]';
const shared = (name: string, other: number): string =>
  `sinks.${name}.progressTopic: is also the progress topic of another sink, sinks[${other}]: each needs a separate one`;

test('two sinks of one cluster need separate progress topics', async () => {
  const other = 'brokers: [b.example:9092, c.example:9092]';
  expect(await problemsWith(brokers, brokers)).toEqual([]);
  expect(await problemsWith(`${brokers}, progressTopic: p`, `${other}, progressTopic: p`)).toEqual([shared('s1', 0)]);
  // The default name of one sink, in either order.
  expect(await problemsWith(`${brokers}, progressTopic: waybill-progress-s1`, brokers)).toEqual([shared('s0', 1)]);
  expect(await problemsWith(brokers, `${brokers}, progressTopic: waybill-progress-s0`)).toEqual([shared('s1', 0)]);
  // No conflict: the addresses are of another cluster; and a sink without a stored position uses no progress topic.
  expect(await problemsWith(`${brokers}, progressTopic: p`, 'brokers: [d.example:9092], progressTopic: p')).toEqual([]);
  expect(await problemsWith(`${brokers}, progressTopic: p`, `${brokers}, progressTopic: p, exactlyOnce: false`)).toEqual([]);
});

test('the position is not stored among the messages', async () => {
  expect(await problemsWith(`${brokers}, progressTopic: audit`)).toEqual([
    'sinks.s0.progressTopic: is the topic of the messages: the position needs a separate one',
  ]);
});
