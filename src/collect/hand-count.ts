/**
 * A hand count: the total that a service gives for one small window, beside the records that are counted by reading it. That the two agree is
 * what every proof rests on (assumption A2). It is a finding about the service and no proof: it says why windows stay gaps, or that all is well
 * before the first of them is closed.
 */
import { codeOf } from '../errors.ts';
import type { Window } from '../model/ledger.ts';
import type { Log } from '../model/telemetry.ts';
import type { Handoff } from './handoff.ts';
import type { Answer, Requester } from './requester.ts';
import { pass } from './read-pages.ts';
import type { Paging } from './page-cursor.ts';
import { queryOf, secondMicros, wholeSecond } from './windows.ts';

/** What was counted; plain JSON. */
export interface HandCount extends Window {
  /** Distinct records that reading the query of the window brought. */
  readonly read: number;
  /** What the service counted for that query after the last page. */
  readonly counted: number;
  readonly agrees: boolean;
  /** Where an answer says another page number than was asked for. */
  readonly misnumbered?: { readonly asked: number; readonly said: number };
}

/** Records of the page that is looked at for a window; the window spans the middle half of them. */
const sampleSize = 20;
/** A page further behind than this many records is not asked for: services limit deep paging. */
const deepest = 5_000;
/** More pages than this are no small window. */
const maxPages = 5;
/** Records may become visible between reading and counting. */
const maxAttempts = 3;
const pauseMs = 2_000;

export interface Counting {
  readonly requester: Pick<Requester, 'ask' | 'count' | 'wait' | 'isOfTheQuery'>;
  readonly paging: Paging;
  readonly sleep: (ms: number, signal: AbortSignal) => Promise<void>;
  /** Control is handed back before each request but the first: the live poll has precedence. */
  readonly handoff: Pick<Handoff, 'offer'>;
  /** Stores what is read: a record may be among it that nobody has collected. */
  readonly store: (answer: Answer, signal: AbortSignal) => Promise<void>;
  readonly log: Log;
}

/**
 * Counts one window in the middle of what there is, in three requests where the numbers agree at once.
 * @param total  of everything that the credentials may see, as calibration found it
 * @returns undefined when there is nothing to count: no records, no usable total, no page that can be read, or too many records in one second
 * @throws what a question throws that cannot be repeated, and the signal's reason
 */
export async function handCount(counting: Counting, total: number, signal: AbortSignal): Promise<HandCount | undefined> {
  try {
    const small = await smallWindow(counting, total, signal);
    if (small === undefined) return undefined;
    const { window, misnumbered } = small;
    let last: HandCount | undefined;
    for (let attempts = 0; attempts < maxAttempts; attempts += 1) {
      if (attempts > 0) await counting.sleep(pauseMs, signal);
      await counting.handoff.offer();
      last = await count(counting, window, signal);
      if (last?.agrees !== false) break;
    }
    return last && misnumbered ? { ...last, misnumbered } : last;
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === 'page_not_found' || code === 'page_refused' || code === 'page_malformed') return undefined;
    throw thrown;
  }
}

/** Neither at the old end, where a service may be deleting, nor at the new one, where records still come. */
async function smallWindow(
  counting: Counting,
  total: number,
  signal: AbortSignal,
): Promise<{ window: Window; misnumbered: HandCount['misnumbered'] } | undefined> {
  const { page, answer } = await sample(counting, total, signal);
  await counting.store(answer, signal);
  const { records, page: said } = answer;
  const times = records
    .map(({ time }) => time)
    .filter((time) => time !== undefined)
    .sort((a, b) => a - b);
  const first = times[Math.floor(times.length / 4)];
  const last = times[Math.floor((times.length * 3) / 4)];
  if (first === undefined || last === undefined) return undefined;
  return {
    window: { from: wholeSecond(first), to: wholeSecond(last) + secondMicros },
    misnumbered: said === undefined || said === page ? undefined : { asked: page, said },
  };
}

/** A page of the size that suits, or of the size that the service grants where it refuses that. */
async function sample({ requester, paging }: Counting, total: number, signal: AbortSignal): Promise<{ page: number; answer: Answer }> {
  const ask = async (pageSize: number): Promise<{ page: number; answer: Answer }> => {
    const page = paging.first + Math.floor(Math.min(total / 2, deepest) / pageSize);
    return { page, answer: await requester.ask({ query: {}, page, pageSize }, signal) };
  };
  try {
    return await ask(sampleSize);
  } catch (thrown) {
    if (codeOf(thrown) !== 'page_refused' || paging.size >= sampleSize) throw thrown;
    return ask(paging.size);
  }
}

/** The padding counts on both sides: what is compared is the query, not what the window owns. */
async function count(
  { requester, paging, log, handoff, store }: Counting,
  window: Window,
  signal: AbortSignal,
): Promise<HandCount | undefined> {
  const query = queryOf(window);
  const uids = new Set<string>();
  let pagesRead = 0;
  const unreadable: number[] = [];
  let isTooMuch = false as boolean;
  const pages = pass({
    ...{ requester, query, log, signal },
    // A copy: what a strange answer says about sizes is for calibration and for the readers to find.
    paging: { ...paging },
    pagesMax: maxPages,
    ahead: () => false,
    unreadable: (page) => unreadable.push(page),
    // What is refused, or not answered in time, is not worth more questions.
    isTooMuch: () => Promise.resolve((isTooMuch = true)),
  });
  for await (const { answer, isLast } of pages) {
    pagesRead += 1;
    for (const { uid } of answer.records) uids.add(uid);
    await store(answer, signal);
    if (pagesRead === maxPages && !isLast) return undefined;
    await handoff.offer();
  }
  if (isTooMuch || unreadable.length > 0) return undefined;
  const { total } = await requester.count(query, paging.first, signal);
  return total === undefined ? undefined : { ...window, read: uids.size, counted: total, agrees: total === uids.size };
}
