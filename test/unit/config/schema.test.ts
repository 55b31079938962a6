import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { configJsonSchema } from '../../../src/config/json-schema.ts';
import { sinks } from '../../../src/sink/index.ts';
import { load, problemsOf, temporaryDirectory, valid } from '../../support/config/loading.ts';
import { type Setting, settings } from '../../support/config/settings-table.ts';

const read = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8');
const accepts = new Ajv2020({ strict: false, allErrors: true }).compile(configJsonSchema(sinks));
/** The configuration as an editor sees it: references as text, tags ignored. */
const asEditor = (text: string): unknown =>
  parse(text, { customTags: ['!env', '!file'].map((tag) => ({ tag, resolve: (each: string) => `\${env:${each}}` })) });

test('the example is valid without a warning, for the program and for an editor', async () => {
  using directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'secrets'));
  for (const name of ['client-secret', 'privacy-key', 'read-token'])
    writeFileSync(join(directory.path, 'secrets', name), `${name} of the example\n`);
  const text = read('config/example.yaml');
  const { config, warnings } = await load(text.replaceAll('/run/secrets', join(directory.path, 'secrets')), {
    WAYBILL_CLIENT_ID: 'c',
    SUBSCRIPTION_KEY: 'k',
  });
  expect(warnings).toEqual([]);
  expect(config.sources[0]?.auth.clientSecret?.read()).toBe('client-secret of the example');
  expect(config.privacy.key).toBe('privacy-key of the example');
  expect(accepts(asEditor(text)), JSON.stringify(accepts.errors)).toBe(true);
});

test('the commented-out parts of the example are valid too', async () => {
  const text = read('config/example.yaml').replace(/^# ((tls|proxy):| {2}(ca|url|noProxy):)/gm, '$1');
  expect(text).toContain('\nproxy:');
  const problems = await problemsOf(
    text,
    { WAYBILL_CLIENT_ID: 'c', SUBSCRIPTION_KEY: 'k', PROXY_PASSWORD: 'p' },
    { requireSecrets: false },
  );
  expect(problems).toEqual([]);
});

// An independent validator of JSON Schema and the program must agree on these.
test.each<[boolean, string]>([
  [true, valid()],
  [true, valid({ top: 'shutdownTimeout: 1m30s', source: 'pollInterval: ${env:POLL:-10s}' })],
  [true, valid({ top: 'proxy: none', source: 'pageSize: 500', sink: 'failReadinessAfter: never' })],
  [true, valid({ top: 'admin: { listen: ["[::]:0", "127.0.0.1:0"] }', source: 'endpoint: ${env:ENDPOINT:-payload}' })],
  [
    true,
    valid({
      top: 'mapping: { severity: { "Decrypt:AccessDenied:TimeEmbargoFailed": 3 } }',
      sink: 'filter: { result: [a], any: [{ not: { userId: [b] } }] }',
    }),
  ],
  [false, valid({ top: 'shutdownTimeout: 15 minuts' })],
  [false, valid({ top: 'dataDri: x' })],
  [false, valid({ top: 'include: x' })],
  [true, valid({ top: 'telemetry: {}' })],
  [true, valid({ top: 'telemetry: { otlp: { endpoint: "http://otel-collector:4318" } }' })],
  [false, valid({ top: 'telemetry: { otlp: { endpoint: otel-collector } }' })],
  [true, valid({ top: 'include: ["none/*.yaml"]' })],
  [true, valid().replace('2026-11-21T00:00:00Z', 'earliest')],
  [false, valid({ top: 'mapping: { severity: { "Decrypt:AccessDenied:TimeEmbargoFailed": 11 } }' })],
  [true, valid({ top: `mapping: { names: { "Audit:AuthorChanged:Changed": "${'n'.repeat(512)}" } }` })],
  [false, valid({ top: `mapping: { names: { "Audit:AuthorChanged:Changed": "${'n'.repeat(513)}" } }` })],
  [false, valid({ top: 'mapping: { names: { "Audit:AuthorChanged:Changed": "" } }' })],
  [false, valid({ top: String.raw`mapping: { names: { "Audit:AuthorChanged:Changed": "New\nowner" } }` })],
  [false, valid({ top: 'mapping: { names: { "Audit:AuthorChanged:Change": "New owner" } }' })],
  [false, valid({ source: 'pageSize: 0' })],
  [false, valid({ source: 'endpoint: full' })],
  [false, valid({ sink: 'filter: { reslt: [a] }' })],
  [false, valid({ sink: 'filter: { any: [{ not: { reslt: [b] } }] }' })],
  [false, valid({ sink: 'batch: { maxRecords: 10001 }' })],
  [false, valid().replace('type: stdout', 'type: archive')],
  [false, valid().replace('id: production', 'id: Production')],
  [false, valid().replace(/sources:[^]*(?=sinks)/, '')],
])('the JSON Schema and the program agree (%s) on case %#', async (expected, text) => {
  expect((await problemsOf(text)).length === 0).toBe(expected);
  expect(accepts(asEditor(text)), JSON.stringify(accepts.errors)).toBe(expected);
});

test.each<[boolean, string]>([
  [true, 'include: [tenants/*.yaml]'],
  [true, 'include: [tenants/*.yaml]\nsources: []'],
  [false, 'include: []'],
  [false, 'sources: []'],
  [false, 'shutdownTimeout: 20s'],
])('an editor accepts (%s) sources in the main file or in included ones, on case %#', async (expected, main) => {
  expect(accepts(asEditor(main)), JSON.stringify(accepts.errors)).toBe(expected);
  // The program sees the whole, including a file with a source.
  using directory = temporaryDirectory();
  mkdirSync(join(directory.path, 'tenants'));
  writeFileSync(join(directory.path, 'tenants', 'a.yaml'), /^sources:[^]*(?=sinks)/m.exec(valid())?.[0] ?? '');
  const text = main.replace('tenants/*.yaml', join(directory.path, 'tenants', '*.yaml'));
  expect((await problemsOf(text)).length === 0).toBe(expected);
});

test('every setting has a description, in one line without a final full stop', () => {
  const all = settings();
  expect(all.length).toBeGreaterThan(80);
  for (const { name, description } of all) expect(description ?? '', name).toMatch(/^\S[^\n]{3,240}[^.\n]$/);
});

test('docs/configuration.md lists every setting', async () => {
  const path = 'docs/configuration.md';
  const mark = '<!-- what follows is written by test/unit/config/schema.test.ts -->\n';
  const [prose = ''] = read(path).split(mark);
  // A change of the configuration changes this file: `npx vitest run test/unit/config/schema.test.ts --update` writes it.
  await expect(`${prose}${mark}\n${tables(settings())}`).toMatchFileSnapshot(`../../../${path}`);
});

/** Rows common to all sink types occur once, in the table of the group `sinks`. */
function tables(all: readonly Setting[]): string {
  const types = new Set(all.flatMap(({ sink }) => sink ?? []));
  const counts = Map.groupBy(
    all.filter(({ sink }) => sink !== undefined),
    rowOf,
  );
  const isCommon = (setting: Setting): boolean => counts.get(rowOf(setting))?.length === types.size;
  const unique = [
    ...all.filter((setting) => !isCommon(setting)),
    ...[...counts.values()].flatMap(([first]) => (first && isCommon(first) ? [{ ...first, sink: undefined }] : [])),
  ];
  const groups = Map.groupBy(unique, ({ name, sink }) =>
    sink === undefined ? (/^[^.[]+/.exec(name)?.[0] ?? '') : `sinks of the type ${sink}`,
  );
  const table = (rows: readonly Setting[]) =>
    `| setting | purpose | value | default |\n| --- | --- | --- | --- |\n${rows.map(rowOf).join('')}\n`;
  const single = [...groups.values()].filter((rows) => rows.length === 1).flat();
  const isType = ([name]: readonly [string, unknown]): boolean => name.startsWith('sinks of the type ');
  const others = [...groups].filter(([, rows]) => rows.length > 1).toSorted((a, b) => Number(isType(a)) - Number(isType(b)));
  return `${table(single)}${others.map(([name, rows]) => `## ${name}\n\n${table(rows)}`).join('')}`.trimEnd() + '\n';
}

function rowOf({ name, description, takes, usual, required }: Setting): string {
  const cells = [`\`${name}\``, description ?? '', takes, required ? 'required' : usual === undefined ? '' : `\`${usual}\``];
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
}
