/** The admin server: probes, metrics, status, reports and operations over HTTP, on the configured addresses and the Unix socket. */
import { lookup } from 'node:dns/promises';
import { once } from 'node:events';
import { chmod } from 'node:fs/promises';
import type { RequestListener, Server, ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo, ListenOptions, Socket } from 'node:net';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { isLoopback } from '../settings/loopback.ts';
import { createServer } from '../connect/node-http.ts';
import { readRegularFileAsync } from '../disk/regular-file.ts';
import { createAuthorizer, type Authorizer, type Place, type Tokens } from './authorizer.ts';
import { connectionBudget, Connections } from './connections.ts';
import { createHandler, unreadable, type Guard } from './handler.ts';
import { json } from './response.ts';
import { routesOf, type AdminSources } from './routes.ts';
import { clearSocketPath } from './socket.ts';

export interface AdminSettings extends Tokens {
  /** Such as `127.0.0.1:9464`, `[::]:9464`, `localhost:9464`. */
  readonly listen: string | readonly string[];
  /** Paths of PEM files. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
}

type Addresses = Pick<AdminSettings, 'listen' | 'tls'>;

export interface Admin extends AsyncDisposable {
  /** `http://127.0.0.1:9464`, `https://[::1]:9464`, `unix:/var/lib/waybill/state/waybill.sock`. For port 0 this is the assigned port. */
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
/** ms until an idle connection is closed: longer than a report waits for its reader. */
const idleMs = 65_000;
const handshakeMs = 5_000;
/** Connections that the kernel queues, up to its own limit. A client that finds the queue full tries again after a second. */
const backlog = 4_096;

/** @throws WaybillError `admin_listen_failed`, which names the setting; then no listener stays open */
export async function startAdmin(settings: AdminSettings, sources: AdminSources): Promise<Admin> {
  await using started = new AsyncDisposableStack();
  const authorizer = createAuthorizer(settings, sources.clock, sources.log);
  const routes = routesOf(sources);
  const create = (listener: Listener): Server =>
    createHttpServer(listener, createHandler(routes, createGuard(listener, authorizer), sources.log));
  const addresses = await openAddresses(settings, create, started);
  if (sources.socketPath !== undefined) {
    const path = sources.socketPath;
    await clearSocketPath(path);
    // A separate budget: clients on the network cannot use up the connections of the socket.
    await listen(create({ address: path, place: 'socket', connections: new Connections(connectionBudget()) }), { path }, started)
      .then(() => chmod(path, 0o600))
      .catch(listenFailed(`"${path}"`));
    addresses.push(`unix:${path}`);
  }
  const running = started.move();
  return { addresses, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

/** Listens on every address for a moment, for `check`. @throws as `startAdmin` */
export async function tryAddresses(settings: Addresses): Promise<void> {
  await using started = new AsyncDisposableStack();
  await openAddresses(settings, (listener) => createHttpServer(listener, (_, response) => void response.destroy()), started);
}

async function openAddresses(
  settings: Addresses,
  create: (listener: Listener) => Server,
  started: AsyncDisposableStack,
): Promise<string[]> {
  const tls = settings.tls && { cert: await readPem('cert', settings.tls.cert), key: await readPem('key', settings.tls.key) };
  const connections = new Connections(connectionBudget());
  const addresses: string[] = [];
  for (const address of typeof settings.listen === 'string' ? [settings.listen] : settings.listen) {
    const { host, port } = parseListen(address);
    const listener: Listener = { address, place: isLoopback(host) ? 'loopback' : 'elsewhere', connections, tls };
    for (const each of await addressesOf(host).catch(listenFailed(`admin.listen "${address}"`))) {
      const server = create(listener);
      await listen(server, { host: each, port }, started).catch(listenFailed(`admin.listen "${address}"`));
      const at = server.address() as AddressInfo;
      addresses.push(`${tls ? 'https' : 'http'}://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`);
    }
  }
  return addresses;
}

async function listen(server: Server, options: ListenOptions, started: AsyncDisposableStack): Promise<void> {
  server.listen({ ...options, backlog });
  await once(server, 'listening');
  started.defer(() => close(server));
}

function createHttpServer({ address, connections, tls }: Listener, handler: RequestListener): Server {
  try {
    const requestListener = connections.oneEach(handler);
    const server = tls
      ? createTlsServer({ ...limits, handshakeTimeout: handshakeMs, ...tls }, requestListener)
      : createServer(limits, requestListener);
    // A request that reaches no route: bytes that are not HTTP.
    server.on('clientError', rejectUnparsed);
    connections.watch(server);
    server.timeout = idleMs;
    return server;
  } catch (thrown) {
    throw new WaybillError('admin_listen_failed', `cannot use admin.tls for "${address}": ${messageOf(thrown)}`, { cause: thrown });
  }
}

async function close(server: Server): Promise<void> {
  const closed = once(server, 'close');
  server.close();
  server.closeAllConnections();
  await closed;
}

function createGuard({ place, connections }: Listener, authorizer: Authorizer): Guard {
  return async (access, { headers: { host, authorization }, socket }) => {
    const decision = await authorizer({ place, address: socket.remoteAddress ?? '', host, authorization }, access);
    if (decision.allowed) {
      if (access === 'write') connections.keep(socket);
      return undefined;
    }
    return json({ error: decision.message }, decision.status, headersOf[decision.status]);
  };
}

const headersOf: Readonly<Record<401 | 403 | 429, Readonly<Record<string, string>>>> = {
  401: { 'www-authenticate': 'Basic realm="waybill", charset="UTF-8"' },
  403: {},
  429: { 'retry-after': '60' },
};

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
  const body = JSON.stringify(unreadable);
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

/** `localhost` has an IPv4 and an IPv6 address if the machine has both. */
async function addressesOf(host: string): Promise<readonly string[]> {
  if (host !== 'localhost') return [host];
  const found = await lookup(host, { all: true });
  return [...new Set(found.map(({ address }) => address))];
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
  return readRegularFileAsync(path).catch((thrown: unknown) => {
    throw new WaybillError('admin_listen_failed', `cannot read admin.tls.${key} "${path}": ${messageOf(thrown)}`, { cause: thrown });
  });
}
