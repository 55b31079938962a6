/** The page cursor alone: the next page after a response or a failure, without a service. */
import { expect, test } from 'vitest';
import { PageCursor } from '../../../src/collect/page-cursor.ts';
import type { PageStep } from '../../../src/collect/page-cursor.ts';
import type { Answer } from '../../../src/collect/requester.ts';
import { WaybillError } from '../../../src/errors/errors.ts';

/** A response with the records of these uids. */
function page(uids: readonly number[], more: Partial<Answer> = {}): Answer {
  return {
    request: { query: {}, page: undefined, pageSize: 1 },
    records: uids.map((uid) => ({ uid: String(uid), time: 0, isObject: true, bytes: new Uint8Array(), text: '' })),
    ...{ page: undefined, pageSize: undefined, total: undefined, received: 0, serverNow: 0 },
    ...more,
  };
}

const refused = new WaybillError('page_refused', 'cannot read the page: 400');
const malformed = new WaybillError('page_malformed', 'cannot read the page: expected JSON');

test('the next page follows a full page; a short page is the last', () => {
  const cursor = new PageCursor({ first: 1, size: 2 });
  expect(cursor.next).toEqual({ page: 1, pageSize: 2 });
  expect(cursor.answered(page([1, 2]))).toEqual({ isFirst: true, isLast: false, isRestart: false });
  expect(cursor.next).toEqual({ page: 2, pageSize: 2 });
  expect(cursor.answered(page([3]))).toEqual({ isFirst: false, isLast: true, isRestart: false });
  expect(cursor.pages).toBe(2);
});

test('a short page is not the last if the total counts further records', () => {
  const cursor = new PageCursor({ first: 0, size: 2 });
  cursor.answered(page([1, 2], { total: 5 }));
  expect(cursor.answered(page([3], { total: 5 }))).toMatchObject({ isLast: false });
  expect(cursor.next).toEqual({ page: 2, pageSize: 2 });
});

test('a repeated page ends the pass past the total, and not before it', () => {
  const before = new PageCursor({ first: 1, size: 2 });
  before.answered(page([1, 2], { total: 10 }));
  expect(before.answered(page([1, 2], { total: 10 }))).not.toBe('end');
  const past = new PageCursor({ first: 1, size: 2 });
  past.answered(page([1, 2], { total: 2 }));
  expect(past.answered(page([1, 2], { total: 2 }))).toBe('end');
});

test('a smaller granted size after the first page restarts the query with that size', () => {
  const paging = { first: 1, size: 4 };
  const cursor = new PageCursor(paging);
  cursor.answered(page([1, 2, 3, 4], { total: 9, pageSize: 4 }));
  expect(cursor.answered(page([5, 6], { total: 9, pageSize: 2 }))).toEqual({ isFirst: false, isLast: false, isRestart: true });
  expect([cursor.next, paging.size]).toEqual([{ page: 1, pageSize: 2 }, 2]);
});

test('the cursor narrows an unreadable page, skips the unreadable place, and continues with full pages', () => {
  const cursor = new PageCursor({ first: 1, size: 4 });
  expect(cursor.failed(malformed)).toEqual({ kind: 'retry' });
  expect(cursor.next).toEqual({ page: 1, pageSize: 2 });
  cursor.failed(malformed);
  expect(cursor.failed(malformed)).toEqual({ kind: 'unreadable', page: 1, pageSize: 1, thrown: malformed, isEnd: false });
  for (const uid of [2, 3, 4]) cursor.answered(page([uid], { total: 9 }));
  expect(cursor.next).toEqual({ page: 2, pageSize: 4 });
});

test('a page without a body is not narrowed: smaller pages of the query would have none either', () => {
  const cursor = new PageCursor({ first: 1, size: 4 });
  const empty = new WaybillError('page_malformed', 'cannot read the page: it has no body', { isEmpty: true });
  expect(cursor.failed(empty)).toEqual({ kind: 'unreadable', page: 1, pageSize: 4, thrown: empty, isEnd: true });
});

test('twenty unreadable places in a row end the pass', () => {
  const cursor = new PageCursor({ first: 1, size: 1 });
  const steps = Array.from({ length: 20 }, () => cursor.failed(malformed));
  expect(steps.map((step) => step.kind === 'unreadable' && step.isEnd)).toEqual([...Array<boolean>(19).fill(false), true]);
});

test('after a refused size the pass restarts with a smaller one; a refusal after successful pages narrows there, because it is the paging depth', () => {
  const cursor = new PageCursor({ first: 1, size: 8 });
  expect(cursor.failed(refused)).toEqual({ kind: 'size_refused', pageSize: 8 });
  expect(cursor.next).toEqual({ page: 1, pageSize: 5 });
  cursor.answered(page([1, 2, 3, 4, 5]));
  expect(cursor.refusal(refused)).toMatchObject({ isDeep: true, pageSize: 5, isUnanswered: false });
  expect(cursor.failed(refused)).toEqual({ kind: 'retry' });
  expect(cursor.next).toEqual({ page: 6, pageSize: 1 });
  expect(cursor.failed(refused)).toMatchObject({ kind: 'unreadable', page: 6, pageSize: 1, isEnd: true });
});

test('page numbers of answers may count from another base than those of requests', () => {
  const cursor = new PageCursor({ first: 1, size: 2 });
  cursor.answered(page([1, 2], { total: 2, page: 0 }));
  // The second page has no new record by chance. Its number is the expected one, so it is no repetition of the last page.
  expect(cursor.answered(page([2, 1], { total: 2, page: 1 }))).not.toBe('end');
  expect(cursor.answered(page([1, 2], { total: 2, page: 1 }))).toBe('end');
});

test('as long as the first page is not known it is requested without a number; page 1 shows whether it is the first or the second', () => {
  const cursor = new PageCursor({ first: undefined, size: 2 });
  expect(cursor.next).toEqual({ page: undefined, pageSize: 2 });
  cursor.answered(page([1, 2]));
  expect(cursor.next).toEqual({ page: 1, pageSize: 2 });
  cursor.answered(page([2, 1]));
  expect(cursor.next).toEqual({ page: 2, pageSize: 2 });
});

test('a refused page of one record is refused; any other failure is fatal', () => {
  const cursor = new PageCursor({ first: 1, size: 1 });
  expect(cursor.failed(refused)).toEqual({ kind: 'refused', page: 1, pageSize: 1 });
  expect(cursor.failed(new WaybillError('token_refused', 'cannot obtain a token'))).toEqual({ kind: 'fatal' });
});

test('an endless service is bounded by its total and by the records returned', () => {
  const cursor = new PageCursor({ first: 1, size: 10 });
  let requests = 0;
  let step: PageStep = { isFirst: true, isLast: false, isRestart: false };
  // Each page is full and brings one new record.
  while (step !== 'end' && !cursor.isExhausted) {
    requests += 1;
    step = cursor.answered(page([requests, -1, -2, -3, -4, -5, -6, -7, -8, -9], { total: 0 }));
  }
  expect(cursor.isExhausted).toBe(true);
  // 10 n > 4 (n + 9) + 400
  expect(requests).toBe(73);
});
