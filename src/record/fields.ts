/** The fields of a log record. Settings that name fields (privacy rules, `filter`) are checked against these lists. */

/** The nine fields of every record, in the order of the specification. Each may be absent all the same. */
const mainFields = [
  'logId',
  'userId',
  'payloadId',
  'payloadName',
  'currentPayloadOwnerId',
  'actionAttempted',
  'result',
  'resultReason',
  'logTimestamp',
] as const;

/** The four fields of the full-payload record, all personal data. */
export const personalFields = [
  'userLastNameFirstName',
  'userEmailAddress',
  'currentOwnerLastNameFirstName',
  'currentOwnerEmailAddress',
] as const;

const networkFields = [
  'ipAddress',
  'networkName',
  'networkId',
  'domainName',
  'deviceType',
  'machineName',
  'mac',
  'uuid',
  'serviceProvider',
  'latLong',
  'address',
] as const;

/** The fields for identity and meaning: no privacy rule may name these. */
export const meaningFields = ['logId', 'logTimestamp', 'actionAttempted', 'result', 'resultReason'] as const;

type MainField = (typeof mainFields)[number];
export type PersonalField = (typeof personalFields)[number];
type NetworkField = (typeof networkFields)[number];

/** A field as a setting names it: `userId`, `userNetwork`, `userNetwork.ipAddress`. */
export type FieldPath = MainField | PersonalField | 'userNetwork' | `userNetwork.${NetworkField}`;

/** Every field that a setting can name. The fields of `userNetwork` follow it. */
export const fieldPaths: readonly FieldPath[] = [
  ...mainFields,
  ...personalFields,
  'userNetwork',
  ...networkFields.map((field): FieldPath => `userNetwork.${field}`),
];

/** The numbers of the fields: their places in `fieldPaths`. The fields of `userNetwork` have their short names. */
export const fieldNumbers = Object.fromEntries(fieldPaths.map((path, number) => [path.slice(path.indexOf('.') + 1), number])) as Readonly<
  Record<MainField | PersonalField | 'userNetwork' | NetworkField, number>
>;
