/**
 * The client of Elasticsearch: one request is one answer, and what to do about it is for others to say. Its connections are ours, so that trust,
 * proxy and their words are those of every other connection: the client's own cannot go through a proxy with undici.
 */
import { gzip } from 'node:zlib';
import { promisify } from 'node:util';
import type { Client } from '@elastic/elasticsearch';
import { Connection } from '../../connect/connection.ts';
import type { Route } from '../../connect/connection.ts';
import { plainPort } from '../../connect/plain-port.ts';
import { WaybillError, codeOf, messageOf } from '../../errors.ts';
import type { SinkContext } from '../define.ts';
import { errorFrom, membersOf } from './items.ts';
import type { ItemError } from './items.ts';
import { authorizationOf, nodesOf } from './settings.ts';
import type { ElasticsearchSettings } from './settings.ts';

interface Request {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE' | 'HEAD';
  readonly path: string;
  readonly query?: Readonly<Record<string, string>>;
  /** A JSON body. */
  readonly json?: unknown;
  /** Lines of JSON, for `_bulk`; sent compressed. */
  readonly lines?: Buffer;
}

export interface Answer {
  readonly status: number;
  /** Where it is a JSON object; else one without members. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The error of an answer other than 2xx. */
  readonly error: ItemError | undefined;
  readonly retryAfterMs: number | undefined;
  /** Whether it says that it is Elasticsearch, as every answer of one does. */
  readonly isElasticsearch: boolean;
}

/** Servers of the lines 8 and 9 take these; those of 8 refuse a client that names 9. */
const json = 'application/vnd.elasticsearch+json; compatible-with=8';
const ndjson = 'application/vnd.elasticsearch+x-ndjson; compatible-with=8';

/** TCP, proxy and TLS together. */
const connectMs = 5_000;
/** More than any answer to 10,000 items. */
const maxAnswerBytes = 64 * 1024 * 1024;
const compressed = promisify(gzip);
/** What the client must be told to leave out of its errors; we keep none of them. */
const redaction = { redaction: { type: 'remove' as const } };

export class ElasticClient implements AsyncDisposable {
  readonly #client: Client;
  readonly #ways: readonly Connection[];
  readonly #settings: ElasticsearchSettings;
  readonly #id: string;

  /** Connects to nothing yet. The client is read only when there is such a sink: it is large. */
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
        this.#way = new Connection({ setting: `sinks.${id}`, url, tls: settings.tls, sharedCa: ca, proxy, timeoutMs: connectMs, shown });
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
          // What the connection says itself it says before anything is sent.
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

  /** The ways that were taken, one for each node that was asked. */
  routes(): Route[] {
    return this.#ways.map((way) => way.route());
  }

  /**
   * One request to the next node that can be reached, and its answer, whatever its status.
   * @throws WaybillError `sink_unavailable` (nothing was sent), `sink_blocked` (the same, and a person must act), `sink_outcome_unknown`; or the signal's reason
   */
  async request(request: Request, signal: AbortSignal): Promise<Answer> {
    const body = request.lines === undefined ? undefined : await compressed(request.lines, { level: 1 });
    const before = this.#authorization();
    const answer = await this.#reach(request, body, before, signal);
    if (answer.status !== 401) return answer;
    // Nothing was taken: a secret that was replaced meanwhile is tried at once.
    for (const secret of [this.#settings.apiKey, this.#settings.password]) secret?.refresh();
    const now = this.#authorization();
    return now === before ? answer : this.#ask(request, body, now, signal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close();
  }

  /** Asks one node after another until one can be reached: to the others nothing was sent. */
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
      // Set without a body too: the client would name its own line there.
      'content-type': compressed === undefined ? json : ndjson,
      ...(compressed === undefined ? {} : { 'content-encoding': 'gzip' }),
    };
    const content = request.json === undefined ? (compressed ?? null) : JSON.stringify(request.json);
    try {
      const {
        statusCode,
        body,
        headers: said,
      } = await this.#client.transport.request(
        { method, path, querystring: { ...query }, ...(content === null ? {} : { body: content }) },
        { meta: true, headers, signal },
      );
      return answerOf(statusCode, body, said);
    } catch (thrown) {
      signal.throwIfAborted();
      return this.#answered(thrown, method);
    }
  }

  /** The answer of a status that the client throws; throws for what is none. Never with the client's error as cause: it holds the request. */
  #answered(thrown: unknown, method: string): Answer {
    const name = thrown instanceof Error ? thrown.name : '';
    if (name === 'ResponseError') {
      const { statusCode, body, headers } = thrown as { statusCode: number; body: unknown; headers: Record<string, string> };
      return answerOf(statusCode, body, headers);
    }
    const actor = `sink "${this.#id}"`;
    if (name === 'ProductNotSupportedError') {
      const message = `${actor}: what answers at sinks.${this.#id}.nodes does not say that it is Elasticsearch`;
      throw new WaybillError(method === 'GET' ? 'sink_blocked' : 'sink_outcome_unknown', message);
    }
    for (let at: unknown = thrown; at instanceof Error; at = at.cause) {
      if (at instanceof WaybillError) throw new WaybillError(at.code, `${actor}: ${at.message}`);
    }
    // Its words quote the answer, which may quote a document.
    throw new WaybillError('sink_outcome_unknown', `${actor}: the answer cannot be understood (${name})`);
  }
}

/** What the client gives to a connection. */
interface Params {
  readonly method: string;
  readonly path: string;
  readonly querystring?: string;
  readonly headers?: unknown;
  readonly body?: unknown;
}

/** Nothing was sent: later, or, for trust, proxy and settings, when a person has acted. */
function unsent(reason: WaybillError): WaybillError {
  const plain = plainPort(reason);
  if (plain !== undefined) return new WaybillError('sink_blocked', plain);
  return new WaybillError(reason.code === 'source_unreachable' ? 'sink_unavailable' : 'sink_blocked', messageOf(reason));
}

/** Something was sent: unknown, unless TLS refused our certificate, for then nobody has read it. */
function sent(reason: WaybillError): WaybillError {
  return new WaybillError(codeOf(reason) === 'tls_untrusted' ? 'sink_blocked' : 'sink_outcome_unknown', messageOf(reason));
}

async function read(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxAnswerBytes) throw new Error(`the answer is larger than ${maxAnswerBytes} bytes`);
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

/**
 * Does what reads answers of the server. What they lack or have in the place of something else is an error of this sink, and not of the program.
 * @param code  what it means: `sink_unavailable` where nothing was sent to be stored
 */
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
    throw new WaybillError(code, `sink "${id}": what answers at sinks.${id}.nodes cannot be understood`, { cause });
  }
}

/** Seconds, as servers and load balancers write it; ms. */
function retryAfter(header: unknown): number | undefined {
  const text = typeof header === 'string' ? header.trim() : '';
  return /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : undefined;
}
