/**
 * The sink `syslog` over every transport: the contract of every sink, and receivers that behave as
 * real ones did.
 */
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { codeOf, messageOf } from '../../../src/errors/errors.ts';
import type { ResumePoint, Sink } from '../../../src/model/sink.ts';
import type { Clock } from '../../../src/model/time.ts';
import { syslog } from '../../../src/sink/syslog/index.ts';
import { Header, headerBytes } from '../../../src/sink/syslog/message.ts';
import { RelpSession } from '../../../src/sink/syslog/session.ts';
import { createAuthority } from '../../support/certificates.ts';
import type { Authority, KeyPair } from '../../support/certificates.ts';
import { batchOf, contextOf, message, messages, ModelKept } from '../../support/sinks/sink-batches.ts';
import { sinkSuite } from '../../support/sinks/sink-suite.ts';
import type { Place } from '../../support/sinks/sink-suite.ts';
import { RelpReceiver, StreamReceiver, UdpReceiver } from '../../support/sinks/syslog-receivers.ts';
import { sized } from '../../support/long-run.ts';

const never = new AbortController().signal;

type Settings = Parameters<typeof syslog.open>[0];
const settingsOf = (address: string, overrides: Partial<Settings> = {}): Settings => ({
  ...{
    address,
    framing: 'octet-counting',
    header: 'rfc5424',
    facility: 'local4',
    appName: 'waybill',
    hostname: 'gateway-1',
    confirm: 'close',
  },
  ...overrides,
});

const pem = (text: string) => ({ read: () => [text], describe: () => 'a file of the test' });

let authority: Authority;
let served: KeyPair;
beforeAll(async () => {
  authority = await createAuthority('Example root');
  served = await authority.issue({ name: 'receiver', hosts: ['127.0.0.1'] });
});

abstract class ReceiverPlace implements Place {
  readonly #opened: Sink[] = [];
  abstract address(): string;
  abstract texts(): readonly string[];
  abstract end(): Promise<void>;
  protected overrides: Partial<Settings> = {};

  /** Called before each start of the sender: repairs the receiver. */
  protected begins(): void {}

  readonly open = async (kept: ResumePoint): Promise<Sink> => {
    this.begins();
    const sink = await syslog.open(
      settingsOf(this.address(), this.overrides),
      contextOf('under-test', { ca: pem(authority.cert), clock: hasty }),
      kept,
      never,
    );
    this.#opened.push(sink);
    return sink;
  };

  async kill(): Promise<void> {
    for (const sink of this.#opened.splice(0)) await sink[Symbol.asyncDispose]();
  }

  received(): Promise<readonly string[]> {
    return Promise.resolve(this.texts());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await this.end();
  }
}

/** Watches a connection for a tenth of the time: the receivers of the suite either end it at once, or not at all. */
const hasty: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms === 600 || ms === 1_250 ? ms / 10 : ms, signal) };

class StreamPlace extends ReceiverPlace {
  readonly #receiver: StreamReceiver;
  readonly #scheme: string;

  constructor(receiver: StreamReceiver, scheme: string, overrides: Partial<Settings>) {
    super();
    this.#receiver = receiver;
    this.#scheme = scheme;
    this.overrides = overrides;
  }

  address(): string {
    return `${this.#scheme}://127.0.0.1:${this.#receiver.port}`;
  }

  texts(): readonly string[] {
    expect(this.#receiver.errors).toEqual([]);
    return this.#receiver.messages.map(({ text }) => text);
  }

  cutAnswer(): void {
    this.#receiver.ending = 'reset';
  }

  stall(): void {
    this.#receiver.stall();
  }

  async ruin(): Promise<void> {
    await this.#receiver[Symbol.asyncDispose]();
  }

  protected override begins(): void {
    this.#receiver.ending = 'end';
  }

  async end(): Promise<void> {
    await this.#receiver[Symbol.asyncDispose]();
  }
}

class RelpPlace extends ReceiverPlace {
  readonly #receiver: RelpReceiver;
  readonly #scheme: string;

  constructor(receiver: RelpReceiver, scheme: string) {
    super();
    this.#receiver = receiver;
    this.#scheme = scheme;
  }

  address(): string {
    return `${this.#scheme}://127.0.0.1:${this.#receiver.port}`;
  }

  texts(): readonly string[] {
    expect(this.#receiver.errors).toEqual([]);
    return this.#receiver.messages.map(({ text }) => text);
  }

  cutAnswer(): void {
    let left = 10;
    this.#receiver.answer = () => {
      left -= 1;
      if (left > 0) return '200 OK';
      this.#receiver.answer = () => '200 OK';
      return undefined;
    };
  }

  refuse(seq: number, words: string): undefined {
    this.#receiver.answer = (_frame, { text }) => ((JSON.parse(text) as { seq: number }).seq === seq ? `500 ${words}` : '200 OK');
  }

  stall(): void {
    this.#receiver.stall();
  }

  async ruin(): Promise<void> {
    await this.end();
  }

  async end(): Promise<void> {
    await this.#receiver[Symbol.asyncDispose]();
  }
}

class UdpPlace extends ReceiverPlace {
  readonly #receiver: UdpReceiver;

  constructor(receiver: UdpReceiver) {
    super();
    this.#receiver = receiver;
  }

  address(): string {
    return `udp://127.0.0.1:${this.#receiver.port}`;
  }

  texts(): readonly string[] {
    return this.#receiver.messages.map(({ text }) => text);
  }

  async end(): Promise<void> {
    await this.#receiver[Symbol.asyncDispose]();
  }
}

const { formats } = syslog;
const secrets: string[] = [];
const twice = (size: number): number => size;
for (const framing of ['octet-counting', 'newline'] as const) {
  sinkSuite({
    ...{ name: `syslog by TCP, ${framing}`, formats, twice, secrets, batches: 20, isVariant: framing === 'octet-counting' },
    start: async () => new StreamPlace(await new StreamReceiver(framing).listen(), 'tcp', { framing }),
  });
}
sinkSuite({
  ...{ name: 'syslog by TLS', formats, twice, secrets, batches: 20, isVariant: true },
  start: async () => new StreamPlace(await new StreamReceiver('octet-counting', served).listen(), 'tls', {}),
});
sinkSuite({
  ...{ name: 'syslog by RELP', formats, twice, secrets },
  start: async () => new RelpPlace(await new RelpReceiver().listen(), 'relp'),
});
sinkSuite({
  ...{ name: 'syslog by RELP over TLS', formats, twice, secrets, isVariant: true },
  start: async () => new RelpPlace(await new RelpReceiver(served).listen(), 'relp+tls'),
});
sinkSuite({
  // Longer messages are truncated before they reach the sink; a datagram could not contain them.
  ...{ name: 'syslog by UDP', formats, twice, secrets, longest: 60_000 },
  start: async () => new UdpPlace(await new UdpReceiver().listen()),
});

async function opened(address: string, overrides: Partial<Settings> = {}, id = 'siem'): Promise<Sink> {
  return syslog.open(settingsOf(address, overrides), contextOf(id, { ca: pem(authority.cert) }), new ModelKept(), never);
}

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
}

describe('a batch is a connection (confirm: close)', () => {
  test('the receiver reads each to its end before the next starts', async () => {
    await using receiver = await new StreamReceiver().listen();
    await using sink = await opened(`tcp://127.0.0.1:${receiver.port}`);
    for (let i = 0; i < 5; i += 1) {
      await sink.send(batchOf(messages(i * 10 + 1, i * 10 + 10)), never);
      expect(receiver.messages).toHaveLength((i + 1) * 10);
    }
    // One to test the receiver, one for each batch.
    expect(receiver.connections).toBe(6);
  });

  test('a receiver that ends the connection first may have read less: unknown', async () => {
    await using receiver = await new StreamReceiver().listen();
    await using sink = await opened(`tcp://127.0.0.1:${receiver.port}`);
    receiver.ending = 'end before the sender';
    receiver.messages.push({} as never);
    const thrown = await errorOf(sink.send(batchOf(messages(1, 20_000)), never));
    expect(codeOf(thrown)).toBe('sink_outcome_unknown');
  });

  test('a reset after the client ended its side confirms nothing: unknown', async () => {
    await using receiver = await new StreamReceiver().listen();
    await using sink = await opened(`tcp://127.0.0.1:${receiver.port}`);
    receiver.ending = 'reset';
    const thrown = await errorOf(sink.send(batchOf(messages(1, 3)), never));
    expect({ code: codeOf(thrown), message: messageOf(thrown) }).toMatchObject({
      code: 'sink_outcome_unknown',
      message: expect.stringMatching(/"siem"/) as string,
    });
    expect(receiver.messages).toHaveLength(3);
  });

  /** A sink whose waits are recorded, by a clock that the test can advance. `onWatch` is called when a watch begins. */
  const watching = (receiver: StreamReceiver, scheme = 'tcp') => {
    const asked: number[] = [];
    const own = { advanced: 0, onWatch: (): void => undefined };
    const sleep: Clock['sleep'] = (ms, signal) => {
      // 5 ms: the interval at which the sink looks at the send queue; 60 s: the wait for the end.
      if (ms === 5 || ms === 60_000) return systemClock.sleep(ms, signal);
      asked.push(ms);
      own.onWatch();
      // A receiver that ends the connection in this time does so at once: a machine under load may need longer to show it.
      return systemClock.sleep(Math.min(ms, 300), signal);
    };
    const clock: Clock = { ...systemClock, sleep, monotonic: () => systemClock.monotonic() + own.advanced };
    const context = contextOf('siem', { clock, ca: pem(authority.cert) });
    const address = `${scheme}://127.0.0.1:${receiver.port}`;
    const send = async (count: number) => {
      await using sink = await syslog.open(settingsOf(address), context, new ModelKept(), never);
      return await sink.send(batchOf(messages(1, count)), never);
    };
    return { send, asked, own };
  };

  test.each(['tcp', 'tls'])('%s: a proxy that reads all and ends the connection by itself has swallowed the batch', async (scheme) => {
    await using receiver = await new StreamReceiver('octet-counting', scheme === 'tls' ? served : undefined).listen();
    const { send, own } = watching(receiver, scheme);
    receiver.ending = 'swallow';
    own.onWatch = () => receiver.swallow();
    const thrown = await errorOf(send(3));
    expect(codeOf(thrown)).toBe('sink_outcome_unknown');
    expect(messageOf(thrown)).toContain('closed the connection before the end of the batch');
    expect(receiver.messages).toEqual([]);
    receiver.ending = 'end';
    own.onWatch = () => undefined;
    expect(await send(3)).toEqual({ rejections: [] });
    expect(receiver.messages).toHaveLength(3);
  });

  test('a proxy that ends the connection long after the client has swallowed the batch, and the message names RELP', async () => {
    await using receiver = await new StreamReceiver().listen();
    const { send, own } = watching(receiver);
    receiver.ending = 'swallow';
    // HAProxy gives up a receiver that refuses connections after 3 s.
    receiver.onEnd = () => void (own.advanced += 3_000);
    const thrown = await errorOf(send(3));
    expect(codeOf(thrown)).toBe('sink_outcome_unknown');
    expect(messageOf(thrown)).toMatch(/ended the connection 3\d{3} ms after Waybill did.* only relp:\/\/ confirms messages$/);
  });

  test('after an end that confirmed nothing, a connection is watched for longer, until a batch is confirmed again', async () => {
    await using receiver = await new StreamReceiver().listen();
    const { send, asked, own } = watching(receiver);
    await send(1);
    receiver.ending = 'swallow';
    own.onWatch = () => receiver.swallow();
    await errorOf(send(1));
    await errorOf(send(1));
    receiver.ending = 'end';
    own.onWatch = () => undefined;
    for (let i = 0; i < 4; i += 1) await send(1);
    expect(asked).toEqual([600, 600, 1_250, 1_250, 600, 600, 600]);
    // Later than the watch: 1.5 times that time next.
    receiver.onEnd = () => void (own.advanced += 4_000);
    await errorOf(send(1));
    receiver.onEnd = () => undefined;
    await send(1);
    expect(asked.at(-1)).toBeGreaterThan(6_000);
    expect(asked.at(-1)).toBeLessThan(12_000);
  });

  test('through a proxy whose receiver goes and comes at random, each batch that counts as delivered was read', async () => {
    await using receiver = await new StreamReceiver().listen();
    const { send, own } = watching(receiver);
    const seed = Number(process.env['SEED'] ?? 11);
    let state = seed;
    const below = (n: number): number => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return Math.floor((state / 2 ** 32) * n);
    };
    const counts = { confirmed: 0, swallowed: 0 };
    for (let i = 0; i < sized(16, 200); i += 1) {
      const before = receiver.messages.length;
      const mode = below(4);
      receiver.ending = mode === 0 ? 'end' : 'swallow';
      own.onWatch = () => (mode === 1 ? receiver.swallow() : undefined);
      receiver.onEnd = () => void (own.advanced += mode === 2 ? 1_000 + below(20_000) : 0);
      const count = 1 + below(5);
      if (mode === 3) receiver.onEnd = () => receiver.reset();
      const isConfirmed = (await errorOf(send(count))) === undefined;
      counts[isConfirmed ? 'confirmed' : 'swallowed'] += 1;
      expect(receiver.messages.length - before, `seed ${seed}, batch ${i}`).toBe(isConfirmed ? count : 0);
    }
    expect(Math.min(counts.confirmed, counts.swallowed), `seed ${seed}`).toBeGreaterThan(0);
  });

  test('a slow receiver still makes progress', async () => {
    let read = 0;
    const server = createServer({ allowHalfOpen: true }, (socket) => {
      socket.on('error', () => undefined).on('end', () => socket.end());
      socket.on('data', (bytes: Buffer) => {
        read += bytes.length;
        socket.pause();
        setImmediate(() => socket.resume());
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    await using sink = await opened(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const heard: number[] = [];
    const large = Array.from({ length: 16 }, (_, i) => message(i + 1, 'x'.repeat(500_000)));
    await sink.send(batchOf(large), never, (certain) => heard.push(certain));
    expect(read).toBeGreaterThan(8_000_000);
    expect(heard.length).toBeGreaterThan(8);
    // No outcome is certain before the end.
    expect(new Set(heard)).toEqual(new Set([0]));
    server.close();
  });

  test('a killed receiver with unread bytes confirms nothing, even if its kernel had acknowledged them', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => {
      socket.pause();
      socket.on('error', () => undefined);
      sockets.push(socket);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { promise: acknowledged, resolve } = Promise.withResolvers<undefined>();
    // The sink starts this wait for the end of the connection when the kernel of the receiver has acknowledged everything.
    const sleep: Clock['sleep'] = (ms, signal) => {
      if (ms === 60_000) resolve(undefined);
      return systemClock.sleep(ms, signal);
    };
    const context = contextOf('siem', { clock: { ...systemClock, sleep } });
    const settings = settingsOf(`tcp://127.0.0.1:${(server.address() as AddressInfo).port}`);
    await using sink = await syslog.open(settings, context, new ModelKept(), never);
    const sending = errorOf(sink.send(batchOf(messages(1, 1_000)), never));
    await acknowledged;
    for (const socket of sockets) socket.destroy();
    expect(codeOf(await sending)).toBe('sink_outcome_unknown');
    server.close();
  });
});

describe('the header', () => {
  test('follows RFC 5424, with the number and the uid under an enterprise id', async () => {
    await using receiver = await new StreamReceiver().listen();
    await using sink = await opened(`tcp://127.0.0.1:${receiver.port}`, { enterpriseId: 32473, facility: 'auth', hostname: 'gäte way' });
    const odd = {
      ...message(7),
      severity: 7,
      action: 'Öpen it now, please, all of the files',
      time: Date.UTC(2026, 10, 20, 2, 0, 19, 123) * 1000 + 456,
    };
    await sink.send(batchOf([odd, { ...message(8), severity: 10, action: '' }]), never);
    expect(receiver.messages).toMatchObject([
      {
        // auth is 4, warning is 4 (RFC 5424 tables 1 and 2).
        ...{ priority: 4 * 8 + 4, timestamp: '2026-11-20T02:00:19.123Z', hostname: 'gteway', appName: 'waybill' },
        ...{ procId: String(process.pid), msgId: 'penitnow,please,allofthefiles' },
        text: Buffer.from(odd.bytes).toString(),
      },
      { priority: 4 * 8 + 2, msgId: '-' },
    ]);
    expect(receiver.messages[0]?.data).toEqual(
      new Map([
        ['meta', new Map([['sequenceId', '1']])],
        ['waybill@32473', new Map([...Object.entries({ id: odd.uid, number: '7', source: 'records' })])],
      ]),
    );
    expect(receiver.messages[1]?.data.get('meta')).toEqual(new Map([['sequenceId', '2']]));
  });

  test('has no number for a ledger entry', () => {
    const own = { format: 'rfc5424', facility: 'local7', hostname: 'h', appName: 'a', processId: 1, enterpriseId: 32473 } as const;
    expect(new Header(own).of({ ...message(1), number: undefined, source: 's', uid: 'u' })).toContain('[waybill@32473 id="u" source="s"] ');
  });

  test('never exceeds its maximum, whatever the sequence number', () => {
    const own = { format: 'rfc5424', facility: 'local7', hostname: 'h', appName: 'a', processId: 4_194_304, enterpriseId: 32473 } as const;
    const longest = { ...message(1), number: Number.MAX_SAFE_INTEGER, source: 's'.repeat(32), action: 'a'.repeat(99), uid: 'u'.repeat(22) };
    const header = new Header(own, 2_147_483_645);
    const written = [header.of(longest), header.of(longest), header.of(longest)];
    expect(written.map((text) => /sequenceId="(\d+)"/.exec(text)?.[1])).toEqual(['2147483646', '2147483647', '1']);
    expect(Math.max(...written.map(({ length }) => length))).toBe(headerBytes(own));
  });

  test.each([
    [Date.UTC(2026, 10, 3, 2, 5, 9, 999), '<165>Nov  3 02:05:09 gateway-1 waybill[7]: '],
    [Date.UTC(2028, 1, 29, 23, 59, 59), '<165>Feb 29 23:59:59 gateway-1 waybill[7]: '],
    [0, '<165>Jan  1 00:00:00 gateway-1 waybill[7]: '],
  ])('of RFC 3164 has the time %d in UTC, host and tag', (time, expected) => {
    const own = {
      format: 'rfc3164',
      facility: 'local4',
      hostname: 'gateway-1',
      appName: 'waybill',
      processId: 7,
      enterpriseId: 32473,
    } as const;
    const header = new Header(own);
    expect(header.of({ ...message(1), severity: 5, time: time * 1000 })).toBe(expected);
    expect(headerBytes(own)).toBe(expected.length);
  });

  test('of RFC 3164 with a time of RFC 3339 has the year and the milliseconds', () => {
    const own = { format: 'rfc3164-iso', facility: 'local4', hostname: 'gateway-1', processId: 7, enterpriseId: 1 } as const;
    const of = (appName: string): string =>
      new Header({ ...own, appName }).of({ ...message(1), severity: 5, time: Date.UTC(2021, 10, 3, 2, 5, 9, 7) * 1000 });
    expect(of('waybill')).toBe('<165>2021-11-03T02:05:09.007Z gateway-1 waybill[7]: ');
    expect(of('')).toBe('<165>2021-11-03T02:05:09.007Z gateway-1 ');
    expect(syslog.checkSettings?.(settingsOf('udp://127.0.0.1:5514', { header: 'rfc3164-iso', enterpriseId: 1 }), 'siem')).toEqual([
      expect.objectContaining({ level: 'warning', setting: 'sinks.siem.enterpriseId' }),
    ]);
  });

  test('of RFC 3164 has only characters that a receiver permits in a tag, and no tag without a program', () => {
    const own = { format: 'rfc3164', facility: 'local4', hostname: 'g w:1', processId: 7, enterpriseId: undefined } as const;
    const of = (appName: string): string => new Header({ ...own, appName }).of({ ...message(1), severity: 1, time: 0 });
    expect(of('way bill: <13>[x]\u00e9')).toBe('<166>Jan  1 00:00:00 gw:1 waybill13x[7]: ');
    expect(of('a'.repeat(99))).toContain(` ${'a'.repeat(32)}[7]: `);
    expect(of('')).toBe('<166>Jan  1 00:00:00 gw:1 ');
  });

  test('of RFC 3164 leaves its space to the message, and check reports that it has no structured data', () => {
    const settings = settingsOf('udp://127.0.0.1:5514', { header: 'rfc3164', enterpriseId: 32473 });
    const room = syslog.messageBytes?.(settings) ?? 0;
    expect(room).toBeGreaterThan(syslog.messageBytes?.({ ...settings, header: 'rfc5424' }) ?? 0);
    expect(syslog.checkSettings?.(settings, 'siem')).toEqual([
      expect.objectContaining({ level: 'warning', setting: 'sinks.siem.enterpriseId' }),
    ]);
    expect(syslog.checkSettings?.({ ...settings, header: 'rfc5424' }, 'siem')).toEqual([]);
  });

  test.each(['udp', 'relp'])('warns of settings that have no effect by %s', (scheme) => {
    const settings = settingsOf(`${scheme}://127.0.0.1:2514`, { framing: 'newline', confirm: 'none' });
    const message = (setting: string): string => `"${setting}" has no effect with ${scheme}://, only with tcp:// and tls://: remove it`;
    expect(syslog.checkSettings?.(settings, 'siem')).toEqual([
      { level: 'warning', message: message('framing: newline'), setting: 'sinks.siem.framing' },
      { level: 'warning', message: message('confirm: none'), setting: 'sinks.siem.confirm' },
    ]);
  });

  test('and the message together never exceed the frame', async () => {
    await using receiver = await new UdpReceiver().listen();
    const settings = settingsOf(`udp://127.0.0.1:${receiver.port}`, { enterpriseId: 4_294_967_295, appName: 'a'.repeat(60) });
    const room = syslog.messageBytes?.(settings) ?? 0;
    await using sink = await syslog.open(settings, contextOf('siem'), new ModelKept(), never);
    const longest = { ...message(1, 'x'.repeat(room)), number: Number.MAX_SAFE_INTEGER, source: 's'.repeat(32), action: 'a'.repeat(99) };
    await sink.send(batchOf([longest]), never);
    await expect.poll(() => receiver.sizes.length).toBe(1);
    expect(receiver.sizes[0]).toBeLessThanOrEqual(2_048);
    expect(receiver.sizes[0]).toBeGreaterThan(2_000);
  });
});

describe('TLS', () => {
  test('an untrusted certificate of the receiver blocks with the reason', async () => {
    const other = await createAuthority('Another root');
    await using receiver = await new StreamReceiver(
      'octet-counting',
      await other.issue({ name: 'receiver', hosts: ['127.0.0.1'] }),
    ).listen();
    const thrown = await errorOf(opened(`tls://127.0.0.1:${receiver.port}`));
    expect({ code: codeOf(thrown), message: messageOf(thrown) }).toMatchObject({
      code: 'sink_blocked',
      message: expect.stringMatching(/sinks\.siem\.tls\.ca: certificate of 127\.0\.0\.1 issued by 'Another root' is not trusted/) as string,
    });
  });

  test('a certificate for another name blocks', async () => {
    await using receiver = await new StreamReceiver(
      'octet-counting',
      await authority.issue({ name: 'x', hosts: ['other.example'] }),
    ).listen();
    const thrown = await errorOf(opened(`tls://127.0.0.1:${receiver.port}`));
    expect(codeOf(thrown)).toBe('sink_blocked');
    expect(messageOf(thrown)).toMatch(/sinks\.siem\.tls\.serverName: .* expected 127\.0\.0\.1, got DNS:other\.example/);
  });

  test('a pinned certificate is trusted, and no other', async () => {
    const lone = await (await createAuthority('Nobody')).issue({ name: 'x', hosts: ['other.example'] });
    await using receiver = await new StreamReceiver('octet-counting', lone).listen();
    const fingerprint = createHash('sha256').update(new X509Certificate(lone.cert).raw).digest('hex');
    const address = `tls://127.0.0.1:${receiver.port}`;
    await using sink = await opened(address, { fingerprint: fingerprint.toUpperCase().replace(/(..)(?!$)/g, '$1:') });
    for (let i = 1; i <= 3; i += 1) await sink.send(batchOf([message(i)]), never);
    expect(receiver.messages).toHaveLength(3);
    const thrown = await errorOf(opened(address, { fingerprint: 'ab'.repeat(32) }));
    expect(codeOf(thrown)).toBe('sink_blocked');
    expect(messageOf(thrown)).toContain(fingerprint);
  });

  test('mutual TLS blocks without a client certificate and accepts a valid one', async () => {
    const client = await authority.issue({ name: 'waybill' });
    await using receiver = await new StreamReceiver('octet-counting', {
      ...served,
      ca: authority.cert,
      requestCert: true,
      rejectUnauthorized: true,
    }).listen();
    const address = `tls://127.0.0.1:${receiver.port}`;
    const bare = await errorOf(
      (async () => {
        await using sink = await opened(address);
        await sink.send(batchOf([message(1)]), never);
      })(),
    );
    expect(codeOf(bare)).toBe('sink_blocked');
    expect(messageOf(bare)).toMatch(/sinks\.siem\.tls\.cert: .* requires a client certificate and none is set/);
    const tls = { cert: pem(client.cert), key: pem(client.key) } as unknown as Settings['tls'];
    await using sink = await opened(address, { tls });
    await sink.send(batchOf(messages(1, 3)), never);
    expect(receiver.messages).toHaveLength(3);
  });
});

test.each(['tcp', 'relp'])('after a lost state, every message is sent again by %s with the same uid', async (scheme) => {
  await using receiver = await (scheme === 'tcp' ? new StreamReceiver() : new RelpReceiver()).listen();
  for (let state = 0; state < 2; state += 1) {
    await using sink = await opened(`${scheme}://127.0.0.1:${receiver.port}`, { enterpriseId: 32473 });
    await sink.send(batchOf(messages(1, 5)), never);
  }
  const ids = receiver.messages.map(({ data }) => data.get('waybill@32473')?.get('id'));
  expect(ids).toHaveLength(10);
  expect(ids.slice(5)).toEqual(messages(1, 5).map(({ uid }) => uid));
  expect(ids.slice(0, 5)).toEqual(ids.slice(5));
});

describe('a receiver that ends a connection right after the TLS handshake, without an alert', () => {
  // As rsyslog with gtls rejects a client certificate.
  const start = (scheme: string) => (scheme === 'tls' ? new StreamReceiver('octet-counting', served) : new RelpReceiver(served)).listen();

  test.each(['tls', 'relp+tls'].slice(0, sized(1, 2)))(
    '%s: twice in a row, the sink blocks and names the client certificate; no record was sent',
    async (scheme) => {
      await using receiver = await start(scheme);
      receiver.endsAtOnce = Infinity;
      const address = `${scheme}://127.0.0.1:${receiver.port}`;
      // On a loaded machine the sink may see the end of the connection only after the 250 ms that it
      // waits for it: here it waits six times as long.
      const clock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms * 6, signal) };
      const context = contextOf('siem', { ca: pem(authority.cert), clock });
      const open = (overrides: Partial<Settings> = {}) => syslog.open(settingsOf(address, overrides), context, new ModelKept(), never);
      const bare = await errorOf(open());
      expect([codeOf(bare), receiver.connections]).toEqual(['sink_blocked', 2]);
      expect(messageOf(bare)).toMatch(
        /ends the connection right after the TLS handshake: it may require a client certificate \(sinks\.siem\.tls\.cert\)/,
      );
      const client = await authority.issue({ name: 'waybill' });
      const tls = { cert: pem(client.cert), key: pem(client.key) } as unknown as Settings['tls'];
      expect(messageOf(await errorOf(open({ tls })))).toContain('it may require another client certificate (sinks.siem.tls.cert)');
      expect((await syslog.check(settingsOf(address), context, never)).at(-1)).toMatchObject({
        level: 'error',
        message: expect.stringContaining('(sinks.siem.tls.cert)') as string,
      });
    },
  );

  test.each(['tls', 'relp+tls'])('%s: once, the sink retries', async (scheme) => {
    await using receiver = await start(scheme);
    receiver.endsAtOnce = 1;
    await using sink = await opened(`${scheme}://127.0.0.1:${receiver.port}`);
    expect(await sink.send(batchOf(messages(1, 3)), never)).toEqual({ rejections: [] });
    expect(receiver.messages).toHaveLength(3);
  });
});

describe('a port that does not match the address', () => {
  test('plain text where TLS is expected blocks and names the setting', async () => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', () => socket.end('1 rsp 92 500 this is no RELP\n'));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    for (const scheme of ['tls', 'relp+tls']) {
      const thrown = await errorOf(opened(`${scheme}://127.0.0.1:${port}`));
      expect(codeOf(thrown)).toBe('sink_blocked');
      expect(messageOf(thrown)).toBe(
        `cannot connect sink "siem" to "${scheme}://127.0.0.1:${port}": the port does not speak TLS; see sinks.siem.address`,
      );
    }
    server.close();
  });

  test('a receiver that reads the handshake and sends nothing times out, and the error names the setting', async () => {
    const sockets: Socket[] = [];
    const server = createServer((socket) => void sockets.push(socket.on('error', () => undefined).resume())).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const timeout = AbortSignal.timeout.bind(AbortSignal);
    const asked = vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => timeout(ms / 100));
    try {
      const thrown = await errorOf(opened(`relp+tls://127.0.0.1:${port}`));
      expect(asked).toHaveBeenCalledExactlyOnceWith(10_000);
      expect(codeOf(thrown)).toBe('sink_unavailable');
      expect(messageOf(thrown)).toBe(
        `cannot reach "relp+tls://127.0.0.1:${port}" for sink "siem": no TLS response within 10 s: perhaps the port does not speak TLS (sinks.siem.address)`,
      );
    } finally {
      asked.mockRestore();
      for (const socket of sockets) socket.destroy();
      server.close();
    }
  });

  test('TLS where plain text is expected is reported as likely, until a message was accepted', async () => {
    await using secure = await new StreamReceiver('octet-counting', served).listen();
    const hint = /; sinks\.siem\.address begins with (relp|tcp): perhaps the port speaks TLS/;
    expect(messageOf(await errorOf(opened(`relp://127.0.0.1:${secure.port}`)))).toMatch(hint);
    await using wrong = await opened(`tcp://127.0.0.1:${secure.port}`);
    expect(messageOf(await errorOf(wrong.send(batchOf(messages(1, 3)), never)))).toMatch(hint);
    await using receiver = await new StreamReceiver().listen();
    await using sink = await opened(`tcp://127.0.0.1:${receiver.port}`);
    await sink.send(batchOf(messages(1, 3)), never);
    receiver.ending = 'reset';
    const thrown = await errorOf(sink.send(batchOf(messages(1, 3)), never));
    expect(codeOf(thrown)).toBe('sink_outcome_unknown');
    expect(messageOf(thrown)).not.toMatch(hint);
  });

  test('UDP does not wait for the look-up of its name when it is told to stop', async () => {
    const stop = new AbortController();
    const reason = new Error('stopping');
    const opening = syslog.open(settingsOf('udp://receiver.invalid:514'), contextOf('siem'), new ModelKept(), stop.signal);
    stop.abort(reason);
    expect(await errorOf(opening)).toBe(reason);
  });

  test('UDP reports a name that does not resolve', async () => {
    const address = 'udp://receiver.invalid:514';
    const thrown = await errorOf(opened(address));
    expect(codeOf(thrown)).toBe('sink_unavailable');
    expect(messageOf(thrown)).toMatch(/^cannot reach "udp:\/\/receiver\.invalid:514" for sink "siem": getaddrinfo E/);
    expect(await syslog.check(settingsOf(address), contextOf('siem'), never)).toMatchObject([
      { level: 'error', message: expect.stringContaining('getaddrinfo') as string, setting: 'sinks.siem.address' },
    ]);
  });
});

describe('RELP', () => {
  test('responses are matched by their numbers, in any order', async () => {
    await using receiver = await new RelpReceiver().listen();
    receiver.reversed = 10;
    receiver.answer = (_frame, { text }) => ([3, 17].includes((JSON.parse(text) as { seq: number }).seq) ? '500 disk full' : '200 OK');
    await using sink = await opened(`relp://127.0.0.1:${receiver.port}`);
    const first = await sink.send(batchOf(messages(1, 30)), never);
    expect(first).toMatchObject({
      rejections: [],
      retryable: { code: 'sink_unavailable', seqs: [3, 17], message: expect.stringContaining('500 disk full') as string },
    });
    // The delivery loop counts how often this may repeat.
    expect(first.retryable).toMatchObject({ suspects: [3, 17], reasons: [{ seq: 3, code: '500' }, { seq: 17 }] });
  });

  test('each response reports progress: the number of accepted messages from the first on without a break', async () => {
    await using receiver = await new RelpReceiver().listen();
    receiver.answer = (_frame, { text }) => ((JSON.parse(text) as { seq: number }).seq === 5 ? '500 disk full' : '200 OK');
    await using sink = await opened(`relp://127.0.0.1:${receiver.port}`);
    const heard: number[] = [];
    await sink.send(batchOf(messages(1, 8)), never, (certain) => heard.push(certain));
    expect(heard).toEqual([1, 2, 3, 4, 4, 4, 4, 4]);
  });

  test('rejections after the last accepted message are a fault of the receiver, not of the messages', async () => {
    await using receiver = await new RelpReceiver().listen();
    receiver.answer = (_frame, { text }) => {
      const { seq } = JSON.parse(text) as { seq: number };
      return seq === 3 || seq > 20 ? '500 disk full' : '200 OK';
    };
    await using sink = await opened(`relp://127.0.0.1:${receiver.port}`);
    const some = await sink.send(batchOf(messages(1, 30)), never);
    expect(some.retryable).toMatchObject({ suspects: [3], seqs: [3, ...messages(21, 30).map(({ seq }) => seq)] });
    const none = await sink.send(batchOf(messages(21, 30)), never);
    expect(none.retryable).toMatchObject({ suspects: [] });
  });

  test('the client sends nothing before the response to open, and nothing to a receiver without syslog', async () => {
    await using receiver = await new RelpReceiver().listen();
    const address = `relp://127.0.0.1:${receiver.port}`;
    await using sink = await opened(address);
    await sink.send(batchOf(messages(1, 300)), never);
    expect({ errors: receiver.errors, isEager: receiver.isEager, count: receiver.messages.length }).toEqual({
      errors: [],
      isEager: false,
      count: 300,
    });
    for (const opening of ['200 OK\nrelp_version=0\ncommands=eventlog', '500 no', '200 OK\nrelp_version=9\ncommands=syslog']) {
      receiver.opening = opening;
      expect(codeOf(await errorOf(opened(address)))).toBe('sink_blocked');
    }
  });

  test('after 999,999,999, numbers start again with 1', async () => {
    await using receiver = await new RelpReceiver().listen();
    const server = `127.0.0.1:${receiver.port}`;
    const { connect } = await import('node:net');
    const socket = connect(receiver.port, '127.0.0.1');
    await once(socket, 'connect');
    const session = new RelpSession(socket, server, 999_999_998);
    await session.open();
    const frames = messages(1, 4).map(({ bytes }) => ({ header: '<134>1 - h a p m - ', bytes }));
    expect((await session.send(frames)).map(({ code }) => code)).toEqual([200, 200, 200, 200]);
    expect(receiver.numbers).toEqual([999_999_998, 999_999_999, 1, 2, 3]);
    expect(receiver.errors).toEqual([]);
    await session.close();
  });

  test('writes the messages of a batch together: one system call, not one for each', async () => {
    await using receiver = await new RelpReceiver().listen();
    const { connect } = await import('node:net');
    const socket = connect(receiver.port, '127.0.0.1');
    await once(socket, 'connect');
    const session = new RelpSession(socket, '"relp://siem" of sink "siem"');
    await session.open();
    const together: number[] = [];
    const writev = socket._writev?.bind(socket);
    socket._writev = (chunks, done) => {
      together.push(chunks.length);
      writev?.(chunks, done);
    };
    await session.send(messages(1, 100).map(({ bytes }) => ({ header: '<134>1 - h a p m - ', bytes })));
    expect(together).toEqual([100]);
    expect(receiver.errors).toEqual([]);
    await session.close();
  });

  test('after the server closed the session, unanswered messages are unknown', async () => {
    await using receiver = await new RelpReceiver().listen();
    await using sink = await opened(`relp://127.0.0.1:${receiver.port}`);
    let taken = 0;
    receiver.answer = () => ((taken += 1) <= 5 ? '200 OK' : undefined);
    expect(codeOf(await errorOf(sink.send(batchOf(messages(1, 20)), never)))).toBe('sink_outcome_unknown');
  });

  test('a receiver that ends the session at a message above its limit: the earlier ones are certain, and the message names maxBytes', async () => {
    await using receiver = await new RelpReceiver().listen();
    receiver.maxBytes = 2_048;
    await using sink = await opened(`relp://127.0.0.1:${receiver.port}`);
    const batch = messages(1, 10).map((each) => (each.seq === 6 ? message(6, 'x'.repeat(2_900)) : each));
    const heard: number[] = [];
    const thrown = await errorOf(sink.send(batchOf(batch), never, (certain) => heard.push(certain)));
    expect(codeOf(thrown)).toBe('sink_outcome_unknown');
    expect(messageOf(thrown)).toMatch(
      /closes the session; a message of 29\d\d bytes may be longer than the receiver accepts \(sinks\.siem\.maxBytes\)$/,
    );
    expect(heard.at(-1)).toBe(5);
  });

  test.each([
    'HTTP/1.1 400 Bad Request\r\n\r\n',
    '1 rsp 99999999 x',
    '1 rsp 6 200 OKx',
    '7 rsp 6 200 OK\n',
    '1 syslog 0\n',
    '\0\0\0\0'.repeat(40),
  ])('a receiver that says %j does not speak RELP', async (nonsense) => {
    const server = createServer((socket) => {
      socket.on('error', () => undefined).resume();
      socket.write(nonsense);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const thrown = await errorOf(opened(`relp://127.0.0.1:${(server.address() as AddressInfo).port}`));
    expect(codeOf(thrown)).toBe('sink_unavailable');
    expect(messageOf(thrown)).toMatch(/does not speak RELP|answers with 99999999 bytes/);
    server.close();
  });
});

describe('check', () => {
  const find = async (settings: Settings) => syslog.check(settings, contextOf('siem', { ca: pem(authority.cert) }), never);

  test('reports the findings', async () => {
    await using receiver = await new StreamReceiver('octet-counting', served).listen();
    expect(await find(settingsOf(`tls://127.0.0.1:${receiver.port}`))).toMatchObject([
      {
        level: 'ok',
        message: expect.stringMatching(
          /ends a connection that Waybill ended, certificate of 'receiver' issued by 'Example root'/,
        ) as string,
      },
    ]);
  });

  test.each(['tcp', 'tls'])('reports an error for a receiver by %s that ends each connection', async (scheme) => {
    await using receiver = await new StreamReceiver('octet-counting', scheme === 'tls' ? served : undefined).listen();
    receiver.ending = 'end at once';
    const address = `${scheme}://127.0.0.1:${receiver.port}`;
    const message = expect.stringContaining('ends the connection before Waybill sends anything') as string;
    const setting = (plainSetting: string): string => `sinks.siem.${scheme === 'tls' ? 'tls.cert' : plainSetting}`;
    expect(await find(settingsOf(address))).toMatchObject([{ level: 'error', message, setting: setting('confirm') }]);
    expect((await find(settingsOf(address, { confirm: 'none' })))[0]).toMatchObject({ level: 'error', setting: setting('address') });
  });

  test('an empty line shows a receiver that counts octets, and is no message for one that expects lines', async () => {
    await using counting = await new StreamReceiver('octet-counting').listen();
    const settings = settingsOf(`tcp://127.0.0.1:${counting.port}`, { framing: 'newline' });
    expect(await find(settings)).toMatchObject([{ level: 'error', setting: 'sinks.siem.framing' }]);
    await using sink = await opened(settings.address, { framing: 'newline' });
    expect(messageOf(await errorOf(sink.send(batchOf(messages(1, 3)), never)))).toContain(
      'it may expect framing: octet-counting (sinks.siem.framing)',
    );
    await using lines = await new StreamReceiver('newline').listen();
    expect(await find({ ...settings, address: `tcp://127.0.0.1:${lines.port}` })).toMatchObject([{ level: 'ok' }]);
    expect(lines).toMatchObject({ messages: [], errors: [] });
  });

  test('says what the end of a connection confirms, and finds a proxy that ends it late', async () => {
    await using receiver = await new StreamReceiver().listen();
    const address = `tcp://127.0.0.1:${receiver.port}`;
    expect((await find(settingsOf(address)))[0]?.message).toMatch(
      /only if no proxy or load balancer stands before the receiver; relp:\/\/ confirms/,
    );
    let advanced = 0;
    const clock: Clock = { ...systemClock, monotonic: () => systemClock.monotonic() + advanced };
    receiver.onEnd = () => void (advanced += 3_000);
    expect(await syslog.check(settingsOf(address, { framing: 'newline' }), contextOf('siem', { clock }), never)).toMatchObject([
      { level: 'error', setting: 'sinks.siem.framing' },
    ]);
    await using lines = await new StreamReceiver('newline').listen();
    lines.onEnd = () => void (advanced += 3_000);
    const late = settingsOf(`tcp://127.0.0.1:${lines.port}`, { framing: 'newline' });
    expect(await syslog.check(late, contextOf('siem', { clock }), never)).toMatchObject([
      {
        level: 'error',
        setting: 'sinks.siem.confirm',
        message: expect.stringContaining('as a proxy does whose receiver is down') as string,
      },
    ]);
  });

  test('names the setting that weakens the guarantee or prevents delivery', async () => {
    await using receiver = await new UdpReceiver().listen();
    expect(await find(settingsOf(`udp://127.0.0.1:${receiver.port}`))).toMatchObject([{ level: 'warning', setting: 'sinks.siem.address' }]);
    await using stream = await new StreamReceiver().listen();
    expect(await find(settingsOf(`tcp://127.0.0.1:${stream.port}`, { confirm: 'none' }))).toMatchObject([
      { level: 'ok' },
      { level: 'warning', setting: 'sinks.siem.confirm' },
    ]);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, 'close');
    const narrow = settingsOf(`relp://127.0.0.1:${port}`, { maxBytes: 480, hostname: 'h'.repeat(255) });
    expect(syslog.checkSettings?.(narrow, 'siem')).toMatchObject([{ level: 'error', setting: 'sinks.siem.maxBytes' }]);
    expect(await find(narrow)).toMatchObject([{ level: 'error', message: expect.stringContaining('ECONNREFUSED') as string }]);
  });
});
