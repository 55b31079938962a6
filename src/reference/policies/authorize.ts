/**
 * Authorizes actions and logs them: a denial before the response 403 with its reason, a success in
 * the transaction of its change. Also checks access to the payload for reading and changing it.
 */
import type { DataFile } from '../data-file.ts';
import { Problem } from '../http/problem.ts';
import type { Combination } from '../logs/combinations.ts';
import type { Feed } from '../logs/feed.ts';
import type { UserNetwork } from '../logs/network.ts';
import { allows } from '../people/roles.ts';
import type { User } from '../people/users.ts';
import type { Payload, Payloads } from '../payloads/payloads.ts';
import type { Policies } from './policies.ts';

/** The parts of the service that an action on a payload needs. */
export interface PayloadParts {
  readonly data: DataFile;
  readonly payloads: Payloads;
  readonly policies: Policies;
  readonly feed: Feed;
}

/** The fields of a payload in a record. */
type Subject = Pick<Payload, 'payloadId' | 'owner' | 'fileName' | 'fileType'>;

export function logAction(feed: Feed, combination: Combination, user: User, subject: Subject, network: UserNetwork): void {
  const { payloadId, owner, fileName, fileType } = subject;
  feed.addAction({ combination, user, payload: { id: payloadId, name: fileName + fileType, owner }, network });
}

export function denied(reason: string): Problem {
  return new Problem(403, `Access is denied: ${reason}`, { reason });
}

/** @throws Problem 404, 403 if the caller must not read this payload */
export function readable({ payloads, policies }: PayloadParts, caller: User, payloadId = ''): Payload {
  const payload = known(payloads, payloadId);
  const may =
    allows(caller.roles, 'payload.read.all') ||
    (allows(caller.roles, 'payload.read') && policies.levelOf(payload, caller.userId) !== undefined);
  if (!may) throw new Problem(403, 'The caller is neither the owner nor authorized, and lacks payload.read.all');
  return payload;
}

/** @throws Problem 404, 403 if the caller must not change the policies of this payload */
export function changeable({ payloads, policies }: PayloadParts, caller: User, payloadId = '', byOwnerAlone = false): Payload {
  const payload = known(payloads, payloadId);
  const own = byOwnerAlone ? payload.owner.userId === caller.userId : policies.levelOf(payload, caller.userId) === 'FullAccess';
  const may = allows(caller.roles, 'payload.update.all') || (allows(caller.roles, 'payload.update') && own);
  const who = byOwnerAlone ? 'not the owner' : 'neither the owner nor authorized with FullAccess';
  if (!may) throw new Problem(403, `The caller is ${who}, and lacks payload.update.all`);
  return payload;
}

function known(payloads: Payloads, payloadId: string): Payload {
  const payload = payloads.find(payloadId);
  if (!payload) throw new Problem(404, `The payload ${JSON.stringify(payloadId)} does not exist`);
  return payload;
}
