/**
 * Finds out what cannot be assumed of a service and must be known: the number of its first page, the largest page that it grants, whether it
 * counts, and whether it says what time it is. Asked at the first start, weekly, and by `check`; the answer is kept in the source's profile.
 */
import { codeOf, messageOf } from '../errors.ts';
import type { Page, Source } from '../model/source.ts';

/** What was found; plain JSON. */
export interface Calibration {
  /** `pagination.page` of an answer to a request without `page`. */
  readonly firstPage: number;
  readonly pageSize: number;
  /** The total of everything that the credentials may see; undefined when the service gives no usable total, and then nothing can be proven. */
  readonly total: number | undefined;
  /** Whether answers carry a `Date`. */
  readonly dated: boolean;
}

/** What a service answers otherwise than it did: names of `Calibration`. Of the total only whether there is one; that it grows is no change. */
export function changesOf(before: Calibration, now: Calibration): string[] {
  return [
    ...(before.firstPage === now.firstPage ? [] : ['firstPage']),
    ...(before.pageSize === now.pageSize ? [] : ['pageSize']),
    ...((before.total === undefined) === (now.total === undefined) ? [] : ['total']),
    ...(before.dated === now.dated ? [] : ['dated']),
  ];
}

/** Page sizes that are tried when the service is to grant the largest. */
const sizes = [1000, 500, 200, 100, 50, 20, 10, 5, 2, 1];

/**
 * Asks without times, so that in a sound service the total is the largest there is.
 * @param pageSize  `auto`, or the size that the configuration wants; smaller ones are tried when it is refused
 * @throws WaybillError whatever a request throws, but for a page size that is refused while a smaller one is left
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
 * What the service says when it answers 404 to a query that matches nothing; undefined when it answers with an empty page. Only asked where it
 * answers without times: a wrong address cannot be told from this.
 */
export async function emptyIsMissing(source: Source, pageSize: number, signal: AbortSignal): Promise<string | undefined> {
  try {
    await source.page({ query: { startTime: farFuture }, page: undefined, pageSize }, signal);
  } catch (thrown) {
    if (codeOf(thrown) === 'page_not_found') return messageOf(thrown);
    // A time so far ahead may be refused: that says nothing of empty periods.
    if (codeOf(thrown) !== 'page_refused') throw thrown;
  }
  return undefined;
}

/** So many records at the beginning may be unreadable, each alone. */
const maxUnreadable = 20;
/** Nothing is dated there, so this page can be read. */
const farFuture = '2200-01-01T00:00:00.00';

/**
 * A first page that cannot be read, because it is too large or a record in it is broken, says nothing of the others: what must be known is asked of
 * pages of one record. Whether pages of that size are granted shows when they are read.
 * @throws WaybillError what the first page was answered with, when none of the first records can be read
 */
async function oneByOne(source: Source, pageSize: number, thrown: unknown, signal: AbortSignal): Promise<Calibration> {
  for (let number = 0; number <= maxUnreadable; number += 1) {
    const page = number === 0 ? undefined : number;
    try {
      const one = await source.page({ query: {}, page, pageSize: 1 }, signal);
      const empty = page === undefined ? one : await source.page({ query: { startTime: farFuture }, page: undefined, pageSize: 1 }, signal);
      const firstPage = empty.page ?? (page === undefined ? await findFirstPage(source, one, signal) : 1);
      return { firstPage, pageSize, total: one.total, dated: one.date !== undefined };
    } catch (retry) {
      if (codeOf(retry) !== 'page_malformed' && codeOf(retry) !== 'page_not_found') throw retry;
    }
  }
  throw thrown;
}

/** The size that the service says, else what came when more was there, else what was asked for. */
function granted(page: Page, asked: number): number {
  if (page.pageSize !== undefined) return Math.min(page.pageSize, asked);
  const hidden = page.items.length > 0 && page.items.length < asked && page.total !== undefined && page.total > page.items.length;
  return hidden ? page.items.length : asked;
}

/** Where answers do not say their number: 1 when that page begins like the one without a number, else 0. */
async function findFirstPage(source: Source, unnumbered: Page, signal: AbortSignal): Promise<number> {
  try {
    const one = await source.page({ query: {}, page: 1, pageSize: 1 }, signal);
    const [expected, got] = [unnumbered.items[0], one.items[0]];
    if (expected === undefined || got === undefined) return expected === got ? 1 : 0;
    return Buffer.compare(expected, got) === 0 ? 1 : 0;
  } catch (thrown) {
    if (codeOf(thrown) === 'page_not_found') return 0;
    throw thrown;
  }
}
