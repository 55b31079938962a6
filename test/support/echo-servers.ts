/**
 * Servers that return the text of a test: over HTTP in the body, in members of JSON that the
 * protocols define, or in headers; as a proxy in the response to CONNECT; over TLS in the
 * certificate. Other requests get a normal response.
 */
import { createServer } from 'node:http';
import type { IncomingMessage, Server } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { createServer as createTlsServer } from 'node:tls';
import type { Server as TlsServer } from 'node:tls';
import type { KeyPair } from './certificates.ts';

export interface Saying {
  readonly status: number;
  readonly form: 'text' | 'json' | 'headers';
  readonly message: string;
}

export interface Question {
  readonly method: string;
  readonly path: string;
  readonly bytes: number;
}

/** The text as a header value in UTF-8, one character a byte, without characters that HTTP forbids. */
const headerOf = (words: string): string =>
  Buffer.from(words)
    .toString('latin1')
    .replace(/[\x00-\x1f\x7f]/g, ' ')
    .trim();

/**
 * Headers and body with the text. The body has the JSON members of RFC 9457, RFC 6749, API gateways,
 * Elasticsearch and Splunk.
 */
export function answerOf({ form, message: words }: Saying): { readonly headers: Record<string, string>; readonly body: string } {
  if (form === 'text') return { headers: { 'content-type': 'text/html' }, body: `<p>${words}</p>` };
  if (form === 'json') {
    const reason = { type: words, reason: words, caused_by: { type: 'security_exception', reason: words } };
    const body = {
      title: words,
      detail: words,
      message: words,
      error: words,
      error_description: words,
      text: words,
      code: 4,
      status: words,
    };
    return {
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(words.length % 2 === 0 ? body : { ...body, error: reason }),
    };
  }
  const header = headerOf(words);
  return {
    headers: {
      ...{
        'content-type': `text/${header}`,
        'www-authenticate': `Basic realm="${header}"`,
        'retry-after': header,
        location: header,
        date: header,
      },
      ...{ 'x-powered-by': header, 'set-cookie': `session=${header}`, 'content-encoding': header.length % 2 === 0 ? 'identity' : header },
    },
    body: '{}',
  };
}

export class EchoServer implements AsyncDisposable {
  /** The text in the response to a request; undefined: a normal response. */
  say: (question: Question) => Saying | undefined = () => undefined;
  /** Responses with such a text. */
  responses = 0;
  readonly #token: string;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  /** @param token  the token that its token endpoint issues */
  constructor(token: string) {
    this.#token = token;
    this.#server = createServer((request, response) => {
      let bytes = 0;
      request.on('data', (chunk: Buffer) => (bytes += chunk.length));
      request.on('end', () => {
        const [path = ''] = (request.url ?? '').split('?');
        const saying = this.say({ method: request.method ?? '', path, bytes });
        if (saying === undefined) {
          response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(this.#sound(path)));
          return;
        }
        this.responses += 1;
        const { headers, body } = answerOf(saying);
        response.writeHead(saying.status, headers).end(body);
      });
    });
    // A proxy that rejects every tunnel, with the text if there is one.
    this.#server.on('connect', (request: IncomingMessage, socket: Socket) => {
      const saying = this.say({ method: 'CONNECT', path: request.url ?? '', bytes: 0 });
      const { status = 502, message: words = '' } = saying ?? {};
      this.responses += 1;
      socket.on('error', () => undefined);
      socket.end(
        `HTTP/1.1 ${status} ${headerOf(words)}\r\nProxy-Authenticate: Basic realm="${headerOf(words)}"\r\nConnection: close\r\n\r\n`,
        'latin1',
      );
    });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #sound(path: string): object {
    if (path.endsWith('/token')) return { token_type: 'Bearer', access_token: this.#token, expires_in: 3600 };
    if (path.startsWith('/services/')) return { text: 'Success', code: 0, ackId: 0 };
    return { pagination: { page: 1, pageSize: 100, totalRecords: 0 }, data: [] };
  }
}

/** Shows a certificate that the test changes. */
export class CertificateServer implements AsyncDisposable {
  readonly #server: TlsServer;
  readonly #sockets = new Set<Socket>();

  constructor(pair: KeyPair) {
    this.#server = createTlsServer({ cert: pair.cert, key: pair.key }, (socket) => socket.destroy());
    this.#server.on('tlsClientError', () => undefined);
    this.#server.on('connection', (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    });
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  show(pair: KeyPair): void {
    this.#server.setSecureContext({ cert: pair.cert, key: pair.key });
  }

  async listen(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve));
    return this;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
