/**
 * The admin server: probes, metrics, status, reports and operations over HTTP, on the configured addresses and on the Unix socket of the
 * state directory.
 */
import { chmod, readFile } from 'node:fs/promises';
import type { RequestListener, Server, ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest, type FastifyServerOptions } from 'fastify';
import { WaybillError, messageOf } from '../errors.ts';
import { createServer } from '../node-http.ts';
import { createAuthorizer, isLoopback, type Access, type Authorizer, type Place, type Tokens } from './authorizer.ts';
import { connectionBudget, Connections } from './connections.ts';
import { addRoutes, unreadable, type AdminSources, type Guard } from './routes.ts';
import { clearSocketPath } from './socket.ts';

export interface AdminSettings extends Tokens {
  /** Such as `127.0.0.1:9464`, `[::]:9464`, `localhost:9464`. */
  readonly listen: string | readonly string[];
  /** Paths of PEM files. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
}

export interface Admin extends AsyncDisposable {
  /** `http://127.0.0.1:9464`, `https://[::1]:9464`, `unix:/var/lib/waybill/state/waybill.sock`; with the assigned ports. */
  readonly addresses: readonly string[];
}

/** One listener: an address of `admin.listen`, or the path of the socket. */
interface Listener {
  readonly address: string;
  readonly place: Place;
  readonly connections: Connections;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer } | undefined;
}

const limits: ServerOptions = {
  maxHeaderSize: 16_384,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  /** How often Node checks the two timeouts. */
  connectionsCheckingInterval: 1_000,
};
/** Closes an idle connection; longer than a report waits for its reader. */
const idleMs = 65_000;
const handshakeMs = 5_000;
/** Connections that the kernel queues, up to its own limit. A client that finds the queue full tries again after a second. */
const backlog = 4_096;

/** No route has a schema. Without these, fastify loads Ajv and a code generator: 6 MiB of memory. */
const noCompilers = {
  buildValidator: noSchema,
  buildSerializer: noSchema,
} satisfies NonNullable<FastifyServerOptions['schemaController']>['compilersFactory'];

function noSchema(): never {
  throw new WaybillError('internal_error', 'a route of the admin server has a schema');
}

const securityHeaders = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};

/** @throws WaybillError `admin_listen_failed`, naming the setting: no listener is left open then */
export async function startAdmin(settings: AdminSettings, sources: AdminSources): Promise<Admin> {
  await using started = new AsyncDisposableStack();
  const tls = settings.tls && { cert: await readPem('cert', settings.tls.cert), key: await readPem('key', settings.tls.key) };
  const authorizer = createAuthorizer(settings, sources.clock, sources.log);
  const connections = new Connections(connectionBudget());
  const addresses: string[] = [];
  for (const address of typeof settings.listen === 'string' ? [settings.listen] : settings.listen) {
    const { host, port } = parseListen(address);
    const app = createApp({ address, place: isLoopback(host) ? 'loopback' : 'elsewhere', connections, tls }, authorizer, sources);
    started.defer(() => app.close());
    await app.listen({ host, port, backlog }).catch(listenFailed(`admin.listen "${address}"`));
    // The type allows a pipe's path too.
    for (const at of app.addresses().filter((each) => typeof each !== 'string')) {
      addresses.push(`${tls ? 'https' : 'http'}://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`);
    }
  }
  if (sources.socketPath !== undefined) {
    const path = sources.socketPath;
    await clearSocketPath(path);
    // A separate budget: clients on the network cannot use up the connections of the socket.
    const socketConnections = new Connections(connectionBudget());
    const app = createApp({ address: path, place: 'socket', connections: socketConnections }, authorizer, sources);
    started.defer(() => app.close());
    await app
      .listen({ path })
      .then(() => chmod(path, 0o600))
      .catch(listenFailed(`"${path}"`));
    addresses.push(`unix:${path}`);
  }
  const running = started.move();
  return { addresses, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

function createApp(listener: Listener, authorizer: Authorizer, sources: AdminSources): FastifyInstance {
  const app = fastify({
    logger: false,
    schemaController: { compilersFactory: noCompilers },
    bodyLimit: 1_024,
    forceCloseConnections: true,
    return503OnClosing: true,
    serverFactory: (handler) => createHttpServer(listener, handler),
    // Requests that reach no route: a URL that cannot be decoded, and bytes that are not HTTP.
    frameworkErrors: (_, __, reply: FastifyReply) => void reply.code(400).headers(securityHeaders).send({ error: unreadable }),
    clientErrorHandler: (error, socket) => rejectUnparsed(error, socket),
  });
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(securityHeaders);
    // Answered before the body arrives: a client that sends one byte of it would hold a connection.
    if (request.is404) return reply.code(404).send({ error: 'not found' });
  });
  addRoutes(app, sources, createGuard(listener, authorizer));
  return app;
}

function createHttpServer({ address, connections, tls }: Listener, handler: RequestListener): Server {
  try {
    const requestListener = connections.oneEach(handler);
    const server = tls
      ? createTlsServer({ ...limits, handshakeTimeout: handshakeMs, ...tls }, requestListener)
      : createServer(limits, requestListener);
    connections.watch(server);
    server.timeout = idleMs;
    return server;
  } catch (thrown) {
    throw new WaybillError('admin_listen_failed', `cannot use admin.tls for "${address}": ${messageOf(thrown)}`, { cause: thrown });
  }
}

function createGuard({ place, connections }: Listener, authorizer: Authorizer): Guard {
  return (access: Access) => async (request: FastifyRequest, reply: FastifyReply) => {
    const { host, authorization } = request.headers;
    const decision = await authorizer({ place, address: request.ip, host, authorization }, access);
    if (decision.allowed) {
      if (access === 'write') connections.keep(request.raw.socket);
      return;
    }
    if (decision.status === 401) reply.header('www-authenticate', 'Basic realm="waybill", charset="UTF-8"');
    else reply.header('retry-after', '60');
    return reply.code(decision.status).send({ error: decision.message });
  };
}

/** Answers a request that the HTTP parser rejected, and closes the connection. */
function rejectUnparsed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return;
  }
  const status =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? '431 Request Header Fields Too Large'
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? '408 Request Timeout'
        : '400 Bad Request';
  const body = JSON.stringify({ error: unreadable });
  const head = [`HTTP/1.1 ${status}`, 'connection: close', 'content-type: application/json', `content-length: ${body.length}`];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy());
}

function parseListen(listen: string): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]]+)):(\d{1,5})$/.exec(listen) ?? [];
  const host = bracketed ?? plain;
  const port = Number(digits);
  if (host === undefined || !(port <= 65_535)) {
    throw new WaybillError(
      'admin_listen_failed',
      `cannot read admin.listen "${listen}": not an address and a port such as 127.0.0.1:9464 or [::]:9464`,
    );
  }
  return { host, port };
}

function listenFailed(what: string): (thrown: unknown) => never {
  return (thrown) => {
    throw new WaybillError('admin_listen_failed', `cannot listen on ${what}: ${listenReason(thrown)}`, { cause: thrown });
  };
}

function listenReason(thrown: unknown): string {
  const code = thrown instanceof Error ? (thrown as NodeJS.ErrnoException).code : undefined;
  if (code === 'EADDRINUSE') return 'another process listens there already';
  if (code === 'EADDRNOTAVAIL') return 'this machine does not have that address';
  if (code === 'EACCES') return 'this user may not listen there';
  return messageOf(thrown);
}

async function readPem(key: 'cert' | 'key', path: string): Promise<Buffer> {
  return readFile(path).catch((thrown: unknown) => {
    throw new WaybillError('admin_listen_failed', `cannot read admin.tls.${key} "${path}": ${messageOf(thrown)}`, { cause: thrown });
  });
}
