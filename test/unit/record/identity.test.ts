import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import examples from '../../fixtures/mapping-examples.json' with { type: 'json' };
import { canonical, identify, uidBytes, uidText } from '../../../src/record/identity.ts';
import { parseRecord } from '../../../src/record/json.ts';
import { readText } from '../../../src/record/read.ts';
import { uidOfParts } from '../../support/uid-of-parts.ts';

const uidOf = (text: string, source = 'production') => identify(source)(readText(text));

test('the test vector of the specification', () => {
  expect(uidOf(examples.cases[0]?.record ?? '')).toBe('_pq6YGDVI8RYNcYPzrxbow');
});

describe('the worked examples', () => {
  test.each(examples.cases.map((example) => [example.name, example] as const))('%s', (_name, example) => {
    expect(uidOfParts(example.identity)).toBe(example.uid);
    expect(uidOf(example.record)).toBe(example.uid);
  });
});

const odd: readonly (readonly [string, readonly (string | null)[]])[] = [
  ['{"logId":1}', ['1', null, null, null, null]],
  ['{"logId":"7","logTimestamp":null,"result":""}', ['7', null, null, '', null]],
  [
    '{"logId":9007199254740993,"logTimestamp":"2024-05-01T14:00:00.500+02:00"}',
    ['9007199254740993', '2024-05-01T12:00:00.5', null, null, null],
  ],
  ['{"logId":1,"logTimestamp":"yesterday","actionAttempted":["a", 1.50]}', ['1', 'yesterday', '["a",1.50]', null, null]],
  ['{"logId":true,"logTimestamp":5,"result":{"b": 1, "a": 2}}', ['true', '5', null, '{"b":1,"a":2}', null]],
  ['{"logId":"ä€😀","resultReason":false}', ['ä€😀', null, null, null, 'false']],
  [`{"logId":"${'x'.repeat(70_000)}"}`, ['x'.repeat(70_000), null, null, null, null]],
  ['{"logId":null, "b":1.50,"a":{"z":1,"y":[{"d":1,"c":"ä"}]}}', ['{"a":{"y":[{"c":"ä","d":1}],"z":1},"b":1.50,"logId":null}']],
  ['{ }', ['{}']],
  ['{"logId":" "}', ['{"logId":" "}']],
  ['{"__proto__":{"b":1,"a":2}}', ['{"__proto__":{"a":2,"b":1}}']],
  ['[1, 2]', ['[1, 2]']],
  ['"text"', ['"text"']],
  ['null', ['null']],
  ['9007199254740993', ['9007199254740993']],
];

test.each(odd)('odd record %#', (text, parts) => {
  expect(uidOf(text, 's-1')).toBe(uidOfParts(['waybill/1', 's-1', ...parts]));
});

test('identities do not depend on earlier calls', () => {
  const uid = identify('s-1');
  const once = odd.map(([text]) => uid(readText(text)));
  const again = odd.toReversed().map(([text]) => uid(readText(text)));
  expect(again.toReversed()).toEqual(once);
  expect(new Set(once).size).toBe(odd.length);
});

test('fields that permissions may hide and second reads may change are no part of it', () => {
  const record = {
    logId: 1,
    logTimestamp: '2024-05-01T12:00:00.10',
    actionAttempted: 'Decrypt',
    result: 'AccessGranted',
    resultReason: 'Success',
  };
  const uid = uidOf(JSON.stringify(record));
  expect(uidOf(JSON.stringify({ ...record, userId: 'u', payloadName: 'x', userNetwork: {}, currentPayloadOwnerId: 'o' }))).toBe(uid);
  expect(uidOf(JSON.stringify({ ...record, logTimestamp: '2024-05-01T12:00:00.1Z' }))).toBe(uid);
  for (const [key, value] of Object.entries({
    logId: 2,
    logTimestamp: '2024-05-01T12:00:00.11',
    actionAttempted: 'x',
    result: 'x',
    resultReason: 'x',
  })) {
    expect(uidOf(JSON.stringify({ ...record, [key]: value })), key).not.toBe(uid);
  }
  expect(uidOf(JSON.stringify(record), 'other')).not.toBe(uid);
});

test('all 16 bytes survive conversion to text and back', () => {
  for (let i = 0; i < 256; i += 1) {
    const bytes = createHash('sha256').update(String(i)).digest();
    expect(uidText(bytes, 8)).toBe(bytes.subarray(8, 24).toString('base64url'));
    expect(uidBytes(uidText(bytes, 8)).equals(bytes.subarray(8, 24))).toBe(true);
    // Compared with a digest that the test computes itself; each possible last character occurs.
    expect(uidOf(String(i), 's')).toBe(uidOfParts(['waybill/1', 's', String(i)]));
  }
});

test('canonical JSON sorts keys at every level and keeps digits', () => {
  expect(canonical(parseRecord('{"b":[{"y":1,"x":2}],"a":1.50,"é":"\\u00e9","B":null}'))).toBe(
    '{"B":null,"a":1.50,"b":[{"x":2,"y":1}],"é":"é"}',
  );
});
