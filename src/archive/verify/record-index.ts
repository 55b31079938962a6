/**
 * The uids of archived records by source and time, for the proofs of windows. Uids that
 * were not used recently move to an unnamed temporary file, so that memory does not grow with the
 * archive.
 */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Micros } from '../../model/time.ts';

/** Ten minutes: of 1,000 records a second a bucket has 14 MB. */
const bucketMicros = 600_000_000;
/** Time as a double, and the uid. */
export const uidBytes = 16;
const rowBytes = 8 + uidBytes;
const defaultMemory = 64 * 1024 * 1024;

interface Bucket {
  /** Rows in memory, with room for more. */
  rows: Buffer;
  used: number;
  /** Rows in the file, in the order of their writing. */
  readonly stored: { readonly at: number; readonly length: number }[];
}

export class RecordIndex implements Disposable {
  readonly #maxMemory: number;
  /** By source, then by number; the least recently used first. */
  readonly #buckets = new Map<string, Bucket>();
  #last: { readonly source: string; readonly number: number; readonly bucket: Bucket } | undefined;
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
    for (const [, { used, stored }] of this.#within(source, from, to))
      rows += used / rowBytes + stored.reduce((sum, { length }) => sum + length / rowBytes, 0);
    return rows;
  }

  /** The distinct uids of the records with a time in [from, to), sorted bytewise, one after another. */
  uidsIn(source: string, from: Micros, to: Micros): Buffer {
    const found = Buffer.allocUnsafe(this.countAround(source, from, to) * uidBytes);
    let end = 0;
    for (const [key, bucket] of this.#within(source, from, to)) {
      this.#touch(key, bucket);
      for (const rows of [bucket.rows.subarray(0, bucket.used), ...bucket.stored.map((part) => this.#readBack(part))])
        for (let at = 0; at < rows.length; at += rowBytes) {
          const time = rows.readDoubleBE(at);
          if (time < from || time >= to) continue;
          copyUid(found, end, rows, at + 8);
          end += uidBytes;
        }
    }
    return sortedUids(found.subarray(0, end));
  }

  /** Remembers the last bucket: most records belong to the same bucket as the record before. */
  #bucketOf(source: string, number: number): Bucket {
    const last = this.#last;
    if (last?.source === source && last.number === number) return last.bucket;
    const key = keyOf(source, number);
    const bucket = this.#buckets.get(key) ?? { rows: Buffer.alloc(0), used: 0, stored: [] };
    this.#touch(key, bucket);
    this.#last = { source, number, bucket };
    return bucket;
  }

  [Symbol.dispose](): void {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  *#within(source: string, from: Micros, to: Micros): Generator<readonly [string, Bucket]> {
    const last = Math.ceil(to / bucketMicros);
    for (let number = Math.floor(from / bucketMicros); number < last; number += 1) {
      const key = keyOf(source, number);
      const bucket = this.#buckets.get(key);
      if (bucket) yield [key, bucket];
    }
  }

  #touch(key: string, bucket: Bucket): void {
    this.#buckets.delete(key);
    this.#buckets.set(key, bucket);
  }

  #widen(bucket: Bucket): void {
    const wider = Buffer.allocUnsafeSlow(Math.max(64 * rowBytes, bucket.rows.length * 2));
    bucket.rows.copy(wider, 0, 0, bucket.used);
    this.#memory += wider.length - bucket.rows.length;
    bucket.rows = wider;
    for (const other of this.#buckets.values()) {
      if (this.#memory <= this.#maxMemory) return;
      if (other !== bucket && other.used > 0) this.#store(other);
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
  }

  #readBack({ at, length }: { readonly at: number; readonly length: number }): Buffer {
    const rows = Buffer.allocUnsafe(length);
    for (let done = 0; done < length;) done += readSync(this.#file as number, rows, done, length - done, at + done);
    return rows;
  }
}

function keyOf(source: string, number: number): string {
  return `${source} ${number}`;
}

/** Sorts by the first bytes as numbers, which is many times faster than by comparisons; few uids have the same. */
function sortedUids(uids: Buffer): Buffer {
  const order = new Float64Array(uids.length / uidBytes);
  // A number holds 53 bits: an index of 21 bits or more, and up to 32 bits of the uid.
  const indexBits = Math.max(21, Math.ceil(Math.log2(order.length + 1)));
  const indexes = 2 ** indexBits;
  for (let i = 0; i < order.length; i += 1) order[i] = (uids.readUInt32BE(i * uidBytes) >>> (indexBits - 21)) * indexes + i;
  order.sort();
  const sorted = Buffer.allocUnsafe(uids.length);
  let end = 0;
  let before = -1;
  for (const key of order) {
    const beginning = Math.floor(key / indexes);
    const from = (key - beginning * indexes) * uidBytes;
    let at = end;
    let difference = 1;
    // Uids with the same first bytes keep the order of their rows.
    if (beginning === before)
      while (at > 0 && (difference = uids.compare(sorted, at - uidBytes, at, from, from + uidBytes)) < 0) at -= uidBytes;
    before = beginning;
    if (difference === 0) continue;
    if (at < end) sorted.copyWithin(at + uidBytes, at, end);
    copyUid(sorted, at, uids, from);
    end += uidBytes;
  }
  return sorted.subarray(0, end);
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
