import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRemoteJWKSet, customFetch, jwtVerify } from 'jose';
import * as oidc from 'openid-client';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Service } from '../support/reference/service.ts';

let service: Service;
beforeAll(async () => {
  service = await Service.start('--records', '20');
});
afterAll(() => service.stop());

const errorOf = (text: string): unknown => (JSON.parse(text) as { error: unknown }).error;
const wellKnown = (): string => `${service.line.authUrl}/${service.line.tenantId}/v2.0/.well-known/openid-configuration`;

/** The fetch of jose and openid-client, with the service's CA. */
async function fetchTrusting(url: string | URL, options?: { method?: string; headers?: unknown; body?: unknown }): Promise<Response> {
  if (options?.method === 'POST') {
    const form = Object.fromEntries(new URLSearchParams(String(options.body)));
    const reply = await service.form(form, Object.fromEntries(new Headers(options.headers as Record<string, string>)));
    return new Response(reply.text, { status: reply.status, headers: { 'content-type': String(reply.headers['content-type']) } });
  }
  const reply = await service.get(String(url));
  return new Response(reply.text, { status: reply.status, headers: { 'content-type': String(reply.headers['content-type']) } });
}

describe('the token endpoint', () => {
  test('issues a token that a standard verifier accepts by discovery document and key set', async () => {
    const discovery = JSON.parse((await service.get(wellKnown())).text) as Record<string, string>;
    expect(discovery['token_endpoint']).toBe(`${service.line.authUrl}/${service.line.tenantId}/oauth2/v2.0/token`);
    const reply = await service.form(service.clientForm('Security Administrator'));
    expect(reply.status).toBe(200);
    expect(reply.headers['cache-control']).toBe('no-store');
    const body = JSON.parse(reply.text) as { access_token: string; token_type: string; expires_in: number };
    expect(body).toMatchObject({ token_type: 'Bearer', expires_in: 3600 });
    const keys = createRemoteJWKSet(new URL(discovery['jwks_uri'] ?? ''), { [customFetch]: fetchTrusting });
    const { payload } = await jwtVerify(body.access_token, keys, {
      issuer: discovery['issuer'] ?? '',
      audience: `api://${service.line.scopeAddress}`,
    });
    expect(payload).toMatchObject({ oid: service.client('Security Administrator').userId, tid: service.line.tenantId });
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(3600);
  });

  test('serves openid-client, which reads the discovery document itself', async () => {
    const { clientId, clientSecret } = service.client('Author');
    const config = await oidc.discovery(new URL(wellKnown().split('/.well-known')[0] ?? ''), clientId, clientSecret, undefined, {
      [oidc.customFetch]: fetchTrusting,
    });
    const tokens = await oidc.clientCredentialsGrant(config, { scope: `api://${service.line.scopeAddress}/.default` });
    expect(tokens.expires_in).toBe(3600);
  });

  test('accepts the secret by HTTP Basic as well, as RFC 6749 section 2.3.1 requires of every server', async () => {
    const { client_id: id = '', client_secret: secret = '', ...rest } = service.clientForm('Author');
    const reply = await service.form(rest, { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}` });
    expect(reply.status).toBe(200);
  });

  test('signs in every user with the grant password, and the API recognizes the user', async () => {
    expect(service.line.users.filter((user) => user.roles.includes('Author'))).toHaveLength(2);
    for (const user of service.line.users) {
      const reply = await service.form(service.userForm(user));
      expect(reply.status, user.username).toBe(200);
      const { access_token: token } = JSON.parse(reply.text) as { access_token: string };
      const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>;
      expect(claims).toMatchObject({ oid: user.userId, scp: 'access_as_user', roles: user.roles });
    }
  });

  test('issues an ID token for the scope openid, as clients of OpenID Connect request it in the grant password', async () => {
    const [user] = service.line.users;
    if (!user) throw new Error('no user');
    const { clientId, username, password, userId } = user;
    const ofApi = `api://${service.line.scopeAddress}/access_as_user`;
    // As MSAL sends it, which adds openid, profile and offline_access to the given scope.
    const form = { client_id: clientId, scope: `${ofApi} openid profile offline_access`, grant_type: 'password', username, password };
    const reply = await service.form({ ...form, client_info: '1', 'client-request-id': '5fa5b1f0-7ac5-4a3d-9c1b-1f1f4f8cfb4a' });
    expect(reply.status).toBe(200);
    const body = JSON.parse(reply.text) as { access_token: string; id_token: string; scope: string };
    expect(body.scope.split(' ').sort()).toEqual([ofApi, 'openid', 'profile'].sort());
    const keys = createRemoteJWKSet(new URL(`${service.line.authUrl}/${service.line.tenantId}/discovery/v2.0/keys`), {
      [customFetch]: fetchTrusting,
    });
    const issuer = `${service.line.authUrl}/${service.line.tenantId}/v2.0`;
    const { payload } = await jwtVerify(body.id_token, keys, { issuer, audience: clientId });
    const access = await jwtVerify(body.access_token, keys, { issuer, audience: `api://${service.line.scopeAddress}` });
    expect(payload).toMatchObject({ sub: userId, preferred_username: username, name: expect.stringContaining(' ') as unknown });
    expect(payload.sub).toBe(access.payload.sub);
    expect(payload).not.toHaveProperty('email');
    // An ID token is for the client: the API rejects it.
    const headers = { 'ocp-apim-subscription-key': service.line.subscriptionKey };
    const users = `${service.line.baseUrl}/users`;
    expect((await service.get(users, { ...headers, authorization: `Bearer ${body.id_token}` })).status).toBe(401);
    expect((await service.get(users, { ...headers, authorization: `Bearer ${body.access_token}` })).status).toBe(200);
    // Without openid there is none.
    expect(JSON.parse((await service.form({ ...form, scope: `profile ${ofApi}` })).text)).not.toHaveProperty('id_token');
  });

  test('lists its features in the discovery document: openid, and no authorization endpoint', async () => {
    const discovery = JSON.parse((await service.get(wellKnown())).text) as Record<string, unknown>;
    expect(discovery['scopes_supported']).toEqual(expect.arrayContaining(['openid', 'profile', 'email']));
    const addresses = Object.values(discovery).filter((value) => typeof value === 'string' && value.startsWith('https:')) as string[];
    expect(discovery).not.toHaveProperty('authorization_endpoint');
    // Every listed address responds: the token endpoint to GET with 405.
    for (const address of addresses.filter((each) => !each.endsWith('/v2.0'))) {
      expect([200, 405], address).toContain((await service.get(address)).status);
    }
  });

  const wrong: [name: string, change: Record<string, string>, status: number, error: string][] = [
    ['unknown client', { client_id: 'nobody' }, 401, 'invalid_client'],
    ['wrong secret', { client_secret: 'wrong' }, 401, 'invalid_client'],
    ['wrong scope', { scope: 'api://other/.default' }, 400, 'invalid_scope'],
    ['the scope of the other grant', { scope: 'api://SCOPE/access_as_user' }, 400, 'invalid_scope'],
    ['the scopes of OpenID Connect alone', { scope: 'openid profile' }, 400, 'invalid_scope'],
    ['an unknown scope in addition to its own', { scope: 'api://SCOPE/.default admin' }, 400, 'invalid_scope'],
    ['unknown grant', { grant_type: 'authorization_code' }, 400, 'unsupported_grant_type'],
    ['empty grant', { grant_type: '' }, 400, 'invalid_request'],
  ];
  test.each(wrong)('refuses client_credentials with %s', async (_, change, status, error) => {
    const fields = { ...service.clientForm('Author'), ...change };
    const reply = await service.form({ ...fields, scope: fields['scope']?.replace('SCOPE', service.line.scopeAddress) ?? '' });
    expect([reply.status, errorOf(reply.text)]).toEqual([status, error]);
    expect(reply.text).toContain('error_description');
  });

  test('refuses a wrong password, a client without its secret, another media type, and GET', async () => {
    const [user] = service.line.users;
    if (!user) throw new Error('no user');
    expect(errorOf((await service.form({ ...service.userForm(user), password: 'wrong' })).text)).toBe('invalid_grant');
    expect(errorOf((await service.form({ ...service.clientForm('Author'), client_id: user.clientId })).text)).toBe('unauthorized_client');
    expect(errorOf((await service.form(service.userForm(user), { 'content-type': 'application/json' })).text)).toBe('invalid_request');
    const token = `${service.line.authUrl}/${service.line.tenantId}/oauth2/v2.0/token`;
    const got = await service.get(token);
    expect([got.status, got.headers['allow']]).toEqual([405, 'POST']);
    for (const path of [
      `${token}/`,
      token.replace('token', 'constructor'),
      `${service.line.authUrl}/${service.line.tenantId}/constructor`,
    ]) {
      expect((await service.get(path, {}, 'POST')).status).toBe(404);
    }
  });

  test('refuses a body that is too large or too slow, and continues with the connection if it can', async () => {
    const large = await service.form({ ...service.clientForm('Author'), scope: 'x'.repeat(70_000) });
    expect([large.status, errorOf(large.text), large.headers['connection']]).toEqual([413, 'invalid_request', 'keep-alive']);
    const options = { port: new URL(service.line.authUrl).port, path: `/${service.line.tenantId}/oauth2/v2.0/token`, method: 'POST' };
    const headers = { 'content-type': 'application/x-www-form-urlencoded', 'content-length': '100' };
    await service.set({ bodyPatience: '100ms' });
    const slow = request({ ...options, host: '127.0.0.1', headers, ca: readFileSync(service.line.ca) });
    slow.write('grant_type');
    const [reply] = (await once(slow, 'response')) as [IncomingMessage];
    expect([reply.statusCode, reply.headers.connection]).toEqual([408, 'close']);
    slow.destroy();
    await service.set({ bodyPatience: '30s' });
  });
});

test('keys and tokens survive a restart with --data: the same key set, valid tokens stay valid, revoked ones stay revoked', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reference-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const options = ['--data', join(folder, 'data.db'), '--tls-dir', folder];
  const keySet = async (of: Service): Promise<{ kid: string; kty: string; n: string; e: string }[]> => {
    const { text } = await of.get(`${of.line.authUrl}/${of.line.tenantId}/discovery/v2.0/keys`);
    return (JSON.parse(text) as { keys: { kid: string; kty: string; n: string; e: string }[] }).keys;
  };
  const statusOf = async (of: Service, token: string): Promise<number> => {
    const headers = { authorization: `Bearer ${token}`, 'ocp-apim-subscription-key': of.line.subscriptionKey };
    return (await of.get(`${of.line.baseUrl}/logs/payload`, headers)).status;
  };
  await using first = await Service.startProgram(...options);
  const port = new URL(first.line.authUrl).port;
  const revoked = await first.token();
  await first.set({ revokeTokens: 'now' });
  await first.set({ rotateKeys: 'now' });
  const good = await first.token('Security Administrator', true);
  const keys = await keySet(first);
  // RFC 7638: SHA-256 of the required members in the order of their names, without white space.
  for (const { kid, e, kty, n } of keys) {
    expect(kid).toBe(createHash('sha256').update(`{"e":"${e}","kty":"${kty}","n":"${n}"}`).digest('base64url'));
    expect(kty).toBe('RSA');
  }
  expect(keys).toHaveLength(2);
  await first.stop('SIGKILL');

  await using second = await Service.start(...options, '--port', port);
  expect(await keySet(second)).toEqual(keys);
  expect([await statusOf(second, good), await statusOf(second, revoked)]).toEqual([200, 401]);
  await second.set({ revokeTokens: 'now' });
  expect(await statusOf(second, good)).toBe(401);
  expect(await statusOf(second, await second.token())).toBe(200);

  await using other = await Service.start();
  expect((await keySet(other))[0]?.kid).not.toBe(keys[0]?.kid);
});

describe('the switches of tokens', () => {
  test('revokeTokens refuses every token issued before, and none issued after', async () => {
    await service.token('Security Administrator', true);
    expect((await service.api('/logs/payload')).status).toBe(200);
    await service.set({ revokeTokens: 'now' });
    const refused = await service.api('/logs/payload');
    expect(refused.status).toBe(401);
    expect(refused.headers['www-authenticate']).toContain('invalid_token');
    await service.token('Security Administrator', true);
    expect((await service.api('/logs/payload')).status).toBe(200);
  });

  test('rotateKeys signs with a new key; the previous key stays valid, older keys do not', async () => {
    const keyOf = (token: string): unknown =>
      (JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()) as { kid: unknown }).kid;
    const old = await service.token('Security Administrator', true);
    await service.set({ rotateKeys: 'now' });
    expect((await service.api('/logs/payload')).status).toBe(200);
    const published = (await service.get(`${service.line.authUrl}/${service.line.tenantId}/discovery/v2.0/keys`)).text;
    expect((JSON.parse(published) as { keys: { kid: unknown }[] }).keys.map((key) => key.kid)).toContain(keyOf(old));
    await service.set({ rotateKeys: 'now' });
    expect((await service.api('/logs/payload')).status).toBe(401);
    expect(keyOf(await service.token('Security Administrator', true))).not.toBe(keyOf(old));
    expect((await service.api('/logs/payload')).status).toBe(200);
  });

  test('tokenLifetime limits the lifetime of a token', async () => {
    await using timed = await Service.start('--clock', 'manual', '--token-lifetime', '10s');
    const body = JSON.parse((await timed.form(timed.clientForm('Security Administrator'))).text) as { expires_in: number };
    expect(body.expires_in).toBe(10);
    // Its times are whole seconds: up to one second has passed when it is issued.
    await timed.token();
    await timed.advance('9s');
    expect((await timed.api('/logs/payload')).status).toBe(200);
    await timed.advance('1s');
    expect((await timed.api('/logs/payload')).status).toBe(401);
    await timed.token('Security Administrator', true);
    expect((await timed.api('/logs/payload')).status).toBe(200);
  });

  test('identityProvider: down resets, unavailable responds with 503, stalled never responds; the API continues', async () => {
    const form = service.clientForm('Author');
    await service.set({ identityProvider: 'down' });
    await expect(service.form(form)).rejects.toMatchObject({ code: 'ECONNRESET' });
    await service.set({ identityProvider: 'unavailable' });
    expect((await service.form(form)).status).toBe(503);
    service.patienceMs = 700;
    await service.set({ identityProvider: 'stalled' });
    await expect(service.form(form)).rejects.toMatchObject({ code: 'UND_ERR_HEADERS_TIMEOUT' });
    service.patienceMs = 10_000;
    expect((await service.api('/logs/payload')).status).toBe(200);
    await service.set({ identityProvider: 'up' });
    expect((await service.form(form)).status).toBe(200);
  });
});
