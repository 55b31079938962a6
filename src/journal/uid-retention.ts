/**
 * Decides which uids a source may delete. Pure: it depends on `uidsKeptSince` of the source's ranges alone.
 *
 * A bucket may be deleted when it lies before `uidsKeptSince` of every range that still keeps uids. This minimum may go back when an
 * operator adds an older range. The value of a single range never goes back, so a deleted bucket always lies before the value of the range
 * that owns it.
 */
import type { Micros } from '../model/time.ts';
import type { RangeRow } from './ledger.ts';
import { bucketMicros, bucketOf } from './seen-uids.ts';

type UidRetention = Pick<RangeRow, 'from' | 'to' | 'uidsKeptSince'>;

/** The minimum of `uidsKeptSince`. A range whose uids are all deleted does not count. */
export function earliestKept(ranges: readonly UidRetention[]): Micros {
  return ranges
    .filter(({ to, uidsKeptSince }) => to === null || uidsKeptSince < to)
    .reduce((least, { uidsKeptSince }) => Math.min(least, uidsKeptSince), Number.MAX_SAFE_INTEGER);
}

/** True if a bucket with uids of records from `min` through `max`, µs, may be deleted. */
export function mayBeForgotten(ranges: readonly UidRetention[], min: Micros, max: Micros): boolean {
  return ranges.some(({ from, to, uidsKeptSince }) => {
    const first = Math.max(from, min);
    const end = to ?? Infinity;
    // A range deletes whole buckets from its start on, and its last bucket when all its uids are deleted.
    return first <= max && first < end && Math.min((bucketOf(first) + 1) * bucketMicros, end) <= uidsKeptSince;
  });
}
