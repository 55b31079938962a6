/**
 * The sink `kafka` with real brokers, counted by kcat. `WAYBILL_SERVER_KILLS` is the number of
 * kills of sender and broker during delivery (5).
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer as createHttp } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { codeOf, messageOf } from '../../src/errors/errors.ts';
import type { ResumePoint, Sink } from '../../src/model/sink.ts';
import { kafka } from '../../src/sink/kafka/index.ts';
import { partitionFor } from '../../src/sink/kafka/messages.ts';
import { setupText } from '../../src/sink/kafka/setup.ts';
import { createAuthority } from '../support/certificates.ts';
import { batchOf, contextOf, messages, ModelKept } from '../support/sinks/sink-batches.ts';
import { sinkSuite } from '../support/sinks/sink-suite.ts';
import type { Place } from '../support/sinks/sink-suite.ts';
import { aclsOf, administer, allow, createTopic } from '../support/servers/kafka-admin.ts';
import { KafkaBroker, kafkaMissing, kafkaVersions, password } from '../support/servers/kafka-broker.ts';
import type { Listener } from '../support/servers/kafka-broker.ts';
import { KafkaProxy } from '../support/servers/kafka-proxy.ts';
import { notAsked } from '../support/servers/programs.ts';

const never = new AbortController().signal;
const kills = Number(process.env['WAYBILL_SERVER_KILLS'] ?? 5);
type Settings = Parameters<typeof kafka.open>[0];
const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });
const secret = (text: string) => ({ read: () => text, refresh: () => undefined, describe: () => 'a secret of the test' });
const settingsOf = (address: string, topic: string, overrides: object = {}): Settings => ({
  ...kafka.config.parse({ brokers: [address], topic }),
  ...overrides,
});

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
}

let topics = 0;
async function freshTopic(broker: KafkaBroker, numPartitions = 1, config: Readonly<Record<string, string>> = {}): Promise<string> {
  const topic = `audit-${(topics += 1)}`;
  await createTopic(broker, { topic, numPartitions, configEntries: Object.entries(config).map(([name, value]) => ({ name, value })) });
  return topic;
}

const seqOf = ({ value }: { readonly value: string }): number => (JSON.parse(value) as { seq: number }).seq;
const range = (through: number): number[] => messages(1, through).map(({ seq }) => seq);

/** Uses a proxy that can drop responses, so that the suite can cut a response and delay a send. */
class RealPlace implements Place {
  readonly #broker: KafkaBroker;
  readonly #proxy: KafkaProxy;
  readonly #topic: string;
  readonly #overrides: object;
  readonly #opened: Sink[] = [];

  constructor(broker: KafkaBroker, proxy: KafkaProxy, topic: string, overrides: object) {
    this.#broker = broker;
    this.#proxy = proxy;
    this.#topic = topic;
    this.#overrides = overrides;
    proxy.heal();
  }

  readonly open = async (kept: ResumePoint): Promise<Sink> => {
    const progressTopic = `progress-of-${this.#topic}`;
    const settings = settingsOf(this.#proxy.address, this.#topic, { progressTopic, ...this.#overrides });
    const sink = await kafka.open(settings, contextOf('under-test'), kept, never);
    this.#opened.push(sink);
    return sink;
  };

  async kill(): Promise<void> {
    this.#proxy.cut();
    for (const sink of this.#opened.splice(0)) await sink[Symbol.asyncDispose]();
  }

  async received(): Promise<readonly string[]> {
    return (await this.#broker.read(this.#topic)).map(({ value }) => value);
  }

  cutAnswer(): void {
    this.#proxy.loseAnswer('exactlyOnce' in this.#overrides ? 'Produce' : 'EndTxn');
  }

  stall(): void {
    this.#proxy.stall();
  }

  ruin(): Promise<void> {
    return this.#proxy.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#proxy.listen();
  }
}

for (const version of kafkaVersions) {
  const missing = notAsked() ?? kafkaMissing(version);
  if (missing !== undefined) {
    test(`Kafka ${version}`, ({ skip }) => {
      skip(missing);
    });
    continue;
  }
  describe(`Kafka ${version}`, () => {
    let proxy: KafkaProxy;
    let broker: KafkaBroker;
    let kept: ModelKept;
    const warnings: Error[] = [];
    process.on('warning', (warning) => warnings.push(warning));
    beforeAll(async () => {
      proxy = await new KafkaProxy().listen();
      broker = await KafkaBroker.start(version, { advertised: proxy.address, acls: true });
      proxy.target = broker.port('PROXIED');
    }, 300_000);
    afterAll(async () => {
      await broker[Symbol.asyncDispose]();
      await proxy.close();
      expect(warnings).toEqual([]);
    });
    beforeEach(() => {
      kept = new ModelKept();
    });

    const start = (overrides: object) => async () => new RealPlace(broker, proxy, await freshTopic(broker), overrides);
    const { formats } = kafka;
    sinkSuite({ name: 'exactly once', formats, twice: () => 0, secrets: [], batches: 60, start: start({}) });
    sinkSuite({ name: 'plain', formats, twice: (size) => size, secrets: [], batches: 60, start: start({ exactlyOnce: false }) });

    /**
     * Like the delivery loop, until all messages up to `through` are accepted. @returns the number
     * of restarts
     */
    async function deliver(
      open: (signal: AbortSignal) => Promise<Sink>,
      through: number,
      size: number,
      deadlineMs = 30_000,
    ): Promise<number> {
      const began = performance.now();
      for (let again = 0; ; again += 1) {
        try {
          await using sink = await open(AbortSignal.timeout(deadlineMs));
          const found = await sink.position?.(never);
          if (found) kept.acknowledge({ ...batchOf([]), through: found.position }, found.resumeNote);
          while (kept.position.seq < through) {
            const batch = batchOf(messages(kept.position.seq + 1, Math.min(through, kept.position.seq + size)), true);
            kept.acknowledge(batch, (await sink.send(batch, AbortSignal.timeout(deadlineMs))).resumeNote);
          }
          return again;
        } catch (thrown) {
          if (performance.now() - began > 600_000) throw thrown;
          await new Promise((resolve) => setTimeout(resolve, 100));
        }
      }
    }

    /** Waits until a later message is acknowledged: delivery is in progress. */
    async function taken(seq: number): Promise<void> {
      while (kept.position.seq <= seq) await new Promise((resolve) => setTimeout(resolve, 5));
    }

    test('two shards of a fleet with one progress topic deliver in turn, each from its own position', { timeout: 300_000 }, async () => {
      const topic = await freshTopic(broker);
      const progressTopic = `progress-${topic}`;
      await createTopic(broker, { topic: progressTopic, numPartitions: 3 });
      const owners = [0, 2].map((shard) => ({ shard, own: new ModelKept(String(shard).repeat(32)) }));
      for (let life = 0; life < 3; life += 1) {
        for (const { shard, own } of owners) {
          const settings = settingsOf(broker.address(), topic, { progressTopic });
          await using sink = await kafka.open(settings, contextOf('siem', { fleet: { shard } }), own, never);
          const from = shard * 1_000 + life * 10;
          // Nothing is acknowledged: the topic alone has the position.
          expect((await sink.position?.(never))?.position.seq).toBe(life === 0 ? undefined : from);
          await sink.send(batchOf(messages(from + 1, from + 10)), never);
        }
      }
      expect((await committed(topic)).toSorted((a, b) => a - b)).toEqual([...range(30), ...range(30).map((seq) => seq + 2_000)]);
      const other = kafka.open(
        settingsOf(broker.address(), topic, { progressTopic }),
        contextOf('siem', { fleet: { shard: 3 } }),
        kept,
        never,
      );
      expect(messageOf(await errorOf(other))).toContain('has 3 partitions, and each shard of the fleet needs a partition');
    });

    const committed = async (topic: string): Promise<number[]> => (await broker.read(topic)).map(seqOf);

    test(
      'keys go to the partition that kcat (murmur2) chooses, with their headers; kcat reads gzip and zstd',
      { timeout: 300_000 },
      async () => {
        for (const compression of ['none', 'gzip', 'zstd'] as const) {
          const topic = await freshTopic(broker, 7);
          await using sink = await kafka.open(settingsOf(broker.address(), topic, { compression }), contextOf(`k-${topic}`), kept, never);
          const many = messages(1, 300).map((one) => ({ ...one, key: `payload ${one.seq % 50}` }));
          await sink.send(batchOf(many), never);
          const came = await broker.read(topic);
          expect(came.map(seqOf).sort((a, b) => a - b)).toEqual(range(300));
          for (const { key, partition } of came) expect(partition).toBe(partitionFor(key, 7));
          expect(came.find((one) => seqOf(one) === 1)?.headers).toBe(`id=${many[0]?.uid ?? ''},number=1,source=records`);
          // librdkafka's murmur2 as the second implementation.
          const other = await freshTopic(broker, 7);
          broker.write(other, [...new Set(many.map(({ key }) => key))]);
          for (const { key, partition } of await broker.read(other)) expect(partition).toBe(partitionFor(key, 7));
        }
      },
    );

    test("a batch that exceeds the topic's limit is split, and a message that is too long is rejected", async () => {
      const topic = await freshTopic(broker, 1, { 'max.message.bytes': '5000' });
      await using sink = await kafka.open(settingsOf(broker.address(), topic), contextOf(`k-${topic}`), kept, never);
      await sink.send(batchOf(messages(1, 300)), never);
      const long = { ...messages(301, 301)[0], bytes: Buffer.from(JSON.stringify({ seq: 301, pad: 'x'.repeat(6_000) })) } as ReturnType<
        typeof messages
      >[number];
      const { rejections } = await sink.send(batchOf([long]), never);
      expect(rejections).toMatchObject([{ seq: 301, message: expect.stringContaining('max.message.bytes=5000') as string }]);
      await sink.send(batchOf(messages(302, 310)), never);
      expect(await committed(topic)).toEqual([...range(300), ...messages(302, 310).map(({ seq }) => seq)]);
    });

    test(
      `the sender's connection is cut ${kills * 4} times during delivery, and responses to commits are lost: once, in order`,
      { timeout: 900_000 },
      async () => {
        const topic = await freshTopic(broker);
        const open = (): Promise<Sink> => kafka.open(settingsOf(proxy.address, topic), contextOf(`k-${topic}`), kept, never);
        const through = kills * 4 * 400;
        const done = new AbortController();
        const ended = once(done.signal, 'abort');
        const cutting = (async () => {
          for (let i = 0; i < kills * 4; i += 1) {
            await Promise.race([taken(kept.position.seq), ended]);
            await new Promise((resolve) => setTimeout(resolve, (i * 37) % 150));
            if (done.signal.aborted) return;
            if (i % 2 === 0) proxy.cut();
            else proxy.loseAnswer('EndTxn');
          }
        })();
        const again = await deliver(open, through, 100);
        done.abort();
        await cutting;
        proxy.heal();
        expect(await committed(topic)).toEqual(range(through));
        expect(again).toBeGreaterThan(0);
      },
    );

    test(`the sender is killed ${kills * 4} times at any moment: once, in order`, { timeout: 900_000 }, async () => {
      const topic = await freshTopic(broker);
      const through = kills * 4 * 1_000;
      const sender = fileURLToPath(new URL('../support/servers/kafka-sender.ts', import.meta.url));
      const begin = (last: number) => {
        const child = spawn(process.execPath, [sender, broker.address(), topic, String(last), '50'], { stdio: ['ignore', 'pipe', 'pipe'] });
        let errors = '';
        child.stderr.on('data', (chunk: Buffer) => (errors += chunk.toString()));
        return { child, ended: once(child, 'exit').then(([code]) => ({ code: code as number | null, errors })) };
      };
      let killed = 0;
      for (let i = 0; i < kills * 4; i += 1) {
        const { child, ended } = begin(through);
        // Half of the kills hit the open, which fences the previous sender.
        if (i % 2 === 0) await once(child.stdout, 'data');
        await new Promise((resolve) => setTimeout(resolve, i % 2 === 0 ? (i * 13) % 120 : 400 + ((i * 29) % 400)));
        child.kill('SIGKILL');
        if ((await ended).code === null) killed += 1;
      }
      expect(await begin(through).ended).toEqual({ code: 0, errors: '' });
      expect(await committed(topic)).toEqual(range(through));
      expect(killed).toBeGreaterThan(kills);
    });

    test(`the broker is killed ${kills} times during delivery: once, in order`, { timeout: 900_000 }, async () => {
      const topic = await freshTopic(broker);
      const open = (): Promise<Sink> => kafka.open(settingsOf(proxy.address, topic), contextOf(`k-${topic}`), kept, never);
      let through = 0;
      for (let i = 0; i < kills; i += 1) {
        through += 4_000;
        const delivering = deliver(open, through, 100);
        await taken(kept.position.seq);
        await new Promise((resolve) => setTimeout(resolve, i * 60));
        await broker.end(i % 2 === 0 ? 'SIGKILL' : 'SIGTERM');
        await broker.run();
        await delivering;
      }
      expect(await committed(topic)).toEqual(range(through));
    });

    test('the broker is frozen during delivery for longer than our deadline: once, in order', { timeout: 900_000 }, async () => {
      const topic = await freshTopic(broker);
      const open = (signal: AbortSignal): Promise<Sink> =>
        kafka.open(settingsOf(broker.address(), topic), contextOf(`k-${topic}`), kept, signal);
      let through = 0;
      let again = 0;
      for (let i = 0; i < kills; i += 1) {
        through += 3_000;
        const delivering = deliver(open, through, 100, 3_000);
        await taken(kept.position.seq);
        await new Promise((resolve) => setTimeout(resolve, i * 10));
        process.kill(broker.pid, 'SIGSTOP');
        await new Promise((resolve) => setTimeout(resolve, 4_000));
        process.kill(broker.pid, 'SIGCONT');
        again += await delivering;
      }
      expect(await committed(topic)).toEqual(range(through));
      expect(again).toBeGreaterThan(0);
    });

    test(
      'the printed permissions are required and sufficient: without any one of them blocked, with all of them ok',
      { timeout: 600_000 },
      async () => {
        const topic = await freshTopic(broker, 1, { 'min.insync.replicas': '2', 'unclean.leader.election.enable': 'true' });
        await administer(broker, (admin) => admin.deleteTopics({ topics: [topic] }));
        const sasl = { mechanism: 'SCRAM-SHA-512', username: 'alice', password: secret(password) };
        const settings = settingsOf(broker.address('SASL'), topic, { sasl, progressTopic: `progress-${topic}` });
        const open = (): Promise<Sink> => kafka.open(settings, contextOf('lake'), kept, never);
        const isBlocked = async (words: RegExp): Promise<void> => {
          const thrown = await errorOf(open());
          expect({ code: codeOf(thrown), message: messageOf(thrown) }).toEqual({
            code: 'sink_blocked',
            message: expect.stringMatching(words) as string,
          });
          expect(messageOf(thrown)).toContain('"lake"');
          expect(messageOf(thrown)).not.toContain(password);
        };
        const commands = setupText('lake', settings, []).split('\n');
        const acls = commands.filter((line) => line.startsWith('kafka-acls.sh'));
        expect(acls).toHaveLength(4);
        const grant = (line: string | undefined): Promise<unknown> =>
          administer(broker, (admin) => admin.createAcls({ acl: aclsOf(line ?? '') }));
        await isBlocked(/sinks\.lake\.topic\): .*TOPIC_AUTHORIZATION_FAILED/);
        await grant(acls[0]);
        await isBlocked(/topic "audit-\d+" does not exist/);
        await createTopic(broker, { topic });
        await isBlocked(/sinks\.lake\.progressTopic\): .*AUTHORIZATION_FAILED/);
        await grant(acls[1]);
        // The Kafka user may write to the topic, but not create it.
        await isBlocked(/create topic "progress-audit-\d+" .*AUTHORIZATION_FAILED/);
        await createTopic(broker, { topic: `progress-${topic}` });
        await isBlocked(/sinks\.lake\.exactlyOnce\): .*needs Write on transactional ids.*TRANSACTIONAL_ID_AUTHORIZATION_FAILED/);
        await grant(acls[2]);
        await isBlocked(/needs Read on groups that begin with "waybill-".*GROUP_AUTHORIZATION_FAILED/);
        const early = await kafka.check(settings, contextOf('lake'), never);
        expect(early.filter(({ level }) => level === 'error').map(({ message: words }) => words)).toEqual([
          expect.stringMatching(/GROUP_AUTHORIZATION_FAILED/),
        ]);
        await grant(acls[3]);
        await using sink = await open();
        await sink.send(batchOf(messages(1, 10)), never);
        const found = await kafka.check(settings, contextOf('lake'), never);
        expect(found.filter(({ level }) => level === 'error')).toEqual([]);
        expect(found.map(({ message: words }) => words)).toContain(`may write to "${topic}"`);
        // A check writes no record: consumers with read_uncommitted see only the ten.
        expect(await broker.read(topic, { isolation: 'read_uncommitted' })).toHaveLength(10);
        await sink.send(batchOf(messages(11, 20)), never);
      },
    );

    test.each<[string, Listener, object, RegExp | undefined]>([
      ['PLAIN', 'SASL', { mechanism: 'PLAIN', username: 'alice', password: secret(password) }, undefined],
      ['SCRAM-SHA-256', 'SASL', { mechanism: 'SCRAM-SHA-256', username: 'alice', password: secret(password) }, undefined],
      ['SCRAM-SHA-512 over TLS', 'SASLTLS', { mechanism: 'SCRAM-SHA-512', username: 'alice', password: secret(password) }, undefined],
      ['PLAIN, wrong', 'SASL', { mechanism: 'PLAIN', username: 'alice', password: secret('not it') }, /sinks\.siem\.sasl\): /],
      [
        'SCRAM-SHA-256, wrong',
        'SASLTLS',
        { mechanism: 'SCRAM-SHA-256', username: 'alice', password: secret('not it') },
        /sinks\.siem\.sasl\): /,
      ],
    ])('SASL %s', { timeout: 300_000 }, async (_name, listener, sasl, refusal) => {
      const topic = await freshTopic(broker);
      await allow(broker, 'alice');
      const tls = listener === 'SASLTLS' ? { tls: { ca: pem(broker.authority.cert) } } : {};
      const settings = settingsOf(broker.address(listener), topic, { sasl, ...tls, progressTopic: `progress-${topic}` });
      const opening = kafka.open(settings, contextOf('siem'), kept, never);
      if (refusal) {
        const thrown = await errorOf(opening);
        expect({ code: codeOf(thrown), message: messageOf(thrown) }).toEqual({
          code: 'sink_blocked',
          message: expect.stringMatching(refusal) as string,
        });
        expect(messageOf(thrown)).not.toContain('not it');
        return;
      }
      await using sink = await opening;
      await sink.send(batchOf(messages(1, 10)), never);
    });

    test('OAUTHBEARER: the token of the endpoint is sent; a rejected client is blocked', { timeout: 300_000 }, async () => {
      const topic = await freshTopic(broker);
      await allow(broker, 'alice');
      let status = 200;
      const endpoint = createHttp((request, response) => {
        request.resume();
        const now = Math.floor(Date.now() / 1000);
        const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
        // A token that a broker without a validator accepts: unsecured (RFC 7515 section 6).
        const access_token = `${part({ alg: 'none' })}.${part({ sub: 'alice', iat: now, exp: now + 600 })}.`;
        const isKnown = request.headers.authorization === `Basic ${Buffer.from('waybill:client%20secret').toString('base64')}`;
        response.writeHead(isKnown ? status : 401, { 'content-type': 'application/json' });
        response.end(
          JSON.stringify(isKnown && status === 200 ? { access_token, expires_in: 600, token_type: 'Bearer' } : { error: 'invalid_client' }),
        );
      }).listen(0, '127.0.0.1');
      await once(endpoint, 'listening');
      const tokenUrl = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/token`;
      const sasl = (clientSecret: string) => ({
        mechanism: 'OAUTHBEARER',
        oauth: { tokenUrl, clientId: 'waybill', clientSecret: secret(clientSecret) },
      });
      const open = (clientSecret: string): Promise<Sink> =>
        kafka.open(
          settingsOf(broker.address('SASL'), topic, { sasl: sasl(clientSecret), progressTopic: `progress-${topic}` }),
          contextOf('siem'),
          kept,
          never,
        );
      try {
        {
          await using sink = await open('client secret');
          await sink.send(batchOf(messages(1, 10)), never);
        }
        const wrong = await errorOf(open('wrong secret'));
        expect(codeOf(wrong)).toBe('sink_blocked');
        expect(messageOf(wrong)).toMatch(/sink "siem" \(sinks\.siem\.sasl\.oauth\.clientSecret\): invalid_client/);
        expect(messageOf(wrong)).not.toContain('wrong secret');
        status = 503;
        expect(codeOf(await errorOf(open('client secret')))).toBe('sink_unavailable');
      } finally {
        endpoint.close();
      }
    });

    describe('TLS', () => {
      const open = (listener: Listener, topic: string, tls: object | undefined): Promise<Sink> =>
        kafka.open(
          settingsOf(broker.address(listener), topic, { tls, progressTopic: `progress-${topic}` }),
          contextOf('siem'),
          kept,
          never,
        );
      const blocked = async (promise: Promise<unknown>): Promise<string> => {
        const thrown = await errorOf(promise);
        expect({ code: codeOf(thrown), message: messageOf(thrown) }).toMatchObject({ code: 'sink_blocked' });
        return messageOf(thrown);
      };

      test('a trusted certificate is accepted, also with a client certificate if requested', { timeout: 300_000 }, async () => {
        const topic = await freshTopic(broker);
        const ca = pem(broker.authority.cert);
        const { cert, key } = await broker.authority.issue({ name: 'collector' });
        await allow(broker, 'CN=collector');
        await allow(broker, 'ANONYMOUS');
        {
          await using sink = await open('TLS', topic, { ca });
          await sink.send(batchOf(messages(1, 10)), never);
          kept.acknowledge(batchOf(messages(1, 10)), `progress-${topic}`);
        }
        await using sink = await open('MTLS', topic, { ca, cert: pem(cert), key: pem(key) });
        await sink.send(batchOf(messages(11, 20)), never);
        expect(await committed(topic)).toEqual(range(20));
        expect(await blocked(open('MTLS', topic, { ca }))).toMatch(
          /sink "siem": sinks\.siem\.tls\.cert: .* requires a client certificate and none is set/,
        );
      });

      test(
        'an untrusted certificate, another name, or TLS to a plain-text port: blocked, with the setting',
        { timeout: 300_000 },
        async () => {
          const topic = await freshTopic(broker);
          const other = await createAuthority('Another root');
          const ca = pem(broker.authority.cert);
          expect(await blocked(open('TLS', topic, { ca: pem(other.cert) }))).toMatch(
            /sinks\.siem\.tls\.ca: certificate of .* issued by 'Kafka root' is not trusted/,
          );
          expect(await blocked(open('TLS', topic, { ca, serverName: 'other.example' }))).toMatch(
            /sinks\.siem\.tls\.serverName: .* is valid for another name/,
          );
          expect(await blocked(open('PLAIN', topic, { ca }))).toMatch(
            /sinks\.siem\.(brokers|tls).*(does it|does not) speak TLS on this port/,
          );
          expect(await blocked(open('TLS', topic, undefined))).toMatch(/sinks\.siem\.tls: "127\.0\.0\.1:\d+" speaks TLS: set tls/);
          expect(await blocked(open('SASL', topic, undefined))).toMatch(
            /sinks\.siem\.sasl\): the broker ends the connection: does it require SASL/,
          );
        },
      );

      test('expired: blocked; renewed, delivery resumes with the same settings', { timeout: 600_000 }, async () => {
        const topic = await freshTopic(broker);
        const ca = pem(broker.authority.cert);
        const day = 86_400_000;
        const hosts = ['127.0.0.1', 'localhost'];
        const expired = await broker.authority.issue({
          name: 'broker',
          hosts,
          notBefore: new Date(Date.now() - 9 * day),
          notAfter: new Date(Date.now() - day),
        });
        const restart = async (): Promise<void> => {
          await broker.end('SIGTERM');
          await broker.run();
        };
        broker.showCertificate(expired);
        await restart();
        expect(await blocked(open('TLS', topic, { ca }))).toMatch(/sinks\.siem\.tls\.ca: certificate of .* has expired/);
        broker.showCertificate(await broker.authority.issue({ name: 'broker', hosts }));
        await restart();
        await using sink = await open('TLS', topic, { ca });
        await sink.send(batchOf(messages(1, 10)), never);
      });
    });
  });
}
