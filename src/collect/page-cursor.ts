/**
 * Decides which page of a query comes next, by the responses and refusals so far. It sends nothing. Every pass ends, whatever the service
 * returns: pages must bring new records. After the end that the total counts, three pages without a new record end the pass; before that
 * end, twenty. In total, the places requested may not exceed the total plus four times the records received, and a margin.
 */
import { codeOf, WaybillError } from '../errors/errors.ts';
import { isCapped, sizesBelow, type Paging } from './page-size.ts';
import { isUnanswered, type Answer } from './requester.ts';
import { recordsOfSecondMax } from './windows.ts';

/** The service refused a page of a query, or did not answer it in time although it answered other requests. */
export interface PageRefused {
  readonly thrown: unknown;
  readonly pageSize: number;
  /** Pages before it were answered. */
  readonly isDeep: boolean;
  readonly isUnanswered: boolean;
}

/** An answer is a page of the pass, or shows that the page before it was the last. */
type PageStep = 'end' | { readonly isFirst: boolean; readonly isLast: boolean; readonly isRestart: boolean };

/** The next step after a failed request. */
type FailureStep =
  | { readonly kind: 'retry' | 'fatal' }
  | { readonly kind: 'size_refused'; readonly pageSize: number }
  | { readonly kind: 'refused'; readonly page: number; readonly pageSize: number }
  | { readonly kind: 'unreadable'; readonly page: number; readonly pageSize: number; readonly thrown: unknown; readonly isEnd: boolean };

/** The pass ends after this many consecutive places that are unreadable even in the smallest page. */
const maxUnreadable = 20;
/** A page repeated this often in a row is the last, whatever the total. */
const maxRepeats = 20;
/** This many consecutive empty pages are the end, whatever the total. */
const maxEmptyPages = 20;
/** This many consecutive pages without a new record are the end, before and after the end that the total counts. */
const maxFruitlessPages = 20;
const maxFruitlessPagesPastTotal = 3;
/** Of this many places after the total, one must bring a new record. */
const placesPerNew = 4;
/** In addition to `placesPerNew`, the places of this many pages may bring no new record. */
const spareFruitlessPages = 40;

export class PageCursor {
  readonly #paging: Paging;
  /** The number of the first page; undefined until the second shows it. */
  #first: number | undefined;
  /** The full page size of this pass. */
  #granted: number;
  /** The size of the next page. It may shrink to a divisor of the full size, so that pages stay aligned. */
  #size: number;
  /** The full size before a short first page suggested a smaller one. */
  #guessedFrom: number | undefined;
  /** How many places of the query come before the next page. */
  #offset: number;
  #pages = 0;
  #repeats = 0;
  #empty = 0;
  #fruitless = 0;
  #unreadable = 0;
  #tooLarge = 0;
  #tooLargeAt: number | undefined;
  /** The smallest page size to request: the service may refuse smaller ones. */
  #minSize = 1;
  /** The last answer that could not be read. */
  #malformed: { readonly offset: number; readonly size: number; readonly thrown: unknown } | undefined;
  /** The uids received since the pass began or restarted; and the largest number of them. */
  #received = new Set<string>();
  #maxReceived = 0;
  #places = 0;
  #counted = 0;
  readonly #sparePlaces: number;
  #previous: Answer | undefined;
  /** The difference between the page numbers of answers and of requests. */
  #shift: number | undefined;

  /** @param skip  pages of the query to skip, of the present page size */
  constructor(paging: Paging, skip = 0) {
    this.#paging = paging;
    this.#first = paging.first;
    this.#granted = this.#size = paging.size;
    this.#offset = skip * paging.size;
    this.#sparePlaces = spareFruitlessPages * paging.size;
  }

  /** The next page to request. */
  get next(): { readonly page: number | undefined; readonly pageSize: number } {
    return { page: this.isAtStart ? this.#first : this.#page, pageSize: this.#size };
  }

  get #page(): number {
    // While the first number is unknown: too low a number repeats a page, too high a number skips one.
    return (this.#first ?? 0) + this.#offset / this.#size;
  }

  /** Pages answered. */
  get pages(): number {
    return this.#pages;
  }

  get isAtStart(): boolean {
    return this.#offset === 0;
  }

  get isExhausted(): boolean {
    return this.#places > Math.min(this.#counted, recordsOfSecondMax) + placesPerNew * this.#maxReceived + this.#sparePlaces;
  }

  /** Restarts the pass with another page size. */
  restart(size: number): void {
    this.#granted = this.#size = size;
    this.#offset = 0;
    this.#previous = this.#guessedFrom = this.#malformed = undefined;
    this.#repeats = this.#empty = this.#fruitless = 0;
    this.#received = new Set();
  }

  /** Takes the answer to `next`. */
  answered(answer: Answer): PageStep {
    this.#places += this.#size;
    if (this.#repeatsFirst(answer)) return { isFirst: false, isLast: false, isRestart: false };
    if (this.#isEndedBy(answer)) return 'end';
    const { length } = answer.records;
    const { total } = answer;
    this.#counted = Math.max(this.#counted, total ?? 0);
    // The larger pages were refused, and this one is answered: the service grants no more.
    if (this.isAtStart && this.#size === this.#granted && this.#size < this.#paging.size) this.#paging.size = this.#size;
    this.#pages += 1;
    this.#unreadable = 0;
    this.#empty = length === 0 ? this.#empty + 1 : 0;
    if (this.#followGrantedSize(answer)) return { isFirst: false, isLast: false, isRestart: true };
    const isFirst = this.isAtStart;
    const isShort = length < this.#size;
    this.#offset += this.#size;
    // mutant: counted-end
    const isCounted = (): boolean => total !== undefined && total > this.#offset && this.#empty < maxEmptyPages;
    if (isShort && isCounted() && this.#guessedFrom !== undefined) {
      // With a cap on the page size this page would be full. It is short: the service removes rows
      // from pages, so the full size holds again. The places of the first page are read already.
      this.#granted = this.#size = this.#guessedFrom;
      this.#offset = Math.max(this.#size, this.#offset - (this.#offset % this.#size));
      this.#guessedFrom = undefined;
    }
    const isLast = /* mutant: last-page */ isShort && !isCounted();
    if (this.#size === this.#granted) this.#tooLarge = 0;
    this.#previous = answer;
    // At the start of a full page, returns to the full size.
    if (this.#size < this.#granted && this.#offset % this.#granted === 0) this.#size = this.#granted;
    return { isFirst, isLast, isRestart: false };
  }

  /** The first page was requested without a number. True if page 1 has the same records: then pages count from 1. */
  #repeatsFirst({ records }: Answer): boolean {
    if (this.#first !== undefined || this.isAtStart) return false;
    const isFirst = records.length > 0 && records.every(({ uid }) => this.#received.has(uid));
    this.#first = isFirst ? 1 : 0;
    this.#shift = undefined;
    return isFirst;
  }

  /** True if the answer shows that the page before it was the last one. */
  #isEndedBy(answer: Answer): boolean {
    if (answer.page !== undefined) this.#shift ??= answer.page - this.#page;
    const before = this.#received.size;
    for (const { uid } of answer.records) this.#received.add(uid);
    const isFruitless = this.#received.size === before;
    this.#maxReceived = Math.max(this.#maxReceived, this.#received.size);
    this.#repeats = this.#previous && sameRecords(this.#previous, answer) ? this.#repeats + 1 : 0;
    // Some services repeat the last page after the end. But two pages may be equal by chance if records of one time change their order:
    // before the end that the total counts, one repeat does not end the pass.
    const isPast = answer.total === undefined ? this.#size === this.#granted : this.#offset >= answer.total;
    if (this.#repeats > 0 && (isPast || this.#repeats >= maxRepeats)) return true;
    // The answer has another page number than expected. Either the service repeats its last page, or its page numbers are wrong. A new
    // record excludes the first. Before the end that the total counts, a page may bring no new record by chance.
    if (isFruitless && answer.page !== undefined && answer.page !== this.#page + (this.#shift ?? 0) && (isPast || this.#repeats > 0))
      return true;
    this.#fruitless = isFruitless && answer.records.length > 0 ? this.#fruitless + 1 : 0;
    return this.#fruitless >= (isPast ? maxFruitlessPagesPastTotal : maxFruitlessPages);
  }

  /** Adopts a smaller page size than requested. @returns true when the pass restarts with it */
  #followGrantedSize({ records: { length }, pageSize, total }: Answer): boolean {
    // Believes the reported size only if the page has as many records and more pages follow: a last page may report its length as its size.
    const isLess = /* mutant: granted-size */ pageSize !== undefined && pageSize < this.#size && length === pageSize && length > 0;
    if (isLess && isCapped(length, this.#size, total, this.#offset)) {
      this.#paging.size = length;
      if (!this.isAtStart) {
        this.restart(length);
        return true;
      }
      this.#granted = this.#size = length;
    } else if (isLess && total === undefined && this.isAtStart) this.#granted = this.#size = length;
    // mutant: short-first-page
    if (this.isAtStart && isCapped(length, this.#size, total)) {
      // A short first page below the total: an unreported cap, or rows that are counted and not shown, or a wrong total. So the size holds
      // for this pass only, and later passes request the full size.
      this.#guessedFrom = this.#size;
      this.#granted = this.#size = length;
    }
    return false;
  }

  /** The refusal, if a narrower query might avoid the failure. Changes nothing. */
  refusal(thrown: unknown): PageRefused | undefined {
    const code = codeOf(thrown);
    const isLate = isUnanswered(thrown);
    const isRefusal = isLate || (!this.#largerAnswered(code) && (code === 'page_refused' || code === 'page_not_found'));
    if (!isRefusal || this.#size !== this.#granted) return undefined;
    return { thrown, pageSize: this.#size, isDeep: !this.isAtStart, isUnanswered: isLate };
  }

  /** Decides the next step after the request for `next` failed. */
  failed(thrown: unknown): FailureStep {
    this.#places += this.#size;
    const code = codeOf(thrown);
    const larger = this.#largerAnswered(code);
    if (larger) {
      this.#minSize = this.#size = larger.size;
      this.#granted = Math.max(this.#granted, this.#minSize);
    }
    // The service answered earlier pages of this size and refuses this one: it does not page so deep. Smaller pages read up to that depth.
    const isTooDeep = code === 'page_refused' && !this.isAtStart && !larger;
    // Smaller pages of the query would be empty too: some services send no body for no records.
    if (thrown instanceof WaybillError && thrown.isEmpty)
      return { kind: 'unreadable', page: this.#page, pageSize: this.#size, thrown, isEnd: true };
    if (code === 'page_malformed') this.#malformed = { offset: this.#offset, size: this.#size, thrown };
    if (code === 'page_malformed' || isTooDeep || larger) return this.#narrow(larger?.thrown ?? thrown, isTooDeep);
    const [smaller] = sizesBelow(this.#size);
    if (code === 'page_refused' && smaller !== undefined) {
      const pageSize = this.#size;
      this.restart(smaller);
      return { kind: 'size_refused', pageSize };
    }
    if (code !== 'page_refused' && code !== 'page_not_found') return { kind: 'fatal' };
    return { kind: 'refused', page: this.#page, pageSize: this.#size };
  }

  /** A larger page was answered here, so smaller pages are refused for their size: an unreadable place is not narrowed any further. */
  #largerAnswered(code: string | undefined): { readonly size: number; readonly thrown: unknown } | undefined {
    const malformed = this.#malformed;
    return code === 'page_refused' && malformed?.offset === this.#offset && this.#size < malformed.size ? malformed : undefined;
  }

  /** Requests fewer records at the same place, or skips the place if fewer cannot be requested. */
  #narrow(thrown: unknown, isTooDeep: boolean): FailureStep {
    if (this.#size === this.#minSize) {
      const unreadable = { kind: 'unreadable', page: this.#page, pageSize: this.#size, thrown } as const;
      if (isTooDeep) return { ...unreadable, isEnd: true };
      this.#offset += this.#size;
      this.#unreadable += 1;
      return { ...unreadable, isEnd: this.#unreadable >= maxUnreadable };
    }
    // If one place fails, one record may be the cause, and smaller pages find it. If two places in a row
    // fail, the records are large, and this pass requests no more pages of that size.
    if (this.#size === this.#granted && this.#offset !== this.#tooLargeAt) {
      this.#tooLargeAt = this.#offset;
      this.#tooLarge += 1;
      if (this.#tooLarge >= 2) this.#granted = divisorOf(this.#size);
    }
    this.#size = divisorOf(this.#size);
    return { kind: 'retry' };
  }
}

/** The largest proper divisor: pages of the smaller size stay aligned with pages of the larger size. */
function divisorOf(size: number): number {
  for (let parts = 2; parts <= size; parts += 1) if (size % parts === 0) return size / parts;
  return 1;
}

function sameRecords(a: Answer, b: Answer): boolean {
  return a.records.length > 0 && a.records.length === b.records.length && a.records.every((record, i) => record.uid === b.records[i]?.uid);
}
