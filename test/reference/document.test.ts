/**
 * docs/reference-service.md, and the part of README.md about it: their commands run unchanged, and
 * the document has a row for everything that the specification names.
 */
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { oldNode } from '../support/old-node.ts';
import { waybillProgram } from '../support/programs.ts';
import { Service } from '../support/reference/service.ts';

const document = readFileSync(new URL('../../docs/reference-service.md', import.meta.url), 'utf8');

/** The code block of this language under the heading of the client. */
function block(language: string): string {
  const section = document.slice(document.indexOf('## A client in a few lines'), document.indexOf('## The specification'));
  const [, text] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(section) ?? [];
  if (text === undefined) throw new Error(`no block in ${language}`);
  return text;
}

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'reference-document-'));
  onTestFinished(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

function run(
  command: string,
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
): Promise<{ code: number | null; out: string; err: string }> {
  // A group of its own: the commands start a service in the background, which outlives a shell that is ended.
  const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], timeout: 60_000, detached: true });
  onTestFinished(() => endGroup(child.pid));
  let [out, err] = ['', ''];
  child.stdout.on('data', (part: Buffer) => (out += part.toString()));
  child.stderr.on('data', (part: Buffer) => (err += part.toString()));
  return new Promise((resolve, reject) => child.once('error', reject).once('close', (code) => resolve({ code, out, err })));
}

function endGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL');
  } catch (thrown) {
    // Every process of the group has ended.
    if ((thrown as { code?: unknown }).code !== 'ESRCH') throw thrown;
  }
}

/** Installs the program where `npx` finds waybill. */
function installed(place: string, program: string): void {
  mkdirSync(join(place, 'node_modules', '.bin'), { recursive: true });
  symlinkSync(program, join(place, 'node_modules', '.bin', 'waybill'));
}

function runExample(place: string): ReturnType<typeof run> {
  const PATH = `${join(process.execPath, '..')}:${process.env['PATH'] ?? ''}`;
  const env = { ...process.env, PATH, npm_config_loglevel: 'error', npm_config_offline: 'true' };
  return run('bash', ['-euo', 'pipefail', '-c', block('sh')], place, env);
}

describe('the client', () => {
  test('in curl protects, authorizes, opens as the colleague and is refused as a stranger', { timeout: 300_000 }, async ({ skip }) => {
    if (spawnSync('curl', ['--version']).status !== 0) return skip('there is no curl on the path');
    const place = folder();
    installed(place, waybillProgram);
    // The file of an earlier run must not be used.
    writeFileSync(join(place, 'service.json'), '{}');
    const { code, out, err } = await runExample(place);
    expect([code, err]).toEqual([0, '']);
    const [authorized = '', opened = '', refused = ''] = out.trim().split('\n');
    expect(JSON.parse(authorized)).toMatchObject({ accessLevel: 'View', isRevoked: false });
    expect(opened).toBe('the plan');
    expect(JSON.parse(refused)).toMatchObject({ status: 403, reason: 'UserPayloadNoAccess' });
    expect(readFileSync(join(place, 'plan.IKD')).toString('hex', 0, 4)).toBe('89494b44');
  });

  test('in curl ends if the service does not start', { timeout: 300_000 }, async () => {
    const place = folder();
    writeFileSync(join(place, 'ended'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    installed(place, join(place, 'ended'));
    expect((await runExample(place)).code).toBeGreaterThan(0);
  });

  test('in TypeScript does the same', async () => {
    await using service = await Service.start();
    const place = folder();
    writeFileSync(join(place, 'service.json'), JSON.stringify(service.line));
    writeFileSync(join(place, 'client.ts'), block('ts'));
    writeFileSync(join(place, 'package.json'), '{"type": "module"}');
    const env = { ...process.env, NODE_EXTRA_CA_CERTS: service.line.ca };
    const { code, out, err } = await run(process.execPath, ['client.ts'], place, env);
    expect([code, err]).toEqual([0, '']);
    const [opened, refused] = out.split('\n');
    expect([opened, refused]).toEqual(['the plan', 'Error: 403: Access is denied: UserPayloadNoAccess']);
    const lines = (await service.truth()).map((record) => [record['actionAttempted'], record['result'], record['resultReason']].join(' '));
    expect(lines).toEqual([
      'Encrypt AccessGranted Success',
      'Audit AuthorisedUserAccess Created',
      'Decrypt AccessGranted Success',
      'Decrypt AccessDenied UserPayloadNoAccess',
    ]);
  });
});

// In a checkout `npm ci` brings Node 24; the shell of a newcomer may have an older one.
const older = oldNode();
const shells: readonly (readonly [string, string])[] = [
  ...(older ? [['an older Node', older.directory] as const] : []),
  ['this Node', join(process.execPath, '..')],
];

describe.each(shells)('in a shell with %s', (_, directory) => {
  test(
    'the commands of README.md protect, set a rule, are denied by it, and find all of it in the log',
    { timeout: 60_000 },
    async ({ skip }) => {
      if (spawnSync('curl', ['--version']).status !== 0) return skip('there is no curl on the path');
      const place = folder();
      for (const name of ['bin', 'node_modules']) symlinkSync(fileURLToPath(new URL(`../../${name}`, import.meta.url)), join(place, name));
      const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
      const [, lines = ''] = /## A service for tests[^]*?```sh\n([^]*?)```/.exec(readme) ?? [];
      const PATH = `${directory}:${process.env['PATH'] ?? ''}`;
      const { code, out, err } = await run('bash', ['-euo', 'pipefail', '-c', lines], place, { ...process.env, PATH });
      expect([code, err]).toEqual([0, '']);
      const [opened, rule = '', denied = '', log = '', others = '', title] = out.trim().split('\n');
      expect([opened, title]).toEqual(['the plan', 'Reference service']);
      expect(JSON.parse(rule)).toEqual({ accessWindows: [], allowedAreas: [{ country: 'JP' }] });
      expect(JSON.parse(denied)).toMatchObject({ status: 403, reason: 'GeoValidationFailed' });
      const actionsIn = (json: string): unknown[] =>
        (JSON.parse(json) as { data: Record<string, unknown>[] }).data.map(
          (record) => `${String(record['actionAttempted'])} ${String(record['result'])}`,
        );
      expect(actionsIn(log)).toEqual(['Encrypt AccessGranted', 'Decrypt AccessGranted', 'Audit AccessWindow', 'Decrypt AccessDenied']);
      expect(actionsIn(others).length).toBeGreaterThan(0);
      expect(JSON.parse(readFileSync(join(place, 'switches.json'), 'utf8'))).toMatchObject({ fault503: 0.2, lateShare: 0.1 });
    },
  );
});

describe('the document', () => {
  const names = {
    'fields of a payload (2.1)': 'ownerId payloadId fileType originalFileName originalFileCreatedDate payloadCreateDate isRevoked',
    'fields of protect-remote (2.2)': 'fileType fileName userNetwork ipAddress latLong base64FileData',
    'fields of a user (2.3)': 'id firstName lastName email type',
    'fields of an authorization (2.4)': 'userId userName email accessLevel isRevoked',
    'pagination (2.6)': 'totalRecords totalPages pageSize itemsInPage page',
    'fields of a record (2.7)':
      'logId userId payloadId payloadName currentPayloadOwnerId actionAttempted result resultReason logTimestamp userNetwork ' +
      'ipAddress networkName networkId domainName deviceType machineName mac uuid serviceProvider latLong address ' +
      'userLastNameFirstName userEmailAddress currentOwnerLastNameFirstName currentOwnerEmailAddress',
    'parameters (4.3, 4.6)':
      'expand actionAttempted currentPayloadOwnerId startTime endTime page pageSize payloadId payloadName result resultReason userId sort',
    'headers (4.1)': 'Authorization Ocp-Apim-Subscription-Key x-api-caller-id',
    'fields of the token endpoint (5)':
      'grant_type client_credentials password client_id client_secret scope username password access_token',
    'permissions (5)':
      'payload.create payload.open payload.read payload.update users.read groups.read logs.read users.read.all groups.read.all ' +
      'logs.read.all users.write payload.read.all payload.update.all',
  };
  const rows = document.split('\n').filter((line) => line.startsWith('| '));

  test.each(Object.entries(names))('has a row for each of %s', (_, list) => {
    for (const name of list.split(' '))
      expect(
        rows.some((row) => row.includes(`\`${name}\``)),
        name,
      ).toBe(true);
  });

  test('has a row for each endpoint and role', () => {
    for (const text of [
      'POST payloads/protect-remote/',
      'GET /users',
      'POST …/policies/user-authorizations',
      'GET …/policies/user-authorizations',
      'GET /logs/full-payload',
      'GET /logs/payload',
      'POST payloads/protect-local',
      'POST payloads/open-remote',
      'POST payloads/open-local',
      'GET payloads/{payloadId}',
      '{policy_type}',
      'GET groups',
      'expand=true',
      'POST users',
      'PATCH users/{user_id}',
      'POST users/{userId}',
      'DELETE users/{userId}/roles/{role_name}',
    ]) {
      expect(
        rows.some((row) => row.includes(text)),
        text,
      ).toBe(true);
    }
    const roles = ['Author', 'Recipient', 'Security Administrator', 'User Administrator', 'Data Administrator', 'Policy Administrator'];
    for (const role of [...roles, 'Super Administrator'])
      expect(
        rows.some((row) => row.includes(role)),
        role,
      ).toBe(true);
  });

  test('has a row for each combination (2.8), and there is no other', () => {
    const reasons: Record<string, string> = {
      'Encrypt, AccessGranted': 'Success',
      'Encrypt, AccessDenied': 'GeoValidationCountryExclusionFailed',
      'Decrypt, AccessGranted': 'Success',
      'Decrypt, AccessDenied': 'GeoValidationCountryExclusionFailed TimeEmbargoFailed UserPayloadNoAccess GeoValidationFailed',
      'Audit, AccessWindow': 'Changed Created',
      'Audit, RevokeAccess': 'Changed',
      'Audit, AuthorisedGroupAccess': 'Changed Created',
      'Audit, AuthorisedUserAccess': 'Changed Created',
      'Audit, AuthorChanged': 'Changed',
      'EncryptionRequest, AccessDenied': 'GeoValidationCountryExclusionFailed GeoValidationFailed',
    };
    const wanted = Object.entries(reasons).flatMap(([start, list]) => list.split(' ').map((reason) => `${start}, ${reason}`));
    const section = document.slice(document.indexOf('### The log of it'), document.indexOf('### Users and groups'));
    const found = Array.from(section.matchAll(/^\| (\w+, \w+, \w+) \|/gm), ([, row]) => row).filter((row) => !row?.startsWith('action'));
    expect(found.sort()).toEqual(wanted.sort());
  });

  test('names existing test files', () => {
    const section = document.slice(document.indexOf('## The specification'), document.indexOf('## The control port')).split('\n');
    const cells = section.filter((row) => /^(\|[^|]+){4}\|$/.test(row)).map((row) => (row.split('|')[4] ?? '').trim());
    const named = cells.filter((cell) => cell !== 'test' && !/^-+$/.test(cell)).flatMap((cell) => cell.split(', '));
    expect(named.length).toBeGreaterThan(80);
    for (const name of new Set(named)) readFileSync(new URL(`./${name}.test.ts`, import.meta.url));
  });
});
