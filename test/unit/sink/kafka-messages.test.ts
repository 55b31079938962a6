import { describe, expect, test } from 'vitest';
import { keyed, murmur2, partitionFor, rounds } from '../../../src/sink/kafka/messages.ts';
import type { KafkaRecord } from '../../../src/sink/kafka/messages.ts';
import { message } from '../../support/sinks/sink-batches.ts';

/** Apache Kafka, clients/src/test/java/org/apache/kafka/common/utils/UtilsTest.java, testMurmur2. */
test.each([
  ['21', -973932308],
  ['foobar', -790332482],
  ['a-little-bit-long-string', -985981536],
  ['a-little-bit-longer-string', -1486304829],
  ['lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8', -58897971],
  ['abc', 479470107],
])("murmur2 of %j equals Kafka's", (text, expected) => {
  expect(murmur2(Buffer.from(text))).toBe(expected);
});

test('a partition is the hash without its sign, modulo their number', () => {
  // -973932308 & 0x7fffffff = 1173551340
  expect([1, 3, 7, 100].map((partitions) => partitionFor('21', partitions))).toEqual([0, 1173551340 % 3, 1173551340 % 7, 40]);
});

describe('a message', () => {
  const one = { ...message(7), key: 'payload 7', source: 'production' };

  test('has its key, its headers, and the topic of its source', () => {
    expect(keyed(one, { topic: 'audit.{source}', key: 'payloadId' })).toMatchObject({
      ...{ topic: 'audit.production', key: 'payload 7', spread: 'payload 7' },
      headers: { id: one.uid, number: '7', source: 'production' },
    });
  });

  test('without a key is partitioned by its uid, to the same partition each time', () => {
    expect(keyed({ ...one, key: undefined }, { topic: 'audit', key: 'payloadId' })).toMatchObject({ key: null, spread: one.uid });
    expect(keyed(one, { topic: 'audit', key: 'none' })).toMatchObject({ key: null, spread: one.uid });
  });
});

describe('the requests of a batch', () => {
  const record = (partition: number, bytes: number, topic = 'audit'): KafkaRecord => ({
    ...{ topic, partition, key: null, headers: {} },
    value: Buffer.alloc(bytes),
  });

  test('contain at most the bytes of a batch per partition, in order', () => {
    const list = [record(0, 400), record(1, 400), record(0, 401), record(0, 402), record(1, 403)];
    const made = rounds(list, () => 1_000);
    expect(made.flat()).toHaveLength(5);
    expect(made.map((request) => request.map(({ partition, value }) => [partition, value.length]))).toEqual([
      [
        [0, 400],
        [1, 400],
        [0, 401],
        [1, 403],
      ],
      [[0, 402]],
    ]);
  });

  test('contain an oversized message alone: compressed it may fit', () => {
    const made = rounds([record(0, 10), record(0, 5_000), record(0, 10), record(0, 10)], () => 1_000);
    expect(made.map((request) => request.map(({ value }) => value.length))).toEqual([[10], [5_000], [10, 10]]);
  });

  test('respect the limit of each topic', () => {
    const made = rounds([record(0, 400, 'a'), record(0, 400, 'b'), record(0, 400, 'a'), record(0, 400, 'b')], (topic) =>
      topic === 'a' ? 500 : 5_000,
    );
    expect(made.map((request) => request.map(({ topic }) => topic))).toEqual([['a', 'b', 'b'], ['a']]);
  });

  test('have at most a thousand records of a partition, because the client copies them repeatedly', () => {
    const made = rounds(
      Array.from({ length: 2_500 }, () => record(0, 1)),
      () => 1_000_000,
    );
    expect(made.map(({ length }) => length)).toEqual([1_000, 1_000, 500]);
  });
});
