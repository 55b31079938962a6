/**
 * `waybill setup kibana` with a model of Kibana's APIs: the imports, their space, the enabled
 * rules, and the report of refusals and invalid responses.
 */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { command } from '../../../src/cli/commands/setup/index.ts';
import { setup } from '../../../src/cli/commands/setup/kibana.ts';
import type { Clock } from '../../../src/model/time.ts';
import { createSelfSigned } from '../../support/certificates.ts';
import { KibanaModel } from '../../support/kibana-model.ts';

const directory = mkdtempSync(join(tmpdir(), 'waybill-setup-kibana-'));
afterAll(() => rmSync(directory, { recursive: true }));

let kibana: KibanaModel;
beforeEach(async () => {
  waits.length = 0;
  waitedMs = 0;
  kibana = await new KibanaModel().listen();
});
afterEach(() => kibana[Symbol.asyncDispose]());

let waitedMs = 0;
const waits: number[] = [];
const clock: Clock = {
  now: () => Date.now(),
  monotonic: () => waitedMs,
  sleep: async (ms) => {
    waits.push(ms);
    waitedMs += ms;
  },
};

interface Wish {
  readonly sink?: string;
  readonly url?: string | undefined;
  readonly space?: string;
  readonly enable?: string;
  readonly threshold?: boolean;
  readonly wait?: number;
  readonly print?: boolean;
  readonly env?: NodeJS.ProcessEnv;
  readonly signal?: AbortSignal;
  readonly clock?: Clock;
}

async function run({
  sink = 'siem',
  env = { WAYBILL_SETUP_API_KEY: 'the-k3y' },
  signal = new AbortController().signal,
  clock: own = clock,
  ...wish
}: Wish = {}) {
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
  - { id: ledger, type: elasticsearch, nodes: 'https://es.example', apiKey: of-the-sink, ledger: true }
  - { id: other-ledger, type: elasticsearch, nodes: 'https://es.example', apiKey: of-the-sink, ledger: true, dataset: files.audit }
  - { id: plain-ledger, type: elasticsearch, nodes: 'https://es.example', apiKey: of-the-sink, ledger: true, index: 'audit-{yyyy.MM}' }
`,
  );
  const io = { stdin: new PassThrough(), stdout: new PassThrough(), stderr: new PassThrough(), env, signal };
  const values = {
    config,
    sink,
    url: `http://127.0.0.1:${kibana.port}`,
    space: undefined,
    enable: undefined,
    threshold: false,
    wait: 300_000,
    print: false,
    yes: true,
    ...wish,
  };
  const result = await setup(values, io, own).then(
    (code) => ({ code, error: undefined }),
    (error: unknown) => ({ code: undefined, error: error as Error & { readonly code: string } }),
  );
  return { ...result, stdout: String(io.stdout.read() ?? ''), stderr: String(io.stderr.read() ?? '') };
}

const shipped = (name: string): readonly unknown[] =>
  readFileSync(new URL(`../../../content/kibana/${name}`, import.meta.url), 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as unknown);

const objectsPath = '/api/saved_objects/_import?overwrite=true';
const listsPath = '/api/exception_lists/_import';
const rulesPath = '/api/detection_engine/rules/_import';
const linesOf = (file: string) => kibana.imports.find((each) => each.file === file)?.lines ?? [];
const enabledIn = (file: string): readonly unknown[] =>
  linesOf(file)
    .filter(({ enabled }) => enabled === true)
    .map(({ rule_id }) => rule_id);

describe('imports', () => {
  test('objects and rules, with the credentials of the administrator, as files of a form', async () => {
    const { code, stderr } = await run();
    expect(code).toBe(0);
    expect(kibana.requests).toEqual([`POST ${objectsPath}`, `POST ${listsPath}`, `POST ${rulesPath}`]);
    // An API key is sent in base64.
    for (const { headers } of kibana.imports) expect(headers).toMatchObject({ authorization: 'ApiKey the-k3y', 'kbn-xsrf': 'waybill' });
    expect(linesOf('saved-objects.ndjson')).toEqual(shipped('saved-objects.ndjson'));
    expect(linesOf('detection-rules.ndjson')).toEqual(shipped('detection-rules.ndjson'));
    expect(stderr).toContain('detection-rules.ndjson: 27 imported\n');
    expect(stderr).toContain('Leaves out the rules and the dashboard on ledger events');
  });

  test('a key as "id:key" is encoded as Elasticsearch expects it', async () => {
    await run({ env: { WAYBILL_SETUP_API_KEY: 'the-id:the-k3y' } });
    expect(kibana.imports[0]?.headers.authorization).toBe(`ApiKey ${Buffer.from('the-id:the-k3y').toString('base64')}`);
  });

  test('into a space, by user and password', async () => {
    kibana.spaces.set('/s/soc', []);
    expect((await run({ space: 'soc', env: { WAYBILL_SETUP_USERNAME: 'admin', WAYBILL_SETUP_PASSWORD: 'p4ss' } })).code).toBe(0);
    expect(kibana.requests).toEqual([`POST /s/soc${objectsPath}`, `POST /s/soc${listsPath}`, `POST /s/soc${rulesPath}`]);
    expect(kibana.imports[0]?.headers.authorization).toBe(`Basic ${Buffer.from('admin:p4ss').toString('base64')}`);
  });

  test('with links of guides under the base path and in the space', async () => {
    const { stdout } = await run({ print: true, url: 'https://kibana.example/base/', space: 'soc' });
    expect(stdout).toContain('(/base/s/soc/app/dashboards#/view/dpas-dashboard-user-or-file)');
    expect(stdout).not.toContain('(/app/');
  });

  test('the ledger rules and their dashboard, for a sink with ledger: true', async () => {
    const { code, stderr } = await run({ sink: 'ledger' });
    expect(code).toBe(0);
    expect(kibana.imports.map(({ file, url }) => [file, url])).toEqual([
      ['saved-objects.ndjson', objectsPath],
      ['saved-objects-ledger.ndjson', objectsPath],
      ['exception-lists.ndjson', listsPath],
      ['detection-rules.ndjson', rulesPath],
      ['detection-rules-ledger.ndjson', rulesPath],
    ]);
    for (const { file, lines } of kibana.imports) expect(lines).toEqual(shipped(file));
    expect(stderr).toContain('saved-objects-ledger.ndjson: 4 imported\n');
    expect(stderr).toContain('detection-rules-ledger.ndjson: 2 imported\n');
    expect(stderr).not.toContain('Leaves out');
  });

  test.each([
    ['other', 'logs-files.audit-*', undefined],
    ['plain', 'audit-*', undefined],
    ['other-ledger', 'logs-files.audit-*', 'logs-files.ledger-*'],
    ['plain-ledger', 'audit-*', 'audit-*'],
  ])('for the sink "%s" with its pattern %s', async (sink, pattern, ledger) => {
    await run({ sink });
    expect(JSON.stringify(kibana.imports)).not.toMatch(/logs-dpas\.(audit|ledger)/);
    expect(linesOf('saved-objects.ndjson')[0]).toMatchObject({ type: 'index-pattern', attributes: { title: pattern } });
    const queries = (file: string): readonly string[] =>
      linesOf(file)
        .filter(({ type }) => type === 'esql')
        .map(({ query }) => String(query));
    expect(queries('detection-rules.ndjson').every((query) => query.startsWith(`FROM ${pattern}`))).toBe(true);
    expect(linesOf('saved-objects-ledger.ndjson')[0]).toEqual(
      ledger === undefined ? undefined : expect.objectContaining({ attributes: expect.objectContaining({ title: ledger }) as object }),
    );
    expect(queries('detection-rules-ledger.ndjson')).toEqual(ledger === undefined ? [] : [expect.stringContaining(`FROM ${ledger}\n| `)]);
  });

  test('the threshold form of burst rules instead of ES|QL rules, which an older stack refuses', async () => {
    await run({ sink: 'ledger', threshold: true });
    const rules = kibana.imports.filter(({ url }) => url === rulesPath).flatMap(({ lines }) => lines);
    const types = Map.groupBy(rules, ({ type }) => type);
    expect([...types].map(([type, { length }]) => [type, length])).toEqual([
      ['query', 8],
      ['eql', 1],
      ['threshold', 12],
    ]);
  });

  test('print what they would send, without credentials or a connection', async () => {
    const { code, stdout } = await run({ sink: 'ledger', print: true, env: {}, url: undefined });
    expect([code, kibana.requests]).toEqual([0, []]);
    const printed = stdout.split('\n').filter((line) => line.startsWith('POST '));
    expect(printed).toEqual([`POST ${objectsPath}`, `POST ${objectsPath}`, `POST ${listsPath}`, `POST ${rulesPath}`, `POST ${rulesPath}`]);
    const sent = stdout.split('\n').filter((line) => line.startsWith('{'));
    expect(sent).toHaveLength(8 + 4 + 4 + 27 + 2);
  });
});

describe('--enable', () => {
  test('enables only the named rules of all files', async () => {
    await run({ sink: 'ledger', enable: 'opened-many, dpas-owner-changed,no-proof' });
    expect(enabledIn('detection-rules.ndjson')).toEqual(['dpas-opened-many', 'dpas-owner-changed']);
    expect(enabledIn('detection-rules-ledger.ndjson')).toEqual(['dpas-no-proof']);
  });

  test('enables rules by their numbers in content/README.md', async () => {
    await run({ sink: 'ledger', enable: '16,19,27' });
    expect(enabledIn('detection-rules.ndjson')).toEqual(['dpas-opened-many', 'dpas-owner-changed']);
    expect(enabledIn('detection-rules-ledger.ndjson')).toEqual(['dpas-no-proof']);
  });

  test('enables the threshold rule in place of an ES|QL rule of the same number', async () => {
    await run({ enable: '16,19', threshold: true });
    expect(enabledIn('detection-rules.ndjson')).toEqual(['dpas-owner-changed']);
    expect(enabledIn('detection-rules-threshold.ndjson')).toEqual(['dpas-opened-many-threshold']);
  });

  test('all enables every rule', async () => {
    await run({ sink: 'ledger', enable: 'all' });
    expect([...enabledIn('detection-rules.ndjson'), ...enabledIn('detection-rules-ledger.ndjson')]).toHaveLength(29);
  });

  test.each([
    ['opened-mani', 'opened-many'],
    ['', 'any-denied'],
    ['opened-many,', 'any-denied'],
    // The sink has no ledger events.
    ['no-proof', 'any-denied'],
    ['27', 'any-denied'],
    ['29', 'any-denied'],
  ])('of the unknown rule "%s" is refused before a request', async (enable, hint) => {
    const { error } = await run({ enable });
    expect(error).toMatchObject({ code: 'usage', message: expect.stringContaining(hint) as string });
    expect(kibana.requests).toEqual([]);
  });

  test('enables a rule that exists, and changes nothing else in it', async () => {
    kibana.spaces.set('/s/soc', []);
    await run({ space: 'soc' });
    kibana.store({ rule_id: 'dpas-opened-many', name: 'Ours', query: 'FROM x', interval: '1m' }, '/s/soc');
    kibana.store({ rule_id: 'dpas-owner-changed', enabled: true }, '/s/soc');
    const before = ['dpas-opened-many', 'dpas-owner-changed', 'dpas-any-denied'].map((id) => kibana.rule(id, '/s/soc'));
    kibana.requests.length = 0;
    const { code, stderr } = await run({ space: 'soc', enable: 'opened-many,owner-changed' });
    expect(code).toBe(0);
    expect(stderr).toContain('detection-rules.ndjson: 0 imported, 27 already exist; unchanged\n');
    expect(stderr).toContain('dpas-opened-many: enabled\ndpas-owner-changed: was enabled already\n');
    const after = ['dpas-opened-many', 'dpas-owner-changed', 'dpas-any-denied'].map((id) => kibana.rule(id, '/s/soc'));
    expect(after).toEqual([{ ...before[0], enabled: true }, before[1], before[2]]);
    expect(kibana.requests.slice(3)).toEqual([
      'GET /s/soc/api/detection_engine/rules?rule_id=dpas-opened-many',
      'POST /s/soc/api/detection_engine/rules/_bulk_action',
      'GET /s/soc/api/detection_engine/rules?rule_id=dpas-owner-changed',
    ]);
  });

  test('reports each rule that Kibana does not enable, and continues with the next', async () => {
    await run();
    const failed = { message: 'Version conflict: changed by another user', status_code: 409, rules: [{ id: 'x' }] };
    const summary = { failed: 1, skipped: 0, succeeded: 0, total: 1 };
    const partial = { message: 'Bulk edit failed', status_code: 500, attributes: { errors: [failed], summary } };
    kibana.fault = (request, response) => {
      if (request.url?.endsWith('_bulk_action') !== true) return false;
      kibana.fault = undefined;
      response.writeHead(500, { 'content-type': 'application/json' }).end(JSON.stringify(partial));
      return true;
    };
    const { code, stderr } = await run({ enable: 'owner-changed,opened-many' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/dpas-owner-changed: not enabled: .*500 Version conflict: changed by another user\ndpas-opened-many: enabled\n/);
    expect(['dpas-owner-changed', 'dpas-opened-many'].map((id) => kibana.rule(id)?.enabled)).toEqual([false, true]);
  });

  test.each([
    ['a bulk action without a summary', { success: true }],
    ['a bulk action that enabled nothing', { success: true, attributes: { summary: { failed: 0, succeeded: 0, skipped: 0, total: 0 } } }],
  ])('does not treat %s as a success', async (_, body) => {
    await run();
    kibana.fault = (request, response) => {
      if (request.url?.endsWith('_bulk_action') !== true) return false;
      response.writeHead(200).end(JSON.stringify(body));
      return true;
    };
    expect(await run({ enable: 'opened-many' })).toMatchObject({ code: 1, stderr: expect.stringContaining('not enabled: ') as string });
  });
});

describe('answers', () => {
  test('an existing rule is unchanged; any other refusal is reported, and the command fails', async () => {
    kibana.store({ rule_id: 'dpas-opened-many', name: 'Ours' });
    expect(await run()).toMatchObject({ code: 0, stderr: expect.stringContaining('26 imported, 1 already exist; unchanged\n') as string });
    expect(kibana.rule('dpas-opened-many')?.['name']).toBe('Ours');
    const exists = { rule_id: 'dpas-opened-many', error: { status_code: 409, message: 'rule_id: "dpas-opened-many" already exists' } };
    const invalid = { rule_id: 'dpas-owner-changed', error: { status_code: 400, message: 'bad query' } };
    const imported = { status: 200, body: { success: true, successCount: 8 } };
    kibana.answers.push(
      imported,
      { status: 200, body: { success: true, success_count: 2 } },
      { status: 200, body: { success: false, success_count: 25, errors: [exists, invalid] } },
    );
    const { code, stderr } = await run();
    expect(code).toBe(1);
    expect(stderr).toContain('25 imported, 1 already exist; unchanged, 1 refused\n  dpas-owner-changed: bad query\n');
  });

  const notReady = { status: 503, body: 'Kibana server is not ready yet' };

  test('of a Kibana that starts are awaited, and each attempt is reported', async () => {
    kibana.answers.push(...Array.from({ length: 6 }, () => notReady), { status: 429, body: 'busy' }, { status: 502, body: 'bad gateway' });
    const { code, stderr } = await run();
    expect(code).toBe(0);
    expect(waits).toEqual([2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000, 15_000]);
    const line = (next: string, left: string): string =>
      `cannot import saved-objects.ndjson into "http://127.0.0.1:${kibana.port}": 503 Kibana server is not ready yet; next attempt in ${next}, for up to ${left} (--wait)\n`;
    expect(stderr).toContain(line('2s', '5m') + line('4s', '4m58s') + line('8s', '4m54s') + line('15s', '4m46s'));
    expect(stderr).toMatch(/429 busy; next attempt in 15s.*\n.*502 bad gateway; next attempt in 15s/);
  });

  test('are awaited no longer than --wait, over all requests', async () => {
    let requests = 0;
    // Only the second request, the objects, is answered.
    kibana.fault = (_, response) => (requests += 1) !== 2 && Boolean(response.writeHead(503).end(notReady.body));
    const { error, stderr } = await run({ wait: 9_500 });
    expect(error).toMatchObject({
      code: 'sink_unavailable',
      message: expect.stringContaining('503 Kibana server is not ready yet') as string,
    });
    expect(waits).toEqual([2_000, 2_000, 4_000, 1_500]);
    expect(stderr).toContain('saved-objects.ndjson: 8 imported\n');
    expect(stderr).toContain('next attempt in 2s, for up to 2s (--wait)\n');
  });

  test('are not awaited with --wait 0s', async () => {
    kibana.answers.push(notReady);
    expect((await run({ wait: 0 })).error).toMatchObject({ code: 'sink_unavailable' });
    expect(kibana.requests).toHaveLength(1);
  });

  test('end when the command is stopped while it waits', async () => {
    kibana.fault = (_, response) => Boolean(response.writeHead(503).end(notReady.body));
    const stop = new AbortController();
    const sleep: Clock['sleep'] = async (_, signal) => {
      stop.abort(new Error('SIGINT'));
      signal.throwIfAborted();
    };
    expect((await run({ signal: stop.signal, clock: { ...clock, sleep } })).error).toMatchObject({ message: 'SIGINT' });
    expect(kibana.requests).toHaveLength(1);
  });

  test('of a server with an untrusted certificate end the command at once', async () => {
    const server = createServer(await createSelfSigned({ name: 'kibana', hosts: ['127.0.0.1'] })).listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { error } = await run({ url: `https://127.0.0.1:${(server.address() as AddressInfo).port}` });
      expect(error).toMatchObject({ code: 'sink_unavailable', message: expect.stringContaining('certificate') as string });
      expect(waits).toEqual([]);
    } finally {
      server.close();
    }
  });

  test.each([
    [401, 'WAYBILL_SETUP_API_KEY'],
    [403, 'Kibana privileges'],
    [404, 'no such space'],
  ])('with status %d end the command with a hint', async (status, hint) => {
    kibana.answers.push({ status, body: { statusCode: status, message: 'the words of Kibana' } });
    const message = expect.stringMatching(new RegExp(`${hint}.*the words of Kibana`)) as string;
    expect((await run()).error).toMatchObject({ code: 'sink_blocked', message });
  });

  test('for a missing space end the command', async () => {
    const { error } = await run({ space: 'nobody' });
    expect(error?.message).toContain('no such space, or no /s/nobody/api/saved_objects/_import: 404 Saved object [space/nobody] not found');
  });

  const counts = ['"8"', '-1', '1.5', '9', '1e999'].map((count) => `{"successCount":${count}}`);
  test.each(['<html>Log in</html>', '{}', '{"success":true}', '[]', 'null', '', ...counts])(
    'that do not match an import are no success: %s',
    async (body) => {
      kibana.answers.push({ status: 200, body });
      const message = expect.stringContaining(`the response is not from Kibana: 200 ${body}`) as string;
      expect((await run()).error).toMatchObject({ code: 'sink_blocked', message });
    },
  );

  test('that leave objects out fail the command', async () => {
    kibana.answers.push({ status: 200, body: { success: true, successCount: 7 } });
    const { code, stderr } = await run();
    expect([code, stderr]).toEqual([1, expect.stringContaining('  Kibana answered for 7 of 8 objects\n')]);
  });

  test('that report a failure without errors fail the command', async () => {
    kibana.answers.push({ status: 200, body: { success: false, successCount: 8 } });
    expect(await run()).toMatchObject({ code: 1, stderr: expect.stringContaining('a failure without a reason\n') as string });
  });

  test.each([
    ['a string', 'broken'],
    ['errors without fields', [null, 1, {}]],
    ['errors of other types', [{ rule_id: 7, error: { message: { a: 1 } } }, { id: [], error: null }, { error: { status_code: 409 } }]],
  ])('with %s as errors are no success', async (_, errors) => {
    kibana.answers.push({ status: 200, body: { success: false, successCount: 5, errors } });
    expect((await run()).code).toBe(1);
  });
});

describe('a hostile server', () => {
  const respond = (work: NonNullable<KibanaModel['fault']>): void => {
    kibana.fault = work;
  };
  const unsaid = ' perhaps imported in part; not imported: exception-lists.ndjson, detection-rules.ndjson. Run the command again.\n';

  const untouched = ' not imported; not imported: exception-lists.ndjson, detection-rules.ndjson. Run the command again.\n';

  test('that repeats the credentials does not bring them into a message', async () => {
    const keys = { WAYBILL_SETUP_API_KEY: 'canary-id:canary-key-of-forty-characters' };
    const users = { WAYBILL_SETUP_USERNAME: 'admin', WAYBILL_SETUP_PASSWORD: 'canary-password' };
    for (const env of [keys, users])
      for (const status of [200, 302, 401, 500]) {
        respond(({ headers }, response) => {
          const shown = headers.authorization ?? '';
          const decoded = Buffer.from(shown.split(' ')[1] ?? '', 'base64').toString();
          const body = JSON.stringify({ message: `no access for ${shown} ${decoded}`, successCount: 1, errors: [{ id: decoded, error: { message: shown } }] }); // prettier-ignore
          response.writeHead(status, status === 302 ? { location: `/login?${decoded}` } : {}).end(body);
          return true;
        });
        const { error, stderr } = await run({ env });
        const text = `${stderr}${error?.message ?? ''}`;
        expect(text).toContain('[secret]');
        for (const secret of ['canary', Buffer.from('canary-').toString('base64').slice(0, 8)]) expect(text).not.toContain(secret);
      }
  });

  test('that redirects is named with the address to which it redirects', async () => {
    respond((_, response) => Boolean(response.writeHead(302, { location: 'https://sso.example/login' }).end()));
    const { error, stderr } = await run();
    expect(error).toMatchObject({
      code: 'sink_blocked',
      message: expect.stringContaining('it redirects to "https://sso.example/login": pass the address of Kibana itself as --url') as string,
    });
    expect(stderr).toContain(untouched);
    expect(kibana.requests).toHaveLength(1);
  });

  test.each([401, 403, 404, 429])('that answers %d imported nothing', async (status) => {
    respond((_, response) => Boolean(response.writeHead(status).end('{}')));
    expect((await run()).stderr).toContain(untouched);
  });

  test('that is not there imported nothing', async () => {
    const { error, stderr } = await run({ url: 'http://127.0.0.1:1' });
    expect(error).toMatchObject({ code: 'sink_unavailable' });
    expect(stderr).toContain(untouched);
  });

  test('that may have acted before it refused is perhaps changed', async () => {
    let requests = 0;
    respond((_, response) => Boolean(response.writeHead((requests += 1) === 1 ? 502 : 401).end('{}')));
    const { error, stderr } = await run();
    expect(error).toMatchObject({ code: 'sink_blocked' });
    expect(stderr).toContain(unsaid);
  });

  test('that ends the connection within a response is retried', async () => {
    let cuts = 0;
    respond((_, response) => {
      if (cuts === 2) return false;
      cuts += 1;
      response.writeHead(200, { 'content-length': '1000' }).write('{"success');
      setImmediate(() => response.destroy());
      return true;
    });
    expect((await run()).code).toBe(0);
    expect(kibana.requests).toHaveLength(5);
  });

  test('that sends more than 8 MiB is cut off', async () => {
    respond((_, response) => {
      response.writeHead(200);
      const more = (): void => {
        while (!response.destroyed && response.write('x'.repeat(1 << 20)));
        if (!response.destroyed) response.once('drain', more);
      };
      more();
      return true;
    });
    const { error } = await run();
    expect(error).toMatchObject({ message: expect.stringContaining('the response is longer than 8 MiB') as string });
  });

  test('that never responds ends the command after the wait, with 60 s for each attempt', async () => {
    vi.spyOn(AbortSignal, 'timeout').mockImplementation((ms) => AbortSignal.abort(new Error(`${ms} ms`)));
    try {
      const { error, stderr } = await run();
      expect(error).toMatchObject({ code: 'sink_unavailable', message: expect.stringContaining('no response within 60 s') as string });
      expect(stderr).toContain(unsaid);
    } finally {
      vi.restoreAllMocks();
    }
  });

  test('that fails after the objects: the message states what is imported and what is not', async () => {
    respond(
      (request, response) => request.url?.includes('detection_engine') === true && Boolean(response.writeHead(500).end('<h1>no</h1>')),
    );
    const { error, stderr } = await run({ sink: 'ledger' });
    expect(stderr).toContain('saved-objects-ledger.ndjson: 4 imported\nexception-lists.ndjson: 4 imported\ndetection-rules.ndjson: perhaps imported in part; not imported: detection-rules-ledger.ndjson. Run the command again.\n'); // prettier-ignore
    expect(error).toMatchObject({ code: 'sink_unavailable', message: expect.stringContaining('500 <h1>no</h1>') as string });
  });

  test('cannot write control characters into the terminal', async () => {
    const errors = [{ id: 'a\u001b[2J', error: { message: 'line\nforged: 8 imported\u001b[31m' } }];
    kibana.answers.push({ status: 200, body: { success: false, successCount: 7, errors } });
    const { stderr } = await run();
    expect(stderr).not.toContain('\u001b');
    expect(stderr).not.toContain('\nforged');
  });
});

describe('invalid use', () => {
  test.each([
    [{ url: undefined }, 'missing --url'],
    [{ url: 'http://kibana.example:5601' }, 'cannot use --url'],
    [{ url: 'https://user:canary@kibana.example' }, 'cannot use --url with credentials in it: set WAYBILL'],
    [{ env: {} }, 'missing credentials of Kibana'],
  ])('%j', async (wish, message) => {
    const { error } = await run(wish);
    expect(error).toMatchObject({ code: 'usage', message: expect.stringMatching(new RegExp(`^(?!.*canary).*${message}`)) as string });
    expect(kibana.requests).toEqual([]);
  });

  test.each(['Soc', 'a/b', '../x', 'a b', '%2e', '', 'ä'])('the space "%s" is refused', async (space) => {
    const io = {
      stdin: new PassThrough(),
      stdout: new PassThrough(),
      stderr: new PassThrough(),
      env: {},
      signal: new AbortController().signal,
    };
    const args = ['kibana', '--sink', 'siem', '--print', '--space', space];
    await expect(command.run(args, io)).rejects.toMatchObject({ code: 'usage', message: expect.stringContaining('--space') as string });
  });
});
