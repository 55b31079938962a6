import { describe, expect, test } from 'vitest';
import { isAbsent, isRawNumber, objectOf, parseRecord, textOf } from '../../../src/record/json.ts';

describe('parseRecord', () => {
  test.each(['\\t', '\\"', '\\u0041', '\\u007f', '\\ud800'])('reads the key %s whatever keys were read before', (key) => {
    for (const lead of ['a', 'é', '漢', '__proto__', '#0']) {
      // V8 13.6 expects the second key of this object in the next one.
      parseRecord(`{"${lead}":0,"\\\\":1}`);
      const expected = [lead, JSON.parse(`"${key}"`) as string];
      expect(Object.keys(parseRecord(`{"${lead}":0,"${key}" : 1.50}`) as object)).toEqual(expected);
      expect(Object.keys(parseRecord(`{"${lead}":"${key}","${key}":"\\t:","\\t\\\\":[]}`) as object)).toEqual([...expected, '\t\\']);
    }
  });

  test('reads a text with millions of escapes', () => {
    expect(objectOf(parseRecord(`{"a\\t":"${'\\\\'.repeat(4_000_000)}"}`))).toEqual({ 'a\t': '\\'.repeat(4_000_000) });
  });

  test.each([
    '{"A":1,"\\u0041":2,"b\\/":{"_":3,"%20":4}}',
    '{"A":1,"\\u0041":2,"A":3}',
    '{"\\u0041":1,"A":2,"\\u0041":3}',
    '{"a":{"A":1,"\\u0041":2,"A":3}}',
    '{"%09":1,"\\t":2,"%2509":3,"\\u00259":4,"%":5,"__proto__":{"\\u005f":6},"\\u0031":7,"1":8}',
  ])('the last of equal keys counts, however each is written: %s', (text) => {
    expect(JSON.stringify(parseRecord(text))).toBe(JSON.stringify(JSON.parse(text)));
  });

  test.each([
    ['9007199254740993', '9007199254740993'],
    ['-9007199254740993', '-9007199254740993'],
    ['123456789012345678901234567890', '123456789012345678901234567890'],
    ['1.50', '1.50'],
    ['1e400', '1e400'],
    ['9007199254740991', '9007199254740991'],
    ['1.0', '1'],
    ['1e3', '1000'],
    ['-0', '-0'],
    ['0', '0'],
  ])('the number %s keeps its text', (number, text) => {
    expect(textOf(objectOf(parseRecord(`{"logId":${number}}`))?.logId)).toBe(text);
    expect(textOf(objectOf(objectOf(parseRecord(`{"userNetwork":{"x":[],"networkId":${number}}}`))?.userNetwork)?.networkId)).toBe(text);
    expect(textOf(parseRecord(number))).toBe(text);
  });

  test('one inexact number leaves all other values unchanged', () => {
    const value = objectOf(parseRecord('{"a":9007199254740993,"b":{"c":[1,2,"x",null,true]},"__proto__":{"d":1}}'));
    expect(isRawNumber(value?.a)).toBe(true);
    expect(value?.b).toEqual({ c: [1, 2, 'x', null, true] });
    expect(Object.keys(value ?? {})).toEqual(['a', 'b', '__proto__']);
    expect(JSON.stringify(value)).toBe('{"a":9007199254740993,"b":{"c":[1,2,"x",null,true]},"__proto__":{"d":1}}');
  });

  test.each(['[1.50,1,"x",null]', '{"a":1.50,"b":1}', '[[1.50],[1],{}]', '{"a":{"b":1.50},"c":{"d":1}}'])('%s keeps its digits', (text) => {
    expect(JSON.stringify(parseRecord(text))).toBe(text);
  });

  test('an object that only resembles a raw number is an object', () => {
    const value = parseRecord('{"logId":{"rawJSON":"5"}}');
    expect(isRawNumber(objectOf(value)?.logId)).toBe(false);
    expect(textOf(objectOf(value)?.logId)).toBeUndefined();
  });

  test.each(['', 'x', '{', '{"a":1}}', '{"a":01}', '\u00a0{}', '[1,]', 'NaN'])('%j is not JSON', (text) => {
    expect(() => parseRecord(text)).toThrow(SyntaxError);
  });

  test('64 levels are read, and a text nested deeper is a record that is not an object', () => {
    const nested = (depth: number) => '{"a":'.repeat(depth) + '9007199254740993' + '}'.repeat(depth);
    expect(objectOf(parseRecord(nested(64)))).toBeDefined();
    expect(parseRecord(nested(65))).toBe(nested(65));
    const hostile = `{"logId":1.5,"x":${'['.repeat(200_000)}${']'.repeat(200_000)}}`;
    expect(parseRecord(hostile)).toBe(hostile);
  });
});

test('values as text', () => {
  expect(textOf('x')).toBe('x');
  expect(textOf(' x ')).toBe(' x ');
  expect(textOf(7003)).toBe('7003');
  expect(textOf(true)).toBe('true');
  expect(textOf('a\ud800b')).toBe('a\ufffdb');
  for (const absent of ['', ' ', '\t\r\n', '\u00a0\u2003', null, undefined]) {
    expect(textOf(absent)).toBeUndefined();
    expect(isAbsent(absent)).toBe(true);
  }
  for (const other of [{}, [], ['x'], { a: 'x' }]) {
    expect(textOf(other)).toBeUndefined();
    expect(isAbsent(other)).toBe(false);
  }
  expect(isAbsent(0)).toBe(false);
  expect(isAbsent(false)).toBe(false);
});

test('only an object is an object', () => {
  expect(objectOf({ a: 1 })).toEqual({ a: 1 });
  for (const other of [null, undefined, [], 'x', 1, true, parseRecord('1.5')]) expect(objectOf(other)).toBeUndefined();
});
