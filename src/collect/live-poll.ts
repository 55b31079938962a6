/**
 * The live poll reads new records at once and without proof, for low latency. Closing windows does
 * not rely on it, and no proof uses its progress, `polledUntil`.
 */
import type { Micros } from '../model/time.ts';
import type { VisibilityCheck } from './visibility.ts';
import { pass } from './read-pages.ts';
import type { PageStore } from './page-store.ts';
import { fullOverlap, type PollOverlap } from './poll-overlap.ts';
import type { SourceAccess } from './source-access.ts';
import { filterSlack, queryFrom, secondMicros, wholeSecond } from './windows.ts';

interface LivePollParts extends Pick<SourceAccess, 'sourceId' | 'requester' | 'paging' | 'journal' | 'clock' | 'log' | 'closeDelay'> {
  readonly visibility: Pick<VisibilityCheck, 'isPlain' | 'admits'>;
  readonly pages: Pick<PageStore, 'store' | 'polledFrom'>;
  readonly overlap: PollOverlap;
}

const maxPages = 20;

/** Where the next poll continues after a poll that stopped at its 20th page: it queries from `from`, and skips `skip` pages. */
export interface Resume {
  readonly from: Micros;
  readonly skip: number;
}

export class LivePoll {
  readonly #parts: LivePollParts;
  #resume: Resume | undefined;

  constructor(parts: LivePollParts) {
    this.#parts = parts;
  }

  /** Where the next poll continues; undefined when the last one ended at a short page. */
  get resume(): Resume | undefined {
    return this.#resume;
  }

  /**
   * Reads up to 20 pages. If there are more, the next poll starts 2 s before the newest time read, without the overlap. If 20 pages or more
   * are within two seconds, that would be no progress: the next poll has the same start, and skips the pages read. After unreadable pages
   * the next poll continues in the same way, but instead of skipping pages it starts after the second of the newest time read.
   */
  async poll(serverNow: Micros, signal: AbortSignal): Promise<void> {
    const { journal, sourceId, clock, pages, overlap } = this.#parts;
    const { polledUntil } = journal.progress(sourceId);
    const isFirst = polledUntil === 0;
    // If the clock of the service is hours ahead, the first poll must not begin in the future.
    const mark = isFirst ? Math.min(serverNow, clock.now() * 1000) : polledUntil;
    const resume = this.#resume;
    // mutant: poll-begin
    const from = resume?.from ?? this.#begin(mark, serverNow);
    pages.polledFrom ??= from;
    // Records of the first poll may have been visible for a long time, so they measure nothing.
    const found = (time: Micros): void => (isFirst ? undefined : overlap.found(mark - time));
    this.#resume = await this.#read({ from, skip: resume?.skip ?? 0 }, mark, serverNow, found, signal);
  }

  /** The begin of a poll that does not continue another, µs. */
  #begin(mark: Micros, serverNow: Micros): Micros {
    const { journal, sourceId, closeDelay, clock, overlap } = this.#parts;
    const { live } = journal.progress(sourceId);
    return wholeSecond(
      /* mutant: poll-overlap */ Math.max(
        Math.min(live.closedUntil, serverNow - closeDelay),
        Math.min(mark, serverNow) - overlap.next(clock.monotonic()),
      ),
    );
  }

  /** @returns where the next poll continues; undefined when this one ended at a short page */
  async #read(
    { from, skip }: Resume,
    mark: Micros,
    serverNow: Micros,
    found: (time: Micros) => void,
    signal: AbortSignal,
  ): Promise<Resume | undefined> {
    const { requester, paging, visibility, pages, sourceId, log } = this.#parts;
    const query = /* mutant: poll-query */ queryFrom(from);
    let newest: Micros | undefined;
    let ended = false;
    let pagesRead = 0;
    const unreadable: number[] = [];
    let half: Resume | undefined;
    const markAfter = (): Micros => /* mutant: poll-progress */ Math.min(serverNow, newest ?? mark);
    const read = pass({
      requester,
      paging,
      query,
      skip,
      log,
      signal,
      pagesMax: maxPages,
      ahead: (answer) => visibility.isPlain(answer),
      unreadable: (page, error) => {
        unreadable.push(page);
        log.write('source.page_unreadable', { source: sourceId, page, error });
      },
      isTooMuch: ({ isDeep }) => {
        // The next poll requests only the later half of the time. Closing the windows reads the earlier half.
        if (!isDeep && serverNow - from > fullOverlap) half = { from: wholeSecond(from + (serverNow - from) / 2), skip: 0 };
        return Promise.resolve(half !== undefined);
      },
    });
    for await (const { answer, isLast } of read) {
      pagesRead += 1;
      for (const { time } of answer.records) if (time !== undefined && (newest === undefined || time > newest)) newest = time;
      ended = isLast;
      // `polledUntil` stays: the next poll reads the refused page and the pages after it.
      if (!(await visibility.admits(answer, signal))) return undefined;
      const { fresh } = await pages.store(answer, { polledUntil: isLast || pagesRead === maxPages ? markAfter() : undefined });
      for (const { time } of fresh) if (time !== undefined) found(time);
    }
    if (half) return half;
    if (ended) return undefined;
    // The pass ended at a page past the end: `polledUntil` advances nevertheless.
    if (pagesRead < maxPages) await pages.store({ records: [], received: serverNow, serverNow }, { polledUntil: markAfter() });
    if (newest === undefined || (pagesRead < maxPages && unreadable.length === 0)) return undefined;
    const next = wholeSecond(newest - filterSlack);
    if (next > from) return { from: next, skip: 0 };
    // Skips the unreadable pages of this second: closing the window reports which records are missing.
    if (unreadable.length > 0) return { from: wholeSecond(newest) + secondMicros, skip: 0 };
    return { from, skip: skip + pagesRead };
  }
}
