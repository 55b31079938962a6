/**
 * A model of Splunk's HTTP Event Collector. Sources: its reply codes (gjanders/SplunkAdmins
 * `splunkadmins_hec_reply_code_lookup.csv`), Splunk's documentation ("Format events for HTTP Event
 * Collector", "About HTTP Event Collector Indexer Acknowledgment") and observed behaviour
 * (moby/moby issue 35862: the events before an invalid one are indexed). Shares no code with the
 * client.
 */
import { createServer as createHttp } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createHttps } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { gunzipSync } from 'node:zlib';
import type { KeyPair } from './certificates.ts';

export interface HecToken {
  readonly isDisabled?: boolean;
  readonly acknowledges?: boolean;
  /** The first is the default. */
  readonly indexes: readonly [string, ...string[]];
}

interface IndexedEvent {
  readonly index: string;
  readonly host: string | undefined;
  readonly source: string | undefined;
  readonly sourcetype: string | undefined;
  /** Seconds; undefined for lines, where Splunk parses the time from the text. */
  readonly time: number | undefined;
  readonly fields: Readonly<Record<string, unknown>>;
  /** The text, or the JSON of the event. */
  readonly text: string;
}

interface Reply {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

const texts: Readonly<Record<number, readonly [status: number, text: string]>> = {
  0: [200, 'Success'],
  1: [403, 'Token disabled'],
  2: [401, 'Token is required'],
  3: [401, 'Invalid authorization'],
  4: [403, 'Invalid token'],
  5: [400, 'No data'],
  6: [400, 'Invalid data format'],
  7: [400, 'Incorrect index'],
  8: [500, 'Internal server error'],
  9: [503, 'Server is busy'],
  10: [400, 'Data channel is missing'],
  11: [400, 'Invalid data channel'],
  12: [400, 'Event field is required'],
  13: [400, 'Event field cannot be blank'],
  14: [400, 'ACK is disabled'],
  15: [400, 'Error in handling indexed fields'],
  16: [400, 'Query string authorization is not enabled'],
  17: [200, 'HEC is healthy'],
  18: [503, 'HEC is unhealthy, queues are full'],
  23: [503, 'Server is shutting down'],
  24: [200, 'HEC queue is nearing capacity'],
  25: [200, 'HEC ACK channel is nearing capacity'],
  26: [429, 'HEC queue is at capacity'],
  27: [429, 'HEC ACK channel is at capacity'],
};

function replyOf(code: number, overrides: Readonly<Record<string, unknown>> = {}): Reply {
  const [status, text] = texts[code] ?? [500, 'no such code'];
  return { status, body: { text, code, ...overrides } };
}

/**
 * One acknowledgement: how many more queries return false; Infinity if the data was lost before the
 * index.
 */
interface Pending {
  asksLeft: number;
}

const guid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

export class HecModel implements AsyncDisposable {
  readonly tokens = new Map<string, HecToken>();
  readonly events: IndexedEvent[] = [];
  /** Accepted requests with data, with their size before and after compression. */
  readonly requests: { readonly path: string; readonly bytes: number; readonly sent: number; readonly channel: string | undefined }[] = [];
  /** The ids of each query for acknowledgements. */
  readonly asked: (readonly number[])[] = [];
  /** The largest request, bytes before compression. */
  limit = 100_000_000;
  /** How many queries return false before an acknowledgement. */
  asksUntilIndexed = 1;
  health = 17;
  /** The status with which a firewall in front of the collector answers a request with this text; it passes the others on. */
  firewall: (text: string) => number | undefined = () => undefined;
  /** The message for a well-formed event that is rejected (code 6). */
  refuses: Refuses = () => undefined;
  /**
   * The responses to the next requests with data, in order; `cut`: the request is accepted, and its
   * response lost.
   */
  readonly next: (number | 'cut' | { readonly status: number; readonly text: string } | { readonly code: number; readonly headers: Readonly<Record<string, string>> })[] = []; // prettier-ignore
  /** Sets a cookie, and knows the acknowledgements of a channel only with that cookie. */
  isSticky = false;
  isStalled = false;
  /**
   * Receivers other than Splunk, as recorded: the OpenTelemetry Collector without its `ack`
   * extension treats a query for acknowledgements as an event (400, code 12), fluent-bit has no
   * such path (400, plain text). Both respond to events on a channel with 200 and no `ackId`.
   */
  stranger: 'collector' | 'fluent-bit' | undefined;
  /** Real latency of each request. */
  answerMs = 0;
  /** A request waits until this is true. */
  mayAnswer = (): boolean => true;
  /** The most requests in progress at once. */
  underWayMost = 0;
  #underWay = 0;
  port = 0;
  readonly #channels = new Map<string, Map<number, Pending>>();
  #nextAck = 0;
  readonly #server;
  readonly #sockets = new Set<Socket>();

  constructor(tls?: KeyPair) {
    const answer = (request: IncomingMessage, response: ServerResponse): void => {
      this.#answer(request, response).catch((thrown: unknown) => response.destroy(thrown as Error));
    };
    this.#server = tls === undefined ? createHttp(answer) : createHttps({ cert: tls.cert, key: tls.key }, answer);
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('tlsClientError', () => undefined);
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    this.port = (this.#server.address() as AddressInfo).port;
    return this;
  }

  /** Restarts the server: it loses its channels and all data not yet indexed. */
  restart(): void {
    this.#channels.clear();
    for (const socket of this.#sockets) socket.destroy();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    if (this.isStalled) return;
    this.#underWay += 1;
    this.underWayMost = Math.max(this.underWayMost, this.#underWay);
    if (this.answerMs > 0) await new Promise((resolve) => setTimeout(resolve, this.answerMs));
    while (!this.mayAnswer()) await new Promise((resolve) => setTimeout(resolve, 2));
    this.#underWay -= 1;
    const sent = Buffer.concat(chunks);
    const url = new URL(request.url ?? '/', 'http://model');
    const reply = this.#reply(request, url, sent);
    if (reply === 'cut') return void response.destroy();
    const text = typeof reply.body['html'] === 'string' ? reply.body['html'] : JSON.stringify(reply.body);
    response.writeHead(reply.status, { 'content-type': 'application/json', ...reply.headers });
    response.end(text);
  }

  #reply(request: IncomingMessage, url: URL, sent: Buffer): Reply | 'cut' {
    const path = /^\/services\/collector\/(event|ack|health)(?:\/1\.0)?$/.exec(url.pathname)?.[1];
    if (path === undefined) return { status: 404, body: { text: 'The requested URL was not found on this server.', code: 404 } };
    if (path === 'health') return replyOf(this.health);
    const token = this.#tokenOf(request, url);
    if (typeof token === 'number') return replyOf(token);
    const given = request.headers['x-splunk-request-channel'] ?? url.searchParams.get('channel') ?? undefined;
    const channel = Array.isArray(given) ? given[0] : given;
    if (channel !== undefined && !guid.test(channel)) return replyOf(11);
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent;
    const stopped = this.firewall(body.toString());
    if (stopped !== undefined) return { status: stopped, body: { html: '<html>Request blocked</html>' } };
    if (path === 'ack' && this.stranger === 'collector') return replyOf(12);
    if (path === 'ack' && this.stranger === 'fluent-bit') return { status: 400, body: { html: 'error: invalid HTTP endpoint\n' } };
    if (path === 'ack') return this.#acknowledgements(request, token, channel, body);
    if (body.length === 0) return replyOf(token.acknowledges && channel === undefined ? 10 : 5);
    if (body.length > this.limit) return { status: 413, body: { html: '<html>Content-Length is too large</html>' } };
    if (channel === undefined && token.acknowledges) return replyOf(10);
    this.requests.push({ path, bytes: body.length, sent: sent.length, channel });
    return this.#take(token, channel, body);
  }

  /** The token, or the code of its error. */
  #tokenOf(request: IncomingMessage, url: URL): HecToken | number {
    if (url.searchParams.has('token')) return 16;
    const header = request.headers.authorization;
    if (header === undefined) return 2;
    const value = /^Splunk (\S+)$/.exec(header)?.[1];
    if (value === undefined) return 3;
    const token = this.tokens.get(value);
    if (token === undefined) return 4;
    return token.isDisabled ? 1 : token;
  }

  #take(token: HecToken, channel: string | undefined, body: Buffer): Reply | 'cut' {
    const fault = this.next.shift();
    if (typeof fault === 'object' && 'status' in fault) return { status: fault.status, body: { html: fault.text } };
    if (typeof fault === 'object') return { ...replyOf(fault.code), headers: fault.headers };
    if (fault !== undefined && fault !== 'cut' && ![0, 24, 25].includes(fault)) return replyOf(fault);
    const [found, code, words] = eventsOf(body, token, this.refuses);
    this.events.push(...found);
    if (code !== undefined) return replyOf(code, { ...(words === undefined ? {} : { text: words }), 'invalid-event-number': found.length });
    if (fault === 'cut') return 'cut';
    const cookie = this.isSticky ? { headers: { 'set-cookie': 'NODE=indexer-1; Path=/; HttpOnly' } } : {};
    if (!token.acknowledges || channel === undefined) return { ...replyOf(fault ?? 0), ...cookie };
    const ackId = this.#nextAck;
    this.#nextAck += 1;
    const pending = this.#channels.get(channel) ?? new Map<number, Pending>();
    pending.set(ackId, { asksLeft: this.asksUntilIndexed });
    this.#channels.set(channel, pending);
    return { ...replyOf(fault ?? 0, { ackId }), ...cookie };
  }

  /**
   * Each `true` is returned once and then forgotten; an unknown id is `false`, like data not yet
   * indexed.
   */
  #acknowledgements(request: IncomingMessage, token: HecToken, channel: string | undefined, body: Buffer): Reply {
    if (!token.acknowledges) return replyOf(14);
    if (channel === undefined) return replyOf(10);
    const { acks } = JSON.parse(body.toString('utf8')) as { acks: number[] };
    this.asked.push(acks);
    const isElsewhere = this.isSticky && !(request.headers.cookie ?? '').includes('NODE=indexer-1');
    const pending = isElsewhere ? undefined : this.#channels.get(channel);
    const answers = acks.map((id) => {
      const one = pending?.get(id);
      if (!one) return [String(id), false] as const;
      if (one.asksLeft > 0) {
        one.asksLeft -= 1;
        return [String(id), false] as const;
      }
      pending?.delete(id);
      return [String(id), true] as const;
    });
    return { status: 200, body: { acks: Object.fromEntries(answers) } };
  }
}

type Refuses = (event: unknown) => string | undefined;
/** The accepted events, the code of the first rejected event, and its message. */
type Found = readonly [events: IndexedEvent[], code: number | undefined, words?: string];

/** Parses consecutive JSON objects. Returns the events before the first malformed object, and the error code for it. */
function eventsOf(body: Buffer, token: HecToken, refuses: Refuses): Found {
  const events: IndexedEvent[] = [];
  for (const text of objectsIn(body.toString('utf8'))) {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      return [events, 6];
    }
    if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed)) return [events, 6];
    const value = parsed as Record<string, unknown>;
    const { event, fields = {}, index = token.indexes[0] } = value;
    const own = refuses(event);
    if (own !== undefined) return [events, 6, own];
    if (!('event' in value)) return [events, 12];
    if (event === null || event === '') return [events, 13];
    if (Object.values(fields as object).some((field) => typeof field === 'object')) return [events, 15];
    if (!token.indexes.includes(String(index))) return [events, 7];
    events.push({
      index: String(index),
      host: textOf(value['host']),
      source: textOf(value['source']),
      sourcetype: textOf(value['sourcetype']),
      time: typeof value['time'] === 'number' ? value['time'] : undefined,
      fields: fields as Record<string, unknown>,
      text: typeof event === 'string' ? event : JSON.stringify(event),
    });
  }
  return [events, undefined];
}

/** Splits after each object; an incomplete object is the last piece. */
function objectsIn(text: string): string[] {
  const pieces: string[] = [];
  let [depth, from, isQuoted] = [0, 0, false];
  for (let i = 0; i < text.length; i += 1) {
    const character = text[i];
    if (isQuoted) {
      if (character === '\\') i += 1;
      else if (character === '"') isQuoted = false;
    } else if (character === '"') isQuoted = true;
    else if (character === '{') depth += 1;
    else if (character === '}') {
      depth -= 1;
      if (depth === 0) {
        pieces.push(text.slice(from, i + 1).trim());
        from = i + 1;
      }
    }
  }
  const rest = text.slice(from).trim();
  return rest === '' ? pieces : [...pieces, rest];
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
