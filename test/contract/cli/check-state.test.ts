/**
 * `check` on the state directory: whether it is writable, and whether a source was only renamed.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type ListenOptions, type Server } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { adminLines } from '../../../src/cli/commands/check/admin.ts';
import { writableLines } from '../../../src/cli/commands/check/state.ts';
import { base } from '../../support/records.ts';
import { opened, temporary } from '../../support/journal/opening.ts';
import { offlineCheck, service } from '../../support/offline-check.ts';

const maxSize = 16 * 2 ** 20;

async function stateFindings(state: string, journal = { maxSize, retention: 0 }): Promise<string[]> {
  return (await writableLines({ dataDir: state, journal })).map(({ subject, level, message: words }) => `${subject} ${level} ${words}`);
}

test('a directory that exists or can be created is ok', async () => {
  const directory = temporary();
  expect(await stateFindings(directory)).toEqual([`state ok "${directory}" is writable`]);
  expect(await stateFindings(join(directory, 'a/b'))).toEqual([`state ok "${join(directory, 'a/b')}" can be created`]);
});

test('a file instead of a directory, and a path below it, is an error', async () => {
  const file = join(temporary(), 'plain');
  writeFileSync(file, '');
  for (const state of [file, join(file, 'state')])
    expect(await stateFindings(state)).toEqual([`state error cannot use "${file}" (dataDir): it is not a directory`]);
});

test('a disk with less free space than maxSize is a warning; a full or read-only one is an error', async ({ skip }) => {
  const volume = temporary();
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=1m', 'none', volume], { stdio: 'pipe' });
  } catch (cause) {
    return skip(`no small disk can be mounted here: ${String(cause).split('\n')[0] ?? ''}`);
  }
  try {
    const state = join(volume, 'state');
    mkdirSync(state);
    const [line = ''] = await stateFindings(state);
    expect(line).toMatch(
      /^state warning "[^"]+" is writable, but its disk has 1 MiB free, less than the 16 MiB that journal\.maxSize permits: /,
    );
    expect(() => {
      writeFileSync(join(volume, 'plug'), Buffer.alloc(2 ** 21));
    }).toThrow('ENOSPC');
    expect(await stateFindings(state)).toEqual([`state error cannot write to "${state}" (dataDir): its disk is full`]);
    execFileSync('mount', ['-o', 'remount,ro', volume], { stdio: 'pipe' });
    for (const each of [state, join(volume, 'later')])
      expect(await stateFindings(each)).toEqual([
        expect.stringMatching(/^state error cannot write to "[^"]+" \(dataDir\): .*(EROFS|read-only)/),
      ]);
  } finally {
    execFileSync('umount', ['-l', volume], { stdio: 'pipe' });
  }
});

test('a source with a new id for the service of a removed one is reported, until the old one is retired', async () => {
  const { journal, directory } = await opened();
  journal.registerSource('berlin', '/v2/api of tenant t', base);
  journal.registerSource('paris', '/v2/api of tenant p', base);
  const source = (id: string, tenantId: string) => ({
    ...{ id, baseUrl: `${service.baseUrl}/`, auth: { ...service.auth, tenantId }, start: '2026-11-20T02:00:00Z' },
  });
  const findings = async (...sources: object[]): Promise<string[]> => {
    const { code, findings } = await offlineCheck({ dataDir: directory, sources, sinks: [{ id: 'out', type: 'stdout' }] });
    expect(code).toBe(0);
    return findings
      .filter(({ message: words }) => words.includes('retire'))
      .map(({ subject, level, message: words }) => `${subject} ${level} ${words}`);
  };
  expect(await findings(source('berlin', 't'), source('paris', 'p'))).toEqual([]);
  // Removed without a replacement; another tenant is another service.
  expect(await findings(source('paris', 'p'), source('rome', 'r'))).toEqual([]);
  const renamed = [source('berlin-2', 't'), source('paris', 'p')];
  const first = /^source berlin-2 warning polls the same service as berlin, .*: waybill sources retire --source berlin$/;
  expect(await findings(...renamed)).toEqual([expect.stringMatching(first)]);
  journal.markSourcesUnconfigured(new Set(['berlin-2', 'paris']));
  expect(await findings(...renamed)).toEqual([expect.stringMatching(/to keep the new id: waybill sources retire --source berlin$/)]);
  journal.history.retire('berlin', { actor: 'j.doe', reason: undefined });
  expect(await findings(...renamed)).toEqual([]);
});

test('a source with another path or tenant than in the state is an error; another host is a warning', async () => {
  const { journal, directory } = await opened();
  const { origin } = new URL(service.baseUrl);
  journal.registerSource('berlin', `${origin}/v2/api of tenant t`, base);
  const findings = async (baseUrl: string, tenantId: string): Promise<unknown> => {
    const sources = [{ id: 'berlin', ...service, baseUrl, auth: { ...service.auth, tenantId }, start: '2026-11-20T02:00:00Z' }];
    const { code, findings } = await offlineCheck({ dataDir: directory, sources, sinks: [{ id: 'out', type: 'stdout' }] });
    return [
      code,
      ...findings.filter(({ message: words }) => words.includes('before')).map(({ level, message: words }) => `${level} ${words}`),
    ];
  };
  expect(await findings(`${origin}/v2/api/`, 't')).toEqual([0]);
  const restore = 'restore the setting, or move the source with its uids: waybill sources move';
  expect(await findings(`${origin}/v3/api`, 't')).toEqual([
    1,
    `error is suspended: it polled "${origin}/v2/api of tenant t" before and would now poll "${origin}/v3/api of tenant t"; ${restore}`,
  ]);
  expect(await findings(`${origin}/v2/api`, 'other')).toEqual([1, expect.stringContaining('/v2/api of tenant other')]);
  expect(await findings('https://moved.example/v2/api', 't')).toEqual([
    0,
    `warning polled "${origin}/v2/api of tenant t" before: at this address, every window is counted once more`,
  ]);
});

test('a start before the ledger is reported with the backfill for the range, until it is requested', async () => {
  const { journal, directory } = await opened();
  journal.registerSource('berlin', '/v2/api of tenant t', base);
  const findings = async (start: string): Promise<string[]> => {
    const sources = [{ id: 'berlin', ...service, baseUrl: `${service.baseUrl}/`, start }];
    const { code, findings } = await offlineCheck({ dataDir: directory, sources, sinks: [{ id: 'out', type: 'stdout' }] });
    expect(code).toBe(0);
    return findings.filter(({ message: words }) => words.includes('start is')).map(({ level, message: words }) => `${level} ${words}`);
  };
  expect(await findings('2026-11-20T02:00:00Z')).toEqual([]);
  expect(await findings('2026-11-18T00:00:00Z')).toEqual([
    'warning start is before 2026-11-20T02:00:00Z, where its ledger starts: waybill backfill --source berlin --from 2026-11-18T00:00:00Z --to 2026-11-20T02:00:00Z reads the earlier records',
  ]);
  // The daemon found this when it requested the earliest record.
  await journal.setProfile('berlin', JSON.stringify({ earliest: base - 3_600_000_000 }));
  expect(await findings('earliest')).toEqual([expect.stringContaining('--from 2026-11-20T01:00:00Z --to 2026-11-20T02:00:00Z')]);
  expect(await findings('now')).toEqual([]);
  journal.history.add('berlin', { from: base - 86_400_000_000 * 3, to: base }, {}, { actor: 'j.doe', reason: undefined });
  expect([...(await findings('2026-11-18T00:00:00Z')), ...(await findings('earliest'))]).toEqual([]);
});

test('a sink with the same id but another target is an error, as at the start', async () => {
  const { journal, directory } = await opened();
  journal.sinkPositions.register('out', 'kafka', 'audit', journal.positionFor('journal'), undefined);
  const sources = [{ id: 'berlin', ...service, start: '2026-11-20T02:00:00Z' }];
  const findings = async (sink: object): Promise<{ code: number; message: string[] }> => {
    const { code, findings } = await offlineCheck({ dataDir: directory, sources, sinks: [{ id: 'out', ...sink }] });
    return {
      code,
      message: findings.filter(({ level }) => level === 'error').map(({ subject, message: words }) => `${subject}: ${words}`),
    };
  };
  const kafka = { type: 'kafka', brokers: ['broker.example:9092'] };
  expect(await findings({ ...kafka, topic: 'audit' })).toEqual({ code: 0, message: [] });
  expect(await findings({ ...kafka, topic: 'audit-2' })).toEqual({
    code: 1,
    message: [
      'sink out: it delivered to "audit" before and would now deliver to "audit-2"; keep the setting, or give the new destination a new id',
    ],
  });
  const stdout = await findings({ type: 'stdout' });
  expect(stdout.message).toEqual([
    expect.stringMatching(/^sink out: it delivered to "audit" by kafka before and would now deliver to ".*" by stdout;/),
  ]);
  expect(() => journal.sinkPositions.register('out', 'kafka', 'audit-2', journal.positionFor('journal'), undefined)).toThrow(
    'cannot use sinks.out: it delivered to "audit" before',
  );
  expect(() => journal.sinkPositions.register('out', 'syslog', 'audit', journal.positionFor('journal'), undefined)).toThrow('by syslog');
});

test('the address of the admin server must be free, unless a daemon runs with this state', async () => {
  const dataDir = temporary();
  const taken = await listening({ port: 0, host: '127.0.0.1' });
  const { port } = taken.address() as AddressInfo;
  const listen = `127.0.0.1:${port}`;
  const findings = async (): Promise<string[]> =>
    (await adminLines({ dataDir, admin: { listen: ['[::1]:0', listen] } })).map(
      ({ subject, level, message: words }) => `${subject} ${level} ${words}`,
    );
  expect(await findings()).toEqual([`admin error cannot listen on admin.listen "${listen}": another process listens there already`]);
  taken.close();
  await once(taken, 'close');
  // Twice: the check has released the address.
  for (let i = 0; i < 2; i += 1) expect(await findings()).toEqual([`admin ok can listen on [::1]:0, ${listen}`]);
  const daemon = await listening({ path: join(dataDir, 'waybill.sock') });
  daemon.on('connection', (socket) => void socket.end('HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'));
  expect(await findings()).toEqual([]);
  daemon.close();
});

test('an error of admin.tls names its own setting', async () => {
  const tls = { cert: join(temporary(), 'missing.pem'), key: 'also-missing.pem' };
  expect(await adminLines({ dataDir: temporary(), admin: { listen: ['127.0.0.1:0'], tls } })).toMatchObject([
    { level: 'error', setting: 'admin.tls.cert' },
  ]);
});

test.skipIf(process.getuid?.() !== 0)('the state of another user, whose daemon may run: no line of the admin server', () => {
  const dataDir = temporary();
  const module = new URL('../../../src/cli/commands/check/admin.ts', import.meta.url).href;
  const config = JSON.stringify({ dataDir, admin: { listen: '127.0.0.1:0' } });
  const program = `process.setgid(65534); process.setuid(65534); console.log((await (await import('${module}')).adminLines(${config})).length)`;
  expect(execFileSync(process.execPath, ['--input-type=module', '-e', program], { encoding: 'utf8' })).toBe('0\n');
});

async function listening(options: ListenOptions): Promise<Server> {
  const server = createServer().listen(options);
  await once(server, 'listening');
  return server;
}
