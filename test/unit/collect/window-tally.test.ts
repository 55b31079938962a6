import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Answer } from '../../../src/collect/requester.ts';
import { WindowTally } from '../../../src/collect/window-tally.ts';
import type { Step } from '../../../src/collect/window-tally.ts';
import { base, second } from '../../support/records.ts';
import { span } from '../../support/collect/world.ts';

const window = span(0, 60);

/** A page of records with these numbers, all at one time by default. */
function page(ids: readonly number[], more: { total?: number; seconds?: number } = {}): Answer {
  const time = base + (more.seconds ?? 30) * second;
  return {
    request: { query: {}, page: 1, pageSize: 10 },
    records: ids.map((id) => ({ uid: uid(id), time, text: '{}', bytes: new Uint8Array(), isObject: true })),
    page: 1,
    pageSize: 10,
    total: more.total,
    received: base,
    serverNow: base + 100 * second,
  };
}

function uid(id: number): string {
  return Buffer.alloc(16, id).toString('base64url');
}

function digest(...ids: number[]): string {
  return createHash('sha256')
    .update(Buffer.concat(ids.map((id) => Buffer.alloc(16, id))))
    .digest('hex');
}

/** One pass over these pages, and the count after it. */
function pass(tally: WindowTally, ids: readonly number[], total: number | undefined, largest = 0): Step {
  tally.beginPass();
  expect(tally.page(page(ids), true)).toBeUndefined();
  expect(tally.endPass()).toBeUndefined();
  return tally.counted(total, base + 200 * second, largest);
}

/** Passes with the same result until one decides. */
function passesUntilDecided(tally: WindowTally, ids: readonly number[], total: number | undefined, largest = 0): Step[] {
  const steps: Step[] = [];
  do steps.push(pass(tally, ids, total, largest));
  while (steps.at(-1)?.kind === 'read_again');
  return steps;
}

test('an equal count completes the window; the proof holds the times of the first page and of the count', () => {
  const tally = new WindowTally(window, true);
  expect(pass(tally, [2, 1], 2)).toMatchObject({ kind: 'complete', total: 2 });
  const proof = tally.proof(2, base + 200 * second);
  expect(proof).toMatchObject({ total: 2, inWindow: 2, passes: 1, first: base + 100 * second, last: base + 200 * second });
  expect(Buffer.from(proof.digest).toString('hex')).toBe(digest(1, 2));
});

test('records of the padding count for the total and not for the window', () => {
  const tally = new WindowTally(window, true);
  tally.page(page([1], { seconds: 30 }), true);
  tally.page(page([2], { seconds: -1 }), false);
  tally.page(page([3], { seconds: 60 }), false);
  expect(tally.counted(3, undefined, 0)).toMatchObject({ kind: 'complete' });
  expect(tally.proof(3, undefined)).toMatchObject({ total: 3, inWindow: 1, last: base + 100 * second });
});

test('a greater count causes another pass, and records of several passes count together', () => {
  const tally = new WindowTally(window, true);
  expect(pass(tally, [1, 2], 3)).toEqual({ kind: 'read_again' });
  expect(pass(tally, [2, 3], 3)).toMatchObject({ kind: 'complete', total: 3 });
  expect(tally.proof(3, undefined).passes).toBe(2);
});

test('six passes without a new record are a gap (count) that names both numbers', () => {
  const steps = passesUntilDecided(new WindowTally(window, true), [1, 2], 3);
  // The first pass found the records.
  expect(steps).toHaveLength(7);
  expect(steps.at(-1)).toEqual({ kind: 'gap', reason: 'count', message: 'received 2, the service counted 3' });
});

test('three passes without a total and without a new record are a gap (total)', () => {
  const steps = passesUntilDecided(new WindowTally(window, true), [1, 2], undefined);
  expect(steps).toHaveLength(4);
  expect(steps.at(-1)).toMatchObject({ kind: 'gap', reason: 'total' });
});

test('a total as large as the largest of the source is a gap (total) from 100 on: it may be a cap', () => {
  const reason = (total: number, largest: number): unknown => {
    const step = passesUntilDecided(new WindowTally(window, true), [1], total, largest).at(-1);
    return step?.kind === 'gap' && step.reason;
  };
  expect([reason(100, 100), reason(99, 99), reason(100, 101)]).toEqual(['total', 'count', 'count']);
});

test('the reading ends after forty passes, although each finds a new record', () => {
  const tally = new WindowTally(window, true);
  for (let id = 1; id < 40; id += 1) expect(pass(tally, [id], id + 1)).toEqual({ kind: 'read_again' });
  expect(pass(tally, [40], 41)).toMatchObject({ kind: 'gap', reason: 'count' });
});

test('a smaller count clears the tally: a record that disappeared is no proof, and a gap still reports it', () => {
  const tally = new WindowTally(window, true);
  expect(pass(tally, [1, 2, 3], 1)).toEqual({ kind: 'read_again' });
  expect(tally.received).toBe(0);
  expect(tally.all()).toMatchObject({ seen: 3, inWindow: 3, total: 1 });
  // As many as were ever received, but two of them are not among the first three.
  expect(pass(tally, [3, 4, 5], 3)).toMatchObject({ kind: 'complete' });
  const proof = tally.proof(3, undefined);
  expect(Buffer.from(proof.digest).toString('hex')).toBe(digest(3, 4, 5));
});

test('a smaller count after two passes in a row splits the window, if it may be split', () => {
  const tally = new WindowTally(window, true);
  expect(pass(tally, [1, 2], 1)).toEqual({ kind: 'read_again' });
  expect(pass(tally, [1, 2], 1)).toMatchObject({ kind: 'split', records: 2 });
  const fixed = new WindowTally(window, false);
  expect(passesUntilDecided(fixed, [1, 2], 1).at(-1)).toMatchObject({ kind: 'gap', reason: 'count' });
});

test('smaller counts that are not in a row do not split the window', () => {
  const tally = new WindowTally(window, true);
  expect(pass(tally, [1, 2], 1)).toEqual({ kind: 'read_again' });
  expect(pass(tally, [1, 2], 3)).toEqual({ kind: 'read_again' });
  expect(pass(tally, [1, 2], 1)).toEqual({ kind: 'read_again' });
});

test('one identity twice in a response is no proof although the numbers are equal', () => {
  const step = pass(new WindowTally(window, true), [1, 1, 2], 2);
  expect(step).toMatchObject({ kind: 'gap', reason: 'count' });
  expect(step.kind === 'gap' && step.message).toContain(uid(1));
});

test('one identity in two answers is one record', () => {
  const tally = new WindowTally(window, true);
  tally.page(page([1, 2]), true);
  tally.page(page([2, 3]), false);
  expect(tally.counted(3, undefined, 0)).toMatchObject({ kind: 'complete' });
});

test('more than 9,900 by the first page split the window, if it may be split', () => {
  expect(new WindowTally(window, true).page(page([1], { total: 9_900 }), true)).toBeUndefined();
  expect(new WindowTally(window, true).page(page([1], { total: 9_901 }), true)).toMatchObject({ kind: 'split', records: 9_901 });
  expect(new WindowTally(window, true).page(page([1], { total: 9_901 }), false)).toBeUndefined();
  expect(new WindowTally(window, false).page(page([1], { total: 9_901 }), true)).toBeUndefined();
});

test.each([
  [-2.000001, 'out_of_range'],
  [-2, undefined],
  [61.999999, undefined],
  [62, 'out_of_range'],
])('a record at %f s of a window of 60 s: %s', (seconds, reason) => {
  const tally = new WindowTally(window, true);
  expect(tally.page(page([1], { seconds }), true)).toBeUndefined();
  expect(tally.endPass()?.reason).toBe(reason);
  expect(tally.received).toBe(reason === undefined ? 1 : 0);
});

test('more than 9,900 records out of range end the reading at once', () => {
  const tally = new WindowTally(window, true);
  const ids = Array.from({ length: 9_901 }, (_, i) => i % 256);
  expect(tally.page(page(ids, { seconds: -60 }), true)).toMatchObject({ kind: 'gap', reason: 'out_of_range' });
});

test('a request that is refused after successful pages splits by the total of the last page, else by the records received', () => {
  const tally = new WindowTally(window, true);
  tally.page(page([1, 2], { total: 7 }), true);
  expect(tally.refused('too deep', true)).toEqual({ kind: 'split', records: 7, message: 'too deep' });
  tally.page(page([1, 2]), false);
  expect(tally.refused('too deep', true)).toMatchObject({ records: 2 });
  expect(tally.refused('too wide', false)).toMatchObject({ records: undefined });
});

test('with an unreadable place: read again while that finds records, then a gap that names the place', () => {
  const tally = new WindowTally(window, true);
  const unreadablePass = (ids: readonly number[], total: number | undefined): Step => {
    tally.beginPass();
    tally.page(page(ids), true);
    tally.unreadable(23, 1, 'bad JSON');
    expect(tally.isUnreadable).toBe(true);
    return tally.countedUnreadable(total);
  };
  expect(unreadablePass([1, 2], 6)).toEqual({ kind: 'read_again' });
  expect(unreadablePass([3], 6)).toEqual({ kind: 'read_again' });
  expect(unreadablePass([1, 2, 3], 6)).toEqual({ kind: 'read_again' });
  expect(unreadablePass([1, 2, 3], 6)).toEqual({
    kind: 'gap',
    reason: 'unreadable',
    message: 'page 23 with pageSize 1 cannot be read: bad JSON',
  });
  tally.beginPass();
  expect(tally.isUnreadable).toBe(false);
});

test('with an unreadable place: a gap at once if all other records were received, or none', () => {
  const tally = new WindowTally(window, true);
  tally.page(page([1, 2]), true);
  tally.unreadable(3, 1, 'bad JSON');
  expect(tally.countedUnreadable(3)).toMatchObject({ kind: 'gap', reason: 'unreadable' });
  expect(tally.all()).toMatchObject({ total: 3, seen: 2, passes: 1 });
  const empty = new WindowTally(window, true);
  empty.unreadable(1, 1, 'bad JSON');
  expect(empty.countedUnreadable(undefined)).toMatchObject({ kind: 'gap' });
});
