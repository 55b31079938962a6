/**
 * A model of a Kafka cluster that speaks its protocol over TCP, in one fixed version of each
 * request. One node holds the topics and one coordinates transactions, so that the end of a
 * transaction may overtake earlier requests; it fences producers, and supports groups of one
 * member. It follows Kafka's description of its protocol and KIP-98, not the client. Each test
 * injects its own faults.
 */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import { createServer as createSecureServer, TLSSocket } from 'node:tls';
import type { TlsOptions } from 'node:tls';
import { errors, PartitionLog } from './kafka-log.ts';
import { readBatch, Reader, Writer } from './kafka-wire.ts';
import type { StoredRecord } from './kafka-wire.ts';

const apis = {
  Produce: [0, 3],
  Fetch: [1, 4],
  ListOffsets: [2, 2],
  Metadata: [3, 4],
  OffsetFetch: [9, 1],
  FindCoordinator: [10, 1],
  JoinGroup: [11, 0],
  Heartbeat: [12, 0],
  LeaveGroup: [13, 0],
  SyncGroup: [14, 0],
  SaslHandshake: [17, 1],
  ApiVersions: [18, 2],
  CreateTopics: [19, 0],
  InitProducerId: [22, 0],
  AddPartitionsToTxn: [24, 0],
  EndTxn: [26, 0],
  DescribeConfigs: [32, 0],
  SaslAuthenticate: [36, 0],
} as const satisfies Record<string, readonly [key: number, version: number]>;
export type Api = keyof typeof apis;
const names = new Map<number, Api>(Object.entries(apis).map(([name, [key]]) => [key, name as Api]));

/**
 * The fault of a request: `lost` on the way, `ended` by the orderly shutdown of the broker, its
 * `answer lost`, `silent` forever, or delayed until the promise resolves. All but the last two also
 * close the connection.
 */
export type Fault = 'lost' | 'ended' | 'answer lost' | 'silent' | Promise<unknown>;

interface TransactionState {
  readonly producerId: bigint;
  epoch: number;
  readonly partitions: Set<PartitionLog>;
}

interface KafkaModelOptions {
  readonly tls?: TlsOptions;
  /** Accepts or rejects a TLS connection by the SHA-256 fingerprint of the client's certificate. */
  readonly admits?: (fingerprint: string) => boolean;
  /** Requires SASL PLAIN with this user. */
  readonly user?: { readonly name: string; readonly password: string };
}

export class KafkaModel implements AsyncDisposable {
  readonly topics = new Map<string, PartitionLog[]>();
  readonly config = new Map<string, Readonly<Record<string, string>>>();
  /**
   * Names of topics without write permission, and of groups and transactional ids without
   * permission.
   */
  readonly denied = new Set<string>();
  /** Every completed request in order, with its subject. */
  readonly seen: { readonly api: Api; readonly about: string }[] = [];
  /** The error message for unknown users. */
  refusal = 'Authentication failed: Invalid username or password';
  fault: (api: Api, about: string) => Fault | undefined = () => undefined;
  /** The largest batch, bytes. */
  batchBytes = 1_048_588;
  port = 0;
  #coordinatorPort = 0;
  readonly #options: KafkaModelOptions;
  readonly #server: Server;
  readonly #coordinator: Server;
  readonly #sockets = new Set<Socket>();
  readonly #transactions = new Map<string, TransactionState>();
  #producers = 1_000n;

  constructor(options: KafkaModelOptions = {}) {
    this.#options = options;
    const taken = (socket: Socket): void => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      socket.on('error', () => undefined);
      const isAdmitted = !(socket instanceof TLSSocket) || (options.admits?.(socket.getPeerCertificate().fingerprint256) ?? true);
      if (isAdmitted) this.#serve(socket);
      else socket.destroy();
    };
    const made = (): Server =>
      (options.tls ? createSecureServer(options.tls, taken) : createServer(taken)).on('tlsClientError', () => undefined);
    this.#server = made();
    this.#coordinator = made();
  }

  async listen(): Promise<this> {
    this.port = await portOf(this.#server, this.port);
    this.#coordinatorPort = await portOf(this.#coordinator, this.#coordinatorPort);
    return this;
  }

  create(topic: string, partitions = 1, config: Readonly<Record<string, string>> = {}): this {
    this.topics.set(
      topic,
      Array.from({ length: partitions }, () => new PartitionLog()),
    );
    this.config.set(topic, config);
    return this;
  }

  /** The records of a topic that a consumer with `read_committed` sees, by partition. */
  committed(topic: string): StoredRecord[][] {
    return (this.topics.get(topic) ?? []).map((log) => log.committed());
  }

  requests(api: Api): number {
    return this.seen.filter((one) => one.api === api).length;
  }

  cutConnections(): void {
    // Node can reset a TCP connection, but not a TLS connection.
    for (const socket of this.#sockets)
      if (socket instanceof TLSSocket) socket.destroy();
      else socket.resetAndDestroy();
  }

  /** Stops listening; stored records stay for another `listen`. */
  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    for (const server of [this.#server, this.#coordinator]) {
      if (!server.listening) continue;
      server.close();
      await once(server, 'close');
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  #serve(socket: Socket): void {
    let rest: Buffer = Buffer.alloc(0);
    const session = { isKnown: this.#options.user === undefined };
    // The broker answers the requests of one connection in order.
    let last: Promise<unknown> = Promise.resolve();
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk]);
      for (; rest.length >= 4 && rest.length >= 4 + rest.readInt32BE(0); rest = rest.subarray(4 + rest.readInt32BE(0))) {
        if (rest.readInt32BE(0) > 100 * 1024 * 1024) socket.destroy();
        const request = Buffer.from(rest.subarray(4, 4 + rest.readInt32BE(0)));
        last = last.then(() => this.#take(socket, request, session)).catch(() => socket.destroy());
      }
      // A request of this length is not Kafka: the client spoke TLS to a port without TLS.
      if (rest.length >= 4 && rest.readUInt32BE(0) > 100 * 1024 * 1024) socket.destroy();
    });
  }

  async #take(socket: Socket, bytes: Buffer, session: { isKnown: boolean }): Promise<void> {
    const request = new Reader(bytes);
    const [key, version, correlation] = [request.int16(), request.int16(), request.int32()];
    request.nullableString();
    const api = names.get(key);
    if (api === undefined || (version !== apis[api][1] && api !== 'ApiVersions'))
      throw new SyntaxError(`request ${key} in version ${version}`);
    if (!session.isKnown && !['ApiVersions', 'SaslHandshake', 'SaslAuthenticate'].includes(api)) throw new Error('not authenticated');
    const about = aboutOf(api, new Reader(bytes.subarray(bytes.length - request.left)));
    const fault = this.fault(api, about);
    if (fault === 'silent') return new Promise(() => undefined);
    if (fault === 'ended') return void socket.end();
    if (fault === 'lost') return void socket.resetAndDestroy();
    if (fault instanceof Promise) await fault;
    this.seen.push({ api, about });
    const answer = new Writer().int32(correlation);
    await this.#answer(api, request, answer, session);
    if (fault === 'answer lost') return void socket.resetAndDestroy();
    if (!socket.destroyed) socket.write(new Writer().data(answer.done()).done());
  }

  async #answer(api: Api, request: Reader, answer: Writer, session: { isKnown: boolean }): Promise<void> {
    switch (api) {
      case 'ApiVersions':
        answer.int16(0).list(Object.values(apis), ([key, version]) => answer.int16(key).int16(version).int16(version));
        return void answer.int32(0);
      case 'SaslHandshake':
        return void answer.int16(request.string() === 'PLAIN' ? 0 : 33).list(['PLAIN'], (name) => answer.string(name));
      case 'SaslAuthenticate': {
        const { name, password } = this.#options.user ?? { name: '', password: '' };
        session.isKnown = request.data().toString() === `\0${name}\0${password}` || request.bytes.includes(`\0${name}\0${password}`);
        answer.int16(session.isKnown ? 0 : errors.saslFailed);
        return void answer.string(session.isKnown ? undefined : this.refusal).data(Buffer.alloc(0));
      }
      case 'Metadata': {
        this.#metadata(request, answer);
        return;
      }
      case 'FindCoordinator': {
        const [key, isTransaction] = [request.string(), request.int8() === 1];
        const error = !this.denied.has(key) ? 0 : isTransaction ? errors.transactionalIdDenied : errors.groupDenied;
        return void answer
          .int32(0)
          .int16(error)
          .string(undefined)
          .int32(isTransaction ? 2 : 1)
          .string('127.0.0.1')
          .int32(isTransaction ? this.#coordinatorPort : this.port);
      }
      case 'CreateTopics': {
        const wanted = request.list(() => {
          const [name, partitions] = [request.string(), request.int32()];
          request.int16();
          request.list(() => [request.int32(), request.list(() => request.int32())]);
          const config = Object.fromEntries(request.list(() => [request.string(), request.string()]));
          return { name, partitions, config };
        });
        answer.list(wanted, ({ name, partitions, config }) => {
          const error = this.denied.has(name) ? errors.topicDenied : this.topics.has(name) ? errors.topicExists : 0;
          if (error === 0) this.create(name, partitions, config);
          answer.string(name).int16(error);
        });
        return;
      }
      case 'DescribeConfigs': {
        const wanted = request.list(() => {
          const named = { type: request.int8(), name: request.string() };
          request.list(() => request.string());
          return named;
        });
        answer.int32(0);
        answer.list(wanted, ({ type, name }) => {
          const config = Object.entries(this.config.get(name) ?? {});
          answer
            .int16(this.denied.has(`config of ${name}`) ? errors.topicDenied : 0)
            .string(undefined)
            .int8(type)
            .string(name);
          answer.list(config, ([key, value]) => answer.string(key).string(value).bool(false).bool(false).bool(false));
        });
        return;
      }
      case 'InitProducerId': {
        this.#init(request.nullableString(), answer.int32(0));
        return;
      }
      case 'AddPartitionsToTxn': {
        this.#add(request, answer.int32(0));
        return;
      }
      case 'EndTxn': {
        const [state, epoch] = this.#owner(request);
        const isCommit = request.bool();
        const error = state?.epoch !== epoch ? errors.invalidEpoch : state.partitions.size === 0 ? errors.invalidTransactionState : 0;
        if (state && error === 0) end(state, isCommit);
        return void answer.int32(0).int16(error);
      }
      case 'Produce': {
        this.#produce(request, answer);
        return;
      }
      case 'ListOffsets': {
        request.int32();
        const isCommitted = request.int8() === 1;
        const topics = request.list(() => ({
          topic: request.string(),
          partitions: request.list(() => [request.int32(), request.int64()] as const),
        }));
        answer.int32(0);
        answer.list(topics, ({ topic, partitions }) =>
          answer.string(topic).list(partitions, ([partition, time]) => {
            const log = this.topics.get(topic)?.[partition];
            const latest = (isCommitted ? log?.stable : log?.end) ?? 0n;
            answer
              .int32(partition)
              .int16(0)
              .int64(-1n)
              .int64(time === -2n ? 0n : latest);
          }),
        );
        return;
      }
      case 'Fetch':
        return this.#fetch(request, answer);
      case 'JoinGroup': {
        const group = request.string();
        request.int32();
        const member = request.string() || 'member-1';
        request.string();
        const [protocol] = request.list(() => ({ name: request.string(), metadata: request.data() }));
        answer
          .int16(this.denied.has(group) ? errors.groupDenied : 0)
          .int32(1)
          .string(protocol?.name ?? '')
          .string(member)
          .string(member);
        return void answer.list([member], (id) => answer.string(id).data(protocol?.metadata ?? Buffer.alloc(0)));
      }
      case 'SyncGroup': {
        request.string();
        request.int32();
        request.string();
        const [given] = request.list(() => ({ member: request.string(), assignment: request.data() }));
        return void answer.int16(0).data(given?.assignment ?? Buffer.alloc(0));
      }
      case 'OffsetFetch': {
        request.string();
        const topics = request.list(() => ({ topic: request.string(), partitions: request.list(() => request.int32()) }));
        answer.list(topics, ({ topic, partitions }) =>
          answer.string(topic).list(partitions, (partition) => answer.int32(partition).int64(-1n).string('').int16(0)),
        );
        return;
      }
      case 'Heartbeat':
      case 'LeaveGroup':
        return void answer.int16(0);
    }
  }

  #metadata(request: Reader, answer: Writer): void {
    const wanted = request.list(() => request.string());
    const topics = wanted.length > 0 ? wanted : [...this.topics.keys()];
    const ports = [this.port, this.#coordinatorPort];
    answer.int32(0).list([1, 2], (node) =>
      answer
        .int32(node)
        .string('127.0.0.1')
        .int32(ports[node - 1] ?? 0)
        .string(undefined),
    );
    answer.string('model').int32(1);
    answer.list(topics, (topic) => {
      const logs = this.topics.get(topic);
      answer
        .int16(logs ? 0 : errors.unknownTopic)
        .string(topic)
        .bool(false);
      answer.list(logs ?? [], (log) => {
        answer
          .int16(0)
          .int32(logs?.indexOf(log) ?? 0)
          .int32(1);
        answer.list([1], (node) => answer.int32(node)).list([1], (node) => answer.int32(node));
      });
    });
  }

  #init(id: string | undefined, answer: Writer): void {
    if (id !== undefined && this.denied.has(id)) return void answer.int16(errors.transactionalIdDenied).int64(-1n).int16(-1);
    let state = id === undefined ? undefined : this.#transactions.get(id);
    if (!state) {
      state = { producerId: (this.#producers += 1n), epoch: 0, partitions: new Set() };
      if (id !== undefined) this.#transactions.set(id, state);
    } else {
      state.epoch += 1;
      if (state.partitions.size > 0) {
        // The new epoch aborts an open transaction, so that no request of the old epoch is accepted
        // any more.
        end(state, false);
        return void answer.int16(errors.concurrentTransactions).int64(-1n).int16(-1);
      }
    }
    answer.int16(0).int64(state.producerId).int16(state.epoch);
  }

  #add(request: Reader, answer: Writer): void {
    const [state, epoch] = this.#owner(request);
    const topics = request.list(() => ({ topic: request.string(), partitions: request.list(() => request.int32()) }));
    answer.list(topics, ({ topic, partitions }) =>
      answer.string(topic).list(partitions, (partition) => {
        const log = this.topics.get(topic)?.[partition];
        const error =
          state?.epoch !== epoch ? errors.invalidEpoch : this.denied.has(topic) ? errors.topicDenied : log ? 0 : errors.unknownTopic;
        if (log && state && error === 0) state.partitions.add(log);
        answer.int32(partition).int16(error);
      }),
    );
  }

  #produce(request: Reader, answer: Writer): void {
    request.nullableString();
    const acks = request.int16();
    request.int32();
    const topics = request.list(() => ({
      topic: request.string(),
      partitions: request.list(() => ({ partition: request.int32(), bytes: request.data() })),
    }));
    answer.list(topics, ({ topic, partitions }) =>
      answer.string(topic).list(partitions, ({ partition, bytes }) => {
        const log = this.topics.get(topic)?.[partition];
        const refusal = this.denied.has(topic)
          ? errors.topicDenied
          : ![-1, 0, 1].includes(acks)
            ? errors.invalidRequiredAcks
            : bytes.length > this.batchBytes || readBatch(bytes).records.some(({ value }) => this.isRefused(value))
              ? errors.messageTooLarge
              : log
                ? 0
                : errors.unknownTopic;
        const { error, offset } = log && refusal === 0 ? log.append(bytes) : { error: refusal, offset: -1n };
        answer.int32(partition).int16(error).int64(offset).int64(-1n);
      }),
    );
    answer.int32(0);
  }

  /** True for a record that the broker rejects as too large, whatever its length. */
  isRefused: (value: string) => boolean = () => false;

  async #fetch(request: Reader, answer: Writer): Promise<void> {
    request.int32();
    const waitMs = request.int32();
    request.int32();
    request.int32();
    const isCommitted = request.int8() === 1;
    const topics = request.list(() => ({
      topic: request.string(),
      partitions: request.list(() => ({ partition: request.int32(), from: request.int64(), bytes: request.int32() })),
    }));
    const batches = topics.flatMap(({ topic, partitions }) =>
      partitions.map(({ partition, from }) => {
        const log = this.topics.get(topic)?.[partition];
        return log?.from(from, isCommitted ? log.stable : log.end).length ?? 0;
      }),
    );
    if (batches.every((count) => count === 0)) await new Promise((resolve) => setTimeout(resolve, waitMs));
    answer.int32(0).list(topics, ({ topic, partitions }) =>
      answer.string(topic).list(partitions, ({ partition, from }) => {
        const log = this.topics.get(topic)?.[partition] ?? new PartitionLog();
        const until = isCommitted ? log.stable : log.end;
        answer.int32(partition).int16(0).int64(log.end).int64(log.stable);
        answer.list(
          log.aborted.filter((one) => one.end >= from && one.from < until),
          (one) => answer.int64(one.producerId).int64(one.from),
        );
        answer.data(Buffer.concat(log.from(from, until).map(({ bytes }) => bytes)));
      }),
    );
  }

  /**
   * Reads the transactional id, producer id and epoch at the start of a request. Returns the state
   * of the transaction and the claimed epoch.
   */
  #owner(request: Reader): [TransactionState | undefined, number] {
    const state = this.#transactions.get(request.string());
    const producerId = request.int64();
    return [state?.producerId === producerId ? state : undefined, request.int16()];
  }
}

async function portOf(server: Server, wanted: number): Promise<number> {
  server.listen(wanted, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

function end(state: TransactionState, isCommit: boolean): void {
  for (const log of state.partitions) log.mark(state.producerId, state.epoch, isCommit);
  state.partitions.clear();
}

/**
 * The subject of a request, for tests that wait for it: the topics of Produce, `commit` or `abort`
 * of EndTxn, otherwise ''.
 */
function aboutOf(api: Api, request: Reader): string {
  if (api === 'EndTxn') {
    request.string();
    request.int64();
    request.int16();
    return request.bool() ? 'commit' : 'abort';
  }
  if (api === 'Produce') {
    request.nullableString();
    request.int16();
    request.int32();
    return request
      .list(() => {
        const topic = request.string();
        request.list(() => [request.int32(), request.data()]);
        return topic;
      })
      .join(' ');
  }
  return '';
}
