/**
 * A real Elasticsearch or OpenSearch on loopback, in a separate process. Queries and counts use
 * fetch, and no code of the sink.
 */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Agent, request } from 'undici';
import type { Dispatcher } from 'undici';
import { createAuthority } from '../certificates.ts';
import type { Authority, CertificateWish } from '../certificates.ts';
import { until } from '../e2e-place.ts';
import { freePort } from './ports.ts';
import { cacheFolder } from './programs.ts';

export type Line = 'elasticsearch-9.5.3' | 'elasticsearch-8.19.5' | 'opensearch-3.8.0';

/** The reason why this version is not available; undefined if it is. */
export function elasticsearchMissing(line: Line): string | undefined {
  if (javaHome() === undefined) return 'no Java of line 21 or later in /usr/lib/jvm, nor in JAVA_HOME';
  const name = { 'elasticsearch-9.5.3': 'elasticsearch', 'elasticsearch-8.19.5': 'elasticsearch-8', 'opensearch-3.8.0': 'opensearch' }[
    line
  ];
  return existsSync(join(cacheFolder(), line, 'done')) ? undefined : `no ${line}: test/servers/install.sh ${name}`;
}

function javaHome(): string | undefined {
  const folder = '/usr/lib/jvm';
  const found = existsSync(folder) ? readdirSync(folder).filter((name) => /-2[1-9]-/.test(name)) : [];
  return (
    process.env['JAVA_HOME'] ??
    found
      .sort()
      .map((name) => join(folder, name))
      .at(-1)
  );
}

export const password = 'test-password';

/** Halves the work of a start: without recompilation of code, which pays off only after minutes. */
const shortLived: readonly string[] = ['-XX:+UseSerialGC', '-XX:TieredStopAtLevel=1', '-XX:-UsePerfData'];

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

/** One node with its data, which survives kills: the same port, documents, users and keys. */
export class Elasticsearch implements AsyncDisposable {
  readonly url: string;
  readonly port: number;
  readonly authority: Authority | undefined;
  readonly #directory: string;
  readonly #command: readonly string[];
  readonly #agent: Agent;
  #child: ChildProcess | undefined;

  /**
   * Version 9 with users, keys, privileges and TLS if `isSecure`; `jvm`: options of Java, by
   * default for a short life.
   */
  static async start(line: Line, isSecure = false, jvm = shortLived): Promise<Elasticsearch> {
    const directory = mkdtempSync(join(tmpdir(), 'waybill-elasticsearch-'));
    mkdirSync(join(directory, 'config'));
    const [port, transport] = [await freePort(), await freePort()];
    const authority = isSecure ? await createAuthority('Test root') : undefined;
    const settings = ['cluster.name=test', 'node.name=test', 'discovery.type=single-node', 'network.host=127.0.0.1', `http.port=${port}`];
    settings.push(`transport.port=${transport}`, 'cluster.routing.allocation.disk.threshold_enabled=false');
    const plugins = ['transport-netty4'];
    if (line === 'elasticsearch-9.5.3') {
      plugins.push('x-pack-core', 'stand-ins', ...(isSecure ? ['x-pack-security'] : []));
      settings.push(`xpack.security.enabled=${isSecure}`);
    }
    if (isSecure)
      settings.push(
        'xpack.security.http.ssl.enabled=true',
        'xpack.security.http.ssl.key=http.key',
        'xpack.security.http.ssl.certificate=http.crt',
      );
    const place = join(cacheFolder(), line);
    const isOpenSearch = line.startsWith('opensearch');
    const main = isOpenSearch ? ['TestNode', directory, String(port)] : ['org.elasticsearch.node.TestNode', ...settings];
    const options = ['-Xms512m', '-Xmx512m', ...jvm, `-Des.path.home=${directory}`, `-Dwaybill.plugins=${plugins.join(',')}`];
    options.push('--add-modules', 'jdk.incubator.vector', '--enable-native-access=ALL-UNNAMED');
    const classPath = ['-cp', `${join(place, 'classes')}:${join(place, 'lib')}/*`];
    const node = new Elasticsearch(directory, [...options, ...classPath, ...main], port, authority);
    try {
      await node.showCertificate();
      await node.run();
      if (authority) await node.#prepareSecurity();
    } catch (thrown) {
      await node[Symbol.asyncDispose]();
      throw thrown;
    }
    return node;
  }

  private constructor(directory: string, command: readonly string[], port: number, authority: Authority | undefined) {
    this.#directory = directory;
    this.#command = command;
    this.port = port;
    this.authority = authority;
    this.url = `${authority ? 'https' : 'http'}://127.0.0.1:${port}`;
    this.#agent = new Agent({ connect: authority ? { ca: authority.cert } : {} });
  }

  /** Starts it, and waits until it reports that it has started. */
  async run(): Promise<void> {
    this.#child = spawn(join(javaHome() ?? '', 'bin/java'), this.#command, {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...(this.authority ? { WAYBILL_TEST_PASSWORD: password } : {}) },
    });
    await started(this.#child);
  }

  /**
   * The first role, user or key creates the security index; until its shards are available, no user
   * is known.
   */
  async #prepareSecurity(): Promise<void> {
    await this.ask('PUT', '/_security/role/first', { cluster: ['monitor'] });
    await this.recovered();
  }

  /** Waits until searches see all its data: it responds before that. */
  async recovered(): Promise<void> {
    let last: unknown;
    await until(
      () => `Elasticsearch has its shards again: ${JSON.stringify(last)}`,
      600_000,
      async () => {
        last = await this.ask('GET', '/_cluster/health?wait_for_status=yellow&timeout=1s');
        return (last as Reply).status === 200 || undefined;
      },
    );
  }

  /** SIGKILL. All acknowledged data is on its disk. */
  async kill(): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGKILL');
    await ended;
  }

  /** Uses a certificate of this kind from the next start on. */
  async showCertificate(validity: Pick<CertificateWish, 'notBefore' | 'notAfter'> = {}): Promise<void> {
    if (!this.authority) return;
    const { cert, key } = await this.authority.issue({ name: 'es', hosts: ['127.0.0.1', 'es.test'], ...validity });
    writeFileSync(join(this.#directory, 'config', 'http.crt'), cert);
    writeFileSync(join(this.#directory, 'config', 'http.key'), key);
  }

  /** Sends a request as the administrator. */
  async ask(method: Dispatcher.HttpMethod, path: string, body?: unknown): Promise<Reply> {
    const authorization = `Basic ${Buffer.from(`elastic:${password}`).toString('base64')}`;
    const answer = await request(`${this.url}${path}`, {
      method,
      dispatcher: this.#agent,
      headers: { 'content-type': 'application/json', ...(this.authority ? { authorization } : {}) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.body.text();
    return { status: answer.statusCode, body: text === '' ? undefined : JSON.parse(text) };
  }

  /** The number of documents in a stream or index, including duplicates. */
  async count(target: string): Promise<number> {
    await this.ask('POST', `/${target}/_refresh`);
    const { body } = await this.ask('POST', `/${target}/_search`, { size: 0, track_total_hits: true });
    return (body as { hits?: { total: { value: number } } }).hits?.total.value ?? 0;
  }

  /** The documents as they were sent, in the order of storage. */
  async documents(target: string): Promise<string[]> {
    await this.ask('POST', `/${target}/_refresh`);
    const { status, body } = await this.ask('POST', `/${target}/_search`, { size: 10_000, sort: ['_index', '_seq_no'] });
    if (status === 404) return [];
    return (body as { hits: { hits: { _source: unknown }[] } }).hits.hits.map(({ _source }) => JSON.stringify(_source));
  }

  /** The original records of all documents, including duplicates. */
  async originals(target: string): Promise<string[]> {
    return (await this.fields<{ event: { original: string } }>(target, ['event.original'])).map(({ event }) => event.original);
  }

  /** These fields of all documents, including duplicates. */
  async fields<Fields>(target: string, names: readonly string[]): Promise<Fields[]> {
    const found: Fields[] = [];
    await this.ask('POST', `/${target}/_refresh`);
    for (let after: unknown; ;) {
      const query = { size: 5_000, _source: names, sort: ['_index', '_seq_no'], ...(after ? { search_after: after } : {}) };
      const { body } = await this.ask('POST', `/${target}/_search`, query);
      const { hits } = (body as { hits: { hits: { _source: Fields; sort: unknown }[] } }).hits;
      if (hits.length === 0) return found;
      for (const { _source } of hits) found.push(_source);
      after = hits.at(-1)?.sort;
    }
  }

  /** The values of this field that occur in more than one document, at most ten. */
  async repeated(target: string, field: string): Promise<unknown> {
    const aggs = { repeated: { terms: { field, min_doc_count: 2, size: 10 } } };
    const { body } = await this.ask('POST', `/${target}/_search`, { size: 0, aggs });
    return (body as { aggregations: { repeated: { buckets: unknown } } }).aggregations.repeated.buckets;
  }

  async rollover(target: string): Promise<void> {
    const { status, body } = await this.ask('POST', `/${target}/_rollover`);
    if (status !== 200) throw new Error(`cannot roll over ${target}: ${JSON.stringify(body)}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#agent.destroy();
    await this.kill();
    rmSync(this.#directory, { recursive: true, force: true });
  }
}

function started(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let output = '';
    const hear = (bytes: Buffer): void => {
      output = (output + bytes.toString()).slice(-20_000);
      if (output.includes('NODE-STARTED')) resolve();
    };
    child.stdout?.on('data', hear);
    child.stderr?.on('data', hear);
    child.once('exit', (code) => reject(new Error(`the server ended with ${code ?? 'a signal'}: ${output}`)));
  });
}
