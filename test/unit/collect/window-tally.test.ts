/** The rules of the tally that `read-window.test.ts` does not show through a service. */
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

test('a total as large as the largest of the source is a gap (total) from 100 on: it may be a cap', () => {
  const reason = (total: number, largest: number): unknown => {
    const step = passesUntilDecided(new WindowTally(window, true), [1], total, largest).at(-1);
    return step?.kind === 'gap' && step.reason;
  };
  expect([reason(100, 100), reason(99, 99), reason(100, 101)]).toEqual(['total', 'count', 'count']);
});

test('smaller counts that are not in a row do not split the window', () => {
  const tally = new WindowTally(window, true);
  expect(pass(tally, [1, 2], 1)).toEqual({ kind: 'read_again' });
  expect(pass(tally, [1, 2], 3)).toEqual({ kind: 'read_again' });
  expect(pass(tally, [1, 2], 1)).toEqual({ kind: 'read_again' });
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
