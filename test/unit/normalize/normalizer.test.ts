import { createHash } from 'node:crypto';
import { isIP } from 'node:net';
import { describe, expect, test } from 'vitest';
import categorization from '../../fixtures/ecs-9.4.0-categorization.json' with { type: 'json' };
import ecs from '../../fixtures/ecs-9.4.0-fields.json' with { type: 'json' };
import type { EcsEvent } from '../../../src/record/event.ts';
import { normalizer, type NormalizeSettings } from '../../../src/normalize/normalizer.ts';
import { outcomeCodes } from '../../../src/normalize/outcomes.ts';
import { documentOf, type EcsDocument } from '../../support/normalize/ecs-document.ts';
import { fullest, poorest, received, recordOf, rows, settings, shapes } from '../../support/normalize/records.ts';

const normalize = normalizer(settings);
const eventOf = (record: unknown, over: Partial<NormalizeSettings> = {}): EcsEvent =>
  normalizer({ ...settings, ...over })(recordOf(typeof record === 'string' ? record : JSON.stringify(record)));

const fields = new Map(Object.entries(ecs.fields as unknown as Record<string, [string, string]>));

/**
 * Names that the dynamic templates of a `logs-*` stream would map to another type (docs/formats.md,
 * "dpas").
 */
const taken = [
  /(^|[._])ip$/,
  /(^|\.)location$/,
  /[._]timestamp$/,
  /(^|\.)(created|creation_date|ctime|mtime|accessed|start|end|ingested|installed|not_after|not_before)$/,
  /(^|\.)(message|message_id|io\.text|body\.content)$/,
  /(command_line|stack_trace|url\.full|url\.original|url\.path|registry\.data\.strings)$/,
  /_score|\.score\.|\.usage$/,
  /(structured_data|exports|imports)$/,
];

/** Every leaf with its path; a position is a leaf. */
function leaves(value: unknown, path = ''): [string, unknown][] {
  if (typeof value !== 'object' || value === null || Array.isArray(value) || path === 'source.geo.location') return [[path, value]];
  const entries = Object.entries(value);
  if (entries.length === 0) return [[path, value]];
  return entries.flatMap(([key, item]) => leaves(item, path === '' ? key : `${path}.${key}`));
}

function expectValid(document: EcsDocument): void {
  for (const [path, value] of leaves(document)) {
    for (const item of Array.isArray(value) ? (value as unknown[]) : [value]) expect(['', null, undefined], path).not.toContain(item);
    if (path.startsWith('dpas.')) {
      expect(typeof value, path).toBe('string');
      for (const pattern of taken) expect(path).not.toMatch(pattern);
      continue;
    }
    const field = fields.get(path);
    if (field === undefined) throw new Error(`ECS has no field ${path}`);
    const [type, many] = field;
    expect(Array.isArray(value), `${path} is ${many}`).toBe(many === 'array');
    for (const item of Array.isArray(value) ? (value as unknown[]) : [value]) expectType(path, type, item);
  }
  const { kind, category, type, outcome } = document.event;
  const names = (key: keyof typeof categorization.allowed) => categorization.allowed[key].map(({ name }) => name);
  expect(names('event.kind')).toContain(kind);
  expect(names('event.outcome')).toContain(outcome);
  const categories = categorization.allowed['event.category'].filter(({ name }) => category?.includes(name));
  expect(categories.length).toBe(category?.length ?? 0);
  for (const each of type ?? []) {
    expect(names('event.type')).toContain(each);
    expect(categories.some((one) => one.expected_event_types.includes(each))).toBe(true);
  }
}

function expectType(path: string, type: string, value: unknown): void {
  switch (type) {
    case 'ip':
      expect(isIP(value as string), path).toBeGreaterThan(0);
      break;
    case 'date':
      expect(value, path).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{3,9})?Z$/);
      break;
    case 'long':
      expect(Number.isSafeInteger(value), path).toBe(true);
      break;
    case 'geo_point':
      expect(Object.keys(value as object)).toEqual(['lat', 'lon']);
      break;
    default:
      expect(typeof value, path).toBe('string');
  }
  if (path.endsWith('.mac')) expect(value).toMatch(/^[A-F0-9]{2}(-[A-F0-9]{2}){5,}$/);
}

describe('68 records: 17 outcomes, with and without personal data and network', () => {
  test('are complete', () => {
    expect(rows.map((row) => row.triple.join(':'))).toEqual(outcomeCodes);
    expect(shapes.length).toBe(68);
  });

  test.each(shapes.map((shape) => [shape.name, shape] as const))('%s', (_name, { row, text, record, withNetwork, withPersonal }) => {
    const event = normalize(recordOf(text));
    const document = documentOf(event);
    expectValid(document);
    expect(document.event).toMatchObject({
      kind: 'event',
      category: row.category,
      type: [row.type],
      action: row.action,
      outcome: row.outcome,
      reason: row.triple[2],
      code: row.triple.join(':'),
      severity: row.severity,
      original: text,
      hash: createHash('sha256').update(text).digest('hex'),
    });
    expect(document.tags).toEqual(['forwarded']);
    expect(document.message).toBe(`${row.name}: ${withPersonal ? 'user@example.com' : 'u-7f3'} / Example file.xlsx (${row.triple[2]})`);
    expect('source' in document).toBe(withNetwork);
    expect('host' in document).toBe(withNetwork);
    expect(document.user?.email).toBe(withPersonal ? 'user@example.com' : undefined);
    expect(event).toMatchObject({
      name: row.name,
      severity: row.severity,
      action: row.triple[0],
      key: record.payloadId,
      unexpected: [],
      time: Date.UTC(2024, 4, 1, 12, 34, 56) * 1000 + 123456,
    });
  });
});

describe('unexpected records', () => {
  const without = (field: string) => Object.fromEntries(Object.entries(fullest).filter(([key]) => key !== field));

  test.each(Object.keys(poorest))('without %s the other fields are written', (field) => {
    for (const record of [without(field), { ...fullest, [field]: null }, { ...fullest, [field]: '' }, { ...fullest, [field]: ' \t' }]) {
      const event = eventOf(record);
      expectValid(documentOf(event));
      const part = { actionAttempted: 0, result: 1, resultReason: 2 }[field];
      const code = ['Decrypt', 'AccessGranted', 'Success'].map((word, index) => (index === part ? 'Unknown' : word)).join(':');
      expect(documentOf(event).event.code).toBe(code);
      const tags = [
        part === undefined ? [] : ['unknown_combination'],
        ['missing_field'],
        field === 'logTimestamp' ? ['invalid_timestamp'] : [],
      ].flat();
      expect(event.unexpected).toEqual(tags);
      expect(documentOf(event).tags).toEqual(['forwarded', ...tags]);
    }
  });

  test('an absent optional field is not unexpected', () => {
    const event = eventOf({ ...poorest, userNetwork: { ipAddress: '', mac: null }, userEmailAddress: null, userLastNameFirstName: ' ' });
    expect(event.unexpected).toEqual([]);
    expect(documentOf(event)).toEqual({ ...documentOf(eventOf(poorest)), event: documentOf(event).event, dpas: documentOf(event).dpas });
    expect(eventOf({ ...poorest, userNetwork: null }).unexpected).toEqual([]);
    expect(eventOf({ ...poorest, userNetwork: {} }).unexpected).toEqual([]);
  });

  test('a number or a boolean becomes its JSON text', () => {
    const event = eventOf({ ...fullest, userId: 7003, payloadName: true, userNetwork: { networkId: 1.5 } });
    expect(documentOf(event)).toMatchObject({ user: { id: '7003' }, file: { name: 'true' }, dpas: { network: { id: '1.5' } } });
    expect(event.unexpected).toEqual(['unexpected_type']);
    expect(eventOf({ ...fullest, logId: '418230' }).unexpected).toEqual([]);
    expect(documentOf(eventOf(JSON.stringify(fullest).replace('418230', '9007199254740993'))).event.id).toBe('9007199254740993');
  });

  test.each(['x', 5, true, ['x'], [{}]])('userNetwork %j stays only in the original', (userNetwork) => {
    const event = eventOf({ ...poorest, userNetwork });
    expect(event.unexpected).toEqual(['unexpected_type']);
    expect(documentOf(event).event.original).toContain(JSON.stringify(userNetwork));
    expect(documentOf(event)).not.toHaveProperty('source');
  });

  test('an object or array instead of a scalar stays only in the original', () => {
    const event = eventOf({ ...fullest, payloadName: { x: 'inside' }, result: ['AccessGranted'], logId: {}, userNetwork: { mac: [] } });
    expectValid(documentOf(event));
    expect(event.unexpected).toEqual(['unknown_combination', 'unexpected_type']);
    expect(documentOf(event).event).toMatchObject({ code: 'Decrypt:Unknown:Success' });
    expect(documentOf(event).event).not.toHaveProperty('id');
    expect(documentOf(event).dpas.payload?.name).toBeUndefined();
  });

  test('values that cannot be parsed stay in the plain fields', () => {
    const userNetwork = { ipAddress: '010.1.1.1', mac: 'n/a', latLong: '95.1,10', address: 'x' };
    const document = documentOf(eventOf({ ...poorest, userNetwork, userEmailAddress: 'a@b@c' }));
    expect(document.source).toEqual({ address: '010.1.1.1' });
    expect(document).not.toHaveProperty('network');
    expect(document.dpas.network).toEqual({ address: 'x', lat_long: '95.1,10', mac: 'n/a' });
    expect(document.user).toEqual({ id: 'u-7f3', email: 'a@b@c' });
  });

  test.each(['2024-02-30T00:00:00', '2024-05-01 12:34:56', 'soon', '2255-01-01T00:00:00'])(
    'the time %s is replaced by the time of receipt',
    (logTimestamp) => {
      const event = eventOf({ ...fullest, logTimestamp });
      expect(documentOf(event)).toMatchObject({ '@timestamp': '2024-05-01T12:35:10.000Z', dpas: { log_time: logTimestamp } });
      expect(event.time).toBe(received);
      expect(event.unexpected).toEqual(['invalid_timestamp']);
    },
  );

  test.each(['null', '5', '1.50', '"x"', '[]', '[{"logId":1}]', `{"logId":1,"x":${'['.repeat(70)}${']'.repeat(70)}}`])(
    'a record that is not an object is a generic event: case %#',
    (text) => {
      const event = eventOf(text);
      expectValid(documentOf(event));
      expect(documentOf(event)).toMatchObject({
        message: 'Data protection event',
        event: { kind: 'pipeline_error', original: text, code: 'Unknown:Unknown:Unknown' },
      });
      expect(documentOf(event).event.action).toBe('unknown-unknown-unknown');
      expect(event.unexpected).toEqual(['not_an_object']);
      expect(event).toMatchObject({ action: 'Unknown', key: undefined, time: received });
    },
  );

  test('an unknown key changes nothing but the original', () => {
    const known = documentOf(eventOf(fullest));
    const unknown = documentOf(eventOf({ ...fullest, newField: 'x', userNetwork: { ...fullest.userNetwork, more: { x: 1 } } }));
    const { original, hash } = unknown.event;
    expect(unknown).toEqual({ ...known, event: { ...known.event, original, hash } });
    expect(original).toContain('newField');
  });
});

/** docs/formats.md, "An unknown combination". */
const unknown: readonly (readonly [
  string,
  string,
  string,
  Partial<Record<'category' | 'type' | 'action' | 'outcome' | 'severity' | 'code' | 'name', unknown>>,
])[] = [
  [
    'Decrypt',
    'AccessDenied',
    'DeviceNotTrusted',
    { category: ['file'], type: ['access'], action: 'file-decrypt', outcome: 'failure', severity: 5, name: 'Protected file open denied' },
  ],
  [
    'Encrypt',
    'AccessGranted',
    'Other',
    { category: ['file'], type: ['creation'], action: 'file-encrypt', outcome: 'success', severity: 4, name: 'File protection allowed' },
  ],
  [
    'EncryptionRequest',
    'AccessGranted',
    'Success',
    { category: ['file'], type: ['creation'], action: 'file-encrypt-request', outcome: 'success', severity: 4 },
  ],
  [
    'Encrypt',
    'Queued',
    'Other',
    { category: ['file'], action: 'file-encrypt', outcome: 'unknown', severity: 4, name: 'Data protection event' },
  ],
  [
    'Audit',
    'AccessWindow',
    'Deleted',
    {
      category: ['configuration'],
      type: ['info'],
      action: 'access-window-deleted',
      outcome: 'unknown',
      severity: 4,
      name: 'Data protection event',
    },
  ],
  [
    'Audit',
    'RevokeAccess',
    'Created',
    { category: ['configuration', 'iam'], type: ['info'], action: 'access-revocation-created', name: 'Access revocation created' },
  ],
  [
    'Audit',
    'AuthorChanged',
    'HandedOver',
    { category: ['configuration', 'iam'], action: 'owner-handed-over', name: 'Data protection event' },
  ],
  [
    'Audit',
    'PolicyDLPCheck',
    'Changed',
    { category: ['configuration'], type: ['info'], action: 'audit-policy-dlp-check-changed', outcome: 'unknown' },
  ],
  ['Audit', 'AccessDenied', 'Changed', { outcome: 'unknown', severity: 4 }],
  [
    'Open File!',
    'AccessDenied',
    'Too Late',
    {
      category: undefined,
      type: undefined,
      action: 'open-file-access-denied-too-late',
      outcome: 'unknown',
      code: 'Open_File_:AccessDenied:Too_Late',
    },
  ],
  ['Öffnen', '拒否', '😀', { action: 'ffnen-unknown-unknown', code: '_ffnen:__:_' }],
  ['Decrypt:AccessGranted', 'Success', 'x', { code: 'Decrypt_AccessGranted:Success:x' }],
  ['constructor', '__proto__', 'toString', { action: 'constructor-proto-to-string', code: 'constructor:__proto__:toString' }],
];

test.each(unknown)('the unknown combination %s:%s:%s is mapped by its parts', (actionAttempted, result, resultReason, expected) => {
  const event = eventOf({ ...fullest, actionAttempted, result, resultReason });
  expectValid(documentOf(event));
  expect({ category: undefined, type: undefined, ...documentOf(event).event, name: event.name }).toMatchObject(expected);
  expect(documentOf(event).dpas).toMatchObject({ action_attempted: actionAttempted, result, result_reason: resultReason });
  expect(event.unexpected).toEqual(['unknown_combination']);
});

test('parts of any length are truncated where they are names', () => {
  const event = eventOf({
    ...fullest,
    actionAttempted: 'A'.repeat(65_536),
    result: `${'x'.repeat(59)}-yz`,
    resultReason: '😀'.repeat(65_536),
  });
  expect(
    documentOf(event)
      .event.code.split(':')
      .map((part) => part.length),
  ).toEqual([80, 62, 40]);
  expect(documentOf(event).event.action).toBe(`${'a'.repeat(60)}-${'x'.repeat(59)}-unknown`);
});

describe('settings', () => {
  test('the severity of single outcomes can be overridden', () => {
    const over = { mapping: { severity: { 'Decrypt:AccessGranted:Success': 9 }, names: {}, hostIdFromUuid: true } };
    expect(eventOf(fullest, over).severity).toBe(9);
    expect(documentOf(eventOf(fullest, over)).event.severity).toBe(9);
    expect(eventOf({ ...fullest, actionAttempted: 'Encrypt' }, over).severity).toBe(1);
  });

  test('uuid need not name the machine', () => {
    const document = documentOf(eventOf(fullest, { mapping: { severity: {}, names: {}, hostIdFromUuid: false } }));
    expect(document.host).not.toHaveProperty('id');
    expect(document.related?.hosts).toEqual(['LT-0042']);
    expect(document.dpas.network?.uuid).toBe(fullest.userNetwork.uuid);
  });

  test('unknown facts of the source are omitted', () => {
    const document = documentOf(eventOf(fullest, { tenantId: undefined, baseUrl: undefined }));
    expectValid(document);
    expect(document).not.toHaveProperty('organization');
    expect(document.observer).not.toHaveProperty('hostname');
    expect(documentOf(eventOf(fullest, { baseUrl: 'https://[2001:db8::1]:8443/api' })).observer.hostname).toBe('2001:db8::1');
  });

  test('an IPv4 address that a dual-stack host wrote as IPv6 is IPv4; the text of the record stays', () => {
    const record = { ...fullest, userNetwork: { ...fullest.userNetwork, ipAddress: '::ffff:192.0.2.9' } };
    const { source, network, related, event } = documentOf(eventOf(record));
    expect([source?.ip, source?.address, network?.type, related?.ip]).toEqual(['192.0.2.9', '::ffff:192.0.2.9', 'ipv4', ['192.0.2.9']]);
    expect(event.original).toContain('"::ffff:192.0.2.9"');
  });
});

describe('the message', () => {
  test.each([
    [{ userEmailAddress: null }, 'Protected file open allowed: u-7f3 / Example file.xlsx (Success)'],
    [{ userEmailAddress: null, userId: null }, 'Protected file open allowed: Example file.xlsx (Success)'],
    [{ payloadName: null }, 'Protected file open allowed: user@example.com (Success)'],
    [{ payloadName: null, userId: null, userEmailAddress: '', resultReason: null }, 'Protected file open allowed'],
    [{ payloadName: 'a\r\nb\u0000\u0085c' }, 'Protected file open allowed: user@example.com / a  b  c (Success)'],
    [{ payloadName: `${'x'.repeat(255)}😀` }, `Protected file open allowed: user@example.com / ${'x'.repeat(255)} (Success)`],
  ])('%j', (over, message) => {
    expect(documentOf(eventOf({ ...fullest, ...over })).message).toBe(message);
  });
});
