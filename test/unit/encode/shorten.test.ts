/** Messages that must fit into a frame: what goes first, what stays whole, and that what is left still reads back. */
import { describe, expect, test } from 'vitest';
import { encoder, shortener } from '../../../src/encode/index.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { fullest, network, recordOf, settings } from '../normalize/records.ts';
import { readStrictly } from './cef-strict.ts';

const written = { original: true, cef: { ipv6: 'c6a2', geo: 'cfp' } } as const;
const normalize = normalizer(settings);
const bytes = (text: string): number => Buffer.byteLength(text);

/** A record whose every long field is about as long as a line may hold, of two bytes a character. */
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

  test.each([1, 700, 3_000, 9_000, 15_000, 24_000, 30_000, 34_000])('%i bytes too long gives way in a fixed order', (over) => {
    const most = wholeBytes - over;
    const text = shortener('cef', written, most)(event) ?? '';
    expect(bytes(text)).toBeLessThanOrEqual(most);
    // No more is cut than a character needs.
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
  test('leaves out the text of the record first, and nothing else when that is enough', () => {
    const event = normalize(wordy);
    const whole = encoder('ecs', written)(event);
    const read = JSON.parse(shortener('ecs', written, bytes(whole) - 1)(event) ?? '') as { event: Record<string, unknown> };
    const { original, ...rest } = (JSON.parse(whole) as { event: Record<string, unknown> }).event;
    expect(original).toBe(wordy.text);
    expect(read).toEqual({ ...(JSON.parse(whole) as object), event: rest });
  });

  test('then cuts its longest texts, and stays whole otherwise', () => {
    const event = normalize(wordy);
    const text = shortener('ecs', written, 8_000)(event) ?? '';
    expect(bytes(text)).toBeLessThanOrEqual(8_000);
    const read = JSON.parse(text) as Record<string, unknown>;
    expect(read).toMatchObject({
      dpas: { uid: wordy.uid },
      event: { id: '418230', hash: event.document.event.hash, code: event.document.event.code },
      user: { email: 'user@example.com' },
    });
  });
});

describe('a record as received', () => {
  test('is cut in its longest texts and keeps the digits of its numbers', () => {
    const record = recordOf(
      `{"logId":9007199254740993,"share":1.50,"payloadName":${JSON.stringify(long(9_000, 'f'))},"list":["${'x'.repeat(500)}"]}`,
    );
    const text = shortener('raw', written, 2_000)(normalize(record)) ?? '';
    expect(bytes(text)).toBeLessThanOrEqual(2_000);
    expect(text).toMatch(/^\{"logId":9007199254740993,"share":1\.50,"payloadName":"fж+","list":\["x{500}"\]\}$/);
  });

  test('of which nothing long is left to cut cannot be shortened', () => {
    const many = recordOf(JSON.stringify({ ...fullest, more: Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`key${i}`, i])) }));
    expect(shortener('raw', written, 2_000)(normalize(many))).toBeUndefined();
  });
});

test('a surrogate pair is never parted', () => {
  const event = normalize(recordOf(JSON.stringify({ ...fullest, payloadName: '😀'.repeat(500) })));
  const encode = encoder('cef', written);
  for (let over = 1; over < 40; over += 1) {
    const text = shortener('cef', written, bytes(encode(event)) - over)(event) ?? '';
    expect(text.isWellFormed()).toBe(true);
    readStrictly(text);
  }
});
