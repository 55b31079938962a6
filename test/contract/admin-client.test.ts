/**
 * `--admin`: the same output through the admin server as from the state itself, and the errors of
 * requests that fail.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/time/clock.ts';
import { adminReports } from '../../src/daemon/admin/reports.ts';
import { Reports } from '../../src/daemon/admin/report-maker.ts';
import { dispatch } from '../../src/main.ts';
import { startAdmin } from '../../src/admin/server.ts';
import { outputOf, type Output } from '../support/command-io.ts';
import { createAuthority } from '../support/certificates.ts';
import { waybillProgram } from '../support/programs.ts';
import { base, day, hour } from '../support/records.ts';
import { gap, lastAge, opened, proven, source, temporary } from '../support/journal/opening.ts';
import { now, sink, snapshot } from '../support/report/snapshots.ts';

const token = 'read-only-token-4711';
const silent = { write: () => undefined };

const neverAsked = (): never => {
  throw new Error('a daemon that does not respond was asked');
};

const waybill = (env: NodeJS.ProcessEnv, ...argv: string[]): Promise<Output> => outputOf(dispatch, argv, { env });

interface Served {
  readonly url: string;
  /** File with the CA certificate. */
  readonly ca: string;
  readonly state: string;
}

/**
 * A state with a window, a gap and an operation, behind the admin server with a read token and a
 * certificate of its CA.
 */
async function served(): Promise<Served> {
  const { journal, directory, close } = await opened();
  await journal.close(source, { from: base, to: base + hour }, proven(0, base + hour, base + day), lastAge);
  await journal.close(source, { from: base + hour, to: base + 2 * hour }, gap(), lastAge);
  journal.history.add(source, { from: base - day, to: base }, { rate: 3 }, { actor: 'j.doe', reason: 'ticket 4711' });
  await close();
  const place = temporary();
  const authority = await createAuthority('Own CA');
  const { cert, key } = await authority.issue({ name: 'waybill', hosts: ['127.0.0.1'] });
  const [ca, certFile, keyFile] = ['ca.pem', 'cert.pem', 'key.pem'].map((name) => join(place, name)) as [string, string, string];
  writeFileSync(ca, authority.cert);
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  const settings = { configured: new Map([[source, undefined]]) };
  const reports = adminReports(new Reports(systemClock), {
    ...{ state: () => Promise.resolve(directory), reported: () => ({ settings, services: {} }), version: '0', clock: systemClock },
    snapshot: async () => snapshot(),
  });
  const sources = { snapshot: () => snapshot(), ...reports, metricsText: async () => '', log: silent, clock: systemClock };
  const admin = await startAdmin(
    { listen: '127.0.0.1:0', readToken: { read: () => token }, tls: { cert: certFile, key: keyFile } },
    sources,
  );
  onTestFinished(() => admin[Symbol.asyncDispose]());
  // The running daemon also serves commands on this machine, by its socket.
  const beside = await startAdmin({ listen: [] }, { ...sources, socketPath: join(directory, 'waybill.sock') });
  onTestFinished(() => beside[Symbol.asyncDispose]());
  return { url: admin.addresses[0] ?? '', ca, state: directory };
}

test('status, ledger, gaps list and operations list print the same through the admin server, with a read token', async () => {
  const { url, ca, state } = await served();
  const env = { WAYBILL_ADMIN_TOKEN: token };
  const admin = ['--admin', url, '--admin-ca', ca];
  for (const command of [
    ['gaps', 'list'],
    ['gaps', 'list', '--source', source, '--json'],
    ['operations', 'list'],
    ['operations', 'list', '--from', '-7d', '--json'],
  ]) {
    const [far, near] = [await waybill(env, ...command, ...admin), await waybill({}, ...command, '--data-dir', state)];
    expect([far.code, far.stderr, far.stdout]).toEqual([0, '', near.stdout]);
    expect(far.stdout).not.toBe('');
  }
  // Without the time at which a report was generated.
  const timeless = (text: string): string => text.replace(/"(made|generatedAt)": ?"[^"]*"|made [^\n]*|\d+ recounts? .*due/g, '');
  for (const format of ['text', 'csv', 'json']) {
    const command = ['ledger', '--format', format, '--from', '2026-11-20', '--to', '2026-11-20'];
    const [far, near] = [await waybill(env, ...command, ...admin), await waybill({}, ...command, '--data-dir', state)];
    expect([far.code, far.stderr]).toEqual([3, '']);
    expect(timeless(far.stdout)).toBe(timeless(near.stdout));
  }
  const status = await waybill(env, 'status', '--json', ...admin);
  expect(JSON.parse(status.stdout)).toMatchObject({ sources: [{ id: 'production', gaps: 0 }] });
  expect((await waybill(env, 'status', '--exit-code', ...admin)).stdout).toContain('Nothing to do.');
  expect(now).toBeGreaterThan(0);
});

test('NODE_EXTRA_CA_CERTS names the CA as well', async () => {
  const { url, ca } = await served();
  const child = spawn(process.execPath, [waybillProgram, 'gaps', 'list', '--json', '--admin', url], {
    env: { PATH: process.env['PATH'], NODE_EXTRA_CA_CERTS: ca, WAYBILL_ADMIN_TOKEN: token },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text += part));
  await once(child, 'close');
  expect(JSON.parse(text)).toMatchObject({ gaps: [{ source, message: 'received 2, the service counted 3' }] });
});

test('a missing CA, token, correct token or server is named', async () => {
  const { url, ca } = await served();
  const call = async (env: NodeJS.ProcessEnv, ...more: string[]): Promise<string> => {
    const { code, stdout, stderr } = await waybill(env, 'gaps', 'list', '--admin', url, ...more);
    expect([code, stdout]).toEqual([1, '']);
    return stderr;
  };
  expect(await call({ WAYBILL_ADMIN_TOKEN: token })).toMatch(
    /^cannot reach the admin server at .*certificate is not trusted \(\w+\); --admin-ca FILE or NODE_EXTRA_CA_CERTS names its CA\n$/,
  );
  expect(await call({}, '--admin-ca', ca)).toMatch(/: it requires a token, and WAYBILL_ADMIN_TOKEN is not set/);
  const wrong = await call({ WAYBILL_ADMIN_TOKEN: 'wrong-token-0815' }, '--admin-ca', ca);
  expect(wrong).toMatch(/: it rejected the token in WAYBILL_ADMIN_TOKEN/);
  expect(wrong).not.toContain('wrong-token-0815');
  const closed = createServer().listen(0, '127.0.0.1');
  await once(closed, 'listening');
  const { port } = closed.address() as AddressInfo;
  await new Promise((resolve) => closed.close(resolve));
  const { code, stderr } = await waybill({}, 'status', '--admin', `http://127.0.0.1:${port}`);
  expect([code, stderr]).toEqual([
    1,
    `cannot reach the admin server at http://127.0.0.1:${port}: connection refused (ECONNREFUSED); check that the daemon runs and that admin.listen has this address\n`,
  ]);
});

test('the token never appears in a message, even if the server returns it', async () => {
  const server = createServer((request, response) => {
    response
      .writeHead(500, { 'content-type': 'application/json' })
      .end(JSON.stringify({ error: `no ${request.headers.authorization ?? ''}` }));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { code, stderr } = await waybill({ WAYBILL_ADMIN_TOKEN: token }, 'status', '--admin', `http://127.0.0.1:${port}`);
  expect(code).toBe(1);
  expect(stderr).toContain('it responded with status 500');
  expect(stderr).not.toContain(token);
});

test('status and sinks list report a running daemon that does not respond, in place of the state alone', async () => {
  const { directory, close } = await opened();
  await close();
  const stalled = 'the daemon has not responded for 12 s';
  const reports = { ledger: neverAsked, gaps: neverAsked, operations: neverAsked };
  const admin = await startAdmin(
    { listen: [] },
    {
      ...{ ...reports, snapshot: neverAsked, metricsText: async () => '', log: silent, clock: systemClock },
      ...{ stalled: () => stalled, socketPath: join(directory, 'waybill.sock') },
    },
  );
  onTestFinished(() => admin[Symbol.asyncDispose]());
  for (const command of [['status'], ['sinks', 'list']])
    expect(await waybill({}, ...command, '--data-dir', directory)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining(`${stalled}\n`) as string,
    });
});

test('status truncates no line if its output is not a terminal', async () => {
  const lastError = `connect ECONNREFUSED ${'word '.repeat(60)}end`;
  const failing = sink({ state: 'retrying', lastError, attempts: 3, lagEntries: 7, lagSeconds: 700 });
  const server = createServer((_, response) => {
    response.end(JSON.stringify(snapshot({ sinks: [failing] })));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const shown = await waybill({}, 'status', '--admin', `http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  expect([shown.code, shown.stderr]).toEqual([0, '']);
  expect(shown.stdout).toContain(lastError);
  expect(shown.stdout).not.toContain('…');
});

test.each([['status'], ['ledger'], ['gaps', 'list'], ['operations', 'list']])(
  'the JSON of another program is rejected by %s',
  async (...command) => {
    for (const body of ['{}', '[]', 'null', '"ok"', '{"sources":{},"gaps":[1],"operations":"none"}', '{"sources":[],"sinks":[]}']) {
      const isLedger = command[0] === 'ledger' && body.includes('"sources":[]');
      if (isLedger) continue;
      const server = createServer((_, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).end(body);
      }).listen(0, '127.0.0.1');
      onTestFinished(() => void server.close());
      await once(server, 'listening');
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
      expect(await waybill({}, ...command, '--admin', url), body).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `cannot use the admin server at ${url}: the JSON of the response is not Waybill's\n`,
      });
    }
  },
);

test.each([
  ['http://192.0.2.7:9464', /http would send the token and the report unencrypted/],
  ['ftp://127.0.0.1', /not an address such as/],
  ['waybill.example:9464', /not an address such as/],
  ['https://:hush@waybill.example', /set WAYBILL_ADMIN_TOKEN/],
  ['https://waybill.example/?a=b', /query or fragment/],
])('the address %s is refused before any request', async (address, words) => {
  const { code, stderr } = await waybill({ WAYBILL_ADMIN_TOKEN: token }, 'status', '--admin', address);
  expect([code, stderr]).toEqual([2, expect.stringMatching(words)]);
  expect(stderr).not.toContain('hush');
});

test('--admin-ca without --admin, --data-dir with it, and a token that no header can contain, are refused', async () => {
  expect(await waybill({}, 'status', '--admin-ca', 'ca.pem')).toMatchObject({ code: 2, stderr: 'cannot use --admin-ca without --admin\n' });
  const both = await waybill({}, 'status', '--admin', 'http://127.0.0.1:9', '--data-dir', 'state');
  expect(both).toMatchObject({ code: 2, stderr: 'cannot use --data-dir with --admin: choose one of them\n' });
  const { code, stderr } = await waybill({ WAYBILL_ADMIN_TOKEN: 'a\nb' }, 'status', '--admin', 'http://127.0.0.1:1');
  expect([code, stderr]).toEqual([2, expect.stringMatching(/a character that an HTTP header cannot carry/)]);
});
