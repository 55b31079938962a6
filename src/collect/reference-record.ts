/**
 * A reference record for a field: a record of a proven window that showed it. Read again it tells whether a page without the field is poor by itself, or
 * whether the right to see the field is gone.
 */
import type { CollectedRecord } from '../model/journal.ts';
import type { Log } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import type { Requester } from './requester.ts';
import type { WatchedField } from './fields.ts';
import { pass } from './read-pages.ts';
import type { Paging } from './page-cursor.ts';
import { queryOf, secondMicros, wholeSecond } from './windows.ts';

/** Plain JSON. */
export interface ReferenceRecord {
  readonly uid: string;
  readonly time: Micros;
}

export type ReferenceRecords = Partial<Record<WatchedField, ReferenceRecord>>;

/** A second may hold many records; the reference record is looked for in so many pages. */
const maxPages = 50;

/**
 * The reference record as the service shows it now. Asked for the second that it lies in, with a second more on both sides; undefined when it is not there
 * any more, or cannot be read.
 */
export async function readReferenceRecord(
  { requester, paging, log }: { readonly requester: Requester; readonly paging: Paging; readonly log: Log },
  { uid, time }: ReferenceRecord,
  signal: AbortSignal,
): Promise<CollectedRecord | undefined> {
  const from = wholeSecond(time);
  const pages = pass({
    requester,
    paging,
    query: queryOf({ from, to: from + secondMicros }),
    pagesMax: maxPages,
    ahead: () => false,
    log,
    signal,
    unreadable: () => undefined,
  });
  for await (const { answer } of pages) {
    const found = answer.records.find((record) => record.uid === uid);
    if (found) return found;
  }
  return undefined;
}
