/**
 * The endpoints of policies. A change and its log record are one
 * transaction. A call that changes nothing is not logged.
 */
import { z } from 'zod';
import { endpoint, json, type Call, type Endpoint } from '../http/endpoint.ts';
import { Problem } from '../http/problem.ts';
import type { Combination } from '../logs/combinations.ts';
import { known, knownGroup } from '../people/endpoints.ts';
import type { Users } from '../people/users.ts';
import type { Payload } from '../payloads/payloads.ts';
import { payload as payloadShape, payloadShown } from '../payloads/shapes.ts';
import { changeable, readable, logAction, type PayloadParts } from './authorize.ts';
import { networkOfPeer, type CallerNetwork } from './network.ts';
import type { Change } from './policies.ts';
import * as shapes from './shapes.ts';

const base = '/payloads/{payloadId}/policies';
/** `{policy_type}` of section 4.8 read as one segment. */
const short = '/payloads/{payloadId}';
const update = ['payload.update', 'payload.update.all'] as const;
const read = ['payload.read', 'payload.read.all'] as const;

export function policyEndpoints(parts: PayloadParts, users: Users): Endpoint[] {
  return [
    ...userAuthorizations(parts, users),
    ...groupAuthorizations(parts, users),
    ...accessWindows(parts),
    revocation(parts),
    owner(parts, users),
    ...excludedCountries(parts),
  ];
}

/**
 * Changes the payload and logs the change in one transaction; the record shows the payload after
 * the change.
 */
function change<Body extends { userNetwork?: CallerNetwork | undefined }>(
  { data, payloads, feed }: PayloadParts,
  { caller, body, peer }: Call<unknown, Body>,
  { payloadId }: Payload,
  work: () => Combination | undefined,
): Payload {
  return data.transaction(() => {
    const combination = work();
    const after = payloads.find(payloadId);
    if (!after) throw new Error(`payload ${payloadId} does not exist any more`);
    if (combination) logAction(feed, combination, caller, after, body.userNetwork?.shown ?? networkOfPeer(peer));
    return after;
  });
}

function userAuthorizations(parts: PayloadParts, users: Users): Endpoint[] {
  const { policies } = parts;
  return [
    endpoint({
      method: 'POST',
      path: `${base}/user-authorizations`,
      alias: `${short}/user-authorizations`,
      summary: 'Authorizes one user to open a payload',
      permissions: update,
      body: shapes.userAuthorization,
      answers: { 200: shapes.listedUserAuthorization },
      refusals: [404, 409],
      answer(call) {
        const payload = changeable(parts, call.caller, call.params['payloadId']);
        const { payloadId } = payload;
        const { userId } = known(users, call.body.userId);
        if (userId === payload.owner.userId) throw new Problem(409, 'The user is the owner, who needs no authorization');
        change(parts, call, payload, () =>
          combinationOf('AuthorisedUserAccess', policies.authorizeUser(payloadId, userId, call.body.accessLevel)),
        );
        return json(
          200,
          policies.userAuthorizations(payloadId).find((each) => each.userId === userId),
        );
      },
    }),
    endpoint({
      method: 'GET',
      path: `${base}/user-authorizations`,
      summary: 'The users who were authorized',
      permissions: read,
      answers: { 200: z.array(shapes.listedUserAuthorization) },
      refusals: [404],
      answer: ({ caller, params }) => json(200, policies.userAuthorizations(readable(parts, caller, params['payloadId']).payloadId)),
    }),
  ];
}

function groupAuthorizations(parts: PayloadParts, users: Users): Endpoint[] {
  const { policies } = parts;
  return [
    endpoint({
      method: 'POST',
      path: `${base}/group-authorizations`,
      alias: `${short}/group-authorizations`,
      summary: 'Authorizes one group to open a payload',
      permissions: update,
      body: shapes.groupAuthorization,
      answers: { 200: shapes.listedGroupAuthorization },
      refusals: [404],
      answer(call) {
        const payload = changeable(parts, call.caller, call.params['payloadId']);
        const { payloadId } = payload;
        const { groupId, accessLevel } = call.body;
        knownGroup(users, groupId);
        change(parts, call, payload, () =>
          combinationOf('AuthorisedGroupAccess', policies.authorizeGroup(payloadId, groupId, accessLevel)),
        );
        return json(
          200,
          policies.groupAuthorizations(payloadId).find((each) => each.groupId === groupId),
        );
      },
    }),
    endpoint({
      method: 'GET',
      path: `${base}/group-authorizations`,
      summary: 'The groups that were authorized',
      permissions: read,
      answers: { 200: z.array(shapes.listedGroupAuthorization) },
      refusals: [404],
      answer: ({ caller, params }) => json(200, policies.groupAuthorizations(readable(parts, caller, params['payloadId']).payloadId)),
    }),
  ];
}

function accessWindows(parts: PayloadParts): Endpoint[] {
  const { policies } = parts;
  return [
    endpoint({
      method: 'POST',
      path: `${base}/access-windows`,
      alias: `${short}/access-windows`,
      summary: 'Sets when and where a payload may be opened',
      permissions: update,
      body: shapes.rulesChange,
      answers: { 200: shapes.rules },
      refusals: [404],
      answer(call) {
        const payload = changeable(parts, call.caller, call.params['payloadId']);
        const { accessWindows, allowedAreas } = call.body;
        const rules = { ...(accessWindows && { accessWindows }), ...(allowedAreas && { allowedAreas }) };
        change(parts, call, payload, () => combinationOf('AccessWindow', policies.changeRules(payload.payloadId, rules)));
        return json(200, policies.rules(payload.payloadId));
      },
    }),
    endpoint({
      method: 'GET',
      path: `${base}/access-windows`,
      summary: 'When and where a payload may be opened',
      permissions: read,
      answers: { 200: shapes.rules },
      refusals: [404],
      answer: ({ caller, params }) => json(200, policies.rules(readable(parts, caller, params['payloadId']).payloadId)),
    }),
  ];
}

function revocation(parts: PayloadParts): Endpoint {
  return endpoint({
    method: 'POST',
    path: `${base}/revocation`,
    alias: `${short}/revocation`,
    summary: 'Revokes or restores a payload, or one authorization',
    permissions: update,
    body: shapes.revocation,
    answers: { 200: payloadShape },
    refusals: [404],
    answer(call) {
      const payload = changeable(parts, call.caller, call.params['payloadId']);
      const after = change(parts, call, payload, () =>
        revoke(parts, payload, call.body) ? ['Audit', 'RevokeAccess', 'Changed'] : undefined,
      );
      return json(200, payloadShown(after));
    },
  });
}

function owner(parts: PayloadParts, users: Users): Endpoint {
  const { payloads, policies } = parts;
  return endpoint({
    method: 'POST',
    path: `${base}/owner`,
    alias: `${short}/owner`,
    summary: 'Gives a payload to another owner',
    permissions: update,
    body: shapes.newOwner,
    answers: { 200: payloadShape },
    refusals: [404],
    answer(call) {
      const payload = changeable(parts, call.caller, call.params['payloadId'], true);
      const { userId } = known(users, call.body.userId);
      const after = change(parts, call, payload, () => {
        if (userId === payload.owner.userId) return undefined;
        payloads.setOwner(payload.payloadId, userId);
        policies.forgetUser(payload.payloadId, userId);
        return ['Audit', 'AuthorChanged', 'Changed'];
      });
      return json(200, payloadShown(after));
    },
  });
}

function excludedCountries({ policies }: PayloadParts): Endpoint[] {
  const path = '/organization/policies/excluded-countries';
  return [
    endpoint({
      method: 'GET',
      path,
      summary: 'The countries in which nobody of the organization may protect or open',
      permissions: ['organization.read'],
      answers: { 200: shapes.excludedCountries },
      answer: () => json(200, { excludedCountries: policies.excludedCountries() }),
    }),
    endpoint({
      method: 'POST',
      path,
      summary: 'Sets the countries in which nobody of the organization may protect or open',
      permissions: ['organization.update'],
      body: shapes.excludedCountries,
      answers: { 200: shapes.excludedCountries },
      answer({ body }) {
        policies.excludeCountries(body.excludedCountries);
        return json(200, { excludedCountries: policies.excludedCountries() });
      },
    }),
  ];
}

function combinationOf(
  result: 'AuthorisedUserAccess' | 'AuthorisedGroupAccess' | 'AccessWindow',
  changed: Change,
): Combination | undefined {
  return changed && ['Audit', result, changed];
}

/** @returns true when this changes something. @throws Problem 404 for an unknown authorization */
function revoke({ payloads, policies }: PayloadParts, payload: Payload, body: z.infer<typeof shapes.revocation>): boolean {
  const { isRevoked, userId, groupId } = body;
  if (userId === undefined && groupId === undefined) {
    if (payload.isRevoked === isRevoked) return false;
    payloads.setRevoked(payload.payloadId, isRevoked);
    return true;
  }
  const [side, id] = userId === undefined ? (['group', groupId ?? ''] as const) : (['user', userId] as const);
  const { found, change } = policies.revoke(side, payload.payloadId, id, isRevoked);
  if (!found) throw new Problem(404, `This ${side} was not authorized`);
  return change !== undefined;
}
