/**
 * `waybill setup elasticsearch` with a model of the server: its requests, their credentials, and
 * the output of --print.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest';
import { command } from '../../../src/cli/commands/setup/index.ts';
import { ModelElasticsearch } from '../../support/model-elasticsearch.ts';

const directory = mkdtempSync(join(tmpdir(), 'waybill-setup-'));
afterAll(() => rmSync(directory, { recursive: true }));

let model: ModelElasticsearch;
beforeEach(async () => {
  model = await new ModelElasticsearch().listen();
});
afterEach(() => model[Symbol.asyncDispose]());

async function setup(args: readonly string[], env: NodeJS.ProcessEnv = {}) {
  const file = join(directory, 'waybill.yaml');
  writeFileSync(
    file,
    `sources:
  - id: production
    baseUrl: https://service.example
    start: 2026-01-01T00:00:00Z
    auth: { authUrl: https://login.example, tenantId: t, clientId: c, clientSecret: s, scopeAddress: a }
sinks:
  - { id: siem, type: elasticsearch, nodes: 'http://127.0.0.1:${model.port}', apiKey: of-the-sink }
  - { id: other, type: stdout }
`,
  );
  const [stdin, stdout, stderr] = [new PassThrough(), new PassThrough(), new PassThrough()];
  const io = { stdin, stdout, stderr, env, signal: new AbortController().signal };
  const code = await command.run(['elasticsearch', '--config', file, ...args], io);
  return { code, stdout: String(stdout.read() ?? ''), stderr: String(stderr.read() ?? '') };
}

const paths = [
  '/_ingest/pipeline/logs-dpas.audit@ingested',
  '/_component_template/logs-dpas.audit@mappings',
  '/_index_template/logs-dpas.audit',
];

test("installs pipeline, mapping and template, with the administrator's credentials", async () => {
  model.authorization = `Basic ${Buffer.from('admin:p4ss').toString('base64')}`;
  const env = { WAYBILL_SETUP_USERNAME: 'admin', WAYBILL_SETUP_PASSWORD: 'p4ss' };
  const { code, stderr } = await setup(['--sink', 'siem', '--yes'], env);
  expect(code).toBe(0);
  expect([...model.put.keys()]).toEqual(paths);
  for (const path of paths) expect(stderr).toContain(`put ${path}\n`);
  await expect(setup(['--sink', 'siem', '--yes'])).rejects.toMatchObject({ code: 'sink_blocked' });
});

test('creates a key with the privileges of the sink and no more', async () => {
  model.fault = (_method, path) => (path === '/_security/api_key' ? { status: 200, body: { encoded: 'bmV3' } } : undefined);
  expect((await setup(['--sink', 'siem', '--key', '--yes'])).stdout).toBe('bmV3\n');
  model.fault = (_method, path) =>
    path === '/_security/api_key' ? { status: 403, body: { error: { type: 'security_exception', reason: 'not for keys' } } } : undefined;
  await expect(setup(['--sink', 'siem', '--key', '--yes'])).rejects.toMatchObject({
    message: expect.stringContaining('not for keys') as string,
  });
});

test('--print sends no request', async () => {
  await model[Symbol.asyncDispose]();
  const { stdout } = await setup(['--sink', 'siem', '--print', '--retention', '365d']);
  expect(stdout.match(/^PUT .*$/gm)).toEqual(paths.map((path) => `PUT ${path}`));
  expect(stdout).toContain('"data_retention": "365d"');
});

test('an error for a template that the server rejects quotes the reason', async () => {
  model.fault = (method) =>
    method === 'PUT' ? { status: 400, body: { error: { type: 'illegal_argument_exception', reason: 'no such type' } } } : undefined;
  await expect(setup(['--sink', 'siem', '--yes'])).rejects.toMatchObject({
    message: expect.stringMatching(
      /cannot install "\/_ingest\/.*" for sink "siem": 400 illegal_argument_exception: no such type/,
    ) as string,
  });
});

test('an unknown argument is refused', async () => {
  await expect(setup(['kafka'])).rejects.toThrow(/unexpected argument "kafka"/);
});

test.each([
  [['--sink', 'siem'], /--yes/],
  [['--sink', 'other'], /this command needs a sink of type elasticsearch/],
  [['--sink', 'siem', '--ilm'], /--retention/],
  [['--sink', 'siem', '--retention', 'soon'], /365d/],
])('%j is rejected', async (args, message) => {
  await expect(setup(args)).rejects.toMatchObject({ code: 'usage', message: expect.stringMatching(message) as string });
  expect(model.put.size).toBe(0);
});
