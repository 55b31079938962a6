import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fileOf, logOf, networkAt, open, opens, places, policy, protect } from '../support/reference/files.ts';
import { Service, type Caller, type Told } from '../support/reference/service.ts';

let service: Service;
let author: Caller;
let colleague: Caller;
beforeAll(async () => {
  service = await Service.start('--seed', 'payloads');
  author = await service.as('Author');
  const recipient = service.line.users.find(({ roles }) => roles.includes('Recipient'));
  if (!recipient) throw new Error('no Recipient');
  colleague = await service.signIn(recipient);
});
afterAll(() => service.stop());

const protectWith = (more: object): Promise<Told> => service.call(author, 'POST', '/payloads/protect-remote', fileOf('x', more));
const total = async (): Promise<unknown> => (await service.page('pageSize=1')).pagination.totalRecords;

describe('POST payloads/protect-remote', () => {
  test.each(['/payloads/protect-remote/', '/payloads/protect-remote'])(
    '%s returns 201 with the payload of section 2.1 and the file',
    async (path) => {
      const before = Date.now();
      const { status, json } = await service.call(author, 'POST', path, fileOf('the content'));
      const payload = json['payload'] as Record<string, unknown>;
      expect([status, Object.keys(json)]).toEqual([201, ['payload', 'base64FileData']]);
      expect(payload).toEqual({
        ownerId: author.userId,
        payloadId: expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/) as string,
        fileType: '.txt',
        originalFileName: 'Plan',
        originalFileCreatedDate: payload['payloadCreateDate'],
        payloadCreateDate: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/) as string,
        isRevoked: false,
      });
      expect(Date.parse(String(payload['payloadCreateDate']))).toBeGreaterThanOrEqual(before);
      const file = Buffer.from(String(json['base64FileData']), 'base64');
      expect(file.toString('hex', 0, 4)).toBe('89494b44');
      expect(file.includes('the content')).toBe(false);
      const got = await service.call(author, 'GET', `/payloads/${String(payload['payloadId'])}`);
      expect([got.status, got.json]).toEqual([200, payload]);
      expect(await logOf(service, payload as { payloadId: string })).toEqual(['Encrypt AccessGranted Success']);
    },
  );

  test.each([
    ['.docx', 'Report.docx', '.docx', 'Report'],
    ['docx', 'Report.DOCX', '.docx', 'Report'],
    ['pdf', 'Report.final', '.pdf', 'Report.final'],
    ['.txt', '.txt', '.txt', '.txt'],
    ['.txt', 'Übersicht "Q3" 契約書.txt', '.txt', 'Übersicht "Q3" 契約書'],
    ['', 'Makefile', '', 'Makefile'],
  ])('of type %s and name %s is %s and %s', async (fileType, fileName, type, name) => {
    const { json } = await protectWith({ fileType, fileName });
    expect(json['payload']).toMatchObject({ fileType: type, originalFileName: name });
    const { payloadId } = json['payload'] as { payloadId: string };
    expect((await service.page(`payloadId=${payloadId}`)).data[0]?.['payloadName']).toBe(name + type);
  });

  test.each([
    ['fileType', { fileType: undefined }],
    ['fileType', { fileType: 'text/plain' }],
    ['fileName', { fileName: '' }],
    ['fileName', { fileName: 'a\nb' }],
    ['fileName', { fileName: '../../etc/passwd' }],
    ['fileName', { fileName: 'C:\\a' }],
    ['fileName', { fileName: '.' }],
    ['fileName', { fileName: '..' }],
    ['fileName', { fileName: 7 }],
    ['userNetwork', { userNetwork: undefined }],
    ['userNetwork.ipAddress', { userNetwork: { latLong: '1,1' } }],
    ['userNetwork.ipAddress', { userNetwork: { ipAddress: '999.1.1.1', latLong: '1,1' } }],
    ['userNetwork.latLong', { userNetwork: { ipAddress: '2001:db8::1', latLong: '91,1' } }],
    ['userNetwork.latLong', { userNetwork: { ipAddress: '2001:db8::1', latLong: 'here' } }],
    ['userNetwork.planet', { userNetwork: { ipAddress: '2001:db8::1', latLong: '1,1', planet: '3' } }],
    ['base64FileData', { base64FileData: undefined }],
    ['base64FileData', { base64FileData: 'YQ' }],
    ['base64FileData', { base64FileData: 'YR==' }],
    ['base64FileData', { base64FileData: 'Y Q==' }],
    ['base64FileData', { base64FileData: 'YQ==\n' }],
    ['base64FileData', { base64FileData: '_-8=' }],
    ['base64FileData', { base64FileData: 'data:;base64,YQ==' }],
    ['extra', { extra: true }],
  ])('with an invalid %s is refused with 400 that names it, and nothing is written: %j', async (field, wrong) => {
    const before = await total();
    const { status, headers, json } = await protectWith(wrong);
    expect([status, headers['content-type'], json['parameter']]).toEqual([400, 'application/problem+json', field]);
    expect(String(json['detail'])).toContain(`"${field}"`);
    expect(await total()).toBe(before);
  });

  test('accepts all of userNetwork of section 2.7, and the log shows it unchanged', async () => {
    const userNetwork = {
      ipAddress: '2001:db8::5',
      networkName: 'corp',
      networkId: 'n-1',
      domainName: 'corp.example.com',
      deviceType: 'Linux',
      machineName: 'LIN-1',
      mac: '00-00-5E-00-53-01',
      uuid: 'u-1',
      serviceProvider: '',
      latLong: places.sydney,
      address: 'Example Street',
    };
    const { json } = await protectWith({ userNetwork });
    const { payloadId } = json['payload'] as { payloadId: string };
    expect((await service.page(`payloadId=${payloadId}`)).data[0]?.userNetwork).toEqual(userNetwork);
  });
});

describe('POST payloads/open-remote', () => {
  test.each([0, 1, 65_537])('returns the %i bytes to the owner', async (size) => {
    const content = randomBytes(size);
    const file = await protect(service, author, content);
    const { status, json } = await open(service, author, file);
    expect([status, Object.keys(json)]).toEqual([200, ['payload', 'base64FileData']]);
    expect(Buffer.from(String(json['base64FileData']), 'base64').equals(content)).toBe(true);
    expect((json['payload'] as Record<string, unknown>)['payloadId']).toBe(file.payloadId);
    expect(await logOf(service, file)).toEqual(['Encrypt AccessGranted Success', 'Decrypt AccessGranted Success']);
  });

  test('refuses all other users until authorized, and logs their attempts', async () => {
    const file = await protect(service, author);
    expect(await opens(service, colleague, file)).toBe('UserPayloadNoAccess');
    await policy(service, author, file, 'user-authorizations', { userId: colleague.userId, accessLevel: 'View' });
    expect(await opens(service, colleague, file)).toBe(200);
    const { data } = await service.page(`payloadId=${file.payloadId}&sort=%2BlogTimestamp`);
    expect(data.map((record) => [record.userId, record.currentPayloadOwnerId, record['result']])).toEqual([
      [author.userId, author.userId, 'AccessGranted'],
      [colleague.userId, author.userId, 'AccessDenied'],
      [author.userId, author.userId, 'AuthorisedUserAccess'],
      [colleague.userId, author.userId, 'AccessGranted'],
    ]);
    expect(data[1]).toMatchObject({
      userNetwork: networkAt(),
      payloadName: 'Plan.txt',
      userEmailAddress: 'one.tester-recipient@example.com',
    });
  });

  test('refuses a file of 4 KiB with one byte changed, in header, content or tag, and does not log it', async () => {
    const empty = await protect(service, author, '');
    const overhead = Buffer.from(empty.base64FileData, 'base64').length;
    const file = await protect(service, author, randomBytes(4096 - overhead));
    const bytes = Buffer.from(file.base64FileData, 'base64');
    expect(bytes).toHaveLength(4096);
    const before = await total();
    const refused: unknown[] = [];
    // container.test.ts tests every position of one.
    const tried = [...bytes.keys()].filter((at) => at < overhead || at % 64 === 0 || at >= 4096 - 16);
    const positions = tried.values();
    const worker = async (): Promise<void> => {
      for (const at of positions) {
        const changed = Buffer.from(bytes);
        changed[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
        const { status, json } = await open(service, author, { ...file, base64FileData: changed.toString('base64') });
        if (status === 400 && json['parameter'] === 'base64FileData') refused.push(at);
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(refused).toHaveLength(tried.length);
    expect(await total()).toBe(before);
    expect(await opens(service, author, file)).toBe(200);
    // Policies are checked before the content: a user without access learns nothing about it, and
    // the log has the attempt.
    const cut = { ...file, base64FileData: bytes.subarray(0, -1).toString('base64') };
    expect([await opens(service, author, cut), await opens(service, colleague, cut)]).toEqual([400, 'UserPayloadNoAccess']);
    expect((await logOf(service, file)).at(-1)).toBe('Decrypt AccessDenied UserPayloadNoAccess');
  });

  test.each([
    ['nothing', ''],
    ['another file', Buffer.from('a text that is not a protected file'.repeat(20)).toString('base64')],
    ['no Base64', '%%%'],
  ])('refuses %s with 400', async (_, base64FileData) => {
    expect(await opens(service, author, { payloadId: '', base64FileData })).toBe(400);
  });

  test('refuses a file of another service', async () => {
    await using other = await Service.start('--seed', 'payloads');
    const file = await protect(other, await other.as('Author'));
    expect(await opens(service, author, file)).toBe(400);
  });
});

describe('POST payloads/protect-local and open-local', () => {
  const request = { fileType: 'txt', fileName: 'Local', userNetwork: networkAt() };

  test('return header and data key, with which the client creates and opens the same container', async () => {
    const originalFileCreatedDate = '2024-02-03T04:05:06+02:00';
    const made = await service.call(author, 'POST', '/payloads/protect-local', { ...request, originalFileCreatedDate });
    expect([made.status, Object.keys(made.json)]).toEqual([201, ['payload', 'base64Header', 'base64DataKey']]);
    expect(made.json['payload']).toMatchObject({ originalFileCreatedDate: '2024-02-03T02:05:06.000+00:00', isRevoked: false });
    const header = Buffer.from(String(made.json['base64Header']), 'base64');
    const key = Buffer.from(String(made.json['base64DataKey']), 'base64');
    const aes = createCipheriv('aes-256-gcm', key, header.subarray(24, 36)).setAAD(header);
    const container = Buffer.concat([header, aes.update('made here'), aes.final(), aes.getAuthTag()]);
    const { payloadId } = made.json['payload'] as { payloadId: string };
    const file = { payloadId, base64FileData: container.toString('base64') };

    const remote = await open(service, author, file);
    expect(Buffer.from(String(remote.json['base64FileData']), 'base64').toString()).toBe('made here');

    const local = await service.call(author, 'POST', '/payloads/open-local', {
      base64Header: header.toString('base64'),
      userNetwork: networkAt(),
    });
    expect([local.status, Object.keys(local.json), local.json['accessLevel']]).toEqual([
      200,
      ['payload', 'accessLevel', 'base64DataKey'],
      'FullAccess',
    ]);
    const back = createDecipheriv('aes-256-gcm', Buffer.from(String(local.json['base64DataKey']), 'base64'), header.subarray(24, 36))
      .setAAD(header)
      .setAuthTag(container.subarray(-16));
    expect(Buffer.concat([back.update(container.subarray(header.length, -16)), back.final()]).toString()).toBe('made here');
    expect(await logOf(service, file)).toEqual([
      'Encrypt AccessGranted Success',
      'Decrypt AccessGranted Success',
      'Decrypt AccessGranted Success',
    ]);
  });

  test.each(['0000-01-01T00:00:00+01:00', '9999-12-31T23:59:59-01:00', '2026-01-01T00:00:00+24:00', '2026-01-01T00:00:60Z'])(
    'refuse a date that the form of section 2.1 cannot express: %s',
    async (date) => {
      const { status, json } = await service.call(author, 'POST', '/payloads/protect-local', { ...request, originalFileCreatedDate: date });
      expect([status, json['parameter']]).toEqual([400, 'originalFileCreatedDate']);
    },
  );

  test('return the data key for FullAccess: with View, only the service opens the file', async () => {
    const file = await protect(service, author);
    const container = Buffer.from(file.base64FileData, 'base64');
    const header = container.subarray(0, 96 + container.readUInt16BE(6));
    const openLocal = (base64Header: string): Promise<Told> =>
      service.call(colleague, 'POST', '/payloads/open-local', { base64Header, userNetwork: networkAt() });
    const level = (accessLevel: string): Promise<unknown> =>
      policy(service, author, file, 'user-authorizations', { userId: colleague.userId, accessLevel });
    await level('View');
    expect((await openLocal(header.toString('base64'))).json['reason']).toBe('UserPayloadNoAccess');
    await level('FullAccess');
    expect((await openLocal(header.toString('base64'))).status).toBe(200);
    expect((await openLocal(file.base64FileData)).json['parameter']).toBe('base64Header');
    for (const at of header.keys()) {
      const changed = Buffer.from(header);
      changed[at] = (header[at] ?? 0) ^ 0x10;
      expect((await openLocal(changed.toString('base64'))).status, `byte ${at}`).toBe(400);
    }
  });
});

describe('GET payloads/{payloadId}', () => {
  test('is for users who may open it, or hold payload.read.all; an unknown payload is 404, another method 405', async () => {
    const file = await protect(service, author);
    const path = `/payloads/${file.payloadId}`;
    const other = await service.signIn(service.line.users[0] as Parameters<Service['signIn']>[0]);
    expect((await service.call(other, 'GET', path)).status).toBe(403);
    await policy(service, author, file, 'user-authorizations', { userId: other.userId, accessLevel: 'View' });
    expect((await service.call(other, 'GET', path)).status).toBe(200);
    expect((await service.call(await service.as('Data Administrator'), 'GET', path)).status).toBe(200);
    expect((await service.call(author, 'GET', '/payloads/none')).status).toBe(404);
    const { status, headers } = await service.call(author, 'GET', '/payloads/protect-remote');
    expect([status, headers['allow']]).toEqual([405, 'POST']);
  });
});
