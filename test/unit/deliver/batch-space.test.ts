/**
 * Messages keep their bytes while their batch is in flight and the next one is built, whatever
 * their lengths.
 */
import { expect, test } from 'vitest';
import { BatchSpace } from '../../../src/deliver/batch-space.ts';
import type { Message } from '../../../src/model/sink.ts';

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString('utf8');
/**
 * From 0 to 30,000 characters, and sometimes far more, of one to four bytes each in UTF-8, some of
 * them unpaired surrogates.
 */
const texts = (turn: number): string[] =>
  Array.from(
    { length: 60 },
    (_, i) =>
      ['a', 'é', '契', '😀', '\ud83d'][i % 5]?.repeat(((i * i * 251 * (1 + (turn % 4))) % 30_001) + (i % 20 === 19 ? 400_000 : 0)) ?? '',
  );
const messageOf = (bytes: Uint8Array): Message => ({
  ...{ seq: 1, number: 1, uid: 'u', source: 's', time: 0, received: 0, late: false, severity: 0, action: 'Open', key: undefined, bytes },
});

test('the batch in flight and the next batch stay intact over many rounds', () => {
  const space = new BatchSpace();
  let underWay: { expected: readonly string[]; bytes: readonly Uint8Array[] } | undefined;
  for (let turn = 0; turn < 6; turn += 1) {
    space.next();
    const expected = texts(turn).map((text) => text.toWellFormed());
    const bytes = texts(turn).map((text) => space.put(Buffer.from(text)));
    expect(bytes.map(textOf)).toEqual(expected);
    if (underWay) expect(underWay.bytes.map(textOf)).toEqual(underWay.expected);
    underWay = { expected, bytes };
  }
});

test('a message that starts the next batch moves there with its bytes', () => {
  const space = new BatchSpace();
  space.next();
  const first = messageOf(space.put(Buffer.from('opens the next')));
  space.next();
  const moved = space.moved(first);
  space.next();
  space.put(Buffer.alloc(100));
  expect(textOf(moved.bytes)).toBe('opens the next');
});

test('after renew no byte of an earlier batch is overwritten', () => {
  const space = new BatchSpace();
  space.next();
  const left = space.put(Buffer.from('still being read'));
  space.renew();
  for (let turn = 0; turn < 3; turn += 1) {
    space.next();
    space.put(Buffer.alloc(1_000));
  }
  expect(textOf(left)).toBe('still being read');
});

test('keeps the memory of a large batch for the next large one, and returns it when batches are small', () => {
  const space = new BatchSpace();
  const held = (bytes: number): number => {
    space.next();
    return space.put(Buffer.alloc(bytes)).buffer.byteLength;
  };
  expect([3_000_000, 3_000_000, 2_000_000].map(held)).toEqual([3_000_000, 3_000_000, 3_000_000]);
  expect([1_000, 1_000, 1_000, 1_000].map(held).slice(-2)).toEqual([262_144, 262_144]);
});
