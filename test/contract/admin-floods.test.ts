/**
 * Hostile clients of the admin server: it bounds their resources, and other clients do not wait for
 * them.
 */
import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import type { Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WaybillError } from '../../src/errors/errors.ts';
import { startAdmin } from '../../src/admin/server.ts';
import type { AdminSources } from '../../src/admin/routes.ts';
import { Connections } from '../../src/admin/connections.ts';
import { snapshot } from '../support/report/snapshots.ts';
import { createServer } from 'node:http';

let running: AsyncDisposableStack;
beforeEach(() => (running = new AsyncDisposableStack()));
afterEach(() => running.disposeAsync());

const silent = { write: () => undefined };
const empty = () => Promise.resolve({ type: 'application/json', text: '{}' });

async function start(sources: Partial<AdminSources> = {}): Promise<number> {
  const admin = await startAdmin(
    { listen: '127.0.0.1:0' },
    {
      ...{ snapshot: () => snapshot(), ledger: empty, gaps: empty, operations: empty, operate: () => Promise.resolve({}) },
      metricsText: () => Promise.resolve('waybill_gaps 0\n'),
      ...{ log: silent, clock: { now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() } },
      ...sources,
    },
  );
  running.use(admin);
  return Number(new URL(admin.addresses[0] ?? '').port);
}

async function raw(port: number, sent: string): Promise<string> {
  const socket = connect(port, '127.0.0.1');
  socket.on('error', () => undefined);
  socket.write(sent);
  return text(socket).catch(() => '');
}

async function status(port: number, path: string): Promise<number | undefined> {
  const asking = request({ port, host: '127.0.0.1', path, agent: false });
  asking.end();
  const [answer] = (await once(asking, 'response')) as [import('node:http').IncomingMessage];
  answer.resume();
  return answer.statusCode;
}

const head = (target: string, more = '') => `${target} HTTP/1.1\r\nhost: localhost\r\n${more}\r\n`;

test('at most one of several pipelined requests is answered, and the connection is closed', async () => {
  let made = 0;
  const port = await start({
    metricsText: async () => {
      made += 1;
      await new Promise((resolve) => setImmediate(resolve));
      return 'waybill_gaps 0\n';
    },
  });
  const answers = await raw(port, head('GET /metrics').repeat(3_000));
  expect(answers.split('HTTP/1.1 200').length - 1).toBeLessThanOrEqual(1);
  expect(made).toBeLessThanOrEqual(1);
  expect(await status(port, '/healthz')).toBe(200);
});

test('each response closes its connection', async () => {
  const port = await start();
  for (const target of ['GET /healthz', 'GET /nothing', 'POST /operations']) {
    // Resolves when the server has closed the connection.
    expect(await raw(port, head(target)), target).toMatch(/\r\nconnection: close\r\n/i);
  }
});

test('a GET is answered without waiting for its body', async () => {
  const port = await start();
  expect(await raw(port, head('GET /readyz', 'content-length: 10000000\r\n'))).toMatch(/^HTTP\/1.1 200 /);
  expect(await raw(port, head('POST /operations', 'content-type: application/json\r\ncontent-length: 10000000\r\n'))).toMatch(
    /^HTTP\/1.1 401 /,
  );
});

test('an unknown path or method is answered and closed before its body arrives', async () => {
  const port = await start();
  for (const [target, status] of [
    ['POST /x', '404 [^]*"not found"'],
    ['POST /nothing/at/all', '404 [^]*"not found"'],
    ['POST /healthz', '405 [^]*"method not allowed: use GET, HEAD"'],
    ['DELETE /status', '405 [^]*"method not allowed: use GET, HEAD"'],
    ['PUT /operations', '405 '],
  ] as const) {
    const began = performance.now();
    const answer = await raw(port, `${head(target, 'content-type: application/json\r\ncontent-length: 100\r\n')}{`);
    expect(answer, target).toMatch(new RegExp(`^HTTP/1.1 ${status}`));
    // The server waits 10 s for a body.
    expect(performance.now() - began, target).toBeLessThan(8_000);
  }
});

test('connections over the limit, each with one byte of a body, do not block other clients', async () => {
  const port = await start();
  const hostile = `${head('POST /x', 'content-type: application/json\r\ncontent-length: 100\r\n')}{`;
  const begun = Array.from({ length: 600 }, () => raw(port, hostile));
  for (let i = 0; i < 5; i += 1) expect(await status(port, '/healthz')).toBe(200);
  await Promise.all(begun);
});

test('a request with an incomplete body is replaced, unless its sender is authorized', async () => {
  const connections = new Connections(2);
  const server = createServer(
    connections.oneEach((request) => {
      if (request.headers.authorization !== undefined) connections.keep(request.socket);
    }),
  );
  connections.watch(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  running.defer(() => void server.close());
  const { port } = server.address() as import('node:net').AddressInfo;
  const post = async (more: string): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    socket.on('error', () => undefined);
    running.defer(() => void socket.destroy());
    socket.write(`${head('POST /', `${more}content-length: 100\r\n`)}{`);
    await once(server, 'request');
    return socket;
  };
  const kept = await post('authorization: Bearer x\r\n');
  const other = await post('');
  const gone = once(other, 'close');
  const third = await post('');
  await gone;
  expect([kept.destroyed, third.destroyed]).toEqual([false, false]);
});

test('a URL that cannot be decoded and bytes that are not HTTP get a JSON error', async () => {
  const port = await start();
  const body = '{"error":"cannot read this request"}';
  for (const sent of [head('GET /%ff'), 'GET\r\n\r\n', head('GET /', `x: ${'x'.repeat(17_000)}\r\n`)]) {
    expect(await raw(port, sent)).toMatch(/^HTTP\/1.1 (400 Bad Request|431 Request Header Fields Too Large)\r\n/);
    expect(await raw(port, sent)).toContain(body);
  }
});

test('under overload the response is 503 with Retry-After', async () => {
  const port = await start({ ledger: () => Promise.reject(new WaybillError('admin_busy', '8 reports are waiting already')) });
  const answer = await raw(port, head('GET /ledger'));
  expect(answer).toMatch(/^HTTP\/1.1 503 /);
  expect(answer).toMatch(/\r\nretry-after: 1\r\n/);
  expect(answer).toContain('{"error":"8 reports are waiting already"}');
});

test('a daemon that does not respond is unhealthy, and probes do not wait for it', async () => {
  const port = await start({
    stalled: () => 'the daemon has not responded for 12 s',
    snapshot: () => new Promise(() => undefined),
  });
  const healthz = await raw(port, head('GET /healthz'));
  expect(healthz).toMatch(/^HTTP\/1.1 503 [^]*the daemon has not responded for 12 s\n$/);
  for (const path of ['/readyz', '/status', '/ledger'])
    expect(await raw(port, head(`GET ${path}`)), path).toMatch(/^HTTP\/1.1 503 [^]*12 s/);
});

test('a new connection replaces the oldest one with an incomplete request, and none that is being answered', async () => {
  let go: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => (go = resolve));
  const connections = new Connections(3);
  const server = createServer(
    connections.oneEach((_, response) => {
      void answered.then(() => response.end('done'));
    }),
  );
  connections.watch(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  running.defer(() => void server.close());
  const port = (server.address() as import('node:net').AddressInfo).port;
  const open = async (): Promise<Socket> => {
    const socket = connect(port, '127.0.0.1');
    running.defer(() => void socket.destroy());
    await once(server, 'connection');
    return socket;
  };
  const busy = await open();
  busy.write(head('GET /'));
  await once(server, 'request');
  const [first, second] = [await open(), await open()];
  const gone = once(first, 'close');
  const third = await open();
  await gone;
  expect([busy, second, third].map(({ readableEnded }) => readableEnded)).toEqual([false, false, false]);
  go();
  expect(await text(busy)).toMatch(/^HTTP\/1.1 200 [^]*done/);
});
