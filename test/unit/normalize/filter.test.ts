import { describe, expect, test } from 'vitest';
import { mappingSettings, observerSettings, whereSettings } from '../../../src/normalize/settings.ts';
import { compileWhere } from '../../../src/normalize/filter.ts';
import { readText } from '../../../src/record/read.ts';
import { fullest } from '../../support/normalize/records.ts';

const wants = (where: unknown, record: unknown = fullest) => compileWhere(whereSettings.parse(where))(readText(JSON.stringify(record)));

describe('a record passes', () => {
  const denied = { ...fullest, result: 'AccessDenied' };

  test.each([
    ['any of the values', { result: ['Other', 'AccessGranted'] }, true],
    ['another value', { result: ['AccessDenied'] }, false],
    ['exactly', { result: ['accessgranted', 'AccessGranted '] }, false],
    ['every field named', { result: ['AccessGranted'], userId: ['u-7f3'] }, true],
    ['one field of two', { result: ['AccessGranted'], userId: ['other'] }, false],
    ['inside userNetwork', { 'userNetwork.deviceType': ['Laptop'] }, true],
    ['inside userNetwork, another', { 'userNetwork.deviceType': ['Server'] }, false],
    ['not', { result: ['AccessGranted'], not: { userId: ['u-7f3'] } }, false],
    ['not, another', { not: { userId: ['svc-1'] } }, true],
    ['not both of two', { not: { userId: ['u-7f3'], payloadId: ['other'] } }, true],
    ['one of any', { any: [{ userId: ['x'] }, { payloadId: ['p-91c2'] }] }, true],
    ['none of any', { any: [{ userId: ['x'] }, { payloadId: ['x'] }] }, false],
    ['field and any', { result: ['AccessDenied'], any: [{ userId: ['u-7f3'] }] }, false],
    ['nested', { any: [{ not: { any: [{ userId: ['u-7f3'] }] } }] }, false],
    ['numbers as text', { logId: [418230] }, true],
    ['numbers as text, quoted', { logId: ['418230'] }, true],
  ])('%s', (_name, where, expected) => {
    expect(wants(where)).toBe(expected);
  });

  test('as received, before privacy and normalization', () => {
    expect(wants({ result: ['AccessDenied'], not: { userId: ['svc-1'] } }, denied)).toBe(true);
    expect(wants({ result: ['AccessDenied'], not: { userId: ['svc-1'] } }, { ...denied, userId: 'svc-1' })).toBe(false);
  });
});

test('a missing field never matches', () => {
  for (const record of [{}, { userId: null }, { userId: '' }, { userId: ['x'] }, { userId: {} }, [], null, 5, 'x']) {
    expect(wants({ userId: ['x'] }, record)).toBe(false);
    expect(wants({ 'userNetwork.mac': ['x'] }, record)).toBe(false);
    expect(wants({ not: { userId: ['x'] } }, record)).toBe(true);
  }
  expect(wants({ 'userNetwork.mac': ['x'] }, { userNetwork: 'x', mac: 'x', 'userNetwork.mac': 'x' })).toBe(false);
});

test('digits beyond a double are compared', () => {
  const where = compileWhere(whereSettings.parse({ logId: ['9007199254740993'] }));
  expect(where(readText('{"logId":9007199254740993}'))).toBe(true);
  expect(where(readText('{"logId":9007199254740992}'))).toBe(false);
});

test.each([
  [{}, ''],
  [{ payloadNam: ['x'] }, ''],
  [{ result: [] }, 'result'],
  [{ result: 'AccessDenied' }, 'result'],
  [{ result: [''] }, 'result.0'],
  [{ userNetwork: ['x'] }, ''],
  [{ not: {} }, 'not'],
  [{ any: [] }, 'any'],
  [{ any: [{ x: ['y'] }] }, 'any.0'],
])('%j is refused', (where, path) => {
  expect(whereSettings.safeParse(where).error?.issues.map((issue) => issue.path.join('.'))).toContain(path);
});

test('mapping and observer have defaults and bounds', () => {
  expect(mappingSettings.parse(undefined)).toEqual({ severity: {}, names: {}, hostIdFromUuid: true });
  expect(mappingSettings.safeParse({ severity: { 'Decrypt:AccessGranted:Success': 10 } }).success).toBe(true);
  expect(mappingSettings.safeParse({ severity: { 'Decrypt:AccessGranted:Success': 11 } }).success).toBe(false);
  expect(mappingSettings.safeParse({ severity: { 'Decrypt:AccessGranted:Sucess': 1 } }).success).toBe(false);
  expect(mappingSettings.safeParse({ names: { 'Decrypt:AccessGranted:Success': 'n'.repeat(512) } }).success).toBe(true);
  for (const name of ['', 'n'.repeat(513), 'a\u0085b', 'a\u2028b', 5])
    expect(mappingSettings.safeParse({ names: { 'Decrypt:AccessGranted:Success': name } }).success, String(name)).toBe(false);
  expect(mappingSettings.safeParse({ names: { 'Decrypt:AccessGranted:Sucess': 'Opened' } }).success).toBe(false);
  expect(observerSettings.parse(undefined)).toEqual({ vendor: 'Waybill', product: 'Data Protection and Audit Service', version: '1.0' });
  expect(observerSettings.safeParse({ vendor: 'x'.repeat(64) }).success).toBe(false);
  expect(observerSettings.safeParse({ product: 'a\nb' }).success).toBe(false);
});
