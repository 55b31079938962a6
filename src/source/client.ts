/**
 * The client of a logs endpoint. One call returns one page or throws a WaybillError with the kind of failure. It replaces a rejected token
 * once within a call and repeats nothing else.
 */
import { WaybillError, codeOf, messageOf } from '../errors/errors.ts';
import type { Page, PageRequest, Source } from '../model/source.ts';
import { noTracer } from '../model/telemetry.ts';
import type { Log, Meters, Span, SpanAttributes, Tracer } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { Connection } from '../connect/connection.ts';
import type { Route } from '../connect/connection.ts';
import { BrokenAnswer, exchange } from './exchange.ts';
import type { Answer } from './exchange.ts';
import { parseAge, parseHttpDate, parseRetryAfter } from './headers.ts';
import type { Budget } from './limits.ts';
import { quote } from '../errors/quote.ts';
import type { ProxySettings } from '../connect/proxy.ts';
import { scanPage } from './scan.ts';
import { SourceToken } from './source-token.ts';
import { TokenStore } from './token.ts';
import type { AuthSettings } from './token.ts';
import type { Pem, Secret, TlsSettings } from '../connect/trust.ts';

export interface ClientSettings {
  readonly id: string;
  /** Ends with the `api` segment. */
  readonly baseUrl: string;
  readonly endpoint: 'full-payload' | 'payload';
  readonly auth: AuthSettings;
  readonly subscriptionKey?: Secret | undefined;
  readonly tls?: TlsSettings | undefined;
  /** The resolved proxy of this source; undefined: direct. */
  readonly proxy?: ProxySettings | undefined;
  /** `timeout` is the limit for a whole request, ms. */
  readonly requests: { readonly timeout: number };
}

export interface ClientContext {
  readonly clock: Clock;
  readonly budget: Budget;
  readonly meters: Pick<Meters, 'sourceRequest'>;
  /** The top-level `tls.ca`. */
  readonly ca?: Pem | undefined;
  /** Receives the event for a secret that was read again. */
  readonly log?: Log | undefined;
  /** Default: no traces. */
  readonly tracer?: Tracer | undefined;
}

/** A source with the methods that `check` needs. */
export interface ServiceSource extends Source {
  /** Throws the reason if it obtains no token. */
  authenticate(signal: AbortSignal): Promise<void>;
  /** The connections to the service and to its token endpoint. */
  routes(): readonly Route[];
}

/** The maximum body of a page, before and after decompression: 16 MiB. */
const pageBytesMax = 16 * 1024 * 1024;
/** Maximum time to connect, ms. */
const connectMs = 10_000;
/** How long to wait before a cached response is requested again. */
const cachedMs = 1_000;

/** A 204 is a page of a query without matching records. */
const noContent = Buffer.from('{"data":[],"pagination":{"totalRecords":0}}');

/** @param tokens  shared with other sources of the same login; default: a store for this source alone */
export function createSource(settings: ClientSettings, context: ClientContext, tokens = createTokens(settings, context)): ServiceSource {
  return new HttpSource(settings, context, tokens);
}

/** Opens no connection yet. */
export function createTokens(settings: ClientSettings, { clock, ca, log }: ClientContext): TokenStore {
  const { id, auth, tls, proxy, requests } = settings;
  const login = new Connection({
    setting: auth.tls === undefined ? `sources.${id}` : `sources.${id}.auth`,
    url: auth.authUrl,
    urlSetting: `sources.${id}.auth.authUrl`,
    tls: auth.tls ?? tls,
    proxy,
    sharedCa: ca,
    timeoutMs: Math.min(requests.timeout, connectMs),
  });
  return new TokenStore(id, auth, login, clock, requests.timeout, log);
}

class HttpSource implements ServiceSource {
  readonly #settings: ClientSettings;
  readonly #context: ClientContext;
  readonly #setting: string;
  readonly #service: Connection;
  readonly #login: Connection;
  readonly #tokens: SourceToken;
  readonly #requestAttributes: SpanAttributes;

  constructor(settings: ClientSettings, context: ClientContext, tokens: TokenStore) {
    this.#settings = settings;
    this.#context = context;
    this.#setting = `sources.${settings.id}`;
    this.#requestAttributes = requestAttributes(settings);
    const { tls, proxy, requests } = settings;
    this.#service = new Connection({
      setting: this.#setting,
      url: settings.baseUrl,
      urlSetting: `${this.#setting}.baseUrl`,
      tls,
      proxy,
      sharedCa: context.ca,
      timeoutMs: Math.min(requests.timeout, connectMs),
    });
    this.#login = tokens.connection;
    this.#tokens = new SourceToken(settings.id, tokens);
  }

  async page(request: PageRequest, signal: AbortSignal): Promise<Page> {
    const what = `${request.page === undefined ? 'the first page' : `page ${request.page}`} of ${this.#setting}`;
    const refused = await this.#attempt(request, what, signal);
    if ('items' in refused) return refused;
    // The service may have renewed the token or the subscription key: both are read again, and the page is requested once more.
    const isReplaced = refused.isReplaced || this.#tokens.refused(refused.token, 'unauthorized', refused.date);
    const key = this.#settings.subscriptionKey;
    const before = key?.read();
    key?.refresh();
    const second = isReplaced || key?.read() !== before ? await this.#attempt(request, what, signal) : refused;
    if ('items' in second) return second;
    if (isReplaced) this.#tokens.replacedInVain();
    const early = this.#tokens.earlyMs(second.token, second.date ?? Infinity);
    const reason =
      early > 0
        ? `the token becomes valid in ${Math.ceil(early / 1000)} s by the time of the service: the clock of ${this.#setting}.auth.authUrl is ahead`
        : `the service rejects the token or the subscription key; see ${this.#setting}.subscriptionKey and ${this.#setting}.auth`;
    throw new WaybillError('source_unauthorized', `cannot read ${what}: ${reason}: ${second.message}`);
  }

  renew(): void {
    this.#tokens.renew();
  }

  async authenticate(signal: AbortSignal): Promise<void> {
    await this.#tokens.get(signal);
  }

  routes(): readonly Route[] {
    return [this.#service.route(), this.#login.route()];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#tokens[Symbol.asyncDispose](), this.#service[Symbol.asyncDispose]()]);
  }

  /** Sends one request and measures it. Returns a 401, which the token may have caused, to the caller. */
  async #attempt(request: PageRequest, what: string, signal: AbortSignal): Promise<Page | Unauthorized> {
    const { clock, budget, meters, tracer = noTracer } = this.#context;
    const token = await this.#tokens.get(signal);
    await budget.take(signal);
    const begun = clock.monotonic();
    const span = tracer.start('GET', this.#requestAttributes, { kind: 'client' });
    let outcome = 'ok';
    let failure: unknown;
    const told = { isRefusal: false };
    try {
      const page = await span.run(() => this.#ask(request, what, token, span, told, signal));
      if ('items' in page) this.#tokens.accepted(token);
      else {
        outcome = 'source_unauthorized';
        failure = new WaybillError('source_unauthorized', page.message);
      }
      return page;
    } catch (thrown) {
      failure = thrown;
      outcome = codeOf(thrown) ?? (signal.aborted ? 'aborted' : 'internal_error');
      if (outcome === 'page_malformed') this.#service.suspect();
      if (told.isRefusal && this.#tokens.refused(token, outcome === 'page_refused' ? 'refused' : 'other'))
        return { token, message: messageOf(thrown), isReplaced: true };
      if (!signal.aborted) this.#tokens.failed(token);
      throw thrown;
    } finally {
      span.end(failure);
      meters.sourceRequest(this.#settings.id, outcome, (clock.monotonic() - begun) / 1000);
    }
  }

  /** @param told  becomes a refusal when the service answers, unless it only asks to wait */
  async #ask(
    request: PageRequest,
    what: string,
    token: string,
    span: Span,
    told: { isRefusal: boolean },
    signal: AbortSignal,
  ): Promise<Page | Unauthorized> {
    const { clock } = this.#context;
    const { subscriptionKey, requests } = this.#settings;
    const key = subscriptionKey?.read();
    if (key !== undefined && !headerValue.test(key))
      throw new WaybillError(
        'secret_missing',
        `cannot use "${this.#setting}.subscriptionKey": its value has a character that a header cannot carry`,
      );
    const question = {
      method: 'GET',
      url: this.#url(request),
      headers: {
        authorization: `Bearer ${token}`,
        ...(key === undefined ? {} : { 'ocp-apim-subscription-key': key }),
        'cache-control': 'no-cache',
        accept: 'application/json',
      },
      bytesMax: pageBytesMax,
      timeoutMs: requests.timeout,
    } as const;
    let answer: Answer;
    try {
      answer = await exchange(this.#service, question, clock, signal);
    } catch (thrown) {
      if (thrown instanceof BrokenAnswer)
        throw new WaybillError('page_malformed', `cannot read ${what}: ${thrown.message}`, { cause: thrown });
      if (thrown instanceof WaybillError && thrown !== signal.reason) {
        throw new WaybillError(thrown.code, `cannot read ${what}: ${thrown.message}`, { cause: thrown.cause });
      }
      throw thrown;
    }
    span.set({ 'http.response.status_code': answer.status });
    told.isRefusal = answer.status !== 429 && answer.headers['retry-after'] === undefined;
    const receivedMonotonic = clock.monotonic();
    const now = clock.now();
    const date = parseHttpDate(answer.headers['date'], now);
    if (answer.status === 200 || answer.status === 204) {
      const body = answer.status === 204 ? noContent : answer.body;
      const { items, pagination } = scanPage(body, what, answer.headers['content-type']);
      return {
        items,
        page: integer(member(pagination, 'page')),
        pageSize: positive(integer(member(pagination, 'pageSize'))),
        total: natural(integer(member(pagination, 'totalRecords'))),
        date,
        age: parseAge(answer.headers['age']),
        received: Math.floor(now * 1000),
        receivedMonotonic,
      };
    }
    const message = statusText(answer);
    if (answer.status === 401) return { token, message, date };
    throw this.#refusal(answer, message, what, date ?? now);
  }

  #url({ query, page, pageSize, newestFirst = false }: PageRequest): string {
    // The order is fixed: a cache or rate limit on the way may use the text as a key.
    const parameters = [
      ['startTime', query.startTime],
      ['endTime', query.endTime],
      ['page', page],
      ['pageSize', pageSize],
      // A literal `+` in a query string means a space.
      ['sort', newestFirst ? '-logTimestamp' : '+logTimestamp'],
    ] as const;
    const text = parameters.filter(([, value]) => value !== undefined).map(([name, value]) => `${name}=${encodeURIComponent(value ?? '')}`);
    return `${logsUrl(this.#settings)}?${text.join('&')}`;
  }

  #refusal(answer: Answer, message: string, what: string, now: number): WaybillError {
    const { status, headers } = answer;
    const begin = `cannot read ${what}`;
    const retryAfterMs = parseRetryAfter(headers['retry-after'], now);
    if (status === 403 && headers['retry-after'] === undefined) {
      const right = this.#settings.endpoint === 'full-payload' ? 'logs.read.all' : 'logs.read';
      const reason = `the right ${right} is missing for client "${this.#settings.auth.clientId}"; see ${this.#setting}.endpoint`;
      return new WaybillError('source_forbidden', `${begin}: ${reason}: ${message}`);
    }
    if (status === 403 || status === 408 || status === 425 || status === 429 || status >= 500) {
      return new WaybillError('source_busy', `${begin}: the service is busy: ${message}`, { retryAfterMs });
    }
    if (status === 404) {
      // A cached 404 may be older than the page, so it ends no pass.
      if (parseAge(headers['age']) > 0) {
        return new WaybillError('source_busy', `${begin}: the response is cached: ${message}`, { retryAfterMs: retryAfterMs ?? cachedMs });
      }
      return new WaybillError('page_not_found', `${begin}: no such page, or a wrong ${this.#setting}.baseUrl: ${message}`);
    }
    if (status >= 300 && status < 400) {
      return new WaybillError('source_unreachable', `${begin}: redirects are not followed; see ${this.#setting}.baseUrl: ${message}`);
    }
    if (status < 300) return new WaybillError('page_malformed', `${begin}: expected status 200, got ${status}`);
    return new WaybillError('page_refused', `${begin}: the service refuses the request: ${message}`);
  }
}

function logsUrl({ baseUrl, endpoint }: ClientSettings): string {
  return `${baseUrl.replace(/\/+$/, '')}/logs/${endpoint}`;
}

/** By the conventions of OpenTelemetry for an HTTP client; the URL without its query. */
function requestAttributes(settings: ClientSettings): SpanAttributes {
  const url = logsUrl(settings);
  const { hostname, port, protocol, pathname } = new URL(url);
  return {
    'waybill.source.id': settings.id,
    'http.request.method': 'GET',
    'server.address': hostname,
    'server.port': Number(port) || (protocol === 'http:' ? 80 : 443),
    'url.full': url,
    'url.path': pathname,
  };
}

/** The characters of a header value: printable ASCII (RFC 9110 section 5.5). */
const headerValue = /^[\x20-\x7e]+$/;

/** A 401, or another refusal of a token that was replaced for it: the token, and the error text of the service. */
interface Unauthorized {
  readonly token: string;
  readonly message: string;
  /** The time of the service, ms since 1970. */
  readonly date?: number | undefined;
  readonly isReplaced?: boolean;
}

/**
 * The status with the error text of the body: a problem (RFC 9457), an error of an API gateway, or the start of plain text. Other JSON is
 * not shown, as it may hold records.
 */
function statusText(answer: Answer): string {
  const text = new TextDecoder().decode(answer.body);
  let shown: unknown;
  try {
    const value: unknown = JSON.parse(text);
    const error = member(value, 'error');
    const parts = [member(value, 'title'), member(value, 'detail'), member(value, 'message'), member(error, 'message'), error];
    const message = parts.filter((part): part is string => typeof part === 'string' && part !== '');
    shown = message.join(': ');
  } catch {
    shown = text;
  }
  const message = quote(String(shown), 200);
  return message === '' ? String(answer.status) : `${answer.status} ${message}`;
}

function member(value: unknown, key: string): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}

/** A safe integer; decimal text counts. */
function integer(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^-?\d{1,16}$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : undefined;
}

function natural(value: number | undefined): number | undefined {
  return value !== undefined && value >= 0 ? value : undefined;
}

function positive(value: number | undefined): number | undefined {
  return value !== undefined && value > 0 ? value : undefined;
}
