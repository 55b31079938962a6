/**
 * The combinations that the specification lists. Records have only these combinations of action, result and
 * reason; the type checker refuses any other.
 */

/** Each combination, with its frequency per thousand generated records. */
export const combinations = [
  ['Encrypt', 'AccessGranted', 'Success', 180],
  ['Encrypt', 'AccessDenied', 'GeoValidationCountryExclusionFailed', 10],
  ['Decrypt', 'AccessGranted', 'Success', 450],
  ['Decrypt', 'AccessDenied', 'GeoValidationCountryExclusionFailed', 20],
  ['Decrypt', 'AccessDenied', 'TimeEmbargoFailed', 40],
  ['Decrypt', 'AccessDenied', 'UserPayloadNoAccess', 70],
  ['Decrypt', 'AccessDenied', 'GeoValidationFailed', 30],
  ['Audit', 'AccessWindow', 'Changed', 20],
  ['Audit', 'AccessWindow', 'Created', 30],
  ['Audit', 'RevokeAccess', 'Changed', 25],
  ['Audit', 'AuthorisedGroupAccess', 'Changed', 10],
  ['Audit', 'AuthorisedGroupAccess', 'Created', 20],
  ['Audit', 'AuthorisedUserAccess', 'Changed', 20],
  ['Audit', 'AuthorisedUserAccess', 'Created', 45],
  ['Audit', 'AuthorChanged', 'Changed', 10],
  ['EncryptionRequest', 'AccessDenied', 'GeoValidationCountryExclusionFailed', 10],
  ['EncryptionRequest', 'AccessDenied', 'GeoValidationFailed', 10],
] as const;

type CombinationOf<Row> = Row extends readonly [infer Action, infer Result, infer Reason, number]
  ? readonly [action: Action, result: Result, reason: Reason]
  : never;

export type Combination = CombinationOf<(typeof combinations)[number]>;

/** Why an action is denied, or how a policy was changed. */
export type ReasonOf<Action, Result> = Extract<Combination, readonly [Action, Result, unknown]>[2];
