/**
 * Messages that must fit into a frame: the order of truncation, the parts that stay whole, and a
 * readable rest.
 */
import { describe, expect, test } from 'vitest';
import { shorten } from '../../../src/encode/shorten.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { encoder as bytesEncoder } from '../../../src/encode/index.ts';
import { documentOf } from '../../support/normalize/ecs-document.ts';
import { fullest, network, recordOf, settings } from '../../support/normalize/records.ts';
import { readStrictly } from '../../support/encode/cef-strict.ts';
import { encoder, shortener } from '../../support/encode/texts.ts';

const written = { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } } as const;
const normalize = normalizer(settings);
const bytes = (text: string): number => Buffer.byteLength(text);

/**
 * A record whose long fields are each about as long as a line may be, with two bytes per character.
 */
const long = (length: number, sign: string): string => `${sign}${'ж'.repeat(length)}`;
const wordy = recordOf(
  JSON.stringify({
    ...fullest,
    payloadName: long(900, 'f'),
    userLastNameFirstName: long(800, 'u'),
    currentOwnerLastNameFirstName: long(800, 'o'),
    userNetwork: {
      ...network,
      networkName: long(3_000, '2'),
      serviceProvider: long(3_000, '3'),
      deviceType: long(3_000, '4'),
      uuid: long(3_000, '5'),
      address: long(3_000, '6'),
    },
  }),
);

/** In the order of formats.md section 12: the message, cs2 to cs6, the names. */
const order = ['msg', 'cs2', 'cs3', 'cs4', 'cs5', 'cs6', 'fname', 'WaybillDpasUserName', 'WaybillDpasOwnerName'];

describe('a line', () => {
  const event = normalize(wordy);
  const whole = readStrictly(encoder('cef', written)(event)).values;
  const wholeBytes = bytes(encoder('cef', written)(event));

  test.each([1, 700, 3_000, 9_000, 15_000, 24_000, 30_000, 34_000])('%i bytes too long is shortened in a fixed order', (over) => {
    const most = wholeBytes - over;
    const text = shortener('cef', written, most)(event) ?? '';
    expect(bytes(text)).toBeLessThanOrEqual(most);
    // At most one character more than necessary is removed.
    expect(bytes(text)).toBeGreaterThan(most - 60);
    const { values } = readStrictly(text);
    const touched = order.filter((key) => values.get(key) !== whole.get(key));
    expect(touched).toEqual(order.slice(0, touched.length));
    for (const key of touched.slice(0, -1)) expect(values.get(key), key).toBeUndefined();
    const last = touched.at(-1) ?? '';
    expect(whole.get(last)?.startsWith(values.get(last) ?? '')).toBe(true);
    for (const [key, value] of whole) {
      if (!order.some((name) => key === name || key === `${name}Label`)) expect(values.get(key), key).toBe(value);
    }
  });
});

describe('a document', () => {
  test('omits the text of the record first, and nothing else if that suffices', () => {
    const event = normalize(wordy);
    const whole = encoder('ecs', written)(event);
    const read = JSON.parse(shortener('ecs', written, bytes(whole) - 1)(event) ?? '') as { event: Record<string, unknown> };
    const { original, ...rest } = (JSON.parse(whole) as { event: Record<string, unknown> }).event;
    expect(original).toBe(wordy.text);
    expect(read).toEqual({ ...(JSON.parse(whole) as object), event: rest });
  });

  test('then truncates its longest texts, and stays well-formed', () => {
    const event = normalize(wordy);
    const text = shortener('ecs', written, 8_000)(event) ?? '';
    expect(bytes(text)).toBeLessThanOrEqual(8_000);
    const read = JSON.parse(text) as Record<string, unknown>;
    expect(read).toMatchObject({
      dpas: { uid: wordy.uid },
      event: { id: '418230', hash: documentOf(event).event.hash, code: documentOf(event).event.code },
      user: { email: 'user@example.com' },
    });
  });
});

describe('a record as received', () => {
  test('is truncated in its longest texts and keeps the digits of its numbers', () => {
    const record = recordOf(
      `{"logId":9007199254740993,"share":1.50,"payloadName":${JSON.stringify(long(9_000, 'f'))},"list":["${'x'.repeat(500)}"]}`,
    );
    const text = shortener('raw', written, 2_000)(normalize(record)) ?? '';
    expect(bytes(text)).toBeLessThanOrEqual(2_000);
    expect(text).toMatch(/^\{"logId":9007199254740993,"share":1\.50,"payloadName":"fж+","list":\["x{500}"\]\}$/);
  });

  test('keeps every digit of a number that is longer than any text', () => {
    const digits = '7'.repeat(1_500);
    const record = recordOf(`{"logId":1,"count":${digits},"payloadName":"${'x'.repeat(900)}"}`);
    const text = shortener('raw', written, 2_000)(normalize(record)) ?? '';
    expect(text).toMatch(/^\{"logId":1,"count":7{1500},"payloadName":"x+"\}$/);
    expect(bytes(text)).toBe(2_000);
  });

  test('with thousands of texts is written a few times, not once for each', () => {
    const texts = 1_000;
    const lengths = Array.from({ length: texts }, (_, i) => 100 + i);
    const record = recordOf(`{"logId":1,"more":[${lengths.map((length) => `"${'x'.repeat(length)}"`).join()}]}`);
    const event = normalize(record);
    const encode = bytesEncoder('raw', written);
    let writings = 0;
    const short = (most: number): string | undefined =>
      shorten(
        'record',
        event,
        (one) => {
          writings += 1;
          return encode(one);
        },
        most,
      )?.toString();

    // The longer half must shrink to 64 characters each; one more shrinks in part.
    const most = 21 + lengths.reduce((sum, length, i) => sum + 3 + (i < texts / 2 ? length : 64), -1) - 10;
    const text = short(most) ?? '';
    expect(bytes(text)).toBe(most);
    const kept = (JSON.parse(text) as { more: string[] }).more.map(({ length }) => length);
    expect(kept).toEqual(lengths.map((length, i) => (i < texts / 2 - 1 ? length : i === texts / 2 - 1 ? length - 10 : 64)));
    expect(writings).toBeLessThan(40);

    writings = 0;
    expect(short(texts * 60)).toBeUndefined();
    expect(writings).toBe(0);
  });

  test('without long texts cannot be shortened', () => {
    const many = recordOf(JSON.stringify({ ...fullest, more: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`key${i}`, i])) }));
    expect(shortener('raw', written, 2_000)(normalize(many))).toBeUndefined();
  });
});

test('a surrogate pair is never split', () => {
  const event = normalize(recordOf(JSON.stringify({ ...fullest, payloadName: '😀'.repeat(500) })));
  const encode = encoder('cef', written);
  for (let over = 1; over < 40; over += 1) {
    const text = shortener('cef', written, bytes(encode(event)) - over)(event) ?? '';
    expect(text.isWellFormed()).toBe(true);
    readStrictly(text);
  }
});
