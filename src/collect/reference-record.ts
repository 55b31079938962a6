/**
 * A reference record of a field: a record of a proven window that showed the field. When a page
 * lacks the field, the reference record is read again. If that still shows the field, the records
 * of the page lack it themselves; else the right to see it is lost.
 */
import type { CollectedRecord } from '../model/journal.ts';
import type { Log } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import type { Requester } from './requester.ts';
import type { WatchedField } from './fields.ts';
import { pass } from './read-pages.ts';
import type { Paging } from './page-size.ts';
import { queryOf, secondMicros, wholeSecond } from './windows.ts';

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
