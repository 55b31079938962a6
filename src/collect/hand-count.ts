/**
 * A hand count compares the total that the service returns for one small window with the records returned for that window. Every proof
 * assumes that both are equal. The result proves nothing: it tells the operator early whether windows will stay gaps.
 */
import { codeOf } from '../errors/errors.ts';
import type { Window } from '../model/ledger.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { sampleOf, type Sample } from './contradictions.ts';
import type { Answer, Requester } from './requester.ts';
import { pass } from './read-pages.ts';
import type { Paging } from './page-size.ts';
import { owns, queryOf, secondMicros, wholeSecond } from './windows.ts';

/** Plain JSON. */
export interface HandCount extends Window {
  /** Distinct records received for the query of the window. */
  readonly read: number;
  /** The total of that query after the last page. */
  readonly counted: number;
  readonly agrees: boolean;
  /** An answer gave another page number than the requested one. */
  readonly misnumbered?: { readonly requested: number; readonly reported: number };
  /** A record of the window that the query of the window does not return. */
  readonly absent?: Sample;
}

/** The window spans the middle half of a page of this many records. */
const sampleSize = 20;
/** No page after this many records is requested: services limit deep paging. */
const deepest = 5_000;
/** A window with more pages is not small. */
const maxPages = 5;
/** Records may become visible between reading and counting. */
const maxAttempts = 3;
const pauseMs = 2_000;

interface Counting {
  readonly requester: Pick<Requester, 'ask' | 'count'>;
  readonly paging: Paging;
  readonly clock: Pick<Clock, 'sleep'>;
  readonly log: Log;
}

/**
 * Counts one window in the middle of all records, in three requests if the numbers agree at once.
 * @param total  of all records that the client may see, from calibration
 * @returns undefined when nothing can be counted: no records, no usable total, no readable page, or too many records in one second
 * @throws what a request throws that cannot be retried, and the signal's reason
 */
export async function handCount(counting: Counting, total: number, signal: AbortSignal): Promise<HandCount | undefined> {
  try {
    const small = await smallWindow(counting, total, signal);
    if (small === undefined) return undefined;
    const { window, misnumbered } = small;
    let last: HandCount | undefined;
    for (let attempts = 0; attempts < maxAttempts; attempts += 1) {
      if (attempts > 0) await counting.clock.sleep(pauseMs, signal);
      last = await count(counting, window, small.samples, signal);
      if (last?.agrees !== false) break;
    }
    return last && misnumbered ? { ...last, misnumbered } : last;
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === 'page_not_found' || code === 'page_refused' || code === 'page_malformed') return undefined;
    throw thrown;
  }
}

/** Neither at the old end, where the service may delete records, nor at the new end, where records still arrive. */
async function smallWindow(
  counting: Counting,
  total: number,
  signal: AbortSignal,
): Promise<{ window: Window; samples: readonly Sample[]; misnumbered: HandCount['misnumbered'] } | undefined> {
  const { page, answer } = await sample(counting, total, signal);
  const { records, page: reported } = answer;
  const times = records
    .map(({ time }) => time)
    .filter((time) => time !== undefined)
    .sort((a, b) => a - b);
  const first = times[Math.floor(times.length / 4)];
  const last = times[Math.floor((times.length * 3) / 4)];
  if (first === undefined || last === undefined) return undefined;
  const window = { from: wholeSecond(first), to: wholeSecond(last) + secondMicros };
  return {
    window,
    samples: records.flatMap((record) => sampleOf(record, answer.request) ?? []).filter(({ time }) => owns(window, time)),
    misnumbered: reported === undefined || reported === page ? undefined : { requested: page, reported },
  };
}

/** A page of the preferred size, or of the granted size if the service refuses the preferred one. */
async function sample({ requester, paging }: Counting, total: number, signal: AbortSignal): Promise<{ page: number; answer: Answer }> {
  const ask = async (pageSize: number): Promise<{ page: number; answer: Answer }> => {
    const page = (paging.first ?? 1) + Math.floor(Math.min(total / 2, deepest) / pageSize);
    return { page, answer: await requester.ask({ query: {}, page, pageSize }, signal) };
  };
  try {
    return await ask(sampleSize);
  } catch (thrown) {
    if (codeOf(thrown) !== 'page_refused' || paging.size >= sampleSize) throw thrown;
    return ask(paging.size);
  }
}

/** Compares the numbers of the query, so the padding counts too. */
async function count(
  { requester, paging, log }: Counting,
  window: Window,
  samples: readonly Sample[],
  signal: AbortSignal,
): Promise<HandCount | undefined> {
  const query = queryOf(window);
  const uids = new Set<string>();
  let pagesRead = 0;
  const unreadable: number[] = [];
  let isTooMuch = false as boolean;
  const pages = pass({
    requester,
    query,
    log,
    signal,
    // A copy: the hand count must not change the page size of others.
    paging: { first: paging.first, size: paging.size },
    pagesMax: maxPages,
    ahead: () => false,
    unreadable: (page) => unreadable.push(page),
    // A refused query, or one not answered in time, is not worth more requests.
    isTooMuch: () => Promise.resolve((isTooMuch = true)),
  });
  for await (const { answer, isLast } of pages) {
    pagesRead += 1;
    for (const { uid } of answer.records) uids.add(uid);
    if (pagesRead === maxPages && !isLast) return undefined;
  }
  if (isTooMuch || unreadable.length > 0) return undefined;
  const { total } = await requester.count(query, paging.first, signal);
  const absent = samples.find(({ uid }) => !uids.has(uid));
  return total === undefined
    ? undefined
    : { ...window, read: uids.size, counted: total, agrees: total === uids.size, ...(absent && { absent }) };
}
