import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { initCommand } from '../../../src/cli/commands/init.ts';
import { loadConfig } from '../../../src/config/load.ts';
import type { Clock } from '../../../src/model/time.ts';
import { outputOf } from '../../support/command-io.ts';
import { temporaryDirectory } from '../../support/config/loading.ts';

const at = (iso: string): Clock => ({ now: () => Date.parse(iso), monotonic: () => 0, sleep: () => Promise.resolve() });
const blanks = ['BASE_URL', 'AUTH_URL', 'TENANT_ID', 'CLIENT_ID', 'CLIENT_SECRET', 'SCOPE_ADDRESS', 'SUBSCRIPTION_KEY'];

async function init(args: string[], clock = at('2026-11-21T14:59:59.999Z')): Promise<string> {
  const { code, stdout } = await outputOf((given, io) => initCommand(clock).run(given, io), args);
  expect(code).toBe(0);
  return stdout;
}

async function loaded(text: string, environment: Record<string, string>) {
  using directory = temporaryDirectory();
  const file = join(directory.path, 'waybill.yaml');
  writeFileSync(file, text);
  return await loadConfig(file, environment);
}

test('the output is a valid configuration without warnings once its variables are set', async () => {
  const values: Record<string, string> = { BASE_URL: 'https://service.example/v2/api', AUTH_URL: 'https://login.example' };
  const environment = Object.fromEntries(blanks.map((name) => [`WAYBILL_${name}`, values[name] ?? 'f1lled']));
  const { config, warnings } = await loaded(await init(['file']), environment);
  expect(warnings).toEqual([]);
  expect(config.dataDir).toBe('./state');
  expect(config.sources[0]?.start).toEqual({ kind: 'instant', at: Date.UTC(2026, 10, 21, 14) * 1000 });
  expect(config.sources[0]?.auth.clientSecret?.describe()).toBe(
    'sources.production.auth.clientSecret (environment variable WAYBILL_CLIENT_SECRET)',
  );
  expect(config.sinks).toMatchObject([{ id: 'file', type: 'file', format: 'ecs', settings: { path: './audit.ndjson' } }]);
});

test('the configuration for syslog names RELP over TLS first, and then what TLS cannot confirm', async () => {
  const text = await init(['syslog']);
  const at = ['relp+tls://', ' tls://', 'cannot confirm that the receiver kept a message', 'load balancer'].map((words) =>
    text.indexOf(words),
  );
  expect(at).toEqual([...at].sort((a, b) => a - b));
  expect(at).not.toContain(-1);
});

test('the configuration for syslog is valid too', async () => {
  const environment = Object.fromEntries(
    blanks.map((name) => [`WAYBILL_${name}`, name.endsWith('URL') ? 'https://service.example' : 'f1lled']),
  );
  const { config, warnings } = await loaded(await init(['syslog']), { ...environment, WAYBILL_SYSLOG: 'tls://siem.example:6514' });
  expect(warnings).toEqual([]);
  expect(config.sinks).toMatchObject([
    { id: 'siem', type: 'syslog', format: 'cef', settings: { address: 'tls://siem.example:6514', confirm: 'close' } },
  ]);
});

test('the configuration for splunk is valid too', async () => {
  const environment = Object.fromEntries(
    blanks.map((name) => [`WAYBILL_${name}`, name.endsWith('URL') ? 'https://service.example' : 'f1lled']),
  );
  const splunk = { WAYBILL_SPLUNK_URL: 'https://splunk.example:8088', WAYBILL_SPLUNK_TOKEN: 'b0221cd8' };
  const { config, warnings } = await loaded(await init(['splunk']), { ...environment, ...splunk });
  expect(warnings).toEqual([]);
  expect(config.sinks).toMatchObject([
    {
      id: 'splunk',
      type: 'splunk-hec',
      format: 'ecs',
      includeOriginal: false,
      settings: { url: 'https://splunk.example:8088', indexerAcknowledgement: false },
    },
  ]);
});

test('the configuration for an archive is valid with a key in its file', async () => {
  const environment = Object.fromEntries(
    blanks.map((name) => [`WAYBILL_${name}`, name.endsWith('URL') ? 'https://service.example' : 'f1lled']),
  );
  using directory = temporaryDirectory();
  const key = join(directory.path, 'key.pem');
  writeFileSync(key, 'a k3y');
  const { config, warnings } = await loaded((await init(['archive'])).replace('./archive-key.pem', key), environment);
  expect(warnings).toEqual([]);
  expect(config.sinks).toMatchObject([
    { id: 'archive', type: 'archive', format: 'raw', ledger: true, settings: { directory: './archive' } },
  ]);
});

test('the configuration for elasticsearch is valid too', async () => {
  const environment = Object.fromEntries(
    blanks.map((name) => [`WAYBILL_${name}`, name.endsWith('URL') ? 'https://service.example' : 'f1lled']),
  );
  const own = { WAYBILL_ELASTICSEARCH: 'https://es.example:9200', WAYBILL_ELASTICSEARCH_KEY: 'a2V5' };
  const { config, warnings } = await loaded(await init(['elasticsearch']), { ...environment, ...own });
  expect(warnings).toEqual([]);
  expect(config.sinks).toMatchObject([
    { id: 'siem', type: 'elasticsearch', format: 'ecs', settings: { nodes: ['https://es.example:9200'], namespace: 'default' } },
  ]);
});

test('each unset variable is reported with its line, and nothing else', async () => {
  const text = await init(['file']);
  const lines = text.split('\n');
  const problems = blanks.map((name) => {
    const index = lines.findIndex((line) => line.includes(`\${env:WAYBILL_${name}}`));
    const setting = /^ *(\w+):/.exec(lines[index] ?? '')?.[1] ?? '';
    const group = ['baseUrl', 'subscriptionKey'].includes(setting) ? '' : 'auth.';
    return `sources.production.${group}${setting} (line ${index + 1}): environment variable "WAYBILL_${name}" is not set`;
  });
  await expect(loaded(text, {})).rejects.toMatchObject({ problems });
});

test('start is the hour of the call, in UTC', async () => {
  expect(await init(['file'], at('2027-01-01T00:30:00+01:00'))).toContain('\n    start: 2026-12-31T23:00:00Z\n');
});

test.each([
  [[], 'missing sink type; usage: waybill init file'],
  [['file', 'kafka'], 'cannot run "init": unexpected argument "kafka"; see waybill help init'],
  [
    ['stdout'],
    'cannot create a configuration for "stdout": start from "waybill init file", and replace its sink with { id: out, type: stdout }',
  ],
  [['flie'], 'cannot create a configuration for "flie": the nearest is "file"'],
  [['__proto__'], 'cannot create a configuration for "__proto__": expected one of archive, elasticsearch, file, kafka, syslog, splunk'],
])('init %j is rejected', async (args, message) => {
  await expect(init(args)).rejects.toMatchObject({ code: 'usage', message });
});

test('the type of the sink in a configuration is an alias', async () => {
  expect(await init(['splunk-hec'])).toBe(await init(['splunk']));
});
