/**
 * The live poll reads what is new, at once and without proof: it gives latency, and close does not rely on it. Its mark is a hint; no safety property
 * uses it.
 */
import type { CollectJournal } from '../model/journal.ts';
import type { Log } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import type { Requester } from './requester.ts';
import type { VisibilityCheck } from './visibility.ts';
import { pass } from './read-pages.ts';
import type { Paging } from './page-cursor.ts';
import type { PageStore } from './page-store.ts';
import { filterSlack, queryFrom, secondMicros, livePollOverlap, wholeSecond } from './windows.ts';

interface LivePollParts {
  readonly sourceId: string;
  readonly requester: Requester;
  readonly paging: Paging;
  readonly journal: Pick<CollectJournal, 'progress'>;
  readonly visibility: Pick<VisibilityCheck, 'isPlain' | 'admits'>;
  readonly pages: Pick<PageStore, 'store'>;
  readonly closeDelay: Micros;
  /** The mark before the first poll. */
  readonly begin: Micros;
  readonly log: Log;
}

const maxPages = 20;

/** Where a poll that was cut at its 20th page goes on: behind so many pages of the query from a time. */
export interface Resume {
  readonly from: Micros;
  readonly skip: number;
}

/** Where a poll begins that does not resume another, µs. */
export function beginOf({ journal, sourceId, closeDelay, begin }: LivePollParts, serverNow: Micros): Micros {
  const { polledUntil, live } = journal.progress(sourceId);
  const mark = polledUntil === 0 ? begin : polledUntil;
  return wholeSecond(
    /* mutant: poll-overlap */ Math.max(Math.min(live.closedUntil, serverNow - closeDelay), Math.min(mark, serverNow) - livePollOverlap),
  );
}

/**
 * One poll. After one that was cut at its 20th page the next begins 2 s before the newest time read, without the overlap; or behind the pages
 * read, where that is no later than the last began: more records than fit into 20 pages can share two seconds. After one that met pages that the
 * service does not show it goes on in the same way, at the latest behind the second of the newest time read.
 * @returns where the next poll resumes, undefined when this one ended at a short page
 */
export async function pollLive(
  parts: LivePollParts,
  serverNow: Micros,
  resume: Resume | undefined,
  signal: AbortSignal,
): Promise<Resume | undefined> {
  const mark = parts.journal.progress(parts.sourceId).polledUntil || parts.begin;
  // mutant: poll-begin
  const from = resume?.from ?? beginOf(parts, serverNow);
  const query = /* mutant: poll-query */ queryFrom(from);
  let newest: Micros | undefined;
  let ended = false;
  let pages = 0;
  const unreadable: number[] = [];
  let half: Resume | undefined;
  const markAfter = (): Micros => /* mutant: poll-progress */ Math.min(serverNow, newest ?? mark);
  const read = pass({
    requester: parts.requester,
    paging: parts.paging,
    query,
    pagesMax: maxPages,
    skip: resume?.skip ?? 0,
    ahead: (answer) => parts.visibility.isPlain(answer),
    log: parts.log,
    signal,
    unreadable: (page, error) => {
      unreadable.push(page);
      parts.log.write('source.page_unreadable', { source: parts.sourceId, page, error });
    },
    isTooMuch: ({ isDeep }) => {
      // Half as much is asked for next: what is stepped over is left to close.
      if (!isDeep && serverNow - from > livePollOverlap) half = { from: wholeSecond(from + (serverNow - from) / 2), skip: 0 };
      return Promise.resolve(half !== undefined);
    },
  });
  for await (const { answer, isLast } of read) {
    pages += 1;
    for (const { time } of answer.records) if (time !== undefined && (newest === undefined || time > newest)) newest = time;
    ended = isLast;
    // The mark stays: what was refused is asked for again with the next poll, and so is what lies behind it.
    if (!(await parts.visibility.admits(answer, signal))) return undefined;
    await parts.pages.store(answer, { polledUntil: isLast || pages === maxPages ? markAfter() : undefined });
  }
  if (half) return half;
  if (ended) return undefined;
  // The pass ended at a page past the end: the mark moves all the same.
  if (pages < maxPages) await parts.pages.store({ records: [], received: serverNow, serverNow }, { polledUntil: markAfter() });
  if (newest === undefined || (pages < maxPages && unreadable.length === 0)) return undefined;
  const next = wholeSecond(newest - filterSlack);
  if (next > from) return { from: next, skip: 0 };
  // What the service does not show behind these pages is stepped over: close says what is missing.
  if (unreadable.length > 0) return { from: wholeSecond(newest) + secondMicros, skip: 0 };
  return { from, skip: (resume?.skip ?? 0) + pages };
}
