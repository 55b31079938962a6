/**
 * A real CONNECT proxy for tests, optionally with a password. It resolves names by a table of the
 * test: `service.test:443` can be a server on a port of this machine, although loopback targets
 * never use a proxy.
 */
import { createServer as createHttp } from 'node:http';
import { createServer as createHttps } from 'node:https';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import type { KeyPair } from './certificates.ts';

export interface ProxyOptions {
  /** Requested `host:port`, and its port on 127.0.0.1; any other target gets 502. */
  readonly names: Readonly<Record<string, number>>;
  readonly user?: string;
  readonly password?: string;
  /** Serves its clients over TLS. */
  readonly tls?: KeyPair;
  /** Refuses every request with this status. */
  readonly refuse?: number;
  readonly silent?: boolean;
}

export interface TestProxy extends AsyncDisposable {
  readonly port: number;
  /** The requested targets: `host:port`. */
  readonly asked: readonly string[];
}

export async function startProxy(options: ProxyOptions): Promise<TestProxy> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = options.tls === undefined ? createHttp() : createHttps({ cert: options.tls.cert, key: options.tls.key });
  const wanted =
    options.user === undefined ? undefined : `Basic ${Buffer.from(`${options.user}:${options.password ?? ''}`).toString('base64')}`;
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).on('close', () => sockets.delete(socket));
  });
  server.on('tlsClientError', () => undefined);
  server.on('request', (_request, response) => response.writeHead(405).end());
  server.on('connect', (request, client: Socket, head: Buffer) => {
    asked.push(request.url ?? '');
    client.on('error', () => undefined);
    if (options.silent === true) return;
    const answer = (status: string) => client.end(`HTTP/1.1 ${status}\r\nContent-Length: 0\r\n\r\n`);
    if (options.refuse !== undefined) return void answer(`${options.refuse} Not For You`);
    if (wanted !== undefined && request.headers['proxy-authorization'] !== wanted) {
      return void answer('407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm="test"');
    }
    const port = options.names[request.url ?? ''];
    if (port === undefined) return void answer('502 No Such Host');
    const target = connect(port, '127.0.0.1');
    sockets.add(target);
    target.on('close', () => sockets.delete(target)).on('error', () => client.destroy());
    target.on('connect', () => {
      client.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      target.write(head);
      target.pipe(client).pipe(target);
    });
    client.on('close', () => target.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
