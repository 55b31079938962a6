/** The endpoints of users and groups. */
import { z } from 'zod';
import { endpoint, json, queryOf, type Call, type Endpoint } from '../http/endpoint.ts';
import { Problem } from '../http/problem.ts';
import { dateText, pageNumber, paginationOf } from '../http/shapes.ts';
import { allows, roles, type Role } from './roles.ts';
import { expandedUser, givenRole, groupsPage, newUser, userChange, usersPage } from './shapes.ts';
import { Conflict, type GroupRow, type User, type Users } from './users.ts';

const pageSize = 100;

export function peopleEndpoints(users: Users): Endpoint[] {
  return [...userEndpoints(users), groupsEndpoint(users)];
}

function userEndpoints(users: Users): Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: '/users',
      summary: 'The users of the organization',
      permissions: ['users.read', 'users.read.all'],
      query: queryOf(z.object({ expand: z.enum(['true', 'false']).optional(), page: pageNumber.optional() })),
      answers: { 200: usersPage },
      answer({ caller, query: { expand, page = 1 } }) {
        if (expand === 'true' && !allows(caller.roles, 'users.read.all'))
          throw new Problem(403, 'The permission users.read.all is required');
        const found = users.page(pageSize, (page - 1) * pageSize).map(expand === 'true' ? expanded : listed);
        return json(200, { pagination: paginationOf(users.count(), pageSize, found.length, page), data: found });
      },
    }),
    endpoint({
      method: 'POST',
      path: '/users',
      summary: 'Creates a user',
      permissions: ['users.write'],
      body: newUser,
      answers: { 201: expandedUser },
      refusals: [404, 409],
      answer({ body }) {
        for (const groupId of body.groupIds) knownGroup(users, groupId);
        return json(201, expanded(obeying(() => users.create(body))));
      },
    }),
    endpoint({
      method: 'PATCH',
      path: '/users/{userId}',
      summary: 'Changes a user: names, e-mail address, groups',
      permissions: ['users.write'],
      body: userChange,
      answers: { 200: expandedUser },
      refusals: [404, 409],
      answer(call) {
        const { userId } = known(users, call.params['userId']);
        for (const groupId of call.body.groupIds ?? []) knownGroup(users, groupId);
        return json(200, expanded(obeying(() => users.change(userId, given(call.body)))));
      },
    }),
    endpoint({
      method: 'POST',
      path: '/users/{userId}',
      summary: 'Gives a role to a user',
      permissions: ['users.write'],
      body: givenRole,
      answers: { 200: expandedUser },
      refusals: [404, 409],
      answer(call) {
        const { userId } = known(users, call.params['userId']);
        return json(200, expanded(obeying(() => users.giveRole(userId, call.body.roleName))));
      },
    }),
    endpoint({
      method: 'DELETE',
      path: '/users/{userId}/roles/{role_name}',
      summary: 'Takes a role from a user',
      permissions: ['users.write'],
      answers: { 200: expandedUser },
      refusals: [404, 409],
      answer: (call) => json(200, expanded(obeying(() => takeRole(users, call)))),
    }),
  ];
}

function groupsEndpoint(users: Users): Endpoint {
  return endpoint({
    method: 'GET',
    path: '/groups',
    summary: 'The groups of the organization',
    permissions: ['groups.read', 'groups.read.all'],
    query: queryOf(z.object({ page: pageNumber.optional() })),
    answers: { 200: groupsPage },
    answer({ caller, query: { page = 1 } }) {
      const all = users.groups();
      const withMembers = allows(caller.roles, 'groups.read.all');
      const found = all.slice((page - 1) * pageSize, page * pageSize).map((group) => groupShown(group, withMembers));
      return json(200, { pagination: paginationOf(all.length, pageSize, found.length, page), data: found });
    },
  });
}

/** @throws Problem 404 */
export function known(users: Users, userId = ''): User {
  const user = users.find(userId);
  if (!user) throw new Problem(404, `The user ${JSON.stringify(userId)} does not exist`);
  return user;
}

/** @throws Problem 404 */
export function knownGroup(users: Users, groupId: string): void {
  if (!users.hasGroup(groupId)) throw new Problem(404, `The group ${JSON.stringify(groupId)} does not exist`);
}

function takeRole(users: Users, { params }: Call<undefined, undefined>): User {
  const user = known(users, params['userId']);
  const name = params['role_name'] ?? '';
  const role: Role | undefined = roles.find((each) => each === name);
  if (!role || !user.roles.includes(role)) throw new Problem(404, `The user does not hold the role ${JSON.stringify(name)}`);
  return users.takeRole(user.userId, role);
}

/** Converts a Conflict to 409. */
function obeying<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Conflict) throw new Problem(409, error.message, { cause: error });
    throw error;
  }
}

/** Removes missing fields, which remain unchanged. */
function given<T extends object>(change: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(change).filter(([, value]) => value !== undefined)) as {
    [Name in keyof T]?: Exclude<T[Name], undefined>;
  };
}

function listed({ userId, firstName, lastName, email }: User): unknown {
  return { id: userId, firstName, lastName, email, type: 'FULL' };
}

function expanded(user: User): unknown {
  return { ...(listed(user) as object), roles: user.roles, groupIds: user.groupIds, createdDate: dateText(user.createdAt) };
}

function groupShown({ groupId, name, memberIds }: GroupRow, withMembers: boolean): unknown {
  return { id: groupId, name, memberCount: memberIds.length, ...(withMembers && { memberIds }) };
}
