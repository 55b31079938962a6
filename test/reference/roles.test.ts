/** The table of specification section 5, endpoint by endpoint and role by role, in both directions. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileOf, networkAt, policy, protect, type Protected } from '../support/reference/files.ts';
import { Service, type Caller } from '../support/reference/service.ts';

const roles = [
  'Author',
  'Recipient',
  'Security Administrator',
  'User Administrator',
  'Data Administrator',
  'Policy Administrator',
  'Super Administrator',
];

/** A 1 for each of the roles above that may make the call, and the status of the permitted call. */
const table: [call: string, granted: string, status: number][] = [
  ['POST /payloads/protect-remote', '1000001', 201],
  ['POST /payloads/protect-local', '1000001', 201],
  ['POST /payloads/open-remote', '1100001', 200],
  ['POST /payloads/open-local', '1100001', 200],
  ['GET /payloads/{payloadId}', '1000111', 200],
  ['POST /payloads/{payloadId}/policies/user-authorizations', '1000111', 200],
  ['GET /payloads/{payloadId}/policies/user-authorizations', '1000111', 200],
  ['POST /payloads/{payloadId}/policies/group-authorizations', '1000111', 200],
  ['GET /payloads/{payloadId}/policies/group-authorizations', '1000111', 200],
  ['POST /payloads/{payloadId}/policies/access-windows', '1000111', 200],
  ['GET /payloads/{payloadId}/policies/access-windows', '1000111', 200],
  ['POST /payloads/{payloadId}/policies/revocation', '1000111', 200],
  ['POST /payloads/{payloadId}/policies/owner', '1000111', 200],
  ['GET /users', '1011111', 200],
  ['GET /users?expand=true', '0011001', 200],
  ['POST /users', '0001001', 201],
  ['PATCH /users/{userId}', '0001001', 200],
  ['POST /users/{userId}', '0001001', 200],
  ['DELETE /users/{userId}/roles/Author', '0001001', 200],
  ['GET /groups', '1010111', 200],
  ['GET /logs/payload', '1010101', 200],
  ['GET /logs/full-payload', '0010001', 200],
  ['GET /organization/policies/excluded-countries', '0000011', 200],
  ['POST /organization/policies/excluded-countries', '0000011', 200],
];

let service: Service;
let author: Caller;
let administrator: Caller;
let groupId: string;
beforeAll(async () => {
  service = await Service.start('--seed', 'roles');
  author = await service.as('Author');
  administrator = await service.as('User Administrator');
  groupId = ((await service.call(author, 'GET', '/groups')).json['data'] as { id: string }[])[0]?.id ?? '';
});
afterAll(() => service.stop());

/**
 * A file of the Author that every role may open and change as far as its permissions go, owned by
 * the caller if required.
 */
async function fileFor(caller: Caller, owned: boolean): Promise<Protected> {
  const file = await protect(service, author);
  if (caller.userId === author.userId) return file;
  if (owned) await policy(service, author, file, 'owner', { userId: caller.userId });
  else await policy(service, author, file, 'user-authorizations', { userId: caller.userId, accessLevel: 'FullAccess' });
  return file;
}

async function bodyFor(call: string, file: Protected): Promise<unknown> {
  const container = Buffer.from(file.base64FileData, 'base64');
  const base64Header = container.subarray(0, 96 + container.readUInt16BE(6)).toString('base64');
  const other = service.line.users[7]?.userId;
  const unique = crypto.randomUUID();
  const bodies: Record<string, unknown> = {
    'POST /payloads/protect-remote': fileOf('x'),
    'POST /payloads/protect-local': { fileType: 'txt', fileName: 'L', userNetwork: networkAt() },
    'POST /payloads/open-remote': { base64FileData: file.base64FileData, userNetwork: networkAt() },
    'POST /payloads/open-local': { base64Header, userNetwork: networkAt() },
    'POST /payloads/{payloadId}/policies/user-authorizations': { userId: other, accessLevel: 'View' },
    'POST /payloads/{payloadId}/policies/group-authorizations': { groupId, accessLevel: 'View' },
    'POST /payloads/{payloadId}/policies/access-windows': { allowedAreas: [{ country: 'CH' }] },
    'POST /payloads/{payloadId}/policies/revocation': { isRevoked: true },
    'POST /payloads/{payloadId}/policies/owner': { userId: other },
    'POST /users': { firstName: 'A', lastName: 'B', email: `${unique}@example.com` },
    'PATCH /users/{userId}': { lastName: unique },
    'POST /users/{userId}': { roleName: 'Recipient' },
    'POST /organization/policies/excluded-countries': { excludedCountries: [] },
  };
  return bodies[call];
}

const rows = table.flatMap(([call, granted, status]) =>
  roles.map((role, place) => [role, call, granted.charAt(place) === '1' ? status : 403] as const),
);

describe('section 5', () => {
  test.each(rows)('%s: %s is %i', async (role, call, expected) => {
    const caller = await service.as(role);
    const [method = '', path = ''] = call.split(' ');
    const file = await fileFor(caller, path.endsWith('/owner'));
    let userId = '';
    if (path.includes('{userId}')) {
      const body = { firstName: 'A', lastName: 'B', email: `${crypto.randomUUID()}@example.com`, roles: ['Author', 'Recipient'] };
      userId = String((await service.call(administrator, 'POST', '/users', body)).json['id']);
    }
    const before = (await service.page('pageSize=1')).pagination.totalRecords;
    const real = path.replace('{payloadId}', file.payloadId).replace('{userId}', userId);
    const { status, json } = await service.call(caller, method, real, await bodyFor(call, file));
    expect([status, expected === 403 ? json['detail'] : undefined]).toEqual([
      expected,
      expected === 403 ? expect.stringMatching(/^The permission [a-z.]+( or [a-z.]+)* is required$/) : undefined,
    ]);
    // A call without permission is not an event.
    if (expected === 403) expect((await service.page('pageSize=1')).pagination.totalRecords).toBe(before);
  });

  test('a user with several roles has the permissions of each', async () => {
    const body = { firstName: 'A', lastName: 'Both', email: 'both@example.com', roles: ['Recipient', 'Data Administrator'] };
    const { json } = await service.call(administrator, 'POST', '/users', body);
    const accounts = (await service.control('GET', '/accounts')).json as unknown as Parameters<Service['signIn']>[0][];
    const both = await service.signIn(accounts.find(({ userId }) => userId === json['id']) as (typeof accounts)[number]);
    const file = await protect(service, author);
    await policy(service, author, file, 'user-authorizations', { userId: both.userId, accessLevel: 'View' });
    const statusOf = async (method: string, path: string, given?: unknown): Promise<number> =>
      (await service.call(both, method, path, given)).status;
    expect([
      await statusOf('POST', '/payloads/open-remote', { base64FileData: file.base64FileData, userNetwork: networkAt() }),
      await statusOf('GET', `/payloads/${file.payloadId}`),
      await statusOf('POST', '/payloads/protect-remote', fileOf('x')),
    ]).toEqual([200, 200, 403]);
  });
});
