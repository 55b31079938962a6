import { expect, test } from 'vitest';
import { UidSet } from '../../../src/record/uid-set.ts';
import { between, seeded } from '../../support/records.ts';

/** Uids that differ in few bits, in the first word as in the last, and repeat. */
function uids(count: number, seed: number): Buffer[] {
  const random = seeded(seed);
  return Array.from({ length: count }, () => {
    const bytes = Buffer.alloc(16, random() < 0.5 ? 0 : 0xff);
    for (let i = between(random, 0, 4); i > 0; i -= 1) bytes[between(random, 0, 16)] = between(random, 0, 256);
    return bytes;
  });
}

test.each([1, 2, 3])('it equals a Set of strings, in any order of additions (seed %i)', (seed) => {
  const expected = new Set<string>();
  const set = new UidSet();
  const all = uids(6_000, seed);
  for (const [i, bytes] of all.entries()) {
    const uid = bytes.toString('base64url');
    expect(set.has(uid)).toBe(expected.has(uid));
    // One by one as text, and several at a time as bytes.
    if (i % 3 === 0) {
      set.add(uid);
      expected.add(uid);
    } else if (i % 50 === 1) {
      const some = all.slice(i, i + 20);
      set.addBytes(Buffer.concat(some));
      for (const each of some) expected.add(each.toString('base64url'));
    }
    expect(set.size).toBe(expected.size);
  }
  for (const bytes of uids(2_000, seed + 100)) expect(set.has(bytes.toString('base64url'))).toBe(expected.has(bytes.toString('base64url')));
});

test('a uid of sixteen zero bytes works like any other', () => {
  const zero = Buffer.alloc(16).toString('base64url');
  const set = new UidSet();
  expect(set.has(zero)).toBe(false);
  set.add(zero);
  set.addBytes(Buffer.alloc(16));
  expect([set.has(zero), set.size]).toEqual([true, 1]);
  for (const bytes of uids(100, 9)) set.add(bytes.toString('base64url'));
  expect(set.has(zero)).toBe(true);
});
