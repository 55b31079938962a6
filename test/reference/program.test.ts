import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { request } from 'node:http';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { optionsOf } from '../../src/reference/options.ts';
import { BadValue } from '../../src/reference/values.ts';
import { referenceProgram } from '../support/programs.ts';
import { Service, type TruthRecord } from '../support/reference/service.ts';

const runs = (...args: string[]): { status: number | null; out: string; err: string } => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [referenceProgram, ...args], { encoding: 'utf8', timeout: 10_000 });
  return { status, out: stdout, err: stderr };
};

describe('the command line', () => {
  test('--help lists every switch of the control port, and the document has a row for each', async () => {
    const { status, out } = runs('--help');
    expect(status).toBe(0);
    await using service = await Service.start();
    const names = Object.keys((await service.control('GET', '/switches')).json);
    expect(names.length).toBeGreaterThan(45);
    const document = readFileSync(new URL('../../docs/reference-service.md', import.meta.url), 'utf8');
    for (const name of names) {
      const option = name.replace(/([a-z])(\d)/, '$1-$2').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      expect(out, name).toContain(`--${option} `);
      expect(document, name).toContain(`| \`${name}\` `);
    }
  });

  test.each([
    [['--nosuch', '1'], '--nosuch'],
    [['records'], 'records'],
    [['--records', 'many'], '--records'],
    [['--records'], '--records'],
    [['--span', '1 day'], '--span'],
    [['--records', '10', '--span', '100000000d'], '--span'],
    [['--port', '70000'], '--port'],
    [['--fault-500', '0.6', '--fault-502', '0.6'], 'fault-500'],
    [['--sort', 'maybe'], 'sort'],
    [['--fault-500', '2'], 'fault-500'],
    [['--json=yes'], '--json'],
    [['--data', ''], '--data'],
    [['--tls-dir='], '--tls-dir'],
  ])('%j is refused in one line that names it', (args, name) => {
    const refused = expect(() => optionsOf(args));
    refused.toThrow(BadValue);
    refused.toThrow(new RegExp(`^[^\\n]*${name}[^\\n]*$`));
  });

  test('the program prints that line, and ends with 2', () => {
    const { status, out, err } = runs('--span', '1 day');
    expect([status, out, err.split('\n').length]).toEqual([2, '', 2]);
    expect(err).toContain('--span');
  });

  test('the start line has a client and a user for each role, two Authors, and one Super Administrator; the same with the same seed', async () => {
    await using one = await Service.startProgram('--seed', 'a', '--records', '50');
    await using same = await Service.start('--seed', 'a', '--records', '50');
    await using other = await Service.start('--seed', 'b', '--records', '50');
    const roles = [
      'Author',
      'Recipient',
      'Security Administrator',
      'User Administrator',
      'Data Administrator',
      'Policy Administrator',
      'Super Administrator',
    ];
    expect(one.line.clients.map((client) => client.roles)).toEqual(roles.map((role) => [role]));
    expect(one.line.users.map((user) => user.roles[0])).toEqual([...roles, 'Author']);
    expect(one.line.users[6]?.userId).toBe(one.line.clients[6]?.userId);
    expect(new Set(one.line.users.map((user) => user.username)).size).toBe(8);
    expect(one.line.baseUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/v2\/api$/);
    expect(same.line.clients).toEqual(one.line.clients);
    expect(other.line.clients[0]?.clientSecret).not.toBe(one.line.clients[0]?.clientSecret);
    const untimed = async (service: Service): Promise<unknown> =>
      (await service.truth()).map((record) => ({ ...record, logTimestamp: '' }));
    expect(await untimed(same)).toEqual(await untimed(one));
    expect(await untimed(other)).not.toEqual(await untimed(one));
  });

  test.each(['SIGTERM', 'SIGINT'] as const)(
    '%s ends the service with 0 and removes its files, also while a response is stalled',
    async (signal) => {
      const service = await Service.startAlone('--fault-stalled', '1');
      const stalled = service.api('/logs/payload').catch(() => 'gone');
      await service.token();
      expect(existsSync(service.line.ca)).toBe(true);
      expect(await service.stop(signal)).toBe(0);
      expect(await stalled).toBe('gone');
      expect(existsSync(service.line.ca)).toBe(false);
    },
  );

  test('SIGTERM ends it with 0 during the creation of its first records, and none of them is stored', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'reference-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, 'data.db');
    const child = spawn(process.execPath, [referenceProgram, '--json', '--records', '5000000', '--data', file], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let out = '';
    child.stdout.on('data', (part: Buffer) => (out += part.toString()));
    await expect.poll(() => existsSync(`${file}-wal`), { timeout: 60_000 }).toBe(true);
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    expect([await ended, out]).toEqual([[0, null], '']);
    await using after = await Service.startProgram('--data', file, '--records', '7');
    expect(await after.truthLines()).toHaveLength(7);
  });

  test('a failure at the start ends it with 1 and one line, also with an IPC channel to its parent', async () => {
    await using first = await Service.start();
    const { port } = new URL(first.line.control);
    const child = spawn(process.execPath, [referenceProgram, '--json', '--control-port', port], {
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    let err = '';
    child.stderr?.on('data', (part: Buffer) => (err += part.toString()));
    expect(await once(child, 'close')).toEqual([1, null]);
    expect(err).toMatch(/^--control-port: [^\n]*EADDRINUSE[^\n]*\n$/);
    const { port: httpsPort } = new URL(first.line.baseUrl);
    expect(runs('--port', httpsPort)).toMatchObject({
      status: 1,
      err: expect.stringMatching(/^--port: [^\n]*EADDRINUSE[^\n]*\n$/) as unknown,
    });
  });

  test('an unusable data file or folder is refused in one line that names the option and the file', () => {
    const folder = mkdtempSync(join(tmpdir(), 'reference-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const corrupt = join(folder, 'corrupt.db');
    writeFileSync(corrupt, 'no database'.repeat(1000));
    const unreadable = join(folder, 'tls');
    mkdirSync(unreadable);
    writeFileSync(join(unreadable, 'ca.pem'), 'no certificate');
    for (const name of ['server.pem', 'server.key']) writeFileSync(join(unreadable, name), '');
    for (const [option, path] of [
      ['--data', corrupt],
      ['--data', folder],
      ['--data', join(folder, 'none', 'data.db')],
      ['--tls-dir', corrupt],
      ['--tls-dir', unreadable],
    ] as const) {
      const { status, out, err } = runs(option, path);
      expect([status, out, err.split('\n').length], err).toEqual([1, '', 2]);
      expect(err.startsWith(`${option}: `) && err.includes(path), err).toBe(true);
    }
  });

  test('--data and --tls-dir keep records and certificates over a restart; another seed is refused', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'reference-test-'));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const options = ['--data', join(folder, 'data.db'), '--tls-dir', folder, '--records', '300', '--seed', 'kept', '--late-share', '0.2'];
    const before = await Service.startProgram(...options);
    await before.control('POST', '/records?visibleIn=600', '{"logId":1}');
    const lines = await before.truthLines();
    const authority = readFileSync(before.line.ca, 'utf8');
    await before.stop();
    await using after = await Service.startProgram(...options);
    expect(readFileSync(after.line.ca, 'utf8')).toBe(authority);
    expect((await after.page('pageSize=1')).pagination.totalRecords).toBeGreaterThanOrEqual(lines.length);
    expect(await after.truthLines()).toEqual(expect.arrayContaining(lines));
    await expect.poll(() => after.truthLines(), { timeout: 60_000 }).toContain('{"logId":1}');
    await after.set({ rate: 100 });
    await expect.poll(async () => (await after.truth()).length, { timeout: 60_000 }).toBeGreaterThan(310);
    const ids = (await after.truth()).map((record) => record.logId);
    expect(new Set(ids).size).toBe(ids.length);
    // One process has the file, which only this user may access.
    const second = runs(...options);
    expect(second).toEqual({ status: 1, out: '', err: `--data: another process uses ${join(folder, 'data.db')}\n` });
    for (const name of ['data.db', 'data.db-wal']) expect(statSync(join(folder, name)).mode & 0o777, name).toBe(0o600);
    await after.stop();
    const refused = runs(...options, '--seed', 'another');
    expect([refused.status, refused.err.includes('--seed kept')]).toEqual([2, true]);
  });
});

describe('the control port', () => {
  test('refuses pages of browsers: a Host of another name, and an Origin other than its own', async () => {
    await using service = await Service.start();
    const { port } = new URL(service.line.control);
    const statusWith = (headers: Record<string, string>, method = 'GET', path = '/accounts'): Promise<number | undefined> =>
      new Promise((resolve, reject) => {
        const sent = request({ host: '127.0.0.1', port, path, method, headers }, (response) => {
          response.resume();
          resolve(response.statusCode);
        });
        sent.once('error', reject).end(method === 'POST' ? '{"logId":1}' : undefined);
      });
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `LOCALHOST:${port}`, `[::1]:${port}`]) {
      expect(await statusWith({ host }), host).toBe(200);
    }
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1', '127.0.0.1:1', `127.0.0.1:${port}.evil.example`]) {
      expect(await statusWith({ host }), host).toBe(403);
    }
    const text = { 'content-type': 'text/plain' };
    for (const origin of ['http://evil.example', 'null', 'http://127.0.0.1:1', `https://evil.example:${port}`]) {
      expect(await statusWith({ ...text, origin }, 'POST', '/records'), origin).toBe(403);
    }
    expect(await service.truthLines()).toEqual([]);
    expect(await statusWith({ ...text, origin: service.line.control }, 'POST', '/records')).toBe(200);
  });

  test('adds records unchanged, sorted by their time or the time of the call, visible at the given time', async () => {
    await using service = await Service.start('--records', '30', '--span', '1m');
    const [model] = await service.truth();
    const odd = [
      '{"logId": 18446744073709551616, "logTimestamp":"2020-01-01T00:00:00.1234567", "x" : "\\ud83d"}',
      `{"b":1,"a":1,"a":2,"userId":"odd-user","result":"AccessDenied","logTimestamp":"2020-01-01T00:00:00.1234566"}`,
      '"only text"',
      '[1, 2]',
      'null',
      '{"logTimestamp":"never"}',
    ];
    const added = await service.control('POST', '/records', odd.join('\n'));
    expect(added).toEqual({ status: 200, json: { added: 6 } });
    const lines = await service.truthLines();
    expect(lines.slice(0, 2)).toEqual([odd[1], odd[0]]);
    expect(lines.slice(-4)).toEqual(odd.slice(2));
    for (const endpoint of ['payload', 'full-payload']) {
      const reply = await service.api(`/logs/${endpoint}?sort=-logTimestamp&pageSize=4`);
      expect(reply.text).toContain(`"data":[{"logTimestamp":"never"},null,[1, 2],"only text"]`);
    }
    expect((await service.api('/logs/payload?userId=odd-user&result=AccessDenied')).text).toContain(odd[1] ?? '');

    const late: TruthRecord = { ...(model as TruthRecord), logId: 77 };
    await service.control('POST', '/records?visibleIn=400', JSON.stringify(late));
    expect(await service.truthLines()).toHaveLength(36);
    await expect
      .poll(async () => (await service.truthLines()).some((line) => line.startsWith('{"logId":77,')), { timeout: 60_000 })
      .toBe(true);

    const refused = await service.control('POST', '/records', '{"logId":1}\n{"logId":');
    expect([refused.status, String(refused.json['detail'])]).toEqual([400, 'line 2 is not one JSON value']);
    expect(await service.truthLines()).toHaveLength(37);
    expect((await service.control('POST', '/records?visibleIn=soon', '1')).status).toBe(400);
    expect((await service.control('GET', '/nothing')).status).toBe(404);
    expect((await service.control('GET', '//')).status).toBe(404);
  });

  test('counts requests by endpoint and status, and those in progress', async () => {
    await using service = await Service.start('--records', '100', '--late-share', '1', '--late-delay', '30d');
    await service.api('/logs/payload');
    await service.api('/logs/payload?page=0');
    await service.api('/logs/full-payload', 'Author');
    await service.api('/elsewhere');
    const { json } = await service.control('GET', '/stats');
    expect(json).toMatchObject({
      requests: {
        'POST token': { 200: 2 },
        'GET /logs/payload': { 200: 1, 400: 1 },
        'GET /logs/full-payload': { 403: 1 },
        other: { 404: 1 },
      },
      faults: {},
      logAnswers: 1,
      records: { total: 100 },
    });
    expect((json['records'] as { visible: number }).visible).toBe((await service.truth()).length);
    expect((json['records'] as { visible: number }).visible).toBeLessThan(100);
  });
});
