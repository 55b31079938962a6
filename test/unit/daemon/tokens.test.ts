import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lastReadableTokens } from '../../../src/daemon/admin/tokens.ts';
import { load, temporaryDirectory, valid } from '../../support/config/loading.ts';

test('a token whose file is missing or empty keeps its last value', async () => {
  using directory = temporaryDirectory();
  const [full, read] = ['full', 'read'].map((name) => join(directory.path, name));
  if (full === undefined || read === undefined) throw new Error('no paths');
  writeFileSync(full, 'first');
  writeFileSync(read, 'reader');
  const { config } = await load(valid({ top: `admin: { token: !file ${full}, readToken: !file ${read} }` }));
  const token = lastReadableTokens((name) => config.admin[name]);
  rmSync(full);
  expect([token('token'), token('readToken')]).toEqual(['first', 'reader']);
  writeFileSync(full, 'the second');
  expect(token('token')).toBe('the second');
  writeFileSync(full, '');
  expect([token('token'), token('readToken')]).toEqual(['the second', 'reader']);
});

test('without a setting the token is empty; a missing file at the start is an error', async () => {
  using directory = temporaryDirectory();
  const path = join(directory.path, 'token');
  writeFileSync(path, 'first');
  const { config } = await load(valid({ top: `admin: { token: !file ${path} }` }));
  expect(lastReadableTokens((name) => config.admin[name])('readToken')).toBe('');
  rmSync(path);
  expect(() => lastReadableTokens((name) => config.admin[name])).toThrow(expect.objectContaining({ code: 'secret_missing' }));
});
