/** The connections to one HTTP server: when they end, and what a request sees of that. */
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Server as TcpServer, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { Connection } from '../../../src/connect/connection.ts';
import { messageOf } from '../../../src/errors/errors.ts';

let open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of open.reverse()) await each[Symbol.asyncDispose]();
  open = [];
});

async function listen(server: Server | TcpServer): Promise<string> {
  const sockets = new Set<Socket>();
  server.on('connection', (socket: Socket) => void sockets.add(socket.on('error', () => undefined)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push({
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** @returns a request, and the number of connections that the server got so far */
async function served(listener: RequestListener, settings: { readonly maxAgeMs?: number; readonly connections?: number } = {}) {
  let connections = 0;
  const server = createServer(listener).on('connection', () => (connections += 1));
  const url = await listen(server);
  const connection = new Connection({ setting: 'sources.production', url, timeoutMs: 5_000, ...settings });
  open.push(connection);
  return {
    connection,
    connections: () => connections,
    ask: async () => {
      const { statusCode, body } = await connection.request(`${url}/`, { method: 'GET' });
      await body.text();
      return statusCode;
    },
  };
}

const answers =
  (status: number): RequestListener =>
  (_request, response) =>
    void response.writeHead(status).end('{}');

test('successes share one connection, and every third refusal in a row ends its connection', async () => {
  let status = 200;
  const { ask, connections } = await served((request, response) => answers(status)(request, response));
  for (let i = 0; i < 8; i += 1) await ask();
  expect(connections()).toBe(1);
  for (status of [503, 404, 302, 400]) await ask();
  expect(connections()).toBe(1);
  for (status of [500, 500, 500]) await ask();
  expect(connections()).toBe(2);
  for (status of [200, 404, 200, 404, 404, 200, 404, 404, 200]) await ask();
  expect(connections()).toBe(3);
});

test('an answer that makes no sense ends the next connection', async () => {
  const { ask, connections, connection } = await served(answers(200));
  await ask();
  connection.suspect();
  await ask();
  await ask();
  expect(connections()).toBe(2);
});

test.each([1, 4])('a connection that has reached its age gets no further request, with %d connections', async (count) => {
  const { ask, connections } = await served(answers(200), { maxAgeMs: 1, connections: count });
  for (let i = 0; i < 4; i += 1) {
    await ask();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect(connections()).toBe(4);
});

test('an aborted request ends at once, also while its connection is being opened', async () => {
  // Accepts TCP and never answers the TLS handshake.
  const url = (await listen(createTcpServer())).replace('http:', 'https:');
  const connection = new Connection({ setting: 'sources.production', url, timeoutMs: 60_000 });
  open.push(connection);
  const stop = new AbortController();
  const request = connection.request(`${url}/`, { method: 'GET', signal: stop.signal });
  setTimeout(() => stop.abort(new Error('shutting down')), 20);
  await expect(request).rejects.toThrow('shutting down');
});

test('the message of a host of which no address connects names the error of each address', () => {
  const refused = (address: string): Error => new Error(`connect ECONNREFUSED ${address}:443`);
  const both = new AggregateError([refused('192.0.2.1'), new Error('connect ENETUNREACH 2001:db8::1:443')]);
  expect(messageOf(both)).toBe('connect ECONNREFUSED 192.0.2.1:443, connect ENETUNREACH 2001:db8::1:443');
  expect(messageOf(new Error('fetch failed', { cause: new AggregateError([refused('a'), refused('a')]) }))).toBe(
    'fetch failed: connect ECONNREFUSED a:443',
  );
});
