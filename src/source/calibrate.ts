/**
 * Calibration: determines the properties of a service that differ between deployments: the number
 * of its first page, the largest page that it grants, whether it counts, and whether its responses
 * carry a `Date`. Runs at the first start, weekly and in `check`. The result is stored in the
 * profile of the source.
 */
import { codeOf, messageOf } from '../errors.ts';
import type { Page, Source } from '../model/source.ts';

/** The result, as plain JSON. */
export interface Calibration {
  /** `pagination.page` of the response to a request without `page`. */
  readonly firstPage: number;
  readonly pageSize: number;
  /**
   * The total of all records that the credentials may see; undefined when the service gives no usable
   * total, so that nothing can be proven.
   */
  readonly total: number | undefined;
  /** True if responses carry a `Date`. */
  readonly dated: boolean;
}

/**
 * The names of the changed properties. A total only counts as present or absent, because it grows.
 */
export function changesOf(before: Calibration, now: Calibration): string[] {
  return [
    ...(before.firstPage === now.firstPage ? [] : ['firstPage']),
    ...(before.pageSize === now.pageSize ? [] : ['pageSize']),
    ...((before.total === undefined) === (now.total === undefined) ? [] : ['total']),
    ...(before.dated === now.dated ? [] : ['dated']),
  ];
}

/** Page sizes to try, to find the largest that the service grants. */
const sizes = [1000, 500, 200, 100, 50, 20, 10, 5, 2, 1];

/**
 * Sends an unbounded query, whose total is the largest that a correct service returns.
 * @param pageSize  `auto`, or the configured size; smaller sizes are tried when it is refused
 * @throws WaybillError any error of a request, except a refused page size while a smaller one is
 * left
 */
export async function calibrate(source: Source, pageSize: number | 'auto', signal: AbortSignal): Promise<Calibration> {
  const requested = pageSize === 'auto' ? sizes : [pageSize, ...sizes.filter((size) => size < pageSize)];
  for (const [index, size] of requested.entries()) {
    try {
      const page = await source.page({ query: {}, page: undefined, pageSize: size }, signal);
      return {
        firstPage: page.page ?? (await findFirstPage(source, page, signal)),
        pageSize: granted(page, size),
        total: page.total,
        dated: page.date !== undefined,
      };
    } catch (thrown) {
      if (codeOf(thrown) === 'page_malformed') return await oneByOne(source, size, thrown, signal);
      if (codeOf(thrown) !== 'page_refused' || index === requested.length - 1) throw thrown;
    }
  }
  throw new RangeError('cannot calibrate a source without a page size to try');
}

/**
 * The error text of a service that answers a query without matches with 404; undefined when it
 * answers with an empty page. Only valid for a service that answers the unbounded query: otherwise
 * the address may be wrong.
 */
export async function emptyIsMissing(source: Source, pageSize: number, signal: AbortSignal): Promise<string | undefined> {
  try {
    await source.page({ query: { startTime: farFuture }, page: undefined, pageSize }, signal);
  } catch (thrown) {
    if (codeOf(thrown) === 'page_not_found') return messageOf(thrown);
    // A time far in the future may be refused, which says nothing about empty periods.
    if (codeOf(thrown) !== 'page_refused') throw thrown;
  }
  return undefined;
}

/** Calibration tries this many records from the first on, one by one. */
const maxUnreadable = 20;
/** No record is that new, so this page is empty and readable. */
const farFuture = '2200-01-01T00:00:00.00';

/**
 * Calibrates with pages of one record after the first page could not be read, because it is too
 * large or contains a malformed record. Later reads show whether larger pages are granted.
 * @throws WaybillError the error of the first page, when none of the first records can be read
 */
async function oneByOne(source: Source, pageSize: number, thrown: unknown, signal: AbortSignal): Promise<Calibration> {
  for (let number = 0; number <= maxUnreadable; number += 1) {
    const page = number === 0 ? undefined : number;
    try {
      const one = await source.page({ query: {}, page, pageSize: 1 }, signal);
      const empty = page === undefined ? one : await source.page({ query: { startTime: farFuture }, page: undefined, pageSize: 1 }, signal);
      const firstPage = empty.page ?? (page === undefined ? await findFirstPage(source, one, signal) : 1);
      return { firstPage, pageSize, total: one.total, dated: one.date !== undefined };
    } catch (failure) {
      if (codeOf(failure) !== 'page_malformed' && codeOf(failure) !== 'page_not_found') throw failure;
    }
  }
  throw thrown;
}

/**
 * The page size that the response states; else the number of items if there are more records; else
 * the requested size.
 */
function granted(page: Page, asked: number): number {
  if (page.pageSize !== undefined) return Math.min(page.pageSize, asked);
  const hidden = page.items.length > 0 && page.items.length < asked && page.total !== undefined && page.total > page.items.length;
  return hidden ? page.items.length : asked;
}

/**
 * For responses without a page number: 1 when page 1 starts like the page without a number, else 0.
 */
async function findFirstPage(source: Source, unnumbered: Page, signal: AbortSignal): Promise<number> {
  try {
    const one = await source.page({ query: {}, page: 1, pageSize: 1 }, signal);
    const [expected, got] = [unnumbered.items[0], one.items[0]];
    if (expected === undefined || got === undefined) return expected === got ? 1 : 0;
    return Buffer.compare(expected.received, got.received) === 0 ? 1 : 0;
  } catch (thrown) {
    if (codeOf(thrown) === 'page_not_found') return 0;
    throw thrown;
  }
}
