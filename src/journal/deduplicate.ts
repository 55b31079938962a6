/**
 * Classifies the records of a page as known, outside or new, and new records as late or not. Writes
 * nothing: new uids are returned and become known after the transaction of the page has committed.
 */
import { WaybillError } from '../errors/errors.ts';
import type { CollectedPage, CollectedRecord } from '../model/journal.ts';
import type { Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import type { Ledger, RangeRow } from './ledger.ts';
import { bucketOf, negativeBucketOf, type Known, type SeenUids } from './seen-uids.ts';
import { rangeOf, type SourceState } from './sources.ts';

/** The result of a page: new records, which of them are late, and their uids by bucket. */
export interface Deduplicated {
  readonly fresh: readonly CollectedRecord[];
  readonly late: readonly boolean[];
  /** The delays of late records, µs, by the start of their closed window. */
  readonly lateByWindow: ReadonlyMap<Micros, readonly Micros[]>;
  /** Uids to store, by bucket. */
  readonly buckets: ReadonlyMap<number, readonly string[]>;
  /** Backfills that received a record newer than all before it, with the time of that record. */
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

export class Deduplicator {
  readonly #seen: SeenUids;
  readonly #ledger: Ledger;

  constructor(seen: SeenUids, ledger: Ledger) {
    this.#seen = seen;
    this.#ledger = ledger;
  }

  page(source: SourceState, page: CollectedPage): Deduplicated {
    const deduplicated: Mutable = {
      fresh: [],
      late: [],
      lateByWindow: new Map(),
      buckets: new Map(),
      newest: new Map(),
      known: 0,
      outside: 0,
    };
    const here = new Set<string>();
    const n = source.row.n;
    // The uids of the last bucket: most records of a page share one.
    let lastBucket = NaN;
    let lastUids: Known = here;
    for (const record of page.records) {
      if (record.time === undefined) {
        this.#timeless(source, page, record, deduplicated, here);
        continue;
      }
      const range = rangeOf(source.ranges, record.time);
      if (/* mutant: uid-retention */ range === undefined || record.time < range.uidsKeptSince) {
        if (range && page.window && record.time >= page.window.from && record.time < page.window.to) {
          throw new WaybillError(
            'internal_error',
            `window of "${source.row.id}" at ${page.window.from} is read for a proof, but its uids are deleted`,
          );
        }
        deduplicated.outside += 1;
        continue;
      }
      if (isAhead(range, record.time, page.window)) {
        deduplicated.outside += 1;
        continue;
      }
      const bucket = bucketOf(record.time);
      if (bucket !== lastBucket) {
        lastUids = this.#seen.bucket(n, bucket);
        lastBucket = bucket;
      }
      if (/* mutant: known-uid */ here.has(record.uid) || lastUids.has(record.uid)) {
        deduplicated.known += 1;
        continue;
      }
      here.add(record.uid);
      const owner = record.time < range.closedUntil ? this.#ledger.owner(n, record.time) : undefined;
      const isLate = /* mutant: late */ owner !== undefined && owner.state !== 'gap';
      // mutant: late-record
      if (isLate) addTo(deduplicated.lateByWindow, owner.from, Math.max(0, page.received - record.time));
      if (range.to !== null && record.time > (deduplicated.newest.get(range) ?? range.collected ?? -1))
        deduplicated.newest.set(range, record.time);
      deduplicated.fresh.push(record);
      deduplicated.late.push(isLate);
      addTo(deduplicated.buckets, bucket, record.uid);
    }
    return deduplicated;
  }

  /** A record without a readable time belongs to no window. It is stored by day of receipt and looked up in all such days. */
  #timeless(source: SourceState, page: CollectedPage, record: CollectedRecord, deduplicated: Mutable, here: Set<string>): void {
    const n = source.row.n;
    const closedUntil = source.ranges.reduce((max, range) => Math.max(max, range.closedUntil), 0);
    const bucket = negativeBucketOf(Math.max(page.serverNow, closedUntil));
    const today = this.#seen.bucket(n, bucket);
    if (here.has(record.uid) || today.has(record.uid)) {
      deduplicated.known += 1;
      return;
    }
    here.add(record.uid);
    // A record that arrives again on a later day is stored for that day as well: the earlier day may be
    // deleted while the service still returns the record.
    addTo(deduplicated.buckets, bucket, record.uid);
    if (this.#seen.negativeBuckets(n).some((other) => this.#seen.bucket(n, other).has(record.uid))) {
      deduplicated.known += 1;
      return;
    }
    deduplicated.fresh.push(record);
    deduplicated.late.push(false);
  }
}

/**
 * True for a time that a backfill has not reached. Only windows of the backfill collect such a record. A live poll or the padding of
 * another query may return it earlier; it is ignored, because the backfill reads it again with a proof, and because a cancelled backfill
 * must leave no records that no window counts.
 */
function isAhead({ to, closedUntil }: RangeRow, time: Micros, window: Window | undefined): boolean {
  return to !== null && time >= closedUntil && !(window && window.from <= time && time < window.to);
}

function addTo<Item>(lists: Map<number, Item[]>, key: number, item: Item): void {
  const list = lists.get(key);
  if (list) list.push(item);
  else lists.set(key, [item]);
}
