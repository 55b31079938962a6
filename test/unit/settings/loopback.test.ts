import { expect, test } from 'vitest';
import { isLoopback } from '../../../src/settings/loopback.ts';

test.each([
  ['localhost', true],
  ['LOCALHOST', true],
  ['127.255.0.1', true],
  ['::1', true],
  ['[::1]', true],
  ['::ffff:127.0.0.1', true],
  ['128.0.0.1', false],
  ['localhost.example', false],
  ['service.localhost', false],
  ['127.0.0.1.example', false],
  ['::2', false],
  ['', false],
] as const)('only this machine can reach %s: %s', (host, expected) => {
  expect(isLoopback(host)).toBe(expected);
});
