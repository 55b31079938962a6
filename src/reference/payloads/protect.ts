/**
 * Protects a file: in the service, or elsewhere with a data key that the
 * service returns once.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { z } from 'zod';
import { bytesOf } from '../http/base64.ts';
import { json, jsonWithFile, type Call } from '../http/endpoint.ts';
import type { Answer } from '../http/faults.ts';
import { Problem } from '../http/problem.ts';
import { dateText } from '../http/shapes.ts';
import { refusalOfProtecting, refusalOfRequest } from '../policies/evaluate.ts';
import { denied, logAction, type PayloadParts } from '../policies/authorize.ts';
import type { SwitchValues } from '../switches.ts';
import { keyBytes, newHeader, sealed } from './container.ts';
import type { Payload } from './payloads.ts';
import { dateOf, namesOf, payloadShown, type protectLocal, type protectRemote } from './shapes.ts';

type RemoteCall = Call<unknown, z.infer<typeof protectRemote>>;
type LocalCall = Call<unknown, z.infer<typeof protectLocal>>;

/** The service encrypts: 201 with the container. */
export function answerProtectRemote(parts: PayloadParts, values: SwitchValues, call: RemoteCall): Answer {
  const { body, caller } = call;
  const content = bytesOf('base64FileData', body.base64FileData, call.files);
  if (content.length > values.fileMax) throw fileTooLarge(values);
  const payload = newPayload(call);
  const { data, payloads, policies, feed } = parts;
  const reason = refusalOfProtecting(policies.excludedCountries(), body.userNetwork.place);
  if (reason) {
    logAction(feed, ['Encrypt', 'AccessDenied', reason], caller, payload, body.userNetwork.shown);
    throw denied(reason);
  }
  const { header, dataKey } = newHeader(payload.payloadId, payload.key, rulesOf(payload, []));
  const container = sealed(header, dataKey, content);
  data.transaction(() => {
    payloads.add(payload);
    logAction(feed, ['Encrypt', 'AccessGranted', 'Success'], caller, payload, body.userNetwork.shown);
  });
  return jsonWithFile(201, { payload: payloadShown(payload) }, container);
}

/** The caller encrypts: 201 with the header of the container, and the data key for one content. */
export function answerProtectLocal(parts: PayloadParts, call: LocalCall): Answer {
  const { body, caller } = call;
  const { allowedAreas } = body;
  const payload = newPayload(call, body.originalFileCreatedDate);
  const { data, payloads, policies, feed } = parts;
  const reason = refusalOfRequest(policies.excludedCountries(), allowedAreas, body.userNetwork.place);
  if (reason) {
    logAction(feed, ['EncryptionRequest', 'AccessDenied', reason], caller, payload, body.userNetwork.shown);
    throw denied(reason);
  }
  const { header, dataKey } = newHeader(payload.payloadId, payload.key, rulesOf(payload, allowedAreas));
  data.transaction(() => {
    payloads.add(payload);
    if (allowedAreas.length > 0) policies.changeRules(payload.payloadId, { allowedAreas });
    logAction(feed, ['Encrypt', 'AccessGranted', 'Success'], caller, payload, body.userNetwork.shown);
  });
  return json(201, {
    payload: payloadShown(payload),
    base64Header: header.toString('base64'),
    base64DataKey: dataKey.toString('base64'),
  });
}

export function fileTooLarge({ fileMax }: SwitchValues): Problem {
  return new Problem(413, `The file is larger than ${fileMax} bytes`, { parameter: 'base64FileData' });
}

/** Logs a denied attempt with the payload that it would have created. */
function newPayload(call: RemoteCall | LocalCall, fileCreated?: string): Payload {
  const createdDate = dateText(Date.now());
  return {
    ...namesOf(call.body),
    payloadId: randomUUID(),
    owner: call.caller,
    fileCreatedDate: fileCreated === undefined ? createdDate : dateOf(fileCreated),
    createdDate,
    isRevoked: false,
    key: randomBytes(keyBytes),
  };
}

/** The rules in a new container. */
function rulesOf(payload: Payload, allowedAreas: readonly unknown[]): unknown {
  const { owner, fileType, fileName, createdDate } = payload;
  return { ownerId: owner.userId, fileType, originalFileName: fileName, payloadCreateDate: createdDate, allowedAreas };
}
