/**
 * Which uids a source may have forgotten, and which it must still know. Pure: it follows from the marks of the source's ranges alone.
 *
 * A bucket is forgotten when it lies before the mark of every range that still remembers something. That least mark may go back: a person adds
 * an older range. The mark of one range never does, so what was rightly forgotten lies, for ever, before the mark of the range that owns it.
 */
import type { Micros } from '../model/time.ts';
import type { RangeRow } from './ledger.ts';
import { bucketMicros, bucketOf } from './seen-uids.ts';

type UidRetention = Pick<RangeRow, 'from' | 'to' | 'uidsKeptSince'>;

/** Before which nothing needs to be known any more: a range that is forgotten whole says nothing about the others. */
export function earliestKept(ranges: readonly UidRetention[]): Micros {
  return ranges
    .filter(({ to, uidsKeptSince }) => to === null || uidsKeptSince < to)
    .reduce((least, { uidsKeptSince }) => Math.min(least, uidsKeptSince), Number.MAX_SAFE_INTEGER);
}

/** Whether any of the buckets may be gone that hold the uids of records with times in [min, max], µs, both included. */
export function mayBeForgotten(ranges: readonly UidRetention[], min: Micros, max: Micros): boolean {
  return ranges.some(({ from, to, uidsKeptSince }) => {
    const first = Math.max(from, min);
    const end = to ?? Infinity;
    // A range forgets from its begin on, whole buckets at a time, and the last one when all of it is forgotten.
    return first <= max && first < end && Math.min((bucketOf(first) + 1) * bucketMicros, end) <= uidsKeptSince;
  });
}
