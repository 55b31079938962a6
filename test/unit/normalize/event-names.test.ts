/**
 * A field of events corresponds to the field of records that it derives from: another value in the
 * record changes it.
 */
import { expect, test } from 'vitest';
import { recordFields } from '../../../src/normalize/event-names.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { documentOf } from '../../support/normalize/ecs-document.ts';
import { fullest, recordOf, settings } from '../../support/normalize/records.ts';

const others: Readonly<Record<string, unknown>> = {
  ...{ logId: 7, actionAttempted: 'Encrypt', result: 'AccessDenied', resultReason: 'GeoValidationCountryExclusionFailed' },
  ...{ userId: 'u-9', userEmailAddress: 'other@example.com', userLastNameFirstName: 'Name,Other', payloadId: 'p-1', payloadName: 'b.txt' },
  ...{ currentPayloadOwnerId: 'u-8', currentOwnerEmailAddress: 'third@example.com' },
  ...{ ipAddress: '203.0.113.9', mac: '00:00:5e:00:53:02', machineName: 'LT-0043', networkName: 'Other WLAN' },
};

function at(value: unknown, path: string): unknown {
  return path.split('.').reduce((inside: unknown, key) => (inside as Record<string, unknown> | undefined)?.[key], value);
}

test.each([...recordFields])('%s derives from %s', (eventField, recordField) => {
  const [outer = '', inner] = recordField.split('.');
  const changed =
    inner === undefined
      ? { ...fullest, [outer]: others[outer] }
      : { ...fullest, userNetwork: { ...fullest.userNetwork, [inner]: others[inner] } };
  const [before, after] = [fullest, changed].map((record) =>
    at(documentOf(normalizer(settings)(recordOf(JSON.stringify(record)))), eventField),
  );
  expect(before).toBeDefined();
  expect(after).toBeDefined();
  expect(after).not.toBe(before);
});
