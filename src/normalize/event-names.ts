/** Maps fields of an event to fields of the record (docs/formats.md), for hints when a setting names the wrong one. */
import type { FieldPath } from '../record/fields.ts';

export const recordFields: ReadonlyMap<string, FieldPath> = new Map<string, FieldPath>([
  ['event.id', 'logId'],
  ['event.action', 'actionAttempted'],
  ['event.outcome', 'result'],
  ['event.reason', 'resultReason'],
  ['user.id', 'userId'],
  ['user.email', 'userEmailAddress'],
  ['user.full_name', 'userLastNameFirstName'],
  ['file.name', 'payloadName'],
  ['file.uid', 'currentPayloadOwnerId'],
  ['source.ip', 'userNetwork.ipAddress'],
  ['source.mac', 'userNetwork.mac'],
  ['host.hostname', 'userNetwork.machineName'],
  ['host.name', 'userNetwork.machineName'],
  ['network.name', 'userNetwork.networkName'],
  ['dpas.action_attempted', 'actionAttempted'],
  ['dpas.result', 'result'],
  ['dpas.result_reason', 'resultReason'],
  ['dpas.payload.id', 'payloadId'],
  ['dpas.payload.name', 'payloadName'],
  ['dpas.owner.id', 'currentPayloadOwnerId'],
  ['dpas.owner.email', 'currentOwnerEmailAddress'],
]);
