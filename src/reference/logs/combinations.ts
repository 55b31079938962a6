/**
 * The table of specification 2.8. A record of what people do is made from one of these and from nothing else: another combination of action,
 * result and reason is an error of types.
 */

/** Each combination, with how often it occurs among a thousand records that nobody caused. */
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

/** Action, result and reason that belong together. */
export type Combination = CombinationOf<(typeof combinations)[number]>;

/** Why an action is denied, or how a policy was changed. */
export type ReasonOf<Action, Result> = Extract<Combination, readonly [Action, Result, unknown]>[2];
