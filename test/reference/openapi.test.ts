/**
 * The OpenAPI document: served, checked in, and accurate. All other tests compare their responses
 * with it too (Service.call).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Description } from '../support/reference/description.ts';
import { Service } from '../support/reference/service.ts';

let service: Service;
let description: Description;
beforeAll(async () => {
  service = await Service.start('--seed', 'openapi', '--records', '200');
  description = await service.description();
});
afterAll(() => service.stop());

test('is served without credentials, and equals the checked-in one', async () => {
  const { status, headers, text } = await service.get(`${service.line.authUrl}/openapi.json`);
  expect([status, headers['content-type']]).toEqual([200, 'application/json; charset=utf-8']);
  const file = new URL('../../docs/reference-service.openapi.json', import.meta.url).pathname;
  await expect(`${JSON.stringify(JSON.parse(text), null, 2)}\n`).toMatchFileSnapshot(file);
  const posted = await service.get(`${service.line.authUrl}/openapi.json`, {}, 'POST');
  expect([posted.status, posted.headers['allow']]).toEqual([405, 'GET, HEAD']);
});

test('has every endpoint of sections 4 and 5, and describes the service above the paths', () => {
  const { paths, servers } = description.document;
  const operations = Object.entries(paths).flatMap(([path, item]) => Object.keys(item).map((method) => `${method} ${path}`));
  expect(operations).toEqual(
    expect.arrayContaining([
      'post /payloads/protect-remote/',
      'get /users',
      'post /payloads/{payloadId}/policies/user-authorizations',
      'get /payloads/{payloadId}/policies/user-authorizations',
      'get /logs/full-payload',
      'get /logs/payload',
      'post /payloads/protect-local',
      'post /payloads/open-remote',
      'post /payloads/open-local',
      'get /payloads/{payloadId}',
      'get /groups',
      'post /users',
      'patch /users/{userId}',
      'post /users/{userId}',
      'delete /users/{userId}/roles/{role_name}',
    ]),
  );
  expect(description.document).not.toHaveProperty('webhooks');
  expect(service.line.baseUrl).toBe(service.line.authUrl + (servers[0]?.url ?? ''));
});

describe('the log', () => {
  test.each(['Security Administrator', 'Super Administrator'])('responds to the %s as described', async (role) => {
    const caller = await service.as(role);
    for (const path of ['/logs/payload', '/logs/full-payload', '/logs/payload?page=0', '/logs/full-payload?sort=x']) {
      const { status } = await service.call(caller, 'GET', path);
      expect(status).toBe(path.includes('?') ? 400 : 200);
    }
    expect((await service.call(await service.as('Author'), 'GET', '/logs/payload')).status).toBe(200);
  });
});

describe('the check of responses', () => {
  const headers = { 'content-type': 'application/json' };
  const user = { id: 'u', firstName: 'A', lastName: 'B', email: 'a@example.com', type: 'FULL' };
  const pagination = { totalRecords: 1, totalPages: 1, pageSize: 100, itemsInPage: 1, page: 1 };
  const checking =
    (status: number, json: Record<string, unknown>, more = headers) =>
    (): void =>
      description.check('GET', '/users', { status, headers: more, json });

  test('accepts described responses, and rejects others', () => {
    expect(checking(200, { pagination, data: [user] })).not.toThrow();
    expect(checking(200, { pagination, data: [{ ...user, type: 'HALF' }] })).toThrow('GET /users: 200');
    expect(checking(200, { pagination, data: [user], more: 1 })).toThrow('additional');
    expect(checking(200, { pagination: { ...pagination, page: '1' }, data: [] })).toThrow('integer');
    expect(checking(418, {})).toThrow('not described');
    expect(checking(400, { type: 'about:blank', title: 'x', status: 400, detail: 'x' })).toThrow('not described');
    expect(() => description.check('PUT', '/users', { status: 200, headers, json: {} })).toThrow('not described');
  });
});
