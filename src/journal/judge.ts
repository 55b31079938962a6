/**
 * What becomes of each record of a page: known already, outside of what this source collects, or new; and of a new one, whether it is late.
 * Nothing is written here: the page's own uids are kept apart until its transaction is committed.
 */
import { WaybillError } from '../errors.ts';
import type { CollectedPage, CollectedRecord } from '../model/journal.ts';
import type { Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import type { Ledger, RangeRow } from './ledger.ts';
import type { Known, Seen } from './seen.ts';
import { bucketOf, negativeBucketOf } from './seen.ts';
import { rangeOf } from './sources.ts';
import type { SourceState } from './sources.ts';

/** What a page adds: the records, whether each is late, and their uids by bucket. */
export interface Judged {
  readonly fresh: readonly CollectedRecord[];
  readonly late: readonly boolean[];
  /** How late each late record is that a closed window gets, µs, by its begin. */
  readonly lateByWindow: ReadonlyMap<Micros, readonly Micros[]>;
  /** uids to be known from now on, by bucket. */
  readonly buckets: ReadonlyMap<number, readonly string[]>;
  /** Ranges of history of which a record is newer than any that was collected before, with its time. */
  readonly newest: ReadonlyMap<RangeRow, Micros>;
  readonly known: number;
  readonly outside: number;
}

interface Mutable {
  readonly fresh: CollectedRecord[];
  readonly late: boolean[];
  readonly lateByWindow: Map<Micros, Micros[]>;
  readonly buckets: Map<number, string[]>;
  readonly newest: Map<RangeRow, Micros>;
  known: number;
  outside: number;
}

export class Judge {
  readonly #seen: Seen;
  readonly #ledger: Ledger;

  constructor(seen: Seen, ledger: Ledger) {
    this.#seen = seen;
    this.#ledger = ledger;
  }

  page(source: SourceState, page: CollectedPage): Judged {
    const judged: Mutable = { fresh: [], late: [], lateByWindow: new Map(), buckets: new Map(), newest: new Map(), known: 0, outside: 0 };
    const here = new Set<string>();
    const n = source.row.n;
    // The set that the last record asked: most records of a page share a bucket.
    let lastBucket = NaN;
    let lastUids: Known = here;
    for (const record of page.records) {
      if (record.time === undefined) {
        this.#timeless(source, page, record, judged, here);
        continue;
      }
      const range = rangeOf(source.ranges, record.time);
      if (/* mutant: uid-retention */ range === undefined || record.time < range.remembered) {
        if (range && page.window && record.time >= page.window.from && record.time < page.window.until) {
          throw new WaybillError(
            'invariant',
            `window of "${source.row.id}" at ${page.window.from} is read with proof, but its uids are forgotten`,
          );
        }
        judged.outside += 1;
        continue;
      }
      if (isAhead(range, record.time, page.window)) {
        judged.outside += 1;
        continue;
      }
      const bucket = bucketOf(record.time);
      if (bucket !== lastBucket) {
        lastUids = this.#seen.bucket(n, bucket);
        lastBucket = bucket;
      }
      if (/* mutant: known-uid */ here.has(record.uid) || lastUids.has(record.uid)) {
        judged.known += 1;
        continue;
      }
      here.add(record.uid);
      const owner = record.time < range.reached ? this.#ledger.owner(n, record.time) : undefined;
      const isLate = /* mutant: late */ owner !== undefined && owner.state !== 'gap';
      // mutant: late-record
      if (isLate) addTo(judged.lateByWindow, owner.from, Math.max(0, page.received - record.time));
      if (range.until !== null && record.time > (judged.newest.get(range) ?? range.collected ?? -1)) judged.newest.set(range, record.time);
      judged.fresh.push(record);
      judged.late.push(isLate);
      addTo(judged.buckets, bucket, record.uid);
    }
    return judged;
  }

  /** A record without a readable time belongs to no window: it is known by the day on which it was received, and asked of all such days. */
  #timeless(source: SourceState, page: CollectedPage, record: CollectedRecord, judged: Mutable, here: Set<string>): void {
    const n = source.row.n;
    const reached = source.ranges.reduce((most, range) => Math.max(most, range.reached), 0);
    const bucket = negativeBucketOf(Math.max(page.serverNow, reached));
    const today = this.#seen.bucket(n, bucket);
    if (here.has(record.uid) || today.has(record.uid)) {
      judged.known += 1;
      return;
    }
    here.add(record.uid);
    // Brought again on a later day, it is known by that day too: the earlier day may be forgotten before the service stops bringing it.
    addTo(judged.buckets, bucket, record.uid);
    if (this.#seen.negativeBuckets(n).some((other) => this.#seen.bucket(n, other).has(record.uid))) {
      judged.known += 1;
      return;
    }
    judged.fresh.push(record);
    judged.late.push(false);
  }
}

/**
 * Whether a range of history has not been read up to a time. Only its own windows collect it: what a poll or a neighbour's padding brings of it
 * comes again when the range is read, with proof; and a range that is cut off before must not leave records behind that no window counts.
 */
function isAhead({ until, reached }: RangeRow, time: Micros, window: Window | undefined): boolean {
  return until !== null && time >= reached && !(window && window.from <= time && time < window.until);
}

function addTo<Item>(lists: Map<number, Item[]>, key: number, item: Item): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}
