/**
 * The types that exclude every other combination from the log, compared with a second copy of the
 * table of section 2.8.
 */
import { expect, test } from 'vitest';
import { combinations, type Combination, type ReasonOf } from '../../src/reference/logs/combinations.ts';

test('the combinations are the seventeen of section 2.8', () => {
  const table: Record<string, Record<string, string[]>> = {
    Encrypt: { AccessGranted: ['Success'], AccessDenied: ['GeoValidationCountryExclusionFailed'] },
    Decrypt: {
      AccessGranted: ['Success'],
      AccessDenied: ['GeoValidationCountryExclusionFailed', 'TimeEmbargoFailed', 'UserPayloadNoAccess', 'GeoValidationFailed'],
    },
    Audit: {
      AccessWindow: ['Changed', 'Created'],
      RevokeAccess: ['Changed'],
      AuthorisedGroupAccess: ['Changed', 'Created'],
      AuthorisedUserAccess: ['Changed', 'Created'],
      AuthorChanged: ['Changed'],
    },
    EncryptionRequest: { AccessDenied: ['GeoValidationCountryExclusionFailed', 'GeoValidationFailed'] },
  };
  const rows = Object.entries(table).flatMap(([action, results]) =>
    Object.entries(results).flatMap(([result, reasons]) => reasons.map((reason) => [action, result, reason])),
  );
  expect(rows).toHaveLength(17);
  expect(combinations.map((row) => row.slice(0, 3))).toEqual(expect.arrayContaining(rows));
  expect(combinations).toHaveLength(17);
});

test('another one is a type error, which npm run typecheck finds', () => {
  const right: Combination[] = [
    ['Decrypt', 'AccessDenied', 'TimeEmbargoFailed'],
    // @ts-expect-error -- protecting knows no time
    ['Encrypt', 'AccessDenied', 'TimeEmbargoFailed'],
    // @ts-expect-error -- an owner is not created
    ['Audit', 'AuthorChanged', 'Created'],
    // @ts-expect-error -- a granted request is an Encrypt
    ['EncryptionRequest', 'AccessGranted', 'Success'],
    // @ts-expect-error -- a revocation is never created
    ['Audit', 'RevokeAccess', 'Created'],
  ];
  // @ts-expect-error -- an opening has no such reason
  const reason: ReasonOf<'Decrypt', 'AccessDenied'> = 'Changed';
  expect([right.length, reason]).toEqual([5, 'Changed']);
});
