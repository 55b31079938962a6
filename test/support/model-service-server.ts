/**
 * The model service on a real HTTPS server on 127.0.0.1, with a token endpoint. A test inspects
 * requests, and injects faults by replacing the next response.
 */
import { createServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { KeyPair } from './certificates.ts';
import { ModelService } from './model-service.ts';

export type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

interface Asked {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

export interface TestService extends AsyncDisposable {
  readonly port: number;
  readonly model: ModelService;
  /** Requests of the logs endpoints, and of the token endpoint. */
  readonly pages: Asked[];
  readonly tokens: Asked[];
  /** Connections that were accepted. */
  readonly connections: number;
  /** The secret that the token endpoint accepts. */
  secret: string;
  subscriptionKey: string;
  /** `expires_in` of issued tokens; undefined: absent. */
  expiresIn: number | undefined;
  /** Valid tokens; a test clears the set to make the service forget them. */
  readonly good: Set<string>;
  /** Responses of the test, each used once instead of the model's. */
  readonly nextPages: Handler[];
  readonly nextTokens: Handler[];
}

export interface ServiceOptions {
  readonly certificate: KeyPair;
  readonly model?: ModelService;
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
    model: options.model ?? new ModelService(),
    pages: [],
    tokens: [],
    secret: 'secret-1',
    subscriptionKey: 'key-1',
    expiresIn: 3600,
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
    const { status, body } = service.model.answer(new URL(request.url ?? '', 'https://service.test').searchParams, Date.now());
    response.writeHead(status, { 'content-type': 'application/json' }).end(body);
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

export function answerJson(
  response: ServerResponse,
  status: number,
  value: unknown,
  headers: Record<string, string | readonly string[]> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...(headers as Record<string, string>) }).end(JSON.stringify(value));
}

/** A handler that responds with a status, headers and a text. */
export function answering(status: number, headers: Record<string, string> = {}, text = ''): Handler {
  return (_request, response) => void response.writeHead(status, headers).end(text);
}
