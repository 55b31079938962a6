import { describe, expect, test } from 'vitest';
import { normalizer, type NormalizeSettings } from '../../../src/normalize/normalizer.ts';
import { fullest, network, poorest, recordOf, settings, shapes } from '../../support/normalize/records.ts';
import { faultsOf } from '../../support/encode/ocsf-schema.ts';
import { encoder } from '../../support/encode/texts.ts';

interface Event {
  readonly [name: string]: unknown;
  readonly actor?: { readonly user: Readonly<Record<string, unknown>> };
  readonly device?: Readonly<Record<string, unknown>>;
  readonly src_endpoint?: Readonly<Record<string, unknown>>;
  readonly file?: Readonly<Record<string, unknown>>;
  readonly entity?: Readonly<Record<string, unknown>>;
  readonly unmapped?: Readonly<Record<string, unknown>>;
  readonly observables?: readonly { readonly name: string; readonly value: string }[];
}

/** The event of a record, checked against the schema. */
function eventOf(record: unknown, over: Partial<NormalizeSettings> = {}): Event {
  const text = typeof record === 'string' ? record : JSON.stringify(record);
  const written = encoder('ocsf', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } })(
    normalizer({ ...settings, ...over })(recordOf(text)),
  );
  expect(faultsOf(written), text).toEqual([]);
  return JSON.parse(written) as Event;
}

describe('68 records are valid, and have the meaning in the table', () => {
  test.each(shapes.map((shape) => [shape.name, shape] as const))('%s', (_name, { row, text, withNetwork, withPersonal }) => {
    const event = eventOf(text);
    const [action, , reason] = row.triple;
    const isAudit = action === 'Audit';
    expect(event).toMatchObject({
      time: 1714566896123,
      class_uid: isAudit ? 3004 : 1001,
      activity_id: isAudit ? (reason === 'Created' ? 1 : 3) : action === 'Decrypt' ? 11 : 10,
      status_id: row.outcome === 'success' ? 1 : 2,
      severity_id: [1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5][row.severity],
      status_code: reason,
      metadata: { event_code: row.triple.join(':'), original_event_uid: expect.any(String) as string },
      raw_data: text,
      actor: { user: { uid: 'u-7f3', type_id: 1 } },
    });
    expect(event['is_alert']).toBe(isAudit ? undefined : row.severity >= 7);
    expect(event['disposition_id']).toBe(isAudit ? undefined : row.outcome === 'success' ? 1 : 2);
    expect(event.actor?.user['email_addr']).toBe(withPersonal ? 'user@example.com' : undefined);
    expect((isAudit ? event.src_endpoint : event.device)?.['ip']).toBe(withNetwork ? '203.0.113.7' : undefined);
  });
});

describe('classes', () => {
  const of = (over: object): Event => eventOf({ ...fullest, ...over });

  test('an unknown action is a Base Event with all its fields in unmapped', () => {
    const event = of({ actionAttempted: 'Print', result: 'Queued', resultReason: 'Later' });
    expect(event).toMatchObject({
      class_uid: 0,
      category_uid: 0,
      activity_id: 99,
      activity_name: 'print-queued-later',
      type_uid: 99,
      status_id: 0,
    });
    expect(event.unmapped).toMatchObject({
      ...{ actionAttempted: 'Print', result: 'Queued', resultReason: 'Later', userId: 'u-7f3', userEmailAddress: 'user@example.com' },
      ...{ payloadId: 'p-91c2', payloadName: 'Example file.xlsx', currentPayloadOwnerId: 'u-002' },
      userNetwork: { ipAddress: '203.0.113.7', machineName: 'LT-0042', networkName: 'Example WLAN', uuid: network.uuid },
    });
  });

  test('an unknown reason of Audit is another activity, by its name', () => {
    expect(of({ actionAttempted: 'Audit', result: 'AccessWindow', resultReason: 'Deleted' })).toMatchObject({
      ...{ class_uid: 3004, activity_id: 99, activity_name: 'Deleted', type_uid: 300499 },
    });
    expect(of({ actionAttempted: 'Audit', result: undefined, resultReason: undefined })).toMatchObject({ activity_name: 'Unknown' });
  });

  test('a file action without a known outcome has no verdict', () => {
    const event = of({ result: 'Queued' });
    expect(event).toMatchObject({ class_uid: 1001, status_id: 0 });
    expect(event).not.toHaveProperty('action_id');
    expect(event).not.toHaveProperty('disposition_id');
  });

  test.each([
    ['{}', 0],
    ['[]', 0],
    ['null', 0],
    ['{"actionAttempted":"Decrypt"}', 1001],
    ['{"actionAttempted":"Audit"}', 3004],
    ['{"actionAttempted":"Audit","result":"AuthorChanged"}', 3004],
    ['{"actionAttempted":"Audit","userNetwork":{"networkName":"WLAN","deviceType":"x","domainName":"D"}}', 3004],
    ['{"actionAttempted":"Decrypt","userNetwork":{"deviceType":"Laptop"}}', 1001],
    ['{"actionAttempted":"Decrypt","userLastNameFirstName":"Doe,Jane"}', 1001],
  ])('the smallest records are valid: %s', (text, classUid) => {
    expect(eventOf(text)['class_uid']).toBe(classUid);
  });
});

describe('objects', () => {
  const ofNetwork = (over: object, more: Partial<NormalizeSettings> = {}): Event =>
    eventOf({ ...fullest, userNetwork: { ...network, ...over } }, more);

  test.each([
    ['SERVER', 1],
    ['Desktop', 2],
    ['laptop', 3],
    ['Tablet', 4],
    ['mobile', 5],
    ['Virtual', 6],
    ['Thin client', 99],
  ])('a device of the type %s', (deviceType, typeId) => {
    expect(ofNetwork({ deviceType }).device).toMatchObject({ type_id: typeId, type: deviceType });
  });

  test('a device without any identifier is named Unknown, as the schema requires', () => {
    const event = eventOf({ ...poorest, userNetwork: { deviceType: 'Laptop', domainName: 'EXAMPLE' } });
    expect(event.device).toEqual({ type_id: 3, type: 'Laptop', name: 'Unknown', domain: 'EXAMPLE' });
    expect(eventOf(poorest).device).toEqual({ type_id: 0, name: 'Unknown' });
  });

  test('addresses that the schema rejects are omitted, not changed', () => {
    const event = ofNetwork({ ipAddress: '203.0.113.7/24', mac: '0a1b.2c3d.4e5f.0102' });
    expect(event.device).not.toHaveProperty('ip');
    expect(event.device).not.toHaveProperty('mac');
    const user = eventOf({ ...fullest, userEmailAddress: 'jane doe@example' }).actor?.user;
    expect(user).toMatchObject({ name: 'jane doe@example' });
    expect(user).not.toHaveProperty('email_addr');
  });

  test('an id that names no machine by the configuration goes to unmapped', () => {
    const event = ofNetwork({}, { mapping: { severity: {}, names: {}, hostIdFromUuid: false } });
    expect(event.device).not.toHaveProperty('uid');
    expect(event.unmapped).toMatchObject({ userNetwork: { uuid: network.uuid } });
  });

  test('a position without a city has no attribute: it goes to unmapped as received', () => {
    expect(ofNetwork({ latLong: ' 12.5, -0.25' }).unmapped).toMatchObject({ userNetwork: { latLong: ' 12.5, -0.25' } });
  });

  test('observables name existing values, by valid paths', () => {
    const at = (event: unknown, path: string): unknown =>
      path.split('.').reduce((value, key) => (value as Record<string, unknown>)[key], event);
    for (const { text } of shapes) {
      const event = eventOf(text);
      for (const { name, value } of event.observables ?? []) expect(at(event, name)).toBe(value);
    }
    expect(eventOf({ ...fullest }).observables?.map(({ name }) => name)).toEqual(['actor.user.uid', 'file.name', 'device.ip']);
  });

  test('without the text of the record its hash stays', () => {
    const encode = encoder('ocsf', { includeOriginal: false, cef: { ipv6: 'c6a2', geo: 'cfp' } });
    const event = JSON.parse(encode(normalizer(settings)(recordOf(JSON.stringify(fullest))))) as Event;
    expect(event).not.toHaveProperty('raw_data');
    expect(event['raw_data_hash']).toEqual({ algorithm_id: 3, value: expect.stringMatching(/^[0-9a-f]{64}$/) as string });
  });
});
