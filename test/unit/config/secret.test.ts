import { mkdirSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inspect } from 'node:util';
import { expect, test } from 'vitest';
import { PemFiles } from '../../../src/settings/pem.ts';
import { parseTemplate } from '../../../src/settings/reference.ts';
import type { Secret } from '../../../src/settings/secret.ts';
import { load, problemsOf, temporaryDirectory, valid } from '../../support/config/loading.ts';

const read = (text: string, environment: Record<string, string> = {}): string => {
  const template = parseTemplate(text, environment);
  return typeof template === 'string' ? template : template.read();
};

async function clientSecret(written: string, environment: Record<string, string> = {}): Promise<Secret> {
  const { config } = await load(valid({ auth: `clientSecret: ${written}` }), environment);
  const secret = config.sources[0]?.auth.clientSecret;
  if (!secret) throw new Error('no secret');
  return secret;
}

test.each([
  ['plain', {}, 'plain'],
  ['${env:A}', { A: 'x' }, 'x'],
  ['a${env:A}b${env:B}c', { A: '1', B: '2' }, 'a1b2c'],
  ['${env:A:-o7her}', {}, 'o7her'],
  ['${env:A:-o7her}', { A: '' }, 'o7her'],
  ['${env:A:-}', {}, ''],
  ['${env:A:-http://h:1/x}', {}, 'http://h:1/x'],
  ['$${env:A}', { A: 'x' }, '${env:A}'],
  ['$${', {}, '${'],
  ['${env:A}$${${env:A}', { A: 'x' }, 'x${x'],
  ['a $ b $A {c}', {}, 'a $ b $A {c}'],
  // The value of a variable is not expanded again.
  ['${env:A}', { A: '${env:B}', B: 'no' }, '${env:B}'],
])('%s with %j is %s', (text, environment, expected) => {
  expect(read(text, environment)).toBe(expected);
});

test.each(['${A}', '${env:}', '${env:A', '${env:1A}', '${file:}', '${secret:a}', '${}', '${env:A-b}'])('%s is not a reference', (text) => {
  expect(() => read(text, { A: 'x' })).toThrow(SyntaxError);
});

test('one line break at the end of a file is removed, and no more', () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'secret');
  for (const [written, expected] of [
    ['a\n', 'a'],
    ['a\r\n', 'a'],
    ['a\n\n', 'a\n'],
    [' a ', ' a '],
    ['a\r', 'a\r'],
  ] as const) {
    writeFileSync(path, written);
    expect(read(`\${file:${path}}`)).toBe(expected);
  }
});

test('a file that is missing, empty or not text is an error that names the setting', async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'secret');
  const text = valid({ auth: `clientSecret: !file ${path}` });
  expect(await problemsOf(text)).toEqual([
    `sources.production.auth.clientSecret (line 10): file "${path}" cannot be read: ENOENT: no such file or directory, stat '${path}'`,
  ]);
  for (const blank of ['', '\n', ' \t\r\n\n']) {
    writeFileSync(path, blank);
    expect(await problemsOf(text)).toEqual([`sources.production.auth.clientSecret (line 10): file "${path}" is empty or blank`]);
  }
  writeFileSync(path, Uint8Array.of(0x61, 0xff));
  const [problem = ''] = await problemsOf(text);
  expect(problem.startsWith(`sources.production.auth.clientSecret (line 10): file "${path}" cannot be read: `)).toBe(true);
});

test('a secret is read again after its file is replaced as Kubernetes does: by another link', async () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  for (const [version, text] of [
    ['1', 'old!'],
    ['2', 'new!'],
  ] as const) {
    mkdirSync(at(version));
    writeFileSync(join(at(version), 'secret'), `${text}\n`);
  }
  symlinkSync('1', at('data'));
  const secret = await clientSecret(`\${file:${at('data')}/secret}`);
  expect(secret.read()).toBe('old!');
  symlinkSync('2', at('data.new'));
  renameSync(at('data.new'), at('data'));
  expect(secret.read()).toBe('new!');
  secret.refresh();
  expect(secret.read()).toBe('new!');
});

test('the error for a deleted secret file names setting and file', async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'secret');
  writeFileSync(path, 'hush');
  const secret = await clientSecret(`\${file:${path}}`);
  expect(secret.describe()).toBe(`sources.production.auth.clientSecret (file ${path})`);
  expect(secret.files).toEqual([path]);
  writeFileSync(path, '');
  expect(() => secret.read()).toThrow(`cannot read "sources.production.auth.clientSecret": file "${path}" is empty or blank`);
});

test('a secret of the environment is read from the environment each time', async () => {
  const environment = { SECRET: 'one' };
  const secret = await clientSecret('!env SECRET', environment);
  expect(secret.read()).toBe('one');
  environment.SECRET = 'two';
  expect(secret.read()).toBe('two');
  expect(secret.describe()).toBe('sources.production.auth.clientSecret (environment variable SECRET)');
});

test('a secret never shows itself', async () => {
  const secret = await clientSecret('canary-7f3a');
  expect(secret.read()).toBe('canary-7f3a');
  const shown = [
    String(secret),
    JSON.stringify({ secret }),
    inspect({ secret }, { showHidden: true, depth: 9 }),
    secret.toString(),
    secret.describe(),
  ];
  expect(shown.join()).not.toContain('canary');
  expect(shown.slice(0, 3)).toEqual(['[secret]', '{"secret":"[secret]"}', '{ secret: [secret] }']);
});

const pem = (words: string) => `-----BEGIN CERTIFICATE-----\n${words}\n-----END CERTIFICATE-----\n`;

test('PEM files are read on each use: a file, a list, a directory in the order of names', () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  writeFileSync(at('b.pem'), pem('Yg=='));
  writeFileSync(at('a.crt'), pem('YQ=='));
  writeFileSync(at('notes.txt'), 'no certificate');
  expect(new PemFiles([at('b.pem'), at('a.crt')]).read()).toEqual([pem('Yg=='), pem('YQ==')]);
  expect(new PemFiles([directory.path]).read()).toEqual([pem('YQ=='), pem('Yg==')]);
});

test('the error for an unusable PEM file names its setting', async () => {
  using directory = temporaryDirectory();
  const at = (name: string) => join(directory.path, name);
  mkdirSync(at('empty'));
  writeFileSync(at('text'), 'no certificate');
  const caOf = async (path: string) => (await load(valid({ source: `tls: { ca: ${path} }` }))).config.sources[0]?.tls?.ca;
  const cannot = 'cannot read "sources.production.tls.ca": ';
  const [missing, text, empty] = await Promise.all([caOf(at('missing')), caOf(at('text')), caOf(at('empty'))]);
  expect(() => missing?.read()).toThrow(`${cannot}ENOENT: no such file or directory, stat '${at('missing')}'`);
  expect(() => text?.read()).toThrow(`${cannot}"${at('text')}" contains no PEM block`);
  expect(() => empty?.read()).toThrow(`${cannot}no file in "${at('empty')}" ends in .pem, .crt or .cer`);
});
