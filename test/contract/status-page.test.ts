/**
 * The status page over real sockets: its files, headers, access, and its view of a daemon that does
 * not respond.
 */
import { readdirSync } from 'node:fs';
import { request } from 'node:http';
import { networkInterfaces } from 'node:os';
import { text } from 'node:stream/consumers';
import type { IncomingMessage } from 'node:http';
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startAdmin } from '../../src/admin/server.ts';
import type { AdminSources } from '../../src/admin/routes.ts';
import type { AdminSettings } from '../../src/admin/server.ts';
import { History } from '../../src/admin/page/history.ts';
import { overviewOf } from '../../src/admin/page/overview.ts';
import { sink, snapshot } from '../support/report/snapshots.ts';

const hostile = '</script><img src=x onerror=alert(1)>"\'\u202e\u001b[31m';
const secret = (words: string) => ({ read: () => words });
const empty = () => Promise.resolve({ type: 'application/json', text: '{}' });
const files = readdirSync(new URL('../../src/admin/page/static/', import.meta.url));

let running: AsyncDisposableStack;
beforeEach(() => (running = new AsyncDisposableStack()));
afterEach(() => running.disposeAsync());

async function start(settings: Partial<AdminSettings> = {}, sources: Partial<AdminSources> = {}): Promise<string> {
  const shown = snapshot({ sinks: [sink({ state: 'blocked', lastError: hostile })] });
  const admin = await startAdmin(
    { listen: '127.0.0.1:0', ...settings },
    {
      ...{ snapshot: () => shown, ledger: empty, gaps: empty, operations: empty, metricsText: () => Promise.resolve('') },
      overview: () => Promise.resolve(overviewOf(shown, new Map(), new History())),
      ...{ log: { write: () => undefined }, clock: { now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() } },
      ...sources,
    },
  );
  running.use(admin);
  return admin.addresses[0] ?? '';
}

async function get(url: string, headers: Record<string, string> = {}) {
  const asking = request(url, { headers });
  asking.end();
  const [answer] = (await once(asking, 'response')) as [IncomingMessage];
  return { status: answer.statusCode, headers: answer.headers, body: await text(answer) };
}

const paths = files.map((name) => (name === 'index.html' ? '/' : `/page/${name}`));

test('every file of the page is served with its type, a strict policy and no caching', async () => {
  const url = await start();
  for (const path of paths) {
    const { status, headers } = await get(`${url}${path}`);
    expect(status, path).toBe(200);
    expect(headers['content-type'], path).toMatch(
      { js: /^text\/javascript/, css: /^text\/css/, svg: /^image\/svg\+xml/ }[path.split('.')[1] ?? ''] ?? /^text\/html/,
    );
    const policy = String(headers['content-security-policy']);
    expect(policy).toMatch(/^default-src 'none'; /);
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|https?:|\*|data:/);
    expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff', 'referrer-policy': 'no-referrer' });
  }
  for (const path of ['/page/', '/page/server.ts', '/page/../server.ts', '/page/%2e%2e%2fserve.ts', '/index.html'])
    expect((await get(`${url}${path}`)).status, path).toBe(404);
});

test('the page has no inline script or style, and refers only to files of this server by relative address', async () => {
  const url = await start();
  for (const path of paths.filter((each) => each !== '/page/icon.svg')) {
    const { body } = await get(`${url}${path}`);
    // The name of the SVG namespace is not a request.
    expect(body.replaceAll('http://www.w3.org/2000/svg', ''), path).not.toMatch(
      /https?:\/\/|@import\s+url|innerHTML|insertAdjacentHTML|\beval\(/,
    );
    if (path !== '/') continue;
    expect(body).not.toMatch(/<style|\sstyle=|\son\w+=|<script(?![^>]* src=)/);
    const targets = [...body.matchAll(/ (?:href|src|action)="([^"]*)"/g)].map(([, target]) => target ?? '');
    expect(targets.filter((target) => target.startsWith('/'))).toEqual([]);
    expect(targets.length).toBeGreaterThan(5);
  }
});

test('texts of a server reach the page as JSON, with a type that no browser treats as markup', async () => {
  const url = await start();
  const { headers, body } = await get(`${url}/overview`);
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(headers['content-security-policy']).toBe("default-src 'none'; frame-ancestors 'none'");
  expect((JSON.parse(body) as { sinks: { lastError: string }[] }).sinks[0]?.lastError).toBe(hostile);
});

test('with a token the page and its files require either token, as bearer or Basic', async () => {
  const url = await start({ token: secret('write-token'), readToken: secret('read-token') });
  const basic = (password: string) => ({ authorization: `Basic ${Buffer.from(`any:${password}`).toString('base64')}` });
  for (const path of [...paths, '/overview']) {
    const refused = await get(`${url}${path}`);
    expect(refused.status, path).toBe(401);
    expect(refused.headers['www-authenticate']).toMatch(/^Basic /);
    for (const headers of [basic('read-token'), basic('write-token'), { authorization: 'Bearer read-token' }])
      expect((await get(`${url}${path}`, headers)).status, path).toBe(200);
  }
  expect((await get(`${url}/overview`, basic('wrong'))).status).toBe(401);
});

test('without a token an address that others reach responds with 401 and explains how to set one', async ({ skip }) => {
  const other = Object.values(networkInterfaces())
    .flat()
    .find((each) => each?.family === 'IPv4' && !each.internal)?.address;
  skip(other === undefined, 'this machine has no address but loopback');
  const url = await start({ listen: `${other ?? ''}:0` });
  for (const path of ['/', '/page/page.js', '/overview']) {
    const { status, body } = await get(`${url}${path}`);
    expect([status, body]).toEqual([401, expect.stringContaining('set admin.token or admin.readToken')]);
  }
});

test('a page of another site that resolves its name to this host gets no data', async () => {
  const url = await start();
  for (const path of ['/', '/overview']) expect((await get(`${url}${path}`, { host: 'attacker.example' })).status, path).toBe(401);
});

test('while the daemon is stuck the page is served and the overview reports it', async () => {
  const url = await start({}, { stalled: () => 'the daemon has not responded for 12 s', overview: () => new Promise(() => undefined) });
  expect((await get(`${url}/`)).status).toBe(200);
  const { status, body } = await get(`${url}/overview`);
  expect([status, JSON.parse(body)]).toEqual([503, { error: 'the daemon has not responded for 12 s' }]);
});

test('an unknown source or parameter is rejected with its name', async () => {
  const url = await start();
  expect(await get(`${url}/overview?source=other`)).toMatchObject({ status: 400, body: '{"error":"there is no source \\"other\\""}' });
  expect((await get(`${url}/overview?sink=siem`)).status).toBe(400);
});

test('a server without an overview serves no page', async () => {
  const admin = await startAdmin(
    { listen: '127.0.0.1:0' },
    {
      ...{ snapshot: () => snapshot(), ledger: empty, gaps: empty, operations: empty, metricsText: () => Promise.resolve('') },
      ...{ log: { write: () => undefined }, clock: { now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() } },
    },
  );
  running.use(admin);
  for (const path of ['/', '/overview']) expect((await get(`${admin.addresses[0] ?? ''}${path}`)).status).toBe(404);
});
