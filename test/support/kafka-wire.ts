/**
 * Reads and writes Kafka's protocol for tests (kafka.apache.org/protocol, "Protocol Primitive
 * Types" and "Record Batch").
 */
import { gunzipSync, zstdDecompressSync } from 'node:zlib';

export class Reader {
  readonly bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  get left(): number {
    return this.bytes.length - this.#at;
  }

  int8(): number {
    return this.bytes.readInt8(this.#step(1));
  }

  int16(): number {
    return this.bytes.readInt16BE(this.#step(2));
  }

  int32(): number {
    return this.bytes.readInt32BE(this.#step(4));
  }

  int64(): bigint {
    return this.bytes.readBigInt64BE(this.#step(8));
  }

  bool(): boolean {
    return this.int8() !== 0;
  }

  string(): string {
    return this.nullableString() ?? '';
  }

  nullableString(): string | undefined {
    const length = this.int16();
    return length < 0 ? undefined : this.take(length).toString('utf8');
  }

  data(): Buffer {
    return this.take(Math.max(0, this.int32()));
  }

  /** A length of -1 is an empty list. */
  list<Item>(read: () => Item): Item[] {
    return Array.from({ length: Math.max(0, this.int32()) }, read);
  }

  /** Zigzag, as in a record; undefined stands for -1, the length of null. */
  varint(): number {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = this.bytes.readUInt8(this.#step(1));
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return Number((value >> 1n) ^ -(value & 1n));
    }
  }

  take(length: number): Buffer {
    const from = this.#step(length);
    return this.bytes.subarray(from, from + length);
  }

  #step(length: number): number {
    const from = this.#at;
    if (from + length > this.bytes.length) throw new RangeError(`${length} bytes wanted at ${from} of ${this.bytes.length}`);
    this.#at += length;
    return from;
  }
}

export class Writer {
  readonly #parts: Buffer[] = [];

  int8(value: number): this {
    return this.#put(1, (part) => part.writeInt8(value));
  }

  int16(value: number): this {
    return this.#put(2, (part) => part.writeInt16BE(value));
  }

  int32(value: number): this {
    return this.#put(4, (part) => part.writeInt32BE(value));
  }

  int64(value: bigint): this {
    return this.#put(8, (part) => part.writeBigInt64BE(value));
  }

  bool(value: boolean): this {
    return this.int8(value ? 1 : 0);
  }

  string(value: string | undefined): this {
    if (value === undefined) return this.int16(-1);
    return this.int16(Buffer.byteLength(value)).raw(Buffer.from(value));
  }

  data(value: Buffer): this {
    return this.int32(value.length).raw(value);
  }

  list<Item>(items: readonly Item[], write: (item: Item) => void): this {
    this.int32(items.length);
    for (const item of items) write(item);
    return this;
  }

  raw(value: Buffer): this {
    this.#parts.push(value);
    return this;
  }

  done(): Buffer {
    return Buffer.concat(this.#parts);
  }

  #put(length: number, write: (part: Buffer) => void): this {
    const part = Buffer.alloc(length);
    write(part);
    return this.raw(part);
  }
}

export interface StoredRecord {
  readonly key: string | undefined;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

/** A record batch, format 2: its header and its records. */
export interface RecordBatch {
  readonly bytes: Buffer;
  readonly compression: number;
  readonly isTransactional: boolean;
  readonly producerId: bigint;
  readonly epoch: number;
  readonly firstSequence: number;
  readonly records: readonly StoredRecord[];
}

/** @throws RangeError for a truncated batch; SyntaxError for bytes that are not a batch */
export function readBatch(bytes: Buffer): RecordBatch {
  const reader = new Reader(bytes);
  reader.int64();
  if (reader.int32() !== bytes.length - 12) throw new SyntaxError('a batch of another length than it says');
  reader.int32();
  if (reader.int8() !== 2) throw new SyntaxError('not the format 2');
  reader.int32();
  const attributes = reader.int16();
  reader.int32();
  reader.int64();
  reader.int64();
  const [producerId, epoch, firstSequence, count] = [reader.int64(), reader.int16(), reader.int32(), reader.int32()];
  const compression = attributes & 7;
  const inner = new Reader(unpacked(compression, reader.take(reader.left)));
  const records = Array.from({ length: count }, () => readRecord(inner));
  if (inner.left > 0) throw new SyntaxError(`${inner.left} bytes after the last record`);
  return { bytes, compression, isTransactional: (attributes & 0x10) !== 0, producerId, epoch, firstSequence, records };
}

function unpacked(compression: number, bytes: Buffer): Buffer {
  if (compression === 0) return bytes;
  if (compression === 1) return gunzipSync(bytes);
  if (compression === 4) return zstdDecompressSync(bytes);
  throw new SyntaxError(`compression ${compression} is not known here`);
}

function readRecord(reader: Reader): StoredRecord {
  const length = reader.varint();
  const inner = new Reader(reader.take(length));
  inner.int8();
  inner.varint();
  inner.varint();
  const text = (): string | undefined => {
    const size = inner.varint();
    return size < 0 ? undefined : inner.take(size).toString('utf8');
  };
  const [key, value] = [text(), text() ?? ''];
  const headers = Object.fromEntries(Array.from({ length: inner.varint() }, () => [text() ?? '', text() ?? '']));
  return { key, value, headers };
}

/** The end of a transaction in a partition ("Control Batches"): key version 0, type 0 abort or 1 commit. */
export function markerBatch(offset: bigint, producerId: bigint, epoch: number, isCommit: boolean): Buffer {
  const key = new Writer()
    .int16(0)
    .int16(isCommit ? 1 : 0)
    .done();
  const value = new Writer().int16(0).int32(0).done();
  // Attributes, deltas of time and offset, key and value with zigzag lengths, no headers.
  const record = Buffer.concat([Buffer.from([0, 0, 0, key.length * 2]), key, Buffer.from([value.length * 2]), value, Buffer.from([0])]);
  const inner = Buffer.concat([Buffer.from([record.length * 2]), record]);
  const body = new Writer().int16(0x30).int32(0).int64(0n).int64(0n).int64(producerId).int16(epoch).int32(-1).int32(1).raw(inner).done();
  return new Writer()
    .int64(offset)
    .int32(body.length + 9)
    .int32(0)
    .int8(2)
    .int32(0)
    .raw(body)
    .done();
}
