/**
 * Records for tests: the combinations of action, result and reason, with the meaning that docs/formats.md gives
 * each row, written a second time, and records in each form that permissions cause.
 */
import type { FieldPath } from '../../../src/record/fields.ts';
import type { NormalizeSettings } from '../../../src/normalize/normalizer.ts';
import type { ReceivedRecord } from '../../../src/record/event.ts';
import { identify } from '../../../src/record/identity.ts';
import { readText } from '../../../src/record/read.ts';

interface Row {
  readonly triple: readonly [action: string, result: string, reason: string];
  readonly category: readonly string[];
  readonly type: string;
  readonly action: string;
  readonly outcome: string;
  readonly severity: number;
  readonly name: string;
}

const table = `
Encrypt           AccessGranted         Success                             file               creation file-encrypt              success 1 File protection allowed
Encrypt           AccessDenied          GeoValidationCountryExclusionFailed file               creation file-encrypt              failure 6 File protection denied
Decrypt           AccessGranted         Success                             file               access   file-decrypt              success 1 Protected file open allowed
Decrypt           AccessDenied          GeoValidationCountryExclusionFailed file               access   file-decrypt              failure 7 Protected file open denied
Decrypt           AccessDenied          TimeEmbargoFailed                   file               access   file-decrypt              failure 5 Protected file open denied
Decrypt           AccessDenied          UserPayloadNoAccess                 file               access   file-decrypt              failure 4 Protected file open denied
Decrypt           AccessDenied          GeoValidationFailed                 file               access   file-decrypt              failure 6 Protected file open denied
Audit             AccessWindow          Changed                             configuration      change   access-window-changed     success 3 Access window changed
Audit             AccessWindow          Created                             configuration      creation access-window-created     success 2 Access window created
Audit             RevokeAccess          Changed                             configuration,iam  change   access-revocation-changed success 4 Access revocation changed
Audit             AuthorisedGroupAccess Changed                             configuration,iam  change   group-access-changed      success 4 Group authorization changed
Audit             AuthorisedGroupAccess Created                             configuration,iam  creation group-access-created      success 4 Group authorization created
Audit             AuthorisedUserAccess  Changed                             configuration,iam  change   user-access-changed       success 3 User authorization changed
Audit             AuthorisedUserAccess  Created                             configuration,iam  creation user-access-created       success 3 User authorization created
Audit             AuthorChanged         Changed                             configuration,iam  change   owner-changed             success 5 File owner changed
EncryptionRequest AccessDenied          GeoValidationCountryExclusionFailed file               creation file-encrypt-request      failure 6 File protection request denied
EncryptionRequest AccessDenied          GeoValidationFailed                 file               creation file-encrypt-request      failure 5 File protection request denied
`;

export const rows: readonly Row[] = table
  .trim()
  .split('\n')
  .map((line) => {
    const [attempted = '', result = '', reason = '', category = '', type = '', action = '', outcome = '', severity, ...name] =
      line.split(/ +/);
    const triple = [attempted, result, reason] as const;
    return { triple, category: category.split(','), type, action, outcome, severity: Number(severity), name: name.join(' ') };
  });

export const network = {
  ipAddress: '203.0.113.7',
  networkName: 'Example WLAN',
  networkId: 'net-12',
  domainName: 'EXAMPLE',
  deviceType: 'Laptop',
  machineName: 'LT-0042',
  mac: '00:00:5e:00:53:01',
  uuid: '00000000-0000-4000-8000-000000000001',
  serviceProvider: 'Example ISP',
  latLong: '12.5,-0.25',
  address: 'Example street 1',
} satisfies { [Path in FieldPath as Path extends `userNetwork.${infer Name}` ? Name : never]: string };

const personal = {
  userLastNameFirstName: 'User,Example',
  userEmailAddress: 'user@example.com',
  currentOwnerLastNameFirstName: 'Owner,Example',
  currentOwnerEmailAddress: 'owner@example.com',
};

export const poorest = {
  logId: 418230,
  userId: 'u-7f3',
  payloadId: 'p-91c2',
  payloadName: 'Example file.xlsx',
  currentPayloadOwnerId: 'u-002',
  actionAttempted: 'Decrypt',
  result: 'AccessGranted',
  resultReason: 'Success',
  logTimestamp: '2024-05-01T12:34:56.1234567',
};

/** Every field of the full record. */
export const fullest = { ...poorest, userNetwork: network, ...personal };

/** A record for each row, with and without personal data, with and without network: 68. */
export const shapes = rows.flatMap((row, index) =>
  [false, true].flatMap((withNetwork) =>
    [false, true].map((withPersonal) => {
      const [actionAttempted, result, resultReason] = row.triple;
      const record = {
        ...poorest,
        logId: 418230 + index,
        actionAttempted,
        result,
        resultReason,
        ...(withNetwork ? { userNetwork: network } : {}),
        ...(withPersonal ? personal : {}),
      };
      const name = `${row.triple.join(':')}${withNetwork ? ', network' : ''}${withPersonal ? ', personal data' : ''}`;
      return { name, row, record, text: JSON.stringify(record), withNetwork, withPersonal };
    }),
  ),
);

export const settings: NormalizeSettings = {
  tenantId: 'tenant-1',
  baseUrl: 'https://service.example/v2/api',
  observer: { vendor: 'Waybill', product: 'Data Protection and Audit Service', version: '1.0' },
  dataset: 'dpas.audit',
  namespace: 'default',
  mapping: { severity: {}, names: {}, hostIdFromUuid: true },
  privacy: { rules: [] },
};

export const received = Date.parse('2024-05-01T12:35:10.000Z') * 1000;

/** A record as the journal returns it. */
export function recordOf(text: string): ReceivedRecord & { readonly text: string } {
  const record = readText(text);
  return { record, text, uid: identify('production')(record), received };
}
