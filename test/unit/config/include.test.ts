import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load.ts';
import type { Loaded } from '../../../src/config/load.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { temporaryDirectory, valid } from '../../support/config/loading.ts';

const sourceOf = (id: string, more = ''): string => `sources:
  - id: ${id}
    baseUrl: https://service.example/v2/api
    start: 2026-11-21T00:00:00Z
    auth: { authUrl: https://login.example, tenantId: t, clientId: c, scopeAddress: s, clientSecret: "\${env:SECRET:-hush}" }
${more}`;

/** Loads `waybill.yaml` with these files in its directory. */
async function loadFiles(files: Readonly<Record<string, string>>): Promise<Loaded & { readonly directory: string }> {
  using directory = temporaryDirectory();
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(directory.path, name)), { recursive: true });
    writeFileSync(join(directory.path, name), text);
  }
  return { ...(await loadConfig(join(directory.path, 'waybill.yaml'), {})), directory: directory.path };
}

async function problemsOf(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const thrown: unknown = await loadFiles(files).then(
    () => undefined,
    (caught: unknown) => caught,
  );
  if (!(thrown instanceof WaybillError)) throw new Error(`it was loaded, or failed otherwise: ${String(thrown)}`);
  expect(thrown.code).toBe('config_invalid');
  return thrown.problems;
}

test('the configuration lists first what the main file has, then what included files have, by file name, each file once', async () => {
  const { config, files, directory, warnings } = await loadFiles({
    'waybill.yaml': valid({ top: 'include: ["tenants/*.yaml", sinks.yaml]' }),
    'tenants/b.yaml': sourceOf('b'),
    'tenants/a.yaml': sourceOf('a', 'sinks:\n  - { id: of-a, type: file, path: a.ndjson, sources: [a, production] }\n'),
    'tenants/none.txt': 'not: taken',
    'sinks.yaml': 'sinks:\n  - { id: more, type: file, path: more.ndjson, sources: [b] }\n',
  });
  expect(config.sources.map(({ id }) => id)).toEqual(['production', 'a', 'b']);
  expect(config.sinks.map(({ id }) => id)).toEqual(['out', 'of-a', 'more']);
  expect(files).toEqual(expect.arrayContaining(['tenants/a.yaml', 'tenants/b.yaml', 'sinks.yaml'].map((name) => join(directory, name))));
  expect(warnings).toEqual([]);
});

test('the main file may leave all sources to included files', async () => {
  const { config } = await loadFiles({ 'waybill.yaml': 'include: [tenants/a.yaml]\n', 'tenants/a.yaml': sourceOf('a') });
  expect(config.sources.map(({ id }) => id)).toEqual(['a']);
});

test('errors of the main file come first; an error of an included file names file and line, also if two files cause it together', async () => {
  const problems = await problemsOf({
    'waybill.yaml': valid({ top: 'include: ["tenants/*.yaml"]\nshutdownTimeout: soon' }),
    'tenants/a.yaml': sourceOf('a', '    pollInterval: 15 minuts\n    subscriptionKey: "${env:NONE}"\n'),
    'tenants/b.yaml': sourceOf('production'),
  });
  expect(problems).toEqual([
    'shutdownTimeout (line 2): "soon" is not a duration such as 10s, 5m, 2h',
    'sources.a.pollInterval (tenants/a.yaml, line 6): "15 minuts" is not a duration such as 10s, 5m, 2h',
    'sources.a.subscriptionKey (tenants/a.yaml, line 7): environment variable "NONE" is not set',
    'sources[2].id (tenants/b.yaml, line 2): is also the id of another source, sources[0]',
  ]);
});

test('an unusable include is named: a missing file, invalid YAML, other settings, no list', async () => {
  expect(await problemsOf({ 'waybill.yaml': valid({ top: 'include: [none.yaml]' }) })).toEqual([
    expect.stringMatching(/^include\[0\] \(line 1\): "none\.yaml" cannot be read: ENOENT/),
  ]);
  expect(await problemsOf({ 'waybill.yaml': valid({ top: 'include: [a.yaml]' }), 'a.yaml': 'sources: [' })).toEqual([
    expect.stringMatching(/^a\.yaml, line 1, column \d+: /),
  ]);
  expect(
    await problemsOf({ 'waybill.yaml': valid({ top: 'include: [a.yaml]' }), 'a.yaml': 'dataDir: ./other\ninclude: [b.yaml]\n' }),
  ).toEqual(['include[0] (line 1): "a.yaml" has "dataDir", "include": an included file may contain only sources and sinks']);
  expect(await problemsOf({ 'waybill.yaml': valid({ top: 'include: [a.yaml]' }), 'a.yaml': 'sources: { id: a }\n' })).toEqual([
    'sources (line 2): in a.yaml is not a list',
  ]);
  expect(await problemsOf({ 'waybill.yaml': valid({ top: 'include: a.yaml' }) })).toEqual([
    'include (line 1): "a.yaml" is not a list; write it in square brackets',
  ]);
  expect(await problemsOf({ 'waybill.yaml': valid({ top: 'include: [a.yaml, ./a.yaml]' }), 'a.yaml': sourceOf('a') })).toEqual([
    'include[1] (line 1): "./a.yaml" is already included',
  ]);
});

test('a pattern without a matching file is a warning: a folder of tenants may be empty', async () => {
  const { warnings } = await loadFiles({ 'waybill.yaml': valid({ top: 'include: ["tenants/*.yaml"]' }) });
  expect(warnings).toEqual(['include: no file matches "tenants/*.yaml"']);
});
