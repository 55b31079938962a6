/**
 * The live poll reads new records at once and without proof, for low latency. Closing windows does
 * not rely on it, and no proof uses its progress, `polledUntil`.
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
  /** `polledUntil` before the first poll. */
  readonly begin: Micros;
  readonly log: Log;
}

const maxPages = 20;

/**
 * The place where the next poll continues when a poll ended at its 20th page: `skip` pages into the
 * query from a time.
 */
export interface Resume {
  readonly from: Micros;
  readonly skip: number;
}

/** The begin of a poll that does not continue another, µs. */
export function beginOf({ journal, sourceId, closeDelay, begin }: LivePollParts, serverNow: Micros): Micros {
  const { polledUntil, live } = journal.progress(sourceId);
  const mark = polledUntil === 0 ? begin : polledUntil;
  return wholeSecond(
    /* mutant: poll-overlap */ Math.max(Math.min(live.closedUntil, serverNow - closeDelay), Math.min(mark, serverNow) - livePollOverlap),
  );
}

/**
 * Reads up to 20 pages. If there are more, the next poll begins 2 s before the newest time read,
 * without the overlap. Where that is no later than this poll began, more than 20 pages share two
 * seconds, and the next poll skips the pages read. After unreadable pages the next poll continues
 * in the same way, but at the latest after the second of the newest time read.
 * @returns where the next poll continues; undefined when this one ended at a short page
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
      // The next poll requests half the time; closing the windows reads what it skips.
      if (!isDeep && serverNow - from > livePollOverlap) half = { from: wholeSecond(from + (serverNow - from) / 2), skip: 0 };
      return Promise.resolve(half !== undefined);
    },
  });
  for await (const { answer, isLast } of read) {
    pages += 1;
    for (const { time } of answer.records) if (time !== undefined && (newest === undefined || time > newest)) newest = time;
    ended = isLast;
    // `polledUntil` stays: the next poll reads the refused page and the pages after it.
    if (!(await parts.visibility.admits(answer, signal))) return undefined;
    await parts.pages.store(answer, { polledUntil: isLast || pages === maxPages ? markAfter() : undefined });
  }
  if (half) return half;
  if (ended) return undefined;
  // The pass ended at a page past the end: `polledUntil` moves all the same.
  if (pages < maxPages) await parts.pages.store({ records: [], received: serverNow, serverNow }, { polledUntil: markAfter() });
  if (newest === undefined || (pages < maxPages && unreadable.length === 0)) return undefined;
  const next = wholeSecond(newest - filterSlack);
  if (next > from) return { from: next, skip: 0 };
  // The poll skips what the service does not show after these pages: closing the window reports
  // what is missing.
  if (unreadable.length > 0) return { from: wholeSecond(newest) + secondMicros, skip: 0 };
  return { from, skip: (resume?.skip ?? 0) + pages };
}
