/**
 * Syslog, RFC 5424, over UDP, TCP, TLS or RELP. Only RELP has acknowledgements; over TCP and TLS a batch is a connection that the receiver
 * has read to its end (`confirm: close`), since writing without error says nothing about what was read.
 */
import { createSocket } from 'node:dgram';
import type { Socket as UdpSocket } from 'node:dgram';
import { isIP } from 'node:net';
import { hostname } from 'node:os';
import { z } from 'zod';
import { line, text } from '../config/values.ts';
import { plain } from '../connect/quote.ts';
import { tlsSettings } from '../connect/settings.ts';
import { codeOf, WaybillError, wordsOf } from '../errors.ts';
import type { Batch, Clock, Message, Rejection, Sink, Taken } from '../model.ts';
import { defineSink } from './define.ts';
import type { Finding, Guarantee, SinkContext } from './define.ts';
import { facilities, frame, Header, headerBytes } from './syslog-message.ts';
import type { Facility, Framing, HeaderSettings } from './syslog-message.ts';
import { firstLine, RelpSession } from './syslog-relp.ts';
import { Dialer, happened, sendQueueEmpty, written } from './syslog-socket.ts';
import type { Line } from './syslog-socket.ts';

const addressPattern = /^(udp|tcp|tls|relp|relp\+tls):\/\/(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]+)):([0-9]{1,5})$/;

const config = z.strictObject({
  address: text(addressPattern, 'an address such as tls://siem.example:6514, tcp://…, udp://…, relp://… or relp+tls://…').describe(
    'Where the receiver listens: `udp://`, `tcp://`, `tls://`, `relp://` or `relp+tls://`, host and port',
  ),
  framing: z
    .enum(['octet-counting', 'newline'])
    .default('octet-counting')
    .describe(
      'How messages are told apart over TCP and TLS: by their length (RFC 6587), or `newline` for SC4S, Splunk TCP inputs and many appliances',
    ),
  facility: z
    .enum(Object.keys(facilities) as [Facility, ...Facility[]])
    .default('local4')
    .describe('Facility of each message'),
  appName: line().default('waybill').describe('APP-NAME of each message'),
  hostname: line().optional().describe('HOSTNAME of each message; default the name of this machine'),
  enterpriseId: z
    .int()
    .min(1)
    .max(4_294_967_295)
    .optional()
    .describe('Private enterprise number under which uid, number and source are sent as structured data'),
  confirm: z
    .enum(['close', 'none'])
    .default('close')
    .describe(
      'Over TCP and TLS: `close` ends the connection with each batch and waits until the receiver has read all of it; `none` for receivers that dislike new connections',
    ),
  maxBytes: z
    .int()
    .min(480)
    .max(1_048_576)
    .optional()
    .describe(
      'Bytes of a message at most, header and all; longer ones are shortened. Default 2048 by UDP, else 8096: the limit of an rsyslog that was told none',
    ),
  tls: tlsSettings.optional(),
  fingerprint: text(/^(?:[0-9A-Fa-f]{2}:?){32}$/, 'the SHA-256 of a certificate in hex')
    .optional()
    .describe('SHA-256 of the certificate that the receiver must show, whoever issued it; in place of `tls.ca`'),
});

type SyslogConfig = z.output<typeof config>;

type Scheme = 'udp' | 'tcp' | 'tls' | 'relp' | 'relp+tls';

/** How long the receiver may take to end its side once ours is ended, ms. */
const closeMs = 10_000;
/** How long a receiver of RELP may take to answer that a session is closed, ms: everything is acknowledged by then. */
const closeSessionMs = 1_000;
/** Datagrams a millisecond. */
const burstMost = 20;
/** Messages of which the receiver says three times that it cannot take them are refused. */
const triesMost = 3;

export const syslog = defineSink('syslog', {
  summary: 'a syslog receiver, by UDP, TCP, TLS or RELP',
  config,
  formats: ['cef', 'ecs', 'raw'],
  batch: { records: 5_000, bytes: 8 * 1024 * 1024, wait: 5_000 },
  resolvable: false,
  deadline: 90_000,
  messageBytes: (settings) => frameBytes(settings) - headerBytes(headerOf(settings)),
  // Hosts may change, and a receiver knows no other place.
  destination: () => 'syslog',
  guarantee: ({ address, confirm }) => guarantees(schemeOf(address), confirm),
  check: (settings, context, signal) => check(settings, context, signal),
  async open(settings, context, _kept, signal) {
    switch (schemeOf(settings.address)) {
      case 'udp':
        return DatagramSink.open(settings, context, signal);
      case 'relp':
      case 'relp+tls':
        return RelpSink.open(settings, context, signal);
      default:
        return StreamSink.open(settings, context, signal);
    }
  },
});

function guarantees(scheme: Scheme, confirm: SyslogConfig['confirm']): Guarantee {
  if (scheme === 'udp') return { delivery: 'at most once', duplicates: 'one batch after a crash', losses: 'unknown: nobody answers' };
  if (scheme === 'relp' || scheme === 'relp+tls')
    return { delivery: 'at least once', duplicates: 'one batch per reconnect', losses: '0 to the receiver; its own queue must be on disk' };
  if (confirm === 'none')
    return { delivery: 'best effort', duplicates: 'one batch', losses: 'what lies in buffers and on the wire: 240 KB to 4 MB a break' };
  return {
    delivery: 'at least once',
    duplicates: 'one batch (a connection)',
    losses: '0 to a receiver that reads to the end; one that closes by itself at that very moment may lose what it had not read',
  };
}

/** Bytes of header and message together. */
function frameBytes({ address, maxBytes }: SyslogConfig): number {
  return maxBytes ?? (schemeOf(address) === 'udp' ? 2_048 : 8_096);
}

function schemeOf(address: string): Scheme {
  return (addressPattern.exec(address)?.[1] ?? 'tcp') as Scheme;
}

function headerOf(settings: SyslogConfig): HeaderSettings {
  const { facility, appName, enterpriseId } = settings;
  return { facility, appName, enterpriseId, hostname: settings.hostname ?? hostname(), processId: process.pid };
}

function dialerOf(settings: SyslogConfig, { id, ca }: SinkContext): Dialer {
  const { address, tls, fingerprint } = settings;
  const [, scheme = '', bracketed, name = '', port] = addressPattern.exec(address) ?? [];
  return new Dialer({
    id,
    address,
    host: bracketed ?? name,
    port: Number(port),
    isSecure: scheme.endsWith('tls'),
    tls,
    fingerprint: fingerprint?.replaceAll(':', '').toLowerCase(),
    ca,
  });
}

/** The frames of a batch, each with its header. */
function framesOf(messages: readonly Message[], header: Header, framing: Framing): Uint8Array[] {
  return messages.map((message) => frame(framing, header.of(message), message.bytes));
}

/** TCP and TLS. */
class StreamSink implements Sink {
  readonly #settings: SyslogConfig;
  readonly #context: SinkContext;
  readonly #dialer: Dialer;
  readonly #header: Header;
  /** With `confirm: none` it stays from batch to batch. */
  #line: Line | undefined;

  /** One connection is made and ended: what cannot be reached is known before the first batch. */
  static async open(settings: SyslogConfig, context: SinkContext, signal: AbortSignal): Promise<StreamSink> {
    const sink = new StreamSink(settings, context);
    const line = await sink.#dialer.connect(signal);
    if (settings.confirm === 'none') sink.#keep(line);
    else hangUp(line);
    return sink;
  }

  private constructor(settings: SyslogConfig, context: SinkContext) {
    this.#settings = settings;
    this.#context = context;
    this.#dialer = dialerOf(settings, context);
    this.#header = new Header(headerOf(settings));
  }

  async send({ messages }: Batch, signal: AbortSignal): Promise<Taken> {
    const frames = framesOf(messages, this.#header, this.#settings.framing);
    if (this.#settings.confirm === 'close') await this.#confirmed(frames, signal);
    else await this.#written(frames, signal);
    return { rejections: [] };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#line) hangUp(this.#line);
    this.#line = undefined;
  }

  /**
   * A batch is a connection. Taken: the kernel has sent everything, our end came first, and the receiver then ended its own side, in TLS and in
   * TCP, without an error. A receiver that closes with bytes unread makes a reset; one whose end comes first may have read less.
   */
  async #confirmed(frames: readonly Uint8Array[], signal: AbortSignal): Promise<void> {
    const { clock } = this.#context;
    const line = await this.#dialer.connect(signal);
    const { stream, tcp } = line;
    const over = new AbortController();
    const either = AbortSignal.any([signal, over.signal]);
    let isEnding = false;
    const fate = new Promise<void>((resolve, reject) => {
      stream.once('error', reject);
      tcp.once('error', reject);
      stream.once('end', () => {
        if (!isEnding) reject(new Error('the receiver closed the connection before it had everything'));
      });
      // The end of TCP, not of TLS alone: what was closed with bytes unread is reset here.
      tcp.once('end', () => {
        if (isEnding) resolve();
        else reject(new Error('the receiver closed the connection before it had everything'));
      });
      tcp.once('close', () => reject(new Error('connection closed')));
    });
    fate.catch(() => undefined);
    // What a receiver says is of no interest, but its end is only seen by who reads.
    stream.resume();
    try {
      await Promise.race([written(stream, frames, signal), fate]);
      await Promise.race([sendQueueEmpty(tcp, clock, either), fate]);
      isEnding = true;
      stream.end();
      const late = clock.sleep(closeMs, either).then(() => {
        throw new Error(`the receiver did not end the connection within ${closeMs / 1_000} s`);
      });
      late.catch(() => undefined);
      await Promise.race([fate, late]);
    } catch (thrown) {
      signal.throwIfAborted();
      throw await this.#dialer.ended(thrown, line, clock);
    } finally {
      over.abort(new WaybillError('aborted', 'the connection is over'));
      stream.destroy();
      tcp.destroy();
    }
  }

  async #written(frames: readonly Uint8Array[], signal: AbortSignal): Promise<void> {
    const line = this.#line ?? this.#keep(await this.#dialer.connect(signal));
    try {
      await written(line.stream, frames, signal);
    } catch (thrown) {
      this.#line = undefined;
      const cause = signal.aborted ? thrown : await this.#dialer.ended(thrown, line, this.#context.clock);
      hangUp(line);
      signal.throwIfAborted();
      throw cause;
    }
  }

  /** A connection that ends between two batches is replaced with the next one. */
  #keep(line: Line): Line {
    const forget = (): void => {
      if (this.#line === line) this.#line = undefined;
      hangUp(line);
    };
    line.stream.resume().on('error', forget).on('end', forget).on('close', forget);
    this.#line = line;
    return line;
  }
}

function hangUp({ stream, tcp }: Line): void {
  stream.destroy();
  tcp.destroy();
}

class RelpSink implements Sink {
  readonly #id: string;
  readonly #clock: Clock;
  readonly #header: Header;
  readonly #line: Line;
  readonly #session: RelpSession;
  readonly #tries = new Map<number, number>();

  static async open(settings: SyslogConfig, context: SinkContext, signal: AbortSignal): Promise<RelpSink> {
    const dialer = dialerOf(settings, context);
    const line = await dialer.connect(signal);
    const session = new RelpSession(line.stream, `"${settings.address}" of sink "${context.id}"`);
    const abort = (): void => hangUp(line);
    signal.addEventListener('abort', abort, { once: true });
    try {
      await session.open();
    } catch (thrown) {
      hangUp(line);
      signal.throwIfAborted();
      if (codeOf(thrown) === 'sink_blocked') throw thrown;
      // Before the first message nothing can have been taken.
      const cause = dialer.translate(thrown instanceof WaybillError && thrown.cause !== undefined ? thrown.cause : thrown);
      throw cause.code === 'sink_blocked' ? cause : new WaybillError('sink_again', wordsOf(thrown), { cause });
    } finally {
      signal.removeEventListener('abort', abort);
    }
    return new RelpSink(settings, context, line, session);
  }

  private constructor(settings: SyslogConfig, { id, clock }: SinkContext, line: Line, session: RelpSession) {
    this.#id = id;
    this.#clock = clock;
    this.#header = new Header(headerOf(settings));
    this.#line = line;
    this.#session = session;
  }

  async send({ messages }: Batch, signal: AbortSignal): Promise<Taken> {
    const abort = (): void => hangUp(this.#line);
    signal.addEventListener('abort', abort, { once: true });
    try {
      const answers = await this.#session.send(messages.map((message) => frame('datagram', this.#header.of(message), message.bytes)));
      return this.#judge(messages, answers);
    } finally {
      signal.removeEventListener('abort', abort);
    }
  }

  /** Every message was answered: those that were not taken are sent again, and refused for good after three tries. */
  #judge(messages: readonly Message[], answers: readonly { code: number; words: string }[]): Taken {
    const rejections: Rejection[] = [];
    const again: number[] = [];
    let said = '';
    messages.forEach(({ seq }, i) => {
      const { code, words } = answers[i] ?? { code: 0, words: '' };
      if (code === 200) {
        this.#tries.delete(seq);
        return;
      }
      const tries = (this.#tries.get(seq) ?? 0) + 1;
      said = `${code} ${plain(firstLine(words), 200)}`;
      if (tries < triesMost) {
        this.#tries.set(seq, tries);
        again.push(seq);
      } else {
        this.#tries.delete(seq);
        rejections.push({ seq, code: String(code), words: `the receiver of sink "${this.#id}" answers ${said}` });
      }
    });
    return again.length === 0
      ? { rejections }
      : { rejections, again: { code: 'sink_again', seqs: again, words: `the receiver of sink "${this.#id}" answers ${said}` } };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#session.isOver) return;
    const closed = this.#session.close().catch(() => undefined);
    const over = new AbortController();
    await Promise.race([closed, this.#clock.sleep(closeSessionMs, over.signal).catch(() => undefined)]);
    over.abort(new WaybillError('aborted', 'the session is over'));
    hangUp(this.#line);
  }
}

class DatagramSink implements Sink {
  readonly #id: string;
  readonly #address: string;
  readonly #socket: UdpSocket;
  readonly #clock: Clock;
  readonly #header: Header;

  static async open(settings: SyslogConfig, context: SinkContext, signal: AbortSignal): Promise<DatagramSink> {
    const [, , bracketed, name = '', port] = addressPattern.exec(settings.address) ?? [];
    const host = bracketed ?? name;
    signal.throwIfAborted();
    const socket = createSocket({ type: isIP(host) === 6 ? 'udp6' : 'udp4' });
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject);
        socket.connect(Number(port), host, () => resolve());
      });
    } catch (cause) {
      socket.close();
      throw new WaybillError('sink_again', `cannot reach "${settings.address}" for sink "${context.id}": ${wordsOf(cause)}`, { cause });
    }
    return new DatagramSink(settings, context, socket);
  }

  private constructor(settings: SyslogConfig, { id, clock }: SinkContext, socket: UdpSocket) {
    this.#id = id;
    this.#clock = clock;
    this.#address = settings.address;
    this.#socket = socket;
    this.#header = new Header(headerOf(settings));
    // "Port unreachable" may come at any time; the next send tells it.
    socket.on('error', () => undefined);
  }

  async send({ messages }: Batch, signal: AbortSignal): Promise<Taken> {
    for (const [i, message] of messages.entries()) {
      // A burst is lost in the receiver's buffer, and nobody says so.
      if (i % burstMost === burstMost - 1) await this.#clock.sleep(1, signal);
      await this.#sent(frame('datagram', this.#header.of(message), message.bytes));
    }
    return { rejections: [] };
  }

  #sent(datagram: Uint8Array): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#socket.send(datagram, (cause) => {
        if (cause === null) resolve();
        else
          reject(new WaybillError('sink_unknown', `cannot send to "${this.#address}" of sink "${this.#id}": ${wordsOf(cause)}`, { cause }));
      });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await new Promise<void>((resolve) => {
      try {
        this.#socket.close(() => resolve());
      } catch {
        // It is closed already.
        resolve();
      }
    });
  }
}

/** Ports on which one framing is usual: a wrong one makes one endless message of everything, or many of one. */
const newlinePorts: ReadonlySet<number> = new Set([514, 601]);

async function check(settings: SyslogConfig, context: SinkContext, signal: AbortSignal): Promise<Finding[]> {
  const { address, framing, confirm, fingerprint, tls } = settings;
  const { id } = context;
  const scheme = schemeOf(address);
  const findings: Finding[] = [];
  const setting = `sinks.${id}.address`;
  const isStream = scheme === 'tcp' || scheme === 'tls';
  if (frameBytes(settings) - headerBytes(headerOf(settings)) < 200)
    findings.push({
      level: 'error',
      words: `leaves ${frameBytes(settings) - headerBytes(headerOf(settings))} bytes for the message itself`,
      setting: `sinks.${id}.maxBytes`,
    });
  if (!scheme.endsWith('tls') && (tls !== undefined || fingerprint !== undefined))
    findings.push({ level: 'warning', words: `"${address}" is not encrypted: tls and fingerprint have no effect`, setting });
  const port = Number(addressPattern.exec(address)?.[4]);
  if (isStream && framing === 'octet-counting' && newlinePorts.has(port))
    findings.push({
      level: 'warning',
      words: `receivers on port ${port} often expect framing: newline (SC4S, Splunk TCP inputs)`,
      setting: `sinks.${id}.framing`,
    });
  try {
    if (scheme === 'udp') {
      const sink = await DatagramSink.open(settings, context, signal);
      await sink[Symbol.asyncDispose]();
      findings.push({ level: 'warning', words: `"${address}" is resolved; whether anybody listens cannot be told by UDP`, setting });
    } else if (isStream) {
      findings.push(await checkStream(settings, context, signal));
      if (confirm === 'none')
        findings.push({ level: 'warning', words: 'confirm: none: what a break loses is not known', setting: `sinks.${id}.confirm` });
    } else {
      const sink = await RelpSink.open(settings, context, signal);
      await sink[Symbol.asyncDispose]();
      findings.push({ level: 'ok', words: `"${address}" speaks RELP; "200" means its queue: see that this is on disk` });
    }
  } catch (thrown) {
    signal.throwIfAborted();
    findings.push({ level: 'error', words: wordsOf(thrown), setting });
  }
  return findings;
}

/** Opens and ends an empty connection, and says how the receiver ended its side. */
async function checkStream(settings: SyslogConfig, context: SinkContext, signal: AbortSignal): Promise<Finding> {
  const dialer = dialerOf(settings, context);
  const line = await dialer.connect(signal);
  const { stream, tcp } = line;
  const { address } = settings;
  const { peer } = dialer;
  const shown = peer === undefined ? '' : `, certificate of '${peer.subject}' issued by '${peer.issuer}'`;
  const over = new AbortController();
  try {
    stream.resume();
    const ended = happened(tcp, 'end', signal);
    stream.end();
    const late = context.clock.sleep(closeMs, AbortSignal.any([signal, over.signal])).then(() => 'late' as const);
    late.catch(() => undefined);
    const seen = await Promise.race([ended.then(() => 'ended' as const), late]);
    if (seen === 'ended') return { level: 'ok', words: `"${address}" is reached, and ends a connection that we end${shown}` };
    const words = `"${address}" is reached${shown}, but keeps a connection that we end open for more than ${closeMs / 1_000} s: with confirm: close every batch would be sent again`;
    return settings.confirm === 'none'
      ? { level: 'ok', words: `"${address}" is reached${shown}` }
      : { level: 'error', words, setting: `sinks.${context.id}.confirm` };
  } catch (thrown) {
    throw await dialer.ended(thrown, line, context.clock);
  } finally {
    over.abort(new WaybillError('aborted', 'the connection is over'));
    hangUp(line);
  }
}
