/**
 * The model of a source behind a real HTTPS server on 127.0.0.1, with a token
 * endpoint. A test inspects requests, and injects faults by replacing the next response.
 */
import { createServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { systemClock } from '../../src/time/clock.ts';
import type { PageRequest } from '../../src/model/source.ts';
import type { KeyPair } from './certificates.ts';
import { ModelSource } from './model-source.ts';

export type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface TestService extends AsyncDisposable {
  readonly port: number;
  readonly model: ModelSource;
  /** Requests of the logs endpoints, and of the token endpoint. */
  readonly pages: Asked[];
  readonly tokens: Asked[];
  readonly connections: number;
  /** The secret that the token endpoint accepts. */
  secret: string;
  subscriptionKey: string;
  /** `expires_in` of issued tokens; undefined: absent. */
  expiresIn: number | undefined;
  /** True: a new token ends the one before. */
  endsTokens: boolean;
  /** Valid tokens; a test clears the set to make the service forget them. */
  readonly good: Set<string>;
  /** Responses of the test, each used once instead of the model's. */
  readonly nextPages: Handler[];
  readonly nextTokens: Handler[];
}

export interface ServiceOptions {
  readonly certificate: KeyPair;
  /** The status with which the service refuses a query; undefined: the model answers. */
  readonly refuse?: (parameters: URLSearchParams) => number | undefined;
  readonly tls?: ServerOptions;
}

export async function startService(options: ServiceOptions): Promise<TestService> {
  const sockets = new Set<Socket>();
  let connections = 0;
  let tokensGiven = 0;
  const server = createServer({ cert: options.certificate.cert, key: options.certificate.key, ...options.tls });
  const service: TestService = {
    get port() {
      return (server.address() as AddressInfo).port;
    },
    get connections() {
      return connections;
    },
    model: new ModelSource(systemClock),
    pages: [],
    tokens: [],
    secret: 'secret-1',
    subscriptionKey: 'key-1',
    expiresIn: 3600,
    endsTokens: false,
    good: new Set(),
    nextPages: [],
    nextTokens: [],
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  const givePage: Handler = (request, response) => {
    const bearer = request.headers.authorization?.replace(/^Bearer /, '') ?? '';
    if (!service.good.has(bearer) || request.headers['ocp-apim-subscription-key'] !== service.subscriptionKey) {
      answerJson(response, 401, { statusCode: 401, message: 'Access denied' });
      return;
    }
    const { searchParams } = new URL(request.url ?? '', 'https://service.test');
    // In a URL, `+` means a space.
    const isUnsorted = !['+logTimestamp', '-logTimestamp', null].includes(searchParams.get('sort'));
    const refusal = options.refuse?.(searchParams) ?? (isUnsorted ? 400 : undefined);
    if (refusal === undefined) void answerPage(response, service.model, requestOf(searchParams));
    else answerJson(response, refusal, { title: 'the query is refused' });
  };
  const giveToken: Handler = (_request, response, body) => {
    const form = new URLSearchParams(body);
    const accepted =
      form.get('grant_type') === 'password' ? form.get('password') === service.secret : form.get('client_secret') === service.secret;
    if (!accepted) {
      answerJson(response, 401, { error: 'invalid_client', error_description: 'AADSTS7000215: Invalid client secret provided.' });
      return;
    }
    tokensGiven += 1;
    const token = `token-${tokensGiven}-canary`;
    if (service.endsTokens) service.good.clear();
    service.good.add(token);
    answerJson(response, 200, {
      token_type: 'Bearer',
      access_token: token,
      ...(service.expiresIn === undefined ? {} : { expires_in: service.expiresIn }),
    });
  };

  server.on('secureConnection', () => (connections += 1));
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  server.on('request', (request, response) => {
    let body = '';
    request.setEncoding('utf8');
    request.on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      const isToken = request.method === 'POST' && (request.url ?? '').endsWith('/oauth2/v2.0/token');
      const asked = { method: request.method ?? '', url: request.url ?? '', headers: request.headers, body };
      (isToken ? service.tokens : service.pages).push(asked);
      const handler = (isToken ? service.nextTokens : service.nextPages).shift() ?? (isToken ? giveToken : givePage);
      handler(request, response, body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return service;
}

function requestOf(parameters: URLSearchParams): PageRequest {
  const [startTime, endTime, page] = ['startTime', 'endTime', 'page'].map((name) => parameters.get(name) ?? undefined);
  return {
    query: { ...(startTime !== undefined && { startTime }), ...(endTime !== undefined && { endTime }) },
    page: page === undefined ? undefined : Number(page),
    pageSize: Number(parameters.get('pageSize') ?? 100),
    newestFirst: parameters.get('sort') === '-logTimestamp',
  };
}

async function answerPage(response: ServerResponse, model: ModelSource, request: PageRequest): Promise<void> {
  const { items, page, pageSize, total } = await model.page(request, new AbortController().signal);
  const pagination = JSON.stringify({ totalRecords: total, pageSize, itemsInPage: items.length, page });
  const data = items.map(({ bytes }) => bytes.toString()).join(',');
  response.writeHead(200, { 'content-type': 'application/json' }).end(`{"pagination":${pagination},"data":[${data}]}`);
}

export function answerJson(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

export function answering(status: number, headers: Record<string, string> = {}, text = ''): Handler {
  return (_request, response) => void response.writeHead(status, headers).end(text);
}
