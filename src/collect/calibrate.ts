/**
 * Calibration: determines the properties of a service that differ between deployments: the number of its first page, the largest page that
 * it grants, whether it counts, and whether its responses carry a `Date`. Runs at the first start, weekly and in `check`. The result is
 * stored in the profile of the source.
 */
import { codeOf, messageOf } from '../errors/errors.ts';
import type { Page, Source } from '../model/source.ts';
import { firstGranted, isCapped, largestSize, sizesBelow, usualSize } from './page-size.ts';
import { futureQuery } from './windows.ts';

/** The result, as plain JSON. */
export interface Calibration {
  /** The number of the first page in requests; undefined if the service has too few records to show it. */
  readonly firstPage?: number | undefined;
  readonly pageSize: number;
  /**
   * The total of all records that the credentials may see; undefined when the service gives no usable total, so that nothing can be proven.
   */
  readonly total: number | undefined;
  /** True if responses carry a `Date`. */
  readonly dated: boolean;
  /** Set if the total depends on the page size, such as the number of items on the page: no total of this service is used. */
  readonly wrongTotal?: true;
  /** Set while the service has too few records to show how it pages and counts. */
  readonly preliminary?: true;
}

/** The names of the changed properties. A total only counts as present or absent, because it grows. */
export function changesOf(before: Calibration, now: Calibration): string[] {
  return [
    ...(before.firstPage === undefined || before.firstPage === now.firstPage ? [] : ['firstPage']),
    ...(before.pageSize === now.pageSize ? [] : ['pageSize']),
    ...((before.total === undefined) === (now.total === undefined) ? [] : ['total']),
    ...(before.dated === now.dated ? [] : ['dated']),
  ];
}

type Ask = (page: number | undefined, pageSize: number) => Promise<Page>;

/**
 * Sends unbounded queries, whose total is the largest that a correct service returns.
 * @param pageSize  `auto`, or the configured size; smaller sizes are tried when it is refused
 * @throws WaybillError any error of a request, except a refused page size while a smaller one is left
 */
export async function calibrate(source: Source, pageSize: number | 'auto', signal: AbortSignal): Promise<Calibration> {
  const ask: Ask = (page, size) => source.page({ query: {}, page, pageSize: size }, signal);
  const { size, whole, thrown } = await largestPage(source, ask, pageSize === 'auto' ? largestSize : pageSize, signal);
  let small: number = Math.min(comparedRecords, Math.max(smallSizes[0], (whole?.items.length ?? 0) - 1));
  const answers = new Map<number | undefined, Page>(whole && [[undefined, whole]]);
  const beginOf = async (
    page: number | undefined,
    sizes: readonly number[] = [small],
    isRepeated = whole === undefined,
  ): Promise<Begin> => {
    try {
      const granted = await firstGranted(sizes, (each) => ask(page, each));
      small = granted.size;
      answers.set(page, granted.result);
      return begin(granted.result);
    } catch (failure) {
      const isUnreadable = codeOf(failure) === 'page_malformed';
      if (!isUnreadable && codeOf(failure) !== 'page_refused' && codeOf(failure) !== 'page_not_found') throw failure;
      if (isRepeated) return isUnreadable ? 'unreadable' : 'refused';
      // A gateway may refuse every page for a while.
      await ask(undefined, size);
      return beginOf(page, sizes, true);
    }
  };
  const first = whole ? begin(whole) : await beginOf(undefined, smallSizes);
  const one = await beginOf(1, [small, ...smallSizes]);
  const hasMore = (): boolean => [...answers.values()].some(({ items, total = 0 }) => Math.max(items.length, total) > small);
  const firstPage = await firstPageOf(
    first,
    one,
    hasMore(),
    () => beginOf(0),
    async () => begin(await ask(undefined, size)),
  );
  for (let page = 2; answers.size === 0 && page <= maxUnreadable; page += 1) await beginOf(page);
  const [answer] = answers.values();
  if (!answer) throw thrown;
  const wrongTotal = whole && size !== small && (await hasWrongTotal(ask, whole, answers.get(1), size, small));
  return {
    firstPage,
    pageSize: whole && isCapped(whole.items.length, size, whole.total) ? whole.items.length : size,
    total: wrongTotal ? undefined : answer.total,
    dated: answer.date !== undefined,
    ...(wrongTotal && { wrongTotal }),
    ...((firstPage === undefined || !hasMore()) && { preliminary: true }),
  };
}

/**
 * The error text of a service that answers a query without matches with 404; undefined when it answers with an empty page. Only valid for a
 * service that answers the unbounded query: otherwise the address may be wrong.
 */
export async function emptyIsMissing(source: Source, pageSize: number, signal: AbortSignal): Promise<string | undefined> {
  try {
    await source.page({ query: futureQuery, page: undefined, pageSize }, signal);
  } catch (thrown) {
    if (codeOf(thrown) === 'page_not_found') return messageOf(thrown);
    // A time far in the future may be refused, which says nothing about empty periods.
    if (codeOf(thrown) !== 'page_refused') throw thrown;
  }
  return undefined;
}

/** Pages that are compared hold at most this many records, and one record less than there are: then they differ in more than their order. */
const comparedRecords = 20;
/** Sizes of these pages while no larger page was readable, or after the service refused the size. */
const smallSizes = [2, 1, usualSize] as const;
/** Of this share of a page that two answers have in common, only records at its edge changed places. */
const certainShare = 0.9;
/** After an unreadable first page, this many records are tried one by one. */
const maxUnreadable = 20;

/**
 * The first page with the largest size that is granted. Undefined if it is unreadable, because it is too large or
 * contains a malformed record; later reads show whether larger pages are granted.
 */
async function largestPage(
  source: Source,
  ask: Ask,
  largest: number,
  signal: AbortSignal,
): Promise<{ readonly size: number; readonly whole?: Page; readonly thrown?: unknown }> {
  try {
    return { size: largest, whole: await ask(undefined, largest) };
  } catch (thrown) {
    if (codeOf(thrown) === 'page_malformed') {
      // A service that answers nothing readable at all is not calibrated.
      await source.page({ query: futureQuery, page: undefined, pageSize: usualSize }, signal);
      return { size: largest, thrown };
    }
    if (codeOf(thrown) !== 'page_refused') throw thrown;
    // A service that refuses every request is not asked for each size.
    await firstGranted(smallSizes, (size) => ask(undefined, size));
  }
  const { size, result } = await firstGranted(sizesBelow(largest), (each) => ask(undefined, each));
  return { size, whole: result };
}

/** The records at the begin of a page as received, or the failure. */
type Begin = readonly string[] | 'refused' | 'unreadable';

function begin({ items }: Page): Begin {
  return items.slice(0, comparedRecords).map(({ received }) => Buffer.from(received).toString('latin1'));
}

/** The share of the records of a page that another, as long or longer, begins with: 0 to 1. */
function shareOf(page: Begin, longer: Begin): number {
  if (typeof page === 'string' || typeof longer === 'string' || page.length === 0) return String(page) === String(longer) ? 1 : 0;
  const places = new Set(longer.slice(0, page.length));
  return page.filter((record) => places.has(record)).length / page.length;
}

/**
 * True if a page shows the same places as another that is as long or longer. Half of the records suffice: at a page edge,
 * records of one time may change places, and new ones arrive.
 */
function isSame(page: Begin, longer: Begin): boolean {
  const share = shareOf(page, longer);
  // Without a record after them, only new ones can make a difference.
  return share > 0.5 || (share === 0.5 && longer.length > page.length);
}

/**
 * The number of the first page in requests, by the pages that the service returns for 1 and 0. The number that an answer
 * states is no evidence: some services count requests from 1 and answers from 0, or the other way round.
 * @param first  of the page without a number
 * @returns undefined if the records do not suffice: some services repeat their last page
 */
async function firstPageOf(
  first: Begin,
  one: Begin,
  hasMore: boolean,
  beginOfZero: () => Promise<Begin>,
  firstAgain: () => Promise<Begin>,
): Promise<number | undefined> {
  if (isSame(one, first) && first !== 'unreadable') {
    if (!hasMore) return undefined;
    if (shareOf(one, first) > certainShare) return 1;
    // Records that arrived meanwhile, or are hidden, may have pushed the first page to the second.
    // mutant: first-page-moved
    if (shareOf(await firstAgain(), first) < 1) return undefined;
    const zero = await beginOfZero();
    return isSame(one, zero) || shareOf(zero, first) <= shareOf(one, first) ? 1 : undefined;
  }
  const zero = await beginOfZero();
  // mutant: unreadable-pages
  if (one === 'unreadable' && zero === 'unreadable') return undefined;
  // While the first records arrive, an empty page 0 is as empty as the first page was.
  if (isSame(zero, first) && (zero.length > 0 || typeof one === 'string')) return isSame(one, zero) ? undefined : 0;
  if (typeof zero === 'string') return 1;
  // Both differ from a first page that was readable: the service has sorted its records anew meanwhile.
  if (isSame(one, zero)) return hasMore && (typeof first === 'string' || zero.length === 0) ? 1 : undefined;
  return zero.length === 0 ? 1 : 0;
}

/** True if two page sizes give different totals twice. While records arrive or a replica lags, a size does not repeat its total. */
async function hasWrongTotal(ask: Ask, whole: Page, one: Page | undefined, size: number, small: number): Promise<true | undefined> {
  if (whole.total === undefined || one?.total === undefined || whole.total === one.total) return undefined;
  const again = await ask(1, small);
  return (again.total === one.total && (await ask(undefined, size)).total === whole.total) || undefined;
}
