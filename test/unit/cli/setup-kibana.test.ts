/** `waybill setup kibana` against a server that answers as Kibana's import APIs do: what is imported, where, and how refusals are reported. */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { setup } from '../../../src/cli/commands/setup/kibana.ts';
import type { Clock } from '../../../src/model/time.ts';

interface Import {
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly file: string;
  readonly lines: readonly Readonly<Record<string, unknown>>[];
}
type Answer = { readonly status: number; readonly body: unknown };

const directory = mkdtempSync(join(tmpdir(), 'waybill-setup-kibana-'));
afterAll(() => rmSync(directory, { recursive: true }));

let server: Server;
let imports: Import[];
/** Answers of the next requests; without one, every object is imported. */
let answers: Answer[];

beforeEach(async () => {
  [imports, answers] = [[], []];
  server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const type = request.headers['content-type'] ?? '';
      // The form is small, and this parser is not ours.
      // eslint-disable-next-line @typescript-eslint/no-deprecated
      void new Response(Buffer.concat(chunks), { headers: { 'content-type': type } }).formData().then(async (form) => {
        const file = form.get('file') as File;
        const lines = (await file.text()).trimEnd().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>); // prettier-ignore
        imports.push({ url: request.url ?? '', headers: request.headers, file: file.name, lines });
        const count = request.url?.includes('detection_engine') ? { success_count: lines.length, rules_count: lines.length } : { successCount: lines.length }; // prettier-ignore
        const { status, body } = answers.shift() ?? { status: 200, body: { success: true, ...count, errors: [] } };
        response.writeHead(status, { 'content-type': 'application/json' }).end(typeof body === 'string' ? body : JSON.stringify(body));
      });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

const waits: number[] = [];
const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  sleep: async (ms) => void waits.push(ms),
};

interface Wish {
  readonly sink?: string;
  readonly url?: string | undefined;
  readonly space?: string;
  readonly enable?: string;
  readonly threshold?: boolean;
  readonly print?: boolean;
  readonly env?: NodeJS.ProcessEnv;
}

async function run({ sink = 'siem', env = { WAYBILL_SETUP_API_KEY: 'the-key' }, ...wish }: Wish = {}) {
  const config = join(directory, 'waybill.yaml');
  writeFileSync(
    config,
    `sources:
  - id: production
    baseUrl: https://service.example
    start: 2026-01-01T00:00:00Z
    auth: { authUrl: https://login.example, tenantId: t, clientId: c, clientSecret: s, scopeAddress: a }
sinks:
  - { id: siem, type: elasticsearch, nodes: 'https://es.example', apiKey: of-the-sink }
  - { id: other, type: elasticsearch, nodes: 'https://es.example', apiKey: of-the-sink, dataset: files.audit }
  - { id: plain, type: elasticsearch, nodes: 'https://es.example', apiKey: of-the-sink, index: 'audit-{yyyy.MM}' }
`,
  );
  const { port } = server.address() as AddressInfo;
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough(), env, signal: new AbortController().signal };
  const values = {
    config,
    sink,
    url: `http://127.0.0.1:${port}`,
    space: undefined,
    enable: undefined,
    threshold: false,
    print: false,
    yes: true,
    ...wish,
  };
  const code = await setup(values, io, clock);
  return { code, stdout: String(io.stdout.read() ?? ''), stderr: String(io.stderr.read() ?? '') };
}

const shipped = (name: string): readonly unknown[] =>
  readFileSync(new URL(`../../../content/kibana/${name}`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

describe('imports', () => {
  test('objects and rules, with the credentials of the administrator, as files of a form', async () => {
    const { code, stderr } = await run();
    expect(code).toBe(0);
    expect(imports.map(({ url }) => url)).toEqual(['/api/saved_objects/_import?overwrite=true', '/api/detection_engine/rules/_import']);
    for (const { headers } of imports) expect(headers).toMatchObject({ authorization: 'ApiKey the-key', 'kbn-xsrf': 'waybill' });
    expect(imports.map(({ file }) => file)).toEqual(['saved-objects.ndjson', 'detection-rules.ndjson']);
    expect(imports[0]?.lines).toEqual(shipped('saved-objects.ndjson'));
    expect(imports[1]?.lines).toEqual(shipped('detection-rules.ndjson'));
    expect(stderr).toContain('detection-rules.ndjson: 14 imported\n');
    expect(stderr).not.toContain('the-key');
  });

  test('into a space, by user and password', async () => {
    await run({ space: 'soc', env: { WAYBILL_SETUP_USERNAME: 'admin', WAYBILL_SETUP_PASSWORD: 'pass' } });
    expect(imports.map(({ url }) => url.slice(0, 10))).toEqual(['/s/soc/api', '/s/soc/api']);
    expect(imports[0]?.headers['authorization']).toBe(`Basic ${Buffer.from('admin:pass').toString('base64')}`);
  });

  test.each([
    ['other', 'logs-files.audit-*'],
    ['plain', 'audit-*'],
  ])('for the sink "%s" with its pattern %s', async (sink, pattern) => {
    await run({ sink });
    const text = JSON.stringify(imports);
    expect(text).not.toContain('logs-dpas.audit-*');
    expect(imports[0]?.lines[0]).toMatchObject({ type: 'index-pattern', attributes: { title: pattern } });
    expect(imports[1]?.lines.filter((rule) => rule['type'] === 'esql').every((rule) => String(rule['query']).startsWith(`FROM ${pattern}\n`))).toBe(true); // prettier-ignore
  });

  test('enable the named rules only', async () => {
    await run({ enable: 'opened-many, owner-changed' });
    const isEnabled = (rule: Readonly<Record<string, unknown>>): boolean => rule['enabled'] === true;
    expect(imports[1]?.lines.filter(isEnabled).map(({ rule_id }) => rule_id)).toEqual(['dpas-owner-changed', 'dpas-opened-many']);
    await run({ enable: 'all', threshold: true });
    expect(imports[3]?.lines).toHaveLength(shipped('detection-rules-threshold.ndjson').length);
    expect(imports[3]?.lines.every(isEnabled)).toBe(true);
    await expect(run({ enable: 'opened-mani' })).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining('opened-many') as string }); // prettier-ignore
  });

  test('print what they would send, without credentials or a connection', async () => {
    const { code, stdout } = await run({ print: true, env: {}, url: undefined });
    expect([code, imports]).toEqual([0, []]);
    expect(stdout).toMatch(/^POST \/api\/saved_objects\/_import\?overwrite=true\n\{/);
  });
});

describe('answers', () => {
  test('a rule that exists is unchanged; any other refusal is reported, and the command fails', async () => {
    const exists = { rule_id: 'dpas-opened-many', error: { status_code: 409, message: 'rule_id: "dpas-opened-many" already exists' } };
    const invalid = { rule_id: 'dpas-owner-changed', error: { status_code: 400, message: 'bad query' } };
    const imported = { status: 200, body: { success: true, successCount: 8 } };
    answers = [imported, { status: 200, body: { success: false, success_count: 13, errors: [exists] } }];
    expect(await run()).toMatchObject({ code: 0, stderr: expect.stringContaining('13 imported, 1 already exist; unchanged\n') as string });
    answers = [imported, { status: 200, body: { success: false, success_count: 12, errors: [exists, invalid] } }];
    const { code, stderr } = await run();
    expect(code).toBe(1);
    expect(stderr).toContain('12 imported, 1 already exist; unchanged, 1 refused\n  dpas-owner-changed: ');
  });

  test('of a busy Kibana are waited for: four attempts with growing pauses', async () => {
    waits.length = 0;
    answers = [429, 503, 502].map((status) => ({ status, body: 'busy' }));
    expect((await run()).code).toBe(0);
    expect(waits).toEqual([2_000, 4_000, 8_000]);
    answers = [503, 503, 503, 503].map((status) => ({ status, body: 'Kibana server is not ready yet' }));
    await expect(run()).rejects.toMatchObject({ code: 'sink_unavailable', message: expect.stringContaining('not ready yet') as string });
  });

  test.each([
    [401, 'WAYBILL_SETUP_API_KEY'],
    [403, 'Kibana privileges'],
    [404, 'no such space'],
  ])('with status %d end the command with a hint', async (status, hint) => {
    answers = [{ status, body: { statusCode: status, message: 'the words of Kibana' } }];
    const expected = { code: 'sink_blocked', message: expect.stringMatching(new RegExp(`${hint}.*the words of Kibana`)) as string };
    await expect(run()).rejects.toMatchObject(expected);
  });

  test.each(['<html>Log in</html>', '{}', '{"success":true}'])('that do not answer an import are no success: %s', async (body) => {
    answers = [{ status: 200, body }];
    await expect(run()).rejects.toMatchObject({ code: 'sink_blocked', message: expect.stringContaining(body) as string });
  });

  test('that leave objects out fail the command', async () => {
    answers = [{ status: 200, body: { success: true, successCount: 7 } }];
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([1, expect.stringContaining('  Kibana answered for 7 of 8 objects\n')]);
  });
});

describe('wrong use', () => {
  test.each([
    [{ url: undefined }, 'missing --url'],
    [{ url: 'http://kibana.example:5601' }, 'cannot use --url'],
    [{ url: 'https://user:canary@kibana.example' }, 'cannot use --url with credentials in it: set WAYBILL'],
    [{ env: {} }, 'missing credentials of Kibana'],
  ])('%j', async (wish, message) => {
    await expect(run(wish)).rejects.toMatchObject({
      code: 'usage',
      message: expect.stringMatching(new RegExp(`^(?!.*canary).*${message}`)) as string,
    });
    expect(imports).toEqual([]);
  });
});
