/** content/splunk: an event has the fields and tags of Splunk's Common Information Model, in both source types. */
import { describe, expect, test } from 'vitest';
import { fullest, poorest, rows } from '../../support/normalize/records.ts';
import type { Row } from '../../support/content/events.ts';
import { eventOf } from '../../support/content/events.ts';
import { atSearchTime, cefEventOf, conf } from '../../support/content/splunk-app.ts';
import { spl } from '../../support/content/spl.ts';

const forms = [
  ['dpas:audit', (record: object): Row => atSearchTime('dpas:audit', eventOf(record))],
  ['dpas:cef', (record: object): Row => cefEventOf(record)],
] as const;

const recordOf = (base: object, [actionAttempted, result, resultReason]: readonly string[]): object => ({
  ...base,
  actionAttempted,
  result,
  resultReason,
});
/** Only the fields of the model: one per column of CIM 8.5 that the app sets. */
const cimOf = (row: Row): Row =>
  Object.fromEntries(Object.keys(whole).flatMap((name) => (row[name] === undefined ? [] : [[name, row[name]]])));

/** For `fullest`. */
const whole = {
  user: 'user@example.com',
  user_id: 'u-7f3',
  user_email: 'user@example.com',
  object: 'Example file.xlsx',
  object_id: 'p-91c2',
  object_category: 'file',
  owner: 'owner@example.com',
  owner_id: 'u-002',
  owner_email: 'owner@example.com',
  src: '203.0.113.7',
  dest: 'service.example',
  dvc: 'service.example',
  app: 'dpas',
  vendor_product: 'Waybill Data Protection and Audit Service',
  vendor_account: 'tenant-1',
  signature: '',
  signature_id: '',
  command: '',
  action: '',
  status: '',
  result: '',
  change_type: '',
  dlp_type: '',
  category: '',
  severity: '',
};

/** For `poorest`: without names, addresses and network. */
const poor = { ...whole, user: 'u-7f3', owner: 'u-002', user_email: '', owner_email: '', src: '' };

const categories: Readonly<Record<string, string>> = {
  GeoValidationCountryExclusionFailed: 'geography',
  GeoValidationFailed: 'geography',
  TimeEmbargoFailed: 'time',
  UserPayloadNoAccess: 'authorization',
};

/** The words of CIM for a row of the table of outcomes. */
function wordsOf({ triple, action: command, severity }: (typeof rows)[number]): Row {
  const [attempted, result, reason] = triple;
  const common = { signature: reason, signature_id: triple.join(':'), command };
  if (result === 'AccessDenied')
    return {
      ...common,
      action: 'blocked',
      status: 'failure',
      dlp_type: 'policy',
      category: categories[reason],
      severity: severity >= 7 ? 'high' : severity >= 5 ? 'medium' : 'low',
    };
  if (attempted === 'Audit')
    return { ...common, action: reason === 'Created' ? 'created' : 'modified', status: 'success', result, change_type: 'access policy' };
  return { ...common, action: attempted === 'Decrypt' ? 'read' : 'created', status: 'success' };
}

const without = (row: Row): Row => Object.fromEntries(Object.entries(row).filter(([, value]) => value !== ''));

describe.each(forms)('events of %s', (sourcetype, eventWith) => {
  test.each(rows.map((row) => [row.triple.join(':'), row] as const))('%s has the fields of its data models', (_, row) => {
    expect(cimOf(eventWith(recordOf(fullest, row.triple)))).toEqual(without({ ...whole, ...wordsOf(row) }));
    expect(cimOf(eventWith(recordOf(poorest, row.triple)))).toEqual(without({ ...poor, ...wordsOf(row) }));
  });

  test.each([
    ['Encrypt', 'blocked', 'created'],
    ['EncryptionRequest', 'blocked', 'created'],
    ['Decrypt', 'blocked', 'read'],
  ])('%s with an unknown reason has the action of its outcome', (attempted, whenDenied, whenGranted) => {
    const command = `file-${{ Encrypt: 'encrypt', EncryptionRequest: 'encrypt-request', Decrypt: 'decrypt' }[attempted] ?? ''}`;
    const known = { command, object_category: 'file', signature: 'NewReason' };
    const denied = eventWith(recordOf(poorest, [attempted, 'AccessDenied', 'NewReason']));
    expect(denied).toMatchObject({ ...known, action: whenDenied, status: 'failure', severity: 'medium', 'event.action': command });
    const granted = eventWith(recordOf(poorest, [attempted, 'AccessGranted', 'NewReason']));
    expect(granted).toMatchObject({ ...known, action: whenGranted, status: 'success', 'event.action': command });
  });

  test('an address that is IPv6 is the source', () => {
    expect(eventWith({ ...fullest, userNetwork: { ipAddress: '2001:db8::1' } })).toMatchObject({ src: '2001:db8::1' });
  });

  test('of each data model have its tags', () => {
    const tagsOf = (row: Row): readonly string[] =>
      [...conf('eventtypes')]
        .filter(([, keys]) => spl(keys.get('search') ?? '').run([row]).length > 0)
        .flatMap(([name]) => [...(conf('tags').get(`eventtype=${name}`) ?? [])])
        .flatMap(([tag, state]) => (state === 'enabled' ? [tag] : []));
    for (const { triple } of rows) {
      const models = triple[1] === 'AccessDenied' ? ['dlp', 'incident'] : ['data', 'access', ...(triple[0] === 'Audit' ? ['change'] : [])];
      expect(tagsOf(eventWith(recordOf(poorest, triple))), triple.join(':')).toEqual(models);
    }
  });

  test('are not merged or cut, and extracted in one way', () => {
    const keys = conf('props').get(sourcetype);
    const mode = sourcetype === 'dpas:cef' ? 'none' : 'json';
    expect([keys?.get('KV_MODE'), keys?.get('SHOULD_LINEMERGE'), keys?.get('TRUNCATE')]).toEqual([mode, 'false', '0']);
  });
});
