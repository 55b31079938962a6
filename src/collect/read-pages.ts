/**
 * One pass over the pages of a query, in ascending order. A pass ends at a short page, never where a total says so: a total that lags would
 * otherwise hide a record and prove itself. But a short page before places that the total still counts is not the end: the service may remove rows
 * after paging. Each answered page is yielded, whatever its length or its number. While the caller stores a page, the next request may be on its
 * way.
 */
import { codeOf, WaybillError, messageOf } from '../errors.ts';
import type { WindowQuery } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import { PageCursor } from './page-cursor.ts';
import type { PageRefused, Paging } from './page-cursor.ts';
import { attemptsWhereSmallerWorks } from './requester.ts';
import type { Answer, Requester } from './requester.ts';

interface PassPage {
  readonly answer: Answer;
  /** The first page of the query: its total decides about splitting. */
  readonly isFirst: boolean;
  /** No page follows it. */
  readonly isLast: boolean;
  /** The next page is asked for already: no other request may be sent now. */
  readonly isAhead: boolean;
}

interface PassOptions {
  readonly requester: Pick<Requester, 'ask' | 'wait' | 'isOfTheQuery'>;
  readonly paging: Paging;
  readonly query: WindowQuery;
  /** Pages read at most. */
  readonly pagesMax: number;
  /** Pages of the query to step over, of the size asked for now; default 0. */
  readonly skip?: number;
  /** True where the next page is asked for before the caller has stored this one. */
  readonly ahead: (answer: Answer) => boolean;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called for each place that is unreadable in the smallest page that the service grants, and for a page that it refuses with all that follow. */
  readonly unreadable: (page: number, thrown: unknown, pageSize: number) => void;
  /** Asked when the query is refused or not answered in time: true where less will be asked for instead. Then the pass ends. */
  readonly isTooMuch?: (refused: PageRefused) => Promise<boolean>;
}

/** After so many refusals of a first page a query without times tells whether the service refuses everything. */
const maxRefusals = 3;

/** The pages of a query, in order, each once unless the pass begins again because the page size changed. */
export async function* pass(options: PassOptions): AsyncGenerator<PassPage, void, void> {
  const { requester, query, pagesMax, signal } = options;
  const cursor = new PageCursor(options.paging, options.skip);
  let pending: Promise<Answer> | undefined;
  const ask = (): Promise<Answer> => {
    const asked = requester.ask({ query, ...cursor.next }, signal, options.isTooMuch && attemptsWhereSmallerWorks);
    // Awaited later; a failure in between must not count as unhandled.
    asked.catch(() => undefined);
    return asked;
  };
  try {
    while (cursor.pages < pagesMax && !cursor.isExhausted) {
      let answer: Answer;
      try {
        answer = await (pending ?? ask());
      } catch (thrown) {
        pending = undefined;
        if ((await recover(options, cursor, thrown)) === 'end') return;
        continue;
      }
      pending = undefined;
      const step = cursor.answered(answer);
      if (step === 'end') return;
      const { isFirst, isLast, isRestart } = step;
      if (!isLast && !isRestart && cursor.pages < pagesMax && options.ahead(answer)) pending = ask();
      yield { answer, isFirst, isLast, isAhead: pending !== undefined };
      if (isLast) return;
    }
  } finally {
    // One request at a time: a request that nobody waits for any more ends first.
    if (pending) await pending.catch(() => undefined);
  }
}

/** Does what follows from a failed request. @throws what no other request can avoid */
async function recover(options: PassOptions, cursor: PageCursor, thrown: unknown): Promise<'end' | 'again'> {
  const { requester, paging, query, signal } = options;
  const code = codeOf(thrown);
  // mutant: page-missing
  if (code === 'page_not_found' && !cursor.isAtStart) return 'end';
  const refused = cursor.refusal(thrown);
  if (refused && (await options.isTooMuch?.(refused))) return 'end';
  const next = cursor.failed(thrown);
  switch (next.kind) {
    case 'again':
      return 'again';
    case 'size_refused':
      options.log.write('source.page_size_refused', { pageSize: next.pageSize, error: thrown });
      return 'again';
    case 'unreadable':
      options.unreadable(next.page, next.thrown, next.pageSize);
      return next.isEnd ? 'end' : 'again';
    case 'refused':
      break;
    case 'fatal':
      throw thrown;
  }
  const { page, pageSize, refusals } = next;
  if (refusals >= maxRefusals && (await requester.isOfTheQuery(query, signal))) {
    // The service may refuse larger pages too: only now a narrower query tells.
    if (await options.isTooMuch?.({ thrown, pageSize, isDeep: false, isUnanswered: false })) return 'end';
    const message = `${messageOf(thrown)}; without times it is answered`;
    options.unreadable(page, new WaybillError(code ?? 'page_refused', message, { cause: thrown }), pageSize);
    return 'end';
  }
  await requester.wait(thrown, refusals, signal);
  cursor.restart(paging.size);
  return 'again';
}
