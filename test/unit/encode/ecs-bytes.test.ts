/** The bytes of ECS messages: values of every length, huge messages, and retained events. */
import { describe, expect, test } from 'vitest';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { fullest, recordOf, settings } from '../../support/normalize/records.ts';
import { ecsText } from '../../support/encode/ecs-oracle.ts';
import { encoder } from '../../support/encode/texts.ts';
import { sized } from '../../support/long-run.ts';

const normalize = normalizer(settings);
const encode = encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });
const recordWith = (payloadName: string) => recordOf(JSON.stringify({ ...fullest, payloadName, userId: payloadName }));
const expected = (record: ReturnType<typeof recordOf>): string => ecsText(record.text, record, settings, []);

describe.each(['x', 'é', '😀', '"', '\\', '\n', '\u0001', '/', '\u2028'])('a value of %j', (sign) => {
  test('has the same bytes at every length', () => {
    for (let length = 1; length <= 300; length += 1) {
      const record = recordWith(`v${sign.repeat(length)}`);
      expect(encode(normalize(record))).toBe(expected(record));
    }
  });
});

test('a huge message is complete, and the small ones after it too', () => {
  for (const length of [10, sized(300_000, 3_000_000), 10, 100_000, 10]) {
    for (const sign of ['x', '"']) {
      const record = recordWith(sign.repeat(length));
      const message = encode(normalize(record));
      // An assertion that prints megabytes takes minutes.
      expect(message === expected(record), `${length} times ${sign}`).toBe(true);
    }
  }
});

test('a retained event is not changed by later events', () => {
  const record = recordWith('kept');
  const kept = normalize(record);
  for (let i = 0; i < 1_000; i += 1) normalize(recordWith(`other ${i}`));
  expect(encode(kept)).toBe(expected(record));
});

test('white space between the tokens of the record is escaped in the original', () => {
  const record = recordOf(JSON.stringify(fullest, undefined, '\t').replaceAll('\n', '\r\n'));
  expect(encode(normalize(record))).toBe(expected(record));
});
