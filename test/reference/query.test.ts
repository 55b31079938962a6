import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerTo, comparable, Service, type TruthRecord } from '../support/reference/service.ts';

let service: Service;
let truth: TruthRecord[];
beforeAll(async () => {
  service = await Service.start('--records', '4000', '--span', '2h', '--seed', 'query');
  truth = await service.truth();
});
afterAll(() => service.stop());

const at = (index: number): TruthRecord => {
  const record = truth[index];
  if (!record) throw new Error(`no record ${index}`);
  return record;
};
const ids = (records: readonly TruthRecord[]): number[] => records.map((record) => record.logId);

/** Requests all pages of the query, and compares them with the second implementation. */
async function compare(query: Record<string, string>, endpoint = 'full-payload', pageSize = 997): Promise<number> {
  const expected = answerTo(truth, query);
  const got: TruthRecord[] = [];
  for (let page = 1; page <= Math.ceil(expected.length / pageSize) + 1; page += 1) {
    const answer = await service.page(
      new URLSearchParams({ ...query, page: String(page), pageSize: String(pageSize) }).toString(),
      endpoint,
    );
    expect(answer.pagination).toEqual({ totalRecords: expected.length, pageSize, itemsInPage: answer.data.length, page });
    got.push(...answer.data);
  }
  expect(ids(got)).toEqual(ids(expected));
  return expected.length;
}

describe('the records', () => {
  test('show all 17 combinations of section 2.8 and no other, and userNetwork with all its fields as strings', () => {
    const denied = 'AccessDenied';
    const expected = new Set([
      'Encrypt/AccessGranted/Success',
      `Encrypt/${denied}/GeoValidationCountryExclusionFailed`,
      'Decrypt/AccessGranted/Success',
      ...['GeoValidationCountryExclusionFailed', 'TimeEmbargoFailed', 'UserPayloadNoAccess', 'GeoValidationFailed'].map(
        (r) => `Decrypt/${denied}/${r}`,
      ),
      ...['AccessWindow', 'AuthorisedGroupAccess', 'AuthorisedUserAccess'].flatMap((r) => [`Audit/${r}/Changed`, `Audit/${r}/Created`]),
      'Audit/RevokeAccess/Changed',
      'Audit/AuthorChanged/Changed',
      `EncryptionRequest/${denied}/GeoValidationCountryExclusionFailed`,
      `EncryptionRequest/${denied}/GeoValidationFailed`,
    ]);
    expect(expected.size).toBe(17);
    const seen = (records: TruthRecord[]): Set<string> =>
      new Set(records.map((r) => `${String(r['actionAttempted'])}/${String(r['result'])}/${String(r['resultReason'])}`));
    expect(seen(truth)).toEqual(expected);
    expect(seen(truth.slice(0, 17))).toEqual(expected);
    const names = 'ipAddress networkName networkId domainName deviceType machineName mac uuid serviceProvider latLong address'.split(' ');
    for (const { userNetwork } of truth) {
      expect(Object.keys(userNetwork)).toEqual(names);
      expect(Object.values(userNetwork).every((value) => typeof value === 'string')).toBe(true);
      expect(userNetwork['latLong']).toMatch(/^-?\d{1,2}\.\d+,-?\d{1,3}\.\d+$/);
    }
    const uuid = /^[\da-f]{8}-[\da-f]{4}-[\da-f]{4}-[\da-f]{4}-[\da-f]{12}$/;
    expect(truth.every(({ userId, payloadId }) => uuid.test(userId) && uuid.test(String(payloadId)))).toBe(true);
    expect(truth.some(({ userNetwork }) => userNetwork['serviceProvider'] === '')).toBe(true);
    expect(truth.some(({ userNetwork }) => userNetwork['ipAddress']?.includes(':'))).toBe(true);
    expect(truth.every((record) => String(record['userEmailAddress']).endsWith('@example.com'))).toBe(true);
  });

  test('have times within the period, with 1 to 7 digits, some of them equal, and unique logIds', () => {
    const digits = new Set(truth.map((record) => /^[-\d]{10}T[:\d]{8}(?:\.(\d+))?$/.exec(record.logTimestamp)?.[1]?.length ?? 0));
    expect([...digits].sort()).toEqual([1, 2, 3, 4, 5, 6, 7]);
    expect(new Set(truth.map((record) => comparable(record.logTimestamp))).size).toBeLessThan(truth.length - 50);
    expect(new Set(ids(truth)).size).toBe(4000);
    const oldest = Date.now() - Date.parse(`${comparable(at(0).logTimestamp).slice(0, 23)}Z`);
    expect(oldest).toBeGreaterThan(7_190_000);
    expect(oldest).toBeLessThan(7_260_000);
  });
});

describe('the parameters of section 4.6', () => {
  const sorts = ['logTimestamp', 'userLastNameFirstName', 'result', 'resultReason', 'actionAttempted', 'payloadName'];
  test.each(sorts.flatMap((field) => [`+${field}`, `-${field}`]))('sort=%s orders whole answers and windows', async (sort) => {
    await compare({ sort });
    await compare({ sort, startTime: at(1000).logTimestamp, endTime: at(1600).logTimestamp }, 'payload', 100);
  });

  test.each(sorts)('sort=+%s orders as with %%2B if it is sent as section 4.6 prints it', async (field) => {
    const expected = await service.api(`/logs/full-payload?sort=%2B${field}`);
    const printed = await service.api(`/logs/full-payload?sort=+${field}`);
    expect([printed.status, printed.text]).toEqual([200, expected.text]);
    expect(ids((JSON.parse(printed.text) as { data: TruthRecord[] }).data)).toEqual(
      ids(answerTo(truth, { sort: `+${field}` }).slice(0, 100)),
    );
  });

  test('filters select alone and combined, on both endpoints', async () => {
    const { userId, payloadId, payloadName, currentPayloadOwnerId } = at(2000) as unknown as Record<string, string>;
    const values: Record<string, string[]> = {
      actionAttempted: ['Decrypt', 'Audit', 'Encrypt'],
      result: ['AccessGranted', 'AccessDenied', 'AccessWindow', 'RevokeAccess', 'AuthorisedGroupAccess', 'AuthorisedUserAccess'],
      resultReason:
        'Success,GeoValidationCountryExclusionFailed,TimeEmbargoFailed,UserPayloadNoAccess,GeoValidationFailed,Changed,Created'.split(','),
      userId: [userId ?? ''],
      payloadId: [payloadId ?? ''],
      payloadName: [payloadName ?? ''],
      currentPayloadOwnerId: [currentPayloadOwnerId ?? ''],
    };
    for (const [name, each] of Object.entries(values)) {
      for (const value of each) expect(await compare({ [name]: value }, 'payload'), `${name}=${value}`).toBeGreaterThan(0);
    }
    const window = { startTime: at(200).logTimestamp, endTime: at(3500).logTimestamp };
    expect(
      await compare({ actionAttempted: 'Decrypt', result: 'AccessDenied', resultReason: 'UserPayloadNoAccess', ...window }),
    ).toBeGreaterThan(0);
    expect(await compare({ userId: userId ?? '', actionAttempted: 'Audit', sort: '-payloadName', ...window })).toBeGreaterThan(0);
    expect(await compare({ actionAttempted: 'Encrypt', result: 'RevokeAccess' })).toBe(0);
    expect(await compare({ payloadName: "x' OR 1=1 --" })).toBe(0);
  });

  test('startTime and endTime apply to logTimestamp, exactly, both included; any number of digits, with or without Z', async () => {
    const { logTimestamp } = at(1234);
    expect(await compare({ startTime: logTimestamp, endTime: logTimestamp })).toBeGreaterThan(0);
    expect(await compare({ startTime: logTimestamp })).toBeGreaterThan(2000);
    expect(await compare({ endTime: logTimestamp })).toBeGreaterThan(1000);
    await compare({ startTime: `${logTimestamp.slice(0, 19)}.00`, endTime: `${comparable(logTimestamp)}Z` });
    expect(await compare({ startTime: at(2000).logTimestamp, endTime: at(100).logTimestamp })).toBe(0);
    expect(await compare({ startTime: '0001-01-01T00:00:00', endTime: '9999-12-31T23:59:59.99' })).toBe(4000);
  });

  test('page and pageSize default to the first page of 100', async () => {
    const answer = await service.page();
    expect(answer.pagination).toEqual({ totalRecords: 4000, pageSize: 100, itemsInPage: 100, page: 1 });
    expect(ids(answer.data)).toEqual(ids(truth.slice(0, 100)));
    expect(Object.keys(answer)).toEqual(['pagination', 'data']);
    expect(Object.keys(answer.pagination)).toEqual(['totalRecords', 'pageSize', 'itemsInPage', 'page']);
  });

  test('page and pageSize may have any length: a page past the end has no items, and a size is limited to the maximum', async () => {
    for (const page of ['1000000000000', '9'.repeat(30)]) {
      expect((await service.page(`page=${page}`)).pagination).toMatchObject({ totalRecords: 4000, itemsInPage: 0 });
    }
    expect((await service.page(`pageSize=${'9'.repeat(30)}`)).pagination).toMatchObject({ pageSize: 1000, itemsInPage: 1000 });
  });

  const bad: [parameter: string, query: string][] = [
    ['page', 'page=0'],
    ['page', 'page=-1'],
    ['page', 'page=1.5'],
    ['page', 'page='],
    ['page', 'page=1&page=2'],
    ['pageSize', 'pageSize=0'],
    ['pageSize', 'pageSize=ten'],
    ['startTime', 'startTime=yesterday'],
    ['startTime', 'startTime=2026-02-30T00:00:00.00'],
    ['startTime', 'startTime=2026-02-03'],
    ['endTime', 'endTime=2026-02-03T24:00:00.00'],
    ['endTime', 'endTime=2026-02-03T10:00:00%2B02:00'],
    ['sort', 'sort=++logTimestamp'],
    ['sort', 'sort=+-logTimestamp'],
    ['sort', 'sort=+logId'],
    ['sort', 'sort=%2BlogId'],
    ['sort', 'sort=--logTimestamp'],
    ['sort', 'sort='],
    ['actionAttempted', 'actionAttempted=decrypt'],
    ['result', 'result=Denied'],
    ['resultReason', 'resultReason=Because'],
    ['userId', 'userId='],
    ['payloadName', 'payloadName=%FF'],
    ['payloadName', 'payloadName=100%'],
    ['starttime', 'starttime=2026-02-03T10:00:00.00'],
  ];
  test.each(bad)('an invalid %s is refused by name: %s', async (parameter, query) => {
    const reply = await service.api(`/logs/full-payload?${query}`);
    expect(reply.status).toBe(400);
    expect(reply.headers['content-type']).toBe('application/problem+json');
    const problem = JSON.parse(reply.text) as { detail: string };
    expect(problem).toMatchObject({ status: 400, title: 'Bad Request', type: 'about:blank', parameter });
    expect(problem.detail).toContain(`"${parameter}"`);
  });
});

test('values with line breaks are taken literally: other filters keep their own totals', async () => {
  const record = { ...at(0), logId: 1, payloadId: 'a\nb', payloadName: 'c' };
  await service.control('POST', '/records', JSON.stringify(record));
  const totals = [];
  for (const query of ['payloadId=a%0Ab&payloadName=c', 'payloadId=a&payloadName=b%0Ac']) {
    totals.push((await service.page(query)).pagination.totalRecords);
  }
  expect(totals).toEqual([1, 0]);
});
