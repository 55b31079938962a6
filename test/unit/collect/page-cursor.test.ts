/** The rules of the page cursor that `read-pages.test.ts` does not show through a service. */
import { expect, test } from 'vitest';
import { PageCursor } from '../../../src/collect/page-cursor.ts';
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

test('a page without a body is not narrowed: smaller pages of the query would have none either', () => {
  const cursor = new PageCursor({ first: 1, size: 4 });
  const empty = new WaybillError('page_malformed', 'cannot read the page: it has no body', { isEmpty: true });
  expect(cursor.failed(empty)).toEqual({ kind: 'unreadable', page: 1, pageSize: 4, thrown: empty, isEnd: true });
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

test('a refused page of one record is refused; any other failure is fatal', () => {
  const cursor = new PageCursor({ first: 1, size: 1 });
  expect(cursor.failed(refused)).toEqual({ kind: 'refused', page: 1, pageSize: 1 });
  expect(cursor.failed(new WaybillError('token_refused', 'cannot obtain a token'))).toEqual({ kind: 'fatal' });
});
