/**
 * Reads the fields of a record as text and notes unexpected ones: docs/formats.md, "Unexpected
 * records". Later steps do not use the record.
 */
import type { JsonValue } from '../model/record.ts';
import type { MainField, NetworkField, PersonalField } from '../record/fields.ts';
import { isAbsent, isRawNumber, type JsonObject, objectOf, textOf } from '../record/json.ts';

/** The fields of a record by name, including the fields of `userNetwork`; undefined when absent or not text. */
export type Fields = Readonly<Record<MainField | PersonalField | NetworkField, string | undefined>> & {
  /** True if one of the nine main fields is absent and no privacy rule dropped it. */
  readonly missing: boolean;
  /** True if a value has another type than in the specification. */
  readonly unexpected: boolean;
};

/** @param dropped  fields that a privacy rule removed: their absence is not unexpected */
export function readFields(record: JsonObject, dropped: ReadonlySet<string>): Fields {
  let missing = false;
  let unexpected = false;
  const network = objectOf(record.userNetwork);
  if (network === undefined && !isAbsent(record.userNetwork)) unexpected = true;

  const main = (field: MainField, integer = false): string | undefined => {
    const value = record[field];
    if (typeof value !== 'string' && value !== undefined && value !== null) {
      unexpected ||= !(integer && (typeof value === 'number' || isRawNumber(value)));
    } else if (isAbsent(value)) {
      missing ||= !dropped.has(field);
    }
    return textOf(value);
  };
  const optional = (value: JsonValue | undefined): string | undefined => {
    if (value === undefined) return undefined;
    unexpected ||= typeof value !== 'string' && value !== null;
    return textOf(value);
  };

  const fields = {
    logId: main('logId', true),
    userId: main('userId'),
    payloadId: main('payloadId'),
    payloadName: main('payloadName'),
    currentPayloadOwnerId: main('currentPayloadOwnerId'),
    actionAttempted: main('actionAttempted'),
    result: main('result'),
    resultReason: main('resultReason'),
    logTimestamp: main('logTimestamp'),
    userLastNameFirstName: optional(record.userLastNameFirstName),
    userEmailAddress: optional(record.userEmailAddress),
    currentOwnerLastNameFirstName: optional(record.currentOwnerLastNameFirstName),
    currentOwnerEmailAddress: optional(record.currentOwnerEmailAddress),
    ipAddress: optional(network?.ipAddress),
    networkName: optional(network?.networkName),
    networkId: optional(network?.networkId),
    domainName: optional(network?.domainName),
    deviceType: optional(network?.deviceType),
    machineName: optional(network?.machineName),
    mac: optional(network?.mac),
    uuid: optional(network?.uuid),
    serviceProvider: optional(network?.serviceProvider),
    latLong: optional(network?.latLong),
    address: optional(network?.address),
    missing: false,
    unexpected: false,
  };
  // The flags are known only after every field was read.
  fields.missing = missing;
  fields.unexpected = unexpected;
  return fields;
}
