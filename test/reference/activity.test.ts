import { afterEach, expect, test } from 'vitest';
import { Service } from '../support/reference/service.ts';

/** What happens at the company in every hour of work. */
const everyday = [
  'Audit AuthorisedGroupAccess Created',
  'Audit AuthorisedUserAccess Created',
  'Decrypt AccessDenied UserPayloadNoAccess',
  'Decrypt AccessGranted Success',
  'Encrypt AccessGranted Success',
];
/** What may happen: section 2.8. */
const all = [
  'Audit AccessWindow Changed',
  'Audit AccessWindow Created',
  'Audit AuthorChanged Changed',
  'Audit AuthorisedGroupAccess Changed',
  'Audit AuthorisedGroupAccess Created',
  'Audit AuthorisedUserAccess Changed',
  'Audit AuthorisedUserAccess Created',
  'Audit RevokeAccess Changed',
  'Decrypt AccessDenied GeoValidationCountryExclusionFailed',
  'Decrypt AccessDenied GeoValidationFailed',
  'Decrypt AccessDenied TimeEmbargoFailed',
  'Decrypt AccessDenied UserPayloadNoAccess',
  'Decrypt AccessGranted Success',
  'Encrypt AccessDenied GeoValidationCountryExclusionFailed',
  'Encrypt AccessGranted Success',
  'EncryptionRequest AccessDenied GeoValidationCountryExclusionFailed',
  'EncryptionRequest AccessDenied GeoValidationFailed',
];

let service: Service;
afterEach(() => service.stop());

const combinationsOf = async (): Promise<string[]> => {
  const lines = (await service.truth()).map((record) => [record['actionAttempted'], record['result'], record['resultReason']].join(' '));
  return [...new Set(lines)].sort();
};

test(
  'the people of the company protect, share, open and are denied by the API, in the ways of section 2.8, until activity stops',
  { timeout: 320_000 },
  async () => {
    service = await Service.start('--activity', '200');
    await expect.poll(combinationsOf, { timeout: 300_000, interval: 500 }).toEqual(expect.arrayContaining(everyday));
    await service.set({ activity: 0 });
    expect(all).toEqual(expect.arrayContaining(await combinationsOf()));
    const { json } = await service.control('GET', '/stats');
    const requests = json['requests'] as Record<string, Record<string, number>>;
    const statuses = new Set(Object.values(requests).flatMap((counts) => Object.keys(counts)));
    expect([...statuses].sort()).toEqual(['200', '201', '403', '409'].filter((status) => statuses.has(status)));
    // Each record corresponds to a granted or denied call.
    const truth = await service.truth();
    const protects = truth.filter((record) => record['actionAttempted'] === 'Encrypt' && record['result'] === 'AccessGranted').length;
    const created = Object.values(requests).reduce((sum, counts) => sum + (counts['201'] ?? 0), 0);
    expect(Math.abs(protects - created)).toBeLessThanOrEqual(8);
    expect(new Set(truth.map((record) => record.userId)).size).toBeGreaterThan(10);
    // Each person has a laptop and a phone, as at a real company; the help desk and the auditor share a desk.
    const owners = Map.groupBy(truth, ({ userNetwork }) => String(userNetwork['machineName']));
    const shared = [...owners].filter(([, records]) => new Set(records.map(({ userId }) => userId)).size > 1).map(([name]) => name);
    expect(shared.filter((name) => name !== 'DESK-1')).toEqual([]);
  },
);

test('the start names what the detection rules except at the company', async () => {
  service = await Service.start();
  const { lists } = service.line as unknown as { lists: Record<string, string[] | Record<string, { hours: string; hosts: string[] }>> };
  expect(Object.keys(lists).sort()).toEqual(['help-desk', 'known-providers', 'offices', 'service-accounts', 'trusted-users']);
  expect(lists['offices']).toEqual(['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5']);
  expect(Object.values(lists['service-accounts'] ?? {})).toEqual([{ hours: '1-6', hosts: ['batch-1'] }]);
});

test('users continue under every effect of switches on the service', { timeout: 220_000 }, async () => {
  service = await Service.start('--activity', '100', '--fault-reset', '0.2', '--fault-html-200', '0.2', '--fault-500', '0.2');
  await service.set({ revokeTokens: 'now' });
  await expect.poll(async () => (await service.truth()).length, { timeout: 100_000 }).toBeGreaterThan(30);
  await service.set({ faultReset: 0, faultHtml200: 0, fault500: 0, identityProvider: 'down', revokeTokens: 'now' });
  const before = (await service.truth()).length;
  await service.set({ identityProvider: 'up' });
  await expect.poll(async () => (await service.truth()).length, { timeout: 100_000 }).toBeGreaterThan(before + 30);
});
