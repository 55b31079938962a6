/**
 * Reads the fields of one record as text, and notes what is odd about them: docs/formats.md, "Unexpected records". Nothing after this looks at
 * the record again.
 */
import type { JsonValue } from '../model/record.ts';
import type { MainField, NetworkField, PersonalField } from '../record/fields.ts';
import { isAbsent, isRawNumber, type JsonObject, objectOf, textOf } from '../record/json.ts';

/** The fields of a record by name, those of `userNetwork` among them; undefined is what is absent, or no text. */
export type Fields = Readonly<Record<MainField | PersonalField | NetworkField, string | undefined>> & {
  /** One of the nine fields is not there although nobody asked for that. */
  readonly missing: boolean;
  /** A value was not of the type that the specification gives it. */
  readonly unexpected: boolean;
};

/** @param dropped  fields that a privacy rule took away: their absence is not odd */
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
  // The flags are known only now that every field was read.
  fields.missing = missing;
  fields.unexpected = unexpected;
  return fields;
}
