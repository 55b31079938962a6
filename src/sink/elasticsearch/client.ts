/** The client of Elasticsearch: one request gives one response, for any status. The library's own connections cannot use a proxy. */
import { gzip } from 'node:zlib';
import { promisify } from 'node:util';
import type { Client } from '@elastic/elasticsearch';
import { Connection, type Route } from '../../connect/connection.ts';
import { plainPort } from '../../connect/plain-port.ts';
import { WaybillError, codeOf, messageOf } from '../../errors/errors.ts';
import type { SinkContext } from '../define.ts';
import { errorFrom } from './items.ts';
import { membersOf } from '../../record/json-object.ts';
import type { ItemError } from './items.ts';
import { authorizationOf, nodesOf, type ElasticsearchSettings } from './settings.ts';

interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'HEAD';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly json?: unknown;
  /** Lines of JSON, for `_bulk`; sent compressed. */
  readonly lines?: Buffer;
}

export interface Answer {
  readonly status: number;
  /** An empty object if the body is not a JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The error of a response other than 2xx. */
  readonly error: ItemError | undefined;
  readonly retryAfterMs: number | undefined;
  /** The response has the product header that Elasticsearch sends with every response. */
  readonly isElasticsearch: boolean;
}

/** Versions 8 and 9 accept these media types; version 8 rejects a client that names 9. */
const json = 'application/vnd.elasticsearch+json; compatible-with=8';
const ndjson = 'application/vnd.elasticsearch+x-ndjson; compatible-with=8';

/** TCP, proxy and TLS together. */
const connectMs = 5_000;
/** Larger than any response to 10,000 items. */
const maxAnswerBytes = 64 * 1024 * 1024;
const compressed = promisify(gzip);
/** Required by the client's error classes; this sink keeps none of these errors. */
const redaction = { redaction: { type: 'remove' as const } };

export class ElasticClient implements AsyncDisposable {
  readonly #client: Client;
  readonly #ways: readonly Connection[];
  readonly #settings: ElasticsearchSettings;
  readonly #id: string;

  /** Creates a client without connecting. Loads the library, which is large, only when a sink needs it. */
  static async make(settings: ElasticsearchSettings, context: SinkContext): Promise<ElasticClient> {
    const { BaseConnection, Client, errors } = await import('@elastic/elasticsearch');
    const { id, ca, shown } = context;
    const proxy = settings.proxy === 'none' ? undefined : (settings.proxy ?? context.proxy);
    const ways = new Map<string, Connection>();

    class Way extends BaseConnection {
      readonly #way: Connection;

      constructor(options: ConstructorParameters<typeof BaseConnection>[0]) {
        super(options);
        const url = options.url.href;
        const urlSetting = `sinks.${id}.${settings.nodes === undefined ? 'cloudId' : 'nodes'}`;
        const { tls } = settings;
        this.#way = new Connection({ setting: `sinks.${id}`, url, urlSetting, tls, sharedCa: ca, proxy, timeoutMs: connectMs, shown });
        ways.set(url, this.#way);
      }

      override async request(params: Params, { signal }: { readonly signal?: AbortSignal }): Promise<never> {
        const { method, path, querystring = '', headers, body } = params;
        const { origin, pathname } = this.url;
        try {
          const answer = await this.#way.dispatcher.request({
            origin,
            path: `${pathname.replace(/\/$/, '')}${path}${querystring === '' ? '' : `?${querystring}`}`,
            method: method,
            headers: headers as Record<string, string>,
            body: (body as string | Buffer | undefined) ?? null,
            ...(signal === undefined ? {} : { signal }),
          });
          return { statusCode: answer.statusCode, headers: answer.headers, body: await read(answer.body) } as never;
        } catch (thrown) {
          if (signal?.aborted === true) throw new errors.RequestAbortedError('aborted');
          // A connection error occurs before the request is sent.
          const reason = thrown instanceof WaybillError ? unsent(thrown) : sent(this.#way.translate(thrown));
          throw new errors.ConnectionError('no answer', undefined, { cause: reason, ...redaction });
        }
      }

      override async close(): Promise<void> {
        await this.#way[Symbol.asyncDispose]();
      }
    }

    const client = new Client({
      nodes: [...nodesOf(settings)],
      Connection: Way,
      maxRetries: /* mutant: client-retries */ 0,
      enableMetaHeader: false,
    });
    return new ElasticClient(client, [...ways.values()], settings, id);
  }

  private constructor(client: Client, ways: readonly Connection[], settings: ElasticsearchSettings, id: string) {
    this.#client = client;
    this.#ways = ways;
    this.#settings = settings;
    this.#id = id;
  }

  /** One route for each node that got a request. */
  routes(): Route[] {
    return this.#ways.map((way) => way.route());
  }

  /**
   * Sends one request to the next reachable node. @returns the response, for any status
   * @throws WaybillError `sink_unavailable` (nothing was sent), `sink_blocked` (nothing was sent, an operator must act),
   *   `sink_outcome_unknown`; or the signal's reason
   */
  async request(request: Request, signal: AbortSignal): Promise<Answer> {
    const body = request.lines === undefined ? undefined : await compressed(request.lines, { level: 1 });
    const before = this.#authorization();
    const answer = await this.#reach(request, body, before, signal);
    if (answer.status !== 401) return answer;
    // Nothing was stored. If the secret was replaced in the meantime, retries at once with the new value.
    for (const secret of [this.#settings.apiKey, this.#settings.password]) secret?.refresh();
    const now = this.#authorization();
    return now === before ? answer : this.#ask(request, body, now, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close();
  }

  /** Tries one node after another until one is reachable. Sends nothing to the others. */
  async #reach(request: Request, body: Buffer | undefined, authorization: string | undefined, signal: AbortSignal): Promise<Answer> {
    for (let left = this.#ways.length; ; left -= 1) {
      try {
        return await this.#ask(request, body, authorization, signal);
      } catch (thrown) {
        if (left <= 1 || codeOf(thrown) !== 'sink_unavailable') throw thrown;
      }
    }
  }

  #authorization(): string | undefined {
    try {
      return authorizationOf(this.#settings);
    } catch (thrown) {
      throw new WaybillError('sink_blocked', `sink "${this.#id}": ${messageOf(thrown)}`);
    }
  }

  async #ask(request: Request, compressed: Buffer | undefined, authorization: string | undefined, signal: AbortSignal): Promise<Answer> {
    signal.throwIfAborted();
    const { method, path, query } = request;
    const headers = {
      accept: json,
      ...(authorization === undefined ? {} : { authorization }),
      // Set even without a body: otherwise the library sets its own versioned media type.
      'content-type': compressed === undefined ? json : ndjson,
      ...(compressed === undefined ? {} : { 'content-encoding': 'gzip' }),
    };
    const content = request.json === undefined ? (compressed ?? null) : JSON.stringify(request.json);
    try {
      const {
        statusCode,
        body,
        headers: answered,
      } = await this.#client.transport.request(
        { method, path, querystring: { ...query }, ...(content === null ? {} : { body: content }) },
        { meta: true, headers, signal },
      );
      return answerOf(statusCode, body, answered);
    } catch (thrown) {
      signal.throwIfAborted();
      return this.#answered(thrown, method);
    }
  }

  /** The response of an error that the library throws for a status. Throws other errors, without the library's error as cause: it contains the request. */
  #answered(thrown: unknown, method: string): Answer {
    const name = thrown instanceof Error ? thrown.name : '';
    if (name === 'ResponseError') {
      const { statusCode, body, headers } = thrown as { statusCode: number; body: unknown; headers: Record<string, string> };
      return answerOf(statusCode, body, headers);
    }
    const actor = `sink "${this.#id}"`;
    if (name === 'ProductNotSupportedError') {
      const message = `${actor}: the server at sinks.${this.#id}.nodes does not identify itself as Elasticsearch`;
      throw new WaybillError(method === 'GET' ? 'sink_blocked' : 'sink_outcome_unknown', message);
    }
    for (let at: unknown = thrown; at instanceof Error; at = at.cause) {
      if (at instanceof WaybillError) throw new WaybillError(at.code, `${actor}: ${at.message}`);
    }
    // Omits the library's message: it quotes the response, which may quote a document.
    throw new WaybillError('sink_outcome_unknown', `${actor}: cannot parse the response (${name})`);
  }
}

/** The parameters that the library passes to a connection. */
interface Params {
  readonly method: string;
  readonly path: string;
  readonly querystring?: string;
  readonly headers?: unknown;
  readonly body?: unknown;
}

/** The error when nothing was sent. Trust, proxy and settings need an operator; the loop retries other errors. */
function unsent(reason: WaybillError): WaybillError {
  const plain = plainPort(reason);
  if (plain !== undefined) return new WaybillError('sink_blocked', plain);
  return new WaybillError(reason.code === 'source_unreachable' ? 'sink_unavailable' : 'sink_blocked', messageOf(reason));
}

/** The error after the request was sent. The outcome is unknown, unless the server rejected the client certificate and so did not read it. */
function sent(reason: WaybillError): WaybillError {
  return new WaybillError(codeOf(reason) === 'tls_untrusted' ? 'sink_blocked' : 'sink_outcome_unknown', messageOf(reason));
}

async function read(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxAnswerBytes) throw new Error(`the response is larger than ${maxAnswerBytes} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function answerOf(status: number, given: unknown, headers: Readonly<Record<string, unknown>>): Answer {
  const isElasticsearch = headers['x-elastic-product'] === 'Elasticsearch';
  const body = membersOf(given);
  const error = status >= 200 && status <= 299 ? undefined : errorFrom(body.error);
  return { status, body, error, retryAfterMs: retryAfter(headers['retry-after']), isElasticsearch };
}

/** Runs code that reads a response. @param code  of the error for an unexpected form: `sink_unavailable` when the request stores nothing */
export async function understood<Result>(
  id: string,
  code: 'sink_unavailable' | 'sink_outcome_unknown',
  signal: AbortSignal,
  work: () => Promise<Result>,
): Promise<Result> {
  try {
    return await work();
  } catch (cause) {
    signal.throwIfAborted();
    if (cause instanceof WaybillError) throw cause;
    throw new WaybillError(code, `sink "${id}": cannot parse the response of sinks.${id}.nodes`, { cause });
  }
}

/** Parses seconds, the form that servers and load balancers send. @returns ms */
function retryAfter(header: unknown): number | undefined {
  const text = typeof header === 'string' ? header.trim() : '';
  return /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : undefined;
}
