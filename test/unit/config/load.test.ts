import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import { outcomeCodes } from '../../../src/normalize/outcomes.ts';
import { sinks } from '../../../src/sink/index.ts';
import { load, problemsOf, temporaryDirectory, valid } from '../../support/config/loading.ts';
import { sized } from '../../support/long-run.ts';

const at = 'sources.production';

const topSettings =
  'expected one of dataDir, journal, fleet, tls, proxy, sources, privacy, mapping, sinks, shutdownTimeout, admin, log, include, telemetry';

/**
 * A configuration and all its errors. Lines: `top` is on 1 and moves the rest; `auth` on 10;
 * `source` on 11.
 */
const wrong: readonly (readonly [string, Parameters<typeof valid>[0], readonly string[]])[] = [
  [
    'a duration',
    { source: 'pollInterval: 15 minuts' },
    [`${at}.pollInterval (line 11): "15 minuts" is not a duration such as 10s, 5m, 2h`],
  ],
  [
    'a field of events in a filter',
    { sink: 'filter: { event.outcome: [failure] }' },
    [
      'sinks.out.filter."event.outcome" (line 15): is a field of events; use result, the field of records',
      'sinks.out.filter (line 15): a group of settings names no field',
    ],
  ],
  [
    'a key of auth',
    { auth: 'clientSecret: x\nclientsecret: y' },
    [`${at}.auth.clientsecret (line 11): is not a setting; the nearest is "clientSecret"`],
  ],
  [
    'a key of a sink',
    { sink: 'pathh: x' },
    [
      'sinks.out.pathh (line 15): is not a setting; expected one of id, sources, format, ledger, start, batch, failReadinessAfter, type, includeOriginal, filter, cef, privacy',
    ],
  ],
  ['a key with odd characters', { top: '"a b\\n": 1' }, [`"a b\\n" (line 1): is not a setting; ${topSettings}`]],
  ['a key that is not a text', { top: '? [a]\n: 1' }, ['the configuration: has a key that is not a setting name']],
  ['a prototype', { top: '__proto__: { dataDir: x }' }, ['the configuration: has a key that is not a setting name']],
  ['a choice', { source: 'endpoint: full' }, [`${at}.endpoint (line 11): "full" is not one of full-payload, payload`]],
  ['a page size', { source: 'pageSize: 0' }, [`${at}.pageSize (line 11): 0 is not "auto" or a whole number from 1 to 10000`]],
  ['a recount', { source: 'recountAfter: [1h, soon]' }, [`${at}.recountAfter[1] (line 11): "soon" is not a duration such as 10s, 5m, 2h`]],
  [
    'listen',
    { top: 'admin: { listen: [9464] }' },
    ['admin.listen[0] (line 1): 9464 is not an address to listen on such as 127.0.0.1:9464, [::]:9464'],
  ],
  [
    'an address twice',
    { top: 'admin: { listen: ["127.0.0.1:9464", "[::1]:0", "[::1]:0", "127.0.0.1:9464"] }' },
    ['admin.listen[3] (line 1): is also admin.listen[0]'],
  ],
  ['no listen', { top: 'admin: { listen: [] }' }, ['admin.listen (line 1): an empty list names nothing']],
  [
    'unready',
    { sink: 'failReadinessAfter: sometimes' },
    ['sinks.out.failReadinessAfter (line 15): "sometimes" is not a duration such as 15m, or never'],
  ],
  [
    'a key of a proxy',
    { top: 'proxy: { url: "http://p:1", noproxy: [] }' },
    ['proxy.noproxy (line 1): is not a setting; the nearest is "noProxy"'],
  ],
  [
    'a field',
    { top: 'privacy: { rules: [{ fields: [userEmailAdress], action: drop }] }' },
    ['privacy.rules[0].fields[0] (line 1): "userEmailAdress" is not known; the nearest is "userEmailAddress"'],
  ],
  [
    'a field of a filter',
    { sink: 'filter: { reslt: [AccessDenied] }' },
    [
      'sinks.out.filter.reslt (line 15): is not a setting; the nearest is "result"',
      'sinks.out.filter (line 15): a group of settings names no field',
    ],
  ],
  [
    'a severity',
    { top: 'mapping: { severity: { "Decrypt:AccessDenied:TimeEmbargoFailed": 11 } }' },
    ['mapping.severity.Decrypt:AccessDenied:TimeEmbargoFailed (line 1): 11 is not a whole number from 0 to 10'],
  ],
  [
    'a severity of an unknown outcome',
    { top: 'mapping: { severity: { "Decrypt:Denied": 3 } }' },
    [`mapping.severity.Decrypt:Denied (line 1): is not a setting; expected one of ${outcomeCodes.join(', ')}`],
  ],
  [
    'a name of an unknown outcome',
    { top: 'mapping: { names: { "Decrypt:AccessDenied:TimeEmbargoFail": Too early } }' },
    [
      'mapping.names.Decrypt:AccessDenied:TimeEmbargoFail (line 1): is not a setting; the nearest is "Decrypt:AccessDenied:TimeEmbargoFailed"',
    ],
  ],
  [
    'a name that is empty',
    { top: 'mapping: { names: { "Decrypt:AccessDenied:TimeEmbargoFailed": "" } }' },
    ['mapping.names.Decrypt:AccessDenied:TimeEmbargoFailed (line 1): "" is too short'],
  ],
  [
    'a name that is too long',
    { top: `mapping: { names: { "Decrypt:AccessDenied:TimeEmbargoFailed": ${'n'.repeat(513)} } }` },
    [`mapping.names.Decrypt:AccessDenied:TimeEmbargoFailed (line 1): "${'n'.repeat(80)}…" is too long: at most 512 characters`],
  ],
  [
    'a name with a control character',
    { top: String.raw`mapping: { names: { "Decrypt:AccessDenied:TimeEmbargoFailed": "Too\tearly" } }` },
    [
      String.raw`mapping.names.Decrypt:AccessDenied:TimeEmbargoFailed (line 1): "Too\tearly" must not contain line breaks or other control characters`,
    ],
  ],
  [
    'telemetry with credentials in the address',
    { top: 'telemetry: { otlp: { endpoint: "http://user:pw@otel:4318" } }' },
    ['telemetry.otlp.endpoint (line 1): "http://…@otel:4318" must not contain a user or password: set OTEL_EXPORTER_OTLP_HEADERS'],
  ],
  [
    'ledger',
    { sink: 'ledger: true\nformat: cef' },
    [
      'sinks.out.ledger (line 15): true is not possible with the format cef, which holds records only: set "format" to one of ecs, ocsf, raw',
    ],
  ],
  [
    'start of a sink',
    { sink: 'start: archive' },
    ['sinks.out.start (line 15): "archive" is not journal, now, archive:ID, or a time such as 2026-11-21T00:00:00Z'],
  ],
  [
    'start from no archive',
    { sink: 'start: archive:out' },
    ['sinks.out.start (line 15): names "out", which is not a sink of type archive'],
  ],
  [
    'a reference',
    { source: 'pollInterval: "${POLL}"' },
    [
      `${at}.pollInterval (line 11): "\${POLL}" is not a reference such as \${env:NAME}, \${env:NAME:-default} or \${file:/path}; a literal "\${" is written "$\${"`,
    ],
  ],
  ['a variable', { source: 'pollInterval: ${env:POLL}' }, [`${at}.pollInterval (line 11): environment variable "POLL" is not set`]],
  [
    'a value by reference',
    { source: 'pollInterval: ${env:LONG}' },
    [`${at}.pollInterval (line 11): the value of environment variable LONG is not a duration such as 10s, 5m, 2h`],
  ],
  [
    'no client secret',
    { auth: 'grantType: client_credentials' },
    [`${at}.auth.clientSecret (line 5): is missing: grantType client_credentials needs it`],
  ],
  [
    'no user',
    { auth: 'grantType: password' },
    [
      `${at}.auth.username (line 5): is missing: grantType password needs it`,
      `${at}.auth.password (line 5): is missing: grantType password needs it`,
    ],
  ],
  [
    'a user for nothing',
    { auth: 'clientSecret: x\nusername: u' },
    [`${at}.auth.username (line 11): is not used: it belongs to grantType password`],
  ],
  ['half a pair', { source: 'tls: { key: a.pem }' }, [`${at}.tls.cert (line 11): is missing: "key" is set and requires it`]],
  [
    'a PEM text',
    { source: 'tls: { ca: [5, "-----BEGIN CERTIFICATE-----\\0"] }' },
    [
      `${at}.tls.ca[0] (line 11): 5 is not the path of a file or directory`,
      `${at}.tls.ca[1] (line 11): PEM text is not the path of a file or directory`,
    ],
  ],
];

test.each(wrong)('%s: the error names the place', async (_name, parts, problems) => {
  expect(await problemsOf(valid(parts), { EMPTY: '', LONG: 'canary' })).toEqual(problems);
});

test('an archive receives the ledger and whole windows, in a separate directory', async () => {
  const archiveAt = (more: string) => `directory: ./archive\nsigningKey: hush\n${more}`;
  const problems = (sink: string) => problemsOf(valid({ sink }).replace('type: stdout', 'type: archive'));
  expect(await problems(archiveAt('start: now\nledger: true'))).toEqual([]);
  expect(await problems(archiveAt('start: 2026-11-21T00:00:00Z\nledger: false'))).toEqual([
    'sinks.out.start (line 17): must be journal or now: an archive contains only whole windows',
    'sinks.out.ledger (line 18): must be true: an archive contains the ledger',
  ]);
  expect(await problems(archiveAt('').replace('./archive', './state'))).toEqual([
    'sinks.out.directory (line 15): is the state directory or a file in it',
  ]);
});

test('a fleet refuses sinks that belong to one process, with what to use', async () => {
  const fleet = 'fleet: { database: postgres://waybill@db.example/audit }';
  const problems = (sink: string, type: string) => problemsOf(valid({ top: fleet, sink }).replace('type: stdout', `type: ${type}`));
  const use = 'use kafka, elasticsearch, splunk-hec';
  expect(await problems('path: ./audit.ndjson', 'file')).toEqual([
    `sinks.out.type (line 15): file is not possible with "fleet": another process would continue in a file that it does not have; ${use}, syslog, or an archive in S3`,
  ]);
  expect(await problems('', 'stdout')).toEqual([
    `sinks.out.type (line 15): stdout is not possible with "fleet": each process has its own, and no reader gets all of them in order; ${use} or syslog`,
  ]);
  expect(await problems('directory: ./archive\nsigningKey: hush', 'archive')).toEqual([
    'sinks.out.type (line 15): archive in a directory is not possible with "fleet": another process would not have the directory; use "s3"',
  ]);
  expect(await problems('s3: { bucket: audit, region: eu-central-1, objectLock: 365d }\nsigningKey: hush', 'archive')).toEqual([]);
});

test('an authUrl with the path of the token endpoint is refused, and the message names what to remove', async () => {
  const at = (authUrl: string): Promise<readonly string[]> =>
    problemsOf(`sources:
  - id: production
    baseUrl: https://service.example/v2/api
    auth: { authUrl: '${authUrl}', tenantId: t, clientId: c, clientSecret: s-1-not-much, scopeAddress: x }
sinks: [{ id: out, type: stdout }]
`);
  const whole = 'https://login.example/t/oauth2/v2.0/token';
  expect(await at(whole)).toEqual([
    `sources.production.auth.authUrl (line 4): "${whole}" must end before "/{tenantId}/oauth2/v2.0/token": Waybill adds this path`,
  ]);
  expect(await at('https://login.example')).toEqual([]);
  expect(await at('https://login.example/oauth2')).toEqual([]);
});

test('every error is reported at once, in the order of lines', async () => {
  const text = `shutdownTimeout: long
sources:
  - id: Production
    baseUrl: http://service.example
    auth: { authUrl: login, tenantId: a/b, scopeAddress: /x }
  - id: twice
  - id: twice
    requests: { group: shared, perSecond: 5 }
  - requests: { group: shared }
sinks:
  - { id: a, type: file, path: same }
  - { id: b, type: file, path: ./x/../same }
  - { id: c, type: archive }
  - { id: d, type: fle }
  - { id: e }
  - { id: f, type: elasticsearch, username: u }
  - { id: g, type: elasticsearch, nodes: ['http://es.example:9200'], username: u, password: p, apiKey: k, cloudId: 'a:b', namespace: n, index: '{yyyy}' }
`;
  const types = sinks.map(({ type }) => type).join(', ');
  expect(await problemsOf(text)).toEqual([
    'shutdownTimeout (line 1): "long" is not a duration such as 10s, 5m, 2h',
    'sources[0].id (line 3): "Production" is not a short name: 1 to 32 of a-z, 0-9 and hyphen, no hyphen first',
    'sources[0].baseUrl (line 4): "http://service.example" must start with https: (http: only for 127.0.0.0/8, ::1 and localhost)',
    'sources[0].auth.authUrl (line 5): "lo…" (5 characters) is not an address such as https://service.example/v2/api',
    'sources[0].auth.tenantId (line 5): "a/b" is not a tenant id: letters, digits, dot, hyphen and underscore',
    'sources[0].auth.clientId (line 5): is missing: expected text in one line',
    'sources[0].auth.scopeAddress (line 5): "/x" is not the address of a scope, without a leading api:// and without spaces',
    'sources[0].auth.clientSecret (line 5): is missing: grantType client_credentials needs it',
    'sources[1].baseUrl (line 6): is missing: expected an address such as https://service.example/v2/api',
    'sources[1].auth (line 6): is missing: expected a group of settings',
    'sources[2].baseUrl (line 7): is missing: expected an address such as https://service.example/v2/api',
    'sources[2].auth (line 7): is missing: expected a group of settings',
    'sources[2].id (line 7): is also the id of another source, sources[1]',
    'sources[3].id (line 9): is missing: expected a short name: 1 to 32 of a-z, 0-9 and hyphen, no hyphen first',
    'sources[3].baseUrl (line 9): is missing: expected an address such as https://service.example/v2/api',
    'sources[3].auth (line 9): is missing: expected a group of settings',
    'sources[3].requests.perSecond (line 9): 10 differs from 5 in sources[2] of the same group "shared"',
    'sinks.b.path (line 12): is also the path of another sink, sinks[0]',
    'sinks.c.signingKey (line 13): is missing: expected text',
    'sinks.c.directory (line 13): is missing: expected a directory, or "s3"',
    `sinks.d.type (line 14): "fle" is not one of ${types}`,
    `sinks.e.type (line 15): is missing: expected one of ${types}`,
    'sinks.f.nodes (line 16): is missing: expected the addresses of the cluster, or "cloudId"',
    'sinks.f.password (line 16): is missing: "username" needs it',
    'sinks.g.nodes[0] (line 17): "http://es.example:9200" must start with https: (http: only for 127.0.0.0/8, ::1 and localhost)',
    'sinks.g.index (line 17): "{yyyy}" is not the name of an index such as dpas-audit-{yyyy.MM}',
    'sinks.g.cloudId (line 17): is not used: "nodes" has the addresses',
    'sinks.g.username (line 17): is not used: "apiKey" authenticates the client',
    'sinks.g.namespace (line 17): has no effect: "index" is set',
  ]);
});

test.each([
  ['', ['sources: is missing: expected a list']],
  ['# only a comment\n', ['sources: is missing: expected a list']],
  ['[]', ['the configuration: an empty list is not a group of settings']],
  ['text', ['the configuration: "text" is not a group of settings; indent its settings below it']],
  ['sources: []', ['sources (line 1): an empty list names no source: at least one is required']],
  ['a: 1\na: 2\n', ['line 2, column 1: a occurs twice in its group; remove one']],
  ['a: 1\n b: 2\n', ['line 1, column 4: the next line is indented further than this one permits, or a colon is missing here']],
  ['dataDir: x\n---\ndataDir: y\n', ['line 2, column 1: a second document starts; the configuration must be one document']],
  ['dataDir: *canary', ['dataDir (line 1): refers to an unknown anchor; quote text that starts with *']],
  ['dataDir: !canary x', ['line 1, column 10: unknown tag (known: !env and !file); quote text that starts with !']],
  ['dataDir: "x" canary', ['line 1, column 14: this text does not belong here: a quote, comma or bracket is missing or too many']],
  ['dataDir: &a [*a]\nsources: *a', ['dataDir[0] (line 1): contains itself through an alias']],
] as const)('%j is not a configuration', async (text, problems) => {
  const found = await problemsOf(text);
  expect(found).toEqual(expect.arrayContaining([...problems]));
  expect(found.join()).not.toContain('canary');
});

test('merges, deep nesting and large aliases are refused', async () => {
  expect(await problemsOf(`x: &x { dataDir: y }\n<<: *x\n${valid()}`)).toEqual([
    `x (line 1): is not a setting; ${topSettings}`,
    `"<<" (line 2): is not a setting; ${topSettings}`,
  ]);
  expect(await problemsOf(`dataDir: ${'['.repeat(sized(10_000, 100_000))}`)).toEqual([
    'the file is nested too deeply to be a configuration',
  ]);
  const laughs = Array.from({ length: 9 }, (_, level) => `a${level + 1}: &a${level + 1} [${Array(10).fill(`*a${level}`).join()}]`);
  expect((await problemsOf(`a0: &a0 x\n${laughs.join('\n')}`)).join('\n')).toContain(
    'exceeds the maximum of 50000 settings, through aliases',
  );
});

test('the secret in a variable or at a wrong place is not repeated', async () => {
  const text = valid({
    top: 'proxy: { url: "ftp://user:canary1@proxy.example" }\nprivacy: { key: canary2 }',
    auth: 'clientSecret: { value: canary3 }\npassword: 5',
    source: 'subscriptionKey: [canary4]\npollInterval: ${env:SECRET}\ncanary: canary5',
  }).replace('https://service.example', 'https://user:canary6@service.example');
  const problems = await problemsOf(text, { SECRET: 'canary7' });
  expect(problems).toEqual([
    'proxy.url (line 1): its value (not shown) is not the address of a proxy such as http://proxy.example:3128',
    'privacy.key (line 2): its value (not shown) must be at least 16 characters long, better 32 random ones',
    `${at}.baseUrl (line 5): "https://…@service.example/v2/api" must not contain a user or password`,
    `${at}.auth.clientSecret (line 12): its value (not shown) is not text`,
    `${at}.auth.password (line 13): its value (not shown) is not text; write it in quotes`,
    `${at}.auth.password (line 13): is not used: it belongs to grantType password`,
    `${at}.subscriptionKey (line 14): its value (not shown) is not text`,
    `${at}.pollInterval (line 15): the value of environment variable SECRET is not a duration such as 10s, 5m, 2h`,
    `${at}.canary (line 16): is not a setting; expected one of id, baseUrl, endpoint, auth, subscriptionKey, tls, proxy, start, pollInterval, closeDelay, recountAfter, pageSize, requests, privacy, observer`,
  ]);
  expect(problems.join('\n')).not.toMatch(/canary\d/);
});

test('a secret in the URL of a source, a token endpoint or a sink is not shown, except its start and its length', async () => {
  const token = 'B5A79AAD-D822-46CC-80D1-819F80D7BFB0';
  const problems = await problemsOf(
    valid({})
      .replace('https://service.example', token)
      .replace('https://login.example', token)
      .replace(
        /^sinks:[^]*/m,
        `sinks: [{ id: hec, type: splunk-hec, url: ${token}, token: x }, { id: relp, type: syslog, address: ${token} }]`,
      ),
  );
  expect(problems.filter((line) => /"B5A7…" \(\d+ characters\) is not an address/.test(line))).toHaveLength(4);
  expect(problems.join('\n')).not.toContain(token.slice(0, 5));
  const query = await problemsOf(valid({}).replace('https://service.example', `https://service.example/?key=${token}`));
  expect(query.join('\n')).toContain('must not contain a query or fragment');
  expect(query.join('\n')).not.toContain('B5A7');
});

test('offline, a missing secret is a warning, any other unresolved reference an error', async () => {
  const text = valid({ auth: 'clientSecret: ${file:/nowhere/secret}', source: 'subscriptionKey: ${env:KEY}' });
  const { warnings, config } = await load(text, {}, { requireSecrets: false });
  expect(warnings).toEqual([
    `${at}.auth.clientSecret (line 10): file "/nowhere/secret" cannot be read: ENOENT: no such file or directory, stat '/nowhere/secret'`,
    `${at}.subscriptionKey (line 11): environment variable "KEY" is not set`,
  ]);
  expect(() => config.sources[0]?.subscriptionKey?.read()).toThrow(
    `cannot read "${at}.subscriptionKey": environment variable "KEY" is not set`,
  );
  expect(await problemsOf(text)).toEqual(warnings);
  expect(await problemsOf(valid({ source: 'pollInterval: ${env:POLL}' }), {}, { requireSecrets: false })).toEqual([
    `${at}.pollInterval (line 11): environment variable "POLL" is not set`,
  ]);
});

test('a start is a time, now, earliest, or a duration before now', async () => {
  const startOf = (start: string) => valid().replace('2026-11-21T00:00:00Z', start);
  expect((await load(startOf('earliest'))).config.sources[0]?.start).toEqual({ kind: 'earliest' });
  expect((await load(startOf('earliest'))).warnings).toContain(
    `${at}.start (line 4): after a lost state the ledger would start at the first record that the service still has; use a time such as 2026-11-21T00:00:00Z to start there again`,
  );
  expect(await problemsOf(startOf('yesterday'))).toEqual([
    `${at}.start (line 4): "yesterday" is not a time such as 2026-11-21T00:00:00Z, now, earliest, or a duration before now such as 24h`,
  ]);
  expect((await load(startOf('1d12h'))).config.sources[0]?.start).toEqual({ kind: 'ago', ms: 129_600_000 });
});

test('a warning for a value of a filter that the specification does not have', async () => {
  const warnings = async (filter: string): Promise<readonly string[]> => (await load(valid({ sink: `filter: ${filter}` }))).warnings;
  const at = 'sinks.out.filter';
  const words = 'is not a value that the specification has, so no record may match; case counts';
  expect(await warnings('{ result: [accessdenied] }')).toEqual([
    `${at}.result (line 15): "accessdenied" ${words}; the nearest is "AccessDenied"`,
  ]);
  const nested =
    '{ userId: [x], not: { actionAttempted: [decrypt] }, any: [{ resultReason: [Success] }, { resultReason: [TimeEmbargoFaild] }] }';
  expect(await warnings(nested)).toEqual([
    `${at}.not.actionAttempted (line 15): "decrypt" ${words}; the nearest is "Decrypt"`,
    `${at}.any[1].resultReason (line 15): "TimeEmbargoFaild" ${words}; the nearest is "TimeEmbargoFailed"`,
  ]);
  expect(await warnings('{ actionAttempted: [Audit, Decrypt], result: [AccessDenied, AuthorChanged] }')).toEqual([]);
});

test('a warning for a sink that writes into the state directory', async () => {
  const at = async (path: string): Promise<readonly string[]> =>
    (await load(valid({ top: 'dataDir: /var/lib/state' }).replace('type: stdout', `type: file\n    path: ${path}`))).warnings;
  expect(await at('/var/lib/state/logs/out.ndjson')).toEqual([
    'sinks.out.path (line 16): is in the state directory, which a restore or a new dataDir replaces: choose a place outside of it',
  ]);
  expect(await at('/var/lib/state-2/out.ndjson')).toEqual([]);
});

test('a shutdown has at least a second', async () => {
  expect(await problemsOf(valid({ top: 'shutdownTimeout: 0s' }))).toEqual(['shutdownTimeout (line 1): "0s" is less than the minimum 1s']);
});

test('a warning for an admin server that others reach without token or TLS', async () => {
  const listens = async (admin: string) => {
    const { warnings } = await load(valid({ top: `admin: ${admin}` }));
    return warnings.filter((line) => line.startsWith('admin.listen'));
  };
  const unguarded = 'without admin.token or admin.readToken, anyone on the network can read the metrics, but not status and ledger';
  const plain = 'without admin.tls, tokens and responses can be read on the network';
  const tls = 'tls: { cert: cert.pem, key: key.pem }';
  const begin = 'admin.listen (line 1): 0.0.0.0:9464 is not a loopback address';
  expect(await listens('{ listen: "0.0.0.0:9464" }')).toEqual([`${begin}: ${unguarded}`, `${begin}: ${plain}`]);
  expect(await listens(`{ listen: ["127.0.0.1:1", "[::]:9464", "host.example:1"], ${tls} }`)).toEqual([
    `admin.listen (line 1): [::]:9464, host.example:1 is not a loopback address: ${unguarded}`,
  ]);
  expect(await listens(`{ listen: "0.0.0.0:9464", readToken: "x" }`)).toEqual([`${begin}: ${plain}`]);
  expect(await listens(`{ listen: "0.0.0.0:9464", token: "x", ${tls} }`)).toEqual([]);
  for (const loopback of ['127.0.0.1:9464', '[::1]:9464', 'localhost:0']) expect(await listens(`{ listen: "${loopback}" }`)).toEqual([]);
});

test('a warning for a literal secret and for a start that is not a time', async () => {
  const text = valid({
    top: 'proxy: { url: "http://proxy.example" }',
    auth: 'clientSecret: "$${x"',
    source: 'proxy: { url: "http://u:p@proxy.example" }',
  });
  const literal = (secrets: string) => `${secrets} in the configuration file; use \${file:/path} or \${env:NAME}`;
  const lost = (where: string) =>
    `after a lost state the ledger would start ${where}; use a time such as 2026-11-21T00:00:00Z to start there again`;
  expect((await load(text)).warnings).toEqual([`${at}.auth.clientSecret (line 11): ${literal('this secret and 1 more are')}`]);
  expect((await load(valid({ auth: 'clientSecret: x' }))).warnings).toEqual([
    `${at}.auth.clientSecret (line 10): ${literal('the secret is')}`,
  ]);
  for (const [start, where] of [
    ['now', 'at the time of the restart'],
    ['24h', 'that duration before the restart'],
  ] as const) {
    expect((await load(valid().replace('2026-11-21T00:00:00Z', start))).warnings).toEqual([`${at}.start (line 4): ${lost(where)}`]);
  }
  expect((await load(valid().replace(/ {4}start.*\n/, ''))).warnings).toEqual([
    `${at}.start (line 2): ${lost('at the time of the restart')}`,
  ]);
  expect((await load(valid().replace(/sinks:[^]*/, ''))).warnings).toEqual([
    'sinks: none is configured; collected records stay in the journal',
  ]);
});

test('rotate and compression of a file have bounds', async () => {
  const of = (sink: string) => problemsOf(valid({ sink: `path: x\n${sink}` }).replace('type: stdout', 'type: file'));
  expect(await of('rotate: { size: 1GiB, interval: 1d }\ncompression: gzip')).toEqual([]);
  expect(await of('rotate: { size: 1KiB, interval: 1s }\ncompression: often')).toEqual([
    'sinks.out.rotate.size (line 16): "1KiB" is less than the minimum 4KiB',
    'sinks.out.rotate.interval (line 16): "1s" is less than the minimum 1m',
    'sinks.out.compression (line 17): "often" is not one of none, gzip',
  ]);
});

test('a warning for a start in the future, and for recounts that never happen', async () => {
  const startsAt = async (start: string) => (await load(valid().replace('2026-11-21T00:00:00Z', start))).warnings;
  expect(await startsAt('2062-11-21T00:00:00Z')).toEqual([`${at}.start (line 4): is in the future: nothing is collected before that time`]);
  expect(await startsAt('2026-11-21T14:00:00Z')).toHaveLength(1);
  expect(await startsAt('2026-11-21T12:30:00Z')).toEqual([]);
  const recounts = async (source: string) => (await load(valid({ source }))).warnings;
  const words = 'so these recounts are skipped: a window is not proven yet at that age';
  expect(await recounts('closeDelay: 2h\nrecountAfter: [1h, 2h, 121m]')).toEqual([
    `${at}.recountAfter (line 12): 1h, 2h: not more than closeDelay (2h), ${words}`,
  ]);
  // The warning also appears if the default ages are too early.
  expect(await recounts('closeDelay: 7h')).toEqual([`${at}.recountAfter (line 2): 1h, 6h: not more than closeDelay (7h), ${words}`]);
  expect(await recounts('closeDelay: 59m')).toEqual([]);
});

test('an endpoint of OpenTelemetry that is no address is refused: an exporter would send to localhost, with the headers', async () => {
  const message = 'is not an address such as http://otel-collector:4318';
  for (const endpoint of ['otel-collector', 'otel-collector:4318', 'grpc://otel:4317', 'http://', 'http://[']) {
    expect(await problemsOf(valid(), { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint })).toEqual([`OTEL_EXPORTER_OTLP_ENDPOINT: ${message}`]);
  }
  expect(await problemsOf(valid(), { OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: 'u:canary@h' })).toEqual([
    `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: ${message}`,
  ]);
  await load(valid(), { OTEL_EXPORTER_OTLP_ENDPOINT: ' http://otel-collector:4318/otlp ', OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: '' });
  await load(valid(), { OTEL_EXPORTER_OTLP_ENDPOINT: 'otel-collector', OTEL_SDK_DISABLED: 'true' });
});

test('a sink of unknown type also reports the settings that are wrong for every type', async () => {
  const sink = 'start: yesterday\nformt: ecs\npath: 5\nbatch: { maxWait: 1 minuts }';
  const problems = await problemsOf(valid({ sink }).replace('type: stdout', 'type: fle'));
  expect(problems).toEqual([
    expect.stringMatching(/^sinks\.out\.type \(line 14\): "fle" is not /),
    'sinks.out.start (line 15): "yesterday" is not journal, now, archive:ID, or a time such as 2026-11-21T00:00:00Z',
    expect.stringMatching(/^sinks\.out\.formt \(line 16\): is not a setting; the nearest is "format"$/),
    'sinks.out.batch.maxWait (line 18): "1 minuts" is not a duration such as 10s, 5m, 2h',
  ]);
});

test('an error of a sink of unknown type lists what the types allow once each', async () => {
  const sink = 'format: 7\nbatch: { unit: 1 }\nprivacy: { rules: [{ fields: [userId], action: hide }] }';
  const problems = await problemsOf(valid({ sink }).replace('type: stdout', 'type: fle'));
  expect(problems.slice(1)).toEqual([
    'sinks.out.format (line 15): 7 is not one of raw, ecs, cef, leef, ocsf',
    'sinks.out.batch.unit (line 16): is not a setting; expected one of maxRecords, maxBytes, maxWait',
    'sinks.out.privacy.rules[0].action (line 17): "hide" is not one of drop, mask, pseudonymize',
  ]);
});

// OpenTelemetry specification, "Environment Variable Specification": a wrong number or name is a warning, and ignored.
test('a wrong OTEL_ variable is a warning; an unset or correct one is not', async () => {
  const messagesOf = async (environment: Record<string, string>): Promise<readonly string[]> =>
    (await load(valid(), environment)).warnings.filter((line) => line.startsWith('OTEL_'));
  const number = 'a number from 1 to 2147483647; the default applies';
  expect(
    await messagesOf({
      ...{ OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_EXPORTER_OTLP_TIMEOUT: '5s', OTEL_METRIC_EXPORT_INTERVAL: '0' },
      ...{ OTEL_BSP_SCHEDULE_DELAY: '-1', OTEL_BSP_MAX_QUEUE_SIZE: 'Infinity', OTEL_BSP_EXPORT_TIMEOUT: '2147483648' },
      ...{ OTEL_TRACES_SAMPLER: 'always', OTEL_TRACES_SAMPLER_ARG: '1.1' },
    }),
  ).toEqual([
    'OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" is not supported; Waybill sends http/protobuf',
    `OTEL_EXPORTER_OTLP_TIMEOUT: "5s" is not ${number}`,
    `OTEL_METRIC_EXPORT_INTERVAL: "0" is not ${number}`,
    `OTEL_BSP_SCHEDULE_DELAY: "-1" is not ${number}`,
    `OTEL_BSP_MAX_QUEUE_SIZE: "Infinity" is not ${number}`,
    `OTEL_BSP_EXPORT_TIMEOUT: "2147483648" is not ${number}`,
    'OTEL_TRACES_SAMPLER: "always" is not one of always_on, always_off, traceidratio, or one of them after parentbased_; the default applies',
    'OTEL_TRACES_SAMPLER_ARG: "1.1" is not a number from 0 to 1; the default applies',
  ]);
  for (const sampler of ['always_on', 'always_off', 'traceidratio', 'parentbased_traceidratio'])
    expect(await messagesOf({ OTEL_TRACES_SAMPLER: sampler, OTEL_TRACES_SAMPLER_ARG: '0', OTEL_METRIC_EXPORT_INTERVAL: ' 500 ' })).toEqual(
      [],
    );
  expect(await messagesOf({ OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf', OTEL_TRACES_SAMPLER: '', OTEL_BSP_EXPORT_TIMEOUT: '' })).toEqual(
    [],
  );
});

test('a warning for tokens that can be guessed, and for equal ones', async () => {
  const messagesOf = async (admin: string, environment: Record<string, string> = {}): Promise<readonly string[]> =>
    (await load(valid({ top: `admin: ${admin}` }), environment)).warnings.filter((line) =>
      /^admin\.(readT|t)oken.*(fewer|equals)/.test(line),
    );
  const long = { A: 'a'.repeat(16), B: 'b'.repeat(16), SHORT: 'c'.repeat(15) };
  expect(await messagesOf('{ token: !env A, readToken: !env B }', long)).toEqual([]);
  expect(await messagesOf('{ readToken: !env SHORT }', long)).toEqual([
    'admin.readToken (line 1): has fewer than 16 characters and may be guessed; create one with "openssl rand -hex 32"',
  ]);
  expect(await messagesOf('{ token: !env A, readToken: !env A }', long)).toEqual([
    'admin.readToken (line 1): equals admin.token: its holders may also perform operations',
  ]);
});

test('an environment that disables verification prevents the start', async () => {
  expect(await problemsOf(valid(), { NODE_TLS_REJECT_UNAUTHORIZED: '0' })).toEqual([
    'NODE_TLS_REJECT_UNAUTHORIZED: "0" disables the verification of certificates; remove it from the environment',
  ]);
  expect(await problemsOf(valid(), { NODE_TLS_REJECT_UNAUTHORIZED: '1', HTTPS_PROXY: 'socks5://u:canary@h:1' })).toEqual([
    'HTTPS_PROXY: its value (not shown) is not the address of a proxy such as http://proxy.example:3128',
  ]);
});

test('the proxy of a source takes precedence over the general one, and that over the environment', async () => {
  const environment = { HTTPS_PROXY: 'http://u:hush@env.example:1', NO_PROXY: '.svc, localhost' };
  const proxyOf = async (top: string, source: string, from: Record<string, string> = environment) => {
    const proxy = (await load(valid({ top, source }), from)).config.sources[0]?.proxy;
    return proxy && [proxy.url.read(), ...proxy.noProxy];
  };
  expect(await proxyOf('', '')).toEqual(['http://u:hush@env.example:1', '.svc', 'localhost']);
  expect(await proxyOf('proxy: { url: "http://top.example:2", noProxy: [.x] }', '')).toEqual(['http://top.example:2', '.x']);
  expect(await proxyOf('proxy: { url: "http://top.example:2" }', 'proxy: { url: "http://own.example:3" }')).toEqual([
    'http://own.example:3',
  ]);
  expect(await proxyOf('proxy: none', '')).toBeUndefined();
  expect(await proxyOf('proxy: { url: "http://top.example:2" }', 'proxy: none')).toBeUndefined();
  expect(await proxyOf('', '', {})).toBeUndefined();
});

test('a source and a sink override privacy rules and key independently', async () => {
  const rule = (field: string) => `rules: [{ fields: [${field}], action: drop }]`;
  const { config } = await load(
    valid({
      top: `privacy: { ${rule('userId')}, key: aaaaaaaaaaaaaaaa }`,
      source: 'privacy: { key: bbbbbbbbbbbbbbbb }',
      sink: `privacy: { ${rule('payloadName')} }`,
    }),
  );
  const source = config.sources[0]?.privacy;
  expect(source).toEqual({ rules: [{ fields: ['userId'], action: 'drop' }], key: 'bbbbbbbbbbbbbbbb' });
  expect({ ...source, ...config.sinks[0]?.privacy }).toEqual({
    rules: [{ fields: ['payloadName'], action: 'drop' }],
    key: 'bbbbbbbbbbbbbbbb',
  });
});

test('the defaults are those of the contract', async () => {
  const { config } = await load(valid({}).replace(/ {4}start.*\n/, ''));
  const hour = 3_600_000;
  expect(config).toMatchObject({
    dataDir: './state',
    journal: { maxSize: 10 * 2 ** 30, retention: 30 * 24 * hour },
    shutdownTimeout: 20_000,
    admin: { listen: ['127.0.0.1:9464'] },
    log: { level: 'info', levels: {} },
    sources: [
      {
        endpoint: 'full-payload',
        start: { kind: 'now' },
        pollInterval: 10_000,
        closeDelay: hour / 4,
        recountAfter: [1, 6, 24, 72, 168, 336, 720].map((hours) => hours * hour),
        pageSize: 'auto',
        requests: { perSecond: 10, timeout: 30_000 },
        auth: { grantType: 'client_credentials' },
        observer: { vendor: 'Waybill', product: 'Data Protection and Audit Service', version: '1.0' },
      },
    ],
    sinks: [
      {
        id: 'out',
        type: 'stdout',
        start: { kind: 'journal' },
        failReadinessAfter: hour / 4,
        includeOriginal: true,
        ledger: false,
        settings: {},
      },
    ],
  });
});

test('the settings of a sink type are separate, in the form that its definition expects', async () => {
  const text = valid().replace(
    'type: stdout',
    'type: file\n    path: /var/log/audit.ndjson\n    failReadinessAfter: never\n    start: 2026-01-01T00:00:00Z',
  );
  const [sink] = (await load(text)).config.sinks;
  expect(sink?.definition.type).toBe('file');
  expect(sink?.settings).toEqual({ path: '/var/log/audit.ndjson', compression: 'none' });
  expect(sink).toMatchObject({ failReadinessAfter: undefined, start: { kind: 'instant', at: Date.UTC(2026, 0, 1) * 1000 } });
  expect(sink && 'path' in sink).toBe(false);
});

test('the files behind references and TLS settings are listed for watching', async () => {
  using directory = temporaryDirectory();
  const secret = join(directory.path, 'secret');
  writeFileSync(secret, 'hush');
  const { files } = await load(
    valid({ top: 'tls: { ca: [/a.pem, /b] }\nadmin: { tls: { cert: /c.pem, key: /k.pem } }', auth: `clientSecret: !file ${secret}` }),
  );
  expect([...files].sort()).toEqual(['/a.pem', '/b', '/c.pem', '/k.pem', secret].sort());
});

test('the file is the named one, else that of WAYBILL_CONFIG', async () => {
  using directory = temporaryDirectory();
  const [one, two] = ['one.yaml', 'two.yaml'].map((name) => join(directory.path, name)) as [string, string];
  writeFileSync(one, valid());
  writeFileSync(two, JSON.stringify({ dataDir: 'json' }));
  expect((await loadConfig(one, { WAYBILL_CONFIG: two })).file).toBe(one);
  await expect(loadConfig(undefined, { WAYBILL_CONFIG: two })).rejects.toMatchObject({
    code: 'config_invalid',
    message: `cannot use the configuration "${two}": one problem`,
    problems: ['sources: is missing: expected a list'],
  });
  const missing = join(directory.path, 'three.yaml');
  await expect(loadConfig(missing, {})).rejects.toThrow(
    `cannot read the configuration "${missing}": ENOENT: no such file or directory, open '${missing}'`,
  );
  mkdirSync(missing);
  await expect(loadConfig(missing, {})).rejects.toMatchObject({ code: 'config_invalid' });
});
