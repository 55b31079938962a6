/**
 * Requests to the HTTP Event Collector. Cookies are kept: behind a load balancer, one server has the data and knows its acknowledgement.
 */
import { within } from '../../time/deadline.ts';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { Connection, type Route } from '../../connect/connection.ts';
import { plainPort } from '../../connect/plain-port.ts';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';
import { version } from '../../disk/version.ts';
import type { SinkContext } from '../define.ts';
import { baseOf, maxRequests, type SplunkHecSettings } from './settings.ts';

/** Time limit in ms for connecting, and for a request until the end of its response. */
const requestMs = 30_000;
/** Maximum bytes to read: a response is a line of JSON, and the beginning of a proxy's page is enough. */
const maxAnswerBytes = 64 * 1024;

const compressed = promisify(gzip);

export interface HecAnswer {
  readonly status: number;
  readonly body: string;
  readonly mediaType: string | string[] | undefined;
  /** `Retry-After` in ms. */
  readonly retryAfterMs: number | undefined;
}

export class HecClient implements AsyncDisposable {
  readonly #settings: SplunkHecSettings;
  readonly #id: string;
  readonly #clock: Clock;
  readonly #connection: Connection;
  readonly #cookies = new Map<string, string>();
  #isClosed = false;

  constructor(settings: SplunkHecSettings, { id, clock, ca, proxy, shown }: SinkContext) {
    this.#settings = settings;
    this.#id = id;
    this.#clock = clock;
    this.#connection = new Connection({
      setting: `sinks.${id}`,
      url: baseOf(settings),
      urlSetting: `sinks.${id}.url`,
      tls: settings.tls,
      sharedCa: ca,
      proxy: settings.proxy === 'none' ? undefined : (settings.proxy ?? proxy),
      timeoutMs: requestMs,
      shown,
      connections: maxRequests(settings),
    });
  }

  route(): Route {
    return this.#connection.route();
  }

  /**
   * Posts a body to `/services/collector/…` and reads the response.
   * @param channel  set for requests that need one
   * @throws WaybillError `sink_unavailable` or `sink_blocked` if nothing was sent, else `sink_outcome_unknown`; or the reason of the signal
   */
  async post(endpoint: string, body: Uint8Array, channel: string | undefined, signal: AbortSignal): Promise<HecAnswer> {
    const zipped = body.length === 0 ? body : await compressed(body);
    return this.#exchange('POST', endpoint, zipped, channel, signal);
  }

  async health(signal: AbortSignal): Promise<HecAnswer> {
    return this.#exchange('GET', 'health', undefined, undefined, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#connection[Symbol.asyncDispose]();
  }

  async #exchange(
    method: 'GET' | 'POST',
    endpoint: string,
    body: Uint8Array | undefined,
    channel: string | undefined,
    signal: AbortSignal,
  ): Promise<HecAnswer> {
    signal.throwIfAborted();
    const where = `cannot send to "${baseOf(this.#settings)}" for sink "${this.#id}"`;
    const late = (): WaybillError =>
      new WaybillError('sink_outcome_unknown', `${where}: no complete response within ${requestMs / 1000} s`);
    const authorization = `Splunk ${this.#readToken()}`;
    const ask = async (stop: AbortSignal): Promise<HecAnswer> => {
      const head = await this.#connection.request(`${baseOf(this.#settings)}/services/collector/${endpoint}`, {
        method,
        headers: {
          authorization,
          'user-agent': `waybill/${version}`,
          ...(body === undefined || body.length === 0 ? {} : { 'content-type': 'application/json', 'content-encoding': 'gzip' }),
          ...(channel === undefined ? {} : { 'x-splunk-request-channel': channel }),
          ...(this.#cookies.size === 0 ? {} : { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') }),
        },
        body: body ?? null,
        signal: stop,
      });
      this.#keepCookies(head.headers['set-cookie']);
      const text = await readBegin(head.body);
      // The next request uses a replaced token.
      if (head.statusCode === 401 || head.statusCode === 403) this.#settings.token.refresh();
      return {
        status: head.statusCode,
        body: text,
        mediaType: head.headers['content-type'],
        retryAfterMs: this.#waitOf(head.headers['retry-after']),
      };
    };
    const translated = (stop: AbortSignal): Promise<HecAnswer> =>
      ask(stop).catch((thrown: unknown) => {
        signal.throwIfAborted();
        throw this.#translated(thrown, where);
      });
    return within(translated, requestMs, late, this.#clock, signal);
  }

  #readToken(): string {
    try {
      return this.#settings.token.read();
    } catch (cause) {
      throw new WaybillError('sink_blocked', `cannot send for sink "${this.#id}": ${messageOf(cause)}`, { cause });
    }
  }

  /** An error of the connection means that nothing was sent; any other error may follow a complete request. */
  #translated(thrown: unknown, where: string): WaybillError {
    const known = this.#connection.translate(thrown);
    const plain = plainPort(known);
    if (plain !== undefined) return new WaybillError('sink_blocked', `${where}: ${plain}; see sinks.${this.#id}.url`);
    const isPlain = this.#settings.url.startsWith('http:') && !(thrown instanceof WaybillError);
    const hint = isPlain ? `; sinks.${this.#id}.url begins with http: perhaps the port speaks TLS` : '';
    const message = `${where}: ${messageOf(known)}${hint}`;
    if (known.code !== 'source_unreachable') return new WaybillError('sink_blocked', message, { cause: known });
    return new WaybillError(thrown instanceof WaybillError ? 'sink_unavailable' : 'sink_outcome_unknown', message, { cause: known });
  }

  #keepCookies(given: string | string[] | undefined): void {
    for (const cookie of typeof given === 'string' ? [given] : (given ?? [])) {
      const [, name, value] = /^\s*([^=;\s]+)=([^;]*)/.exec(cookie) ?? [];
      if (name !== undefined && value !== undefined) this.#cookies.set(name, value.trim());
    }
  }

  /** Seconds or a date (RFC 9110 section 10.2.3). */
  #waitOf(given: string | string[] | undefined): number | undefined {
    if (typeof given !== 'string') return undefined;
    const ms = /^\s*\d+\s*$/.test(given) ? Number(given) * 1000 : Date.parse(given) - this.#clock.now();
    return Number.isNaN(ms) ? undefined : ms;
  }
}

async function readBegin(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body) {
    if (bytes < maxAnswerBytes) chunks.push(chunk);
    bytes += chunk.length;
  }
  return Buffer.concat(chunks).toString('utf8');
}
