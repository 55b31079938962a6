/**
 * Reads a window until the service itself confirms by a count that nothing is missing, or until further passes find nothing new. `counted`
 * in window-tally.ts states the theorem that makes an equal count a proof.
 */
import { messageOf } from '../errors/errors.ts';
import type { Verdict, Window } from '../model/ledger.ts';
import type { WindowQuery } from '../model/source.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { Handoff } from './handoff.ts';
import type { PageRefused } from './page-cursor.ts';
import type { Paging } from './page-size.ts';
import type { PageStore } from './page-store.ts';
import { pass } from './read-pages.ts';
import type { ReferenceRecords } from './reference-record.ts';
import type { Requester } from './requester.ts';
import type { VisibilityCheck } from './visibility.ts';
import { gap, minCap, splitFor, WindowTally, type Gap, type Split, type Step } from './window-tally.ts';
import { endsOf, queryOf } from './windows.ts';

/** The parameters of reading, in addition to the window. */
export interface Reading {
  readonly requester: Requester;
  readonly paging: Paging;
  readonly pages: Pick<PageStore, 'store' | 'contradicts'>;
  readonly caps: Caps;
  readonly visibility: Pick<VisibilityCheck, 'isSuspended' | 'isPlain' | 'admits' | 'candidates' | 'proven'>;
  readonly clock: Clock;
  readonly log: Log;
  /** ms between two passes. */
  readonly pauseMs: number;
  readonly handoff: Pick<Handoff, 'isWanted' | 'offer'>;
}

/** The largest total that this source has ever given: a total that equals it may be a cap. */
export interface Caps {
  largest: number;
}

/** A window is proven, is a gap, or is to be halved; while the source is suspended nothing is decided. */
export type Outcome = Verdict | Split | { readonly kind: 'suspended' };

/** The windows that may be split: any window, only a window that the service cannot answer as a whole, or none. */
export type Splitting = 'any' | 'refused' | 'none';

/** One window while it is read. */
interface WindowRead {
  readonly reading: Reading;
  readonly window: Window;
  readonly query: WindowQuery;
  readonly splitting: Splitting;
  readonly tally: WindowTally;
  /** Candidates for reference records: they count once the window is proven. */
  readonly referenceRecords: ReferenceRecords;
  readonly signal: AbortSignal;
}

/**
 * @param query  the query of the window: a recount sends the stored one, literally
 * @param splitting  not `any` for a window that is in the ledger already
 */
export async function readWindow(
  reading: Reading,
  window: Window,
  query: WindowQuery,
  splitting: Splitting,
  signal: AbortSignal,
): Promise<Outcome> {
  const { requester, visibility, clock, pauseMs } = reading;
  const requestsBefore = requester.health.requests;
  const requests = (): number => requester.health.requests - requestsBefore;
  const tally = new WindowTally(window, splitting === 'any');
  const read: WindowRead = { reading, window, query, splitting, tally, referenceRecords: {}, signal };
  for (;;) {
    const counted = (await readPages(read)) ?? (await count(read));
    const step = counted.kind === 'complete' ? ((await capped(read, counted.total)) ?? counted) : counted;
    switch (step.kind) {
      case 'complete': {
        const proof = { query, ...tally.proof(step.total, step.serverNow), requests: requests() };
        const inHand = reading.pages.contradicts(window, proof.inWindow, (uid) => tally.has(uid));
        if (inHand !== undefined) {
          const message = `other queries showed ${inHand} records of the window or more, and its own query shows ${proof.inWindow}`;
          return { proven: false, reason: 'count', message, query, ...tally.all(), seen: inHand, requests: requests() };
        }
        await visibility.proven(read.referenceRecords);
        return { proven: true, proof };
      }
      case 'gap':
        return { proven: false, reason: step.reason, message: step.message, query, ...tally.all(), requests: requests() };
      case 'split':
      case 'suspended':
        return step;
      case 'read_again':
        if (visibility.isSuspended) return { kind: 'suspended' };
        await clock.sleep(pauseMs, signal);
    }
  }
}

/** Reads and stores each page of the query. @returns what ends the reading without a count */
async function readPages({ reading, window, query, splitting, tally, referenceRecords, signal }: WindowRead): Promise<Step | undefined> {
  const { requester, paging, pages, visibility, handoff, log } = reading;
  let split: Split | undefined;
  tally.beginPass();
  const answers = pass({
    requester,
    paging,
    query,
    log,
    signal,
    pagesMax: Number.MAX_SAFE_INTEGER,
    ahead: (answer) => !handoff.isWanted && visibility.isPlain(answer),
    unreadable: (page, thrown, pageSize) => tally.unreadable(page, pageSize, messageOf(thrown)),
    ...(splitting !== 'none' && {
      isTooMuch: async (refused) => {
        if (refused.isDeep || (await isForWidth(reading, window, query, refused, signal)))
          split = tally.refused(messageOf(refused.thrown), refused.isDeep);
        return split !== undefined;
      },
    }),
  });
  for await (const { answer, isFirst, isAhead } of answers) {
    if (!(await visibility.admits(answer, signal))) return { kind: 'suspended' };
    // mutant: store-page
    await pages.store(answer, { window });
    visibility.candidates(answer.records, window, referenceRecords);
    const end = tally.page(answer, isFirst);
    if (end) return end;
    if (!isAhead) await handoff.offer();
  }
  return split ?? tally.endPass();
}

/** Asks for the total after the last page, and decides by it. */
async function count({ reading, query, tally, signal }: WindowRead): Promise<Step> {
  const { requester, paging, visibility, caps } = reading;
  if (tally.isUnreadable)
    return tally.countedUnreadable(tally.received === 0 ? undefined : (await requester.count(query, paging.first, signal)).total);
  const { total, serverNow } = await requester.count(query, paging.first, signal);
  // While the source is suspended it may show fewer records than it holds.
  if (visibility.isSuspended) return { kind: 'suspended' };
  return tally.counted(total, serverNow, caps.largest);
}

/** A total that may be a cap proves nothing. @returns what follows instead of a proof */
async function capped({ reading, query, splitting, signal }: WindowRead, total: number): Promise<Split | Gap | undefined> {
  if (/* mutant: cap */ !(await mayBeCap(reading, query, total, signal))) return undefined;
  if (splitting === 'any') return splitFor(total);
  return gap('total', `the service counted ${total}, the most it has ever counted: this may be a cap`);
}

/**
 * True if the service may have capped the total of the window: neither an earlier total nor the total of the unbounded query is larger.
 * Without a cap, the unbounded total is larger, unless the window holds all records.
 */
async function mayBeCap({ requester, paging, caps }: Reading, query: WindowQuery, total: number, signal: AbortSignal): Promise<boolean> {
  if (total < minCap || total < caps.largest) return false;
  const unbounded = await requester.count({}, paging.first, signal);
  caps.largest = Math.max(caps.largest, total, unbounded.total ?? 0);
  if (total >= caps.largest) return true;
  // The unbounded total is the largest so far. If the service raised its cap just now, the total of the window is from before that.
  return (await requester.count(query, paging.first, signal)).total !== total;
}

/**
 * True if the width of a query is the reason why the service refuses it or does not answer in time: the service answers the same page for
 * the first or the last second of the window. If it answers neither, halving would not help. If it answers a smaller page of the same query
 * in time, the page is too large and not the query.
 */
async function isForWidth(
  { requester, paging }: Reading,
  window: Window,
  query: WindowQuery,
  { pageSize, isUnanswered }: PageRefused,
  signal: AbortSignal,
): Promise<boolean> {
  const page = paging.first;
  if (isUnanswered && (await requester.isAnswered({ query, page }, signal))) return false;
  const [earliest, latest] = endsOf(window);
  return (
    (await requester.isAnswered({ query: queryOf(earliest), page, pageSize }, signal)) ||
    (await requester.isAnswered({ query: queryOf(latest), page, pageSize }, signal))
  );
}
