import { borders } from '@rapideditor/country-coder';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { countries } from '../../src/reference/policies/countries.ts';
import { logOf, networkAt, open, opens, places, policy, protect, fileOf, type Protected } from '../support/reference/files.ts';
import { Service, type Caller, type Told } from '../support/reference/service.ts';

/** A second copy of the table of section 2.8. */
const table = [
  'Encrypt AccessGranted Success',
  'Encrypt AccessDenied GeoValidationCountryExclusionFailed',
  'Decrypt AccessGranted Success',
  'Decrypt AccessDenied GeoValidationCountryExclusionFailed',
  'Decrypt AccessDenied TimeEmbargoFailed',
  'Decrypt AccessDenied UserPayloadNoAccess',
  'Decrypt AccessDenied GeoValidationFailed',
  'Audit AccessWindow Changed',
  'Audit AccessWindow Created',
  'Audit RevokeAccess Changed',
  'Audit AuthorisedGroupAccess Changed',
  'Audit AuthorisedGroupAccess Created',
  'Audit AuthorisedUserAccess Changed',
  'Audit AuthorisedUserAccess Created',
  'Audit AuthorChanged Changed',
  'EncryptionRequest AccessDenied GeoValidationCountryExclusionFailed',
  'EncryptionRequest AccessDenied GeoValidationFailed',
];
const past = '2020-01-01T00:00:00Z';
const future = '2200-01-01T00:00:00+01:00';

let service: Service;
let author: Caller;
let colleague: Caller;
let policyAdministrator: Caller;
let file: Protected;
beforeAll(async () => {
  service = await Service.start('--seed', 'policies');
  author = await service.as('Author');
  policyAdministrator = await service.as('Policy Administrator');
  colleague = await service.as('Recipient');
});
afterAll(() => service.stop());
beforeEach(async () => {
  file = await protect(service, author);
});

const set = (type: string, body: object, caller = author): Promise<Told> => policy(service, caller, file, type, body);
const tried = (type: string, body: object, caller = author): Promise<Told> =>
  service.call(caller, 'POST', `/payloads/${file.payloadId}/policies/${type}`, body);
const authorize = (accessLevel = 'View'): Promise<Told> => set('user-authorizations', { userId: colleague.userId, accessLevel });
const exclude = async (...excludedCountries: string[]): Promise<void> => {
  const path = '/organization/policies/excluded-countries';
  expect((await service.call(policyAdministrator, 'POST', path, { excludedCountries })).json).toEqual({ excludedCountries });
};
const audited = async (): Promise<string[]> => (await logOf(service, file)).filter((line) => line.startsWith('Audit'));
const groupOf = async (): Promise<{ groupId: string; member: Caller }> => {
  const groups = (await service.call(await service.as('Security Administrator'), 'GET', '/groups')).json['data'];
  const [group] = groups as { id: string; memberIds: string[] }[];
  const accounts = (await service.control('GET', '/accounts')).json as unknown as Parameters<Service['signIn']>[0][];
  const account = accounts.find(({ userId }) => group?.memberIds.includes(userId));
  if (!group || !account) throw new Error('no group with a member');
  return { groupId: group.id, member: await service.signIn(account) };
};

describe('user-authorizations', () => {
  test('are listed as in section 2.4, one per user, in the order of creation', async () => {
    const other = service.client('User Administrator').userId;
    const answer = await authorize();
    await set('user-authorizations', { userId: other, accessLevel: 'FullAccess' });
    const listed = await service.call(author, 'GET', `/payloads/${file.payloadId}/policies/user-authorizations`);
    const expected = {
      userId: colleague.userId,
      userName: 'Service Recipient,Application',
      email: 'application.service-recipient@example.com',
      accessLevel: 'View',
      isRevoked: false,
    };
    expect(answer.json).toEqual(expected);
    expect(listed.json).toEqual([expected, expect.objectContaining({ userId: other, accessLevel: 'FullAccess' })]);
  });

  test('are Created, then Changed, and an equal value logs nothing', async () => {
    await authorize('View');
    await authorize('View');
    await authorize('FullAccess');
    await set('revocation', { userId: colleague.userId, isRevoked: true });
    await authorize('FullAccess');
    expect(await audited()).toEqual([
      'Audit AuthorisedUserAccess Created',
      'Audit AuthorisedUserAccess Changed',
      'Audit RevokeAccess Changed',
      'Audit AuthorisedUserAccess Changed',
    ]);
  });

  test('refuse an invalid level, an unknown user, and the owner', async () => {
    expect((await tried('user-authorizations', { userId: colleague.userId, accessLevel: 'Edit' })).json['parameter']).toBe('accessLevel');
    expect((await tried('user-authorizations', { accessLevel: 'View' })).json['parameter']).toBe('userId');
    expect((await tried('user-authorizations', { userId: 'nobody', accessLevel: 'View' })).status).toBe(404);
    expect((await tried('user-authorizations', { userId: author.userId, accessLevel: 'View' })).status).toBe(409);
    expect(await audited()).toEqual([]);
  });
});

describe('group-authorizations', () => {
  test("let members open; the user's own authorization takes precedence over the group, also when it is revoked", async () => {
    const { groupId, member } = await groupOf();
    expect(await opens(service, member, file)).toBe('UserPayloadNoAccess');
    const answer = await set('group-authorizations', { groupId, accessLevel: 'View' });
    expect(answer.json).toMatchObject({ groupId, accessLevel: 'View', isRevoked: false });
    expect(await opens(service, member, file)).toBe(200);
    expect(await opens(service, colleague, file)).toBe('UserPayloadNoAccess');
    await set('user-authorizations', { userId: member.userId, accessLevel: 'View' });
    await set('revocation', { userId: member.userId, isRevoked: true });
    expect(await opens(service, member, file)).toBe('UserPayloadNoAccess');
    await set('revocation', { userId: member.userId, isRevoked: false });
    expect(await opens(service, member, file)).toBe(200);
  });

  test('are Created, Changed, revoked and restored, and listed', async () => {
    const { groupId, member } = await groupOf();
    await set('group-authorizations', { groupId, accessLevel: 'View' });
    await set('group-authorizations', { groupId, accessLevel: 'FullAccess' });
    await set('group-authorizations', { groupId, accessLevel: 'FullAccess' });
    await set('revocation', { groupId, isRevoked: true });
    expect(await opens(service, member, file)).toBe('UserPayloadNoAccess');
    const listed = await service.call(author, 'GET', `/payloads/${file.payloadId}/policies/group-authorizations`);
    expect(listed.json).toEqual([expect.objectContaining({ groupId, accessLevel: 'FullAccess', isRevoked: true })]);
    expect(await audited()).toEqual([
      'Audit AuthorisedGroupAccess Created',
      'Audit AuthorisedGroupAccess Changed',
      'Audit RevokeAccess Changed',
    ]);
    expect((await tried('group-authorizations', { groupId: 'none', accessLevel: 'View' })).status).toBe(404);
  });
});

describe('access-windows', () => {
  test('in time: open from startTime on, before endTime, in any of several; a missing bound is no limit', async () => {
    const within = async (...accessWindows: object[]): Promise<unknown> => {
      await set('access-windows', { accessWindows });
      return opens(service, author, file);
    };
    expect(await within({ startTime: future })).toBe('TimeEmbargoFailed');
    expect(await within({ endTime: past })).toBe('TimeEmbargoFailed');
    expect(await within({ startTime: past, endTime: future })).toBe(200);
    expect(await within({ startTime: past })).toBe(200);
    expect(await within({ endTime: future })).toBe(200);
    expect(await within({ endTime: past }, { startTime: past })).toBe(200);
    expect(await within({ endTime: past }, { startTime: future })).toBe('TimeEmbargoFailed');
    expect(await within()).toBe(200);
  });

  test('in space: countries and circles, of which one must match', async () => {
    const within = async (latLong: string, ...allowedAreas: object[]): Promise<unknown> => {
      await set('access-windows', { allowedAreas });
      return opens(service, author, file, latLong);
    };
    const switzerland = { country: 'CH' };
    // Bern to Zurich is 95 km along the great circle.
    const near = { latLong: places.bern, radiusKm: 97 };
    expect(await within(places.zurich, switzerland)).toBe(200);
    expect(await within(places.sydney, switzerland)).toBe('GeoValidationFailed');
    expect(await within(places.atSea, switzerland)).toBe('GeoValidationFailed');
    expect(await within(places.zurich, near)).toBe(200);
    expect(await within(places.zurich, { ...near, radiusKm: 93 })).toBe('GeoValidationFailed');
    expect(await within(places.sydney, near, { country: 'AU' })).toBe(200);
    expect(await within(places.atSea, { latLong: '-48.9,-123.4', radiusKm: 10 })).toBe(200);
    expect(await within('0.05,-179.95', { latLong: '0.05,179.95', radiusKm: 12 })).toBe(200);
    expect(await within(places.sanJuan, { country: 'US' })).toBe(200);
    expect(await within(places.sanJuan, { country: 'PR' })).toBe(200);
    expect(await within(places.sydney)).toBe(200);
  });

  test('accept both names of the same meridian', async () => {
    await set('access-windows', { allowedAreas: [{ country: 'FJ' }] });
    for (const position of ['-16.8,180', '-16.8,-180']) expect(await opens(service, author, file, position)).toBe(200);
  });

  test('accept times in the form of the log, which are UTC, and return them with an offset', async () => {
    const startTime = `${past.slice(0, 19)}.5`;
    const { json } = await set('access-windows', { accessWindows: [{ startTime }] });
    expect(json['accessWindows']).toEqual([{ startTime: `${startTime}Z` }]);
    expect(await opens(service, author, file)).toBe(200);
    await set('access-windows', { accessWindows: [{ endTime: startTime }] });
    expect(await opens(service, author, file)).toBe('TimeEmbargoFailed');
  });

  test('are Created and then Changed; omitted parts stay, and the response shows the whole', async () => {
    await set('access-windows', { accessWindows: [{ startTime: past }] });
    const { json } = await set('access-windows', { allowedAreas: [{ country: 'NZ' }] });
    expect(json).toEqual({ accessWindows: [{ startTime: past }], allowedAreas: [{ country: 'NZ' }] });
    await set('access-windows', { allowedAreas: [{ country: 'NZ' }] });
    expect((await service.call(author, 'GET', `/payloads/${file.payloadId}/policies/access-windows`)).json).toEqual(json);
    expect(await audited()).toEqual(['Audit AccessWindow Created', 'Audit AccessWindow Changed']);
  });

  test('log nothing if there is no rule before or after, and are Changed after the areas of protect-local', async () => {
    await set('access-windows', { accessWindows: [], allowedAreas: [] });
    expect(await audited()).toEqual([]);
    const local = { fileType: 'txt', fileName: 'Local', userNetwork: networkAt(), allowedAreas: [{ country: 'CH' }] };
    const { payloadId } = (await service.call(author, 'POST', '/payloads/protect-local', local)).json['payload'] as Protected;
    await policy(service, author, { ...file, payloadId }, 'access-windows', { allowedAreas: [] });
    expect(await logOf(service, { payloadId })).toEqual(['Encrypt AccessGranted Success', 'Audit AccessWindow Changed']);
  });

  test.each([
    ['the body', {}],
    ['accessWindows.0', { accessWindows: [{}] }],
    ['accessWindows.0', { accessWindows: [{ startTime: future, endTime: past }] }],
    ['accessWindows.0.startTime', { accessWindows: [{ startTime: '2020-01-01' }] }],
    ['allowedAreas.0.country', { allowedAreas: [{ country: 'Switzerland' }] }],
    ['allowedAreas.0', { allowedAreas: [{ latLong: '1,1' }] }],
    ['allowedAreas.0.radiusKm', { allowedAreas: [{ latLong: '1,1', radiusKm: 0 }] }],
  ])('refuse an invalid %s: %j', async (field, body) => {
    const { status, json } = await tried('access-windows', body);
    expect([status, json['parameter']]).toEqual([400, field === 'the body' ? undefined : field]);
    expect(await audited()).toEqual([]);
  });
});

describe('revocation', () => {
  test('of a payload locks out all users, the owner too, until it is restored', async () => {
    await authorize('FullAccess');
    expect((await set('revocation', { isRevoked: true })).json['isRevoked']).toBe(true);
    expect([await opens(service, author, file), await opens(service, colleague, file)]).toEqual([
      'UserPayloadNoAccess',
      'UserPayloadNoAccess',
    ]);
    await set('revocation', { isRevoked: true });
    expect((await set('revocation', { isRevoked: false })).json['isRevoked']).toBe(false);
    expect([await opens(service, author, file), await opens(service, colleague, file)]).toEqual([200, 200]);
    expect((await audited()).slice(1)).toEqual(['Audit RevokeAccess Changed', 'Audit RevokeAccess Changed']);
  });

  test('needs an existing authorization, one at a time', async () => {
    const { groupId } = await groupOf();
    expect((await tried('revocation', { userId: colleague.userId, isRevoked: true })).status).toBe(404);
    expect((await tried('revocation', { groupId, isRevoked: true })).status).toBe(404);
    expect((await tried('revocation', { userId: colleague.userId, groupId, isRevoked: true })).status).toBe(400);
    expect((await tried('revocation', {})).json['parameter']).toBe('isRevoked');
    expect(await audited()).toEqual([]);
  });
});

describe('owner', () => {
  test('transfers everything to the new owner, and the previous one has no access', async () => {
    await authorize();
    const { json } = await set('owner', { userId: colleague.userId });
    expect(json).toMatchObject({ payloadId: file.payloadId, ownerId: colleague.userId });
    expect([await opens(service, author, file), await opens(service, colleague, file)]).toEqual(['UserPayloadNoAccess', 200]);
    const listed = await service.call(policyAdministrator, 'GET', `/payloads/${file.payloadId}/policies/user-authorizations`);
    expect(listed.json).toEqual([]);
    const { data } = await service.page(`payloadId=${file.payloadId}&resultReason=Changed`);
    expect(data.map((record) => [record.userId, record.currentPayloadOwnerId])).toEqual([[author.userId, colleague.userId]]);
    expect((await tried('revocation', { isRevoked: true })).status).toBe(403);
    await set('owner', { userId: author.userId }, policyAdministrator);
    expect(await opens(service, author, file)).toBe(200);
  });

  test('leaves the previous owner the access of a group, as for each of its members', async () => {
    const { groupId, member } = await groupOf();
    await set('owner', { userId: member.userId });
    await set('group-authorizations', { groupId, accessLevel: 'View' }, policyAdministrator);
    await set('owner', { userId: author.userId }, policyAdministrator);
    expect(await opens(service, member, file)).toBe(200);
    await set('revocation', { groupId, isRevoked: true });
    expect(await opens(service, member, file)).toBe('UserPayloadNoAccess');
  });

  test('is for the owner: FullAccess changes every other policy', async () => {
    const other = await service.signIn(service.line.users[0] as Parameters<Service['signIn']>[0]);
    expect((await tried('access-windows', { accessWindows: [] }, other)).status).toBe(403);
    await set('user-authorizations', { userId: other.userId, accessLevel: 'View' });
    expect((await tried('access-windows', { accessWindows: [] }, other)).status).toBe(403);
    await set('user-authorizations', { userId: other.userId, accessLevel: 'FullAccess' });
    expect((await tried('access-windows', { accessWindows: [] }, other)).status).toBe(200);
    expect((await tried('owner', { userId: other.userId }, other)).status).toBe(403);
    expect((await tried('owner', { userId: 'nobody' })).status).toBe(404);
    await set('owner', { userId: author.userId });
    expect((await audited()).filter((line) => line.includes('AuthorChanged'))).toEqual([]);
  });
});

describe('excluded countries', () => {
  test('prevent protecting, local protecting and opening, and log each', async () => {
    const local = { fileType: 'txt', fileName: 'Local', userNetwork: networkAt(places.wellington) };
    try {
      await exclude('NZ', 'US');
      const remote = await service.call(
        author,
        'POST',
        '/payloads/protect-remote',
        fileOf('x', { fileName: 'Shut out', userNetwork: networkAt(places.wellington) }),
      );
      expect([remote.status, remote.json['reason']]).toEqual([403, 'GeoValidationCountryExclusionFailed']);
      expect((await service.call(author, 'POST', '/payloads/protect-local', local)).json['reason']).toBe(
        'GeoValidationCountryExclusionFailed',
      );
      expect(await opens(service, author, file, places.wellington)).toBe('GeoValidationCountryExclusionFailed');
      // A territory is excluded with its country; the open sea belongs to none.
      expect(await opens(service, author, file, places.sanJuan)).toBe('GeoValidationCountryExclusionFailed');
      expect([await opens(service, author, file, places.atSea), await opens(service, author, file)]).toEqual([200, 200]);
      const [record] = (await service.page('payloadName=Shut%20out.txt')).data;
      expect(record).toMatchObject({ actionAttempted: 'Encrypt', userId: author.userId, currentPayloadOwnerId: author.userId });
      expect((await service.call(policyAdministrator, 'GET', `/payloads/${String(record?.['payloadId'])}`)).status).toBe(404);
      await exclude('PR');
      expect(await opens(service, author, file, places.sanJuan)).toBe('GeoValidationCountryExclusionFailed');
    } finally {
      await exclude();
    }
    expect(await opens(service, author, file, places.wellington)).toBe(200);
  });

  // UK, EU and SU are reserved in ISO 3166-1, ZZ and XX are user-assigned, AN is withdrawn.
  test.each(['nz', 'UK', 'EU', 'SU', 'ZZ', 'XX', 'AN', ''])('cannot be %j, which contains no position', async (code) => {
    const path = '/organization/policies/excluded-countries';
    const bad = await service.call(policyAdministrator, 'POST', path, { excludedCountries: ['CH', code] });
    expect([bad.status, bad.json['parameter']]).toEqual([400, 'excludedCountries.1']);
    expect((await tried('access-windows', { allowedAreas: [{ country: code }] })).json['parameter']).toBe('allowedAreas.0.country');
    expect((await service.call(policyAdministrator, 'GET', path)).json).toEqual({ excludedCountries: [] });
  });

  test('equal the border data: each code of ISO 3166-1, XK and EA', () => {
    // The types of the package refer to a missing types package.
    const { features } = borders as { features: { properties: { isoStatus?: string; level?: string; iso1A2?: string } }[] };
    const known = features.map(({ properties }) => properties);
    const official = known.filter(({ isoStatus }) => isoStatus === 'official').map(({ iso1A2 }) => iso1A2);
    const drawn = known.filter(({ level }) => level === 'country' || level === 'territory').flatMap(({ iso1A2 }) => iso1A2 ?? []);
    expect(official).toHaveLength(249);
    expect(new Set(countries)).toEqual(new Set([...official, ...drawn]));
    expect(countries).toHaveLength(251);
  });
});

describe('the order', () => {
  test('is country, then user, then time, then place: the first refusal is the reason', async () => {
    await set('access-windows', { accessWindows: [{ endTime: past }], allowedAreas: [{ country: 'AU' }] });
    const seen: unknown[] = [];
    try {
      await exclude('CH');
      seen.push(await opens(service, colleague, file));
    } finally {
      await exclude();
    }
    seen.push(await opens(service, colleague, file));
    await authorize();
    seen.push(await opens(service, colleague, file));
    await set('access-windows', { accessWindows: [] });
    seen.push(await opens(service, colleague, file));
    await set('access-windows', { allowedAreas: [] });
    seen.push(await opens(service, colleague, file));
    expect(seen).toEqual(['GeoValidationCountryExclusionFailed', 'UserPayloadNoAccess', 'TimeEmbargoFailed', 'GeoValidationFailed', 200]);
    expect((await logOf(service, file)).filter((line) => line.startsWith('Decrypt'))).toEqual([
      'Decrypt AccessDenied GeoValidationCountryExclusionFailed',
      'Decrypt AccessDenied UserPayloadNoAccess',
      'Decrypt AccessDenied TimeEmbargoFailed',
      'Decrypt AccessDenied GeoValidationFailed',
      'Decrypt AccessGranted Success',
    ]);
  });
});

describe('table 2.8', () => {
  test('calls produce every combination, and no other', async () => {
    await using own = await Service.start('--seed', 'table');
    const owner = await own.as('Author');
    const administrator = await own.as('Policy Administrator');
    const stranger = await own.as('Recipient');
    const [group] = (await own.call(owner, 'GET', '/groups')).json['data'] as { id: string }[];
    const put = (subject: Protected, type: string, body: object): Promise<Told> => policy(own, owner, subject, type, body);
    const countries = (...excludedCountries: string[]): Promise<Told> =>
      own.call(administrator, 'POST', '/organization/policies/excluded-countries', { excludedCountries });
    const local = (userNetwork: object, allowedAreas: object[] = []): Promise<Told> =>
      own.call(owner, 'POST', '/payloads/protect-local', { fileType: 'txt', fileName: 'L', userNetwork, allowedAreas });

    const subject = await protect(own, owner);
    await countries('NZ');
    await own.call(owner, 'POST', '/payloads/protect-remote', fileOf('x', { userNetwork: networkAt(places.wellington) }));
    await local(networkAt(places.wellington));
    await local(networkAt(places.sydney), [{ country: 'CH' }]);
    await local(networkAt(places.zurich), [{ country: 'CH' }]);
    await open(own, owner, subject, places.wellington);
    await open(own, stranger, subject);
    await open(own, owner, subject);
    for (const accessLevel of ['View', 'FullAccess']) {
      await put(subject, 'user-authorizations', { userId: stranger.userId, accessLevel });
      await put(subject, 'group-authorizations', { groupId: group?.id, accessLevel });
    }
    await put(subject, 'access-windows', { accessWindows: [{ endTime: past }] });
    await open(own, owner, subject);
    await put(subject, 'access-windows', { accessWindows: [], allowedAreas: [{ country: 'AU' }] });
    await open(own, owner, subject);
    await put(subject, 'revocation', { isRevoked: true });
    await put(subject, 'owner', { userId: stranger.userId });

    const truth = await own.truth();
    const lines = truth.map((record) => [record['actionAttempted'], record['result'], record['resultReason']].join(' '));
    expect([...new Set(lines)].sort()).toEqual([...table].sort());
    expect(lines).toHaveLength(18);
    expect(new Set(truth.map((record) => record.logId)).size).toBe(18);
  });
});
