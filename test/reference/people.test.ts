import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Service, type Caller, type Told } from '../support/reference/service.ts';

interface Listed {
  pagination: Record<string, number>;
  data: Record<string, unknown>[];
}
type Account = Parameters<Service['signIn']>[0];

let service: Service;
let administrator: Caller;
let author: Caller;
let superAdministrator: Caller;
beforeAll(async () => {
  service = await Service.start('--seed', 'people');
  administrator = await service.as('User Administrator');
  author = await service.as('Author');
  superAdministrator = await service.as('Super Administrator');
});
afterAll(() => service.stop());

let made = 0;
const someone = (more: object = {}): object => {
  made += 1;
  return { firstName: 'Ada', lastName: `Sample ${made}`, email: `ada.${made}@example.com`, ...more };
};
const create = (more?: object): Promise<Told> => service.call(administrator, 'POST', '/users', someone(more));
const listOf = async (caller: Caller, path: string): Promise<Listed> => (await service.call(caller, 'GET', path)).json as unknown as Listed;
const accounts = async (from = service): Promise<Account[]> => (await from.control('GET', '/accounts')).json as unknown as Account[];

describe('GET /users', () => {
  test('lists users as in section 2.3, a hundred per page, with the pagination object of section 2.6', async () => {
    const { pagination, data } = await listOf(author, '/users');
    expect(pagination).toEqual({ totalRecords: data.length, totalPages: 1, pageSize: 100, itemsInPage: data.length, page: 1 });
    for (const user of data) expect(Object.keys(user)).toEqual(['id', 'firstName', 'lastName', 'email', 'type']);
    expect(new Set(data.map((user) => user['type']))).toEqual(new Set(['FULL']));
    const ids = data.map((user) => user['id']);
    for (const { userId } of [...service.line.clients, ...service.line.users]) expect(ids).toContain(userId);
    for (const page of [2, 1_000_000_000]) {
      const { pagination: past } = await listOf(author, `/users?page=${page}`);
      expect(past).toMatchObject({ itemsInPage: 0, page, totalRecords: data.length });
    }
    expect((await listOf(author, `/groups?page=${'9'.repeat(30)}`)).data).toEqual([]);
  });

  test('continues with a second page without repetition', async () => {
    await using crowded = await Service.start('--seed', 'crowd');
    const caller = await crowded.as('User Administrator');
    for (let number = 0; number < 60; number += 1) {
      const body = { firstName: 'One', lastName: `Of Many ${number}`, email: `many.${number}@example.com` };
      expect((await crowded.call(caller, 'POST', '/users', body)).status).toBe(201);
    }
    const pages = await Promise.all(
      [1, 2].map(async (page) => (await crowded.call(caller, 'GET', `/users?page=${page}`)).json as unknown as Listed),
    );
    const total = pages[0]?.pagination['totalRecords'] ?? 0;
    expect(total).toBeGreaterThan(110);
    expect(pages.map(({ pagination }) => [pagination['totalPages'], pagination['itemsInPage']])).toEqual([
      [2, 100],
      [2, total - 100],
    ]);
    expect(new Set(pages.flatMap(({ data }) => data.map((user) => user['id']))).size).toBe(total);
  });

  test('shows roles, groups and the date with expand=true only to users.read.all', async () => {
    const { data } = await listOf(administrator, '/users?expand=true');
    for (const user of data) expect(Object.keys(user).slice(5)).toEqual(['roles', 'groupIds', 'createdDate']);
    expect(data.find((user) => user['id'] === author.userId)?.['roles']).toEqual(['Author']);
    expect(data[0]?.['createdDate']).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/);
    expect((await service.call(author, 'GET', '/users?expand=true')).status).toBe(403);
    expect((await service.call(author, 'GET', '/users?expand=false')).status).toBe(200);
  });

  test.each(['page=0', 'page=x', 'page=', 'expand=yes', 'pageSize=5', 'page=1&page=2'])('?%s is refused with 400', async (query) => {
    const { status, json } = await service.call(administrator, 'GET', `/users?${query}`);
    expect([status, json['parameter']]).toEqual([400, query.split('=')[0]]);
  });
});

describe('POST /users', () => {
  test('creates a user, who signs in with the account of the control port and has the permissions of the roles', async () => {
    const [group] = (await listOf(author, '/groups')).data;
    const { status, json } = await create({ roles: ['Author'], groupIds: [group?.['id']], email: 'new.author@example.com' });
    expect([status, json['roles'], json['groupIds'], json['type']]).toEqual([201, ['Author'], [group?.['id']], 'FULL']);
    const account = (await accounts()).find(({ userId }) => userId === json['id']);
    expect(account?.username).toBe('new.author@example.com');
    const caller = await service.signIn(account as Account);
    expect((await service.call(caller, 'GET', '/users')).status).toBe(200);
    expect((await service.call(caller, 'GET', '/logs/full-payload')).status).toBe(403);
  });

  test('assigns the role Recipient if none is given', async () => expect((await create()).json['roles']).toEqual(['Recipient']));

  test.each([
    [{ firstName: 'Ada\nRoot' }, 'firstName', 400],
    [{ lastName: 'S\u0000\u001b[2J' }, 'lastName', 400],
    [{ firstName: undefined }, 'firstName', 400],
    [{ lastName: '' }, 'lastName', 400],
    [{ lastName: 'x'.repeat(101) }, 'lastName', 400],
    [{ firstName: '\ud800' }, 'firstName', 400],
    [{ email: 'nobody' }, 'email', 400],
    [{ email: `${'x'.repeat(65)}@example.com` }, 'email', 400],
    [{ email: 'x@-example.com' }, 'email', 400],
    [{ roles: [] }, 'roles', 400],
    [{ roles: ['Author', 'King'] }, 'roles.1', 400],
    [{ id: 'mine' }, 'id', 400],
    [{ groupIds: ['no-such-group'] }, undefined, 404],
    [{ email: 'ONE.tester-author@example.com' }, undefined, 409],
    [{ roles: ['Super Administrator'] }, undefined, 409],
  ])('%j is refused, and no user is created', async (wrong, field, expected) => {
    const before = (await listOf(author, '/users')).pagination;
    const { status, json } = await create(wrong);
    expect([status, json['parameter']]).toEqual([expected, field]);
    expect((await listOf(author, '/users')).pagination).toEqual(before);
  });
});

describe('PATCH /users/{user_id}', () => {
  test('changes the given fields only; the username stays', async () => {
    const { json: user } = await create({ email: 'before@example.com', roles: ['Author'] });
    const path = `/users/${String(user['id'])}`;
    const changed = await service.call(administrator, 'PATCH', path, { lastName: 'Changed-Sample', email: 'after@example.com' });
    expect(changed.status).toBe(200);
    expect(changed.json).toEqual({ ...user, lastName: 'Changed-Sample', email: 'after@example.com' });
    const account = (await accounts()).find(({ userId }) => userId === user['id']) as Account;
    expect(account.username).toBe('before@example.com');
    // A username belongs to one user, in any spelling.
    expect((await create({ email: 'Before@example.com' })).status).toBe(409);
    expect((await service.signIn({ ...account, username: 'BEFORE@example.com' })).userId).toBe(user['id']);
  });

  test('moves a user into other groups, all or none', async () => {
    const { json: user } = await create();
    const path = `/users/${String(user['id'])}`;
    const auditor = await service.as('Security Administrator');
    const [one, other] = (await listOf(auditor, '/groups')).data.map((group) => String(group['id']));
    const membersOf = async (id?: string): Promise<unknown> =>
      (await listOf(auditor, '/groups')).data.find((group) => group['id'] === id)?.['memberIds'];
    await service.call(administrator, 'PATCH', path, { groupIds: [one] });
    expect(await membersOf(one)).toContain(user['id']);
    expect((await service.call(administrator, 'PATCH', path, { groupIds: [other, 'none'] })).status).toBe(404);
    expect(await membersOf(one)).toContain(user['id']);
    await service.call(administrator, 'PATCH', path, { groupIds: [other] });
    expect([await membersOf(one), await membersOf(other)]).toEqual([
      expect.not.arrayContaining([user['id']]),
      expect.arrayContaining([user['id']]),
    ]);
  });

  test('refuses an empty change, a role, and an unknown user', async () => {
    const path = `/users/${author.userId}`;
    expect((await service.call(administrator, 'PATCH', path, {})).status).toBe(400);
    expect((await service.call(administrator, 'PATCH', path, { roles: ['Author'] })).json['parameter']).toBe('roles');
    expect((await service.call(administrator, 'PATCH', '/users/nobody', { lastName: 'x' })).status).toBe(404);
    expect((await service.call(administrator, 'PATCH', '/users/%ff', { lastName: 'x' })).status).toBe(400);
  });
});

describe('roles assigned and removed', () => {
  test('take effect at once, also for existing tokens', async () => {
    const { json: user } = await create({ roles: ['Recipient'] });
    const path = `/users/${String(user['id'])}`;
    const caller = await service.signIn((await accounts()).find(({ userId }) => userId === user['id']) as Account);
    expect((await service.call(caller, 'GET', '/logs/full-payload')).status).toBe(403);
    const given = await service.call(administrator, 'POST', path, { roleName: 'Security Administrator' });
    expect([given.status, given.json['roles']]).toEqual([200, ['Recipient', 'Security Administrator']]);
    expect((await service.call(caller, 'GET', '/logs/full-payload')).status).toBe(200);
    const taken = await service.call(administrator, 'DELETE', `${path}/roles/Security%20Administrator`);
    expect([taken.status, taken.json['roles']]).toEqual([200, ['Recipient']]);
    expect((await service.call(caller, 'GET', '/logs/full-payload')).status).toBe(403);
  });

  test('leave each user at least one, and the organization its one Super Administrator', async () => {
    const role = async (method: string, userId: string, roleName: string): Promise<number> =>
      method === 'POST'
        ? (await service.call(administrator, 'POST', `/users/${userId}`, { roleName })).status
        : (await service.call(administrator, 'DELETE', `/users/${userId}/roles/${encodeURIComponent(roleName)}`)).status;
    expect(await role('DELETE', author.userId, 'Author')).toBe(409);
    expect(await role('POST', author.userId, 'Super Administrator')).toBe(409);
    expect(await role('POST', superAdministrator.userId, 'Super Administrator')).toBe(200);
    expect(await role('POST', superAdministrator.userId, 'Author')).toBe(200);
    expect(await role('DELETE', superAdministrator.userId, 'Super Administrator')).toBe(409);
    expect(await role('DELETE', author.userId, 'Recipient')).toBe(404);
    expect(await role('DELETE', author.userId, 'King')).toBe(404);
    expect(await role('POST', 'nobody', 'Author')).toBe(404);
    expect(await role('POST', author.userId, 'King')).toBe(400);
  });
});

describe('GET /groups', () => {
  test('returns groups and their sizes; only groups.read.all sees the members', async () => {
    const seen = await listOf(author, '/groups');
    expect(seen.data.length).toBeGreaterThanOrEqual(3);
    for (const group of seen.data) expect(Object.keys(group)).toEqual(['id', 'name', 'memberCount']);
    const all = await listOf(await service.as('Security Administrator'), '/groups');
    for (const group of all.data) expect(group['memberIds']).toHaveLength(group['memberCount'] as number);
    expect(all.pagination).toEqual({ totalRecords: all.data.length, totalPages: 1, pageSize: 100, itemsInPage: all.data.length, page: 1 });
  });
});

describe('x-api-caller-id', () => {
  test('is required on calls that create or update, and names the caller', async () => {
    const path = `/users/${author.userId}`;
    const tried = async (id: string | undefined): Promise<unknown[]> => {
      const { status, json } = await service.call(administrator, 'PATCH', path, { firstName: 'Application' }, { 'x-api-caller-id': id });
      return [status, json['parameter']];
    };
    expect(await tried(undefined)).toEqual([400, 'x-api-caller-id']);
    expect(await tried('')).toEqual([400, 'x-api-caller-id']);
    expect(await tried(`${administrator.userId}, ${administrator.userId}`)).toEqual([400, 'x-api-caller-id']);
    expect(await tried(author.userId)).toEqual([403, 'x-api-caller-id']);
    expect(await tried(administrator.userId)).toEqual([200, undefined]);
    const without = await service.call(administrator, 'GET', '/users', undefined, { 'x-api-caller-id': undefined });
    expect(without.status).toBe(200);
  });
});

test('with --data, created users, changes and roles survive a restart', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reference-test-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const options = ['--data', join(folder, 'data.db'), '--seed', 'stay'];
  const before = await Service.start(...options);
  const caller = await before.as('User Administrator');
  const { json: user } = await before.call(caller, 'POST', '/users', someone({ roles: ['Author', 'User Administrator'] }));
  const wanted = await before.call(caller, 'GET', '/users?expand=true');
  const account = (await accounts(before)).find(({ userId }) => userId === user['id']) as Account;
  await before.stop();
  await using after = await Service.start(...options);
  const again = await after.call(await after.signIn(account), 'GET', '/users?expand=true');
  expect(again.json).toEqual(wanted.json);
});
