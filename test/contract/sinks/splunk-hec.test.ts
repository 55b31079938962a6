/**
 * The sink `splunk-hec`: the contract of every sink, and the specifics of Splunk's HTTP Event
 * Collector: tokens, channels, acknowledgements returned only once, full queues, requests accepted
 * in part. The collector is a model.
 */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { Delivery } from '../../../src/deliver/delivery.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import type { Batch, ResumePoint, Sink } from '../../../src/model/sink.ts';
import type { Meters } from '../../../src/model/telemetry.ts';
import type { Clock } from '../../../src/model/time.ts';
import type { Format } from '../../../src/encode/index.ts';
import type { SinkContext } from '../../../src/sink/define.ts';
import { splunkHec } from '../../../src/sink/splunk-hec/index.ts';
import { createAuthority } from '../../support/certificates.ts';
import type { Authority, KeyPair } from '../../support/certificates.ts';
import { append, openJournal, temporary } from '../../support/model-journal.ts';
import { startProxy } from '../../support/proxy.ts';
import { HecModel } from '../../support/splunk-hec-model.ts';
import type { HecToken } from '../../support/splunk-hec-model.ts';
import { plain } from '../../support/deliver/rig.ts';
import { batchOf, contextOf, message, messages, ModelKept } from '../../support/sinks/sink-batches.ts';
import { sinkSuite } from '../../support/sinks/sink-suite.ts';
import type { Place } from '../../support/sinks/sink-suite.ts';

const never = new AbortController().signal;
const tokenText = 'b0221cd8-c4b4-465a-9a3c-273e3a75aa29';

type Settings = Parameters<typeof splunkHec.open>[0];

const secret = (text: string) => ({ read: () => text, refresh: () => undefined, describe: () => 'a setting (of the test)' });

function settingsOf(url: string, overrides: Readonly<Record<string, unknown>> = {}): Settings {
  const { token, ...rest } = splunkHec.config.parse({ url, token: tokenText, host: 'gateway-1', ...overrides });
  return { ...rest, token: Object.assign(token, secret(tokenText)) };
}

/**
 * Real time for the timeouts of requests and batches; every other sleep ends at once and advances
 * the clock.
 */
class QuickClock implements Clock {
  readonly sleeps: number[] = [];
  #ahead = 0;
  now = (): number => systemClock.now() + this.#ahead;
  monotonic = (): number => systemClock.monotonic() + this.#ahead;
  sleep = async (ms: number, signal: AbortSignal): Promise<void> => {
    if (ms >= 30_000) return systemClock.sleep(ms, signal);
    this.sleeps.push(ms);
    this.#ahead += ms;
    await systemClock.sleep(0, signal);
  };
}

let authority: Authority;
let served: KeyPair;
beforeAll(async () => {
  authority = await createAuthority('Example root');
  served = await authority.issue({ name: 'splunk', hosts: ['127.0.0.1', 'splunk.test'] });
});
const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });

class HecPlace implements Place {
  readonly #model: HecModel;
  readonly #settings: Readonly<Record<string, unknown>>;
  readonly #context: Partial<SinkContext>;
  readonly #opened: Sink[] = [];
  readonly refuse?: (seq: number, words: string) => undefined;

  constructor(model: HecModel, settings: Readonly<Record<string, unknown>>, context: Partial<SinkContext>) {
    this.#model = model;
    this.#settings = settings;
    this.#context = context;
    // The collector parses no lines, so it rejects none.
    if (context.format === 'cef') return;
    this.refuse = (seq, words) => {
      model.refuses = (event) => ((event as { seq?: number }).seq === seq ? words : undefined);
    };
  }

  readonly open = async (kept: ResumePoint): Promise<Sink> => {
    const scheme = this.#context.ca ? 'https' : 'http';
    const settings = settingsOf(`${scheme}://127.0.0.1:${this.#model.port}`, this.#settings);
    const sink = await splunkHec.open(settings, contextOf('under-test', { clock: new QuickClock(), ...this.#context }), kept, never);
    this.#opened.push(sink);
    return sink;
  };

  async kill(): Promise<void> {
    for (const sink of this.#opened.splice(0)) await sink[Symbol.asyncDispose]();
  }

  async received(): Promise<readonly string[]> {
    return this.#model.events.map(({ text }) => text);
  }

  intercept(seq: number, status: number): void {
    this.#model.firewall = (text) => (new RegExp(`seq\\\\?":${seq},`).test(text) ? status : undefined);
  }

  cutAnswer(): void {
    this.#model.next.push('cut');
  }

  busy(retryAfterMs: number): void {
    this.#model.next.push({ code: 26, headers: { 'retry-after': String(retryAfterMs / 1000) } });
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

async function started(token: Partial<HecToken> = {}, tls?: KeyPair): Promise<HecModel> {
  const model = new HecModel(tls);
  model.tokens.set(tokenText, { indexes: ['main'], ...token });
  return model.listen();
}

const shared = { twice: (size: number) => size, secrets: [tokenText, Buffer.from(tokenText).toString('base64')], batches: 40 };
sinkSuite({
  ...{ ...shared, name: 'splunk-hec, events', formats: ['ecs', 'ocsf', 'raw'] },
  start: async () => new HecPlace(await started(), {}, {}),
});
sinkSuite({
  // Events indexed before a rejected one have no acknowledgement, and are sent again.
  ...{ ...shared, name: 'splunk-hec, events with acknowledgement over TLS', formats: ['ecs'], keptOfRefused: 3, isVariant: true },
  start: async () =>
    new HecPlace(await started({ acknowledges: true }, served), { indexerAcknowledgement: true }, { ca: pem(authority.cert) }),
});
sinkSuite({
  ...{ ...shared, name: 'splunk-hec, lines', formats: ['cef', 'leef'], isVariant: true },
  start: async () => new HecPlace(await started(), {}, { format: 'cef' }),
});

interface Rig {
  readonly token?: Partial<HecToken>;
  readonly settings?: Readonly<Record<string, unknown>>;
  readonly format?: Format;
}

/** A collector and a connected sink. */
async function rigOf({ token, settings, format = 'ecs' }: Rig = {}) {
  const model = await started(token);
  const clock = new QuickClock();
  const stack = new AsyncDisposableStack();
  stack.use(model);
  const open = async (overrides: Readonly<Record<string, unknown>> = {}): Promise<Sink> => {
    const given = settingsOf(`http://127.0.0.1:${model.port}`, { ...settings, ...overrides });
    return stack.use(await splunkHec.open(given, contextOf('siem', { clock, format }), new ModelKept(), never));
  };
  return { model, clock, open, [Symbol.asyncDispose]: () => stack.disposeAsync() };
}

const seqsOf = (batch: Batch): number[] => batch.messages.map(({ seq }) => seq);
/** Messages of half a megabyte: one per request. */
const large = (seq: number) => message(seq, JSON.stringify({ seq, pad: 'x'.repeat(600_000) }));

describe('requests', () => {
  test('events have their metadata, and the uid and number as indexed fields; requests are compressed', async () => {
    await using rig = await rigOf({ settings: { source: 'waybill:{source}', index: 'dpas' }, token: { indexes: ['main', 'dpas'] } });
    const sink = await rig.open();
    const sent = messages(1, 200);
    await sink.send(batchOf(sent), never);
    expect(rig.model.events[6]).toEqual({
      index: 'dpas', host: 'gateway-1', source: 'waybill:records', sourcetype: 'dpas:audit',
      time: (sent[6]?.time ?? 0) / 1e6, fields: { id: sent[6]?.uid, number: 7 }, text: Buffer.from(sent[6]?.bytes ?? []).toString(),
    }); // prettier-ignore
    const [request] = rig.model.requests;
    expect(request?.sent).toBeLessThan((request?.bytes ?? 0) / 3);
    // Without acknowledgement a channel would collect ids that no client queries.
    expect(request?.channel).toBeUndefined();
  });

  test('a line is an event with its time, its metadata and its indexed fields', async () => {
    await using rig = await rigOf({ format: 'cef', settings: { sourcetype: 'dpas:cef' } });
    const sent = [message(1, 'CEF:0|a'), message(2, 'CEF:0|b')];
    await (await rig.open()).send(batchOf(sent), never);
    expect(rig.model.events).toMatchObject(
      sent.map(({ uid, number, time, bytes }) => ({
        ...{ index: 'main', host: 'gateway-1', source: 'waybill', sourcetype: 'dpas:cef', text: Buffer.from(bytes).toString() },
        ...{ time: time / 1e6, fields: { id: uid, number } },
      })),
    );
    expect(rig.model.requests).toMatchObject([{ path: 'event', channel: undefined }]);
  });

  test('check warns when lines have the sourcetype that the app reads as JSON', async () => {
    await using rig = await rigOf();
    const found = async (sourcetype: string) =>
      splunkHec.check(settingsOf(`http://127.0.0.1:${rig.model.port}`, { sourcetype }), contextOf('siem', { format: 'cef' }), never);
    expect(await found('dpas:audit')).toContainEqual(expect.objectContaining({ level: 'warning', setting: 'sinks.siem.sourcetype' }));
    expect(await found('dpas:cef')).not.toContainEqual(expect.objectContaining({ setting: 'sinks.siem.sourcetype' }));
  });

  test('no request exceeds a million bytes, and a batch of several requests arrives in order', async () => {
    await using rig = await rigOf();
    await (await rig.open()).send(batchOf([1, 2, 3].map(large)), never);
    expect(rig.model.events.map(({ fields }) => fields['number'])).toEqual([1, 2, 3]);
    expect(rig.model.requests).toHaveLength(3);
  });
});

describe('responses', () => {
  test.each([8, 9, 23, 5, { status: 502, text: '<html>Bad gateway' }, { status: 200, text: 'welcome' }, 17])(
    'the outcome of %j is unknown',
    async (answer) => {
      await using rig = await rigOf();
      const sink = await rig.open();
      rig.model.next.push(answer);
      await expect(sink.send(batchOf(messages(1, 3)), never)).rejects.toMatchObject({ code: 'sink_outcome_unknown' });
    },
  );

  test('the delay that Splunk requests is reported, also if the outcome is unknown', async () => {
    await using rig = await rigOf();
    const sink = await rig.open();
    rig.model.next.push({ code: 9, headers: { 'retry-after': '5' } });
    const unknown = { code: 'sink_outcome_unknown', retryAfterMs: 5_000 };
    await expect(sink.send(batchOf([message(1)]), never)).rejects.toMatchObject(unknown);
  });

  test.each([1, 4, 10, 11, 14, 16])('%j needs an operator, and no event was accepted', async (answer) => {
    await using rig = await rigOf();
    const sink = await rig.open();
    rig.model.next.push(answer);
    const named = {
      code: 'sink_blocked',
      message: expect.stringMatching(/for sink "[\w-]+" \((a setting|sinks\.[\w-]+\.(indexerAcknowledgement|channel)\))/) as string,
    };
    await expect(sink.send(batchOf(messages(1, 3)), never)).rejects.toMatchObject(named);
    expect(rig.model.events).toEqual([]);
  });

  test('a token disabled while the sink is open is named, and used again once it is enabled', async () => {
    await using rig = await rigOf();
    const sink = await rig.open();
    rig.model.tokens.set(tokenText, { indexes: ['main'], isDisabled: true });
    await expect(sink.send(batchOf([message(1)]), never)).rejects.toThrow(
      /^cannot send one message to "http:\/\/127\.0\.0\.1:\d+" for sink "siem" \(a setting \(of the test\)\): 403 code 1 Token disabled$/,
    );
    rig.model.tokens.set(tokenText, { indexes: ['main'] });
    await sink.send(batchOf([message(1)]), never);
    expect(rig.model.events).toHaveLength(1);
  });

  test.each([
    [{ status: 403, text: '<html>Request blocked</html>' }, '403 <html>Request blocked</html>'],
    [{ status: 302, text: '' }, '302'],
    [{ status: 404, text: 'nobody here' }, '404 nobody here'],
  ])('an answer of another server than Splunk names that server, not the token: %j', async (answer, words) => {
    await using rig = await rigOf();
    const sink = await rig.open();
    rig.model.next.push(answer);
    const { retryable } = await sink.send(batchOf([message(1)]), never);
    const text = expect.stringMatching(/: another server than Splunk answered .*; see sinks\.siem\.url$/) as string;
    expect(retryable).toMatchObject({ code: 'sink_blocked', message: text, reasons: [{ seq: 1, code: String(answer.status) }] });
    expect(retryable?.message).toContain(words);
    expect(retryable?.message).not.toContain('a setting (of the test)');
  });

  test('a forbidden index rejects only its own events, and accepted events are not sent again', async () => {
    await using rig = await rigOf({ settings: { index: 'dpas_{source}' }, token: { indexes: ['main', 'dpas_records'] } });
    const sink = await rig.open();
    const batch = batchOf([message(1), message(2), { ...message(3), source: 'other' }, message(4)]);
    const { rejections, retryable: again } = await sink.send(batch, never);
    expect(rejections).toEqual([]);
    expect(again).toMatchObject({ code: 'sink_unavailable', seqs: [3, 4], isAtOnce: true });
    await expect(sink.send(batchOf(batch.messages.slice(2)), never)).rejects.toMatchObject({ code: 'sink_refused' });
    const alone = await sink.send(batchOf(batch.messages.slice(2, 3)), never);
    expect(alone.retryable).toMatchObject({
      code: 'sink_blocked',
      message: expect.stringContaining('(sinks.siem.index): 400 code 7') as string,
      reasons: [{ seq: 3, code: '7' }],
    });
    expect(await sink.send(batchOf(batch.messages.slice(3)), never)).toEqual({ rejections: [] });
    expect(rig.model.events.map(({ fields }) => fields['number'])).toEqual([1, 2, 4]);
  });

  test('a request that is too large is rejected as a whole, and no event is resolved', async () => {
    await using rig = await rigOf();
    const sink = await rig.open();
    rig.model.limit = 1_000;
    await expect(sink.send(batchOf(messages(1, 50)), never)).rejects.toMatchObject({ code: 'sink_refused' });
    await sink.send(batchOf(messages(1, 2)), never);
    expect(rig.model.events).toHaveLength(2);
  });

  test('after an accepted request, the failed next one is sent again alone', async () => {
    await using rig = await rigOf();
    const sink = await rig.open();
    const all = batchOf([1, 2, 3].map(large));
    rig.model.next.push(0, { code: 27, headers: { 'retry-after': '3' } });
    const { retryable: again } = await sink.send(all, never);
    expect(again).toMatchObject({ code: 'sink_unavailable', seqs: [2, 3], retryAfterMs: 3_000 });
    rig.model.limit = 1_000;
    // Rejected as a whole: as no event before it was accepted, the loop may halve the batch.
    await expect(sink.send(batchOf(all.messages.slice(1)), never)).rejects.toMatchObject({ code: 'sink_refused' });
    rig.model.limit = 1e9;
    await sink.send(batchOf(all.messages.slice(1)), never);
    expect(rig.model.events.map(({ fields }) => fields['number'])).toEqual([1, 2, 3]);
  });

  test('a response "nearly full" accepts the events, and the next request waits a second', async () => {
    await using rig = await rigOf();
    const sink = await rig.open();
    rig.model.next.push(24);
    await sink.send(batchOf([message(1)]), never);
    expect(rig.clock.sleeps).toEqual([]);
    await sink.send(batchOf([message(2)]), never);
    await sink.send(batchOf([message(3)]), never);
    expect(rig.clock.sleeps).toEqual([1_000]);
    expect(rig.model.events).toHaveLength(3);
  });

  test('an event is rejected by its number only if it was the first', async () => {
    await using rig = await rigOf();
    const sink = await rig.open();
    rig.model.refuses = (event) => ([3, 4].includes((event as { seq: number }).seq) ? 'Invalid data format' : undefined);
    const first = await sink.send(batchOf(messages(1, 6)), never);
    expect(first).toMatchObject({ rejections: [], retryable: { code: 'sink_unavailable', seqs: [3, 4, 5, 6], isAtOnce: true } });
    const second = await sink.send(batchOf(messages(3, 6)), never);
    expect(second).toMatchObject({ rejections: [{ seq: 3, code: '6' }], retryable: { seqs: [4, 5, 6], isAtOnce: true } });
    const third = await sink.send(batchOf(messages(4, 6)), never);
    expect(third).toMatchObject({ rejections: [{ seq: 4 }], retryable: { seqs: [5, 6], isAtOnce: true } });
    expect(await sink.send(batchOf(messages(5, 6)), never)).toEqual({ rejections: [] });
    expect(rig.model.events.map(({ fields }) => fields['number'])).toEqual([1, 2, 5, 6]);
  });
});

describe('acknowledgement', () => {
  const acknowledging: Rig = { token: { acknowledges: true }, settings: { indexerAcknowledgement: true } };

  test('a batch is accepted when all its requests are indexed; each is queried until it is true and not again', async () => {
    await using rig = await rigOf(acknowledging);
    const sink = await rig.open();
    rig.model.asksUntilIndexed = 2;
    await sink.send(batchOf([1, 2].map(large)), never);
    rig.model.asksUntilIndexed = 0;
    await sink.send(batchOf([large(3)]), never);
    // The first query, at the open, is for an acknowledgement that does not exist.
    expect(rig.model.asked.slice(1)).toEqual([[0, 1], [0, 1], [0, 1], [2]]); // prettier-ignore
    expect(new Set(rig.model.requests.map((request) => request.channel)).size).toBe(1);
  });

  test('requests indexed at different times are all awaited, though true is returned only once', async () => {
    await using rig = await rigOf(acknowledging);
    const sink = await rig.open();
    rig.model.asksUntilIndexed = 0;
    rig.model.next.push(0);
    const sending = sink.send(batchOf([1, 2].map(large)), never);
    // The second request is indexed three queries after the first.
    while (rig.model.requests.length < 1) await new Promise((resolve) => setImmediate(resolve));
    rig.model.asksUntilIndexed = 3;
    await sending;
    expect(rig.model.asked.slice(1)).toEqual([[0, 1], [1], [1], [1]]); // prettier-ignore
  });

  test('queries every second at first, then every ten; after five minutes the outcome is unknown', async () => {
    await using rig = await rigOf(acknowledging);
    const sink = await rig.open();
    rig.model.asksUntilIndexed = Infinity;
    await expect(sink.send(batchOf(messages(1, 3)), never)).rejects.toMatchObject({
      code: 'sink_outcome_unknown',
      message: 'cannot determine for sink "siem" whether one request is indexed: no acknowledgement within 5 min; not yet',
    });
    expect(rig.clock.sleeps.slice(0, 12)).toEqual([...Array<number>(10).fill(1_000), 10_000, 10_000]);
    expect(rig.clock.sleeps.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(300_000);
  });

  test('a receiver restarted between acceptance and acknowledgement never returns true: the batch is sent again on a new channel', async () => {
    await using rig = await rigOf(acknowledging);
    const sink = await rig.open();
    rig.model.asksUntilIndexed = 5;
    const sending = sink.send(batchOf(messages(1, 3)), never);
    sending.catch(() => undefined);
    while (rig.model.asked.length < 3) await new Promise((resolve) => setImmediate(resolve));
    rig.model.restart();
    await expect(sending).rejects.toMatchObject({ code: 'sink_outcome_unknown' });
    rig.model.asksUntilIndexed = 0;
    await (await rig.open()).send(batchOf(messages(1, 3), true), never);
    expect(new Set(rig.model.requests.map((request) => request.channel)).size).toBe(2);
  });

  test('a channel unknown to Splunk: the outcome is unknown at once', async () => {
    await using rig = await rigOf(acknowledging);
    const sink = await rig.open();
    rig.model.asksUntilIndexed = Infinity;
    const sending = sink.send(batchOf(messages(1, 3)), never);
    sending.catch(() => undefined);
    while (rig.model.asked.length < 2) await new Promise((resolve) => setImmediate(resolve));
    rig.model.tokens.set(tokenText, { indexes: ['main'] });
    await expect(sending).rejects.toMatchObject({ code: 'sink_outcome_unknown', message: expect.stringContaining('code 14') as string });
  });

  test('the channel of the configuration is used; the cookie of a load balancer is kept', async () => {
    const own = '0aeeac95-ac74-4aa9-b30d-6c4c0ac581ba';
    await using rig = await rigOf({ ...acknowledging, settings: { indexerAcknowledgement: true, channel: own } });
    rig.model.isSticky = true;
    const sink = await rig.open();
    await sink.send(batchOf(messages(1, 3)), never);
    expect(rig.model.requests.map((request) => request.channel)).toEqual([own]);
    expect(rig.model.asked.length).toBeLessThan(5);
  });

  test('eight concurrent requests after the first, with its cookie; only requests with a full queue are retried', async () => {
    await using rig = await rigOf(acknowledging);
    rig.model.isSticky = true;
    rig.model.mayAnswer = () => rig.model.requests.length === 0 || rig.model.underWayMost >= 8;
    const sink = await rig.open();
    // Two messages do not fit into one request.
    const long = Array.from({ length: 12 }, (_, i) => message(i + 1, JSON.stringify({ seq: i + 1, pad: 'x'.repeat(600_000) })));
    rig.model.next.push(0, 0, 0, 26);
    const first = await sink.send(batchOf(long), never);
    expect(rig.model.underWayMost).toBe(8);
    expect(rig.model.requests).toHaveLength(9);
    expect(first).toMatchObject({ rejections: [], retryable: { code: 'sink_unavailable' } });
    const left = first.retryable?.seqs ?? [];
    expect(left).toHaveLength(4);
    expect(left).toEqual(expect.arrayContaining([10, 11, 12]) as number[]);
    const rest = batchOf(long.filter(({ seq }) => left.includes(seq)));
    expect(await sink.send(rest, never)).toEqual({ rejections: [] });
    expect(rig.model.events.map(({ text }) => (JSON.parse(text) as { seq: number }).seq).sort((a, b) => a - b)).toEqual(
      long.map(({ seq }) => seq),
    );
  });

  test('without acknowledgement requests are sequential: those before the first failed one are resolved', async () => {
    await using rig = await rigOf({});
    rig.model.answerMs = 5;
    const sink = await rig.open();
    const long = Array.from({ length: 5 }, (_, i) => message(i + 1, JSON.stringify({ seq: i + 1, pad: 'x'.repeat(600_000) })));
    rig.model.next.push(0, 0, 26);
    expect((await sink.send(batchOf(long), never)).retryable?.seqs).toEqual([3, 4, 5]);
    expect([rig.model.underWayMost, rig.model.requests.length]).toEqual([1, 3]);
  });

  test('events indexed before a rejected one have no acknowledgement, and are sent again', async () => {
    await using rig = await rigOf(acknowledging);
    const sink = await rig.open();
    rig.model.refuses = (event) => ((event as { seq: number }).seq === 3 ? 'Invalid data format' : undefined);
    const first = await sink.send(batchOf(messages(1, 4)), never);
    expect(first).toMatchObject({ rejections: [], retryable: { seqs: [1, 2, 3, 4] } });
    const second = await sink.send(batchOf(messages(1, 4)), never);
    expect(second).toMatchObject({ rejections: [{ seq: 3 }], retryable: { seqs: [4] } });
    expect(await sink.send(batchOf(messages(4, 4)), never)).toEqual({ rejections: [] });
  });

  test('a success without ackId blocks, and nothing more is sent until the receiver acknowledges; a token without acknowledgements blocks the open', async () => {
    await using rig = await rigOf(acknowledging);
    const sink = await rig.open();
    rig.model.tokens.set(tokenText, { indexes: ['main'] });
    // The message contains the size of a success response, not its text:
    // {"text":"Success","code":0}.
    await expect(sink.send(batchOf([message(1)]), never)).rejects.toMatchObject({
      code: 'sink_blocked',
      message: expect.stringMatching(
        /\(sinks\.siem\.indexerAcknowledgement\): this receiver does not acknowledge: .* sinks\.siem\.indexerAcknowledgement: false: 200 code 0 \(27 bytes of application\/json\), without ackId$/,
      ) as string,
    });
    for (let i = 0; i < 3; i += 1) await expect(sink.send(batchOf([message(1)]), never)).rejects.toMatchObject({ code: 'sink_blocked' });
    expect(rig.model.events).toHaveLength(1);
    await expect(rig.open()).rejects.toThrow(
      /code 14 ACK is disabled; the token has acknowledgements disabled: .* sinks\.siem\.indexerAcknowledgement: false$/,
    );
    rig.model.tokens.set(tokenText, { indexes: ['main'], acknowledges: true });
    await expect(rig.open({ indexerAcknowledgement: false })).rejects.toThrow(
      /code 10 Data channel is missing; .*: set sinks\.siem\.indexerAcknowledgement: true, or use another token$/,
    );
  });

  test.each(['collector', 'fluent-bit'] as const)(
    'a receiver like %s, which does not acknowledge, blocks before any record is sent',
    async (stranger) => {
      await using rig = await rigOf({ settings: { indexerAcknowledgement: true } });
      rig.model.stranger = stranger;
      await expect(rig.open()).rejects.toMatchObject({
        code: 'sink_blocked',
        message: expect.stringContaining('this receiver does not acknowledge') as string,
      });
      expect(rig.model.events).toEqual([]);
      await (await rig.open({ indexerAcknowledgement: false })).send(batchOf([message(1)]), never);
      expect(rig.model.events).toHaveLength(1);
    },
  );

  test('an abort ends the wait', async () => {
    await using rig = await rigOf(acknowledging);
    const sink = await rig.open();
    rig.model.asksUntilIndexed = Infinity;
    const abort = new AbortController();
    const sending = sink.send(batchOf([message(1)]), abort.signal);
    sending.catch(() => undefined);
    while (rig.model.asked.length < 2) await new Promise((resolve) => setImmediate(resolve));
    abort.abort(new WaybillError('aborted', 'the shutdown timeout has passed'));
    await expect(sending).rejects.toMatchObject({ code: 'aborted' });
  });
});

describe.each([
  ['without acknowledgement', false],
  ['with acknowledgement', true],
])('in the loop, %s', (_name, acknowledge) => {
  test('full queues, a lost response, a limit and two invalid events: each event arrives, and the two are dead letters', async () => {
    const folder = temporary();
    await using rig = await rigOf({ token: { acknowledges: acknowledge }, settings: { indexerAcknowledgement: acknowledge } });
    await using journal = await openJournal(join(folder, 'state'), systemClock);
    journal.sinkPositions.register('siem', 'splunk-hec', 'index main', journal.positionFor('journal'), undefined);
    await append(journal, 60, () => ({ pad: 'x'.repeat(200) }));
    const numberOf = (event: unknown): number => (event as { logId: number }).logId;
    rig.model.refuses = (event) => ([7, 41].includes(numberOf(event)) ? 'Invalid data format' : undefined);
    rig.model.limit = 5_000;
    rig.model.next.push(0, { code: 26, headers: { 'retry-after': '1' } }, 24, 'cut', 9);
    const stop = new AbortController();
    const { clock } = rig;
    const meters = { eventsDelivered: () => undefined, deliveryDelay: () => undefined, sinkRetried: () => undefined } as unknown as Meters;
    const loop = new Delivery({
      settings: { ...{ id: 'siem', type: 'splunk-hec', resolvable: false }, batch: { maxRecords: 25, maxBytes: 1e6, maxWait: 1 }, deadline: 600_000, failReadinessAfter: 1e6 },
      ...{ journal, pipeline: plain, open: () => rig.open(), clock, random: () => 0.2, log: contextOf('siem').log, meters },
    }); // prettier-ignore
    const running = loop.run(stop.signal, stop.signal);
    await vi.waitFor(() => expect(loop.view()).toMatchObject({ state: 'active', acknowledged: 60 }), 20_000);
    stop.abort(new Error('all is there'));
    await running;
    expect(journal.sinkPositions.sink('siem')).toMatchObject({ acknowledged: 60, deadLetters: 2 });
    const arrived = rig.model.events.map(({ text }) => numberOf(JSON.parse(text)));
    expect([...new Set(arrived)].sort((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1).filter((n) => n !== 7 && n !== 41)); // prettier-ignore
    rmSync(folder, { recursive: true, force: true });
  });
});

test('after a lost state every event arrives a second time, with the same id', async () => {
  await using rig = await rigOf();
  await (await rig.open()).send(batchOf(messages(1, 5)), never);
  // A new state whose journal does not know any sent record.
  await (await rig.open()).send(batchOf(messages(1, 5)), never);
  const ids = rig.model.events.map(({ fields }) => fields['id']);
  expect(ids).toHaveLength(10);
  expect(ids.slice(5)).toEqual(ids.slice(0, 5));
});

describe('check, and the connection', () => {
  const check = (model: HecModel, overrides: Readonly<Record<string, unknown>> = {}, context: Partial<SinkContext> = {}) =>
    splunkHec.check(settingsOf(`${context.ca ? 'https' : 'http'}://127.0.0.1:${model.port}`, overrides), contextOf('siem', context), never);

  test('reports a valid token, without and with acknowledgement', async () => {
    await using model = await started({ acknowledges: true }, served);
    const tls = { ca: pem(authority.cert) };
    const found = await check(model, { indexerAcknowledgement: true }, tls);
    expect(found).toEqual([
      { level: 'ok', message: 'accepts the token; the first event shows whether the token may write to the index' },
      {
        level: 'ok',
        message: expect.stringMatching(
          /^connected to 127\.0\.0\.1:\d+ directly, certificate of 'splunk' issued by 'Example root' until \d{4}-\d\d-\d\d$/,
        ) as string,
      },
    ]);
    model.tokens.set(tokenText, { indexes: ['main'] });
    expect((await check(model, {}, tls)).at(-1)).toMatchObject({ level: 'warning', setting: 'sinks.siem.indexerAcknowledgement' });
    expect(model.events).toEqual([]);
    expect(model.requests).toEqual([]);
  });

  test.each([
    ['disabled', { isDisabled: true, indexes: ['main'] as [string] }, 'code 1 Token disabled'],
    ['unknown', undefined, 'code 4 Invalid token'],
  ])('a token that is %s is an error although health answers 200', async (_name, token, words) => {
    await using model = await started();
    if (token) model.tokens.set(tokenText, token);
    else model.tokens.clear();
    expect(await check(model)).toContainEqual({ level: 'error', message: expect.stringContaining(words) as string, setting: 'sinks.siem' });
  });

  test('full queues are a warning, an unreachable server and an untrusted certificate are errors', async () => {
    await using model = await started({}, served);
    model.health = 18;
    const tls = { ca: pem(authority.cert) };
    const message = 'not healthy: 503 code 18 HEC is unhealthy, queues are full';
    expect(await check(model, {}, tls)).toContainEqual({ level: 'warning', message });
    const strange = { ca: pem((await createAuthority('Strange root')).cert) };
    expect(await check(model, {}, strange)).toContainEqual(
      expect.objectContaining({ level: 'error', message: expect.stringContaining("issued by 'Example root' is not trusted") as string }),
    );
    await model[Symbol.asyncDispose]();
    expect(await check(model, {}, tls)).toContainEqual(
      expect.objectContaining({ level: 'error', message: expect.stringMatching(/ECONNREFUSED [\d.:]+; see sinks\.siem\.url$/) as string }),
    );
  });

  test('TLS to a plain-text port, and plain text to a TLS port, name the setting', async () => {
    await using plainText = await started();
    expect((await check(plainText, {}, { ca: pem(authority.cert) }))[0]).toEqual({
      level: 'error',
      message: expect.stringMatching(/: the port does not speak TLS; see sinks\.siem\.url$/) as string,
      setting: 'sinks.siem',
    });
    await using secure = await started({}, served);
    expect((await check(secure))[0]).toMatchObject({
      level: 'error',
      message: expect.stringMatching(/; sinks\.siem\.url begins with http: perhaps the port speaks TLS$/) as string,
    });
  });

  test('plain HTTP on a TLS port, where some servers respond in plain text, is an error; so is a receiver without acknowledgements', async () => {
    // Verbatim responses of Go's net/http and of nginx.
    for (const body of [
      'Client sent an HTTP request to an HTTPS server.\n',
      '<center>The plain HTTP request was sent to HTTPS port</center>',
    ]) {
      const server = createServer((_request, response) => void response.writeHead(400).end(body)).listen(0, '127.0.0.1');
      await once(server, 'listening');
      const { port } = server.address() as AddressInfo;
      const found = await splunkHec.check(settingsOf(`http://127.0.0.1:${port}`), contextOf('siem'), never);
      server.close();
      expect(found[0]).toMatchObject({ level: 'error', message: expect.stringContaining('must begin with https:') as string });
    }
    await using model = await started();
    model.stranger = 'collector';
    expect((await check(model, { indexerAcknowledgement: true }))[0]).toMatchObject({
      level: 'error',
      message: expect.stringContaining('this receiver does not acknowledge') as string,
    });
  });

  test('an address of Splunk Cloud other than the one for events, and acknowledgements that it does not provide', async () => {
    // No name is resolved locally: the proxy resolves it, and knows none.
    await using proxy = await startProxy({ names: {} });
    const general = { noProxy: [], url: secret(`http://127.0.0.1:${proxy.port}`) };
    const of = async (url: string, overrides = {}) =>
      (await splunkHec.check(settingsOf(url, overrides), contextOf('siem', { proxy: general }), never)).flatMap(
        ({ level, message: words }) => (level === 'warning' ? [words] : []),
      );
    expect(await of('https://example.splunkcloud.com', { indexerAcknowledgement: true })).toEqual([
      'Splunk Cloud receives events at http-inputs-example.splunkcloud.com',
      'Splunk Cloud acknowledges only the events of Firehose',
    ]);
    expect(await of('https://http-inputs-example.splunkcloud.com')).toEqual([expect.stringContaining('indexerAcknowledgement: false')]);
  });

  test('through a proxy with a password: events arrive, check reports the route, and a refusal of the proxy differs from Splunk’s', async () => {
    await using model = await started({}, served);
    const names = { 'splunk.test:8088': model.port };
    await using proxy = await startProxy({ names, user: 'waybill', password: 'hush-hush' });
    const settings = (password: string) => {
      const made = settingsOf('https://splunk.test:8088', { proxy: { url: 'http://unused' } });
      return { ...made, proxy: { noProxy: [], url: secret(`http://waybill:${password}@127.0.0.1:${proxy.port}`) } } as unknown as Settings;
    };
    const context = contextOf('siem', { ca: pem(authority.cert) });
    await using sink = await splunkHec.open(settings('hush-hush'), context, new ModelKept(), never);
    const batch = batchOf(messages(1, 3));
    await sink.send(batch, never);
    expect(model.events.map(({ fields }) => fields['number'])).toEqual(seqsOf(batch));
    expect(proxy.asked).toEqual(['splunk.test:8088']);
    expect(await splunkHec.check(settings('hush-hush'), context, never)).toContainEqual({
      level: 'ok',
      message: expect.stringMatching(
        /^connected to splunk\.test:8088 through a setting \(of the test\), certificate of 'splunk' issued by 'Example root' until \d{4}-\d\d-\d\d$/,
      ) as string,
    });
    const refused = splunkHec.open(settings('wrong-pass'), context, new ModelKept(), never);
    await expect(refused).rejects.toMatchObject({ code: 'sink_blocked', message: expect.stringContaining('407') as string });
    await expect(refused).rejects.not.toThrow(/wrong-pass/);
    // `none` connects directly, whatever the general setting is.
    const direct = { ...settingsOf(`https://127.0.0.1:${model.port}`), proxy: 'none' } as unknown as Settings;
    const general = { noProxy: [], url: secret(`http://127.0.0.1:1`) };
    await using straight = await splunkHec.open(direct, { ...context, proxy: general }, new ModelKept(), never);
    await straight.send(batch, never);
    expect(model.events).toHaveLength(6);
  });
});
