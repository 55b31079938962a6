/**
 * The sink `elasticsearch`: the contract of every sink, with a model of the server that responds as
 * real servers did.
 */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { codeOf, messageOf } from '../../../src/errors/errors.ts';
import type { Batch, ResumePoint, Message, Sink, DeliveryResult } from '../../../src/model/sink.ts';
import { elasticsearch } from '../../../src/sink/elasticsearch/index.ts';
import type { SinkContext } from '../../../src/sink/define.ts';
import { itemFrom, itemResultOf, requestResultOf, messageOfItem } from '../../../src/sink/elasticsearch/items.ts';
import { present } from '../../../src/sink/elasticsearch/resolve.ts';
import { dataStreamOf, elasticsearchSettings, nodesOf } from '../../../src/sink/elasticsearch/settings.ts';
import { createAuthority } from '../../support/certificates.ts';
import type { Authority, KeyPair } from '../../support/certificates.ts';
import { ModelElasticsearch } from '../../support/model-elasticsearch.ts';
import { startProxy } from '../../support/proxy.ts';
import { batchOf, contextOf, message, messages, ModelKept, textOf } from '../../support/sinks/sink-batches.ts';
import { sinkSuite } from '../../support/sinks/sink-suite.ts';
import type { Place } from '../../support/sinks/sink-suite.ts';

const never = new AbortController().signal;
const stream = 'logs-dpas.audit-default';
const canary = 'canary-of-a-key';
const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });
const texts = (list: readonly Message[]): string[] => list.map(({ bytes }) => Buffer.from(bytes).toString());
type Given = Readonly<Record<string, unknown>>;

let authority: Authority;
let served: KeyPair;
beforeAll(async () => {
  authority = await createAuthority('Example root');
  served = await authority.issue({ name: 'es', hosts: ['127.0.0.1', 'es.test'] });
});

class ModelPlace implements Place {
  readonly #model: ModelElasticsearch;
  readonly #given: Given;
  readonly #target: string;
  readonly #refusal: string;
  #opened: Sink[] = [];
  #lives = 0;

  constructor(model: ModelElasticsearch, given: Given, target: string, refusal = 'document_parsing_exception') {
    this.#refusal = refusal;
    this.#model = model;
    this.#given = given;
    this.#target = target;
  }

  /**
   * Rolls a data stream over between two starts of the sender: documents before the rollover do not
   * block new ones.
   */
  async open(kept: ResumePoint): Promise<Sink> {
    this.#lives += 1;
    if (this.#lives > 1 && this.#target === stream) this.#model.rollover(stream);
    const sink = await elasticsearch.open(
      elasticsearchSettings.parse(this.#given),
      contextOf('under-test', { ca: pem(authority.cert) }),
      kept,
      never,
    );
    this.#opened.push(sink);
    return sink;
  }

  async kill(): Promise<void> {
    for (const sink of this.#opened.splice(0)) await sink[Symbol.asyncDispose]();
  }

  async received(): Promise<readonly string[]> {
    return this.#model.texts(this.#target);
  }

  cutAnswer(): void {
    this.#model.cutsAnswer = true;
  }

  refuse(seq: number, words: string): undefined {
    this.#model.refuse = (text) =>
      (JSON.parse(text) as { seq: number }).seq === seq ? { status: 400, type: this.#refusal, reason: words } : undefined;
  }

  intercept(seq: number, status: number): void {
    this.#model.fault = (_method, path, text) =>
      path === '/_bulk' && text.includes(`"seq":${seq},`)
        ? { status, text: '<html>Request blocked</html>', headers: { 'x-elastic-product': '', 'content-type': 'text/html' } }
        : undefined;
  }

  busy(retryAfterMs: number): void {
    this.#model.fault = (_method, path) => {
      if (path !== '/_bulk') return undefined;
      this.#model.fault = () => undefined;
      return {
        status: 429,
        body: { error: { type: 'circuit_breaking_exception' } },
        headers: { 'retry-after': String(retryAfterMs / 1_000) },
      };
    };
  }

  stall(): void {
    this.#model.isStalled = true;
  }

  async ruin(): Promise<void> {
    await this.#model[Symbol.asyncDispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.#model[Symbol.asyncDispose]();
  }
}

const common = { formats: ['ecs'], twice: () => 0, batches: 40, secrets: [canary] } as const;

sinkSuite({
  ...common,
  name: 'elasticsearch, a data stream that is rolled over before each start',
  async start() {
    const model = await new ModelElasticsearch().listen();
    return new ModelPlace(model, { nodes: `http://127.0.0.1:${model.port}`, templates: 'ignore' }, stream);
  },
});

sinkSuite({
  ...common,
  name: 'elasticsearch, a pipeline that fails for a record',
  isVariant: true,
  async start() {
    const model = await new ModelElasticsearch().listen();
    const given = { nodes: `http://127.0.0.1:${model.port}`, templates: 'ignore' };
    return new ModelPlace(model, given, stream, 'illegal_argument_exception');
  },
});

sinkSuite({
  ...common,
  name: 'elasticsearch, a separate index for each year, TLS, API key',
  isVariant: true,
  async start() {
    const model = await new ModelElasticsearch(served).listen();
    model.authorization = `ApiKey ${canary}`;
    const given = { nodes: [`https://127.0.0.1:${model.port}`], apiKey: canary, index: 'audit-{yyyy}' };
    return new ModelPlace(model, given, 'audit-2026');
  },
});

describe('elasticsearch', () => {
  let model: ModelElasticsearch;
  let kept: ModelKept;
  const opened: Sink[] = [];
  beforeEach(async () => {
    model = await new ModelElasticsearch().listen();
    kept = new ModelKept();
  });
  afterEach(async () => {
    for (const sink of opened.splice(0)) await sink[Symbol.asyncDispose]();
    await model[Symbol.asyncDispose]();
  });

  const given = (overrides: Given = {}) =>
    elasticsearchSettings.parse({ nodes: `http://127.0.0.1:${model.port}`, templates: 'ignore', ...overrides });

  async function open(overrides: Given = {}, context: Partial<SinkContext> = {}): Promise<Sink> {
    const sink = await elasticsearch.open(given(overrides), contextOf('siem', context), kept, never);
    opened.push(sink);
    return sink;
  }

  async function errorOf(promise: Promise<unknown>): Promise<{ code: string | undefined; message: string }> {
    const thrown = await promise.then(
      () => undefined,
      (error: unknown) => error,
    );
    return { code: codeOf(thrown), message: messageOf(thrown) };
  }

  const send = (sink: Sink, batch: Batch): Promise<DeliveryResult> => sink.send(batch, never);
  const requests = (path: string): number => model.asked.filter((each) => each.endsWith(path)).length;

  describe('the result of an item', () => {
    const conflict = 'version_conflict_engine_exception';
    test.each([
      ['delivered', { status: 201 }],
      ['delivered', { status: 201, failure_store: 'not_applicable_or_unknown' }],
      ['failure_store', { status: 201, failure_store: 'used' }],
      ['duplicate', { status: 409, error: { type: conflict } }],
      ['retryable', { status: 429, error: { type: 'es_rejected_execution_exception' } }],
      ['retryable', { status: 429, error: { type: 'circuit_breaking_exception' } }],
      ['retryable', { status: 429, error: { type: 'cluster_block_exception' } }],
      ['retryable', { status: 503, error: { type: 'unavailable_shards_exception' } }],
      ['rejected', { status: 400, error: { type: 'document_parsing_exception' } }],
      ['rejected', { status: 400, error: { type: 'x_content_parse_exception' } }],
      ['rejected', { status: 400, error: { type: 'mapper_parsing_exception' } }],
      ['rejected', { status: 400, error: { type: 'strict_dynamic_mapping_exception' } }],
      [
        'rejected',
        { status: 400, error: { type: 'illegal_argument_exception', caused_by: { type: 'max_bytes_length_exceeded_exception' } } },
      ],
      ['suspect', { status: 400, error: { type: 'illegal_argument_exception' } }],
      ['suspect', { status: 500, error: { type: 'runtime_exception' } }],
      ['suspect', { status: 500, error: { type: 'illegal_state_exception' } }],
      ['retryable', { status: 500, error: { type: 'node_closed_exception' } }],
      ['suspect', { status: 400, error: { type: 'illegal_argument_exception', reason: 'pipeline with id [p] does not exist' } }],
      ['suspect', { status: 403, error: { type: 'security_exception' } }],
      ['suspect', { status: 403, error: { type: 'cluster_block_exception' } }],
      ['suspect', { status: 404, error: { type: 'index_not_found_exception' } }],
      ['dropped', { status: 200, result: 'noop' }],
      ['suspect', { status: 200 }],
      ['unexpected', {}],
    ])('%s: %j', (verdict, item) => {
      expect(itemResultOf(itemFrom(item))).toBe(verdict);
    });
  });

  test.each([
    ['rejected', 413, undefined, true],
    ['rejected', 400, 'illegal_argument_exception', true],
    ['blocked', 400, 'media_type_header_exception', true],
    ['blocked', 401, 'security_exception', true],
    ['blocked', 401, undefined, false],
    ['blocked', 403, 'security_exception', true],
    ['rejected', 403, undefined, false],
    ['rejected', 404, undefined, false],
    ['blocked', 404, 'index_not_found_exception', true],
    ['retryable', 429, 'circuit_breaking_exception', true],
    ['unknown', 500, undefined, true],
    ['unknown', 503, undefined, false],
    ['rejected', 302, undefined, false],
    ['unknown', 204, undefined, true],
  ] as const)(
    'a request is %s if its whole response is %i %s, and the answer is of Elasticsearch itself: %s',
    (verdict, status, type, isElasticsearch) => {
      expect(requestResultOf(status, type === undefined ? undefined : { type }, isElasticsearch)).toBe(verdict);
    },
  );

  test('each item has its own result: one is created, one exists, one is rejected, and the rest are retried', async () => {
    const sink = await open();
    await send(sink, batchOf([message(2)]));
    model.refuse = (text) =>
      ({
        3: { status: 400, type: 'document_parsing_exception', reason: 'failed to parse field [x]: Preview of field value: secret name' },
        4: { status: 429, type: 'es_rejected_execution_exception', reason: 'rejected execution' },
        5: { status: 503, type: 'unavailable_shards_exception', reason: 'primary shard is not active' },
      })[(JSON.parse(text) as { seq: number }).seq];
    const taken = await send(sink, batchOf(messages(1, 5)));
    expect(taken).toMatchObject({
      duplicates: 1,
      rejections: [{ seq: 3, code: 'document_parsing_exception', message: expect.stringContaining('secret name') as string }],
      retryable: {
        seqs: [4, 5],
        code: 'sink_unavailable',
        reasons: [
          { seq: 4, isPassing: true },
          { seq: 5, isPassing: true },
        ],
      },
    });
    expect(taken.retryable?.message).toBe(
      `sink "siem" cannot write to "${stream}" (2 of 5): 429 es_rejected_execution_exception: rejected execution`,
    );
    model.refuse = () => undefined;
    expect(await send(sink, batchOf(messages(4, 5)))).toMatchObject({ rejections: [], duplicates: 0, retryable: undefined });
    expect(model.texts(stream)).toEqual(texts([2, 1, 4, 5].map((seq) => message(seq))));
  });

  describe('a reason other than the document', () => {
    test.each([
      [403, 'security_exception', 'action is unauthorized for API key', /security_exception: action.*sinks\.siem\.apiKey needs create_doc/],
      [
        403,
        'cluster_block_exception',
        `index [.ds-${stream}-000001] blocked by: [FORBIDDEN/8/index write (api)]`,
        /FORBIDDEN\/8.*sinks\.siem\./,
      ],
      [404, 'index_not_found_exception', `no such index [${stream}]`, /no such index.*waybill setup elasticsearch --sink siem/],
      [
        400,
        'illegal_argument_exception',
        'pipeline with id [p] does not exist',
        /pipeline with id \[p\] does not exist.*setup elasticsearch/,
      ],
      [400, 'some_exception', 'quotes the document', /400 some_exception \(/],
    ])('blocks the sink, without a rejection: %i %s', async (status, type, reason, words) => {
      const sink = await open();
      model.refuse = () => ({ status, type, reason });
      const taken = await send(sink, batchOf(messages(1, 2)));
      expect(taken).toMatchObject({ rejections: [], retryable: { code: 'sink_blocked', seqs: [1, 2] } });
      expect(taken.retryable?.message).toMatch(words);
      expect(taken.retryable?.message).not.toContain('quotes the document');
      model.refuse = () => undefined;
      expect(await send(sink, batchOf(messages(1, 2)))).toMatchObject({ rejections: [], retryable: undefined });
    });

    test.each([
      [401, 'sink_blocked', /401 security_exception.*sinks\.siem\.apiKey/],
      [403, 'sink_blocked', /403 security_exception/],
      [429, 'sink_unavailable', /429/],
      [413, 'sink_refused', /sinks\.siem\.batch\.maxBytes/],
      [400, 'sink_refused', /400/],
      [500, 'sink_outcome_unknown', /500/],
      [503, 'sink_outcome_unknown', /503/],
    ])('of a whole request: %i means %s', async (status, code, words) => {
      const sink = await open();
      model.fault = (_method, path) =>
        path === '/_bulk' ? { status, body: { error: { type: 'security_exception', reason: 'no' } } } : undefined;
      const sent = send(sink, batchOf(messages(1, 2)));
      // If the server lacks space for the request, a smaller batch may fit.
      await expect(sent).rejects.toMatchObject({ isCrowded: status === 429 });
      const thrown = await errorOf(sent);
      expect(thrown.code).toBe(code);
      expect(thrown.message).toMatch(words);
    });

    test('a server that refuses each request of one message with 400 creates no dead letter', async () => {
      const sink = await open();
      model.fault = (_method, path) => (path === '/_bulk' ? { status: 400, body: { error: 'unexpected' } } : undefined);
      expect(await send(sink, batchOf([message(1)]))).toMatchObject({
        rejections: [],
        retryable: { code: 'sink_blocked', seqs: [1], reasons: [{ seq: 1, code: '400', message: 'the server responded unexpected' }] },
      });
      model.fault = () => undefined;
      expect(await send(sink, batchOf([message(1)]))).toMatchObject({ rejections: [] });
    });

    test('a response that is not JSON leaves the outcome unknown, and is not quoted', async () => {
      const sink = await open();
      model.fault = (_method, path) => (path === '/_bulk' ? { status: 200, text: '{"items":[{"create":{"error":"secret name' } : undefined);
      const { code, message: words } = await errorOf(send(sink, batchOf([message(1)])));
      expect([code, words]).toEqual(['sink_outcome_unknown', 'sink "siem": cannot parse the response (DeserializationError)']);
    });

    test('a response for other items, or for too few, leaves the outcome unknown', async () => {
      const sink = await open();
      for (const items of [[], [{ create: { status: 201 } }], [{ index: { _id: message(1).uid, status: 201 } }]]) {
        model.fault = (_method, path) => (path === '/_bulk' ? { status: 200, body: { items } } : undefined);
        expect((await errorOf(send(sink, batchOf([message(1)])))).code).toBe('sink_outcome_unknown');
      }
    });
  });

  test('results in another order leave the outcome unknown, whatever they are', async () => {
    const sink = await open();
    const [one, other] = [message(1).uid, message(2).uid];
    const failed = (_id: string, status: number, type: string) => ({ create: { _id, status, error: { type } } });
    for (const [first, second] of [
      [failed(other, 409, 'version_conflict_engine_exception'), failed(one, 429, 'es_rejected_execution_exception')],
      [failed(other, 400, 'document_parsing_exception'), { create: { _id: one, status: 201 } }],
      [failed(other, 403, 'security_exception'), failed(one, 403, 'security_exception')],
    ]) {
      model.fault = (_method, path) => (path === '/_bulk' ? { status: 200, body: { items: [first, second] } } : undefined);
      const { code, message: words } = await errorOf(send(sink, batchOf(messages(1, 2))));
      expect([code, words]).toEqual(['sink_outcome_unknown', expect.stringContaining('for another document')]);
    }
  });

  test.each([
    ['a null cause', { type: 'document_parsing_exception', reason: 'bad', caused_by: null }, 'document_parsing_exception: bad'],
    ['a reason that is not a text', { type: 'document_parsing_exception', reason: { a: 1 } }, 'document_parsing_exception'],
  ])('an error of unexpected form rejects the document: %s', async (_what, error, words) => {
    const sink = await open();
    const items = [{ create: { _id: message(1).uid, status: 400, error } }];
    model.fault = (_method, path) => (path === '/_bulk' ? { status: 200, body: { items } } : undefined);
    expect((await send(sink, batchOf([message(1)]))).rejections).toEqual([{ seq: 1, code: 'document_parsing_exception', message: words }]);
  });

  test('an error that is only a text is not lost, and is not quoted in the log', async () => {
    const sink = await open();
    const reason = 'MapperParsingException[of a secret name]';
    const items = [{ create: { _id: message(1).uid, status: 400, error: reason } }];
    model.fault = (_method, path) => (path === '/_bulk' ? { status: 200, body: { items } } : undefined);
    const { retryable: again, rejections } = await send(sink, batchOf([message(1)]));
    expect([rejections, again?.code]).toEqual([[], 'sink_blocked']);
    expect(again?.message).toMatch(/400 no reason \(a pipeline of "logs-dpas\.audit-default"\? See index\.default_pipeline .*\)$/);
    expect(messageOfItem(itemFrom(items[0]?.create))).toBe(reason);
  });

  test.each([
    ['type is a number', { items: [{ create: { _id: message(1).uid, status: 429, error: { type: 7, reason: 8 } } }] }, undefined],
    ['items are no list', { items: { length: 1 } }, 'the response has no results for a batch of 1'],
    ['an item is null', { items: [null] }, 'result 0 of the response (status missing) is for another document'],
    ['the answer is null', null, 'the response has no results for a batch of 1'],
  ])('a response of unexpected form gets our own message, which names the sink: %s', async (_what, body, words) => {
    const sink = await open();
    model.fault = (_method, path) => (path === '/_bulk' ? { status: 200, body } : undefined);
    const sent = send(sink, batchOf([message(1)]));
    if (words === undefined)
      expect((await sent).retryable).toMatchObject({ code: 'sink_unavailable', message: expect.stringMatching(/^sink "siem" .*429 no reason$/) as string }); // prettier-ignore
    else expect(await errorOf(sent)).toEqual({ code: 'sink_outcome_unknown', message: `sink "siem": ${words}` });
  });

  test('a redirection by another server names that server and the setting', async () => {
    const sink = await open();
    const headers = { location: 'http://other.example/', 'x-elastic-product': '' };
    model.fault = (_method, path) => (path === '/_bulk' ? { status: 302, headers } : undefined);
    expect((await send(sink, batchOf([message(1)]))).retryable).toMatchObject({
      code: 'sink_blocked',
      message: expect.stringMatching(/: another server than Elasticsearch responded 302; see sinks\.siem\.nodes$/) as string,
    });
  });

  test.each([
    ['a password', { username: 'elastic', password: canary }, `elastic:${canary}`],
    ['an API key, id and key', { apiKey: `id:${canary}` }, `id:${canary}`],
    ['an API key in its encoded form', { apiKey: Buffer.from(`id:${canary}`).toString('base64') }, `id:${canary}`],
  ])('a server that repeats our credentials is quoted without them: %s', async (_what, credentials, plainly) => {
    const encoded = Buffer.from(plainly).toString('base64');
    const reason = `denied for [ApiKey ${encoded}] [${encoded}] [${plainly}] [${canary}] [${Buffer.from(canary).toString('base64')}]`;
    const sink = await open(credentials);
    const shown: (string | undefined)[] = [];
    model.refuse = (text) => ({
      ...(text === textOf(1) ? { status: 400, type: 'document_parsing_exception' } : { status: 403, type: 'security_exception' }),
      reason,
    });
    const taken = await send(sink, batchOf(messages(1, 2)));
    shown.push(taken.rejections[0]?.message, taken.retryable?.message);
    model.fault = () => ({ status: 403, body: { error: { type: 'security_exception', reason } } });
    shown.push((await errorOf(send(sink, batchOf([message(1)])))).message);
    const denied = model.fault('', '', '');
    model.fault = (_method, path) => (path === '/_security/_authenticate' ? { status: 200, body: { username: canary } } : denied);
    shown.push(JSON.stringify(await elasticsearch.check(given(credentials), contextOf('siem'), never)));
    for (const words of shown) {
      expect(words).toContain('denied for [ApiKey [secret]]');
      for (const secret of [canary, encoded, Buffer.from(canary).toString('base64')]) expect(words).not.toContain(secret);
    }
  });

  test('a secret that equals a word of the protocol changes no result', async () => {
    const sink = await open({ username: 'elastic', password: 'exception' });
    model.refuse = () => ({ status: 400, type: 'document_parsing_exception', reason: 'an exception' });
    expect((await send(sink, batchOf([message(1)]))).rejections).toEqual([
      { seq: 1, code: 'document_parsing_exception', message: 'document_parsing_exception: an [secret]' },
    ]);
  });

  test('one send is one request: after a lost response the delivery loop retries', async () => {
    const sink = await open();
    await send(sink, batchOf([message(1)]));
    const before = requests('/_bulk');
    model.cutsAnswer = true;
    expect((await errorOf(send(sink, batchOf([message(2)])))).code).toBe('sink_outcome_unknown');
    model.fault = (_method, path) => (path === '/_bulk' ? { status: 503 } : undefined);
    expect((await errorOf(send(sink, batchOf([message(3)])))).code).toBe('sink_outcome_unknown');
    expect(requests('/_bulk') - before).toBe(2);
  });

  describe('a pipeline of the stream', () => {
    const seqOf = (text: string): number => (JSON.parse(text) as { seq: number }).seq;
    const event = (seq: number, uid = message(seq).uid): Message => message(seq, JSON.stringify({ seq, dpas: { uid } }));

    test('that drops a document: a dead letter, and the others are stored', async () => {
      const sink = await open();
      model.pipeline = (text) => (seqOf(text) === 2 ? 'drop' : undefined);
      expect(await send(sink, batchOf(messages(1, 3)))).toMatchObject({
        rejections: [{ seq: 2, code: 'dropped', message: expect.stringContaining(`a pipeline of "${stream}" dropped it`) as string }],
        retryable: undefined,
      });
      expect(model.texts(stream)).toEqual(texts([message(1), message(3)]));
    });

    test('that drops on purpose (dropped: count): counted as delivered', async () => {
      const sink = await open({ dropped: 'count' });
      model.pipeline = () => 'drop';
      expect(await send(sink, batchOf(messages(1, 3)))).toMatchObject({ rejections: [], dropped: 3, retryable: undefined });
    });

    test.each([
      [400, 'illegal_argument_exception', 'field [ip] not present as part of path [source.ip]'],
      [500, 'fail_processor', 'no address'],
      [404, 'index_not_found_exception', 'no such index [rerouted] and [action.auto_create_index] is [false]'],
      [403, 'security_exception', 'action [indices:data/write/bulk[s]] is unauthorized for API key id [a] on indices [rerouted]'],
    ])(
      'that fails for one document with %i: that one is a suspect, because the stream stores a later one',
      async (status, type, reason) => {
        const sink = await open();
        model.refuse = (text) => ([2, 6].includes(seqOf(text)) ? { status, type, reason } : undefined);
        const { rejections, retryable } = await send(sink, batchOf(messages(1, 3)));
        expect(rejections).toEqual([]);
        expect(retryable).toMatchObject({
          ...{ code: 'sink_unavailable', seqs: [2], suspects: [2] },
          reasons: [{ seq: 2, code: type, message: `${type}: ${reason}` }],
        });
        expect(retryable?.message).toMatch(/a pipeline of .*index\.default_pipeline and index\.final_pipeline/);
        expect(retryable?.message).not.toMatch(/nodes|apiKey|waybill setup/);
        const last = await send(sink, batchOf(messages(5, 6)));
        expect(last.retryable).toMatchObject({ suspects: [], reasons: [{ seq: 6 }] });
      },
    );

    test('that fails for a stream says nothing of the documents of another stream', async () => {
      const sink = await open({ namespace: '{source}' });
      const [one, other] = [message(1), { ...message(2), source: 'other' }];
      model.refuse = (text) => (seqOf(text) === 1 ? { status: 400, type: 'illegal_argument_exception', reason: 'no field' } : undefined);
      expect((await send(sink, batchOf([one, other]))).retryable).toMatchObject({ code: 'sink_blocked', seqs: [1], suspects: [] });
    });

    test('that sets the _id: stored is stored, and a second send creates nothing', async () => {
      const sink = await open();
      model.pipeline = (text) => ({ id: `hash-${seqOf(text)}` });
      const all = [event(1), event(2)];
      expect(await send(sink, batchOf(all))).toMatchObject({ rejections: [], retryable: undefined });
      expect(await send(sink, batchOf(all, true))).toMatchObject({ rejections: [], duplicates: 2 });
      expect(model.texts(stream)).toEqual(texts(all));
    });

    test('that gives two events the same _id: the second is not stored, and becomes a dead letter', async () => {
      const sink = await open();
      model.pipeline = () => ({ id: 'same' });
      expect(await send(sink, batchOf([event(1), event(2)]))).toMatchObject({ rejections: [{ seq: 2, code: 'id_taken' }], duplicates: 0 });
    });
  });

  test('a limit of the index is no fault of a document: it is retried, and a suspect only while later ones are stored', async () => {
    const sink = await open();
    const reason = '[1:71] failed to parse: Limit of total fields [1000] has been exceeded while adding new fields [7]';
    model.refuse = (text) =>
      (JSON.parse(text) as { seq: number }).seq === 2 ? { status: 400, type: 'document_parsing_exception', reason } : undefined;
    const { rejections, retryable } = await send(sink, batchOf(messages(1, 3)));
    expect(rejections).toEqual([]);
    expect(retryable).toMatchObject({ code: 'sink_unavailable', seqs: [2], suspects: [2] });
    expect((await send(sink, batchOf([message(2)]))).retryable).toMatchObject({ code: 'sink_blocked', suspects: [] });
    expect(retryable?.message).toMatch(/Limit of total fields \[1000\].*raise index\.mapping\.total_fields\.limit/);
  });

  describe('an uncertain batch is resolved by a search', () => {
    test('after a rollover only missing documents are created', async () => {
      const sink = await open();
      await send(sink, batchOf(messages(1, 300)));
      model.rollover(stream);
      expect(await send(sink, batchOf(messages(101, 500), true))).toMatchObject({ duplicates: 200, rejections: [] });
      expect(await send(sink, batchOf(messages(1, 500), true))).toMatchObject({ duplicates: 500 });
      expect(model.texts(stream)).toEqual(texts(messages(1, 500)));
    });

    test('a batch that is not uncertain needs no search', async () => {
      const sink = await open();
      for (let i = 0; i < 5; i += 1) await send(sink, batchOf([message(i + 1)]));
      // One refresh at the first write to the stream, which does not exist yet.
      expect([requests('_search'), requests('_refresh')]).toEqual([0, 1]);
    });

    test('a partial search result is not trusted', async () => {
      const sink = await open();
      await send(sink, batchOf(messages(1, 3)));
      model.rollover(stream);
      model.hasDeafShard = true;
      expect((await errorOf(send(sink, batchOf(messages(1, 3), true)))).code).toBe('sink_unavailable');
      model.hasDeafShard = false;
      await send(sink, batchOf(messages(1, 3), true));
      expect(model.texts(stream)).toHaveLength(3);
    });

    test('a search cut short by a timeout or a failed shard is not trusted', async () => {
      const sink = await open();
      await send(sink, batchOf(messages(1, 3)));
      for (const part of [{ timed_out: true, _shards: { failed: 0 } }, { timed_out: false, _shards: { failed: 1 } }, {}]) {
        const hits = { total: { value: 0 }, hits: [] };
        model.fault = (_method, path) => (path.endsWith('_search') ? { status: 200, body: { ...part, hits } } : undefined);
        expect((await errorOf(send(sink, batchOf(messages(1, 3), true)))).code).toBe('sink_unavailable');
      }
      expect(model.texts(stream)).toHaveLength(3);
    });

    test('without the privilege to read, the batch is created again', async () => {
      await send(await open(), batchOf(messages(1, 3)));
      kept = new ModelKept();
      model.rights.delete('read');
      const sink = await open();
      expect(await send(sink, batchOf(messages(1, 3), true))).toMatchObject({ duplicates: 3 });
      expect(kept.resumeNote).toBeUndefined();
      model.rollover(stream);
      await send(sink, batchOf(messages(1, 3), true));
      expect(model.texts(stream)).toHaveLength(6);
    });

    test('duplicates of another writer hide no other record', async () => {
      const there = new Map(Array.from({ length: 40 }, (_, i) => [String(i), i < 20 ? 3 : 1]));
      let searches = 0;
      const found = await present([...there.keys(), 'absent'], async (uids) => {
        searches += 1;
        const hits = uids.flatMap((uid) => Array.from({ length: there.get(uid) ?? 0 }, () => uid));
        return { total: hits.length, uids: hits.slice(0, 25) };
      });
      expect([...(found ?? [])].sort()).toEqual([...there.keys()].sort());
      expect(searches).toBeGreaterThan(1);
    });
  });

  describe('after a lost state, the sink', () => {
    const records = messages(1, 60);

    test('starts again and sends no duplicate, despite rollovers', async () => {
      const before = await open();
      for (let i = 0; i < 60; i += 20) {
        await send(before, batchOf(records.slice(i, i + 20)));
        model.rollover(stream);
      }
      kept = new ModelKept('b'.repeat(32));
      const after = await open();
      // History and new records alternate; new records need no search.
      await send(after, batchOf(records.slice(40)));
      expect(JSON.parse(kept.resumeNote ?? '')).toEqual({ resolveUntil: { [stream]: Math.floor((records.at(-1)?.time ?? 0) / 1000) } });
      const newer = messages(100_061, 100_070);
      const searches = requests('_search');
      await send(after, batchOf(newer));
      expect(requests('_search')).toBe(searches);
      await send(after, batchOf(records.slice(0, 40)));
      expect(model.texts(stream)).toEqual(texts([...records, ...newer]));
    });

    test('searches for a record without a readable time, however late it was received', async () => {
      const before = await open();
      await send(before, batchOf(records));
      model.rollover(stream);
      kept = new ModelKept('b'.repeat(32));
      const undated = { ...records[0], time: Date.UTC(2027, 0, 1) * 1000, undated: true } as Message;
      await send(await open(), batchOf([undated]));
      expect(model.texts(stream)).toHaveLength(60);
    });

    test('stores in its resume note how far it has searched, and does not search again', async () => {
      await send(await open(), batchOf(records));
      const { resumeNote: note } = kept;
      expect(note).toBe(JSON.stringify({ resolveUntil: { [stream]: null } }));
      const searches = requests('_search');
      await send(await open(), batchOf(messages(61, 70)));
      expect([kept.resumeNote, requests('_search')]).toEqual([note, searches]);
    });
  });

  test('the stream of each source has its own search mark', async () => {
    const sink = await open({ namespace: 'x_{source}' });
    await send(sink, batchOf([message(1), { ...message(2), source: 'north-1' }]));
    expect([...model.targets.keys()]).toEqual(['logs-dpas.audit-x_records', 'logs-dpas.audit-x_north_1']);
    expect(Object.keys((JSON.parse(kept.resumeNote ?? '') as { resolveUntil: object }).resolveUntil)).toHaveLength(2);
    expect(dataStreamOf(given({ namespace: 'x_{source}' }), 'north-1')).toEqual({ dataset: 'dpas.audit', namespace: 'x_north_1' });
  });

  test('ledger entries go to a separate data stream with its own search mark, and are searched if the stream had any before', async () => {
    const entry: Message = { ...message(1), number: undefined, undated: true, isLedger: true };
    const [sink, ledger] = [await open(), 'logs-dpas.ledger-default'];
    await send(sink, batchOf([entry, message(2)]));
    expect([...model.targets].map(([name, { indices }]) => [name, indices[0]?.docs.size])).toEqual([
      [ledger, 1],
      [stream, 1],
    ]);
    expect(JSON.parse(kept.resumeNote ?? '')).toEqual({ resolveUntil: { [ledger]: null, [stream]: null } });
    // After a lost state the same entry has another time, which is irrelevant.
    kept.resumeNote = undefined;
    const later = await open();
    expect(await send(later, batchOf([{ ...entry, time: entry.time + 1e12 }]))).toMatchObject({ duplicates: 1 });
  });

  test('a time-based index follows the time of the event, not today', async () => {
    const sink = await open({ index: 'audit-{source}-{yyyy.MM}' });
    const old = { ...message(1), time: Date.UTC(2024, 1, 29, 23, 59) * 1000 };
    const next = { ...message(2), time: Date.UTC(2024, 2, 1) * 1000 };
    await send(sink, batchOf([old, next]));
    expect(await send(sink, batchOf([old, next], true))).toMatchObject({ duplicates: 2 });
    expect([...model.targets].map(([name, { indices }]) => [name, indices[0]?.docs.size])).toEqual([
      ['audit-records-2024.02', 1],
      ['audit-records-2024.03', 1],
    ]);
    expect(requests('_search')).toBe(0);
  });

  test('a document in the failure store of a stream is a rejection, with its reason if it can be read', async () => {
    const sink = await open();
    model.hasFailureStore = true;
    model.refuse = (text) => (text === textOf(2) ? { status: 400, type: 'document_parsing_exception', reason: 'no date' } : undefined);
    expect((await send(sink, batchOf(messages(1, 3)))).rejections).toEqual([
      { seq: 2, code: 'failure_store', message: expect.stringMatching(/failure store.*document_parsing_exception: no date/) as string },
    ]);
    model.rights.delete('read');
    expect((await send(sink, batchOf([message(2)]))).rejections).toEqual([
      { seq: 2, code: 'failure_store', message: 'stored in the failure store of the data stream' },
    ]);
  });

  describe('the connection to the server', () => {
    test('an unreachable node is skipped, and nothing is sent twice', async () => {
      const other = await new ModelElasticsearch().listen();
      const { port } = other;
      await other[Symbol.asyncDispose]();
      const sink = await open({ nodes: [`http://127.0.0.1:${port}`, `http://127.0.0.1:${model.port}`] });
      for (let i = 1; i <= 10; i += 1)
        expect(await send(sink, batchOf([message(i)]))).toMatchObject({ duplicates: 0, retryable: undefined });
      expect(model.texts(stream)).toEqual(texts(messages(1, 10)));
      await model[Symbol.asyncDispose]();
      const { code, message: words } = await errorOf(send(sink, batchOf([message(11)])));
      expect(code).toBe('sink_unavailable');
      expect(words).toMatch(/^sink "siem": cannot reach "http:\/\/127\.0\.0\.1:\d+": .*ECONNREFUSED/);
    });

    test('an invalid key blocks the sink, and a new one takes effect at once', async () => {
      model.authorization = 'ApiKey b2xkOmtleQ==';
      const settings = given({ apiKey: 'old:key' });
      let value = 'old:key';
      const apiKey = { read: () => value, refresh: () => (value = 'new:key') } as unknown as typeof settings.apiKey;
      const sink = await elasticsearch.open({ ...settings, apiKey }, contextOf('siem'), kept, never);
      opened.push(sink);
      await send(sink, batchOf([message(1)]));
      model.authorization = 'ApiKey bmV3OmtleQ==';
      await send(sink, batchOf([message(2)]));
      model.authorization = 'ApiKey bmV2ZXI6a2V5';
      const { code, message: words } = await errorOf(send(sink, batchOf([message(3)])));
      expect(code).toBe('sink_blocked');
      expect(words).toMatch(/401 security_exception: unable to authenticate.*sinks\.siem\.apiKey/);
      expect(words).not.toMatch(/key\b.*(old|new):|bmV/);
      expect((await errorOf(open({ username: 'elastic', password: 'wrong' }))).message).toMatch(/sinks\.siem\.password/);
    });

    test('works through a proxy, with a custom CA', async () => {
      const secure = await new ModelElasticsearch(served).listen();
      await using proxy = await startProxy({ names: { 'es.test:9200': secure.port }, user: 'u', password: 'p' });
      const url = { read: () => `http://u:p@127.0.0.1:${proxy.port}`, refresh: () => undefined, describe: () => 'proxy' };
      const nodes = 'https://es.test:9200';
      const sink = await open({ nodes }, { ca: pem(authority.cert), proxy: { url } });
      await send(sink, batchOf(messages(1, 3)));
      expect(secure.texts(stream)).toHaveLength(3);
      expect(proxy.asked).toEqual(['es.test:9200']);
      const wrong = { ...url, read: () => `http://u:no@127.0.0.1:${proxy.port}` };
      const refused = await errorOf(open({ nodes }, { ca: pem(authority.cert), proxy: { url: wrong } }));
      expect(refused.code).toBe('sink_blocked');
      expect(refused.message).toMatch(/^sink "siem": cannot reach "es\.test:9200" through the proxy/);
      const own = { url: `http://u:p@127.0.0.1:${proxy.port}`, noProxy: [] };
      await send(await open({ nodes, proxy: own }, { ca: pem(authority.cert), proxy: { url: wrong } }), batchOf([message(4)]));
      expect(secure.texts(stream)).toHaveLength(4);
      const direct = await errorOf(open({ nodes, proxy: 'none' }, { ca: pem(authority.cert), proxy: { url } }));
      expect(direct).toEqual({
        code: 'sink_unavailable',
        message: expect.stringMatching(/^sink "siem": cannot reach "https:\/\/es\.test:9200": .*es\.test/) as string,
      });
      await secure[Symbol.asyncDispose]();
    });

    test('an untrusted or expired certificate, or a server without TLS, blocks and names the setting', async () => {
      const expired = await authority.issue({ name: 'es', hosts: ['127.0.0.1'], notAfter: new Date(Date.now() - 1_000) });
      await using trusted = await new ModelElasticsearch(served).listen();
      await using old = await new ModelElasticsearch(expired).listen();
      const at = (port: number) => ({ nodes: `https://127.0.0.1:${port}` });
      const ca = pem(authority.cert);
      for (const [opening, words] of [
        [
          () => open(at(trusted.port)),
          /sink "siem": sinks\.siem\.tls\.ca: certificate of 127\.0\.0\.1 issued by 'Example root' is not trusted/,
        ],
        [() => open(at(old.port), { ca }), /sinks\.siem\.tls\.ca: .*has expired/],
        [() => open(at(model.port), { ca }), /^sink "siem": cannot reach "[^"]+": the port does not speak TLS$/],
        [() => open({ nodes: `http://127.0.0.1:${trusted.port}` }), /sinks\.siem\.nodes begins with http: perhaps the port speaks TLS/],
      ] as const) {
        const thrown = await errorOf(opening());
        expect(thrown.message).toMatch(words);
        expect(thrown.code).toBe('sink_blocked');
      }
    });

    test('a server of another kind is refused with a clear message', async () => {
      model.fault = () => ({ status: 406, body: { error: 'Content-Type header is not supported' } });
      expect(await errorOf(open())).toEqual({
        code: 'sink_blocked',
        message: 'sink "siem": the server at sinks.siem.nodes is not Elasticsearch 8 or later; this sink does not support OpenSearch',
      });
      const other = { 'x-elastic-product': 'Something' };
      model.fault = () => ({ status: 200, body: {}, headers: other });
      expect((await errorOf(open())).message).toMatch(/does not identify itself as Elasticsearch/);
      // OpenSearch 3.8 has no such path, and names no product.
      model.fault = () => ({ status: 400, body: { error: 'no handler found for uri [/_security/_authenticate]' }, headers: other });
      expect((await errorOf(open())).message).toMatch(/not Elasticsearch 8 or later/);
    });

    test('a cloud id gives the address', () => {
      // As in Elastic's documentation: name, then domain, Elasticsearch and Kibana, in base64.
      const cloudId = `audit:${Buffer.from('eu-west-1.aws.found.io$4fa8821e75634032bed1cf221110e2f9$4fa8821e75634032bed1cf221110e2fa').toString('base64')}`;
      expect(nodesOf(elasticsearchSettings.parse({ cloudId }))).toEqual([
        'https://4fa8821e75634032bed1cf221110e2f9.eu-west-1.aws.found.io:443',
      ]);
    });
  });

  test('a server that accepts the connection and never answers is reported within ten seconds, with the setting', async () => {
    model.isStalled = true;
    const asked: number[] = [];
    const passed = (): number => asked.reduce((sum, ms) => sum + ms, 0);
    const clock = { ...systemClock, monotonic: passed, sleep: async (ms: number) => void asked.push(ms) };
    expect(await errorOf(open({}, { clock }))).toEqual({
      code: 'sink_unavailable',
      message: 'sink "siem": the server at sinks.siem.nodes accepted the connection and did not respond within 10 s',
    });
    expect(asked).toEqual([10_000]);
  });

  describe('check', () => {
    const lines = async (overrides: Given = {}) =>
      (await elasticsearch.check(given({ templates: 'check', ...overrides }), contextOf('siem'), never)).map(
        ({ level, message: words, setting }) => `${level}: ${words}${setting === undefined ? '' : ` [${setting}]`}`,
      );

    test('reports the user, the server and the privileges', async () => {
      model.authorization = `ApiKey ${canary}`;
      expect(await lines({ apiKey: canary })).toEqual([
        'ok: authenticated with the API key "siem"',
        'ok: the server is Elasticsearch 9.5.3',
        `ok: privileges on "${stream}": create_doc, auto_configure, read, maintenance, view_index_metadata`,
        `ok: "${stream}" has the mapping of waybill setup elasticsearch`,
      ]);
      expect(requests('/_bulk')).toBe(0);
    });

    test('names each setting that weakens the guarantee', async () => {
      await send(await open(), batchOf([message(1)]));
      model.authorization = `ApiKey ${canary}`;
      model.version = '7.17.0';
      model.rights = new Set(['auto_configure', 'maintenance', 'view_index_metadata']);
      model.meta = undefined;
      model.hasFailureStore = true;
      model.settings = { translog: { durability: 'async' }, blocks: { write: 'true' } };
      expect(await lines({ apiKey: canary })).toEqual([
        'ok: authenticated with the API key "siem"',
        'error: the server is Elasticsearch 7.17.0; supported are versions 8 and 9 [sinks.siem.nodes]',
        `ok: privileges on "${stream}": auto_configure, maintenance, view_index_metadata`,
        `error: the privilege create_doc on "${stream}" is missing: nothing can be written [sinks.siem.apiKey]`,
        `warning: the privilege read on "${stream}" is missing: an unknown outcome cannot be resolved: one batch may be stored twice around a rollover [sinks.siem.apiKey]`,
        `warning: "${stream}" does not have the mapping of Waybill: run waybill setup elasticsearch --sink siem, and roll over an existing data stream [sinks.siem.templates]`,
        `warning: index.translog.durability is async on "${stream}": a killed server loses the last seconds of acknowledged records [sinks.siem.namespace]`,
        `error: ".ds-${stream}-2026.11.21-000001" has a write block (index.blocks) [sinks.siem.namespace]`,
        `warning: "${stream}" has a failure store: the server stores rejected documents there; they become dead letters too [sinks.siem.templates]`,
      ]);
    });

    // The answers of 9.5.3 to `POST /_ingest/_simulate`.
    test.each([
      [
        'drops it',
        { _id: 'waybill-check', result: 'noop' },
        /^warning: the pipelines of ".*" \(audit\) drop a sample record.*siem\.dropped/,
      ],
      [
        ...['fails', { _id: 'waybill-check', error: { type: 'illegal_argument_exception', reason: 'field [geo] not present' } }],
        /^warning: .*refuse a sample record \(illegal_argument_exception: field \[geo\] not present\)/,
      ],
      ['removes the _id', { _id: '<n/a>', error: { type: 'document_parsing_exception' } }, /^warning: .*set or remove the _id/],
      ['reroutes', { _id: 'waybill-check', _index: 'logs-other-default' }, /^warning: .*reroute a sample record to "logs-other-default"/],
      [
        ...[
          'is missing',
          { _id: 'waybill-check', error: { type: 'illegal_argument_exception', reason: 'pipeline with id [p] does not exist' } },
        ],
        /^error: .*pipeline with id \[p\] does not exist/,
      ],
      ['keeps it', { _id: 'waybill-check', _index: stream, executed_pipelines: ['audit'] }, /^ok: the pipelines of ".*" \(audit\) keep/],
    ] as const)('tries the pipelines of the stream with a sample record, which is not stored: one %s', async (_what, doc, words) => {
      await send(await open(), batchOf([message(1)]));
      model.settings = { default_pipeline: 'audit' };
      model.simulated = { status: 200, body: { docs: [{ doc }] } };
      expect((await lines()).filter((line) => /pipeline/.test(line))).toEqual([expect.stringMatching(words)]);
      expect(model.texts(stream)).toHaveLength(1);
    });

    test('names pipelines that the key cannot try, a reached limit of fields, and a short retention', async () => {
      await send(await open(), batchOf([message(1)]));
      model.settings = { final_pipeline: 'audit', mapping: { total_fields: { limit: '4' } } };
      model.properties = {
        event: { properties: { action: { type: 'keyword', fields: { text: { type: 'text' } } }, code: { type: 'keyword' } } },
      };
      model.lifecycle = { lifecycle: { data_retention: '3d' } };
      const found = (await lines()).filter((line) => /pipelines|fields|retention/.test(line));
      expect(found).toEqual([
        expect.stringMatching(/^warning: ".*" maps 4 of 4 fields \(index\.mapping\.total_fields\.limit\)/),
        expect.stringMatching(/^warning: the pipelines of ".*" \(audit\) are not tried: the key lacks the privilege read_pipeline/),
        expect.stringMatching(/^warning: ".*" deletes documents after 3d/),
      ]);
    });

    test('names fields that the newest index maps as another type, and the consequence', async () => {
      await send(await open(), batchOf([message(1)]));
      const text = { type: 'match_only_text' };
      const fits = { event: { properties: { action: text, severity: { type: 'integer' } } }, '@timestamp': { type: 'date_nanos' } };
      model.properties = fits;
      expect(await lines()).toContain(`ok: "${stream}" has the mapping of waybill setup elasticsearch`);
      model.properties = { ...fits, source: { properties: { mac: { type: 'ip' } } }, host: { type: 'long' } };
      expect((await lines()).filter((line) => line.startsWith('error'))).toEqual([
        expect.stringMatching(
          /^error: "\.ds-.*" maps fields differently: .*source\.mac is ip, not keyword.*: records whose values do not fit that type become dead letters; .* \[sinks\.siem\.templates\]$/,
        ),
      ]);
      expect((await lines()).join('\n')).toContain('host is long, not keyword');
      model.properties = { source: { properties: { ip: { type: 'keyword' } } } };
      expect(await lines()).toContainEqual(expect.stringMatching(/^warning: .*source\.ip is keyword, not ip: searches and dashboards/));
    });

    test('a sink that finds another mapping than that of Waybill logs it, and sends', async () => {
      await send(await open(), batchOf([message(1)]));
      model.meta = undefined;
      const logged: unknown[] = [];
      const sink = await open({ templates: 'check' }, { log: { write: (...line) => void logged.push(line) } });
      expect(logged).toEqual([['sink.template_missing', { sink: 'siem', target: stream }]]);
      expect((await send(sink, batchOf([message(2)]))).rejections).toEqual([]);
    });

    test('does not warn about a stream that does not exist yet, with a key that cannot read templates', async () => {
      model.seesTemplates = false;
      expect(await lines()).toContain(`ok: "${stream}" does not exist yet; the first record creates it; the key cannot read its templates`);
    });

    test('reports that a name is an alias, which may be rolled over, and the consequence', async () => {
      const ofAlias = async (index: string): Promise<string[]> => (await lines({ index })).filter((line) => line.includes('alias'));
      model.aliases = { 'dpas-audit': ['dpas-audit-000001', 'dpas-audit-000002'] };
      expect(await ofAlias('dpas-audit')).toEqual([
        expect.stringMatching(
          /^warning: "dpas-audit" is an alias, of dpas-audit-000001, dpas-audit-000002: after a rollover, .* is stored twice; .* \[sinks\.siem\.index\]$/,
        ),
      ]);
      expect(await ofAlias('dpas-audit-{yyyy.MM}')).toEqual([]);
    });

    test('reports one line for a server that responds to every request with null', async () => {
      model.fault = (_method, path) => (path.startsWith('/_security/_auth') ? { status: 200, body: {} } : { status: 200, body: null });
      const found = await lines();
      expect(found).toContain('ok: cannot read the version of the server: the key lacks the privilege monitor; the sink does not need it');
      model.fault = (_method, path) =>
        path.startsWith('/_security/_auth') ? { status: 200, body: {} } : { status: 200, body: { x: null } };
      expect((await lines()).at(-1)).toMatch(
        /^error: sink "siem": cannot parse the response of sinks\.siem\.nodes: .* \[sinks\.siem\.nodes\]$/,
      );
    });

    test('reports disabled security, and an unreachable server', async () => {
      expect((await lines())[0]).toBe('warning: the server does not authenticate clients: its security is off [sinks.siem.apiKey]');
      await model[Symbol.asyncDispose]();
      expect(await lines()).toEqual([expect.stringMatching(/^error: sink "siem": cannot reach .*ECONNREFUSED.*\[sinks\.siem\.nodes\]$/)]);
    });
  });
});
