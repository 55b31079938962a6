/**
 * Requests that are too large, too slow, truncated or invalid: a clear status, no partial write,
 * and the service continues.
 */
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, type TLSSocket } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { fileOf, logOf, open, protect } from '../support/reference/files.ts';
import { Service, type Caller } from '../support/reference/service.ts';

let service: Service;
let author: Caller;
beforeAll(async () => {
  service = await Service.start('--seed', 'bodies', '--file-max', '100000');
  author = await service.as('Author');
});
afterAll(() => service.stop());
afterEach(() => service.set({ bodyPatience: '30s', fileMax: 100_000 }));

const path = '/payloads/protect-remote';
const total = async (): Promise<unknown> => (await service.page('pageSize=1')).pagination.totalRecords;

/** A separate connection, and all data received on it until it ends. */
async function raw(): Promise<{ socket: TLSSocket; response: Promise<string> }> {
  const { port } = new URL(service.line.baseUrl);
  const socket = connect({ port: Number(port), host: '127.0.0.1', ca: readFileSync(service.line.ca, 'utf8') });
  await once(socket, 'secureConnect');
  const response = new Promise<string>((resolve) => {
    let text = '';
    socket.on('data', (part: Buffer) => (text += part.toString()));
    socket.once('close', () => resolve(text));
    socket.on('error', () => undefined);
  });
  return { socket, response };
}

function head(length: number, caller = author, ...more: string[]): string {
  return [
    `POST ${new URL(service.line.baseUrl).pathname}${path} HTTP/1.1`,
    'host: 127.0.0.1',
    `authorization: Bearer ${caller.token}`,
    `ocp-apim-subscription-key: ${service.line.subscriptionKey}`,
    `x-api-caller-id: ${caller.userId}`,
    'content-type: application/json',
    `content-length: ${length}`,
    ...more,
    '\r\n',
  ].join('\r\n');
}

describe('a body', () => {
  test.each([
    ['{"fileType":', undefined, 400, 'The body is not JSON'],
    ['', undefined, 400, 'The body is not JSON'],
    [Buffer.from('{"a":"\xff"}', 'latin1'), undefined, 400, 'The body is not UTF-8'],
    ['[]', undefined, 400, 'The body does not fit'],
    ['null', undefined, 400, 'The body does not fit'],
    [`${'['.repeat(32)}"]["${']'.repeat(32)}`, undefined, 400, 'The body does not fit'],
    [`{"a":${'['.repeat(32)}`, undefined, 400, 'nested deeper than 32 levels'],
    [`{"\\"":${'{"":'.repeat(32)}`, undefined, 400, 'nested deeper than 32 levels'],
    ['{}', { 'content-type': 'text/plain' }, 415, 'Content-Type'],
    ['{}', { 'content-type': undefined }, 415, 'Content-Type'],
    ['{}', { 'content-type': 'application/json; charset=utf-16' }, 415, 'Content-Type'],
    ['{}', { 'content-encoding': 'gzip' }, 415, 'Content-Encoding'],
    ['{}', { 'content-encoding': 'Identity' }, 400, 'fileType'],
  ])('%j with %j is refused with %i', async (body, headers, expected, words) => {
    const { status, headers: got, json } = await service.call(author, 'POST', path, body, headers);
    expect([status, got['content-type']]).toEqual([expected, 'application/problem+json']);
    expect(String(json['detail'])).toContain(words);
  });

  test('that would need much more memory than its size is refused before it is parsed', async () => {
    for (const body of [`[${'{},'.repeat(40_000)}{}]`, `${' '.repeat(70_000)}{}`, '['.repeat(130_000)]) {
      const { status, json } = await service.call(author, 'POST', path, body);
      expect([status, String(json['detail'])]).toEqual([400, expect.stringMatching(/nested deeper|65536 bytes outside of its strings/)]);
    }
  });

  test('with an invalid header is refused with the name of the header', async () => {
    const tried = async (headers: Record<string, string | undefined>): Promise<unknown[]> => {
      const { status, json } = await service.call(author, 'POST', path, '{}', headers);
      return [status, json['parameter']];
    };
    expect(await tried({ 'content-type': 'text/plain' })).toEqual([415, 'Content-Type']);
    expect(await tried({ 'content-encoding': 'gzip' })).toEqual([415, 'Content-Encoding']);
    expect(await tried({ 'ocp-apim-subscription-key': undefined })).toEqual([401, 'Ocp-Apim-Subscription-Key']);
    expect(await tried({ authorization: undefined })).toEqual([401, 'Authorization']);
    expect(await tried({ authorization: 'Bearer x' })).toEqual([401, 'Authorization']);
  });

  test('with a charset is accepted', async () => {
    const headers = { 'content-type': 'application/json; charset=UTF-8' };
    expect((await service.call(author, 'POST', path, fileOf('x'), headers)).status).toBe(201);
  });
});

describe('a file', () => {
  test('of the largest size is protected and opened; one byte more is 413 both ways, and nothing is written', async () => {
    const largest = await protect(service, author, Buffer.alloc(100_000));
    expect((await open(service, author, largest)).status).toBe(200);
    const before = await total();
    const larger = await service.call(author, 'POST', path, fileOf(Buffer.alloc(100_001)));
    expect([larger.status, larger.json['parameter']]).toEqual([413, 'base64FileData']);
    await service.set({ fileMax: 20_000 });
    expect((await open(service, author, largest)).status).toBe(413);
    expect(await total()).toBe(before);
  });

  test('far too large is refused before it has arrived, and the connection stays usable', async () => {
    const { socket, response } = await raw();
    socket.write(head(50_000_000));
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
    await response;
    const { status } = await service.call(author, 'POST', path, fileOf(Buffer.alloc(5_000_000)));
    expect(status).toBe(413);
  });

  test('far too large without a stated size is refused when the limit is exceeded', async () => {
    const { socket } = await raw();
    socket.write(head(0).replace('content-length: 0', 'transfer-encoding: chunked'));
    const chunk = `10000\r\n${'x'.repeat(0x10000)}\r\n`;
    for (let sent = 0; sent < 20; sent += 1) socket.write(chunk);
    const [first] = (await once(socket, 'data')) as [Buffer];
    expect(first.toString()).toMatch(/^HTTP\/1\.1 413 /);
    socket.destroy();
  });
});

describe('a client', () => {
  test('that sends its body too slowly gets 408, and nothing is written', async () => {
    await service.set({ bodyPatience: '100ms' });
    const before = await total();
    const { socket, response } = await raw();
    socket.write(`${head(500)}{"fileType":`);
    const answer = await response;
    expect(answer).toMatch(/^HTTP\/1\.1 408 /);
    expect(answer).toContain('application/problem+json');
    expect(await total()).toBe(before);
  });

  test('that disconnects within its body leaves nothing behind', async () => {
    const before = await total();
    const { socket } = await raw();
    const text = JSON.stringify(fileOf('x'));
    await new Promise((written) => socket.write(head(text.length) + text.slice(0, -1), written));
    socket.destroy();
    const file = await protect(service, author);
    expect(await total()).toBe(Number(before) + 1);
    expect(await logOf(service, file)).toHaveLength(1);
  });

  test.each([
    ['no HTTP', 'hello\r\n\r\n', 400],
    ['a header without end', `GET / HTTP/1.1\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
    ['no Host', 'GET /openapi.json HTTP/1.1\r\nconnection: close\r\n\r\n', 400],
    ['two Hosts', 'GET /openapi.json HTTP/1.1\r\nhost: a\r\nHost: a\r\nconnection: close\r\n\r\n', 400],
    ['an expectation', 'POST /openapi.json HTTP/1.1\r\nhost: a\r\nexpect: miracles\r\nconnection: close\r\n\r\n', 417],
  ])('that sends %s gets problem details', async (_, text, status) => {
    const { socket, response } = await raw();
    socket.write(text);
    const answer = await response;
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} [\\s\\S]*application/problem\\+json`));
    expect(JSON.parse(answer.slice(answer.indexOf('\r\n\r\n') + 4))).toMatchObject({ status, type: 'about:blank' });
  });
});

test('a target in absolute form equals its path, and HEAD is GET without a body', async () => {
  const url = new URL(service.line.baseUrl);
  const asked = async (method: string, target: string): Promise<string> => {
    const { socket, response } = await raw();
    const lines = [
      `${method} ${target} HTTP/1.1`,
      `host: ${url.host}`,
      `authorization: Bearer ${author.token}`,
      `ocp-apim-subscription-key: ${service.line.subscriptionKey}`,
      'connection: close',
      '\r\n',
    ];
    socket.write(lines.join('\r\n'));
    return response;
  };
  const path = `${url.pathname}/users?page=1`;
  const bodyOf = (answer: string): string => answer.slice(answer.indexOf('\r\n\r\n') + 4);
  const got = await asked('GET', path);
  expect(got).toMatch(/^HTTP\/1\.1 200 /);
  expect(bodyOf(await asked('GET', `https://${url.host}${path}`))).toBe(bodyOf(got));
  const head = await asked('HEAD', path);
  expect(head).toMatch(/^HTTP\/1\.1 200 /);
  expect(head.toLowerCase()).toContain(`content-length: ${Buffer.byteLength(bodyOf(got))}\r\n`);
  expect(bodyOf(head)).toBe('');
});

test('without permission no body is read', async () => {
  const { socket } = await raw();
  socket.write(head(50_000_000).replace(author.token, 'x'));
  const [first] = (await once(socket, 'data')) as [Buffer];
  expect(first.toString()).toMatch(/^HTTP\/1\.1 401 /);
  socket.destroy();
});

describe('permissions removed during a body', () => {
  /**
   * Starts to protect a file, and continues after the service has checked the header and
   * `meanwhile` has run.
   */
  const interrupted = async (caller: Caller, meanwhile: () => Promise<unknown>): Promise<string> => {
    const { socket, response } = await raw();
    const text = JSON.stringify(fileOf('x'));
    socket.write(head(text.length, caller, 'expect: 100-continue', 'connection: close'));
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1\.1 100 /);
    socket.write(text.slice(0, 5));
    await meanwhile();
    socket.write(text.slice(5));
    return response;
  };

  test('a removed role or a revoked token fails the call, which changes and logs nothing', async () => {
    const administrator = await service.as('User Administrator');
    const give = { firstName: 'Ada', lastName: 'Sample', email: 'ada@example.com', roles: ['Author', 'Recipient'] };
    const { json: user } = await service.call(administrator, 'POST', '/users', give);
    const accounts = (await service.control('GET', '/accounts')).json as unknown as Parameters<Service['signIn']>[0][];
    const ada = await service.signIn(accounts.find(({ userId }) => userId === user['id']) as Parameters<Service['signIn']>[0]);
    // A verified token is cached, so that the header is checked at once.
    expect((await service.call(ada, 'GET', '/users')).status).toBe(200);
    const before = await total();
    const role = `/users/${ada.userId}/roles/Author`;
    expect(await interrupted(ada, () => service.call(administrator, 'DELETE', role))).toMatch(/HTTP\/1\.1 403 /);
    expect(await total()).toBe(before);

    expect(await interrupted(author, () => service.set({ revokeTokens: 'now' }))).toMatch(/HTTP\/1\.1 401 /);
    author = { ...author, token: await service.token('Author', true) };
    await service.token('Security Administrator', true);
    expect(await total()).toBe(before);
  });
});
