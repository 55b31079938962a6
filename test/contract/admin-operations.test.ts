/**
 * Operations through the admin server: one address, by the socket or with the admin token as a
 * bearer token, and never by GET.
 */
import { once } from 'node:events';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WaybillError } from '../../src/errors/errors.ts';
import { startAdmin, type AdminSettings } from '../../src/admin/server.ts';
import { snapshot } from '../support/report/snapshots.ts';

let directory: string;
let running: AsyncDisposableStack;
let asked: unknown[];
let outcome: () => Promise<unknown>;

beforeEach(async () => {
  running = new AsyncDisposableStack();
  directory = await mkdtemp(join(tmpdir(), 'waybill-operations-'));
  asked = [];
  outcome = () => Promise.resolve({ ends: 7 });
});
afterEach(async () => {
  await running.disposeAsync();
  await rm(directory, { recursive: true });
});

const silent = { write: () => undefined };

async function start(settings: Partial<AdminSettings> = {}, isOpen = true): Promise<{ url: string; socketPath: string }> {
  const socketPath = join(directory, 'waybill.sock');
  const admin = await startAdmin(
    { listen: '127.0.0.1:0', ...settings },
    {
      snapshot: () => (isOpen ? snapshot() : undefined),
      ledger: () => Promise.resolve({ type: 'application/json', text: '{}' }),
      gaps: () => Promise.resolve({ type: 'application/json', text: '{}' }),
      operations: () => Promise.resolve({ type: 'application/json', text: '{"operations":[]}' }),
      metricsText: () => Promise.resolve(''),
      operate: (given) => {
        asked.push(given);
        return outcome();
      },
      log: silent,
      clock: { now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() },
      socketPath,
    },
  );
  running.use(admin);
  return { url: admin.addresses[0] ?? '', socketPath };
}

async function post(
  at: { url: string } | { socketPath: string },
  headers: Record<string, string>,
  body = '{"act":"x"}',
  method = 'POST',
): Promise<{ status: number; body: string }> {
  const options = { method, headers: { 'content-type': 'application/json', ...headers } };
  const asking =
    'url' in at ? request(`${at.url}/operations`, options) : request({ ...options, socketPath: at.socketPath, path: '/operations' });
  asking.end(method === 'GET' ? undefined : body);
  const [answer] = (await once(asking, 'response')) as [import('node:http').IncomingMessage];
  let text = '';
  for await (const part of answer.setEncoding('utf8')) text += String(part);
  return { status: answer.statusCode ?? 0, body: text };
}

const secret = (text: string) => ({ read: () => text });
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

test('the socket needs no token: its mode is the credential', async () => {
  const { socketPath } = await start();
  expect(await post({ socketPath }, {}, '{"operation":"backfill","source":"a"}')).toEqual({ status: 200, body: '{"ends":7}' });
  expect(asked).toEqual([{ operation: 'backfill', source: 'a' }]);
  expect(((await stat(socketPath)).mode & 0o777).toString(8)).toBe('600');
});

test('the network needs admin.token as a bearer token; readToken, Basic and no token are rejected', async () => {
  const open = await start();
  expect((await post(open, {})).status, 'no token is set').toBe(401);
  await running.disposeAsync();
  running = new AsyncDisposableStack();
  const { url } = await start({ token: secret('admin-token-1'), readToken: secret('read-token-1') });
  expect((await post({ url }, {})).status).toBe(401);
  expect((await post({ url }, bearer('read-token-1'))).status).toBe(403);
  expect((await post({ url }, bearer('wrong'))).status).toBe(401);
  // A browser sends Basic automatically, also for a page of another site.
  const basic = { authorization: `Basic ${Buffer.from('any:admin-token-1').toString('base64')}` };
  expect((await post({ url }, basic)).status).toBe(401);
  expect(asked).toEqual([]);
  expect((await post({ url }, bearer('admin-token-1'))).status).toBe(200);
  expect(asked).toHaveLength(1);
  await running.disposeAsync();
  running = new AsyncDisposableStack();
  const readable = await start({ readToken: secret('read-token-1') });
  expect((await post(readable, bearer('read-token-1'))).status, 'only readToken is set').toBe(401);
});

test('rejects GET, a body that is not JSON, and requests before the state is open', async () => {
  const { socketPath } = await start();
  expect(await post({ socketPath }, {}, '', 'GET')).toEqual({ status: 200, body: '{"operations":[]}' });
  expect((await post({ socketPath }, { 'content-type': 'text/plain' })).status).toBe(415);
  expect((await post({ socketPath }, { 'content-type': 'application/x-www-form-urlencoded' }, 'act=x')).status).toBe(415);
  expect((await post({ socketPath }, {}, '{"act"')).status).toBe(400);
  expect((await post({ socketPath }, {}, `"${'x'.repeat(20_000)}"`)).status).toBe(413);
  expect(asked).toEqual([]);
  await running.disposeAsync();
  running = new AsyncDisposableStack();
  const waiting = await start({}, false);
  expect((await post({ socketPath: waiting.socketPath }, {})).status).toBe(503);
  expect(asked).toEqual([]);
});

test('an expected error is sent with message and code; an internal error without', async () => {
  const { socketPath } = await start();
  outcome = () => Promise.reject(new WaybillError('usage', 'cannot find the source "a"'));
  expect(await post({ socketPath }, {})).toEqual({ status: 400, body: '{"error":"cannot find the source \\"a\\"","code":"usage"}' });
  outcome = () => Promise.reject(new WaybillError('journal_full', 'the disk is full'));
  expect(await post({ socketPath }, {})).toEqual({ status: 503, body: '{"error":"the disk is full","code":"journal_full"}' });
  outcome = () => Promise.reject(new Error('secret detail'));
  const failed = await post({ socketPath }, {});
  expect(failed.status).toBe(500);
  expect(failed.body).not.toContain('secret detail');
});
