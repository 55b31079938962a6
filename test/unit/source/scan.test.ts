import { describe, expect, test } from 'vitest';
import { remember } from '../../../src/errors/secrets.ts';
import { codeOf } from '../../../src/errors/errors.ts';
import { itemsMax, scanPage, valuesMax } from '../../../src/source/scan.ts';

const encode = (text: string) => new TextEncoder().encode(text);
const scan = (text: string | Uint8Array) => {
  const { items, pagination } = scanPage(typeof text === 'string' ? encode(text) : text, 'page 1 of "test"');
  return { items: items.map(({ received }) => new TextDecoder().decode(received)), pagination };
};
const refusal = (text: string | Uint8Array, type?: string): string => {
  try {
    scanPage(typeof text === 'string' ? encode(text) : text, 'page 1 of "test"', type);
  } catch (thrown) {
    expect(codeOf(thrown)).toBe('page_malformed');
    return (thrown as Error).message;
  }
  throw new Error(`accepted: ${String(text)}`);
};

describe('items are cut out byte for byte', () => {
  const cases: readonly (readonly [name: string, body: string, items: readonly string[]])[] = [
    ['an empty page', '{"data":[]}', []],
    [
      'white space stays where it belongs',
      ' {"data" : [ { "a" : 1 } ,\n[ 2 ]\t, "x" , -1.5e3,null ] }\r\n',
      ['{ "a" : 1 }', '[ 2 ]', '"x"', '-1.5e3', 'null'],
    ],
    ['digits that a number cannot hold', '{"data":[{"logId":9007199254740993}]}', ['{"logId":9007199254740993}']],
    [
      'brackets and escapes in strings',
      String.raw`{"data":[{"a":"]}\"\\"},{"b":"\\\"[{"}]}`,
      [String.raw`{"a":"]}\"\\"}`, String.raw`{"b":"\\\"[{"}`],
    ],
    ['NUL as an escape', String.raw`{"data":[{"a":"\u0000"}]}`, [String.raw`{"a":"\u0000"}`]],
    ['double keys: the last counts', '{"data":[1],"pagination":{},"data":[2,3]}', ['2', '3']],
    ['null in place of an empty list', '{"data": null }', []],
    ['a key written with escapes', String.raw`{"\u0064ata":[1]}`, ['1']],
    ['__proto__ is a key like any other', '{"__proto__":{"data":[1]},"data":[{"__proto__":{"a":1}}]}', ['{"__proto__":{"a":1}}']],
    ['a byte order mark', '\ufeff{"data":[1]}', ['1']],
    ['a data array further inside does not count', '{"x":{"data":[9]},"data":[1]}', ['1']],
  ];
  test.each(cases)('%s', (_name, body, items) => {
    expect(scan(body).items).toEqual(items);
  });

  test('the pagination is read, the last one of two', () => {
    const { pagination } = scan('{"pagination":{"page":1},"data":[],"pagination":{"page":"2","totalRecords":9}}');
    expect(pagination).toEqual({ page: '2', totalRecords: 9 });
  });

  test('an item nested two hundred thousand levels deep is one item', () => {
    const deep = '['.repeat(200_000) + ']'.repeat(200_000);
    expect(scan(`{"data":[${deep},1]}`).items.map((item) => item.length)).toEqual([400_000, 1]);
  });

  test('a string of ten million characters is one item', () => {
    expect(scan(`{"data":["${'x'.repeat(10_000_000)}"]}`).items[0]).toHaveLength(10_000_002);
  });

  test('items are views of the body: nothing is copied', () => {
    const body = encode('{"data":[{"a":1}]}');
    expect(scanPage(body, 'page 1').items[0]?.received.buffer).toBe(body.buffer);
  });
});

test.each([
  ['', true],
  ['<html>', false],
])('the error of the body "%s" tells whether it is empty: %s', (body, isEmpty) => {
  expect(() => scanPage(encode(body), 'page 1')).toThrow(expect.objectContaining({ code: 'page_malformed', isEmpty }) as Error);
});

describe('other JSON is refused', () => {
  const bodies: readonly (readonly [name: string, body: string])[] = [
    ['nothing', ''],
    ['white space alone', ' \n'],
    ['HTML', '<html><head></head></html>'],
    ['an array', '[1]'],
    ['no data', '{"pagination":{}}'],
    ['data that is not an array', '{"data":{"0":1}}'],
    ['data that is overwritten by no array', '{"data":[1],"data":{}}'],
    ['trailing garbage', '{"data":[1]}x'],
    ['a second object', '{"data":[1]}{"data":[2]}'],
    ['a comma too many at the end', '{"data":[1,]}'],
    ['a comma too many in front', '{"data":[,1]}'],
    ['no comma', '{"data":[{} {}]}'],
    ['brackets of two kinds', '{"data":[{"a":[1}]}'],
    ['brackets of two kinds that add up', '{"data":[{"a":[1},{"b":2]}]}'],
    ['a raw control character in a string', '{"data":[{"a":"\u0001"}]}'],
    ['a raw NUL between items', '{"data":[1,\u00002]}'],
    ['an invalid scalar', '{"data":[tru]}'],
    ['a string with a wrong escape', String.raw`{"data":["\x"]}`],
    ['an invalid value next to data', '{"data":[1],"x":01}'],
    ['a wrong item in data that is overwritten', '{"data":[{bad}],"data":[1]}'],
    ['two byte order marks', '\ufeff\ufeff{"data":[1]}'],
    ['white space of other kinds', '\u00a0{"data":[1]}'],
  ];
  test.each(bodies)('%s', (_name, body) => {
    expect(() => JSON.parse(body.replace(/^\ufeff/, '')) as unknown).toSatisfy((parse: () => unknown) => {
      // JSON.parse accepts these; only their form is refused.
      try {
        const value = parse() as { data?: unknown };
        return !Array.isArray(value.data);
      } catch {
        return true;
      }
    });
    refusal(body);
  });

  // Each is a few kilobytes as gzip, and JSON.parse would accept it.
  const million = 1_000_000;
  const crowds: readonly (readonly [name: string, body: string])[] = [
    ['of items', `{"data":[${'0,'.repeat(million)}0]}`],
    ['of empty items', `{"data":[${'{},'.repeat(million)}{}]}`],
    ['of keys in an item', `{"data":[{${'"a":0,'.repeat(million)}"logId":1}]}`],
    ['of values in an item', `{"data":[{"a":[${'1.5,'.repeat(million)}1.5]}]}`],
    ['of levels in an item', `{"data":[${'{"a":'.repeat(million)}0${'}'.repeat(million)}]}`],
    ['of values in the items together', `{"data":[${`[${'0,'.repeat(100)}0],`.repeat(million / 100)}1]}`],
    ['of values outside the items', `{"pagination":[${'0,'.repeat(million)}0],"data":[]}`],
    ['of levels outside the items', `{"pagination":${'['.repeat(million)}${']'.repeat(million)},"data":[]}`],
    ['of members of the page', `{${'"":0,'.repeat(million)}"data":[]}`],
    ['of arrays of items', `{${'"data":[],'.repeat(million)}"data":[]}`],
  ];
  test.each(crowds)('a million %s', (_name, body) => {
    expect(refusal(body)).toMatch(/: expected at most (50000 items in "data"|250000 values), got /);
  });

  test('the permitted number of items and values of a page is read', () => {
    const zeros = (count: number): string => `0${',0'.repeat(count - 1)}`;
    expect(scan(`{"data":[${zeros(itemsMax)}]}`).items).toHaveLength(itemsMax);
    expect(refusal(`{"data":[${zeros(itemsMax + 1)}]}`)).toContain('at most 50000 items');
    // `data`, the item and its bracket are values as well.
    expect(scan(`{"data":[[${zeros(valuesMax - 2)}]]}`).items).toHaveLength(1);
    expect(refusal(`{"data":[[${zeros(valuesMax - 1)}]]}`)).toContain('at most 250000 values');
  });

  test('every truncation of a page', () => {
    const whole = '{"pagination":{"page":1,"totalRecords":2},"data":[{"a":"x\\"y","b":[1,{"c":null}]},{"a":2}]}';
    for (let length = 0; length < whole.length; length += 1) refusal(whole.slice(0, length));
    expect(scan(whole).items).toHaveLength(2);
  });

  test('the message has the size and the media type of the body, and none of its text', () => {
    expect(refusal('<html><head>\n\u001b[2J', 'text/html; charset=utf-8')).toBe(
      'cannot read page 1 of "test": expected a JSON object, got 17 bytes of text/html',
    );
    expect(refusal('<', 'text/\u001bx')).toBe(String.raw`cannot read page 1 of "test": expected a JSON object, got 1 byte of text/\u001bx`);
    const secret = 'S4sl+Jd83/hG=fQ%7Bw2;Lm6';
    remember({}, secret);
    expect(refusal('<', `text/***${secret}`)).toMatch(/ of text\/\*\*\*\[secret\]$/);
    expect(refusal('{"data":[{"a":1')).toBe(
      'cannot read page 1 of "test": expected complete JSON; it ends too early, after 15 bytes, got 15 bytes of no media type',
    );
  });
});
