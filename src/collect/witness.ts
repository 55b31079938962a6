/**
 * A witness for a field: a record of a proven window that showed it. Read again it tells whether a page without the field is poor by itself, or
 * whether the right to see the field is gone.
 */
import type { CollectedRecord } from '../model/journal.ts';
import type { Log } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import type { Asker } from './ask.ts';
import type { WatchedField } from './fields.ts';
import { pass } from './pass.ts';
import type { Paging } from './pass.ts';
import { queryOf, secondMicros, wholeSecond } from './windows.ts';

/** Plain JSON. */
export interface Witness {
  readonly uid: string;
  readonly time: Micros;
}

export type Witnesses = Partial<Record<WatchedField, Witness>>;

/** A second may hold many records; the witness is looked for in so many pages. */
const pagesMost = 50;

/**
 * The witness as the service shows it now. Asked for the second that it lies in, with a second more on both sides; undefined when it is not there
 * any more, or cannot be read.
 */
export async function readWitness(
  { asker, paging, log }: { readonly asker: Asker; readonly paging: Paging; readonly log: Log },
  { uid, time }: Witness,
  signal: AbortSignal,
): Promise<CollectedRecord | undefined> {
  const from = wholeSecond(time);
  const pages = pass({
    asker,
    paging,
    query: queryOf({ from, until: from + secondMicros }),
    pagesMax: pagesMost,
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
