import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Service, type TruthRecord } from '../support/reference/service.ts';

let service: Service;
let truth: TruthRecord[];
beforeAll(async () => {
  service = await Service.start('--records', '3000', '--span', '1h', '--seed', 'access');
  truth = await service.truth();
});
afterAll(() => service.stop());

const personal = ['userLastNameFirstName', 'userEmailAddress', 'currentOwnerLastNameFirstName', 'currentOwnerEmailAddress'];
const fieldsOfPayload = [
  'logId',
  'userId',
  'payloadId',
  'payloadName',
  'currentPayloadOwnerId',
  'actionAttempted',
  'result',
  'resultReason',
  'logTimestamp',
];

describe('a request', () => {
  test('without the subscription key, or with a wrong one, is refused with 401', async () => {
    const authorization = `Bearer ${await service.token()}`;
    const url = `${service.line.baseUrl}/logs/payload`;
    for (const headers of [{ authorization }, { authorization, 'ocp-apim-subscription-key': 'wrong' }]) {
      const reply = await service.get(url, headers);
      expect(reply.status).toBe(401);
      expect(reply.headers['content-type']).toBe('application/problem+json');
      expect(reply.text).toContain('Ocp-Apim-Subscription-Key');
    }
  });

  test('without a token, with a changed one, or with one of an unknown signer, is refused with 401', async () => {
    const key = { 'ocp-apim-subscription-key': service.line.subscriptionKey };
    const token = await service.token();
    const [head = '', body = '', signature = ''] = token.split('.');
    const claims = JSON.parse(Buffer.from(body, 'base64url').toString()) as Record<string, unknown>;
    const other = Buffer.from(JSON.stringify({ ...claims, exp: 9_999_999_999 })).toString('base64url');
    const none = Buffer.from('{"alg":"none"}').toString('base64url');
    const url = `${service.line.baseUrl}/logs/payload`;
    expect((await service.get(url, key)).headers['www-authenticate']).toBe('Bearer');
    for (const bad of [`${head}.${other}.${signature}`, `${none}.${body}.`, 'x', `${token}x`]) {
      expect((await service.get(url, { ...key, authorization: `Bearer ${bad}` })).status, bad).toBe(401);
    }
    expect((await service.get(url, { ...key, authorization: `Bearer ${token}` })).status).toBe(200);
  });

  test('for an unknown path is 404, with another method 405, and plain HTTP gets no response', async () => {
    expect((await service.api('/nothing')).status).toBe(404);
    const headers = { authorization: `Bearer ${await service.token()}`, 'ocp-apim-subscription-key': service.line.subscriptionKey };
    const posted = await service.get(`${service.line.baseUrl}/logs/payload`, headers, 'POST');
    expect([posted.status, posted.headers['allow']]).toEqual([405, 'GET, HEAD']);
    await expect(service.get(service.line.baseUrl.replace('https:', 'http:'))).rejects.toThrow();
  });
});

describe('the roles of section 5', () => {
  // role, GET /logs/payload, GET /logs/full-payload
  const table: [string, number, number][] = [
    ['Author', 200, 403],
    ['Recipient', 403, 403],
    ['Security Administrator', 200, 200],
    ['User Administrator', 403, 403],
    ['Data Administrator', 200, 403],
    ['Policy Administrator', 403, 403],
    ['Super Administrator', 200, 200],
  ];
  test.each(table)('%s: payload %i, full-payload %i, as application and as user', async (role, payload, full) => {
    expect((await service.api('/logs/payload', role)).status).toBe(payload);
    expect((await service.api('/logs/full-payload', role)).status).toBe(full);
    for (const user of service.line.users.filter((each) => each.roles.includes(role))) {
      const { access_token: token } = JSON.parse((await service.form(service.userForm(user))).text) as { access_token: string };
      const headers = { authorization: `Bearer ${token}`, 'ocp-apim-subscription-key': service.line.subscriptionKey };
      expect((await service.get(`${service.line.baseUrl}/logs/payload`, headers)).status).toBe(payload);
      expect((await service.get(`${service.line.baseUrl}/logs/full-payload`, headers)).status).toBe(full);
    }
  });

  test('logs.read.all sees every record: without personal data on payload, with it on full-payload, fields in the order of 2.7', async () => {
    const full = await service.page('pageSize=1000');
    const plain = await service.page('pageSize=1000', 'payload');
    expect(full.data).toEqual(truth.slice(0, 1000));
    expect(full.pagination.totalRecords).toBe(truth.length);
    expect(plain.pagination).toEqual(full.pagination);
    for (const record of full.data) expect(Object.keys(record)).toEqual([...fieldsOfPayload, 'userNetwork', ...personal]);
    for (const record of plain.data) expect(Object.keys(record)).toEqual([...fieldsOfPayload, 'userNetwork']);
    expect(plain.data.map((record) => record.userNetwork)).toEqual(truth.slice(0, 1000).map((record) => record.userNetwork));
  });

  test('logs.read sees its own actions and those on its own payloads, without network data', async () => {
    const { userId } = service.client('Author');
    const own = truth.filter((record) => record.userId === userId || record.currentPayloadOwnerId === userId);
    expect(own.length).toBeGreaterThan(10);
    expect(own.length).toBeLessThan(truth.length / 2);
    const page = await service.page('pageSize=1000', 'payload', 'Author');
    expect(page.pagination.totalRecords).toBe(own.length);
    expect(page.data.map((record) => record.logId)).toEqual(own.map((record) => record.logId));
    for (const record of page.data) expect(Object.keys(record)).toEqual(fieldsOfPayload);
    const others = await service.page(`userId=${service.client('Recipient').userId}`, 'payload', 'Author');
    expect(others.data.every((record) => record.currentPayloadOwnerId === userId)).toBe(true);
  });
});

describe('the switch permissions', () => {
  test('hides fields, rows or everything at run time, and restores them', async () => {
    await service.set({ permissions: 'fields' });
    const fewer = await service.page('pageSize=5');
    for (const record of fewer.data) expect(Object.keys(record)).toEqual(fieldsOfPayload);
    expect(fewer.pagination.totalRecords).toBe(truth.length);

    await service.set({ permissions: 'rows' });
    const { userId } = service.client('Security Administrator');
    const own = truth.filter((record) => record.userId === userId || record.currentPayloadOwnerId === userId);
    const rows = await service.page('pageSize=1000');
    expect(rows.data).toEqual(own);
    expect(rows.pagination.totalRecords).toBe(own.length);

    await service.set({ permissions: 'none' });
    expect((await service.api('/logs/full-payload')).status).toBe(403);
    await service.set({ permissions: 'full' });
    expect((await service.page('pageSize=1000')).data).toEqual(truth.slice(0, 1000));
  });
});
