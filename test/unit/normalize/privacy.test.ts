import { createHash, createHmac } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { formats } from '../../../src/encode/index.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { keyMissing, type Privacy, type PrivacyAction } from '../../../src/normalize/privacy.ts';
import { privacySettings } from '../../../src/normalize/settings.ts';
import type { FieldPath, meaningFields } from '../../../src/record/fields.ts';
import { fullest, recordOf, settings } from '../../support/normalize/records.ts';
import type { EcsEvent } from '../../../src/record/event.ts';
import { encoder } from '../../support/encode/texts.ts';
import { documentOf, type EcsDocument } from '../../support/normalize/ecs-document.ts';

const key = 'a key of the tests, 32 characters';
const actions: readonly PrivacyAction[] = ['drop', 'mask', 'pseudonymize'];

/** A unique value for each field that a rule can name, with its possible derived forms. */
const markers: Readonly<Record<Exclude<FieldPath, (typeof meaningFields)[number] | 'userNetwork'>, readonly string[]>> = {
  userId: ['marker-user-id'],
  payloadId: ['marker-payload-id'],
  payloadName: ['Marker payload.docx', 'docx'],
  currentPayloadOwnerId: ['marker-owner-id'],
  userLastNameFirstName: ['Marker,Name', 'Name Marker'],
  userEmailAddress: ['marker@mail.example', 'mail.example', 'marker'],
  currentOwnerLastNameFirstName: ['Marker,Owner', 'Owner Marker'],
  currentOwnerEmailAddress: ['ownermarker@mail.example'],
  'userNetwork.ipAddress': ['198.51.100.77', 'ipv4'],
  'userNetwork.networkName': ['marker network'],
  'userNetwork.networkId': ['marker-network-id'],
  'userNetwork.domainName': ['marker.domain.example'],
  'userNetwork.deviceType': ['marker device'],
  'userNetwork.machineName': ['MARKER-01', 'marker-01'],
  'userNetwork.mac': ['00:00:5e:00:53:77', '00-00-5E-00-53-77', '00:00:5E:00:53:77'],
  'userNetwork.uuid': ['00000000-0000-4000-8000-000000000077'],
  'userNetwork.serviceProvider': ['marker provider'],
  'userNetwork.latLong': ['77.125,66.5', '77.125', '66.5'],
  'userNetwork.address': ['marker street'],
};

function withValue(path: string, value: unknown): Record<string, unknown> {
  const [top = '', inside] = path.split('.');
  return inside === undefined ? { ...fullest, [top]: value } : { ...fullest, userNetwork: { ...fullest.userNetwork, [inside]: value } };
}

/** The text in every format, with and without the original. */
function messagesOf(text: string, privacy: Privacy): string[] {
  const event = normalizer({ ...settings, privacy })(recordOf(text));
  return formats.flatMap((format) =>
    [true, false].map((original) => encoder(format, { includeOriginal: original, cef: { ipv6: 'src', geo: 'cfp' } })(event)),
  );
}

const redacted = (record: unknown, privacy: Privacy): { readonly event: EcsEvent; readonly document: EcsDocument } => {
  const event = normalizer({ ...settings, privacy })(recordOf(typeof record === 'string' ? record : JSON.stringify(record)));
  return { event, document: documentOf(event) };
};

describe.each(Object.entries(markers))('%s is hidden', (field, words) => {
  const record = withValue(field, words[0]);

  test('its markers are visible without a rule', () => {
    const messages = messagesOf(JSON.stringify(record), { rules: [] }).join('\n');
    for (const word of words) expect(messages).toContain(word);
  });

  test.each(actions)('by %s', (action) => {
    const privacy: Privacy = { rules: [{ fields: [field as FieldPath], action }], key };
    for (const message of messagesOf(JSON.stringify(record), privacy)) for (const word of words) expect(message).not.toContain(word);
  });

  test.each(actions)('by %s, in any form', (action) => {
    const privacy: Privacy = { rules: [{ fields: [field as FieldPath], action }], key };
    const word = words[0] ?? '';
    const text = JSON.stringify(record);
    const name = JSON.stringify(field.split('.').at(-1));
    const doubled = text.replace(`${name}:${JSON.stringify(word)}`, `${name}:${JSON.stringify(word)},${name}:null`);
    expect(doubled).not.toBe(text);
    const texts = [
      doubled,
      JSON.stringify(withValue(field, [word])),
      JSON.stringify(withValue(field, { value: word })),
      JSON.stringify([record]),
    ];
    if (field.startsWith('userNetwork.')) {
      texts.push(JSON.stringify({ ...fullest, userNetwork: word }), JSON.stringify({ ...fullest, userNetwork: [{ [word]: word }] }));
      texts.push(text.replace(/}$/, ',"userNetwork":null}'));
    }
    texts.push(`${text.slice(0, -1)},"deep":${'['.repeat(70)}${']'.repeat(70)}}`);
    for (const each of texts) for (const message of messagesOf(each, privacy)) expect(message, each).not.toContain(word);
  });
});

describe('actions', () => {
  const all = (action: PrivacyAction): Privacy => ({ rules: [{ fields: Object.keys(markers) as FieldPath[], action }], key });

  test('a dropped field is not reported as missing', () => {
    const { event, document } = redacted(fullest, all('drop'));
    expect(event.unexpected).toEqual([]);
    expect(document.message).toBe('Protected file open allowed (Success)');
    for (const part of ['user', 'file', 'source', 'host', 'network', 'related']) expect(document).not.toHaveProperty(part);
    expect(Object.keys(document.dpas)).toEqual(['uid', 'action_attempted', 'result', 'result_reason', 'log_time']);
    expect(event.key).toBeUndefined();
    expect(JSON.parse(document.event.original)).toEqual({
      logId: 418230,
      actionAttempted: 'Decrypt',
      result: 'AccessGranted',
      resultReason: 'Success',
      logTimestamp: '2024-05-01T12:34:56.1234567',
      userNetwork: {},
    });
  });

  test('a masked field stays in plain fields only', () => {
    const { event, document } = redacted(fullest, all('mask'));
    expect(document.message).toBe('Protected file open allowed (Success)');
    expect(document).not.toHaveProperty('related');
    expect(document.source).toEqual({ address: '***', as: { organization: { name: '***' } } });
    expect(document.host).toEqual({ name: '***', hostname: '***', domain: '***', id: '***', type: '***' });
    expect(document.user).toEqual({ id: '***', email: '***', full_name: '***' });
    expect(event.key).toBeUndefined();
    expect(event.unexpected).toEqual([]);
  });

  test('a pseudonym is the HMAC of the value, the same in every field', () => {
    const pseudonym = (value: string) => `pn_${createHmac('sha256', key).update(value).digest('base64url').slice(0, 22)}`;
    const { event, document } = redacted({ ...fullest, currentPayloadOwnerId: fullest.userId, payloadId: 12 }, all('pseudonymize'));
    expect(document.user?.id).toBe(pseudonym('u-7f3'));
    expect(document.file?.uid).toBe(document.user?.id);
    expect(document.related?.user).toEqual(['u-7f3', 'user@example.com', 'owner@example.com'].map(pseudonym));
    expect(event.key).toBe(pseudonym('12'));
    expect(document.user).not.toHaveProperty('domain');
    expect(document.source).not.toHaveProperty('ip');
  });

  test('an absent field stays absent', () => {
    const { document } = redacted({ ...fullest, userId: null, userEmailAddress: '', payloadName: undefined }, all('mask'));
    expect(document.user).toEqual({ full_name: '***' });
    expect(document.file).toEqual({ uid: '***', owner: '***' });
    expect(document.tags).toEqual(['forwarded', 'missing_field']);
  });

  test('a rule for userNetwork applies to all its fields without a separate rule', () => {
    const record = { ...fullest, userNetwork: { ...fullest.userNetwork, later: { secret: 'marker' } } };
    const privacy: Privacy = {
      rules: [
        { fields: ['userNetwork'], action: 'mask' },
        { fields: ['userNetwork.deviceType'], action: 'drop' },
        { fields: ['userNetwork.machineName'], action: 'pseudonymize' },
      ],
      key,
    };
    const { document } = redacted(record, privacy);
    const { userNetwork } = JSON.parse(document.event.original) as { userNetwork: Record<string, string> };
    expect(userNetwork.machineName).toMatch(/^pn_.{22}$/);
    expect(userNetwork).not.toHaveProperty('deviceType');
    expect(Object.entries(userNetwork).filter(([name, value]) => name !== 'machineName' && value !== '***')).toEqual([]);
    expect(userNetwork.later).toBe('***');
    const dropped = redacted(record, { rules: [{ fields: ['userNetwork'], action: 'drop' }] });
    expect(JSON.parse(dropped.document.event.original)).not.toHaveProperty('userNetwork');
    expect(dropped.event.unexpected).toEqual([]);
  });
});

describe('the original', () => {
  const privacy: Privacy = { rules: [{ fields: ['userEmailAddress'], action: 'mask' }] };

  test('is written again with its digits if a rule applied', () => {
    const text = '{ "logId":9007199254740993, "userEmailAddress":"user@example.com", "x":1.50 }';
    const { document } = redacted(text, privacy);
    expect(document.event.original).toBe('{"logId":9007199254740993,"userEmailAddress":"***","x":1.50}');
    expect(document.event.hash).toBe(createHash('sha256').update(document.event.original).digest('hex'));
  });

  test('stays as received if none did', () => {
    const text = '{ "logId":1,\r\n "userId":"u" }';
    expect(redacted(text, privacy).document.event.original).toBe(text);
  });

  test('of a record that is not an object is withheld if there is any rule', () => {
    const { event, document } = redacted('["user@example.com"]', privacy);
    expect(document.event.original).toBe('"***"');
    expect(event.unexpected).toEqual(['not_an_object']);
  });

  test('identity is computed from the record as received', () => {
    const text = JSON.stringify(fullest);
    expect(redacted(text, privacy).document.dpas.uid).toBe(redacted(text, { rules: [] }).document.dpas.uid);
  });
});

describe('settings', () => {
  const problems = (value: unknown) => privacySettings.safeParse(value).error?.issues.map((issue) => [issue.path.join('.'), issue.message]);

  test.each(['logId', 'logTimestamp', 'actionAttempted', 'result', 'resultReason'])('%s cannot be hidden', (field) => {
    expect(problems({ rules: [{ fields: [field], action: 'drop' }] })).toEqual([
      ['rules.0.fields.0', `a privacy rule cannot name "${field}": the identity or the meaning of a record depends on it`],
    ]);
  });

  test('every other field can be hidden', () => {
    expect(problems({ rules: [{ fields: [...Object.keys(markers), 'userNetwork'], action: 'mask' }] })).toBeUndefined();
  });

  test('a field has one rule, and a key has a minimum length', () => {
    expect(
      problems({
        rules: [
          { fields: ['userId'], action: 'pseudonymize' },
          { fields: ['payloadName', 'userId'], action: 'drop' },
        ],
      }),
    ).toEqual([['rules.1.fields.1', '"userId" is in more than one rule']]);
    expect(problems({ rules: [], key: 'short' })?.[0]?.[0]).toBe('key');
  });

  test('pseudonyms need a key, which may come from another level than the rules', () => {
    const rules = privacySettings.parse({ rules: [{ fields: ['userId'], action: 'pseudonymize' }] });
    expect(keyMissing(rules)).toBe(true);
    expect(keyMissing({ ...rules, key })).toBe(false);
    expect(keyMissing({ rules: [{ fields: ['userId'], action: 'mask' }] })).toBe(false);
    const thrown = expect(() => normalizer({ ...settings, privacy: rules }));
    thrown.toThrow(
      expect.objectContaining({ code: 'config_invalid', message: 'cannot pseudonymize: the setting "privacy.key" is missing' }),
    );
  });

  test('an unknown field is refused', () => {
    expect(problems({ rules: [{ fields: ['userEmail'], action: 'drop' }] })?.[0]?.[0]).toBe('rules.0.fields.0');
    expect(problems({ rules: [{ fields: [], action: 'drop' }] })?.[0]?.[0]).toBe('rules.0.fields');
  });
});
