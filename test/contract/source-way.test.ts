/**
 * The connection to the service: which certificates are trusted, the errors for others, and the
 * proxy (contract.md, tls and proxy). All servers are real and on this machine.
 */
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { messageOf } from '../../src/errors/errors.ts';
import { createAuthority, createSelfSigned } from '../support/certificates.ts';
import type { Authority, KeyPair } from '../support/certificates.ts';
import { startService } from '../support/model-service-server.ts';
import type { ServiceOptions, TestService } from '../support/model-service-server.ts';
import { startProxy } from '../support/proxy.ts';
import type { ProxyOptions, TestProxy } from '../support/proxy.ts';
import { errorOf, pemOf, secretOf, sourceUnderTest } from '../support/source-under-test.ts';
import type { UnderTest, Wish } from '../support/source-under-test.ts';

const dayMs = 86_400_000;
let authority: Authority;
let other: Authority;
let certificate: KeyPair;
let open: AsyncDisposable[] = [];

beforeAll(async () => {
  [authority, other] = await Promise.all([createAuthority('Test Root'), createAuthority('Other Root')]);
  certificate = await authority.issue({ name: 'service', hosts: ['127.0.0.1', 'service.test'] });
});
afterEach(async () => {
  for (const each of open.reverse()) await each[Symbol.asyncDispose]();
  open = [];
});

async function serve(options: Partial<ServiceOptions> = {}): Promise<TestService> {
  const service = await startService({ certificate, ...options });
  open.push(service);
  return service;
}

async function proxyTo(service: TestService, options: Partial<ProxyOptions> = {}): Promise<TestProxy> {
  const proxy = await startProxy({ names: { 'service.test:443': service.port }, ...options });
  open.push(proxy);
  return proxy;
}

function make(wish: Wish): UnderTest {
  const made = sourceUnderTest(wish);
  open.push(made.source);
  return made;
}

const direct = (service: TestService, wish: Partial<Wish> = {}) => make({ at: `127.0.0.1:${service.port}`, ...wish });

describe('trust', () => {
  test('the general CA is trusted in addition to the built-in roots, and the route names the issuer', async () => {
    const made = direct(await serve(), { sharedCa: pemOf(authority.cert) });
    await made.page();
    expect(made.source.routes().map(({ peer, proxy }) => [peer?.issuer, peer?.subject, proxy])).toEqual([
      ['Test Root', 'service', undefined],
      ['Test Root', 'service', undefined],
    ]);
    expect(made.source.routes()[0]?.peer?.validTo).toBeGreaterThan(Date.now() + 29 * dayMs);
  });

  test('the CA of a source replaces the general one', async () => {
    const service = await serve();
    await direct(service, { sharedCa: pemOf(other.cert), tls: { ca: pemOf(authority.cert) } }).page();
    const error = await errorOf(direct(service, { sharedCa: pemOf(authority.cert), tls: { ca: pemOf(other.cert) } }).page());
    expect(error).toMatchObject({
      code: 'tls_untrusted',
      message: expect.stringMatching(/trusted here: 'Other Root' \(until \d{4}\)/) as string,
    });
  });

  test('several authorities in one file are all trusted', async () => {
    await direct(await serve(), { tls: { ca: pemOf(`# two\n${other.cert}\n${authority.cert}\n`) } }).page();
  });

  test('the CA that issued the certificate suffices, without the root above it', async () => {
    const issuing = await authority.subordinate('Issuing CA');
    const leaf = await issuing.issue({ name: 'service', hosts: ['127.0.0.1'] });
    const whole = await serve({ certificate: { ...leaf, cert: `${leaf.cert}\n${issuing.cert}` } });
    const alone = await serve({ certificate: leaf });
    await direct(whole, { tls: { ca: pemOf(issuing.cert) } }).page();
    await direct(whole, { sharedCa: pemOf(issuing.cert) }).page();
    await direct(whole, { tls: { ca: pemOf(authority.cert) } }).page();
    await direct(alone, { tls: { ca: pemOf(issuing.cert) } }).page();
    // The message names both ways on: the root does not lead to a certificate whose issuer the server does not send.
    expect((await errorOf(direct(alone, { tls: { ca: pemOf(authority.cert) } }).page())).message).toMatch(
      /issued by 'Issuing CA' is not trusted: set it to a PEM file with that issuer, or let the server send the certificates between its own and a trusted one; subject/,
    );
    const stranger = await other.issue({ name: 'service', hosts: ['127.0.0.1'] });
    expect(await errorOf(direct(await serve({ certificate: stranger }), { tls: { ca: pemOf(issuing.cert) } }).page())).toMatchObject({
      code: 'tls_untrusted',
    });
  });

  test('the message of a bundle of many CAs names three of them, last', async () => {
    const bundle = await Promise.all(Array.from({ length: 12 }, (_, n) => createAuthority(`Root ${n + 1}`)));
    const { message } = await errorOf(direct(await serve(), { tls: { ca: pemOf(bundle.map(({ cert }) => cert).join('\n')) } }).page());
    expect(message).toMatch(/; trusted here: 'Root 1' \(until \d{4}\), 'Root 2' \(until \d{4}\), 'Root 3' \(until \d{4}\), 9 more$/);
  });

  test('the CA of the token endpoint may be another', async () => {
    const [service, login] = [await serve(), await serve({ certificate: await other.issue({ name: 'login', hosts: ['127.0.0.1'] }) })];
    const wish = { tls: { ca: pemOf(authority.cert) } };
    const authUrl = `https://127.0.0.1:${login.port}`;
    const made = direct(service, { ...wish, auth: { authUrl, tls: { ca: pemOf(other.cert) } } });
    login.secret = 'secret-1';
    service.good.add('token-1-canary');
    await made.page();
    expect([service.tokens.length, login.tokens.length, login.pages.length]).toEqual([0, 1, 0]);
    const error = await errorOf(direct(service, { ...wish, auth: { authUrl, tls: { ca: pemOf(authority.cert) } } }).page());
    expect(error).toMatchObject({
      code: 'tls_untrusted',
      message: expect.stringMatching(/^sources\.production\.auth\.tls\.ca: .*'Other Root'/) as string,
    });
  });

  const refusals: readonly (readonly [string, () => Promise<KeyPair>, RegExp])[] = [
    [
      'an unknown issuer',
      () => other.issue({ name: 'service', hosts: ['127.0.0.1'] }),
      /^sources\.production\.tls\.ca: certificate of 127\.0\.0\.1 issued by 'Other Root' is not trusted: set it to a PEM file with that issuer; subject 'service', valid from \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d; trusted here: built-in roots, 'Test Root' \(until \d{4}\)$/,
    ],
    [
      'a self-signed certificate',
      () => createSelfSigned({ name: 'self', hosts: ['127.0.0.1'] }),
      /tls\.ca: certificate of 127\.0\.0\.1 issued by 'self' is not trusted/,
    ],
    [
      'an expired certificate',
      () => authority.issue({ name: 'service', hosts: ['127.0.0.1'], notBefore: new Date('2020-01-02'), notAfter: new Date('2020-03-04') }),
      /tls\.ca: .*has expired.*valid from 2020-01-02 to 2020-03-04/,
    ],
    [
      'a certificate that is not valid yet',
      () =>
        authority.issue({
          name: 'service',
          hosts: ['127.0.0.1'],
          notBefore: new Date(Date.now() + dayMs),
          notAfter: new Date(Date.now() + 2 * dayMs),
        }),
      /tls\.ca: .*is not valid yet.*; the clock of this machine is at \d{4}-\d\d-\d\d \d\d:\d\d UTC$/,
    ],
    [
      'a certificate for another name',
      () => authority.issue({ name: '127.0.0.1', hosts: ['elsewhere.test', '127.0.0.2'] }),
      /^sources\.production\.tls\.serverName: .*is valid for another name: expected 127\.0\.0\.1, got DNS:elsewhere\.test, IP Address:127\.0\.0\.2/,
    ],
  ];
  test.each(refusals)('%s is refused, and nothing is sent', async (_name, issue, words) => {
    const service = await serve({ certificate: await issue() });
    const error = await errorOf(direct(service, { sharedCa: pemOf(authority.cert) }).page());
    expect(error).toMatchObject({ code: 'tls_untrusted', message: expect.stringMatching(words) as string });
    // Node suggests an option that Waybill does not have.
    expect(messageOf(error)).not.toContain('--use-system-ca');
    expect(service.tokens).toHaveLength(0);
  });

  test('NODE_TLS_REJECT_UNAUTHORIZED does not disable verification', async () => {
    const service = await serve();
    process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
    try {
      expect(await errorOf(direct(service).page())).toMatchObject({ code: 'tls_untrusted' });
    } finally {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    }
  });

  test('a version before TLS 1.2 is refused', async () => {
    const service = await serve({ tls: { minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' } });
    expect(await errorOf(direct(service, { sharedCa: pemOf(authority.cert) }).page())).toMatchObject({
      code: 'tls_untrusted',
      message: 'sources.production.tls: 127.0.0.1 does not speak TLS 1.2 or later',
    });
  });

  test('the expected name in the certificate can be configured', async () => {
    const service = await serve({ certificate: await authority.issue({ name: 'x', hosts: ['inner.test'] }) });
    await direct(service, { tls: { ca: pemOf(authority.cert), serverName: 'inner.test' } }).page();
  });

  test('a renewed CA file takes effect with the next connection, without a restart', async () => {
    const service = await serve();
    const ca = pemOf(other.cert);
    const made = direct(service, { tls: { ca } });
    expect(await errorOf(made.page())).toMatchObject({ code: 'tls_untrusted' });
    ca.texts = [authority.cert];
    await made.page();
  });

  test('a file without a certificate is named', async () => {
    expect(await errorOf(direct(await serve(), { tls: { ca: pemOf('nothing') } }).page())).toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('"a file of the test": it has no certificate') as string,
    });
  });
});

describe('a client certificate', () => {
  test.each(['TLSv1.2', 'TLSv1.3'] as const)('is sent if requested, and named if missing (%s)', async (version) => {
    const service = await serve({
      tls: { requestCert: true, rejectUnauthorized: true, ca: other.cert, minVersion: version, maxVersion: version },
    });
    const good = await other.issue({ name: 'client' });
    await direct(service, { tls: { ca: pemOf(authority.cert), cert: pemOf(good.cert), key: pemOf(good.key) } }).page();
    const missing = await errorOf(direct(service, { tls: { ca: pemOf(authority.cert) } }).page());
    expect(missing).toMatchObject({ code: 'tls_untrusted', message: expect.stringMatching(/tls\.cert: .* and none is set/) as string });
  });

  test('a key that does not match is named', async () => {
    const [one, two] = await Promise.all([other.issue({ name: 'client' }), other.issue({ name: 'client' })]);
    const tls = { ca: pemOf(authority.cert), cert: pemOf(one.cert), key: pemOf(two.key) };
    expect(await errorOf(direct(await serve(), { tls }).page())).toMatchObject({
      code: 'config_invalid',
      message: expect.stringContaining('sources.production.tls.cert') as string,
    });
  });
});

describe('a proxy', () => {
  const through = (
    proxy: TestProxy,
    wish: Partial<Wish> & { readonly user?: string; readonly noProxy?: readonly string[]; readonly scheme?: string } = {},
  ) => {
    const { user, noProxy, scheme, ...rest } = wish;
    const url = secretOf(`${scheme ?? 'http'}://${user === undefined ? '' : `${user}@`}127.0.0.1:${proxy.port}`);
    return make({ at: 'service.test', sharedCa: pemOf(authority.cert), proxy: { url, noProxy }, ...rest });
  };

  test('tunnels to the token endpoint and the service, and resolves their names', async () => {
    const service = await serve();
    const proxy = await proxyTo(service);
    const made = through(proxy);
    await made.page();
    await made.page();
    expect(proxy.asked).toEqual(['service.test:443', 'service.test:443']);
    expect(service.pages).toHaveLength(2);
    expect(service.pages[0]?.headers).not.toHaveProperty('proxy-authorization');
    expect(made.source.routes().map(({ target, proxy, peer }) => [target, proxy, peer?.subject])).toEqual([
      ['service.test', 'a secret of the test', 'service'],
      ['service.test', 'a secret of the test', 'service'],
    ]);
  });

  test('receives user and password, unescaped from its URL', async () => {
    const proxy = await proxyTo(await serve(), { user: 'us:er'.replace(':', '-'), password: 'p@ss:canary' });
    await through(proxy, { user: 'us-er:p%40ss%3Acanary' }).page();
  });

  // The whole pair is base64 of `user:password` in UTF-8 (RFC 7617 section 2); curl sends these passwords too.
  test.each([
    ['pa%ss', 'pa%ss'],
    ['100%', '100%'],
    ['%zz%41', '%zzA'],
    ['%25ab%', '%ab%'],
    ['%C3%A4', 'ä'],
  ])('receives the password %s as %s: a percent sign that begins no escape stands for itself', async (written, sent) => {
    const proxy = await proxyTo(await serve(), { user: 'user', password: sent });
    await through(proxy, { user: `user:${written}` }).page();
    expect(proxy.asked).toHaveLength(2);
  });

  test('with TLS is verified as well', async () => {
    const service = await serve();
    const proxy = await proxyTo(service, { tls: certificate });
    await through(proxy, { scheme: 'https' }).page();
    const strange = await proxyTo(service, { tls: await other.issue({ name: 'proxy', hosts: ['127.0.0.1'] }) });
    const error = await errorOf(through(strange, { scheme: 'https' }).page());
    expect(error).toMatchObject({
      code: 'tls_untrusted',
      message: expect.stringContaining("certificate of 127.0.0.1 issued by 'Other Root'") as string,
    });
    expect(strange.asked).toEqual([]);
  });

  test('a certificate of the service is not confused with the certificate of the proxy', async () => {
    const service = await serve({ certificate: await other.issue({ name: 'service', hosts: ['service.test'] }) });
    const error = await errorOf(through(await proxyTo(service)).page());
    expect(error).toMatchObject({
      code: 'tls_untrusted',
      message: expect.stringContaining("certificate of service.test issued by 'Other Root'") as string,
    });
    const wrong = await serve({ certificate: await authority.issue({ name: 'x', hosts: ['elsewhere.test'] }) });
    expect(await errorOf(through(await proxyTo(wrong)).page())).toMatchObject({
      code: 'tls_untrusted',
      message: expect.stringContaining('expected service.test, got DNS:elsewhere.test') as string,
    });
  });

  test.each([
    [
      'a wrong password',
      { user: 'user', password: 'right' },
      'proxy_refused',
      /the proxy rejected the user and password of a secret of the test: 407 Proxy Authentication Required/,
    ],
    ['no', { refuse: 403 }, 'proxy_refused', /the proxy refused the tunnel; see a secret of the test: 403 Not For You/],
    ['a target that it cannot reach', { names: {} }, 'token_unreachable', /the proxy responded 502 No Such Host/],
    [
      'nothing',
      { silent: true },
      'token_unreachable',
      /cannot reach the proxy "127\.0\.0\.1:\d+" of a secret of the test: no response within 300 ms|no answer within 300 ms/,
    ],
  ] as const)('with the response %s is distinguished from the service', async (_name, options, code, words) => {
    const proxy = await proxyTo(await serve(), options);
    const error = await errorOf(through(proxy, { user: 'user:wrong-canary', requests: { timeout: 300 } }).page());
    expect(error).toMatchObject({ code, message: expect.stringMatching(words) as string });
    expect(`${messageOf(error)} ${error.stack ?? ''}`).not.toContain('canary');
  });

  test('that is unreachable is named', async () => {
    const proxy = await proxyTo(await serve());
    await proxy[Symbol.asyncDispose]();
    open = open.filter((each) => each !== proxy);
    // The proxy, not the address of the service or of the token endpoint, is what to correct.
    expect(await errorOf(through(proxy).page())).toMatchObject({
      code: 'token_unreachable',
      message: expect.stringMatching(/cannot reach the proxy .* of a secret of the test: connect ECONNREFUSED \S+$/) as string,
    });
  });

  test('is never used for this machine', async () => {
    const service = await serve();
    const proxy = await proxyTo(service);
    await through(proxy, { at: `127.0.0.1:${service.port}` }).page();
    expect(proxy.asked).toEqual([]);
  });
});
