/**
 * Mistakes that people make in a configuration, each as `waybill check --offline` reports it: one line that names the setting or the place, and
 * says what to change.
 */
import { expect, test } from 'vitest';
import { exitCodeOf } from '../../../src/cli/exit-code.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { valid } from '../../support/config/loading.ts';
import { offlineCheck } from '../../support/offline-check.ts';

type Case = readonly [mistake: string, text: string, place: string, remedy: string];

const source = (text: string): string => valid({ source: text });
const top = (text: string): string => valid({ top: text });
const auth = (text: string): string => valid({ auth: text });
const sink = (type: string, text: string): string => valid({ sink: text }).replace('type: stdout', `type: ${type}`);
const change = (from: string | RegExp, to: string): string => valid().replace(from, to);
const start = (text: string): string => change(/start: \S+/, `start: ${text}`);
const baseUrl = (text: string): string => change('https://service.example/v2/api', text);
const production = 'sources.production';
const duration = 'a duration such as 10s, 5m, 2h';
const time = 'a time such as 2026-11-21T00:00:00Z, now, earliest, or a duration before now such as 24h';
const address = 'an address such as https://service.example/v2/api';
const syslog = 'an address such as tls://siem.example:6514, tcp://…, udp://…, relp://… or relp+tls://…';
const misplaced = 'a quote, comma or bracket is missing or too many';

const errors: readonly Case[] = [
  ['a unit that is misspelt', source('pollInterval: 15 minuts'), `${production}.pollInterval`, duration],
  ['a number without a unit', source('closeDelay: 900'), `${production}.closeDelay`, duration],
  ['a negative duration', source('closeDelay: -5m'), `${production}.closeDelay`, duration],
  ['an ISO 8601 duration', source('closeDelay: PT5M'), `${production}.closeDelay`, duration],
  ['a duration with a word', source('closeDelay: 5 min'), `${production}.closeDelay`, 'write 5m'],
  ['no time at all', top('shutdownTimeout: 0'), 'shutdownTimeout', duration],
  ['a retention without end', top('journal: { retention: forever }'), 'journal.retention', duration],
  ['a decimal size', top('journal: { maxSize: 50GB }'), 'journal.maxSize', 'write 50GiB'],
  ['a size in bytes', top('journal: { maxSize: 1000000 }'), 'journal.maxSize', 'such as 512KiB, 2GiB'],
  ['a size that is too small', top('journal: { maxSize: 1MiB }'), 'journal.maxSize', 'less than the minimum 16MiB'],
  ['a date', start('2026-11-28'), `${production}.start`, 'write 2026-11-28T00:00:00Z'],
  ['a time without a zone', start('2026-11-20T10:00:00'), `${production}.start`, 'write 2026-11-20T10:00:00Z'],
  ['a word for a time', start('yesterday'), `${production}.start`, time],
  ['a date as people write it', start('28.11.2026'), `${production}.start`, time],
  ['http', baseUrl('http://service.example/v2/api'), `${production}.baseUrl`, 'must start with https:'],
  ['no scheme', baseUrl('service.example'), `${production}.baseUrl`, address],
  ['an empty address', baseUrl('""'), `${production}.baseUrl`, address],
  ['the path of the logs', baseUrl('https://service.example/v2/api/logs/full-payload'), `${production}.baseUrl`, 'must end before "/logs"'],
  ['a query', baseUrl('https://service.example/v2/api?key=1'), `${production}.baseUrl`, 'must not contain a query'],
  ['a user in the address', baseUrl('https://u:p@service.example/v2/api'), `${production}.baseUrl`, 'must not contain a user or password'],
  ['a placeholder', baseUrl('https://<your-service>/v2/api'), `${production}.baseUrl`, address],
  [
    'the address of the token endpoint',
    change('https://login.example', 'https://login.example/tenant-1/oauth2/v2.0/token'),
    `${production}.auth.authUrl`,
    'must end before "/{tenantId}/oauth2/v2.0/token"',
  ],
  [
    'the tenant id twice',
    change('https://login.example', 'https://login.example/tenant-1'),
    `${production}.auth.authUrl`,
    'must end before the tenant id',
  ],
  ['a whole scope', change('scope.example', 'api://scope.example/.default'), `${production}.auth.scopeAddress`, 'without a leading api://'],
  [
    'the end of a scope',
    change('scope.example', 'scope.example/.default'),
    `${production}.auth.scopeAddress`,
    'must end before "/.default"',
  ],
  ['another grant', auth('grantType: authorization_code'), `${production}.auth.grantType`, 'one of client_credentials, password'],
  ['a shell variable in braces', auth('clientSecret: ${SECRET}'), `${production}.auth.clientSecret`, 'a reference such as ${env:NAME}'],
  ['a secret of digits', auth('clientSecret: 12345678'), `${production}.auth.clientSecret`, 'write it in quotes'],
  ['an empty secret', auth('clientSecret: ""'), `${production}.auth.clientSecret`, 'must not be empty'],
  ['no value', auth('clientSecret:'), `${production}.auth.clientSecret`, 'has no value: expected text'],
  ['a name with a space', change('id: production', 'id: Production EU'), 'sources[0].id', '1 to 32 of a-z, 0-9 and hyphen'],
  ['a mistyped setting', source('closeDely: 1m'), `${production}.closeDely`, 'the nearest is "closeDelay"'],
  ['a mistyped group', top('dataDri: x'), 'dataDri', 'the nearest is "dataDir"'],
  ['another case', source('close_delay: 5m'), `${production}.close_delay`, 'the nearest is "closeDelay"'],
  ['sources by name', 'sources:\n  production: { baseUrl: https://s.example }\n', 'sources', 'begin each item with "- "'],
  ['a group as one value', source('requests: 5'), `${production}.requests`, 'indent its settings below it'],
  ['verification switched off', source('tls: { verify: false }'), `${production}.tls.verify`, 'name the file of the CA in "ca"'],
  ['too few requests', source('requests: { perSecond: 0 }'), `${production}.requests.perSecond`, 'a number from 0.01 to 1000'],
  ['a page that is too large', source('pageSize: 50000'), `${production}.pageSize`, '"auto" or a whole number from 1 to 10000'],
  ['recounts in another order', source('recountAfter: [1d, 1h]'), `${production}.recountAfter`, 'must be ascending'],
  ['a tab', change('    auth:', '\tauth:'), 'line 5, column 1', 'indent with spaces'],
  ['an indented line', change('    start:', '      start:'), 'line 3, column 14', 'indented further'],
  ['no colon', change('start: 20', 'start 20'), 'line 4, column 5', 'a colon is missing here'],
  ['an open quote', change('tenantId: tenant-1', 'tenantId: "tenant-1'), 'line 16, column 1', 'quote or bracket is missing'],
  ['a setting twice', source('closeDelay: 5m\ncloseDelay: 6m'), 'line 12, column 5', 'closeDelay occurs twice in its group; remove one'],
  ['a comma too many', '{"sources": [,]}', 'line 1, column 14', misplaced],
  ['TOML', '[sources]\nid = "a"\n', 'line 2, column 1', misplaced],
  ['a Windows path in quotes', top(String.raw`dataDir: "C:\state"`), 'line 1, column 13', 'use single quotes'],
  ['an at sign', source('observer: @home'), 'line 11, column 15', 'quote text that starts with this character'],
  ['an empty file', '', 'sources', 'is missing: expected a list'],
  ['a type of another product', sink('splunk', 'path: a'), 'sinks.out.type', 'one of archive, elasticsearch, file, kafka, splunk-hec'],
  ['no type', change('    type: stdout\n', ''), 'sinks.out.type', 'expected one of archive, elasticsearch, file'],
  [
    'a receiver without TLS',
    sink('splunk-hec', 'url: http://s.example:8088\ntoken: ${env:T:-tttttttttttt}'),
    'sinks.out.url',
    'must start with https:',
  ],
  ['no token', sink('splunk-hec', 'url: https://s.example:8088'), 'sinks.out.token', 'is missing'],
  ['one broker as text', sink('kafka', 'brokers: kafka.example:9092\ntopic: audit'), 'sinks.out.brokers', 'write it in square brackets'],
  ['no topic', sink('kafka', 'brokers: [kafka.example:9092]'), 'sinks.out.topic', 'is missing: expected the name of a topic'],
  [
    'an index in capitals',
    sink('elasticsearch', 'nodes: [https://es:9200]\nindex: Audit'),
    'sinks.out.index',
    'such as dpas-audit-{yyyy.MM}',
  ],
  ['syslog without a scheme', sink('syslog', 'address: siem.example'), 'sinks.out.address', syslog],
  ['a format of another product', sink('file', 'path: a\nformat: json'), 'sinks.out.format', 'one of ecs, cef, leef, ocsf, raw'],
  ['yes', sink('file', 'path: a\nincludeOriginal: "yes"'), 'sinks.out.includeOriginal', 'true or false'],
  [
    'one value in a filter',
    sink('file', 'path: a\nfilter: { result: AccessDenied }'),
    'sinks.out.filter.result',
    'write it in square brackets',
  ],
  ['a batch that is too large', sink('file', 'path: a\nbatch: { maxRecords: 100000 }'), 'sinks.out.batch.maxRecords', 'from 1 to 10000'],
  ['an unknown source', sink('file', 'path: a\nsources: [prod]'), 'sinks.out.sources[0]', 'the nearest is "production"'],
  ['no signing key', sink('archive', 'directory: ./archive'), 'sinks.out.signingKey', 'is missing'],
  ['a port', top('admin: { listen: 9464 }'), 'admin.listen', 'such as 127.0.0.1:9464'],
  ['a port above 65535', top("admin: { listen: '127.0.0.1:99999' }"), 'admin.listen', 'such as 127.0.0.1:9464'],
  ['a level of another product', top('log: { level: verbose }'), 'log.level', 'one of debug, info, warn, error'],
  ['a proxy as text', top('proxy: http://p:3128'), 'proxy', 'a group with the setting "url"'],
  [
    'an action of another product',
    top('privacy: { rules: [{ fields: [userId], action: hash }] }'),
    'privacy.rules[0].action',
    'drop, mask, pseudonymize',
  ],
  ['a short key', top('privacy: { key: "${env:K:-short}" }'), 'privacy.key', 'at least 16 characters'],
  ['a missing file', top('include: [nope.yaml]'), 'include[0]', '"nope.yaml" cannot be read: ENOENT'],
  [
    'a receiver of metrics without a scheme',
    top('telemetry: { otlp: { endpoint: otel:4318 } }'),
    'telemetry.otlp.endpoint',
    'http://otel-collector:4318',
  ],
];

/** Valid, and probably not meant. */
const warnings: readonly Case[] = [
  ['a start in the future', start('2126-11-28T00:00:00Z'), `${production}.start`, 'nothing is collected before that time'],
  ['a value that no record has', sink('file', 'path: a\nfilter: { result: [Denied] }'), 'sinks.out.filter.result', 'AccessDenied'],
  ['a secret in the file', auth('clientSecret: $SECRET'), `${production}.auth.clientSecret`, 'use ${file:/path} or ${env:NAME}'],
  ['no sink', valid().replace(/sinks:[^]*/, ''), 'sinks', 'collected records stay in the journal'],
  ['a missing variable', auth('clientSecret: ${env:NOPE}'), `${production}.auth.clientSecret`, '"NOPE" is not set'],
  ['a missing secret', auth('clientSecret: ${file:/nope/secret}'), `${production}.auth.clientSecret`, '"/nope/secret" cannot be read'],
];

async function lines(text: string): Promise<{ readonly code: number; readonly lines: readonly string[] }> {
  try {
    const { code, findings } = await offlineCheck(text);
    return { code, lines: findings.filter(({ level }) => level === 'warning').map(({ message }) => message) };
  } catch (thrown) {
    if (!(thrown instanceof WaybillError)) throw thrown;
    return { code: exitCodeOf(thrown), lines: thrown.problems };
  }
}

test.each([...errors.map((each) => [...each, 2] as const), ...warnings.map((each) => [...each, 0] as const)])(
  '%s: one line names the place and the remedy',
  async (_mistake, text, place, remedy, exit) => {
    const found = await lines(text);
    expect(found).toEqual({ code: exit, lines: [expect.any(String)] });
    const [line = ''] = found.lines;
    expect(line.replace(/ \(line \d+\)/, '').slice(0, place.length + 2)).toBe(`${place}: `);
    expect(line).toContain(remedy);
    expect(line.length).toBeLessThan(260);
    expect(line).not.toMatch(/\n|zod|invalid_|union|scalar|\bflow\b|regex|\bat file:/i);
  },
);
