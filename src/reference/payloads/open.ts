/**
 * Opens a protected file: in the service, or elsewhere with the data key, which
 * requires FullAccess. The order: authenticate the header, evaluate the policies, authenticate the
 * content, log the success, respond.
 */
import type { z } from 'zod';
import { bytesOf } from '../http/base64.ts';
import { json, jsonWithFile, type Call } from '../http/endpoint.ts';
import { badField } from '../http/problem.ts';
import type { Answer } from '../http/faults.ts';
import { refusalOfOpening } from '../policies/evaluate.ts';
import { denied, logAction, type PayloadParts } from '../policies/authorize.ts';
import type { CallerNetwork } from '../policies/network.ts';
import type { AccessLevel } from '../policies/shapes.ts';
import type { SwitchValues } from '../switches.ts';
import { dataKeyOf, headerOf, NotAuthentic, openedWith, overheadBytesMax, type Header } from './container.ts';
import type { Payload } from './payloads.ts';
import { fileTooLarge } from './protect.ts';
import { payloadShown, type openLocal, type openRemote } from './shapes.ts';

type RemoteCall = Call<unknown, z.infer<typeof openRemote>>;
type LocalCall = Call<unknown, z.infer<typeof openLocal>>;

interface Found {
  readonly payload: Payload;
  readonly header: Header;
  readonly dataKey: Buffer;
}

/** The service decrypts: 200 with the content. */
export function answerOpenRemote(parts: PayloadParts, values: SwitchValues, call: RemoteCall): Answer {
  const { body, caller } = call;
  const container = bytesOf('base64FileData', body.base64FileData, call.files);
  if (container.length > values.fileMax + overheadBytesMax) throw fileTooLarge(values);
  const { payload, header, dataKey } = authentic('base64FileData', () => found(parts, container));
  authorize(parts, call, payload, 'View');
  const content = authentic('base64FileData', () => openedWith(dataKey, header, container));
  logAction(parts.feed, ['Decrypt', 'AccessGranted', 'Success'], caller, payload, body.userNetwork.shown);
  return jsonWithFile(200, { payload: payloadShown(payload) }, content);
}

/**
 * The caller decrypts: it sends only the header of the container, and receives 200 with the data
 * key.
 */
export function answerOpenLocal(parts: PayloadParts, call: LocalCall): Answer {
  const { body, caller } = call;
  const given = bytesOf('base64Header', body.base64Header, call.files);
  const { payload, header, dataKey } = authentic('base64Header', () => found(parts, given));
  if (header.bytes.length < given.length) throw badField('base64Header', 'is longer than the header of a protected file');
  authorize(parts, call, payload, 'FullAccess');
  logAction(parts.feed, ['Decrypt', 'AccessGranted', 'Success'], caller, payload, body.userNetwork.shown);
  return json(200, { payload: payloadShown(payload), accessLevel: 'FullAccess', base64DataKey: dataKey.toString('base64') });
}

/**
 * @throws NotAuthentic also for an unknown payload: the container is from another service, or its
 * id was changed
 */
function found({ payloads }: PayloadParts, container: Buffer): Found {
  const header = headerOf(container);
  const payload = payloads.find(header.payloadId);
  if (!payload) throw new NotAuthentic('it is from another service, or its id was changed');
  return { payload, header, dataKey: dataKeyOf(header, payload.key) };
}

/** @throws Problem 403 with the reason, after logging it */
function authorize(parts: PayloadParts, call: RemoteCall | LocalCall, payload: Payload, needed: AccessLevel): void {
  const { policies, feed } = parts;
  const { userNetwork }: { userNetwork: CallerNetwork } = call.body;
  const reason = refusalOfOpening({
    excludedCountries: policies.excludedCountries(),
    isRevoked: payload.isRevoked,
    level: policies.levelOf(payload, call.caller.userId),
    needed,
    rules: policies.rules(payload.payloadId),
    place: userNetwork.place,
    now: Date.now(),
  });
  if (!reason) return;
  logAction(feed, ['Decrypt', 'AccessDenied', reason], call.caller, payload, userNetwork.shown);
  throw denied(reason);
}

function authentic<T>(field: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof NotAuthentic) throw badField(field, `is not an unchanged protected file of this service: ${error.message}`);
    throw error;
  }
}
