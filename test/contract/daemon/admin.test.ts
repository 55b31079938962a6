/**
 * The admin server as the daemon runs it: in a thread that responds whatever the daemon's main
 * thread does, and takes little of its time.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { request } from 'node:http';
import type { Worker } from 'node:worker_threads';
import { onTestFinished, expect, test } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { AdminServer } from '../../../src/daemon/admin/server.ts';
import type { AdminFacts } from '../../../src/daemon/admin/server.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { opened } from '../../support/journal/opening.ts';
import { snapshot } from '../../support/report/snapshots.ts';
import { noting } from '../../support/telemetry/written-events.ts';

const token = 'admin-token-1';

async function started(
  facts: Partial<AdminFacts> = {},
  listen = '127.0.0.1:0',
): Promise<{ url: string; socketPath: string; state: string; logged: object[]; admin: AdminServer }> {
  const logged: object[] = [];
  // The thread reads the coverage of the ledger from the state itself.
  const { directory: state } = await opened();
  const admin = new AdminServer({
    ...{ state, version: '0.1.0', settings: {}, services: {}, clock: systemClock },
    log: noting({ write: (event, ...[fields]) => void logged.push({ event, ...fields }) }),
    facts: {
      snapshot: () => snapshot(),
      metricsText: () => Promise.resolve('waybill_gaps 0\n'),
      operate: (asked) => Promise.resolve({ asked }),
      token: () => token,
      database: () => Promise.reject(new Error('the state is in a directory')),
      ...facts,
    },
  });
  onTestFinished(() => admin[Symbol.asyncDispose]());
  const [url = ''] = await admin.listen({ place: 'network', listen, tls: undefined, tokens: ['token'] });
  const socketPath = join(state, 'waybill.sock');
  await admin.listen({ place: 'socket', path: socketPath });
  return { url, socketPath, state, logged, admin };
}

function ask(url: string, path: string, more: RequestInit = {}): Promise<Response> {
  return fetch(`${url}${path}`, { headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' }, ...more });
}

test.runIf(process.platform === 'linux')('starts in a process of low priority, and does not raise it', () => {
  // Root may raise the limit; another user gets EACCES.
  const script = `
    const data = { state: '.', pulse: new Int32Array(new SharedArrayBuffer(8)) };
    const worker = new Worker('./src/daemon/admin/thread.ts', { workerData: data, execArgv: [] });
    worker.once('error', (thrown) => { throw thrown; });
    const listen = { place: 'network', listen: '127.0.0.1:0', tokens: [] };
    worker.postMessage({ kind: 'call', id: 1, method: 'listen', args: [listen] });
    worker.once('message', ({ kind }) => {
      const niceness = (task) => Number(readFileSync('/proc/self/task/' + task + '/stat', 'utf8').split(') ')[1].split(' ')[16]);
      console.log(JSON.stringify({ kind, lowest: Math.min(...readdirSync('/proc/self/task').map(niceness)) }));
      process.exit();
    });`;
  const imports = "import { readFileSync, readdirSync } from 'node:fs'; import { Worker } from 'node:worker_threads';";
  const found = execFileSync('nice', ['-n', '10', process.execPath, '--input-type=module', '-e', imports + script], { encoding: 'utf8' });
  const { kind, lowest } = JSON.parse(found) as { kind: string; lowest: number };
  expect(kind).toBe('answer');
  expect(lowest).toBeGreaterThanOrEqual(10);
});

test('requests one snapshot a second from the daemon, for any number of clients', async () => {
  const asked = { snapshot: 0, metrics: 0, token: 0 };
  const { url } = await started({
    snapshot: () => {
      asked.snapshot += 1;
      return snapshot();
    },
    metricsText: () => Promise.resolve(`asked ${(asked.metrics += 1)}\n`),
    token: () => {
      asked.token += 1;
      return token;
    },
  });
  const began = performance.now();
  for (let i = 0; i < 8; i += 1) {
    const answers = await Promise.all(['/metrics', '/status', '/overview', '/readyz', '/snapshot'].map((path) => ask(url, path)));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  }
  const seconds = Math.ceil((performance.now() - began) / 1000) + 1;
  expect(Math.max(...Object.values(asked))).toBeLessThanOrEqual(seconds);
});

test('concurrent reports request one snapshot a second from the daemon', async () => {
  const asked: number[] = [];
  const { url } = await started({
    snapshot: () => {
      asked.push(performance.now());
      return snapshot();
    },
  });
  const ledgers = await Promise.all(Array.from({ length: 3 }, () => ask(url, '/ledger')));
  for (const ledger of ledgers) expect([ledger.status, await ledger.json()]).toMatchObject([200, { sources: [{ id: 'production' }] }]);
  const [first = 0, last = 0] = [asked[0], asked.at(-1)];
  expect(asked.length).toBeLessThanOrEqual(Math.ceil((last - first) / 1000) + 1);
});

test('operations reach the daemon and return its errors; at most fifty a second are performed', async () => {
  let performed = 0;
  const { url } = await started({
    operate: (given) => {
      performed += 1;
      if ((given as { operation: string }).operation === 'no') throw new WaybillError('usage', 'cannot do "no"');
      return Promise.resolve({ given });
    },
  });
  const post = (operation: string) => ask(url, '/operations', { method: 'POST', body: JSON.stringify({ operation }) });
  expect(await (await post('yes')).json()).toEqual({ given: { operation: 'yes' } });
  const refused = await post('no');
  expect([refused.status, await refused.json()]).toEqual([400, { error: 'cannot do "no"', code: 'usage' }]);
  const began = performance.now();
  const statuses = await Promise.all(Array.from({ length: 300 }, async () => (await post('yes')).status));
  const seconds = Math.ceil((performance.now() - began) / 1000) + 1;
  expect(performed).toBeLessThanOrEqual(2 + 50 * seconds);
  expect(new Set(statuses)).toEqual(new Set([200, 503]));
});

test('before the state is open, /healthz reports it and /readyz is 503', async () => {
  const { url, admin } = await started({ snapshot: () => undefined });
  expect(await (await ask(url, '/healthz')).text()).toBe('waiting for the owner of the state\n');
  expect((await ask(url, '/readyz')).status).toBe(503);
  admin.opened();
  expect(await (await ask(url, '/healthz')).text()).toBe('ok\n');
});

// The requests come from another program, because this thread blocks until that program ends.
const asking = `
  const [url, status] = process.argv.slice(1);
  const began = performance.now();
  for (;;) {
    const before = performance.now();
    const answer = await fetch(url + '/healthz');
    const text = await answer.text();
    if (answer.status === Number(status) || performance.now() - began > 20000) {
      console.log(JSON.stringify({ status: answer.status, text, ms: performance.now() - before }));
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }`;

function askedMeanwhile(url: string, status: number): { status: number; text: string; ms: number } {
  const printed = execFileSync(process.execPath, ['--input-type=module', '-e', asking, url, String(status)], { encoding: 'utf8' });
  return JSON.parse(printed) as { status: number; text: string; ms: number };
}

test('responds while the daemon is busy, and reports a daemon that has not responded for ten seconds', { timeout: 300_000 }, async () => {
  const { url, admin } = await started();
  admin.opened();
  expect(askedMeanwhile(url, 200)).toMatchObject({ status: 200, text: 'ok\n' });
  const stuck = askedMeanwhile(url, 503);
  expect(stuck.status).toBe(503);
  expect(stuck.text).toMatch(/^the daemon has not responded for 1\d s\n$/);
  await expect.poll(async () => (await ask(url, '/healthz')).status, { timeout: 60_000 }).toBe(200);
});

test('a listen error names the setting', async () => {
  const { url, admin } = await started();
  const listen = new URL(url).host;
  await expect(admin.listen({ place: 'network', listen, tls: undefined, tokens: [] })).rejects.toMatchObject({
    code: 'admin_listen_failed',
    message: `cannot listen on admin.listen "${listen}": another process listens there already`,
  });
});

test('a new thread replaces a thread that ends, and listens on the same addresses as soon as they are free', async () => {
  const other = createServer();
  const occupy = async (port: number): Promise<number> => {
    await once(other.listen(port, '127.0.0.1'), 'listening');
    return (other.address() as AddressInfo).port;
  };
  const free = (): Promise<unknown> => once(other.close(), 'close');
  const port = await occupy(0);
  await free();
  const threads: Worker[] = [];
  const ended: Worker[] = [];
  const follow = (thread: Worker): void => {
    threads.push(thread);
    thread.once('exit', () => ended.push(thread));
  };
  process.on('worker', follow);
  onTestFinished(() => void process.off('worker', follow));
  const { url, socketPath, logged } = await started({}, `127.0.0.1:${port}`);
  const fromSocket = (): Promise<unknown> => once(request({ socketPath, path: '/healthz' }).end(), 'response');
  await fromSocket();
  await threads[0]?.terminate();
  await expect.poll(() => logged).toMatchObject([{ event: 'admin.failed' }]);
  await occupy(port);
  await expect.poll(() => logged).toMatchObject([{}, { event: 'admin.failed', error: { code: 'admin_listen_failed' } }]);
  await free();
  await expect.poll(() => logged.at(-1)).toMatchObject({ event: 'admin.restarted' });
  expect((await ask(url, '/status')).status).toBe(200);
  await fromSocket();
  // A thread that cannot listen must not remain next to its successor.
  expect(threads.length - ended.length).toBe(1);
});

test('a token that cannot be read allows nothing, and the error is logged', async () => {
  const { url, logged } = await started({
    token: () => {
      throw new WaybillError('secret_missing', 'cannot read "admin.token": no such file');
    },
  });
  expect((await ask(url, '/status')).status).toBe(500);
  await expect.poll(() => logged).toMatchObject([{ event: 'admin.request_failed', error: { code: 'secret_missing' } }]);
});

test('the socket of the state directory serves without a cache', async () => {
  let version = 1;
  const { socketPath } = await started({ snapshot: () => snapshot({ version: `0.${(version += 1)}.0` }) });
  const versionNow = (): Promise<unknown> =>
    new Promise((resolve, reject) => {
      request({ socketPath, path: '/snapshot' }, (answer) => {
        let text = '';
        answer.setEncoding('utf8').on('data', (part: string) => (text += part));
        answer.on('end', () => resolve((JSON.parse(text) as { version: string }).version));
      })
        .on('error', reject)
        .end();
    });
  expect([await versionNow(), await versionNow()]).toEqual(['0.2.0', '0.3.0']);
});

test('samples the open state for the status page without asking the daemon, and reports when it cannot be read', async () => {
  let asked = 0;
  let reads = 0;
  const { url, admin, logged, state } = await started({
    snapshot: () => {
      asked += 1;
      return snapshot();
    },
  });
  admin.opened();
  const detail = async () => {
    reads += 1;
    const { detail: found } = (await (await ask(url, '/overview')).json()) as { detail: { samples: number[]; lag: (number | null)[] } };
    return found;
  };
  await expect.poll(async () => (await detail()).samples.length, { interval: 5_000 }).toBeGreaterThanOrEqual(2);
  expect(asked).toBeLessThanOrEqual(reads);
  const { samples, lag } = await detail();
  expect(samples).toEqual(samples.toSorted((a, b) => a - b));
  expect(lag.every((seconds) => seconds !== null && seconds >= 0)).toBe(true);
  rmSync(join(state, 'waybill.db'));
  await expect.poll(() => logged).toContainEqual(expect.objectContaining({ event: 'admin.sample_failed' }));
});
