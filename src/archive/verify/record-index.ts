/**
 * The uids of archived records by source and time, for the proofs of windows. Uids that
 * were not used recently move to an unnamed temporary file, so that memory does not grow with the
 * archive.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Micros } from '../../model/time.ts';
import { uidBytes } from '../entry.ts';
import { sortByUid } from '../uid-order.ts';
import type { Turns } from './turns.ts';

/** Ten minutes: of 1,000 records a second a bucket has 14 MB. */
const bucketMicros = 600_000_000;
/** Time as a double, and the uid. */
export const rowBytes = 8 + uidBytes;
const defaultMemory = 64 * 1024 * 1024;

interface Bucket {
  readonly number: number;
  /** Rows in memory, with room for more. */
  rows: Buffer;
  used: number;
  /** Rows in the file, in the order of their writing. */
  readonly stored: { readonly at: number; readonly length: number }[];
}

export class RecordIndex implements Disposable {
  readonly #maxMemory: number;
  /** By source, then by number. */
  readonly #buckets = new Map<string, Map<number, Bucket>>();
  /** The buckets with rows in memory, the least recently used first. */
  readonly #inMemory = new Set<Bucket>();
  #last: { readonly source: string; readonly bucket: Bucket } | undefined;
  #memory = 0;
  #file: number | undefined;
  #fileLength = 0;

  /** @param maxMemory  bytes of rows to hold in memory */
  constructor(maxMemory = defaultMemory) {
    this.#maxMemory = maxMemory;
  }

  /** @param at  where the uid begins in `uids` */
  add(source: string, time: Micros, uids: Buffer, at: number): void {
    const bucket = this.#bucketOf(source, Math.floor(time / bucketMicros));
    if (bucket.used + rowBytes > bucket.rows.length) this.#widen(bucket);
    bucket.rows.writeDoubleBE(time, bucket.used);
    copyUid(bucket.rows, bucket.used + 8, uids, at);
    bucket.used += rowBytes;
  }

  /** Records that the proof of a window depends on: while the number stays, so does the result of `uidsIn`. */
  countAround(source: string, from: Micros, to: Micros): number {
    let rows = 0;
    for (const { used, stored } of this.#within(source, from, to))
      rows += used / rowBytes + stored.reduce((sum, { length }) => sum + length / rowBytes, 0);
    return rows;
  }

  /**
   * @returns the distinct uids of the records with a time in [from, to), sorted bytewise, one after another, and how many records repeat one
   */
  async uidsIn(source: string, from: Micros, to: Micros, turns: Turns): Promise<{ readonly uids: Buffer; readonly repeated: number }> {
    const found = Buffer.allocUnsafe(this.countAround(source, from, to) * uidBytes);
    let end = 0;
    for (const bucket of this.#within(source, from, to)) {
      if (bucket.used > 0) this.#touch(bucket);
      for (const part of [undefined, ...bucket.stored]) {
        const rows = part ? this.#readBack(part) : bucket.rows.subarray(0, bucket.used);
        if (turns.isDue(rows.length)) await turns.next();
        for (let at = 0; at < rows.length; at += rowBytes) {
          const time = rows.readDoubleBE(at);
          if (time < from || time >= to) continue;
          copyUid(found, end, rows, at + 8);
          end += uidBytes;
        }
      }
    }
    const uids = await sortedUids(found.subarray(0, end), turns);
    return { uids, repeated: (end - uids.length) / uidBytes };
  }

  /**
   * The records of a source with a time outside of all these ranges.
   * @param ranges  half-open, in the order of their starts
   */
  countOutside(source: string, ranges: readonly { readonly from: Micros; readonly to: Micros }[]): number {
    let outside = 0;
    let next = 0;
    let covered = -Infinity;
    const buckets = [...(this.#buckets.get(source)?.values() ?? [])].sort((a, b) => a.number - b.number);
    for (const bucket of buckets) {
      const [first, end] = [bucket.number * bucketMicros, (bucket.number + 1) * bucketMicros];
      let begin = first;
      // What `covered` and the ranges leave free within the bucket.
      const free: (readonly [from: Micros, to: Micros])[] = [];
      for (;;) {
        begin = Math.max(begin, covered);
        const range = ranges[next];
        const until = Math.min(range?.from ?? Infinity, end);
        if (begin < until) free.push([begin, until]);
        if (!range || range.from >= end) break;
        covered = Math.max(covered, range.to);
        next += 1;
      }
      if (free.length === 0) continue;
      for (const part of [undefined, ...bucket.stored]) {
        const rows = part ? this.#readBack(part) : bucket.rows.subarray(0, bucket.used);
        for (let at = 0; at < rows.length; at += rowBytes) {
          const time = rows.readDoubleBE(at);
          if (free.some(([from, to]) => from <= time && time < to)) outside += 1;
        }
      }
    }
    return outside;
  }

  /** Remembers the last bucket: most records belong to the same bucket as the record before. */
  #bucketOf(source: string, number: number): Bucket {
    const last = this.#last;
    if (last?.source === source && last.bucket.number === number) return last.bucket;
    const buckets = this.#buckets.get(source) ?? new Map<number, Bucket>();
    this.#buckets.set(source, buckets);
    const bucket = buckets.get(number) ?? { number, rows: Buffer.alloc(0), used: 0, stored: [] };
    buckets.set(number, bucket);
    this.#touch(bucket);
    this.#last = { source, bucket };
    return bucket;
  }

  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  /** A window may be far longer than the time that has records. */
  *#within(source: string, from: Micros, to: Micros): Generator<Bucket> {
    const buckets = this.#buckets.get(source) ?? new Map<number, Bucket>();
    const [first, end] = [Math.floor(from / bucketMicros), Math.ceil(to / bucketMicros)];
    if (end - first > buckets.size) {
      for (const bucket of buckets.values()) if (bucket.number >= first && bucket.number < end) yield bucket;
      return;
    }
    for (let number = first; number < end; number += 1) {
      const bucket = buckets.get(number);
      if (bucket) yield bucket;
    }
  }

  #touch(bucket: Bucket): void {
    this.#inMemory.delete(bucket);
    this.#inMemory.add(bucket);
  }

  #widen(bucket: Bucket): void {
    const wider = Buffer.allocUnsafeSlow(Math.max(64 * rowBytes, bucket.rows.length * 2));
    bucket.rows.copy(wider, 0, 0, bucket.used);
    this.#memory += wider.length - bucket.rows.length;
    bucket.rows = wider;
    this.#inMemory.add(bucket);
    for (const other of this.#inMemory) {
      if (this.#memory <= this.#maxMemory) return;
      if (other !== bucket) this.#store(other);
    }
  }

  #store(bucket: Bucket): void {
    this.#file ??= unnamedFile();
    writeFully(this.#file, bucket.rows.subarray(0, bucket.used), this.#fileLength);
    bucket.stored.push({ at: this.#fileLength, length: bucket.used });
    this.#fileLength += bucket.used;
    this.#memory -= bucket.rows.length;
    bucket.rows = Buffer.alloc(0);
    bucket.used = 0;
    this.#inMemory.delete(bucket);
  }

  #readBack({ at, length }: { readonly at: number; readonly length: number }): Buffer {
    const rows = Buffer.allocUnsafe(length);
    for (let done = 0; done < length;) done += readSync(this.#file as number, rows, done, length - done, at + done);
    return rows;
  }
}

/** The distinct uids, sorted bytewise. */
async function sortedUids(uids: Buffer, turns: Turns): Promise<Buffer> {
  const order = new Float64Array(uids.length / uidBytes);
  for (let row = 0; row < order.length; row += 1) order[row] = row;
  sortByUid(order, uids, (row) => row * uidBytes);
  const sorted = Buffer.allocUnsafe(uids.length);
  let end = 0;
  for (let i = 0; i < order.length; i += 1) {
    if (turns.isDue(uidBytes)) await turns.next();
    copyUid(sorted, end, uids, (order[i] as number) * uidBytes);
    if (end === 0 || !isSameUid(sorted, end - uidBytes, end)) end += uidBytes;
  }
  return sorted.subarray(0, end);
}

function isSameUid(uids: Buffer, a: number, b: number): boolean {
  for (let i = 0; i < uidBytes; i += 1) if (uids[a + i] !== uids[b + i]) return false;
  return true;
}

/** A call out of JavaScript costs more for so few bytes. */
function copyUid(target: Buffer, at: number, source: Buffer, from: number): void {
  for (let i = 0; i < uidBytes; i += 1) target[at + i] = source[from + i] as number;
}

function unnamedFile(): number {
  const folder = mkdtempSync(join(tmpdir(), 'waybill-verify-'));
  try {
    return openSync(join(folder, 'records'), 'wx+', 0o600);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

function writeFully(file: number, bytes: Buffer, at: number): void {
  for (let done = 0; done < bytes.length;) done += writeSync(file, bytes, done, bytes.length - done, at + done);
}
