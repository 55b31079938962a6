/**
 * The ECS mapping of the 17 combinations of action, result and reason that the service documents; unknown.ts maps others. Severities are
 * our choice: 7 for an attempt to open without permission or from a blocked country, 5 and 6 for other denials and a change of owner.
 */

export type EventOutcome = 'success' | 'failure' | 'unknown';

/** The mapping of a triple of actionAttempted, result and resultReason. */
export interface Outcome {
  readonly code: string;
  /** Undefined for an unknown action. */
  readonly category: readonly string[] | undefined;
  readonly type: readonly string[] | undefined;
  readonly action: string;
  readonly outcome: EventOutcome;
  readonly severity: number;
  readonly name: string;
}

interface OutcomeRow extends Outcome {
  readonly actionAttempted: string;
  readonly result: string;
  readonly resultReason: string;
}

const file = ['file'];
const configuration = ['configuration'];
const rights = ['configuration', 'iam'];

/** The table of docs/formats.md, "Outcomes", row by row. */
export const outcomes: readonly OutcomeRow[] = [
  row('Encrypt', 'AccessGranted', 'Success', file, 'creation', 'file-encrypt', 'success', 1, 'File protection allowed'),
  row(
    'Encrypt',
    'AccessDenied',
    'GeoValidationCountryExclusionFailed',
    file,
    'creation',
    'file-encrypt',
    'failure',
    6,
    'File protection denied',
  ),
  row('Decrypt', 'AccessGranted', 'Success', file, 'access', 'file-decrypt', 'success', 1, 'Protected file open allowed'),
  row(
    'Decrypt',
    'AccessDenied',
    'GeoValidationCountryExclusionFailed',
    file,
    'access',
    'file-decrypt',
    'failure',
    7,
    'Protected file open denied',
  ),
  row('Decrypt', 'AccessDenied', 'TimeEmbargoFailed', file, 'access', 'file-decrypt', 'failure', 5, 'Protected file open denied'),
  row('Decrypt', 'AccessDenied', 'UserPayloadNoAccess', file, 'access', 'file-decrypt', 'failure', 4, 'Protected file open denied'),
  row('Decrypt', 'AccessDenied', 'GeoValidationFailed', file, 'access', 'file-decrypt', 'failure', 6, 'Protected file open denied'),
  row('Audit', 'AccessWindow', 'Changed', configuration, 'change', 'access-window-changed', 'success', 3, 'Access window changed'),
  row('Audit', 'AccessWindow', 'Created', configuration, 'creation', 'access-window-created', 'success', 2, 'Access window created'),
  // The record does not show the new value of the flag, so this is a change and never a deletion.
  row('Audit', 'RevokeAccess', 'Changed', rights, 'change', 'access-revocation-changed', 'success', 4, 'Access revocation changed'),
  row('Audit', 'AuthorisedGroupAccess', 'Changed', rights, 'change', 'group-access-changed', 'success', 4, 'Group authorization changed'),
  row('Audit', 'AuthorisedGroupAccess', 'Created', rights, 'creation', 'group-access-created', 'success', 4, 'Group authorization created'),
  row('Audit', 'AuthorisedUserAccess', 'Changed', rights, 'change', 'user-access-changed', 'success', 3, 'User authorization changed'),
  row('Audit', 'AuthorisedUserAccess', 'Created', rights, 'creation', 'user-access-created', 'success', 3, 'User authorization created'),
  row('Audit', 'AuthorChanged', 'Changed', rights, 'change', 'owner-changed', 'success', 5, 'File owner changed'),
  row(
    'EncryptionRequest',
    'AccessDenied',
    'GeoValidationCountryExclusionFailed',
    file,
    'creation',
    'file-encrypt-request',
    'failure',
    6,
    'File protection request denied',
  ),
  row(
    'EncryptionRequest',
    'AccessDenied',
    'GeoValidationFailed',
    file,
    'creation',
    'file-encrypt-request',
    'failure',
    5,
    'File protection request denied',
  ),
];

export const outcomeCodes: readonly string[] = outcomes.map((outcome) => outcome.code);

/** Severities and names that override the table, by outcome code. */
export interface OutcomeOverrides {
  readonly severity: Readonly<Record<string, number | undefined>>;
  readonly names: Readonly<Record<string, string | undefined>>;
}

export function outcomesByCode({ severity, names }: OutcomeOverrides): ReadonlyMap<string, Outcome> {
  return new Map(
    outcomes.map((outcome) => {
      const { code } = outcome;
      return [code, { ...outcome, severity: severity[code] ?? outcome.severity, name: names[code] ?? outcome.name }];
    }),
  );
}

function row(
  actionAttempted: string,
  result: string,
  resultReason: string,
  category: readonly string[],
  type: string,
  action: string,
  outcome: EventOutcome,
  severity: number,
  name: string,
): OutcomeRow {
  const code = `${actionAttempted}:${result}:${resultReason}`;
  return { actionAttempted, result, resultReason, code, category, type: [type], action, outcome, severity, name };
}
