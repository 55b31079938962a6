/**
 * The sink `kafka` with its real client and a model of a broker: the contract of every sink, and
 * the rules of its protocol.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { codeOf, messageOf } from '../../../src/errors/errors.ts';
import type { Batch, FeedPosition, ResumePoint, Message, Sink } from '../../../src/model/sink.ts';
import { kafka } from '../../../src/sink/kafka/index.ts';
import { AnswerLengths } from '../../../src/sink/kafka/responses.ts';
import { createAuthority } from '../../support/certificates.ts';
import type { Authority } from '../../support/certificates.ts';
import { KafkaModel } from '../../support/kafka-model.ts';
import type { Api, Fault } from '../../support/kafka-model.ts';
import { batchOf, contextOf, message, messages, ModelKept, positionOf } from '../../support/sinks/sink-batches.ts';
import { sinkSuite } from '../../support/sinks/sink-suite.ts';
import type { Place } from '../../support/sinks/sink-suite.ts';

const never = new AbortController().signal;
type Settings = Parameters<typeof kafka.open>[0];

function settingsOf(broker: KafkaModel, overrides: object = {}): Settings {
  return { ...kafka.config.parse({ brokers: [`127.0.0.1:${broker.port}`], topic: 'audit' }), ...overrides };
}

const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });
const secret = (text: string) => ({ read: () => text, refresh: () => undefined, describe: () => 'a secret of the test' });

class KafkaPlace implements Place {
  readonly #broker: KafkaModel;
  readonly #overrides: object;
  #opened: Sink[] = [];

  constructor(broker: KafkaModel, overrides: object) {
    this.#broker = broker;
    this.#overrides = overrides;
  }

  readonly open = async (kept: ResumePoint): Promise<Sink> => {
    const sink = await kafka.open(settingsOf(this.#broker, this.#overrides), contextOf('under-test'), kept, never);
    this.#opened.push(sink);
    return sink;
  };

  async kill(): Promise<void> {
    this.#broker.cutConnections();
    for (const sink of this.#opened.splice(0)) await sink[Symbol.asyncDispose]();
  }

  async received(): Promise<readonly string[]> {
    return this.#broker.committed('audit').flatMap((partition) => partition.map(({ value }) => value));
  }

  cutAnswer(): void {
    const last: Api = 'exactlyOnce' in this.#overrides ? 'Produce' : 'EndTxn';
    this.#broker.fault = (api) => {
      if (api !== last) return undefined;
      this.#broker.fault = () => undefined;
      return 'answer lost';
    };
  }

  /** A broker names no message and has no text of its own: only an error code. */
  refuse(seq: number): string {
    this.#broker.isRefused = (value) => value.includes(`"seq":${seq},`);
    return 'larger than the max message size';
  }

  stall(): void {
    this.#broker.fault = () => 'silent';
  }

  async ruin(): Promise<void> {
    await this.#broker.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#broker[Symbol.asyncDispose]();
  }
}

const start = (overrides: object) => async () => new KafkaPlace(await new KafkaModel().create('audit').listen(), overrides);
const { formats } = kafka;
sinkSuite({ name: 'kafka, exactly once', formats, twice: () => 0, secrets: [], batches: 60, start: start({}) });
sinkSuite({ name: 'kafka, plain', formats, twice: (size) => size, secrets: [], batches: 60, isVariant: true, start: start({ exactlyOnce: false }) }); // prettier-ignore

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
}

describe('kafka', () => {
  let broker: KafkaModel;
  let kept: ModelKept;
  const warnings: Error[] = [];
  const onWarning = (warning: Error): number => warnings.push(warning);
  beforeEach(async () => {
    broker = await new KafkaModel().create('audit').listen();
    kept = new ModelKept();
    warnings.length = 0;
    process.on('warning', onWarning);
  });
  afterEach(async () => {
    await broker[Symbol.asyncDispose]();
    process.off('warning', onWarning);
    // Timers of the client have made Node print warnings.
    expect(warnings).toEqual([]);
  });

  const opened = (overrides: object = {}, id = 'siem'): Promise<Sink> =>
    kafka.open(settingsOf(broker, overrides), contextOf(id), kept, never);
  const seqs = (): number[] =>
    broker.committed('audit').flatMap((partition) => partition.map(({ value }) => (JSON.parse(value) as { seq: number }).seq));
  const range = (from: number, through: number): number[] => messages(from, through).map(({ seq }) => seq);
  const aborts = (): object[] => broker.seen.filter(({ api, about }) => api === 'EndTxn' && about === 'abort');

  /**
   * Like the delivery loop: opens, requests the position, sends the missing messages; repeats this
   * if the outcome is unknown.
   */
  async function deliver(through: number, tries = 3): Promise<void> {
    for (let left = tries; ; left -= 1) {
      try {
        await using sink = await opened();
        const found = await sink.position?.(never);
        if (found) kept.acknowledge({ ...batchOf([]), through: found.position }, found.resumeNote);
        const missing = messages(kept.position.seq + 1, through);
        if (missing.length > 0) {
          const batch = batchOf(missing, true);
          kept.acknowledge(batch, (await sink.send(batch, never)).resumeNote);
        }
        return;
      } catch (thrown) {
        if (left === 0) throw thrown;
      }
    }
  }

  describe('records', () => {
    test('have key, headers and partition; each partition keeps their order', async () => {
      broker.create('audit', 5);
      await using sink = await opened();
      const many = messages(1, 200).map((one) => ({ ...one, key: one.seq % 3 === 0 ? undefined : `payload ${one.seq % 20}` }));
      await sink.send(batchOf(many), never);
      const partitions = broker.committed('audit');
      expect(partitions.flat()).toHaveLength(200);
      expect(partitions.filter((partition) => partition.length > 0).length).toBeGreaterThan(2);
      const places = new Map<string, Set<number>>();
      for (const [index, partition] of partitions.entries()) {
        const found = partition.map(({ value }) => (JSON.parse(value) as { seq: number }).seq);
        expect(found).toEqual(found.toSorted((a, b) => a - b));
        for (const { key } of partition) if (key !== undefined) places.set(key, (places.get(key) ?? new Set()).add(index));
      }
      // One key, one partition.
      expect([...places.values()].map(({ size }) => size)).toEqual(Array.from({ length: places.size }, () => 1));
      const first = partitions.flat().find(({ value }) => value.includes('"seq":1,'));
      expect(first).toMatchObject({ key: 'payload 1', headers: { id: message(1).uid, number: '1', source: 'records' } });
    });

    test.each(['none', 'gzip', 'zstd'])('with compression %s are readable by the consumer', async (compression) => {
      await using sink = await opened({ compression });
      await sink.send(batchOf(messages(1, 300)), never);
      expect(seqs()).toEqual(range(1, 300));
      const [log] = broker.topics.get('audit') ?? [];
      expect(log?.stored[0]?.batch?.compression).toBe({ none: 0, gzip: 1, zstd: 4 }[compression]);
    });

    test.each([
      ['uid', message(1).uid],
      ['source', 'records'],
      ['none', undefined],
    ])('key: %s', async (key, expected) => {
      await using sink = await opened({ key });
      await sink.send(batchOf(messages(1, 1)), never);
      expect(broker.committed('audit')[0]?.[0]?.key).toBe(expected);
    });

    test('go to one topic for each source if the topic has {source}', async () => {
      broker.create('audit.a').create('audit.b');
      await using sink = await opened({ topic: 'audit.{source}' });
      await sink.send(batchOf(messages(1, 10).map((one) => ({ ...one, source: one.seq % 2 === 0 ? 'a' : 'b' }))), never);
      expect([broker.committed('audit.a')[0]?.length, broker.committed('audit.b')[0]?.length]).toEqual([5, 5]);
    });

    test('stay below the maximum of the topic; all requests of a batch are one transaction', async () => {
      broker.create('audit', 1, { 'max.message.bytes': '5000' });
      broker.batchBytes = 5_000;
      await using sink = await opened();
      const before = broker.requests('EndTxn');
      await sink.send(batchOf(messages(1, 300)), never);
      expect(seqs()).toEqual(range(1, 300));
      expect(broker.topics.get('audit')?.[0]?.stored.filter(({ batch }) => batch).length).toBeGreaterThan(4);
      expect(broker.requests('EndTxn') - before).toBe(1);
    });
  });

  describe('a transaction', () => {
    test('cut at any request, before or after the broker read it, leaves every message once', async () => {
      // The requests of one batch once the sink is open: partitions, messages with the position,
      // and the end.
      const steps: readonly Api[] = ['AddPartitionsToTxn', 'Produce', 'EndTxn'];
      const ends: readonly ('lost' | 'answer lost')[] = ['lost', 'answer lost'];
      let through = 0;
      for (const step of steps) {
        for (const end of ends) {
          const abort = new AbortController();
          const sink = await opened();
          broker.fault = (api): Fault | undefined => {
            if (api !== step) return undefined;
            broker.fault = () => undefined;
            // The process is killed here.
            abort.abort(new Error('killed'));
            return end;
          };
          const batch = batchOf(messages(through + 1, through + 10), false);
          expect(await errorOf(sink.send(batch, abort.signal))).toBe(abort.signal.reason);
          await sink[Symbol.asyncDispose]();
          through += 10;
          await deliver(through);
          expect(seqs()).toEqual(range(1, through));
        }
      }
      // Before an abort the client asks a random node for the coordinator. A node with a request in
      // flight answers only after that. Here no request stays in flight.
      expect(aborts()).toEqual([]);
    });

    test('cut at any request of the open, loses and repeats no message', async () => {
      await deliver(10);
      for (const step of ['InitProducerId', 'AddPartitionsToTxn', 'Produce', 'EndTxn', 'Fetch', 'JoinGroup'] as const) {
        const abort = new AbortController();
        broker.fault = (api): Fault | undefined => {
          if (api !== step) return undefined;
          broker.fault = () => undefined;
          abort.abort(new Error('killed'));
          return 'answer lost';
        };
        await errorOf(kafka.open(settingsOf(broker), contextOf('siem'), kept, abort.signal));
        expect(abort.signal.aborted).toBe(true);
      }
      await deliver(20);
      expect(seqs()).toEqual(range(1, 20));
    });

    test('of several requests, whose first response is lost, delivers the batch once and in order', async () => {
      broker.create('audit', 1, { 'max.message.bytes': '5000' });
      await using sink = await opened();
      let isFirst = true;
      broker.fault = (api, about) => {
        if (api !== 'Produce' || !about.includes('audit') || !isFirst) return undefined;
        isFirst = false;
        return 'answer lost';
      };
      await sink.send(batchOf(messages(1, 100)), never);
      expect(isFirst).toBe(false);
      expect(seqs()).toEqual(range(1, 100));
    });

    test('rejects a request that arrives after its sender has ended', async () => {
      await deliver(10);
      const late = Promise.withResolvers<undefined>();
      const abort = new AbortController();
      const sink = await opened();
      broker.fault = (api, about) => {
        if (api !== 'Produce' || !about.includes('audit')) return undefined;
        broker.fault = () => undefined;
        setTimeout(() => {
          abort.abort(new Error('deadline'));
        }, 20);
        return late.promise;
      };
      await errorOf(sink.send(batchOf(messages(11, 20)), abort.signal));
      await sink[Symbol.asyncDispose]();
      // The late request arrives when the next process owns the transactional id, but has sent nothing yet.
      await using next = await opened();
      const handled = broker.requests('Produce');
      late.resolve(undefined);
      await expect.poll(() => broker.requests('Produce')).toBe(handled + 1);
      expect((await next.position?.(never))?.position.seq).toBe(10);
      await next.send(batchOf(messages(11, 20), true), never);
      expect(seqs()).toEqual(range(1, 20));
      expect(aborts()).toEqual([]);
    });

    test('of an earlier owner may commit until it is fenced: the position is read after that', async () => {
      const first = await opened();
      await first.send(batchOf(messages(1, 10)), never);
      broker.fault = (api): Fault | undefined => {
        if (api !== 'InitProducerId') return undefined;
        broker.fault = () => undefined;
        // Just before it is fenced, the previous owner accepts another batch.
        return first.send(batchOf(messages(11, 20)), never);
      };
      await using second = await opened();
      expect((await second.position?.(never))?.position.seq).toBe(20);
      await second.send(batchOf(messages(21, 30)), never);
      expect(seqs()).toEqual(range(1, 30));
      await first[Symbol.asyncDispose]();
    });

    test('of a fenced owner sends no more records', async () => {
      const first = await opened();
      await first.send(batchOf(messages(1, 10)), never);
      await using second = await opened();
      expect(codeOf(await errorOf(first.send(batchOf(messages(11, 20)), never)))).toBe('sink_outcome_unknown');
      await second.send(batchOf(messages(11, 30)), never);
      expect(seqs()).toEqual(range(1, 30));
      expect(codeOf(await errorOf(first.send(batchOf(messages(31, 40)), never)))).toBe('sink_outcome_unknown');
      await first[Symbol.asyncDispose]();
    });

    test('of an owner whose last batch was refused repeats nothing that its successor has sent', async () => {
      const first = await opened();
      await first.send(batchOf(messages(1, 10)), never);
      broker.isRefused = (value) => value.includes('"seq":15,');
      expect(codeOf(await errorOf(first.send(batchOf(messages(11, 20)), never)))).toBe('sink_refused');
      broker.isRefused = () => false;
      // Half of the batch can be sent at once, unless another process has sent it.
      await first.send(batchOf(messages(11, 14)), never);
      broker.isRefused = (value) => value.includes('"seq":15,');
      expect(codeOf(await errorOf(first.send(batchOf(messages(15, 20)), never)))).toBe('sink_refused');
      broker.isRefused = () => false;
      await using second = await opened();
      await second.send(batchOf(messages(15, 30)), never);
      expect(codeOf(await errorOf(first.send(batchOf(messages(15, 17)), never)))).toBe('sink_outcome_unknown');
      expect(seqs()).toEqual(range(1, 30));
      await first[Symbol.asyncDispose]();
    });

    test('is invisible to consumers until it is committed', async () => {
      const sink = await opened();
      const abort = new AbortController();
      broker.fault = (api) => (api === 'EndTxn' ? 'silent' : undefined);
      const sending = errorOf(sink.send(batchOf(messages(1, 10)), abort.signal));
      await expect.poll(() => broker.topics.get('audit')?.[0]?.stored.length).toBe(1);
      expect(seqs()).toEqual([]);
      abort.abort(new Error('deadline'));
      await sending;
      await sink[Symbol.asyncDispose]();
    });
  });

  describe('the position', () => {
    test('is that of the last batch, after any number of batches', async () => {
      {
        await using sink = await opened();
        for (let i = 0; i < 7; i += 1) await sink.send(batchOf(messages(i * 10 + 1, i * 10 + 10)), never);
      }
      await using sink = await opened();
      expect(await sink.position?.(never)).toEqual({ position: positionOf(70), resumeNote: 'waybill-progress-siem', sink: 'siem' });
    });

    test('may lie far before the end of its topic', async () => {
      await deliver(10);
      const [log] = broker.topics.get('waybill-progress-siem') ?? [];
      for (let i = 0; i < 1_500; i += 1) log?.mark(1n, 0, true);
      await using sink = await opened();
      expect((await sink.position?.(never))?.position.seq).toBe(10);
    });

    test('has a topic that the sink creates with the required settings if it is missing', async () => {
      await using sink = await opened();
      expect(sink).toBeDefined();
      expect(broker.topics.get('waybill-progress-siem')).toHaveLength(1);
      expect(broker.config.get('waybill-progress-siem')).toEqual({
        ...{ 'cleanup.policy': 'compact', 'segment.bytes': '16777216', 'segment.ms': '600000', 'min.cleanable.dirty.ratio': '0.01' },
      });
    });

    test('of another state blocks the sink', async () => {
      await deliver(10);
      kept = new ModelKept('b'.repeat(32));
      const thrown = await errorOf(opened());
      expect(codeOf(thrown)).toBe('sink_blocked');
      expect(messageOf(thrown)).toMatch(/sink "siem" \(sinks\.siem\.progressTopic\): "waybill-progress-siem" belongs to another state/);
    });

    test('of each shard of a fleet is in its own partition: two shards with one id deliver in turn, each once', async () => {
      const shard = (number: number) => {
        const own = new ModelKept(String(number).repeat(32));
        const open = (): Promise<Sink> => kafka.open(settingsOf(broker), contextOf('siem', { fleet: { shard: number } }), own, never);
        return { open, own };
      };
      const [zero, one] = [shard(0), shard(1)];
      const missing = messageOf(await errorOf(zero.open()));
      expect(missing).toBe(
        'cannot use sink "siem" (sinks.siem.progressTopic): "waybill-progress-siem" does not exist, and each shard of the fleet needs a partition: "waybill setup kafka" prints the command',
      );
      broker.create('waybill-progress-siem', 1);
      expect(messageOf(await errorOf(one.open()))).toContain('"waybill-progress-siem" has 1 partition, and each shard');
      broker.create('waybill-progress-siem', 3);
      for (const [{ open }, from] of [
        [zero, 1],
        [one, 1_001],
        [zero, 11],
        [one, 1_011],
      ] as const) {
        await using sink = await open();
        // The first message of the next life was committed by the last one, whose process then ended without its answer.
        const found = await sink.position?.(never);
        expect(found?.position.seq).toBe(from % 1_000 === 1 ? undefined : from - 1);
        await sink.send(batchOf(messages(from, from + 9)), never);
      }
      expect(seqs()).toEqual([...range(1, 10), ...range(1_001, 1_010), ...range(11, 20), ...range(1_011, 1_020)]);
      const keys = broker
        .committed('waybill-progress-siem')
        .map((partition) => new Set(partition.map(({ value }) => /[01]{32}/.exec(value)?.[0])));
      expect(keys).toEqual([new Set(['0'.repeat(32)]), new Set(['1'.repeat(32)]), new Set()]);
    });

    test('after one of another state is valid: this state has adopted the sink', async () => {
      await deliver(10);
      const [log] = broker.topics.get('waybill-progress-siem') ?? [];
      const other = log?.stored.find(({ batch }) => batch?.records[0]?.key === 'siem')?.bytes ?? Buffer.alloc(0);
      const before = new KafkaModel().create('waybill-progress-siem');
      // The topic has a progress record of another journal, before any record of ours.
      const theirs = Buffer.from(other.toString('latin1').replace('a'.repeat(32), 'c'.repeat(32)), 'latin1');
      before.topics.get('waybill-progress-siem')?.[0]?.append(unowned(theirs));
      broker.topics.set('waybill-progress-siem', before.topics.get('waybill-progress-siem') ?? []);
      expect(messageOf(await errorOf(opened()))).toMatch(/belongs to another state/);
      broker.topics.get('waybill-progress-siem')?.[0]?.append(unowned(other));
      {
        await using sink = await opened();
        expect((await sink.position?.(never))?.position.seq).toBe(10);
      }
      broker.topics.get('waybill-progress-siem')?.[0]?.append(unowned(theirs));
      expect(messageOf(await errorOf(opened()))).toMatch(/is shared: another state wrote record \d+ after a record of this state/);
    });

    test('is adopted by an operation: then the topic belongs to the present state, and the former state is refused', async () => {
      await deliver(10);
      const before = kept;
      kept = new ModelKept('b'.repeat(32));
      const adopting = Object.assign(new ModelKept('b'.repeat(32)), { position: positionOf(4), adopt: true });
      {
        await using sink = await kafka.open(settingsOf(broker), contextOf('siem'), adopting, never);
        expect(await sink.position?.(never)).toMatchObject({ position: positionOf(4) });
      }
      // Without an operation and before the first batch: the topic names its state.
      {
        await using sink = await opened();
        expect((await sink.position?.(never))?.position).toEqual(positionOf(4));
      }
      await deliver(20);
      expect(seqs()).toEqual([...range(1, 10), ...range(5, 20)]);
      kept = before;
      expect(messageOf(await errorOf(opened()))).toMatch(/is shared: another state wrote record \d+ after a record of this state/);
      // An operator can also adopt the older state, if that is the correct one.
      await using again = await kafka.open(settingsOf(broker), contextOf('siem'), Object.assign(before, { adopt: true }), never);
      expect((await again.position?.(never))?.position).toEqual(positionOf(10));
      before.adopt = false;
      await using usual = await opened();
      expect((await usual.position?.(never))?.position).toEqual(positionOf(10));
    });

    test('that was lost is restored from the state by adopt; a topic of several writers is not adopted', async () => {
      await deliver(10);
      const adopting = Object.assign(kept, { adopt: true });
      {
        await using sink = await kafka.open(settingsOf(broker, { progressTopic: 'elsewhere' }), contextOf('siem'), adopting, never);
        expect((await sink.position?.(never))?.position.seq).toBe(10);
      }
      await using other = await opened({ progressTopic: 'progress' }, 'other');
      await other.send(batchOf(messages(1, 1)), never);
      const thrown = await errorOf(kafka.open(settingsOf(broker, { progressTopic: 'progress' }), contextOf('siem'), adopting, never));
      expect(messageOf(thrown)).toMatch(/"progress" is used by another writer/);
    });

    test('is stored by transactions only: without them adopt does not apply', () => {
      expect([true, false].map((exactlyOnce) => kafka.keepsPosition?.(settingsOf(broker, { exactlyOnce })))).toEqual([true, false]);
    });

    test('names what was delivered last for an operator, even if the response was lost', async () => {
      await deliver(10);
      const feed = (at: number): FeedPosition => ({ feed: 'dead-letters', at, sent: 1 });
      const retry = (seq: number): Batch => ({ ...batchOf(messages(seq, seq), true), through: kept.position, feed: feed(seq) });
      const abort = new AbortController();
      {
        await using sink = await opened();
        broker.fault = (api): Fault | undefined => {
          if (api !== 'EndTxn') return undefined;
          broker.fault = () => undefined;
          abort.abort(new Error('killed'));
          return 'answer lost';
        };
        await errorOf(sink.send(retry(3), abort.signal));
      }
      {
        await using sink = await opened();
        expect(await sink.position?.(never)).toMatchObject({ position: positionOf(10), feed: feed(3) });
        await sink.send(retry(5), never);
      }
      {
        await using sink = await opened();
        expect(await sink.position?.(never)).toMatchObject({ position: positionOf(10), feed: feed(5) });
        await sink.send(batchOf(messages(11, 12)), never);
      }
      await using sink = await opened();
      expect(await sink.position?.(never)).toMatchObject({ position: positionOf(12), feed: undefined });
      expect(seqs()).toEqual([...range(1, 10), 3, 5, 11, 12]);
    });

    test('in a topic that another sink writes blocks the sink', async () => {
      await using other = await opened({ progressTopic: 'progress' }, 'other');
      await other.send(batchOf(messages(1, 1)), never);
      const thrown = await errorOf(opened({ progressTopic: 'progress' }));
      expect(codeOf(thrown)).toBe('sink_blocked');
      expect(messageOf(thrown)).toMatch(/"progress" is used by another writer: record \d+ has the key "other\/open"/);
    });

    test('that was lost blocks the sink, and so does a topic with several partitions', async () => {
      await deliver(10);
      expect(messageOf(await errorOf(opened({ progressTopic: 'elsewhere' })))).toMatch(
        /"elsewhere" has no position, and entry 10 was delivered/,
      );
      broker.create('elsewhere', 2);
      expect(messageOf(await errorOf(opened({ progressTopic: 'elsewhere' })))).toMatch(/has 2 partitions and must have one/);
    });

    test('is not used if batches without a transaction followed it', async () => {
      await deliver(10);
      {
        await using plain = await opened({ exactlyOnce: false });
        kept.acknowledge(batchOf(messages(11, 50)), (await plain.send(batchOf(messages(11, 50)), never)).resumeNote);
      }
      await using sink = await opened();
      expect(await sink.position?.(never)).toBeUndefined();
      await sink.send(batchOf(messages(51, 60)), never);
      expect(seqs()).toEqual(range(1, 60));
    });

    test('shows the outcome of a batch only with transactions: only then may acknowledgements wait', () => {
      expect([kafka.resolvable(settingsOf(broker)), kafka.resolvable(settingsOf(broker, { exactlyOnce: false }))]).toEqual([true, false]);
    });
  });

  describe('errors', () => {
    test.each([
      ['a missing topic', 'topic', () => broker.topics.delete('audit'), () => broker.create('audit')],
      [
        'no right to the transactional id',
        'exactlyOnce',
        () => broker.denied.add(`waybill-${kept.journal}-siem`),
        () => broker.denied.clear(),
      ],
      [
        'no right to make the progress topic',
        'progressTopic',
        () => broker.denied.add('waybill-progress-siem'),
        () => broker.denied.clear(),
      ],
    ] as const)('%s: blocked, with the setting, and resumes when it is fixed', async (_what, setting, ruin, repair) => {
      ruin();
      const thrown = await errorOf(opened());
      expect(codeOf(thrown)).toBe('sink_blocked');
      expect(messageOf(thrown)).toMatch(new RegExp(`sink "siem" \\(sinks\\.siem\\.${setting}\\): `));
      repair();
      await deliver(10);
      expect(seqs()).toEqual(range(1, 10));
    });

    test('a revoked privilege to write blocks the sink; delivery resumes once it is granted again', async () => {
      await using sink = await opened();
      await sink.send(batchOf(messages(1, 10)), never);
      broker.denied.add('audit');
      for (let i = 0; i < 2; i += 1) {
        const thrown = await errorOf(sink.send(batchOf(messages(11, 20)), never));
        expect(codeOf(thrown)).toBe('sink_blocked');
        expect(messageOf(thrown)).toMatch(
          /cannot send to topic "audit" for sink "siem" \(sinks\.siem\.topic\): .*TOPIC_AUTHORIZATION_FAILED/,
        );
      }
      broker.denied.clear();
      await sink.send(batchOf(messages(11, 20)), never);
      expect(seqs()).toEqual(range(1, 20));
    });

    test('the broker refuses a message that is too long, and the producer is not used again', async () => {
      await using sink = await opened();
      broker.isRefused = (value) => value.includes('"seq":3,');
      const before = broker.requests('InitProducerId');
      expect(codeOf(await errorOf(sink.send(batchOf(messages(1, 4)), never)))).toBe('sink_refused');
      await sink.send(batchOf(messages(1, 2), true), never);
      expect(broker.requests('InitProducerId')).toBeGreaterThan(before);
      expect(seqs()).toEqual([1, 2]);
      expect((await sink.position?.(never))?.position.seq).toBe(2);
    });

    test.each(['none', 'gzip', 'zstd'] as const)(
      'max.message.bytes of the topic (%s): a longer message is rejected without being sent, the others arrive',
      async (compression) => {
        broker.create('audit', 1, { 'max.message.bytes': '3000' });
        broker.batchBytes = 3_000;
        await using sink = await opened({ compression });
        // Digits that no compression shortens.
        const noise = (seq: number): string => createHash('shake256', { outputLength: 4_000 }).update(String(seq)).digest('base64');
        const even = (seq: number): Message => message(seq, JSON.stringify({ seq, pad: 'x'.repeat(4_000) }));
        const batch = batchOf([message(1), message(2, noise(2)), message(3), message(4, noise(4)), even(5)]);
        const before = broker.requests('EndTxn');
        const taken = await sink.send(batch, never);
        const refused = compression === 'none' ? [2, 4, 5] : [2, 4];
        expect(taken.rejections.map(({ seq, code }) => [seq, code])).toEqual(refused.map((seq) => [seq, 'MESSAGE_TOO_LARGE']));
        expect(taken.rejections[0]?.message).toMatch(/^a message of \d+ bytes exceeds max\.message\.bytes=3000 of topic "audit"/);
        expect(seqs()).toEqual(compression === 'none' ? [1, 3] : [1, 3, 5]);
        expect(broker.requests('EndTxn') - before).toBe(1);
        // A batch of only such messages moves the position.
        expect((await sink.send(batchOf([message(6, noise(6))]), never)).rejections).toHaveLength(1);
        expect((await sink.position?.(never))?.position.seq).toBe(6);
        // The limit is read again before a message is rejected.
        broker.config.set('audit', { 'max.message.bytes': '9000' });
        broker.batchBytes = 9_000;
        expect((await sink.send(batchOf([message(7, noise(7))]), never)).rejections).toEqual([]);
      },
    );

    test('a broker that ends connections during its restart is retried if the sink was open before; else it may require SASL', async () => {
      broker.fault = (api) => (api === 'Metadata' ? 'ended' : undefined);
      const first = await errorOf(opened({}, 'never-open'));
      expect([codeOf(first), messageOf(first)]).toEqual(['sink_blocked', expect.stringContaining('does it require SASL') as string]);
      broker.fault = () => undefined;
      await (await opened({}, 'was-open'))[Symbol.asyncDispose]();
      broker.fault = (api) => (api === 'Metadata' ? 'ended' : undefined);
      const second = await errorOf(opened({}, 'was-open'));
      expect([codeOf(second), messageOf(second)]).toEqual(['sink_unavailable', expect.not.stringContaining('SASL') as string]);
    });

    /** A port that runs `act` on each connection. */
    async function portThat(act: (socket: Socket) => void) {
      const sockets = new Set<Socket>();
      const server = createServer((socket) => {
        sockets.add(socket.on('error', () => undefined));
        act(socket);
      });
      server.listen(0, '127.0.0.1');
      await once(server, 'listening');
      return {
        port: (server.address() as AddressInfo).port,
        [Symbol.asyncDispose]: async () => {
          for (const socket of sockets) socket.destroy();
          server.close();
          await once(server, 'close');
        },
      };
    }

    test('a broker that announces a response of 2 GB is cut before it is read', async () => {
      let sent = 0;
      await using broken = await portThat((socket) => {
        const part = Buffer.alloc(1024 * 1024);
        const more = (): void => {
          for (let isTaken = true; isTaken && sent < 256 && !socket.destroyed; sent += 1) isTaken = socket.write(part);
        };
        socket.once('data', () => {
          socket.write(Buffer.from('7ffffff000000000', 'hex'));
          more();
        });
        socket.on('drain', more);
      });
      const thrown = await errorOf(opened({ brokers: [`127.0.0.1:${broken.port}`] }));
      expect(codeOf(thrown)).toBe('sink_blocked');
      expect(messageOf(thrown)).toMatch(
        /^cannot connect sink "siem": sinks\.siem\.brokers: "127\.0\.0\.1:\d+" announces a response of 2147483632 bytes, above the maximum of 67108864: does it speak Kafka\?$/,
      );
      expect(sent).toBeLessThan(64);
    });

    test('the length of a response is read from chunks of any size', () => {
      const answers = Buffer.concat([1, 0, 300, 5].map((length) => Buffer.concat([Buffer.from([0, 0, length >> 8, length & 255]), Buffer.alloc(length, 255)]))); // prettier-ignore
      const large = Buffer.concat([answers, Buffer.from([4, 0, 0, 1])]);
      for (const size of [1, 3, 7, large.length]) {
        const lengths = new AnswerLengths();
        const found: (number | undefined)[] = [];
        for (let at = 0; at < large.length; at += size) found.push(lengths.read(large.subarray(at, at + size)));
        expect(found.filter((each) => each !== undefined)).toEqual([0x04000001]);
        expect(found.at(-1)).toBe(0x04000001);
      }
    });

    test('the error for a broker that accepts the connection and never responds names it, with the setting', async () => {
      await using deaf = await portThat((socket) => socket.resume());
      const sleep = (ms: number, signal: AbortSignal) => (ms === 8_000 ? Promise.resolve() : systemClock.sleep(ms, signal));
      const open = kafka.open(settingsOf(broker, { brokers: [`127.0.0.1:${deaf.port}`] }), contextOf('siem', { clock: { ...systemClock, sleep } }), kept, never); // prettier-ignore
      const thrown = await errorOf(open);
      expect(codeOf(thrown)).toBe('sink_unavailable');
      expect(messageOf(thrown)).toMatch(/sinks\.siem\.brokers: "127\.0\.0\.1:\d+" accepted the connection but did not respond within 8 s/);
    });

    test('SASL without a user, or with a wrong password, blocks; the message has no password', async () => {
      await using guarded = await new KafkaModel({ user: { name: 'alice', password: 'open sesame' } }).create('audit').listen();
      const sasl = (password: string) => ({ sasl: { mechanism: 'PLAIN', username: 'alice', password: secret(password) } });
      const open = (overrides: object) => kafka.open(settingsOf(guarded, overrides), contextOf('siem'), kept, never);
      const wrong = await errorOf(open(sasl('wrong horse')));
      expect(codeOf(wrong)).toBe('sink_blocked');
      expect(messageOf(wrong)).toMatch(/sink "siem" \(sinks\.siem\.sasl\): .*Invalid username or password/);
      expect(`${messageOf(wrong)} ${JSON.stringify(wrong)} ${(wrong as Error).stack ?? ''}`).not.toContain('wrong horse');
      const other = await errorOf(open({ sasl: { mechanism: 'SCRAM-SHA-512', username: 'alice', password: secret('x') } }));
      expect(codeOf(other)).toBe('sink_blocked');
      expect(messageOf(other)).toMatch(/\(sinks\.siem\.sasl\.mechanism\)/);
      await using sink = await open(sasl('open sesame'));
      await sink.send(batchOf(messages(1, 3)), never);
      expect(guarded.committed('audit')[0]).toHaveLength(3);
    });
  });

  describe('TLS', () => {
    let authority: Authority;
    beforeAll(async () => {
      authority = await createAuthority('Example root');
    });

    test('an untrusted certificate of a broker blocks with a reason; with its CA it is accepted', async () => {
      const tls = await authority.issue({ name: 'broker', hosts: ['127.0.0.1'] });
      await using secure = await new KafkaModel({ tls }).create('audit').listen();
      const thrown = await errorOf(kafka.open(settingsOf(secure, { tls: {} }), contextOf('siem'), kept, never));
      expect(codeOf(thrown)).toBe('sink_blocked');
      expect(messageOf(thrown)).toMatch(
        /sink "siem": sinks\.siem\.tls\.ca: certificate of 127\.0\.0\.1 issued by 'Example root' is not trusted/,
      );
      await using sink = await kafka.open(settingsOf(secure, { tls: { ca: pem(authority.cert) } }), contextOf('siem'), kept, never);
      await sink.send(batchOf(messages(1, 3)), never);
      expect(secure.committed('audit')[0]).toHaveLength(3);
    });

    test('TLS to a plain text port blocks, and plain text to a TLS port', { timeout: 300_000 }, async () => {
      const tls = await authority.issue({ name: 'broker', hosts: ['127.0.0.1'] });
      await using secure = await new KafkaModel({ tls }).create('audit').listen();
      const [plainToTls, tlsToPlain] = await Promise.all([
        errorOf(kafka.open(settingsOf(secure), contextOf('siem'), kept, never)),
        errorOf(opened({ tls: { ca: pem(authority.cert) } })),
      ]);
      expect([codeOf(plainToTls), codeOf(tlsToPlain)]).toEqual(['sink_blocked', 'sink_blocked']);
      expect(messageOf(plainToTls)).toMatch(
        /sinks\.siem\.brokers\): "127\.0\.0\.1:\d+" ends the connection without a response: does it require TLS/,
      );
      expect(messageOf(tlsToPlain)).toMatch(/does (it|not) speak TLS on this port/);
    });
  });

  describe('check', () => {
    const find = (overrides: object = {}) => kafka.check(settingsOf(broker, overrides), contextOf('siem'), never);

    test('reports the topics and the settings that weaken the guarantee, and sends no record', async () => {
      broker.create('audit', 3, { 'min.insync.replicas': '1', 'unclean.leader.election.enable': 'true' });
      await deliver(10);
      const before = broker.committed('audit').flat().length;
      const found = (await find()).map(({ level, message: words }) => `${level}: ${words}`);
      expect(found).toEqual([
        expect.stringMatching(/^ok: topic "audit" exists, with 3 partitions; acks -1/),
        expect.stringMatching(/^warning: "audit": 1 replica/),
        expect.stringMatching(/^warning: "audit": min\.insync\.replicas is 1/),
        expect.stringMatching(/^warning: "audit": unclean\.leader\.election\.enable is true/),
        'ok: may write to "audit"',
        expect.stringMatching(/^ok: may own transactional ids/),
        expect.stringMatching(/^ok: progress topic "waybill-progress-siem" exists/),
        expect.stringMatching(/^warning: "waybill-progress-siem": 1 replica/),
        expect.stringMatching(/^warning: "waybill-progress-siem": min\.insync\.replicas is 1/),
        'ok: may write to "waybill-progress-siem"',
        expect.stringMatching(/^ok: may read "waybill-progress-siem"/),
      ]);
      expect(broker.committed('audit').flat()).toHaveLength(before);
    });

    test('names a small max.message.bytes', async () => {
      broker.create('audit', 1, { 'max.message.bytes': '3000' });
      expect(await find()).toContainEqual({
        level: 'warning',
        message: expect.stringContaining('max.message.bytes is 3000') as string,
        setting: 'sinks.siem.topic',
      });
    });

    test.each([
      ['payloadId', 'compact', /^error: "audit": cleanup\.policy is compact: brokers keep only the last message of each payloadId/],
      ['source', 'compact,delete', /^error: "audit": cleanup\.policy is compact,delete: .*each source/],
      ['none', 'compact', /^error: "audit": .*brokers refuse messages without a key/],
    ])('a compacted topic is an error with key: %s (%s), and the sink logs it when it opens', async (key, policy, words) => {
      broker.create('audit', 1, { 'cleanup.policy': policy });
      const found = (await find({ key })).map(({ level, message }) => `${level}: ${message}`);
      expect(found.filter((line) => line.includes('cleanup.policy is'))).toEqual([expect.stringMatching(words)]);
      const events: string[] = [];
      const log = { ...contextOf('siem').log, write: (...[event]: readonly unknown[]) => void events.push(event as string) };
      await using _sink = await kafka.open(settingsOf(broker, { key }), contextOf('siem', { log }), kept, never);
      expect(events).toContain('sink.topic_compacted');
    });

    test('a compacted topic deletes nothing with key: uid; a topic that deletes soon or by size is a warning', async () => {
      const lines = async (config: Record<string, string>, key = 'uid'): Promise<string[]> => {
        broker.create('audit', 1, config);
        const found = (await find({ key })).map(({ level, message }) => `${level}: ${message}`);
        return found.filter((line) => /audit": (cleanup|retention)/.test(line));
      };
      expect(await lines({ 'cleanup.policy': 'compact', 'retention.ms': '1000' })).toEqual([]);
      expect(await lines({ 'cleanup.policy': 'delete', 'retention.ms': '604800000', 'retention.bytes': '-1' }, 'payloadId')).toEqual([]);
      expect(await lines({ 'cleanup.policy': 'delete', 'retention.ms': '5400000', 'retention.bytes': '1073741824' }, 'payloadId')).toEqual([
        expect.stringMatching(/^warning: "audit": retention\.ms is 5400000 \(1\.5 h\)/),
        expect.stringMatching(/^warning: "audit": retention\.bytes is 1073741824/),
      ]);
    });

    test('checks the topic of each source if its name has {source}', async () => {
      broker.create('audit.berlin', 2);
      const sources = { sources: ['berlin', 'paris'] };
      const found = await kafka.check(settingsOf(broker, { topic: 'audit.{source}' }), contextOf('siem', sources), never);
      const lines = found.map(({ level, message: words }) => `${level}: ${words}`).filter((line) => line.includes('audit.'));
      expect(lines).toEqual([
        expect.stringMatching(/^ok: topic "audit\.berlin" exists, with 2 partitions/),
        expect.stringMatching(/^warning: "audit\.berlin": 1 replica/),
        expect.stringMatching(/^warning: "audit\.berlin": min\.insync\.replicas is 1/),
        'ok: may write to "audit.berlin"',
        'error: topic "audit.paris" does not exist: "waybill setup kafka --sink siem" prints the command that creates it',
      ]);
    });

    test('fences no running sink', async () => {
      await using sink = await opened();
      await find();
      await sink.send(batchOf(messages(1, 10)), never);
      expect(seqs()).toEqual(range(1, 10));
    });

    test('names each missing privilege', async () => {
      broker.create('waybill-progress-siem', 1);
      broker.denied.add('audit').add('waybill-check-siem').add('config of audit');
      const errors = (await find()).filter(({ level }) => level === 'error');
      expect(errors.map(({ setting }) => setting)).toEqual(['sinks.siem.topic', 'sinks.siem.exactlyOnce']);
      expect(errors[1]?.message).toMatch(/needs Write on transactional ids that begin with "waybill-"/);
    });

    test('reports a missing topic, and one with unsuitable settings', async () => {
      broker.topics.delete('audit');
      broker.create('waybill-progress-siem', 2);
      expect((await find()).filter(({ level }) => level === 'error').map(({ message: words }) => words)).toEqual([
        expect.stringMatching(/^topic "audit" does not exist/),
        expect.stringMatching(/has 2 partitions and must have one/),
      ]);
    });
  });
});

/** The batch without an owner: no producer id, epoch, sequence, and no transaction. */
function unowned(bytes: Buffer): Buffer {
  const own = Buffer.from(bytes);
  own.writeInt16BE(own.readInt16BE(21) & ~0x10, 21);
  own.writeBigInt64BE(-1n, 43);
  own.writeInt16BE(-1, 51);
  own.writeInt32BE(-1, 53);
  return own;
}
