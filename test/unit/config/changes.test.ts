import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Config } from '../../../src/config/load.ts';
import { changesBetween, isEmpty } from '../../../src/config/changes.ts';
import type { Changes } from '../../../src/config/changes.ts';
import { load, temporaryDirectory } from '../../support/config/loading.ts';
import { settings } from '../../support/config/settings-table.ts';

interface Parts {
  readonly top?: string;
  readonly a?: string;
  readonly aAuth?: Readonly<Record<string, string>>;
  readonly b?: string;
  readonly one?: string;
  readonly two?: string;
  readonly more?: string;
}

const auth = { authUrl: 'https://login.example', tenantId: 't', clientId: 'c', scopeAddress: 's', clientSecret: 'hush' };
const source = (id: string, more: string, otherAuth: Readonly<Record<string, string>> = {}): string =>
  `  - { id: ${id}, baseUrl: https://${id}.example/v2/api, start: 2026-11-21T00:00:00Z, ${more}
      auth: ${JSON.stringify({ ...auth, ...otherAuth })} }\n`;

/** Sources `a` and `b`; the sink `one` gets both, the sink `two` gets only `b`. */
function textOf({ top = '', a = '', aAuth, b = '', one = '', two = '', more = '' }: Parts): string {
  return `${top}\nsources:\n${source('a', a, aAuth)}${source('b', b)}
sinks:
  - { id: one, type: file, path: one.ndjson, ${one} }
  - { id: two, type: file, path: two.ndjson, sources: [b], ${two} }
${more}`;
}

async function configOf(parts: Parts, environment: Record<string, string> = {}): Promise<Config> {
  return (await load(textOf(parts), environment)).config;
}

const none = { added: [], changed: [], removed: [] };
const same: Changes = { sources: none, sinks: none, settings: [], restart: [] };
const changed = (...ids: string[]) => ({ ...none, changed: ids });

const cases: readonly (readonly [string, Parts, Partial<Changes>])[] = [
  ['nothing', {}, {}],
  ['a default that is written out', { a: 'pageSize: auto,', two: 'format: ecs' }, {}],
  ['the poll interval of a source', { a: 'pollInterval: 20s,' }, { sources: changed('a') }],
  ['the secret of a source', { aAuth: { clientSecret: 'o7her' } }, { sources: changed('a') }],
  ['the client of a source', { aAuth: { clientId: 'd' } }, { sources: changed('a') }],
  ['the tenant of a source, which its events contain', { aAuth: { tenantId: 'u' } }, { sources: changed('a'), sinks: changed('one') }],
  ['the observer of a source', { b: 'observer: { vendor: Other },' }, { sources: changed('b'), sinks: changed('one', 'two') }],
  [
    'the privacy of a source',
    { a: 'privacy: { rules: [{ fields: [userId], action: mask }] },' },
    { sources: changed('a'), sinks: changed('one') },
  ],
  ['the filter of a sink', { two: 'filter: { result: [AccessDenied] }' }, { sinks: changed('two') }],
  ['the type-specific setting of a sink', { one: 'compression: gzip, rotate: { size: 1MiB }' }, { sinks: changed('one') }],
  ['the general mapping', { top: 'mapping: { hostIdFromUuid: false }' }, { sinks: changed('one', 'two'), settings: ['mapping'] }],
  ['the general CA', { top: 'tls: { ca: /ca.pem }' }, { sources: changed('a', 'b'), sinks: changed('one', 'two'), settings: ['tls'] }],
  ['an added sink', { more: '  - { id: three, type: stdout }' }, { sinks: { ...none, added: ['three'] } }],
  ['the shutdown timeout', { top: 'shutdownTimeout: 7s' }, { settings: ['shutdownTimeout'] }],
  ['the log levels', { top: 'log: { level: debug, levels: { deliver: warn } }' }, { settings: ['log.level', 'log.levels'] }],
  ['the state directory', { top: 'dataDir: /other' }, { restart: ['dataDir'] }],
  ['the journal', { top: 'journal: { maxSize: 1GiB, retention: 1d }' }, { restart: ['journal.maxSize', 'journal.retention'] }],
  ['the address of the admin server', { top: 'admin: { listen: "127.0.0.1:1" }' }, { restart: ['admin.listen'] }],
  ['a new admin token', { top: 'admin: { token: abcdefgh }' }, { settings: ['admin.token'], restart: ['admin.token'] }],
  ['the log format', { top: 'log: { format: ecs }' }, { restart: ['log.format'] }],
  ['the telemetry endpoint', { top: 'telemetry: { otlp: { endpoint: http://127.0.0.1:4318 } }' }, { restart: ['telemetry'] }],
];

test.each(cases)('%s', async (_name, parts, expected) => {
  const changes = changesBetween(await configOf({}), await configOf(parts));
  expect(changes).toEqual({ ...same, ...expected });
  expect(isEmpty(changes)).toBe(expected.sources === undefined && expected.sinks === undefined && expected.settings === undefined);
  const back = changesBetween(await configOf(parts), await configOf({}));
  expect(back.sinks).toEqual({ ...changes.sinks, added: changes.sinks.removed, removed: changes.sinks.added });
});

test('a reload notices a change of each setting', async () => {
  const before = await configOf({ more: '  - { id: three, type: stdout }' });
  const names = settings().map(({ name }) => name);
  // `include` brings sources and sinks, which are compared themselves.
  const leaves = names.filter(
    (name) => name !== 'include' && !names.some((other) => /^[.[]/.test(other.slice(name.length)) && other.startsWith(name)),
  );
  expect(leaves).toContain('journal.maxSize');
  for (const name of leaves) {
    const path = name.replaceAll('[]', '.0').split('.');
    // The settings of one type of sink are in a group of their own.
    const isOwn = path[0] === 'sinks' && before.sinks[0]?.definition.config.shape[path[2] ?? ''] !== undefined;
    const changes = changesBetween(before, withOther(before, isOwn ? path.toSpliced(2, 0, 'settings') : path));
    expect(changes, name).not.toEqual(same);
    if (path[1] === '0') continue;
    expect(
      [...changes.settings, ...changes.restart].filter((shown) => `${name}.`.startsWith(`${shown}.`)),
      name,
    ).not.toEqual([]);
  }
});

function withOther(value: unknown, [key, ...rest]: readonly string[]): Config {
  if (key === undefined) return 'another value' as unknown as Config;
  const old = { ...(value as Readonly<Record<string, unknown>>) };
  const changed = { ...old, [key]: withOther(old[key], rest) };
  return (Array.isArray(value) ? Object.values(changed) : changed) as unknown as Config;
}

test('a source is removed: a sink that requests every source starts again, another sink does not', async () => {
  const without = (await load(textOf({}).replace(source('a', ''), ''))).config;
  expect(changesBetween(await configOf({}), without)).toEqual({ ...same, sources: { ...none, removed: ['a'] }, sinks: changed('one') });
  expect(changesBetween(without, await configOf({}))).toEqual({ ...same, sources: { ...none, added: ['a'] }, sinks: changed('one') });
});

test('the order of sources, sinks and keys does not matter', async () => {
  const before = await configOf({});
  const turned = { ...before, sources: before.sources.toReversed(), sinks: before.sinks.toReversed() };
  expect(changesBetween(before, turned)).toEqual(same);
});

test('the value of an admin token changes without a restart', async () => {
  const changes = changesBetween(
    await configOf({ top: 'admin: { token: abcdefgh }' }),
    await configOf({ top: 'admin: { token: ijklmnop }' }),
  );
  expect(changes).toEqual({ ...same, settings: ['admin.token'] });
});

test('a secret in a file stays the same when the file changes, and another file is another secret', async () => {
  using directory = temporaryDirectory();
  const [first, second] = ['first', 'second'].map((name) => join(directory.path, name)) as [string, string];
  writeFileSync(first, 'one');
  writeFileSync(second, 'two');
  const from = (path: string, before = ''): Parts => ({ aAuth: { clientSecret: `${before}\${file:${path}}` } });
  const before = await configOf(from(first));
  writeFileSync(first, 'two');
  expect(changesBetween(before, await configOf(from(first)))).toEqual(same);
  expect(changesBetween(before, await configOf(from(second))).sources).toEqual(changed('a'));
  expect(changesBetween(before, await configOf(from(first, 'x')))).toEqual({ ...same, sources: changed('a') });
  expect(changesBetween(before, await configOf({ aAuth: { clientSecret: 'two' } })).sources).toEqual(changed('a'));
});

test('another setting of an archive concerns no other sink: a replay asks for the settings when it opens the archive', async () => {
  const archive = (directory: string): string => `  - { id: evidence, type: archive, directory: ${directory}, signingKey: "\${env:KEY}" }`;
  const [before, after] = [await configOf({ more: archive('a') }, { KEY: 'k' }), await configOf({ more: archive('b') }, { KEY: 'k' })];
  expect(changesBetween(before, after)).toEqual({ ...same, sinks: changed('evidence') });
});
