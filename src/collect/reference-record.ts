/**
 * A reference record of a field: a record of a proven window that showed the field. When a page lacks the field, the reference record is
 * read again. If that still shows the field, the records of the page lack it themselves; else the right to see it is lost.
 */
import { codeOf } from '../errors/errors.ts';
import type { CollectedRecord } from '../model/journal.ts';
import type { Log } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import type { WatchedField } from './fields.ts';
import { pass } from './read-pages.ts';
import type { Paging } from './page-size.ts';
import type { Window } from '../model/ledger.ts';
import { filterSlack, queryOf, secondMicros, wholeSecond } from './windows.ts';

/** Plain JSON. */
export interface ReferenceRecord {
  readonly uid: string;
  readonly time: Micros;
}

export type ReferenceRecords = Partial<Record<WatchedField, ReferenceRecord>>;

/** One second may contain many records; this many pages of it are searched. */
const maxPages = 50;

/**
 * Reads the reference record as the service shows it now.
 * @returns undefined when the service does not show it any more, or it cannot be read
 */
export async function readReferenceRecord(
  parts: Finding,
  { uid, time }: ReferenceRecord,
  signal: AbortSignal,
): Promise<CollectedRecord | undefined> {
  return (await findRecord(parts, uid, secondOf(time), signal)).record;
}

interface Finding {
  readonly requester: Parameters<typeof pass>[0]['requester'];
  readonly paging: Paging;
  readonly log: Log;
}

interface Found {
  readonly record?: CollectedRecord;
  /** Without a record: the answers were read to their end. */
  readonly isWhole: boolean;
  /** The first other record of the answers that is dated far outside of the query. */
  readonly stray?: CollectedRecord;
}

export function secondOf(time: Micros): Window {
  const from = wholeSecond(time);
  return { from, to: from + secondMicros };
}

/**
 * Looks for a record in the query of a window.
 * @param isBrief  a query that is refused once is not worth more requests
 */
export async function findRecord(
  { requester, paging, log }: Finding,
  uid: string,
  window: Window,
  signal: AbortSignal,
  isBrief = false,
): Promise<Found> {
  let isWhole = true;
  let stray: CollectedRecord | undefined;
  let read = 0;
  const pages = pass({
    requester,
    paging,
    query: queryOf(window),
    pagesMax: maxPages,
    ahead: () => false,
    log,
    signal,
    // 404 may be the answer to a query without matches.
    unreadable: (_page, thrown) => void (isWhole &&= codeOf(thrown) === 'page_not_found'),
    ...(isBrief && { isTooMuch: () => Promise.resolve(true) }),
  });
  for await (const { answer, isLast } of pages) {
    stray ??= answer.records.find(
      ({ time }) => time !== undefined && (time < window.from - filterSlack || time >= window.to + filterSlack),
    );
    const record = answer.records.find((each) => each.uid === uid);
    if (record) return { record, isWhole, ...(stray && { stray }) };
    if ((read += 1) === maxPages && !isLast) isWhole = false;
  }
  return { isWhole, ...(stray && { stray }) };
}
