/**
 * The sink `elasticsearch` with real servers: versions 9 (users, keys, privileges, TLS) and 8, and
 * OpenSearch, which is refused. Another client counts the documents.
 */
import { PassThrough } from 'node:stream';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { command } from '../../src/cli/commands/setup/index.ts';
import { codeOf, messageOf } from '../../src/errors/errors.ts';
import type { Batch, ResumePoint, Message, Sink, DeliveryResult } from '../../src/model/sink.ts';
import { normalizer } from '../../src/normalize/normalizer.ts';
import { elasticsearch } from '../../src/sink/elasticsearch/index.ts';
import { elasticsearchSettings } from '../../src/sink/elasticsearch/settings.ts';
import { batchOf, contextOf, message, messages, ModelKept, textOf } from '../support/sinks/sink-batches.ts';
import { sinkSuite } from '../support/sinks/sink-suite.ts';
import type { Place } from '../support/sinks/sink-suite.ts';
import { createAuthority } from '../support/certificates.ts';
import { startProxy } from '../support/proxy.ts';
import { recordOf, settings as normalizeSettings, shapes } from '../support/normalize/records.ts';
import { CuttingProxy } from '../support/servers/cutting-proxy.ts';
import { Elasticsearch, elasticsearchMissing, password } from '../support/servers/elasticsearch.ts';
import type { Line } from '../support/servers/elasticsearch.ts';
import { notAsked } from '../support/servers/programs.ts';
import { encoder } from '../support/encode/texts.ts';

const never = new AbortController().signal;
const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });
const texts = (list: readonly Message[]): string[] => list.map(({ bytes }) => Buffer.from(bytes).toString());
const startMs = 240_000;

/** Data streams without a pipeline, so that documents stay as they were sent. */
const plainTemplate = {
  index_patterns: ['logs-plain*-*'],
  data_stream: {},
  priority: 300,
  template: {
    settings: { number_of_replicas: 0 },
    mappings: { properties: { seq: { type: 'keyword' }, size: { type: 'long' }, name: { type: 'keyword', ignore_above: 256 } } },
  },
};

let streams = 0;
/** A new dataset without documents. */
const fresh = (): string => `plain${(streams += 1)}`;

class ServerPlace implements Place {
  readonly #server: Elasticsearch;
  readonly #proxy: CuttingProxy;
  readonly #dataset = fresh();
  readonly #opened: Sink[] = [];
  #lives = 0;

  static async start(server: Elasticsearch): Promise<ServerPlace> {
    return new ServerPlace(server, await CuttingProxy.start(server.port));
  }

  private constructor(server: Elasticsearch, proxy: CuttingProxy) {
    this.#server = server;
    this.#proxy = proxy;
  }

  get #stream(): string {
    return `logs-${this.#dataset}-default`;
  }

  async open(kept: ResumePoint): Promise<Sink> {
    this.#lives += 1;
    if (this.#lives > 1 && (await this.#server.count(this.#stream)) > 0) await this.#server.rollover(this.#stream);
    const nodes = this.#server.url.replace(String(this.#server.port), String(this.#proxy.port));
    const sink = await opened(this.#server, { nodes, dataset: this.#dataset }, kept, 'under-test');
    this.#opened.push(sink);
    return sink;
  }

  async kill(): Promise<void> {
    for (const sink of this.#opened.splice(0)) await sink[Symbol.asyncDispose]();
  }

  received(): Promise<readonly string[]> {
    return this.#server.documents(this.#stream);
  }

  cutAnswer(): void {
    this.#proxy.cutNext('answers');
  }

  stall(): void {
    this.#proxy.stall();
  }

  async ruin(): Promise<void> {
    await this.#proxy[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#proxy[Symbol.asyncDispose]();
  }
}

type Given = Readonly<Record<string, unknown>>;

const settingsOf = ({ url, authority }: Elasticsearch, given: Given = {}) => {
  const credentials = authority && !('apiKey' in given) ? { username: 'elastic', password } : {};
  return elasticsearchSettings.parse({ nodes: url, templates: 'ignore', ...credentials, ...given });
};
const contextAt = ({ authority }: Elasticsearch, id = 'siem') => contextOf(id, authority ? { ca: pem(authority.cert) } : {});

const opened = (server: Elasticsearch, given: Given, kept: ResumePoint = new ModelKept(), id = 'siem'): Promise<Sink> =>
  elasticsearch.open(settingsOf(server, given), contextAt(server, id), kept, never);

async function errorOf(promise: Promise<unknown>): Promise<{ code: string | undefined; message: string }> {
  const thrown = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  return { code: codeOf(thrown), message: messageOf(thrown) };
}

/**
 * Like the delivery loop: after an unknown outcome the sink is opened again, and the batch is
 * uncertain.
 */
async function insist(open: () => Promise<Sink>, batch: Batch): Promise<number> {
  for (let attempts = 1, isUncertain = batch.uncertain; ; attempts += 1) {
    try {
      await using sink = await open();
      const { retryable: again, rejections } = await sink.send({ ...batch, uncertain: isUncertain }, AbortSignal.timeout(30_000));
      expect(rejections).toEqual([]);
      if (again === undefined) return attempts;
    } catch (thrown) {
      if (attempts > 20) throw thrown;
      isUncertain = true;
    }
  }
}

const send = (sink: Sink, batch: Batch): Promise<DeliveryResult> => sink.send(batch, never);

for (const [line, isSecure] of [
  ['elasticsearch-9.5.3', true],
  ['elasticsearch-8.19.5', false],
] as const satisfies readonly (readonly [Line, boolean])[]) {
  const missing = notAsked() ?? elasticsearchMissing(line);
  describe(line, () => {
    let server: Elasticsearch;
    beforeAll(async () => {
      if (missing !== undefined) return;
      server = await Elasticsearch.start(line, isSecure);
      const { status, body } = await server.ask('PUT', '/_index_template/plain', plainTemplate);
      expect({ status, body }).toMatchObject({ status: 200 });
    }, startMs);
    afterAll(() => (missing === undefined ? server[Symbol.asyncDispose]() : undefined));
    beforeEach(({ skip }) => {
      if (missing !== undefined) skip(missing);
    });

    if (missing === undefined)
      sinkSuite({
        name: `${line}, a data stream that is rolled over before each start`,
        formats: ['ecs'],
        twice: () => 0,
        batches: 30,
        secrets: [password],
        start: () => ServerPlace.start(server),
      });
    else test('the contract suite', () => undefined);

    test('responses lost after the server accepted the batch, with a rollover before the retry: every record once', async () => {
      const dataset = fresh();
      await using proxy = await CuttingProxy.start(server.port);
      const nodes = server.url.replace(String(server.port), String(proxy.port));
      const kept = new ModelKept();
      let isCut = false;
      for (let i = 0; i < 10; i += 1) {
        isCut = false;
        const open = async (): Promise<Sink> => {
          if (isCut) await server.rollover(`logs-${dataset}-default`);
          const sink = await opened(server, { nodes, dataset }, kept);
          // Drops the response of the batch itself, not of earlier queries.
          if (!isCut && i > 0) proxy.cutNext('answers');
          isCut = true;
          return sink;
        };
        const attempts = await insist(open, batchOf(messages(i * 200 + 1, i * 200 + 200)));
        expect(attempts).toBe(i === 0 ? 1 : 2);
      }
      expect(proxy.cuts).toBe(9);
      expect(await server.count(`logs-${dataset}-default`)).toBe(2_000);
    });

    test('a lost state: 20,000 records, a rollover, all of them again from the start: 20,000 documents', { timeout: 180_000 }, async () => {
      const dataset = fresh();
      const all = messages(1, 20_000);
      for (const life of ['a', 'b', 'c']) {
        const kept = new ModelKept(life.repeat(32));
        await using sink = await opened(server, { dataset }, kept);
        for (let i = 0; i < all.length; i += 1_000) {
          const { rejections, retryable: again } = await send(sink, batchOf(all.slice(i, i + 1_000)));
          expect({ rejections, retryable: again }).toEqual({ rejections: [], retryable: undefined });
          if (i === 12_000) await server.rollover(`logs-${dataset}-default`);
        }
        expect(kept.resumeNote).toContain(life === 'a' ? 'null' : String(Math.floor((all.at(-1)?.time ?? 0) / 1_000)));
      }
      expect(await server.count(`logs-${dataset}-default`)).toBe(20_000);
    });

    test('a record that the mapping rejects is a rejection with the reason of the server, and the others are accepted', async () => {
      const dataset = fresh();
      await using sink = await opened(server, { dataset });
      const wrong = message(2, JSON.stringify({ '@timestamp': '2026-11-20T00:00:00Z', size: 'no number', name: 'secret' }));
      const torn = message(3, '{"@timestamp":"2026-11-20T00:00:00Z"');
      const undated = message(4, '{"seq":4}');
      const taken = await send(sink, batchOf([message(1), wrong, torn, undated, message(5)]));
      expect(taken.retryable).toBeUndefined();
      expect(taken.rejections.map(({ seq }) => seq)).toEqual([2, 3, 4]);
      expect(taken.rejections[0]?.message).toMatch(/failed to parse field \[size\].*no number/);
      expect(await server.documents(`logs-${dataset}-default`)).toEqual(texts([message(1), message(5)]));
    });

    test('a write-blocked index blocks the sink, a full disk delays it, and both resume when fixed', async () => {
      const dataset = fresh();
      const stream = `logs-${dataset}-default`;
      await using sink = await opened(server, { dataset });
      await send(sink, batchOf([message(1)]));
      for (const [block, code, words] of [
        ['index.blocks.write', 'sink_blocked', /403 cluster_block_exception: .*FORBIDDEN\/8.*sinks\.siem\.nodes/],
        ['index.blocks.read_only', 'sink_blocked', /403 cluster_block_exception: .*FORBIDDEN\/5/],
        ['index.blocks.read_only_allow_delete', 'sink_unavailable', /429 cluster_block_exception: .*flood-stage/],
      ] as const) {
        await server.ask('PUT', `/${stream}/_settings`, { [block]: true });
        const { retryable: again, rejections } = await send(sink, batchOf([message(2)]));
        expect({ code: again?.code, rejections }).toEqual({ code, rejections: [] });
        expect(again?.message).toMatch(words);
        await server.ask('PUT', `/${stream}/_settings`, { [block]: null });
      }
      expect(await send(sink, batchOf([message(2)]))).toMatchObject({ retryable: undefined });
      expect(await server.count(stream)).toBe(2);
    });

    test('a stream without a template, and a missing pipeline, block and name the command', async () => {
      await using lone = await opened(server, { dataset: 'lone' });
      const nothing = await send(lone, batchOf([message(1)]));
      expect(nothing).toMatchObject({ rejections: [], retryable: { code: 'sink_blocked' } });
      expect(nothing.retryable?.message).toMatch(/404 index_not_found_exception.*waybill setup elasticsearch --sink siem/);
      expect((await server.ask('HEAD', '/logs-lone-default')).status).toBe(404);
      const dataset = fresh();
      await using sink = await opened(server, { dataset });
      await send(sink, batchOf([message(1)]));
      await server.ask('PUT', `/logs-${dataset}-default/_settings`, { 'index.final_pipeline': 'not-there' });
      const lost = await send(sink, batchOf([message(2)]));
      expect(lost).toMatchObject({ rejections: [], retryable: { code: 'sink_blocked' } });
      expect(lost.retryable?.message).toMatch(/400 illegal_argument_exception: pipeline with id \[not-there\] does not exist/);
    });

    test('a time-based index contains each uid once, in the month of the event', async () => {
      const index = `audit-${fresh()}-{yyyy.MM}`;
      await using sink = await opened(server, { index });
      const old = { ...message(1), time: Date.UTC(2024, 1, 29) * 1000 };
      await send(sink, batchOf([old, message(2)]));
      expect(await send(sink, batchOf([old, message(2)], true))).toMatchObject({ duplicates: 2 });
      expect(await server.count(index.replace('{yyyy.MM}', '2024.02'))).toBe(1);
      expect(await server.count(index.replace('{yyyy.MM}', '2026.11'))).toBe(1);
    });
  });
}

const missing = notAsked() ?? elasticsearchMissing('elasticsearch-9.5.3');
describe('privileges, trust and templates of elasticsearch-9.5.3', () => {
  let server: Elasticsearch;
  const directory = mkdtempSync(join(tmpdir(), 'waybill-setup-'));
  beforeAll(async () => {
    if (missing === undefined) server = await Elasticsearch.start('elasticsearch-9.5.3', true);
  }, startMs);
  afterAll(async () => {
    if (missing === undefined) await server[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true });
  });
  beforeEach(({ skip }) => {
    if (missing !== undefined) skip(missing);
  });

  async function setup(...args: readonly string[]): Promise<string> {
    const [ca, file] = [join(directory, 'ca.pem'), join(directory, 'waybill.yaml')];
    writeFileSync(ca, server.authority?.cert ?? '');
    writeFileSync(
      file,
      `sources:
  - id: production
    baseUrl: https://service.example
    start: 2026-01-01T00:00:00Z
    auth: { authUrl: https://login.example, tenantId: t, clientId: c, clientSecret: s, scopeAddress: a }
sinks:
  - { id: siem, type: elasticsearch, nodes: '${server.url}', apiKey: none, tls: { ca: '${ca}' } }
`,
    );
    const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
    const env = { WAYBILL_SETUP_USERNAME: 'elastic', WAYBILL_SETUP_PASSWORD: password };
    expect(
      await command.run(['elasticsearch', '--config', file, '--sink', 'siem', '--yes', ...args], {
        stdin,
        stdout,
        stderr,
        env,
        signal: never,
      }),
    ).toBe(0);
    return String(stdout.read() ?? '').trim();
  }

  const checked = async (apiKey: string) =>
    (await elasticsearch.check(settingsOf(server, { apiKey, templates: 'check' }), contextAt(server), never)).map(
      ({ level, message: words }) => `${level}: ${words}`,
    );

  async function keyWith(privileges: readonly string[]): Promise<string> {
    const role = { cluster: [], index: [{ names: ['logs-dpas.audit-*'], privileges }] };
    const { body } = await server.ask('POST', '/_security/api_key', { name: 'few', role_descriptors: { few: role } });
    return (body as { encoded: string }).encoded;
  }

  test('setup installs a template that every example record fits, and creates a sufficient key', { timeout: 60_000 }, async () => {
    const apiKey = await setup('--key');
    const kept = new ModelKept();
    await using sink = await opened(server, { apiKey, templates: 'check' }, kept);
    const encode = encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
    const events = shapes.map(({ text }, i) => message(i + 1, encode(normalizer(normalizeSettings)(recordOf(text)))));
    expect(await send(sink, batchOf(events))).toEqual({ rejections: [], duplicates: 0, dropped: 0, retryable: undefined });
    const stream = 'logs-dpas.audit-default';
    await server.rollover(stream);
    expect(await send(sink, batchOf(events, true))).toMatchObject({ duplicates: shapes.length });
    expect(await server.count(stream)).toBe(shapes.length);
    const stored = (await server.documents(stream)).map((text) => JSON.parse(text) as { event: { ingested?: string } });
    expect(stored.filter(({ event }) => event.ingested === undefined)).toEqual([]);
    expect(await checked(apiKey)).toEqual([
      expect.stringMatching(
        /^ok: connected to 127\.0\.0\.1:\d+ directly, certificate of 'es' issued by 'Test root' until \d{4}-\d\d-\d\d$/,
      ),
      'ok: authenticated with the API key "waybill-siem"',
      'ok: the server is Elasticsearch 9.5.3',
      `ok: privileges on "${stream}": create_doc, auto_configure, read, maintenance, view_index_metadata`,
      `ok: "${stream}" has the mapping of waybill setup elasticsearch`,
      `ok: the pipelines of "${stream}" (logs-dpas.audit@ingested) keep a sample record`,
    ]);
    // A second run changes nothing.
    await setup();
    await server.ask('PUT', `/${stream}/_settings`, { 'index.translog.durability': 'async' });
    expect((await checked(apiKey)).filter((words) => !words.startsWith('ok'))).toEqual([
      expect.stringMatching(/^warning: index\.translog\.durability is async/),
    ]);
    await server.ask('PUT', `/${stream}/_settings`, { 'index.translog.durability': null });
  });

  test('a key that may only write delivers, and check reports the cost of the missing privileges', async () => {
    const apiKey = await keyWith(['create_doc', 'auto_configure']);
    const kept = new ModelKept();
    await using sink = await opened(server, { apiKey }, kept);
    expect(await send(sink, batchOf([message(900)], true))).toMatchObject({ rejections: [], retryable: undefined });
    expect(await send(sink, batchOf([message(900)], true))).toMatchObject({ duplicates: 1 });
    expect(kept.resumeNote).toBeUndefined();
    expect((await checked(apiKey)).filter((words) => words.startsWith('warning: the privilege'))).toHaveLength(3);
  });

  test('a key without the privilege to write blocks, and the message names it', async () => {
    const poor = await keyWith(['read']);
    await using sink = await opened(server, { apiKey: poor });
    const { retryable } = await send(sink, batchOf([message(901)]));
    expect(retryable?.code).toBe('sink_blocked');
    expect(retryable?.message).toMatch(
      /403 security_exception: .*unauthorized.*sinks\.siem\.apiKey needs create_doc and auto_configure on "logs-dpas\.audit-default"/,
    );
    expect((await checked(poor)).some((words) => words.startsWith('error: the privilege create_doc'))).toBe(true);
  });

  test('wrong password, wrong key, wrong CA, no TLS: one clear line each', async () => {
    const other = await createAuthority('Another root');
    const bad = (given: Given, context = contextAt(server)) =>
      errorOf(elasticsearch.open(settingsOf(server, given), context, new ModelKept(), never));
    for (const [found, words] of [
      [await bad({ password: 'wrong-canary' }), /401 security_exception: unable to authenticate.*\(sinks\.siem\.password\)$/],
      [await bad({ apiKey: 'bm90aGluZzpjYW5hcnk=' }), /401 security_exception: .*\(sinks\.siem\.apiKey\)$/],
      [
        await bad({}, contextOf('siem', { ca: pem(other.cert) })),
        /sinks\.siem\.tls\.ca: certificate of 127\.0\.0\.1 issued by 'Test root' is not trusted/,
      ],
      [await bad({ nodes: server.url.replace('https', 'http') }), /sinks\.siem\.nodes begins with http: perhaps the port speaks TLS/],
    ] as const) {
      expect(found.code).toBe('sink_blocked');
      expect(found.message).toMatch(words);
      expect(found.message).not.toMatch(/canary|bm90aGlu|\n/);
    }
  });

  test('through an HTTP proxy with a password: every record once', async () => {
    await server.ask('PUT', '/_index_template/proxied', { ...plainTemplate, index_patterns: ['logs-proxied-*'], priority: 302 });
    await using proxy = await startProxy({ names: { 'es.test:9200': server.port }, user: 'u', password: 'p' });
    const context = (userinfo: string) =>
      contextOf('siem', {
        ca: pem(server.authority?.cert ?? ''),
        proxy: {
          url: { read: () => `http://${userinfo}@127.0.0.1:${proxy.port}`, refresh: () => undefined, describe: () => 'proxy of the test' },
        },
      });
    const settings = settingsOf(server, { nodes: 'https://es.test:9200', dataset: 'proxied' });
    await using sink = await elasticsearch.open(settings, context('u:p'), new ModelKept(), never);
    expect(await send(sink, batchOf(messages(1, 500)))).toMatchObject({ rejections: [], retryable: undefined });
    expect(await send(sink, batchOf(messages(1, 600), true))).toMatchObject({ duplicates: 500, retryable: undefined });
    expect(await server.count('logs-proxied-default')).toBe(600);
    expect(new Set(proxy.asked)).toEqual(new Set(['es.test:9200']));
    const refused = await errorOf(elasticsearch.open(settings, context('u:wrong-canary'), new ModelKept(), never));
    expect(refused.code).toBe('sink_blocked');
    expect(refused.message).toMatch(/^sink "siem": cannot reach "es\.test:9200" through the proxy/);
    expect(refused.message).not.toContain('canary');
  });

  test('a stream with a failure store: a document in that store is a rejection with its reason', async () => {
    const template = { ...plainTemplate, index_patterns: ['logs-aside-*'], priority: 301 };
    const options = { data_stream_options: { failure_store: { enabled: true } } };
    await server.ask('PUT', '/_index_template/aside', { ...template, template: { ...template.template, ...options } });
    await using sink = await opened(server, { dataset: 'aside' });
    const wrong = message(2, JSON.stringify({ '@timestamp': '2026-11-20T00:00:00Z', size: 'no number' }));
    const { rejections, retryable: again } = await send(sink, batchOf([message(1), wrong, message(3)]));
    expect(again).toBeUndefined();
    expect(rejections).toEqual([
      { seq: 2, code: 'failure_store', message: expect.stringMatching(/failure store.*failed to parse field \[size\]/) as string },
    ]);
    expect(await server.documents('logs-aside-default')).toEqual([textOf(1), textOf(3)]);
  });
});

const absent = notAsked() ?? elasticsearchMissing('opensearch-3.8.0');
test('opensearch-3.8.0 is refused with a clear message', { timeout: startMs }, async ({ skip }) => {
  if (absent !== undefined) return skip(absent);
  await using server = await Elasticsearch.start('opensearch-3.8.0');
  expect(await errorOf(opened(server, {}))).toEqual({
    code: 'sink_blocked',
    message: 'sink "siem": the server at sinks.siem.nodes is not Elasticsearch 8 or later; this sink does not support OpenSearch',
  });
});
