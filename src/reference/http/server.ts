/**
 * The HTTPS server: passes each request to the identity provider or the API, applies faults, and
 * converts errors to responses. Listens on loopback only.
 */
import { createServer, type Server, type ServerOptions } from 'node:https';
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { DEFAULT_CIPHERS } from 'node:tls';
import type { Api } from './api.ts';
import type { Certificates } from './certificates.ts';
import { answerOf, answerOfProblem, send, type Answer, type Faults } from './faults.ts';
import type { ServiceClock } from '../clock.ts';
import type { IdentityProvider } from '../people/identity-provider.ts';
import { STATUS_CODES } from './node-http.ts';
import { Problem } from './problem.ts';
import type { Stats } from './stats.ts';
import type { SwitchValues } from '../switches.ts';

interface ServerParts {
  readonly clock: ServiceClock;
  readonly provider: IdentityProvider;
  readonly api: Api;
  readonly faults: Faults;
  readonly stats: Stats;
  /** The public OpenAPI document. */
  readonly description: Buffer;
  readonly values: SwitchValues;
}

/** The default list of Node with the fastest strong cipher first. */
const ciphers = `TLS_AES_128_GCM_SHA256:${DEFAULT_CIPHERS}`;
const descriptionPath = '/openapi.json';
const keepAliveMs = 65_000;
/**
 * Time limits for the headers of a request, and for all of it, including the rest of a refused
 * body.
 */
const headersMs = 30_000;
const requestMs = 120_000;
const statusOfCode: Readonly<Record<string, number>> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 };

export function tlsOptions({ cert, key }: Certificates): ServerOptions {
  return { cert, key, minVersion: 'TLSv1.2', ciphers, honorCipherOrder: true };
}

export class ServiceServer {
  readonly #server: Server;
  /**
   * The TCP connection of each TLS connection, by the port of the client; needed for a TCP reset.
   */
  readonly #connections = new Map<number, Socket>();
  #parts: ServerParts | undefined;

  constructor(certificates: Certificates) {
    const listener: RequestListener = (request, response) => void this.#serve(request, response);
    this.#server = createServer({ ...tlsOptions(certificates), requireHostHeader: false }, listener);
    this.#server.keepAliveTimeout = keepAliveMs;
    this.#server.headersTimeout = headersMs;
    this.#server.requestTimeout = requestMs;
    this.#server.on('clientError', refuseUnread);
    this.#server.on('checkExpectation', (_: IncomingMessage, response: ServerResponse) => {
      send(
        response,
        answerOfProblem(new Problem(417, 'There is no such expectation: header Expect', { parameter: 'Expect' })),
        undefined,
        0,
        () => undefined,
      );
    });
    this.#server.on('connection', (socket: Socket) => {
      const port = socket.remotePort ?? 0;
      this.#connections.set(port, socket);
      socket.once('close', () => this.#connections.delete(port));
    });
  }

  /** Listens on the port, 0 for any free one, and resolves with the port. */
  listen(port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(port, '127.0.0.1', () => resolve((this.#server.address() as AddressInfo).port));
    });
  }

  /** Sets the handlers; earlier requests wait for them. */
  open(parts: ServerParts): void {
    this.#parts = parts;
  }

  close(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [path = '', ...rest] = originForm(request.url ?? '').split('?');
    const query = rest.join('?');
    const parts = this.#parts;
    if (!parts) {
      this.#reset(request);
      return;
    }
    // Node sets the header to the time of the machine.
    if (parts.clock.isManual) response.setHeader('date', new Date(parts.clock.now()).toUTCString());
    try {
      const refusal = refusalOf(request, path);
      if (refusal) {
        parts.stats.request('other', refusal.status);
        send(response, answerOfProblem(refusal), undefined, 0, () => this.#reset(request));
        return;
      }
      if (parts.provider.owns(path)) {
        await this.#serveProvider(parts, request, response, path);
        return;
      }
      if (parts.api.owns(path)) {
        await this.#serveApi(parts, request, response, path, query);
        return;
      }
      if (path === descriptionPath) {
        parts.stats.request(`GET ${descriptionPath}`, 200);
        const answer = { status: 200, headers: { 'content-type': 'application/json; charset=utf-8' }, body: parts.description };
        send(response, answer, undefined, 0, () => this.#reset(request));
        return;
      }
      parts.stats.request('other', 404);
      send(response, answerOfProblem(new Problem(404, 'Not found')), undefined, 0, () => this.#reset(request));
    } catch (error) {
      if (request.socket.destroyed || response.headersSent) return;
      process.stderr.write(
        `cannot serve ${request.method ?? ''} ${path}: ${error instanceof Error ? (error.stack ?? '') : String(error)}\n`,
      );
      send(response, answerOfProblem(new Problem(500, 'Internal error')), undefined, 0, () => this.#reset(request));
    }
  }

  async #serveProvider(parts: ServerParts, request: IncomingMessage, response: ServerResponse, path: string): Promise<void> {
    const endpoint = path.endsWith('/token') ? 'POST token' : 'GET provider';
    switch (parts.values.identityProvider) {
      case 'down':
        parts.stats.request(endpoint, 'none');
        this.#reset(request);
        return;
      case 'stalled':
        parts.stats.request(endpoint, 'none');
        return;
      case 'unavailable':
        parts.stats.request(endpoint, 503);
        send(response, answerOfProblem(new Problem(503, 'The identity provider is not available')), undefined, 0, () => undefined);
        return;
      case 'up':
        await parts.provider.serve(request, response, path);
        parts.stats.request(endpoint, response.statusCode);
    }
  }

  async #serveApi(parts: ServerParts, request: IncomingMessage, response: ServerResponse, path: string, query: string): Promise<void> {
    const fault = parts.faults.next();
    const answer = (fault && answerOf(fault)) ?? (await trueAnswer(parts.api, request, path, query));
    if (fault) parts.stats.fault(fault);
    parts.stats.request(parts.api.nameOf(request.method ?? '', path), fault === 'faultReset' ? 'none' : answer.status);
    send(response, answer, fault, parts.values.slowFor, () => this.#reset(request));
  }

  #reset(request: IncomingMessage): void {
    const connection = this.#connections.get(request.socket.remotePort ?? 0);
    connection?.resetAndDestroy();
  }
}

/** Checks a request before it is routed: RFC 9112 section 3.2 requires exactly one Host. */
function refusalOf({ rawHeaders, httpVersion, method = '' }: IncomingMessage, path: string): Problem | undefined {
  const hosts = rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === 'host').length;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1')) return new Problem(400, 'A request has one header Host', { parameter: 'Host' });
  if (path !== descriptionPath || ['GET', 'HEAD'].includes(method)) return undefined;
  return new Problem(405, 'The description takes GET', { headers: { allow: 'GET, HEAD' } });
}

/** Responds to an invalid or incomplete HTTP request, and closes the connection. */
function refuseUnread(error: Error & { code?: string }, socket: Duplex): void {
  if (!socket.writable || error.code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const problem = new Problem(statusOfCode[error.code ?? ''] ?? 400, 'The request cannot be read');
  const { headers, body } = answerOfProblem(problem);
  const lines = Object.entries({ ...headers, connection: 'close', 'content-length': body.length }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  socket.end(`HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status] ?? ''}\r\n${lines.join('\r\n')}\r\n\r\n${body.toString()}`);
}

async function trueAnswer(api: Api, request: IncomingMessage, path: string, query: string): Promise<Answer> {
  try {
    return await api.answer(request, path, query);
  } catch (error) {
    if (error instanceof Problem) return answerOfProblem(error);
    throw error;
  }
}

/** RFC 9112 section 3.2.2: a server must accept the absolute form of a target. */
function originForm(target: string): string {
  const rest = /^https:\/\/[^/?]*(.*)$/i.exec(target)?.[1];
  return rest === undefined ? target : rest.startsWith('/') ? rest : `/${rest}`;
}
