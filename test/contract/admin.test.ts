// The admin server over real sockets: responses to a probe, Prometheus, a browser and an attacker
// who guesses tokens.
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { lookup } from 'node:dns/promises';
import { mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { Readable } from 'node:stream';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WaybillError } from '../../src/errors/errors.ts';
import { logEvents } from '../../src/model/log-events.ts';
import type { Snapshot } from '../../src/model/snapshot.ts';
import type { Clock } from '../../src/model/time.ts';
import type { AdminSources } from '../../src/admin/routes.ts';
import { startAdmin, type Admin, type AdminSettings } from '../../src/admin/server.ts';
import { sink, snapshot, source } from '../support/report/snapshots.ts';
import { noting } from '../support/telemetry/written-events.ts';

const clock: Clock & { ms: number } = {
  ms: 0,
  now: () => 0,
  monotonic: () => clock.ms,
  sleep: async () => undefined,
};
let logged: unknown[] = [];
let warned: unknown[] = [];
const log = noting({
  write: (event, ...[fields]) => void (logEvents[event].level === 'error' ? logged : warned).push(fields),
});
let directory: string;
let running: AsyncDisposableStack;

beforeEach(async () => {
  clock.ms = 0;
  [logged, warned] = [[], []];
  running = new AsyncDisposableStack();
  directory = await mkdtemp(join(tmpdir(), 'waybill-admin-'));
});
afterEach(async () => {
  await running.disposeAsync();
  await rm(directory, { recursive: true });
});

async function start(
  settings: Partial<AdminSettings> = {},
  sources: Partial<AdminSources> = {},
): Promise<Admin & { readonly url: string }> {
  const admin = await startAdmin(
    { listen: '127.0.0.1:0', ...settings },
    {
      snapshot: () => snapshot(),
      ledger: async (params) => ({ type: 'text/csv; charset=utf-8', text: JSON.stringify(params) }),
      gaps: async (params) => ({ type: 'application/json', text: JSON.stringify({ gaps: [params] }) }),
      operations: async (params) => ({ type: 'application/json', text: JSON.stringify({ operations: [params] }) }),
      metricsText: async () => 'waybill_gaps{source="production"} 0\n',
      log,
      clock,
      ...sources,
    },
  );
  running.use(admin);
  return { ...admin, url: admin.addresses[0] ?? '' };
}

interface Got {
  readonly status: number;
  readonly headers: NodeJS.Dict<string | string[]>;
  readonly body: string;
}

function get(url: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Got> {
  return ask(request(url, { method, headers }));
}

async function ask(asked: ReturnType<typeof request>): Promise<Got> {
  asked.end();
  const [response] = (await once(asked, 'response')) as [import('node:http').IncomingMessage];
  response.setEncoding('utf8');
  let body = '';
  for await (const chunk of response) body += String(chunk);
  return { status: response.statusCode ?? 0, headers: response.headers, body };
}

const secret = (text: string) => ({ read: () => text });
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
const basic = (name: string, token: string) => ({ authorization: `Basic ${Buffer.from(`${name}:${token}`).toString('base64')}` });

describe('responses', () => {
  test('serves health, metrics, status and reports, and 404 for another path', async () => {
    const { url } = await start();
    expect(await get(`${url}/healthz`)).toMatchObject({ status: 200, body: 'ok\n' });
    const metrics = await get(`${url}/metrics`);
    expect(metrics).toMatchObject({ status: 200, body: 'waybill_gaps{source="production"} 0\n' });
    expect(metrics.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(JSON.parse((await get(`${url}/status`)).body)).toMatchObject({
      summary: 'COMPLETE SO FAR AND DELIVERED, complete until 02:45 UTC (18 min ago)',
      complete: true,
      delivered: true,
      sources: [{ id: 'production', completeUntil: '2026-11-20T02:45:00Z' }],
    });
    const ledger = await get(`${url}/ledger?source=production&from=-7d&by=month&format=csv`);
    expect(JSON.parse(ledger.body)).toEqual({ source: 'production', from: '-7d', by: 'month', format: 'csv' });
    expect(ledger.headers['content-type']).toBe('text/csv; charset=utf-8');
    expect(ledger.headers['content-security-policy']).toBe("default-src 'none'; frame-ancestors 'none'");
    // A page permits only its own style.
    const page = await get(`${url}/ledger?format=html`);
    expect(page.headers['content-security-policy']).toMatch(
      /^default-src 'none'; style-src 'sha256-[\w+/]{43}='; .*frame-ancestors 'none'$/,
    );
    expect((await get(`${url}/gaps?source=production`)).body).toBe('{"gaps":[{"source":"production"}]}');
    expect((await get(`${url}/operations?from=-7d&to=2026-Q3`)).body).toBe('{"operations":[{"from":"-7d","to":"2026-Q3"}]}');
    expect(JSON.parse((await get(`${url}/snapshot`)).body)).toEqual(JSON.parse(JSON.stringify(snapshot())));
    for (const path of ['/', '/nothing', '/status/', '//status', '/healthz%00']) {
      expect((await get(`${url}${path}`)).status, path).toBe(404);
    }
  });

  test('read routes accept only GET and HEAD', async () => {
    const { url } = await start();
    for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'])
      expect(await get(`${url}/status`, {}, method)).toMatchObject({ status: 405, headers: { allow: 'GET, HEAD' } });
    expect(await get(`${url}/status`, {}, 'HEAD')).toMatchObject({ status: 200, body: '' });
  });

  test('an unknown, repeated or invalid parameter is rejected with its name', async () => {
    const { url } = await start();
    for (const [query, words] of [
      ['sourc=production', 'unknown parameter "sourc"; known parameters: source, from, to, by, tz, format'],
      ['from=a&from=b', 'parameter "from" is given more than once'],
      ['format=text', 'unknown format "text"; known: json, csv, html'],
      ['by=year', 'unknown by "year"; known: window, day, month'],
    ]) {
      const got = await get(`${url}/ledger?${query ?? ''}`);
      expect([got.status, JSON.parse(got.body)]).toEqual([400, { error: words }]);
    }
  });

  test('an internal error is 500 without message and stack, and is logged', async () => {
    const failure = new Error('SQLITE_IOERR at /var/lib/waybill/state');
    const { url } = await start({}, { ledger: () => Promise.reject(failure), metricsText: () => Promise.reject(failure) });
    for (const path of ['/ledger', '/metrics']) {
      const got = await get(`${url}${path}`);
      expect(got.status).toBe(500);
      expect(got.body).not.toMatch(/SQLITE|at |node_modules/);
    }
    expect(logged).toMatchObject([{ error: failure }, { error: failure }]);
  });

  test('a usage error of a report is 400 with its message', async () => {
    const { url } = await start(
      {},
      { ledger: () => Promise.reject(new WaybillError('usage', 'cannot read "from": "soon" is not a time')) },
    );
    expect(await get(`${url}/ledger?from=soon`)).toMatchObject({
      status: 400,
      body: '{"error":"cannot read \\"from\\": \\"soon\\" is not a time"}',
    });
  });

  test('an encoded path and the absolute form of a target are served (RFC 9112 section 3.2)', async () => {
    const { url } = await start({}, { overview: async () => undefined });
    const { port } = new URL(url);
    // The last one has the empty path, which is that of the page (RFC 9110 section 4.2.3).
    for (const path of ['/%73tatus', `http://localhost:${port}/status`, '/gaps?source=a%20b', `http://localhost:${port}`]) {
      expect((await ask(request({ port, host: '127.0.0.1', path }))).status, path).toBe(200);
    }
  });

  test('a report that fails after its first bytes ends without its last chunk, and is logged', async () => {
    const failure = new Error('SQLITE_IOERR');
    const text = (): Readable =>
      Readable.from(
        (function* () {
          yield '{"windows":[';
          throw failure;
        })(),
      );
    const { url } = await start({}, { ledger: async () => ({ type: 'application/json', text: text() }) });
    await expect(get(`${url}/ledger`)).rejects.toMatchObject({ code: 'ECONNRESET' });
    expect(logged).toMatchObject([{ error: failure, url: '/ledger' }]);
  });

  test('headers over 16 KiB are rejected', async () => {
    const { url } = await start();
    expect((await get(`${url}/status`, { 'x-long': 'x'.repeat(15_000) })).status).toBe(200);
    expect((await get(`${url}/status`, { 'x-long': 'x'.repeat(17_000) })).status).toBe(431);
  });
});

describe('readiness', () => {
  const troubled: Snapshot = snapshot({
    sources: [source(), source({ id: 'test', trouble: 'no answer for 2 min' }), source({ id: 'old', state: 'retired', trouble: 'x' })],
    sinks: [sink(), sink({ id: 'lake', state: 'blocked', trouble: 'blocked for 20 min' }), sink({ id: 'brief', state: 'blocked' })],
  });
  test.each<[string, number, string[]]>([
    ['', 503, ['source test: failing, no answer for 2 min', 'sink lake: blocked for 20 min']],
    ['?source=production', 200, []],
    ['?source=test', 503, ['source test: failing, no answer for 2 min']],
    ['?sink=siem', 200, []],
    ['?sink=brief', 200, []],
    ['?sink=lake', 503, ['sink lake: blocked for 20 min']],
  ])('/readyz%s is %i', async (query, status, reasons) => {
    const { url } = await start({}, { snapshot: () => troubled });
    const got = await get(`${url}/readyz${query}`);
    expect([got.status, JSON.parse(got.body)]).toEqual([status, { ready: status === 200, reasons }]);
  });

  test('reports a paused journal and a suspension; an unknown id is 404', async () => {
    const paused = snapshot({
      journal: { bytes: 1, maxSize: 1, head: 1, paused: 'journal_full', directory: '/state' },
      sources: [source({ state: 'suspended' })],
    });
    const { url } = await start({}, { snapshot: () => paused });
    expect(JSON.parse((await get(`${url}/readyz`)).body)).toEqual({
      ready: false,
      reasons: ['journal: collecting is paused (journal_full)', 'source production: suspended'],
    });
    expect(await get(`${url}/readyz?sink=siem`)).toMatchObject({ status: 200 });
    expect(await get(`${url}/readyz?sink=siam`)).toMatchObject({ status: 404, body: '{"error":"there is no sink \\"siam\\""}' });
  });

  test('before the state is open, the daemon is healthy, reports what it waits for, and is not ready', async () => {
    const { url } = await start({}, { snapshot: () => undefined, health: () => 'waiting for the owner of the state' });
    expect(await get(`${url}/healthz`)).toMatchObject({ status: 200, body: 'waiting for the owner of the state\n' });
    for (const path of ['/readyz', '/status', '/snapshot', '/ledger', '/gaps', '/operations']) {
      expect(await get(`${url}${path}`)).toMatchObject({ status: 503, body: expect.stringContaining('waiting for the owner') as string });
    }
  });
});

describe('credentials', () => {
  const token = 'correct horse:battery';

  test('tokens: bearer, or Basic with any name; probes need none', async () => {
    const { url } = await start({ token: secret('full:with:colons'), readToken: secret('read') });
    for (const path of ['/status', '/snapshot', '/ledger', '/gaps', '/operations', '/metrics']) {
      expect((await get(`${url}${path}`)).status, path).toBe(401);
      expect((await get(`${url}${path}`, bearer('wrong'))).status, path).toBe(401);
      expect((await get(`${url}${path}`, bearer('read'))).status, path).toBe(200);
      expect((await get(`${url}${path}`, basic('anyone', 'full:with:colons'))).status, path).toBe(200);
      expect((await get(`${url}${path}`, basic('', 'read'))).status, path).toBe(200);
      expect((await get(`${url}${path}`, basic('read', ''))).status, path).toBe(401);
      clock.ms += 60_000;
    }
    expect((await get(`${url}/healthz`)).status).toBe(200);
    expect((await get(`${url}/readyz`)).status).toBe(200);
    expect((await get(`${url}/status`)).headers['www-authenticate']).toMatch(/^Basic realm="waybill"/);
  });

  test('without a token, a public address serves probes and metrics; the rest is 401 and names the setting', async () => {
    const { addresses } = await start({ listen: '0.0.0.0:0' });
    const url = `http://127.0.0.1:${new URL(addresses[0] ?? '').port}`;
    for (const path of ['/healthz', '/readyz', '/metrics']) expect((await get(`${url}${path}`)).status, path).toBe(200);
    for (const path of ['/status', '/snapshot', '/ledger', '/gaps', '/operations']) {
      const got = await get(`${url}${path}`);
      expect([got.status, got.body]).toEqual([401, expect.stringContaining('set admin.token')]);
    }
  });

  test('without a token, a loopback address requires a loopback Host header', async () => {
    const { url } = await start();
    expect((await get(`${url}/status`, { host: 'localhost:9464' })).status).toBe(200);
    expect((await get(`${url}/status`, { host: '[::1]:9464' })).status).toBe(200);
    expect((await get(`${url}/status`, { host: 'rebound.example:9464' })).status).toBe(401);
    expect((await get(`${url}/metrics`, { host: '127.0.0.1.rebound.example' })).status).toBe(401);
    expect((await get(`${url}/healthz`, { host: 'rebound.example' })).status).toBe(200);
  });

  test('wrong tokens are counted by address and never block the right one', async () => {
    const { url } = await start({ token: secret(token) });
    for (let i = 0; i < 10; i += 1) expect((await get(`${url}/status`, bearer(`guess${i}`))).status).toBe(401);
    expect(await get(`${url}/status`, bearer('guess'))).toMatchObject({ status: 429, headers: { 'retry-after': '60' } });
    expect((await get(`${url}/status`, basic('x', token))).status).toBe(200);
    expect(warned).toMatchObject([{ address: '127.0.0.1' }]);
    clock.ms = 59_999;
    expect((await get(`${url}/status`, bearer('guess'))).status).toBe(429);
    clock.ms = 60_000;
    expect((await get(`${url}/status`, bearer('guess'))).status).toBe(401);
  });

  test('the read token gets 403 for an operation, which does not count as a wrong token', async () => {
    const { url } = await start({ token: secret('full'), readToken: secret('read') }, { operate: () => Promise.resolve({}) });
    const post = (given: string): Promise<Got> => {
      const asked = request(`${url}/operations`, { method: 'POST', headers: { ...bearer(given), 'content-type': 'application/json' } });
      asked.write('{}');
      return ask(asked);
    };
    for (let i = 0; i < 12; i += 1)
      expect(await post('read')).toMatchObject({
        status: 403,
        body: expect.stringContaining('admin.readToken allows no operations') as string,
      });
    expect((await post('wrong')).status).toBe(401);
    expect((await post('full')).status).toBe(200);
  });

  test('a replaced token applies at once; a missing or empty one allows nothing and is logged', async () => {
    let text = 'old';
    const { url } = await start({
      token: {
        read: () => {
          if (text === 'gone') throw new WaybillError('secret_missing', 'cannot read "admin.token": no such file');
          return text;
        },
      },
    });
    expect((await get(`${url}/status`, bearer('old'))).status).toBe(200);
    text = 'new';
    expect((await get(`${url}/status`, bearer('old'))).status).toBe(401);
    expect((await get(`${url}/status`, bearer('new'))).status).toBe(200);
    text = '';
    expect((await get(`${url}/status`, basic('x', ''))).status).toBe(401);
    text = 'gone';
    expect((await get(`${url}/status`, bearer('gone'))).status).toBe(500);
    expect(logged).toMatchObject([{ error: { code: 'secret_missing' } }]);
  });

  test('requests without a credential do not count as wrong tokens', async () => {
    const { url } = await start({ token: secret(token) });
    for (let i = 0; i < 12; i += 1) expect((await get(`${url}/status`)).status).toBe(401);
    expect((await get(`${url}/status`, basic('x', token))).status).toBe(200);
  });
});

describe('listening', () => {
  test('listens on several addresses, IPv4 and IPv6', async () => {
    const { addresses } = await start({ listen: ['127.0.0.1:0', '[::1]:0'] });
    expect(addresses).toEqual([expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/), expect.stringMatching(/^http:\/\/\[::1\]:\d+$/)]);
    for (const address of addresses) expect((await get(`${address}/status`)).status).toBe(200);
  });

  test('localhost stands for each of its addresses', async () => {
    const { addresses } = await start({ listen: 'localhost:0' });
    const found = await lookup('localhost', { all: true });
    expect(addresses).toHaveLength(new Set(found.map(({ address }) => address)).size);
    for (const address of addresses) expect((await get(`${address}/status`)).status).toBe(200);
  });

  test('an address in use is an error that names the setting, and closes the other listeners', async () => {
    const taken = await listening(createServer(), 0);
    const free = await listening(createServer(), 0);
    const freePort = portOf(free);
    free.close();
    await once(free, 'close');
    const listen = [`127.0.0.1:${freePort}`, `127.0.0.1:${portOf(taken)}`];
    await expect(start({ listen })).rejects.toMatchObject({
      code: 'admin_listen_failed',
      message: `cannot listen on admin.listen "127.0.0.1:${portOf(taken)}": another process listens there already`,
    });
    const again = await listening(createServer(), freePort);
    again.close();
    taken.close();
  });

  test.each(['9464', '127.0.0.1', '127.0.0.1:99999', '::1:9464x', '[::1]', ''])('"%s" is refused with an example', async (listen) => {
    await expect(start({ listen })).rejects.toMatchObject({
      code: 'admin_listen_failed',
      message: `cannot read admin.listen "${listen}": not an address and a port such as 127.0.0.1:9464 or [::]:9464`,
    });
  });

  test('serves TLS; a missing file or an invalid certificate is an error that names the setting', async () => {
    const cert = join(directory, 'cert.pem');
    const key = join(directory, 'key.pem');
    // prettier-ignore
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key, '-out', cert,
      '-days', '1', '-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1'], { stdio: 'ignore' });
    const { url } = await start({ tls: { cert, key }, token: secret('t') });
    expect(url).toMatch(/^https:/);
    const https = await import('node:https');
    const { readFileSync } = await import('node:fs');
    expect(await ask(https.request(`${url}/status`, { ca: readFileSync(cert), headers: bearer('t') }))).toMatchObject({ status: 200 });

    await expect(start({ tls: { cert: join(directory, 'none.pem'), key } })).rejects.toThrow(
      /cannot read admin.tls.cert ".*none.pem": ENOENT/,
    );
    await writeFile(cert, 'not a certificate');
    await expect(start({ tls: { cert, key } })).rejects.toMatchObject({
      code: 'admin_listen_failed',
      message: expect.stringMatching(/^cannot use admin.tls for "127.0.0.1:0": /) as string,
    });
  });
});

describe('the socket in the state directory', () => {
  const over = (socketPath: string, path: string) => ask(request({ socketPath, path }));

  test('serves its owner without a token, has mode 0600 under any umask, and is removed at the stop', async () => {
    const socketPath = join(directory, 'waybill.sock');
    const before = process.umask(0);
    const admin = await start({ token: secret('secret') }, { socketPath }).finally(() => process.umask(before));
    expect(admin.addresses[1]).toBe(`unix:${socketPath}`);
    expect((await stat(socketPath)).mode & 0o777).toBe(0o600);
    expect((await over(socketPath, '/status')).status).toBe(200);
    await running.disposeAsync();
    expect(existsSync(socketPath)).toBe(false);
  });

  test('the socket of a killed process is replaced', async () => {
    const socketPath = join(directory, 'waybill.sock');
    // A process that is killed leaves its socket file, which no longer answers.
    execFileSync(
      'sh',
      [
        '-c',
        '"$0" -e "require(\'net\').createServer().listen(process.argv[1], () => process.kill(process.pid, \'SIGKILL\'))" "$1" || true',
        process.execPath,
        socketPath,
      ],
      {
        stdio: 'ignore',
      },
    );
    expect(existsSync(socketPath)).toBe(true);
    await start({}, { socketPath });
    expect((await over(socketPath, '/healthz')).status).toBe(200);
  });

  test('a socket in use, a regular file and a path that is too long are rejected, each with its reason', async () => {
    const socketPath = join(directory, 'waybill.sock');
    const other = await listening(createServer(), socketPath);
    await expect(start({}, { socketPath })).rejects.toMatchObject({
      code: 'admin_listen_failed',
      message: `cannot listen on "${socketPath}": another process listens there already`,
    });
    other.close();
    const file = join(directory, 'file');
    await writeFile(file, 'precious');
    await expect(start({}, { socketPath: file })).rejects.toThrow('a file that is not a socket has this name');
    expect(existsSync(file)).toBe(true);
    const long = join(directory, 'x'.repeat(108), 'waybill.sock');
    await expect(start({}, { socketPath: long })).rejects.toThrow(
      /has at most 10[37] bytes on this system, this one has \d+; choose a shorter "dataDir"/,
    );
  });
});

async function listening(server: Server, at: number | string): Promise<Server> {
  if (typeof at === 'string') server.listen(at);
  else server.listen(at, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

function portOf(server: Server): number {
  const address = server.address();
  return typeof address === 'object' && address ? address.port : 0;
}
