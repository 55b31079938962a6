/**
 * One pass over the pages of a query, in ascending order. A pass ends at a short page, and never because it has read as many records as the
 * total: a total that lags would end the pass before a new record, and then prove the window without it. A short page is not the end while
 * the total counts more rows than the pages so far: the service may remove rows from a page after it has counted them. Each answered page
 * is yielded, whatever its length or number. The next page may be requested while the caller stores a page.
 */
import { codeOf, messageOf, WaybillError } from '../errors/errors.ts';
import type { WindowQuery } from '../model/source.ts';
import { noSpan, type Log, type Span } from '../model/telemetry.ts';
import { PageCursor, type PageRefused } from './page-cursor.ts';
import type { Paging } from './page-size.ts';
import { attemptsWhereSmallerWorks, type Answer, type Requester } from './requester.ts';

interface PassPage {
  readonly answer: Answer;
  /** The first page of the query: its total may split the window. */
  readonly isFirst: boolean;
  /** No page follows it. */
  readonly isLast: boolean;
  /** The next page is requested already: no other request may be sent now. */
  readonly isAhead: boolean;
}

interface PassOptions {
  readonly requester: Pick<Requester, 'ask'> & Partial<Pick<Requester, 'startPage' | 'sourceId'>>;
  readonly paging: Paging;
  readonly query: WindowQuery;
  readonly pagesMax: number;
  /** Pages of the query to skip, of the present page size; default 0. */
  readonly skip?: number;
  /** True if the next page is requested before the caller has stored this one. */
  readonly ahead: (answer: Answer) => boolean;
  readonly log: Log;
  readonly signal: AbortSignal;
  /**
   * Called for each place of the result that is unreadable even in the smallest page that the service
   * grants. Also called for a page that the service refuses: then the pass ends there.
   */
  readonly unreadable: (page: number, thrown: unknown, pageSize: number) => void;
  /** Called when the query is refused or not answered in time: true if the caller will request less instead. Then the pass ends. */
  readonly isTooMuch?: (refused: PageRefused) => Promise<boolean>;
}

/** Yields the pages of a query in order, each once unless the pass restarts with another page size. */
export async function* pass(options: PassOptions): AsyncGenerator<PassPage, void, void> {
  const { requester, query, pagesMax, signal } = options;
  const cursor = new PageCursor(options.paging, options.skip);
  let pending: Asked | undefined;
  const ask = (): Asked => {
    const span = requester.startPage?.() ?? noSpan;
    const answer = span.run(() => requester.ask({ query, ...cursor.next }, signal, options.isTooMuch && attemptsWhereSmallerWorks));
    // Awaited later: a failure before that must not be an unhandled rejection.
    answer.catch((thrown: unknown) => span.end(thrown));
    return { span, answer };
  };
  try {
    while (cursor.pages < pagesMax && !cursor.isExhausted) {
      const asked = pending ?? ask();
      const { span } = asked;
      let answer: Answer;
      try {
        answer = await asked.answer;
      } catch (thrown) {
        pending = undefined;
        if ((await recover(options, cursor, thrown)) === 'end') return;
        continue;
      }
      pending = undefined;
      try {
        const step = cursor.answered(answer);
        if (step === 'end') return;
        const { isFirst, isLast, isRestart } = step;
        if (!isLast && !isRestart && cursor.pages < pagesMax && options.ahead(answer)) pending = ask();
        yield { answer: { ...answer, span }, isFirst, isLast, isAhead: pending !== undefined };
        if (isLast) return;
      } finally {
        span.end();
      }
    }
  } finally {
    // One request at a time: a pending request ends first.
    if (pending) await pending.answer.then(() => pending?.span.end(), () => undefined); // prettier-ignore
  }
}

interface Asked {
  readonly span: Span;
  readonly answer: Promise<Answer>;
}

/** Handles a failed request. Other requests are answered. @throws a failure that no other request can avoid */
async function recover(options: PassOptions, cursor: PageCursor, thrown: unknown): Promise<'end' | 'retry'> {
  const code = codeOf(thrown);
  // mutant: page-missing
  if (code === 'page_not_found' && !cursor.isAtStart) return 'end';
  const refused = cursor.refusal(thrown);
  if (refused && (await options.isTooMuch?.(refused))) return 'end';
  const next = cursor.failed(thrown);
  switch (next.kind) {
    case 'retry':
      return 'retry';
    case 'size_refused':
      options.log.write('source.page_size_refused', { source: options.requester.sourceId, pageSize: next.pageSize, error: thrown });
      return 'retry';
    case 'unreadable':
      options.unreadable(next.page, next.thrown, next.pageSize);
      return next.isEnd ? 'end' : 'retry';
    case 'refused':
      // The first refusals may concern the page size: a narrower query is tested only now.
      if (!(await options.isTooMuch?.({ thrown, pageSize: next.pageSize, isDeep: false, isUnanswered: false }))) {
        const message = `${messageOf(thrown)}; the service answers other requests`;
        options.unreadable(next.page, new WaybillError(code ?? 'page_refused', message, { cause: thrown }), next.pageSize);
      }
      return 'end';
    case 'fatal':
      throw thrown;
  }
}
