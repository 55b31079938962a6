/**
 * The admin server: probes, metrics, status and the ledger, over HTTP on the configured addresses and on the state's own socket. No GET changes
 * anything; what a person changes comes as a POST to one address, by the socket or with the admin token. An answer never shows more of a
 * failure than its message.
 */
import { chmod, readFile } from 'node:fs/promises';
import { createServer, type ServerOptions } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { Socket } from 'node:net';
import type { Readable } from 'node:stream';
import { fastify, type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { codeOf, WaybillError, messageOf } from '../errors.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { createAuthorizer, isLoopback, type Authorizer, type Place, type Tokens } from './authorizer.ts';
import type { LedgerFormat } from '../report/ledger/document.ts';
import { ledgerHtmlPolicy } from '../report/ledger/html-style.ts';
import { troubles } from './readiness.ts';
import { connectionBudget, Connections } from './connections.ts';
import { clearSocketPath } from './socket.ts';
import { statusJson } from '../report/status-json.ts';

export interface AdminSettings extends Tokens {
  /** `127.0.0.1:9464`, `[::]:9464`, `localhost:9464`; several are all listened on. */
  readonly listen: string | readonly string[];
  /** Files in PEM. */
  readonly tls?: { readonly cert: string; readonly key: string } | undefined;
}

/** The parameters of the report: times and zone as they came. */
interface LedgerParams {
  readonly source?: string | undefined;
  readonly from?: string | undefined;
  readonly to?: string | undefined;
  readonly by?: 'window' | 'day' | 'month' | undefined;
  readonly tz?: string | undefined;
  readonly format?: LedgerFormat | undefined;
}

interface AdminReport {
  readonly type: string;
  readonly text: string | Readable;
}

export interface AdminSources {
  /** Undefined while the state is not open yet (another process may still hold its lock). */
  readonly snapshot: () => Snapshot | undefined | Promise<Snapshot | undefined>;
  /** The same with what each ledger covers, for the verdict: it costs more, and probes do not need it. */
  readonly status?: () => Snapshot | undefined | Promise<Snapshot | undefined>;
  /** The completeness report. A WaybillError `usage` becomes 400 with its message; so for the two below. */
  readonly ledger: (params: LedgerParams) => Promise<AdminReport>;
  /** What `gaps list --json` prints. */
  readonly gaps: (params: { readonly source?: string | undefined }) => Promise<AdminReport>;
  /** What `operations list --json` prints. */
  readonly operations: (params: { readonly from?: string | undefined; readonly to?: string | undefined }) => Promise<AdminReport>;
  readonly metricsText: () => Promise<string>;
  /** Performs an operation in one transaction. A WaybillError becomes an answer with its message and its code. */
  readonly operate?: (request: unknown) => Promise<unknown>;
  /** One line for `/healthz` while the process works; default `ok`. */
  readonly health?: () => string;
  /** Why the process does not work any more; undefined while it does. */
  readonly stalled?: () => string | undefined;
  readonly log: Log;
  readonly clock: Clock;
  /** `waybill.sock` in the state directory. */
  readonly socketPath?: string | undefined;
}

export interface Admin extends AsyncDisposable {
  /** `http://127.0.0.1:9464`, `https://[::1]:9464`, `unix:/var/lib/waybill/state/waybill.sock`; with the ports really used. */
  readonly addresses: readonly string[];
}

const ledgerParams = ['source', 'from', 'to', 'by', 'tz', 'format'] as const;
const operationBytes = 16_384;
const limits: ServerOptions = {
  maxHeaderSize: 16_384,
  headersTimeout: 5_000,
  requestTimeout: 10_000,
  // How often the two above are looked at.
  connectionsCheckingInterval: 1_000,
};
/** A connection on which nothing moves for so long is closed; longer than a report waits for its reader. */
const idleMs = 65_000;
const handshakeMs = 5_000;
/** How many connections the kernel holds until they are accepted, as far as it allows: beyond that a probe is sent again only after a second. */
const backlog = 4_096;

/** @throws WaybillError `admin_listen_failed`, naming the setting: nothing listens then */
export async function startAdmin(settings: AdminSettings, sources: AdminSources): Promise<Admin> {
  await using started = new AsyncDisposableStack();
  const tls = settings.tls && { cert: await readPem('cert', settings.tls.cert), key: await readPem('key', settings.tls.key) };
  const authorizer = createAuthorizer(settings, sources.clock, sources.log);
  const connections = new Connections(connectionBudget());
  const addresses: string[] = [];
  for (const listen of typeof settings.listen === 'string' ? [settings.listen] : settings.listen) {
    const { host, port } = parseListen(listen);
    const app = build(isLoopback(host) ? 'loopback' : 'elsewhere', authorizer, connections, sources, listen, tls);
    started.defer(() => app.close());
    await app.listen({ host, port, backlog }).catch((thrown: unknown) => {
      throw new WaybillError('admin_listen_failed', `cannot listen on admin.listen "${listen}": ${listenAddress(thrown)}`, {
        cause: thrown,
      });
    });
    // Typed as if it could be a pipe as well.
    for (const at of app.addresses().filter((a) => typeof a !== 'string')) {
      addresses.push(`${tls ? 'https' : 'http'}://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`);
    }
  }
  if (sources.socketPath !== undefined) {
    const path = sources.socketPath;
    await clearSocketPath(path);
    // Its owner has a budget of his own: what comes by the network takes nothing from him.
    const app = build('socket', authorizer, new Connections(connectionBudget()), sources, path);
    started.defer(() => app.close());
    await app
      .listen({ path })
      .then(() => chmod(path, 0o600))
      .catch((thrown: unknown) => {
        throw new WaybillError('admin_listen_failed', `cannot listen on "${path}": ${listenAddress(thrown)}`, { cause: thrown });
      });
    addresses.push(`unix:${path}`);
  }
  const running = started.move();
  return { addresses, [Symbol.asyncDispose]: () => running.disposeAsync() };
}

function build(
  place: Place,
  authorizer: Authorizer,
  connections: Connections,
  sources: AdminSources,
  at: string,
  tls?: { cert: Buffer; key: Buffer },
): FastifyInstance {
  const app = fastify({
    logger: false,
    bodyLimit: 1_024,
    forceCloseConnections: true,
    return503OnClosing: true,
    serverFactory: (handler) => {
      try {
        const listener = connections.oneEach(handler);
        const server = tls
          ? createTlsServer({ ...limits, handshakeTimeout: handshakeMs, ...tls }, listener)
          : createServer(limits, listener);
        connections.watch(server);
        server.timeout = idleMs;
        return server;
      } catch (thrown) {
        throw new WaybillError('admin_listen_failed', `cannot use admin.tls for "${at}": ${messageOf(thrown)}`, { cause: thrown });
      }
    },
    // What does not come as far as a route: an address that cannot be decoded, and what is no HTTP at all.
    frameworkErrors: (_, __, reply: FastifyReply) => void reply.code(400).headers(protective).send({ error: unreadable }),
    clientErrorHandler: (error, socket) => refuseRaw(error, socket),
  });
  const admit = (what: 'metrics' | 'read' | 'write') => async (request: FastifyRequest, reply: FastifyReply) => {
    const { host, authorization } = request.headers;
    const answer = await authorizer({ place, address: request.ip, host, authorization }, what);
    if (answer.admitted) {
      if (what === 'write') connections.keep(request.raw.socket);
      return;
    }
    if (answer.status === 401) reply.header('www-authenticate', 'Basic realm="waybill", charset="UTF-8"');
    else reply.header('retry-after', '60');
    return reply.code(answer.status).send({ error: answer.message });
  };

  /** The state of everything; when there is none, says so with 503. */
  const current = async (reply: FastifyReply, read = sources.snapshot): Promise<Snapshot | undefined> => {
    const missing = sources.stalled?.();
    const snapshot = missing === undefined ? await read() : undefined;
    if (!snapshot) await reply.code(503).send({ error: missing ?? stateless(sources) });
    return snapshot;
  };
  const report =
    <Params>(names: readonly (keyof Params & string)[], make: (asked: Params) => Promise<AdminReport>) =>
    async (request: FastifyRequest, reply: FastifyReply) => {
      const asked = params(request.query, names) as Params;
      if (!(await current(reply))) return reply;
      const { type, text } = await make(asked);
      return reply.type(type).send(text);
    };

  app.addHook('onRequest', async (request, reply) => {
    reply.headers(protective);
    // Answered before its body is read: whoever sends one byte of it would hold a connection.
    if (request.is404) return reply.code(404).send({ error: 'not found' });
  });
  app.get('/healthz', async (_, reply) => {
    const stalled = sources.stalled?.();
    return reply
      .code(stalled === undefined ? 200 : 503)
      .type('text/plain; charset=utf-8')
      .send(`${stalled ?? sources.health?.() ?? 'ok'}\n`);
  });
  app.get('/readyz', async (request, reply) => {
    const only = params(request.query, ['source', 'sink']);
    const stalled = sources.stalled?.();
    const snapshot = stalled === undefined ? await sources.snapshot() : undefined;
    if (!snapshot) return reply.code(503).send({ ready: false, reasons: [stalled ?? stateless(sources)] });
    const missing = unknownIds(snapshot, only);
    if (missing !== undefined) return reply.code(404).send({ error: missing });
    const reasons = troubles(snapshot, only);
    return reply.code(reasons.length === 0 ? 200 : 503).send({ ready: reasons.length === 0, reasons });
  });
  app.get('/metrics', { onRequest: admit('metrics') }, async (_, reply) =>
    reply.type('text/plain; version=0.0.4; charset=utf-8').send(await sources.metricsText()),
  );
  app.get('/status', { onRequest: admit('read') }, async (_, reply) => {
    const snapshot = await current(reply, sources.status);
    return snapshot ? statusJson(snapshot) : reply;
  });
  // The whole snapshot, from which `waybill status` makes its text.
  app.get('/snapshot', { onRequest: admit('read') }, async (_, reply) => (await current(reply, sources.status)) ?? reply);
  app.get('/ledger', { onRequest: admit('read') }, async (request, reply) => {
    const { by, format, ...others } = params(request.query, ledgerParams);
    const asked = {
      ...others,
      by: oneOf('by', by, ['window', 'day', 'month']),
      format: oneOf('format', format, ['json', 'csv', 'html']),
    };
    if (!(await current(reply))) return reply;
    const { type, text } = await sources.ledger(asked);
    if (asked.format === 'html') reply.header('content-security-policy', `${ledgerHtmlPolicy}; frame-ancestors 'none'`);
    return reply.type(type).send(text);
  });
  app.get('/gaps', { onRequest: admit('read') }, report(['source'], sources.gaps));
  app.get('/operations', { onRequest: admit('read') }, report(['from', 'to'], sources.operations));
  const { operate } = sources;
  if (operate)
    app.post('/operations', { onRequest: admit('write'), bodyLimit: operationBytes }, async (request, reply) => {
      // JSON alone: a form of a foreign page cannot send it without asking first.
      if (!/^application\/json\b/.test(request.headers['content-type'] ?? ''))
        return reply.code(415).send({ error: 'send application/json' });
      if (!(await sources.snapshot())) return reply.code(503).send({ error: stateless(sources), code: 'state_unusable' });
      return operate(request.body).catch((thrown: unknown) => {
        const code = codeOf(thrown);
        if (code === undefined || code === 'internal_error') throw thrown;
        return reply.code(code === 'usage' ? 400 : 503).send({ error: messageOf(thrown), code });
      });
    });
  app.setErrorHandler((thrown, request, reply) => {
    if (codeOf(thrown) === 'usage') return reply.code(400).send({ error: messageOf(thrown) });
    if (codeOf(thrown) === 'admin_busy')
      return reply
        .code(503)
        .header('retry-after', '1')
        .send({ error: messageOf(thrown) });
    const status = statusOf(thrown);
    if (status < 500) return reply.code(status).send({ error: unreadable });
    sources.log.write('admin.request_failed', { error: thrown, url: request.routeOptions.url });
    return reply.code(500).send({ error: 'internal error; see the log' });
  });
  return app;
}

const protective = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
};
const unreadable = 'cannot read this request';

/** Answers a request that the HTTP parser refused, and closes the connection. */
function refuseRaw(error: NodeJS.ErrnoException, socket: Socket): void {
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

function stateless(sources: AdminSources): string {
  return sources.health?.() ?? 'the state is not open yet';
}

/** Parameters by name, each once. An unknown name is an error: a typing error must not widen the query. */
function params<Name extends string>(query: unknown, names: readonly Name[]): Partial<Record<Name, string>> {
  const taken: Partial<Record<Name, string>> = {};
  for (const [name, value] of Object.entries(query ?? {})) {
    const known = names.find((n) => n === name);
    if (known === undefined) throw new WaybillError('usage', `unknown parameter "${name}"; known parameters: ${names.join(', ')}`);
    if (typeof value !== 'string') throw new WaybillError('usage', `parameter "${name}" is given more than once`);
    taken[known] = value;
  }
  return taken;
}

function oneOf<Name extends string>(parameter: string, given: string | undefined, names: readonly Name[]): Name | undefined {
  const found = names.find((name) => name === given);
  if (given !== undefined && found === undefined)
    throw new WaybillError('usage', `unknown ${parameter} "${given}"; known: ${names.join(', ')}`);
  return found;
}

function unknownIds(snapshot: Snapshot, only: { source?: string; sink?: string }): string | undefined {
  if (only.source !== undefined && !snapshot.sources.some(({ id }) => id === only.source)) return `there is no source "${only.source}"`;
  if (only.sink !== undefined && !snapshot.sinks.some(({ id }) => id === only.sink)) return `there is no sink "${only.sink}"`;
  return undefined;
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

function listenAddress(thrown: unknown): string {
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

function statusOf(thrown: unknown): number {
  return typeof thrown === 'object' && thrown !== null && 'statusCode' in thrown && typeof thrown.statusCode === 'number'
    ? thrown.statusCode
    : 500;
}
