/**
 * A real Kafka on loopback: broker and controller in one separate process (KRaft), from jars of
 * Maven's repository. kcat (librdkafka) counts its records, never the client of the sink.
 */
import { spawn, spawnSync } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StringDecoder } from 'node:string_decoder';
import { createAuthority } from '../certificates.ts';
import type { Authority } from '../certificates.ts';
import { until } from '../e2e-place.ts';
import { freePort } from './ports.ts';
import { cacheFolder } from './programs.ts';

export const kafkaVersions = ['4.4.0', '3.9.2'] as const;
type KafkaVersion = (typeof kafkaVersions)[number];

const cache = cacheFolder();
const jarsOf = (version: KafkaVersion): string => join(cache, `kafka-${version}`);

/** The reason why this version is not available; undefined if it is. */
export function kafkaMissing(version: KafkaVersion): string | undefined {
  const java = spawnSync('java', ['-version'], { encoding: 'utf8' });
  if (java.error) return 'no java on the path (17 or later)';
  if (Number(/version "(\d+)/.exec(java.stderr)?.[1] ?? 0) < 17) return 'java is older than 17';
  if (spawnSync('kcat', ['-V']).error) return 'no kcat on the path: test/servers/install.sh kcat';
  const name = { '4.4.0': 'kafka', '3.9.2': 'kafka-3' }[version];
  return existsSync(jarsOf(version)) ? undefined : `no Kafka ${version}: test/servers/install.sh ${name}`;
}

const jvm = ['-Xms64m', '-Xmx256m', '-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData', '-Djava.awt.headless=true'];

/**
 * Listeners of a broker: plain, plain through a proxy of the test, TLS, TLS that requires a client
 * certificate, and SASL without and with TLS.
 */
export type Listener = 'PLAIN' | 'PROXIED' | 'TLS' | 'MTLS' | 'SASL' | 'SASLTLS';
const listeners: Readonly<Record<Listener, string>> = {
  PLAIN: 'PLAINTEXT',
  PROXIED: 'PLAINTEXT',
  TLS: 'SSL',
  MTLS: 'SSL',
  SASL: 'SASL_PLAINTEXT',
  SASLTLS: 'SASL_SSL',
};

interface BrokerOptions {
  /** The address that clients of `PROXIED` are given. */
  readonly advertised?: string;
  /** Denies everything that is not granted, except to clients of the plain listener. */
  readonly acls?: boolean;
  readonly properties?: readonly string[];
}

/** The password of all SASL users; `alice` has it for PLAIN and SCRAM. */
export const password = 'opensesame';

export class KafkaBroker implements AsyncDisposable {
  readonly directory = mkdtempSync(join(tmpdir(), 'waybill-kafka-'));
  readonly authority: Authority;
  readonly #version: KafkaVersion;
  readonly #ports: Readonly<Record<Listener | 'CONTROLLER', number>>;
  #child: ChildProcess | undefined;
  #output = '';

  static async start(version: KafkaVersion, options: BrokerOptions = {}): Promise<KafkaBroker> {
    const authority = await createAuthority('Kafka root');
    const names = [...(Object.keys(listeners) as Listener[]), 'CONTROLLER'] as const;
    const free = await Promise.all(names.map(freePort));
    const ports = Object.fromEntries(names.map((name, i) => [name, free[i] ?? 0])) as Record<Listener | 'CONTROLLER', number>;
    const broker = new KafkaBroker(version, authority, ports);
    try {
      await broker.#keys();
      broker.#write('server.properties', broker.#properties(options));
      broker.#format();
      await broker.run();
    } catch (thrown) {
      await broker[Symbol.asyncDispose]();
      throw thrown;
    }
    return broker;
  }

  private constructor(version: KafkaVersion, authority: Authority, ports: Readonly<Record<Listener | 'CONTROLLER', number>>) {
    this.#version = version;
    this.authority = authority;
    this.#ports = ports;
  }

  address(listener: Listener = 'PLAIN'): string {
    return `127.0.0.1:${this.#ports[listener]}`;
  }

  port(listener: Listener = 'PLAIN'): number {
    return this.#ports[listener];
  }

  get pid(): number {
    return this.#child?.pid ?? 0;
  }

  /** Starts it, and waits until it reports that it has started. */
  async run(): Promise<void> {
    const child = spawn('java', [...jvm, '-cp', join(jarsOf(this.#version), '*'), 'kafka.Kafka', this.#at('server.properties')], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, KAFKA_OPTS: '' },
    });
    this.#child = child;
    const onExit = (): boolean => child.kill('SIGKILL');
    process.once('exit', onExit);
    child.once('exit', () => process.off('exit', onExit));
    await new Promise<void>((resolve, reject) => {
      let tail = '';
      const hear = (chunk: Buffer): void => {
        tail = (tail + chunk.toString()).slice(-200_000);
        this.#output = tail;
        if (tail.includes('Kafka Server started')) resolve();
      };
      child.stdout.on('data', hear);
      child.stderr.on('data', hear);
      child.once('exit', (code) => {
        const why = tail.split('\n').filter((line) => /ERROR|FATAL|Exception/.test(line));
        reject(new Error(`the broker ended with ${code ?? 'a signal'}:\n${why.join('\n')}\n…\n${tail.slice(-2_000)}`));
      });
      setTimeout(() => {
        reject(new Error(`the broker has not started after 5 minutes:\n${tail.slice(-4_000)}`));
      }, 300_000).unref();
    });
  }

  async end(signal: 'SIGTERM' | 'SIGKILL'): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  /** The end of the broker's output, for failed tests. */
  get output(): string {
    return this.#output;
  }

  /** Runs one of Kafka's tools, which are classes in its jars. */
  tool(name: string, ...parameters: readonly string[]): string {
    const classes = join(jarsOf(this.#version), '*');
    const quiet = '-Dorg.slf4j.simpleLogger.defaultLogLevel=error';
    const ran = spawnSync('java', [...jvm, quiet, '-cp', classes, name, ...parameters], { encoding: 'utf8', timeout: 300_000 });
    if (ran.status !== 0)
      throw new Error(`${name} ${parameters.join(' ')} ended with ${ran.status ?? 'a signal'}: ${ran.stdout}${ran.stderr}`);
    return ran.stdout;
  }

  /**
   * The records that consumers see, by default with read_committed: by kcat, partition by
   * partition, ordered by offset.
   */
  async read(topic: string, { isolation = 'read_committed' }: { isolation?: Isolation } = {}): Promise<CountedRecord[]> {
    const chunks: Buffer[] = [];
    await this.#consume(topic, isolation, '{"partition":%p,"offset":%o,"key":"%k","headers":"%h","size":%S}\n%s\n', (chunk) =>
      chunks.push(chunk),
    );
    const lines = Buffer.concat(chunks).toString('utf8').split('\n').slice(0, -1);
    const records: CountedRecord[] = [];
    for (let i = 0; i + 1 < lines.length; i += 2) {
      records.push({ ...(JSON.parse(lines[i] ?? '') as Omit<CountedRecord, 'value'>), value: lines[i + 1] ?? '' });
    }
    return records.sort((a, b) => a.partition - b.partition || a.offset - b.offset);
  }

  /** The number of records that consumers see, by default with read_committed. */
  async count(topic: string, isolation: Isolation = 'read_committed'): Promise<number> {
    let count = 0;
    await this.#consume(topic, isolation, '.', (chunk) => (count += chunk.length));
    return count;
  }

  /**
   * Maps each value that consumers with read_committed see; values have one line each, and are not
   * all held in memory.
   */
  async values(topic: string, wanted: (value: string) => string): Promise<string[]> {
    const found: string[] = [];
    const decoder = new StringDecoder('utf8');
    let rest = '';
    await this.#consume(topic, 'read_committed', '%s\n', (chunk) => {
      const lines = (rest + decoder.write(chunk)).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) found.push(wanted(line));
    });
    return found;
  }

  /**
   * The broker answers a commit before its markers are in the partitions: waits until consumers
   * with read_committed reach the end.
   */
  async #settled(topic: string): Promise<void> {
    let ends: readonly string[] = [];
    await until(
      () => `no transaction is open in "${topic}": committed ${ends.join(', all ')}`,
      60_000,
      async () => {
        ends = await Promise.all((['read_committed', 'read_uncommitted'] as const).map((isolation) => this.#end(topic, isolation)));
        return ends[0] === ends[1] || undefined;
      },
    );
  }

  async #end(topic: string, isolation: Isolation): Promise<string> {
    const output = await this.#kcat(topic, isolation, ['-o', 'end'], () => undefined);
    return [...output.matchAll(/\[\d+\] at offset \d+/g)]
      .map(([end]) => end)
      .sort()
      .join(' ');
  }

  async #consume(topic: string, isolation: Isolation, format: string, take: (chunk: Buffer) => void): Promise<void> {
    if (isolation === 'read_committed') await this.#settled(topic);
    await this.#kcat(topic, isolation, ['-o', 'beginning', '-q', '-f', format], take);
  }

  /** Reads to the end. @returns the messages of kcat */
  async #kcat(topic: string, isolation: Isolation, more: readonly string[], take: (chunk: Buffer) => void): Promise<string> {
    // Without this a fetch at the end of a partition waits for half a second.
    const options = ['-X', `isolation.level=${isolation}`, '-X', 'fetch.wait.max.ms=10'];
    const child = spawn('kcat', ['-C', '-b', this.address(), '-t', topic, '-e', ...options, ...more], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.on('data', take);
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
    const [code] = (await once(child, 'close')) as [number];
    if (code !== 0) throw new Error(`kcat ended with ${code}: ${output}`);
    return output;
  }

  /** Writes records with these keys by kcat, which chooses partitions like Kafka's Java clients. */
  write(topic: string, keys: readonly string[]): void {
    const parameters = ['-P', '-b', this.address(), '-t', topic, '-K', '\t', '-X', 'topic.partitioner=murmur2'];
    const ran = spawnSync('kcat', parameters, { encoding: 'utf8', input: keys.map((key) => `${key}\t1\n`).join('') });
    if (ran.status !== 0) throw new Error(`kcat ended with ${ran.status ?? 'a signal'}: ${ran.stderr}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end('SIGKILL');
    rmSync(this.directory, { recursive: true, force: true });
  }

  #at(name: string): string {
    return join(this.directory, name);
  }

  #write(name: string, text: string): void {
    writeFileSync(this.#at(name), text);
  }

  async #keys(): Promise<void> {
    const { cert, key } = await this.authority.issue({ name: 'broker', hosts: ['127.0.0.1', 'localhost'] });
    this.#write('keystore.pem', `${key}\n${cert}\n`);
    this.#write('truststore.pem', this.authority.cert);
  }

  /** Uses another certificate from the next start on. */
  showCertificate({ cert, key }: { readonly cert: string; readonly key: string }): void {
    this.#write('keystore.pem', `${key}\n${cert}\n`);
  }

  #format(): void {
    let id = '';
    // An id that starts with a hyphen would be read as an option.
    do id = randomBytes(16).toString('base64url');
    while (id.startsWith('-'));
    const scram = ['SCRAM-SHA-256', 'SCRAM-SHA-512'].flatMap((name) => ['--add-scram', `${name}=[name=alice,password=${password}]`]);
    this.tool('kafka.tools.StorageTool', 'format', '-t', id, '-c', this.#at('server.properties'), ...scram);
  }

  #properties({ advertised, acls = false, properties = [] }: BrokerOptions): string {
    const names = Object.keys(listeners) as Listener[];
    const addresses = names.map((name) => `${name}://${this.address(name)}`);
    const advertisedListeners = names.map(
      (name) => `${name}://${name === 'PROXIED' && advertised !== undefined ? advertised : this.address(name)}`,
    );
    const tls = names
      .filter((name) => listeners[name].endsWith('SSL'))
      .flatMap((name) => {
        const prefix = `listener.name.${name.toLowerCase()}.ssl`;
        return [
          `${prefix}.keystore.type=PEM`,
          `${prefix}.keystore.location=${this.#at('keystore.pem')}`,
          `${prefix}.truststore.type=PEM`,
          `${prefix}.truststore.location=${this.#at('truststore.pem')}`,
          `${prefix}.client.auth=${name === 'MTLS' ? 'required' : 'none'}`,
        ];
      });
    const module = (name: string): string => `org.apache.kafka.common.security.${name}`;
    const sasl = (['SASL', 'SASLTLS'] as const).flatMap((name) => {
      const prefix = `listener.name.${name.toLowerCase()}`;
      const oauth = `${prefix}.oauthbearer.sasl`;
      return [
        `${prefix}.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER`,
        `${prefix}.plain.sasl.jaas.config=${module('plain.PlainLoginModule')} required user_alice="${password}";`,
        `${prefix}.scram-sha-256.sasl.jaas.config=${module('scram.ScramLoginModule')} required;`,
        `${prefix}.scram-sha-512.sasl.jaas.config=${module('scram.ScramLoginModule')} required;`,
        `${oauth}.jaas.config=${module('oauthbearer.OAuthBearerLoginModule')} required unsecuredLoginStringClaim_sub="broker";`,
      ];
    });
    return [
      'process.roles=broker,controller',
      'node.id=1',
      `controller.quorum.voters=1@127.0.0.1:${this.#ports.CONTROLLER}`,
      'controller.listener.names=CONTROLLER',
      `listeners=${addresses.join(',')},CONTROLLER://127.0.0.1:${this.#ports.CONTROLLER}`,
      `advertised.listeners=${advertisedListeners.join(',')}`,
      `listener.security.protocol.map=${names.map((name) => `${name}:${listeners[name]}`).join(',')},CONTROLLER:PLAINTEXT`,
      'inter.broker.listener.name=PLAIN',
      `log.dirs=${this.#at('data')}`,
      // With one node, internal topics must have one replica, or transactions always fail.
      'offsets.topic.replication.factor=1',
      'transaction.state.log.replication.factor=1',
      'transaction.state.log.min.isr=1',
      'share.coordinator.state.topic.replication.factor=1',
      'share.coordinator.state.topic.min.isr=1',
      'offsets.topic.num.partitions=1',
      'transaction.state.log.num.partitions=1',
      'group.initial.rebalance.delay.ms=0',
      'auto.create.topics.enable=false',
      'num.network.threads=2',
      'num.io.threads=4',
      'log.cleaner.dedupe.buffer.size=16777216',
      // After kill -9 the controller refuses the broker until its old session has expired: 9 s by
      // default.
      'broker.session.timeout.ms=1500',
      'broker.heartbeat.interval.ms=300',
      ...(acls
        ? [
            'authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer',
            'super.users=User:ANONYMOUS',
            'allow.everyone.if.no.acl.found=false',
          ]
        : []),
      ...tls,
      ...sasl,
      ...properties,
    ].join('\n');
  }
}

type Isolation = 'read_committed' | 'read_uncommitted';

interface CountedRecord {
  readonly partition: number;
  readonly offset: number;
  readonly key: string;
  readonly headers: string;
  readonly size: number;
  readonly value: string;
}
