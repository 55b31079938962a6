/**
 * Says whether an action goes on, and tells the log: a refusal is written before it is answered with 403 and its reason, a success in the
 * transaction of what it changes. Also the rows of a payload that a caller may read and change.
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

/** The rooms that an action on a payload goes through. */
export interface PayloadRooms {
  readonly data: DataFile;
  readonly payloads: Payloads;
  readonly policies: Policies;
  readonly feed: Feed;
}

/** What a record names of a payload. */
type Subject = Pick<Payload, 'payloadId' | 'owner' | 'fileName' | 'fileType'>;

export function tell(feed: Feed, combination: Combination, user: User, subject: Subject, network: UserNetwork): void {
  const { payloadId, owner, fileName, fileType } = subject;
  feed.tell({ combination, user, payload: { id: payloadId, name: fileName + fileType, owner }, network });
}

/** Access is denied for this reason: 403. */
export function denied(reason: string): Problem {
  return new Problem(403, `Access is denied: ${reason}`, { reason });
}

/** @throws Problem 404, 403 when the caller may not read this payload */
export function readable({ payloads, policies }: PayloadRooms, caller: User, payloadId = ''): Payload {
  const payload = known(payloads, payloadId);
  const may =
    allows(caller.roles, 'payload.read.all') ||
    (allows(caller.roles, 'payload.read') && policies.levelOf(payload, caller.userId) !== undefined);
  if (!may) throw new Problem(403, 'The caller is neither the owner nor authorized, and payload.read.all is not held');
  return payload;
}

/** @throws Problem 404, 403 when the caller may not change the policies of this payload */
export function changeable({ payloads, policies }: PayloadRooms, caller: User, payloadId = '', byOwnerAlone = false): Payload {
  const payload = known(payloads, payloadId);
  const own = byOwnerAlone ? payload.owner.userId === caller.userId : policies.levelOf(payload, caller.userId) === 'FullAccess';
  const may = allows(caller.roles, 'payload.update.all') || (allows(caller.roles, 'payload.update') && own);
  const who = byOwnerAlone ? 'not the owner' : 'neither the owner nor authorized with FullAccess';
  if (!may) throw new Problem(403, `The caller is ${who}, and payload.update.all is not held`);
  return payload;
}

function known(payloads: Payloads, payloadId: string): Payload {
  const payload = payloads.find(payloadId);
  if (!payload) throw new Problem(404, `There is no payload ${JSON.stringify(payloadId)}`);
  return payload;
}
