import { expect, test } from 'vitest';
import { identify } from '../../../src/record/identity.ts';
import { objectOf, parseRecord } from '../../../src/record/json.ts';
import { scanFields } from '../../../src/record/field-scan.ts';
import { timeOfRecord } from '../../../src/record/time-of.ts';

const fields = ['logId', 'logTimestamp', 'actionAttempted', 'result', 'resultReason'];
const plain = {
  logId: 418231,
  userId: 'u-7f3',
  payloadName: 'Übersicht "Q3" \\ \n',
  actionAttempted: 'Decrypt',
  result: 'AccessDenied',
  resultReason: 'TimeEmbargoFailed',
  logTimestamp: '2024-05-01T12:34:56.1234567',
  userNetwork: { ipAddress: '192.0.2.1', list: [1, -0.5, 1e3, true, false, null, {}, []] },
};

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

test('the five fields of an ordinary record are read without the rest', () => {
  expect(scanFields(bytesOf(JSON.stringify(plain)))).toEqual({
    logId: 418231,
    actionAttempted: 'Decrypt',
    result: 'AccessDenied',
    resultReason: 'TimeEmbargoFailed',
    logTimestamp: '2024-05-01T12:34:56.1234567',
  });
  expect(scanFields(bytesOf(JSON.stringify(plain, null, 2)))?.['logId']).toBe(418231);
});

test.for([
  ['an id that a number cannot hold', '{"logId":9007199254740993}'],
  ['an id with a fraction', '{"logId":1.0}'],
  ['an id with an exponent', '{"logId":1e3}'],
  ['a negative id', '{"logId":-1}'],
  ['a leading zero', '{"logId":01}'],
  ['no id', '{"result":"x"}'],
  ['an id that is null', '{"logId":null}'],
  ['an id that is empty', '{"logId":""}'],
  ['a key with an escape', '{"log\\u0049d":1,"logId":2}'],
  ['a field with an escape', '{"logId":1,"result":"a\\u0041"}'],
  ['a field beyond ASCII', '{"logId":1,"result":"ä"}'],
  ['a field that is an object', '{"logId":1,"result":{}}'],
  ['a field that is true', '{"logId":1,"result":true}'],
  ['an id of a million digits', `{"logId":${'1'.repeat(1_000_000)}}`],
  ['a text that is long', `{"logId":1,"result":"${'x'.repeat(256)}"}`],
  ['no object', '[1]'],
  ['an empty object', '{}'],
  ['something behind it', '{"logId":1} '],
  ['nothing', ''],
])('%s is left to the parser', ([, text]) => {
  expect(scanFields(bytesOf(text ?? ''))).toBeUndefined();
});

test.for([
  '{"logId":1,"a":tru}',
  '{"logId":1,"a":"\\x"}',
  '{"logId":1,"a":"\\u12g4"}',
  '{"logId":1,"a":"\n"}',
  '{"logId":1,"a":+1}',
  '{"logId":1,"a":.5}',
  '{"logId":1,"a":5.}',
  '{"logId":1,"a":1e}',
  '{"logId":1,"a":00}',
  '{"logId":1,"a":[1,]}',
  '{"logId":1,"a":{"b"}}',
  '{"logId":1,"a":{"b":1,}}',
  '{"logId":1,}',
  '{"logId":1',
  '{"logId":1 "a":2}',
  "{'logId':1}",
])('what is not JSON is never read: %s', (text) => {
  expect(() => JSON.parse(text) as unknown).toThrow();
  expect(scanFields(bytesOf(text))).toBeUndefined();
});

test('the last of two equal keys counts, as in JSON.parse', () => {
  expect(scanFields(bytesOf('{"logId":1,"logId":2,"result":"a","result":null}'))).toEqual({ logId: 2, result: null });
});

test('mutated records: what is read is what the parser reads, with the same identity and time', () => {
  const seed = Number(process.env['SEED'] ?? 20261121);
  const random = seeded(seed);
  const uidOf = identify('fuzz');
  const spice = [
    '"',
    '\\',
    '{',
    '}',
    '[',
    ']',
    ',',
    ':',
    '0',
    '1',
    '-',
    '.',
    'e',
    'n',
    't',
    ' ',
    '\n',
    '\u0000',
    'ä',
    '\\u0041',
    'null',
    '"logId":7,',
    'true',
  ];
  let read = 0;
  for (let run = 0; run < 40_000; run += 1) {
    const id = [418231, '12', 'x', null, 0, 9007199254740991, 999999999999999, 1234567890123456][Math.floor(random() * 8)];
    let text = JSON.stringify({ ...plain, logId: id, result: random() < 0.1 ? null : `r${run}` });
    for (let cuts = Math.floor(random() * 3); cuts > 0; cuts -= 1) {
      const at = Math.floor(random() * text.length);
      text = text.slice(0, at) + (spice[Math.floor(random() * spice.length)] ?? '') + text.slice(at + Math.floor(random() * 3));
    }
    const found = scanFields(bytesOf(text));
    if (found === undefined) continue;
    read += 1;
    const context = `seed ${seed}, run ${run}: ${text}`;
    const value = parseRecord(text);
    const object = objectOf(value);
    for (const field of fields) expect(found[field], context).toEqual(object?.[field]);
    expect(
      uidOf(found, () => ''),
      context,
    ).toBe(uidOf(value, () => text));
    expect(timeOfRecord(found), context).toBe(timeOfRecord(value));
  }
  expect(read).toBeGreaterThan(5_000);
});

function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}
