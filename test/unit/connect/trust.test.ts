/** The TLS contexts of connections: equal settings share one, because the built-in roots take time and memory in each. */
import { beforeAll, expect, test } from 'vitest';
import { Trust } from '../../../src/connect/trust.ts';
import { createAuthority } from '../../support/certificates.ts';
import type { KeyPair } from '../../support/certificates.ts';
import { pemOf } from '../../support/source-under-test.ts';

let [first, second] = ['', ''];
let [client, otherClient]: KeyPair[] = [];
beforeAll(async () => {
  const authority = await createAuthority('first');
  [first, second] = [authority.cert, (await createAuthority('second')).cert];
  [client, otherClient] = [await authority.issue({ name: 'client' }), await authority.issue({ name: 'client' })];
});

const contextOf = (own: string | undefined, shared: string | undefined, pair?: KeyPair) =>
  new Trust(
    'sources.production',
    { ca: own === undefined ? undefined : pemOf(own), ...(pair && { cert: pemOf(pair.cert), key: pemOf(pair.key) }) },
    shared === undefined ? undefined : pemOf(shared),
  ).context();

test('connections with equal certificates share a context', () => {
  expect(contextOf(undefined, first)).toBe(contextOf(undefined, first));
  expect(contextOf(first, undefined, client)).toBe(contextOf(first, second, client));
});

test('a connection with another certificate, another client certificate, or with the built-in roots has its own context', () => {
  const all = [
    contextOf(undefined, undefined),
    contextOf(undefined, first),
    contextOf(first, undefined),
    contextOf(undefined, second),
    contextOf(second, undefined),
    contextOf(first, undefined, client),
    contextOf(first, undefined, otherClient),
    contextOf(undefined, first, client),
  ];
  expect(new Set(all).size).toBe(all.length);
});

test('a connection whose certificate file has other content gets another context', () => {
  const file = pemOf(first);
  const trust = new Trust('sources.production', { ca: file }, undefined);
  const before = trust.context();
  file.texts = [second];
  expect(trust.context()).not.toBe(before);
  expect(trust.context()).toBe(contextOf(second, undefined));
});
