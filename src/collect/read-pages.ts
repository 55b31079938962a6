/**
 * One pass over the pages of a query, in ascending order. A pass ends at a short page, never where a total says so: a total that lags would
 * otherwise hide a record and prove itself. But a short page in front of places that the total still counts is not the end: rows may be taken out
 * after paging. Each page that was answered is handed over, whatever follows from its length or from the number that it says it has. While the caller
 * stores a page the next one is already asked for.
 *
 * No service can make a pass go on for ever: pages must bring records that it has not had. At the end that the service counts three that bring none
 * end it, before that twenty, and over all of it the places asked for may not come to more than what is counted and four times what was received.
 */
import { codeOf, WaybillError, messageOf } from '../errors.ts';
import type { WindowQuery } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import { isUnanswered, attemptsWhereSmallerWorks } from './requester.ts';
import type { Answer, Requester } from './requester.ts';
import { recordsOfSecondMax } from './windows.ts';

/** What a source grants, as far as it is known; it follows what the service says. */
export interface Paging {
  /** The number of the first page. */
  first: number;
  /** The page size to ask for. */
  size: number;
}

export interface PassPage {
  readonly answer: Answer;
  /** The first page of the query: its total decides about splitting. */
  readonly isFirst: boolean;
  /** Nothing comes behind it. */
  readonly isLast: boolean;
  /** The next page is asked for already: no other question may be asked now. */
  readonly isAhead: boolean;
}

export interface PassOptions {
  readonly requester: Pick<Requester, 'ask' | 'wait' | 'isOfTheQuery'>;
  readonly paging: Paging;
  readonly query: WindowQuery;
  /** Pages read at most. */
  readonly pagesMax: number;
  /** Pages of the query to step over, of the size asked for now; default 0. */
  readonly skip?: number;
  /** Whether the next page is asked for before the caller has stored this one. */
  readonly ahead: (answer: Answer) => boolean;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** Called for each place that cannot be read even in a page of one record, or of the least that the service grants; also for a page that the service refuses, and what lies behind it. */
  readonly unreadable: (page: number, thrown: unknown, pageSize: number) => void;
  /** Asked when the query is refused or not answered in time: true where less will be asked for instead. Then the pass ends. */
  readonly isTooMuch?: (refused: PageRefused) => Promise<boolean>;
}

/** A page of a query that is refused, or is not answered in time while other questions are. */
export interface PageRefused {
  readonly thrown: unknown;
  readonly pageSize: number;
  /** Pages before it were answered. */
  readonly isDeep: boolean;
  readonly isUnanswered: boolean;
}

/** So many places in a row that cannot be read even in the least of pages end the pass: a service that answers nothing readable must not hold it for ever. */
const maxUnreadable = 20;

/** A page that comes so often in a row is the last one, whatever the service counts. */
const maxRepeats = 20;

/** So many empty pages in a row are the end, whatever the service counts. */
const maxEmptyPages = 20;

/** So many pages in a row that bring nothing new are the end; and so many where the service counts no further. */
const maxFruitlessPages = 20;
const maxFruitlessPagesPastTotal = 3;

/** Of the places that are asked for beyond those that are counted one in so many must bring something new; these pages are let pass. */
const placesPerNew = 4;
const pagesBesides = 40;

/** A first page that is refused so often is told apart from a service that refuses everything. */
const maxRefusals = 3;

/** The pages of a query, in order, each once unless the pass begins again because the page size changed. */
export async function* pass(options: PassOptions): AsyncGenerator<PassPage, void, void> {
  const { requester, paging, query, signal } = options;
  // A place in the query: `offset` records lie before it. The size may shrink to a divisor on the way, so that pages stay aligned.
  let granted = paging.size;
  let size = granted;
  // The size before it was guessed from a short first page.
  let guessedFrom: number | undefined;
  let offset = (options.skip ?? 0) * size;
  let refusals = 0;
  let repeats = 0;
  let empty = 0;
  let tooLarge = 0;
  let tooLargeAt: number | undefined;
  let unreadable = 0;
  // The smallest pages that are asked for: a service may refuse smaller ones.
  let least = 1;
  // What was answered last and could not be read.
  let malformed: { readonly offset: number; readonly size: number; readonly thrown: unknown } | undefined;
  // What the pass has received since it began, or began again; and the most of it.
  let received = new Set<string>();
  let maxReceived = 0;
  let vain = 0;
  let places = 0;
  let counted = 0;
  const placesBesides = pagesBesides * granted;
  const isExhausted = (): boolean => places > Math.min(counted, recordsOfSecondMax) + placesPerNew * maxReceived + placesBesides;
  let previous: Answer | undefined;
  let pending: Promise<Answer> | undefined;
  const askAt = (): Promise<Answer> => {
    const patience = options.isTooMuch && attemptsWhereSmallerWorks;
    const asked = requester.ask({ query, page: paging.first + offset / size, pageSize: size }, signal, patience);
    // Awaited later; a failure in between must not count as unhandled.
    asked.catch(() => undefined);
    return asked;
  };
  const restart = (smaller: number): void => {
    granted = size = smaller;
    offset = 0;
    previous = pending = guessedFrom = malformed = undefined;
    repeats = empty = vain = 0;
    received = new Set();
  };
  try {
    for (let pages = 0; pages < options.pagesMax && !isExhausted();) {
      places += size;
      let answer: Answer;
      const page = paging.first + offset / size;
      try {
        answer = await (pending ?? askAt());
        pending = undefined;
      } catch (thrown) {
        pending = undefined;
        const code = codeOf(thrown);
        // mutant: page-missing
        if (code === 'page_not_found' && offset > 0) return;
        // A larger page was answered at this place: smaller ones are refused for their size, and what cannot be read is looked for no further.
        const larger = code === 'page_refused' && malformed?.offset === offset && size < malformed.size ? malformed : undefined;
        if (larger) {
          least = size = larger.size;
          granted = Math.max(granted, least);
        }
        const isLate = isUnanswered(thrown);
        const isRefusal = isLate || (!larger && (code === 'page_refused' || code === 'page_not_found'));
        if (
          isRefusal &&
          size === granted &&
          (await options.isTooMuch?.({ thrown, pageSize: size, isDeep: offset > 0, isUnanswered: isLate }))
        )
          return;
        // Any other refusal behind pages of that size is no matter of the size: the service does not page so deep. What still fits is read in smaller
        // ones.
        const isTooDeep = code === 'page_refused' && offset > 0 && !larger;
        if (code === 'page_malformed') malformed = { offset, size, thrown };
        if (code === 'page_malformed' || isTooDeep || larger) {
          if (size === least) {
            options.unreadable(paging.first + offset / size, larger?.thrown ?? thrown, size);
            if (isTooDeep) return;
            offset += size;
            if ((unreadable += 1) >= maxUnreadable) return;
          } else {
            // At one place it may be one record; at two in a row the records are large, and pages of that size are not tried again in this pass.
            // What is halved further at the same place is looking for that record.
            if (size === granted && offset !== tooLargeAt) {
              tooLargeAt = offset;
              if ((tooLarge += 1) >= 2) granted = divisorOf(size);
            }
            size = divisorOf(size);
          }
          continue;
        }
        if (code === 'page_refused' && size > 1) {
          options.log.write('source.page_size_refused', { pageSize: size, error: thrown });
          restart(Math.max(1, Math.floor(size / 2)));
          continue;
        }
        if (code !== 'page_refused' && code !== 'page_not_found') throw thrown;
        refusals += 1;
        if (refusals >= maxRefusals && (await requester.isOfTheQuery(query, signal))) {
          // Larger pages may be refused besides: then only now a narrower query tells.
          if (await options.isTooMuch?.({ thrown, pageSize: size, isDeep: false, isUnanswered: false })) return;
          const message = `${messageOf(thrown)}; without times it is answered`;
          options.unreadable(page, new WaybillError(code, message, { cause: thrown }), size);
          return;
        }
        await requester.wait(thrown, refusals, signal);
        restart(paging.size);
        continue;
      }
      const { length } = answer.records;
      const before = received.size;
      for (const { uid } of answer.records) received.add(uid);
      const isVain = received.size === before;
      maxReceived = Math.max(maxReceived, received.size);
      repeats = previous && sameRecords(previous, answer) ? repeats + 1 : 0;
      // The last page again: that is how some services answer past the end. But two pages may be equal by chance, where ties come in another order
      // each time: before the end that the service counts, one repeat is none.
      const isPast = answer.total === undefined ? size === granted : offset >= answer.total;
      if (repeats > 0 && (isPast || repeats >= maxRepeats)) return;
      // Another page than was asked for: the last one again, or a service whose numbers mean nothing. What it brings tells; and before the end that the
      // service counts, ties in another order may bring nothing by chance.
      if (isVain && answer.page !== undefined && answer.page !== page && (isPast || repeats > 0)) return;
      // Or in another order.
      vain = isVain && length > 0 ? vain + 1 : 0;
      if (vain >= (isPast ? maxFruitlessPagesPastTotal : maxFruitlessPages)) return;
      const { total } = answer;
      counted = Math.max(counted, total ?? 0);
      // Smaller pages than these were refused, and this one is answered: the service grants no more.
      if (offset === 0 && size === granted && size < paging.size) paging.size = size;
      pages += 1;
      unreadable = 0;
      empty = length === 0 ? empty + 1 : 0;
      // Granted less than was asked for: believed when the page is full of it and more follows. A last page may call its own length its size.
      const isLess =
        /* mutant: granted-size */ answer.pageSize !== undefined && answer.pageSize < size && length === answer.pageSize && length > 0;
      if (isLess && total !== undefined && total > offset + length) {
        paging.size = length;
        if (offset > 0) {
          yield { answer, isFirst: false, isLast: false, isAhead: false };
          restart(length);
          continue;
        }
        granted = size = length;
      } else if (isLess && total === undefined && offset === 0) granted = size = length;
      // mutant: short-first-page
      if (offset === 0 && length > 0 && length < size && total !== undefined && total > length) {
        // A short first page under a greater total: a cap that the answer does not admit. Or rows that are counted and not shown, or a total that is
        // wrong: so it counts for this pass alone, and does not make every later page small.
        guessedFrom = size;
        granted = size = length;
      }
      const isFirst = offset === 0;
      const isShort = length < size;
      offset += size;
      // mutant: counted-end
      const isCounted = (): boolean => total !== undefined && total > offset && empty < maxEmptyPages;
      if (isShort && isCounted() && guessedFrom !== undefined) {
        // Under a cap this page would be full: rows are taken out of pages. What the first page spanned has been shown.
        granted = size = guessedFrom;
        offset = Math.max(size, offset - (offset % size));
        guessedFrom = undefined;
      }
      const isLast = /* mutant: last-page */ isShort && !isCounted();
      if (size === granted) tooLarge = 0;
      previous = answer;
      // Back to the full size where a full page begins.
      if (size < granted && offset % granted === 0) size = granted;
      if (!isLast && pages < options.pagesMax && options.ahead(answer)) pending = askAt();
      yield { answer, isFirst, isLast, isAhead: pending !== undefined };
      if (isLast) return;
    }
  } finally {
    // One request at a time: a question that nobody waits for any more is let end first.
    if (pending) await pending.catch(() => undefined);
  }
}

/** The largest proper divisor, so that pages of the smaller size stay aligned with those of the larger. */
function divisorOf(size: number): number {
  for (let parts = 2; parts <= size; parts += 1) if (size % parts === 0) return size / parts;
  return 1;
}

function sameRecords(a: Answer, b: Answer): boolean {
  return a.records.length > 0 && a.records.length === b.records.length && a.records.every((record, i) => record.uid === b.records[i]?.uid);
}
