/**
 * A client that openapi-typescript generates from the checked-in document with its default settings: every call of the specification
 * compiles, and the service answers each with success. The calls are in test/fixtures/reference-client.
 */
import { spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import openapiTypes, { astToString } from 'openapi-typescript';
import ts from 'typescript';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isLong } from '../support/long-run.ts';
import { Service } from '../support/reference/service.ts';

const root = new URL('../../', import.meta.url);
let folder: string;
let calls: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'reference-client-'));
  calls = join(folder, 'calls.ts');
  symlinkSync(fileURLToPath(new URL('node_modules', root)), join(folder, 'node_modules'));
  copyFileSync(new URL('test/fixtures/reference-client/calls.ts', root), calls);
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  const types = await openapiTypes(readFileSync(new URL('docs/reference-service.openapi.json', root), 'utf8'));
  writeFileSync(join(folder, 'schema.ts'), astToString(types));
});
afterAll(() => rmSync(folder, { recursive: true }));

test('compiles with every call of the specification', { timeout: 300_000 }, ({ skip }) => {
  skip(!isLong, 'npm run test:long runs it');
  const program = ts.createProgram([calls], {
    target: ts.ScriptTarget.ES2024,
    lib: ['lib.es2024.d.ts', 'lib.dom.d.ts'],
    module: ts.ModuleKind.NodeNext,
    types: ['node'],
    strict: true,
    noUncheckedIndexedAccess: true,
    exactOptionalPropertyTypes: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    noEmit: true,
  });
  const host = { getCanonicalFileName: (name: string) => name, getCurrentDirectory: () => folder, getNewLine: () => '\n' };
  expect(ts.formatDiagnostics(ts.getPreEmitDiagnostics(program), host)).toBe('');
});

test('gets success for every call of the specification', { timeout: 300_000 }, async () => {
  await using service = await Service.start('--records', '40');
  const administrator = await service.as('Super Administrator');
  const { json } = await service.call(administrator, 'GET', '/groups');
  const [group] = json['data'] as { id: string }[];
  const given = {
    baseUrl: service.line.baseUrl,
    subscriptionKey: service.line.subscriptionKey,
    administrator,
    recipientId: service.client('Recipient').userId,
    groupId: group?.id,
  };
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: service.line.ca };
  const child = spawn(process.execPath, [calls], { env, stdio: ['pipe', 'pipe', 'pipe'] });
  child.stdin.end(JSON.stringify(given));
  const [out, error] = await Promise.all([text(child.stdout), text(child.stderr)]);
  expect(error).toBe('');
  const lines = out.trim().split('\n');
  const email: unknown = expect.stringMatching(/@example\.com$/);
  expect(JSON.parse(lines.pop() ?? '')).toEqual({ total: 1, isRevoked: false, email, provider: '' });
  expect(lines.map((line) => line.replace(/ 20[01]$/, ' success'))).toEqual(
    [
      'POST /payloads/protect-remote/',
      'POST /payloads/protect-remote',
      'GET /users',
      'GET /users',
      'GET /users',
      'POST /payloads/{payloadId}/policies/user-authorizations',
      'GET /payloads/{payloadId}/policies/user-authorizations',
      'GET /logs/full-payload',
      'GET /logs/full-payload',
      'GET /logs/payload',
      'GET /logs/payload',
      'POST /payloads/protect-local',
      'POST /payloads/open-remote',
      'POST /payloads/open-local',
      'GET /payloads/{payloadId}',
      'POST /payloads/{payloadId}/user-authorizations',
      'POST /payloads/{payloadId}/group-authorizations',
      'POST /payloads/{payloadId}/access-windows',
      'POST /payloads/{payloadId}/revocation',
      'POST /payloads/{payloadId}/owner',
      'GET /groups',
      'POST /users',
      'PATCH /users/{userId}',
      'POST /users/{userId}',
      'DELETE /users/{userId}/roles/{role_name}',
    ].map((call) => `${call} success`),
  );
});
