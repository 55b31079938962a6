/** A record read from its bytes, compared with the result of JSON.parse for its text. */
import { describe, expect, test } from 'vitest';
import { fieldPaths } from '../../../src/record/fields.ts';
import { readRecord, readText } from '../../../src/record/read.ts';
import { kinds } from '../../../src/record/walk.ts';
import { sized } from '../../support/long-run.ts';
import { fullest } from '../../support/normalize/records.ts';

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
const parse = JSON.parse as (text: string, reviver: Reviver) => unknown;

/** The text of a field by the rules of docs/formats.md, from the result of JSON.parse. */
function expectedText(object: unknown, path: string): string | undefined {
  const value = path
    .split('.')
    .reduce<unknown>(
      (at, key) => (typeof at === 'object' && at !== null && !Array.isArray(at) && Object.hasOwn(at, key) ? (at as never)[key] : undefined),
      object,
    );
  if (value instanceof Digits) return value.text;
  if (typeof value === 'boolean') return String(value);
  return typeof value === 'string' && value.trim() !== '' ? value.toWellFormed() : undefined;
}

/** A number as its text: an exact integer in its shortest form, another number as written. */
class Digits {
  readonly text: string;
  constructor(value: number, source: string) {
    this.text = Number.isSafeInteger(value) && !Object.is(value, -0) ? value.toFixed(0) : source;
  }
}

function oracle(text: string): (string | undefined)[] {
  const value = parse(text, (_key, each, { source }) => (typeof each === 'number' ? new Digits(each, source ?? '') : each));
  const record = value instanceof Digits ? undefined : value;
  return fieldPaths.map((path) => expectedText(record, path));
}

const textsOf = (text: string) => fieldPaths.map((_path, field) => readText(text).text(field));

describe('the fields of a record', () => {
  test.for([
    JSON.stringify(fullest),
    JSON.stringify(fullest, null, 2),
    ` \t\r\n${JSON.stringify(fullest)} \n`,
    '{}',
    '{ }',
    '{"logId":1,"logId":2,"result":"a","result":null}',
    '{"userNetwork":{"mac":"a","uuid":"b"},"userNetwork":{"uuid":"c"}}',
    '{"userNetwork":{"mac":"a"},"userNetwork":null}',
    '{"log\\u0049d":1,"userNetw\\u006frk":{"m\\u0061c":"x"}}',
    '{"logId":9007199254740993,"userId":-0,"payloadId":1.0,"payloadName":1e3,"result":0.10,"userNetwork":{"mac":1E400}}',
    '{"logId":123456789012345,"userId":1234567890123456,"payloadId":0,"payloadName":-7,"result":true,"resultReason":false}',
    '{"userId":"","payloadId":"   ","payloadName":"\\u0009","result":"\u00a0\u2028","resultReason":" x "}',
    '{"userId":"\\ud800","payloadId":"\\ud83d\\ude00","payloadName":"é😀","result":"\\"\\\\\\/\\b\\f\\n\\r\\t"}',
    '{"userId":[1,"x",{"logId":5}],"payloadId":{"logId":6},"userNetwork":[{"mac":"x"}],"more":{"mac":"y","userNetwork":{"mac":"z"}}}',
    '{"userNetwork":{"logId":1,"inner":{"mac":"x"},"mac":["y"]},"mac":"z"}',
    '{"userNetwork":"x","userNetwork.mac":"y"}',
    '{"__proto__":{"logId":1},"constructor":2,"":3,"é":4}',
    '[{"logId":1}]',
    '[[{"logId":1},{"userNetwork":{"mac":"x"}}]]',
    '"logId"',
    '12',
    'null',
  ])('%s', (text) => {
    expect(textsOf(text)).toEqual(oracle(text));
  });

  test('the kinds describe how a value is written', () => {
    const record = readText(
      '{"logId":1,"userId":"x","payloadId":"é","payloadName":"\\n","result":1.5,"resultReason":true,"logTimestamp":{},"userNetwork":[]}',
    );
    const kindOf = (path: string) => record.kind(fieldPaths.indexOf(path as (typeof fieldPaths)[number]));
    expect(kindOf('logId')).toBe(kinds.integer);
    expect(kindOf('userId')).toBe(kinds.plain);
    expect(kindOf('payloadId')).toBe(kinds.unescaped);
    expect(kindOf('payloadName')).toBe(kinds.escaped);
    expect(kindOf('result')).toBe(kinds.number);
    expect(kindOf('resultReason')).toBe(kinds.boolean);
    expect(kindOf('logTimestamp')).toBe(kinds.object);
    expect(kindOf('userNetwork')).toBe(kinds.array);
    expect(kindOf('actionAttempted')).toBe(kinds.absent);
  });

  test('only a string is a time, with any escapes', () => {
    const timeOf = (value: string) => readText(`{"logTimestamp":${value}}`).time;
    expect(timeOf('"2024-05-01T12:34:56.1234569"')).toBe(1714566896123456);
    expect(timeOf('"2024-05-01\\u005412:34:56Z"')).toBe(1714566896000000);
    for (const other of ['1714566896000', 'null', 'true', '["2024-05-01T12:34:56"]', '"yesterday"']) expect(timeOf(other)).toBeUndefined();
    expect(readText('{}').time).toBeUndefined();
    expect(readText('["2024-05-01T12:34:56"]').time).toBeUndefined();
  });

  test('an invalid sequence of UTF-8 is read as a replacement character, in the bytes too', () => {
    const broken = Buffer.concat([Buffer.from('{"userId":"a'), Buffer.of(0xc3, 0x28, 0xff), Buffer.from('","logId":7}')]);
    const record = readRecord(broken);
    expect(record.bytes.toString()).toBe('{"userId":"a\ufffd(\ufffd","logId":7}');
    expect(record.text(fieldPaths.indexOf('userId'))).toBe('a\ufffd(\ufffd');
    expect(record.text(fieldPaths.indexOf('logId'))).toBe('7');
  });

  test('a record nested deeper than 64 levels is not an object, and its fields are absent', () => {
    const nested = (levels: number) => `{"logId":1,"more":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`;
    expect(readText(nested(64))).toMatchObject({ isObject: true });
    expect(readText(nested(64)).text(0)).toBe('1');
    expect(readText(nested(65))).toMatchObject({ isObject: false });
    expect(readText(nested(65)).text(0)).toBeUndefined();
    expect(readText(nested(300_000))).toMatchObject({ isObject: false });
    // JSON.parse keeps only the last of two equal keys.
    expect(readText('{"a":'.concat('['.repeat(80), ']'.repeat(80), ',"a":1,"logId":1}'))).toMatchObject({ isObject: true });
  });
});

test.for([
  ...[
    '',
    ' ',
    '{',
    '}',
    '{"a"',
    '{"a":',
    '{"a":1',
    '{"a":1,',
    '{"a":1,}',
    '{,"a":1}',
    '{"a" 1}',
    '{"a":1 "b":2}',
    '{a:1}',
    "{'a':1}",
    '{"a":1}}',
  ],
  ...[
    '[',
    ']',
    '[1',
    '[1,]',
    '[,1]',
    '[1 2]',
    '[1}',
    '{"a":[}',
    '{"a":1]',
    '{} {}',
    '{}x',
    '1 2',
    '"a',
    '"\n"',
    '"\\x"',
    '"\\u12g4"',
    '"\\u12',
    '"\\',
  ],
  ...[
    'tru',
    'trux',
    'nul',
    'falsy',
    'undefined',
    'NaN',
    '+1',
    '.5',
    '5.',
    '1e',
    '1e+',
    '-',
    '00',
    '01',
    '-01',
    '0x1',
    '1.e1',
    '--1',
    '\ufeff{}',
    '{}\u00a0',
  ],
])('text that is not JSON is refused: %j', (text) => {
  expect(() => JSON.parse(text) as unknown).toThrow(SyntaxError);
  expect(() => readText(text)).toThrow(SyntaxError);
});

test('an error names the byte and shows nothing of the record', () => {
  expect(() => readText('{"userId":secret}')).toThrow('unexpected byte 0x73 at 10');
  expect(() => readText('{"userId":')).toThrow('unexpected end');
});

test('mutated records are read as JSON.parse reads them, or refused as it refuses them', () => {
  const seed = Number(process.env['SEED'] ?? 20261121);
  const runs = Number(process.env['RECORDS'] ?? sized(1_000, 8_000));
  const random = seeded(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const spice = [
    ...[
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
      '😀',
      '\\u0041',
      '\\ud800',
      'null',
    ],
    ...['"logId":7,', '"userNetwork":{"mac":1},', '"userNetwork":3,', 'true', '""', '" "', '12345678901234567890', '-0', '1.50'],
  ];
  const start = JSON.stringify({ ...fullest, payloadName: 'Übersicht "Q3" \\ \n', list: [1, -0.5, 1e3, true, false, null, {}, []] });
  let read = 0;
  for (let run = 0; run < runs; run += 1) {
    let text = start;
    for (let cuts = below(4); cuts > 0; cuts -= 1) {
      const at = below(text.length);
      text = text.slice(0, at) + (spice[below(spice.length)] ?? '') + text.slice(at + below(3));
    }
    const context = `seed ${seed}, run ${run}: ${text}`;
    let expected: (string | undefined)[] | undefined;
    try {
      expected = oracle(text);
    } catch {
      expect(() => readText(text), context).toThrow(SyntaxError);
      continue;
    }
    read += 1;
    expect(textsOf(text), context).toEqual(expected);
  }
  expect(read).toBeGreaterThan(runs / 10);
});

function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test('a text of any one character is absent if String.prototype.trim removes it; JSON writes the others with their bytes', () => {
  const field = fieldPaths.indexOf('payloadName');
  for (let code = 0x20; code < 0x10_100; code += 1) {
    // White space is in neither of the two large ranges: ideographs, and half pairs with private use.
    if (code === 0x3100) code = 0xf800;
    const character = String.fromCodePoint(code);
    // Other tests read escapes. Half of a pair has no bytes in UTF-8.
    if (character === '"' || character === '\\' || !character.isWellFormed()) continue;
    for (const text of [character, `${character}x`]) {
      const record = readText(`{"payloadName":"${text}"}`);
      const isBlank = text.trim() === '';
      if (record.isAbsent(field) !== isBlank) throw new Error(`U+${code.toString(16)} is read as ${isBlank ? 'text' : 'absent'}`);
      if (record.isJsonText(field) && isBlank) throw new Error(`the bytes of U+${code.toString(16)} would be copied`);
    }
  }
});
