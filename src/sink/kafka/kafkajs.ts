/** Implements client.ts with kafkajs. docs/guarantees.md lists the features of kafkajs that must not be used. */
import { randomUUID } from 'node:crypto';
import { constants, gzipSync, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import kafkajs from 'kafkajs';
import type { Admin, CompressionTypes, Kafka, KafkaConfig, Producer, ProducerConfig, SASLOptions, Transaction } from 'kafkajs';
import { certificateText } from '../../connect/trust.ts';
import { atMost } from '../../time/deadline.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { SinkContext } from '../define.ts';
import type { KafkaClient, OpenTransaction, Owner, TopicFacts } from './client.ts';
import { isNamed, protocolError, translate, type Attempt } from './errors.ts';
import type { KafkaRecord } from './messages.ts';
import type { ReadRecord } from './progress.ts';
import { sendDeadlineMs, transactionTimeoutMs, type KafkaSettings } from './settings.ts';
import { Sockets } from './sockets.ts';
import { quietTimers } from './timers.ts';
import type { TokenSource } from './token.ts';

/** Retries after a transient error: from 20 ms, for about ten seconds. The client's default of 300 ms would delay nearly every transaction. */
const retry = { initialRetryTime: 20, maxRetryTime: 1_000, multiplier: 2, factor: 0.2, retries: 15 };
/** Without transactions, a retry may send records twice, so the delivery loop decides about retries. */
const once = { retries: 0 };
const connectMs = 10_000;
const closeMs = 2_000;
/**
 * A longer wait for records would delay the end of the reader. After a broken connection, the reader joins its group as a new member once
 * the session of the old one has expired: 6 s is the shortest that brokers permit by default.
 */
const readTimes = { maxWaitTimeInMs: 100, sessionTimeout: 6_000, rebalanceTimeout: 6_000, heartbeatInterval: 2_000 };
/** Maximum reads of a topic after its creation, and the time between two. */
const maxLooks = 50;
const lookMs = 100;
const ended = new WaybillError('aborted', 'the client has ended');

export class KafkaJsClient implements KafkaClient {
  readonly #settings: KafkaSettings;
  readonly #context: SinkContext;
  readonly #wasOpen: boolean;
  readonly #sockets: Sockets;
  readonly #kafka: Kafka;
  /** For administrative requests: fails fast when no broker responds. */
  readonly #adminKafka: Kafka;
  readonly #compression: CompressionTypes;
  /** Rejects when a certificate is rejected: this client cannot connect any more. */
  readonly #refusal = Promise.withResolvers<never>();
  readonly #producers: Producer[] = [];
  #admin: Admin | undefined;
  #plain: Promise<Producer> | undefined;
  readonly #over = new AbortController();
  /** The reason why no coordinator was found, which kafkajs only logs. */
  #noCoordinator: unknown;

  /** @param wasOpen  these settings have worked before: a broker that ends a connection is then restarting, and does not lack SASL */
  constructor(settings: KafkaSettings, context: SinkContext, tokens: TokenSource | undefined, wasOpen = false) {
    this.#wasOpen = wasOpen;
    quietTimers();
    this.#settings = settings;
    this.#context = context;
    this.#refusal.promise.catch(() => undefined);
    this.#sockets = new Sockets(context, settings.tls, (reason) => {
      this.#refusal.reject(reason);
      this.#sockets.end();
    });
    this.#compression = compressions[settings.compression];
    const sasl = saslOf(settings, tokens);
    const config: KafkaConfig = {
      brokers: settings.brokers,
      clientId: settings.clientId,
      // Informs kafkajs that the connection uses TLS; `socketFactory` creates the connection.
      ...(settings.tls === undefined ? {} : { ssl: true }),
      ...(sasl === undefined ? {} : { sasl }),
      socketFactory: this.#sockets.connect,
      connectionTimeout: connectMs,
      authenticationTimeout: connectMs,
      requestTimeout: sendDeadlineMs,
      retry,
      logLevel: kafkajs.logLevel.INFO,
      logCreator: this.#logCreator(),
    };
    this.#kafka = new kafkajs.Kafka(config);
    this.#adminKafka = new kafkajs.Kafka({ ...config, retry: { ...retry, retries: settings.brokers.length + 2 } });
  }

  get peer(): string | undefined {
    const { peer } = this.#sockets;
    return peer && certificateText(peer);
  }

  topic(name: string, setting: string): Promise<TopicFacts | undefined> {
    return this.#do({ what: `describe topic "${name}"`, setting }, false, async () => {
      const admin = await this.#administration();
      const found = await this.#look(admin, name);
      return found && { ...found, config: await configOf(admin, name) };
    });
  }

  create(name: string, partitions: number, config: Readonly<Record<string, string>>, setting: string): Promise<void> {
    return this.#do({ what: `create topic "${name}"`, setting }, false, async () => {
      const configEntries = Object.entries(config).map(([key, value]) => ({ name: key, value }));
      const admin = await this.#administration();
      await admin.createTopics({
        waitForLeaders: false,
        topics: [{ topic: name, numPartitions: partitions, replicationFactor: -1, configEntries }],
      });
      // A new topic is not visible at once: each broker learns of it later.
      for (let attempts = 0; (await this.#look(admin, name)) === undefined; attempts += 1) {
        if (attempts >= maxLooks) throw new Error('the topic was created, but no broker reports it yet');
        await this.#context.clock.sleep(lookMs, this.#over.signal);
      }
    });
  }

  own(transactionalId: string): Promise<Owner> {
    const { topic } = this.#settings;
    return this.#do({ what: `own the transactional id "${transactionalId}"`, setting: 'exactlyOnce' }, false, async () => {
      // No `idempotent: true`: it requests a second producer id and needs an unnecessary privilege.
      const producer = this.#producer({ transactionalId, transactionTimeout: transactionTimeoutMs, maxInFlightRequests: 1 });
      await producer.connect();
      // kafkajs requests the producer id, which fences the previous owner, at the first transaction.
      let first: Transaction | undefined = await this.#withDebugLog(() => producer.transaction());
      const begin = async (): Promise<OpenTransaction> => {
        // mutant: open-transaction
        const transaction = first ?? (await producer.transaction());
        first = undefined;
        return {
          send: (records) =>
            this.#do({ what: `send to topic "${topic}"`, setting: 'topic' }, true, () => this.#sendBy(transaction, records)),
          commit: () => this.#do({ what: 'commit a transaction', setting: 'exactlyOnce' }, true, () => transaction.commit()),
        };
      };
      return { begin: () => this.#do({ what: 'begin a transaction', setting: 'exactlyOnce' }, true, begin) };
    });
  }

  send(records: readonly KafkaRecord[]): Promise<void> {
    return this.#do({ what: `send to topic "${this.#settings.topic}"`, setting: 'topic' }, true, async () => {
      this.#plain ??= this.#connected(this.#producer({ maxInFlightRequests: 1, retry: once }));
      await this.#sendBy(await this.#plain, records);
    });
  }

  read(topic: string, partition: number, from: bigint, isLast: (record: ReadRecord) => boolean): Promise<readonly ReadRecord[]> {
    return this.#do({ what: `read topic "${topic}"`, setting: 'progressTopic' }, false, async () => {
      const records: ReadRecord[] = [];
      await this.#consume(topic, partition, from, (record) => {
        records.push(record);
        return isLast(record);
      });
      return records;
    });
  }

  mayRead(topic: string): Promise<void> {
    return this.#do({ what: `read topic "${topic}"`, setting: 'progressTopic' }, false, () => this.#consume(topic, 0, 0n, undefined));
  }

  async mayWrite(topic: string, setting: string): Promise<void> {
    await this.#do({ what: `write to topic "${topic}"`, setting }, false, async () => {
      this.#plain ??= this.#connected(this.#producer({ maxInFlightRequests: 1, retry: once }));
      try {
        await (await this.#plain).send({ topic, acks: 2, messages: [{ partition: 0, value: '' }] });
      } catch (thrown) {
        if (protocolError(thrown) !== 'INVALID_REQUIRED_ACKS') throw thrown;
      }
    });
  }

  cut(): void {
    this.#over.abort(ended);
    this.#refusal.reject(ended);
    this.#sockets.end();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#over.signal.aborted)
      await this.#soon(Promise.allSettled([...this.#producers.map((one) => one.disconnect()), this.#admin?.disconnect()]));
    this.cut();
  }

  #producer(options: ProducerConfig): Producer {
    const producer = this.#kafka.producer({
      ...options,
      allowAutoTopicCreation: false,
      // Every message names its partition: a retry must not choose another.
      createPartitioner:
        () =>
        ({ message }) =>
          message.partition ?? 0,
    });
    this.#producers.push(producer);
    return producer;
  }

  /** Reads committed records until the callback stops it; without a callback, until the first response. */
  async #consume(topic: string, partition: number, from: bigint, isLast: ((record: ReadRecord) => boolean) | undefined): Promise<void> {
    // A new group, because a killed member of an old group would keep the partition. It commits no offset.
    const groupId = `waybill-${randomUUID()}`;
    let isRead = false;
    // Otherwise kafkajs would restart a reader that fails during its end, forever.
    const restartOnFailure = async (): Promise<boolean> => !isRead && !this.#over.signal.aborted;
    const consumer = this.#kafka.consumer({ groupId, ...readTimes, allowAutoTopicCreation: false, retry: { ...retry, restartOnFailure } });
    try {
      await consumer.connect();
      await consumer.subscribe({ topic, fromBeginning: true });
      const { promise, resolve, reject } = Promise.withResolvers<undefined>();
      // If the reader fails first, no caller awaits this promise.
      promise.catch(() => undefined);
      consumer.on(consumer.events.CRASH, ({ payload }) => {
        // kafkajs retries while the coordinator is loading.
        if (!payload.restart) reject(payload.error);
      });
      if (isLast === undefined) consumer.on(consumer.events.FETCH, () => resolve(undefined));
      const running = consumer.run({
        autoCommit: false,
        eachBatch: async ({ batch }) => {
          if (batch.partition !== partition) return;
          for (const { offset, key, value } of batch.messages) {
            const record = { offset: BigInt(offset), key: key?.toString(), value: value?.toString() };
            if (record.offset < from || !isLast?.(record)) continue;
            resolve(undefined);
            return;
          }
        },
      });
      running.catch(reject);
      consumer.seek({ topic, partition, offset: String(from) });
      await this.#withDebugLog(() => this.#orOver(promise));
    } finally {
      isRead = true;
      await this.#soon(consumer.disconnect());
    }
  }

  async #connected(producer: Producer): Promise<Producer> {
    await producer.connect();
    return producer;
  }

  async #administration(): Promise<Admin> {
    if (this.#admin === undefined) {
      this.#admin = this.#adminKafka.admin();
      await this.#admin.connect();
    }
    return this.#admin;
  }

  async #look(admin: Admin, topic: string): Promise<Omit<TopicFacts, 'config'> | undefined> {
    try {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      const partitions = topics[0]?.partitions ?? [];
      return { partitions: partitions.length, replicas: Math.min(...partitions.map(({ replicas }) => replicas.length)) };
    } catch (thrown) {
      if (protocolError(thrown) === 'UNKNOWN_TOPIC_OR_PARTITION') return undefined;
      throw thrown;
    }
  }

  async #sendBy(sender: Pick<Producer, 'sendBatch'>, records: readonly KafkaRecord[]): Promise<bigint> {
    const topics = Map.groupBy(records, ({ topic }) => topic);
    const topicMessages = [...topics].map(([topic, list]) => ({
      topic,
      messages: list.map(({ partition, key, value, headers }) => ({ partition, key, headers, value: asBuffer(value) })),
    }));
    const delivered = await sender.sendBatch({ acks: -1, compression: this.#compression, topicMessages });
    return BigInt(delivered[0]?.baseOffset ?? 0);
  }

  /** Runs a call until this client ends. @throws WaybillError for every error */
  async #do<Result>(attempt: Omit<Attempt, 'id'>, sent: boolean, work: () => Promise<Result>): Promise<Result> {
    try {
      return await this.#orOver(work());
    } catch (thrown) {
      const cause = isNamed(thrown, 'KafkaJSGroupCoordinatorNotFound') ? (this.#noCoordinator ?? thrown) : thrown;
      const error = translate(cause, { ...attempt, id: this.#context.id }, sent);
      const { id } = this.#context;
      const isEnded = !this.#wasOpen && error.code === 'sink_unavailable' && isNamed(thrown, 'KafkaJSConnectionClosedError');
      const isSilent = this.#sockets.silent !== undefined && ['sink_unavailable', 'sink_outcome_unknown'].includes(error.code);
      if (!isEnded && !isSilent) throw error;
      const setting = isSilent ? 'brokers' : 'sasl';
      const what = isSilent ? this.#sockets.mismatch() : 'the broker ends the connection: does it require SASL, or another mechanism?';
      const message = `cannot ${attempt.what} for sink "${id}" (sinks.${id}.${setting}): ${what}`;
      throw new WaybillError('sink_blocked', message, { cause: error, retryAfterMs: mismatchMs });
    }
  }

  async #orOver<Result>(work: Promise<Result>): Promise<Result> {
    work.catch(() => undefined);
    return Promise.race([work, this.#refusal.promise]);
  }

  async #withDebugLog<Result>(work: () => Promise<Result>): Promise<Result> {
    const logger = this.#kafka.logger();
    logger.setLogLevel(kafkajs.logLevel.DEBUG);
    try {
      return await work();
    } finally {
      logger.setLogLevel(kafkajs.logLevel.INFO);
    }
  }

  /** Waits briefly for the end, successful or not: the connections are cut anyway. */
  async #soon(closing: Promise<unknown>): Promise<void> {
    await atMost(closeMs, this.#orOver(closing), this.#context.clock);
  }

  /** kafkajs logs ordinary protocol responses as errors; the relevant ones are also errors of a call. */
  #logCreator(): NonNullable<KafkaConfig['logCreator']> {
    const { log, id } = this.#context;
    return () =>
      ({ namespace, level, label, log: { message, error } }) => {
        if (message === 'Tried to find group coordinator') this.#noCoordinator = error;
        if (level < kafkajs.logLevel.DEBUG) log.write('kafka.client', { sink: id, name: namespace, severity: label, detail: message });
      };
  }
}

/** A starting broker may look the same, so the sink retries soon. */
const mismatchMs = 5_000;

const compressions = { none: kafkajs.CompressionTypes.None, gzip: kafkajs.CompressionTypes.GZIP, zstd: kafkajs.CompressionTypes.ZSTD };
const zstd = (bytes: Uint8Array): Buffer => zstdCompressSync(bytes, { params: { [constants.ZSTD_c_compressionLevel]: 3 } });
kafkajs.CompressionCodecs[kafkajs.CompressionTypes.ZSTD] = () => ({
  compress: async (encoder: { readonly buffer: Buffer }) => zstd(encoder.buffer),
  decompress: async (buffer: Buffer) => zstdDecompressSync(buffer),
});

export const compress: Readonly<Record<KafkaSettings['compression'], (bytes: Uint8Array) => Uint8Array>> = {
  none: (bytes) => bytes,
  gzip: (bytes) => gzipSync(bytes),
  zstd,
};

function saslOf({ sasl }: KafkaSettings, tokens: TokenSource | undefined): SASLOptions | undefined {
  if (sasl === undefined) return undefined;
  if (sasl.mechanism === 'OAUTHBEARER') {
    return { mechanism: 'oauthbearer', oauthBearerProvider: async () => ({ value: (await tokens?.get()) ?? '' }) };
  }
  const { username = '', password } = sasl;
  const mechanism = sasl.mechanism.toLowerCase() as 'plain' | 'scram-sha-256' | 'scram-sha-512';
  return {
    mechanism,
    username,
    // kafkajs reads it for each connection.
    get password() {
      password?.refresh();
      return password?.read() ?? '';
    },
  };
}

async function configOf(admin: Admin, topic: string): Promise<ReadonlyMap<string, string> | undefined> {
  try {
    const resources = [{ type: kafkajs.ConfigResourceTypes.TOPIC, name: topic }];
    const { resources: found } = await admin.describeConfigs({ includeSynonyms: false, resources });
    return new Map(found[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]));
  } catch (thrown) {
    if (/AUTHORIZATION_FAILED$/.test(protocolError(thrown) ?? '')) return undefined;
    throw thrown;
  }
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
