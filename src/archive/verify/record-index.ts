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
const rowBytes = 8 + 16;
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
  #memory = 0;
  #file: number | undefined;
  #fileLength = 0;

  /** @param maxMemory  bytes of rows to hold in memory */
  constructor(maxMemory = defaultMemory) {
    this.#maxMemory = maxMemory;
  }

  add(source: string, time: Micros, uid: Uint8Array): void {
    const key = keyOf(source, Math.floor(time / bucketMicros));
    const bucket = this.#buckets.get(key) ?? { rows: Buffer.alloc(0), used: 0, stored: [] };
    this.#touch(key, bucket);
    if (bucket.used + rowBytes > bucket.rows.length) this.#widen(bucket);
    bucket.rows.writeDoubleBE(time, bucket.used);
    bucket.rows.set(uid, bucket.used + 8);
    bucket.used += rowBytes;
  }

  /** Records that the proof of a window depends on: while the number stays, so does the result of `uidsIn`. */
  countAround(source: string, from: Micros, to: Micros): number {
    let rows = 0;
    for (const [, { used, stored }] of this.#within(source, from, to))
      rows += used / rowBytes + stored.reduce((sum, { length }) => sum + length / rowBytes, 0);
    return rows;
  }

  /** The distinct uids of the records with a time in [from, to), sorted bytewise. */
  uidsIn(source: string, from: Micros, to: Micros): readonly Buffer[] {
    const uids = new Set<string>();
    for (const [key, bucket] of this.#within(source, from, to)) {
      this.#touch(key, bucket);
      for (const rows of [bucket.rows.subarray(0, bucket.used), ...bucket.stored.map((part) => this.#readBack(part))])
        for (let at = 0; at < rows.length; at += rowBytes) {
          const time = rows.readDoubleBE(at);
          if (time >= from && time < to) uids.add(rows.toString('latin1', at + 8, at + rowBytes));
        }
    }
    // Code units of latin1 text compare as the bytes do.
    return [...uids].sort().map((uid) => Buffer.from(uid, 'latin1'));
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
