import { expect, test } from 'vitest';
import { proxyFor } from '../../../src/connect/proxy.ts';

const url = { read: () => 'http://proxy.test:3128', refresh: () => undefined, describe: () => 'proxy.url' };
const isDirect = (target: string, noProxy: readonly string[]) => proxyFor(new URL(target), { url, noProxy }) === undefined;

test.each([
  ['https://service.example/', [], false],
  ['https://service.example/', ['*'], true],
  ['https://service.example/', ['service.example'], true],
  ['https://SERVICE.example./', ['Service.Example'], true],
  ['https://a.service.example/', ['service.example'], true],
  ['https://a.service.example/', ['.service.example'], true],
  ['https://a.service.example/', ['*.service.example'], true],
  ['https://service.example/', ['.service.example'], false],
  ['https://otherservice.example/', ['service.example'], false],
  ['https://service.example/', ['service.example:443'], true],
  ['https://service.example:8443/', ['service.example:443'], false],
  ['https://service.example:8443/', ['service.example:8443'], true],
  ['https://192.0.2.7/', ['192.0.2.7'], true],
  ['https://192.0.2.7/', ['192.0.2.0/24'], true],
  ['https://192.0.3.7/', ['192.0.2.0/24'], false],
  ['https://192.0.2.7/', ['192.0.2.0/99', '2', '.7'], false],
  ['https://[2001:db8::1]/', ['2001:db8::/32'], true],
  ['https://[2001:db8::1]:8443/', ['[2001:db8::1]:8443'], true],
  ['https://[2001:db8::1]/', ['2001:db8::1'], true],
  ['https://[2001:db8::1]/', ['192.0.2.1', ''], false],
  ['https://service.example/', ['', ' ', 'example.service'], false],
  ['https://127.0.0.1:8443/', [], true],
  ['https://[::1]:8443/', [], true],
  ['https://LOCALHOST./', [], true],
  ['https://service.localhost/', [], true],
  ['https://localhost.example/', [], false],
  ['http://service.example/', [], true],
] as const)('%s with %j is direct: %s', (target, noProxy, expected) => {
  expect(isDirect(target, noProxy)).toBe(expected);
});
