/**
 * Segments: the records that one page added to the journal, packed into one row. The chain value of a segment depends on all segments
 * before it, so that a changed, missing or reordered byte is detected. Pure.
 */
import { createHash } from 'node:crypto';
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { messageOf } from '../errors/errors.ts';
import type { Micros } from '../model/time.ts';
import { damaged } from './damage.ts';

export const kindRecords = 1;
export const kindLedger = 2;
const codecPlain = 0;
const codecZstd = 1;

export const flagLate = 1;
export const flagNoObject = 2;
export const flagNoTime = 4;

/** The content of a segment before packing. `seq` and `number` belong to the first entry and the first record. */
export interface SegmentContent {
  readonly seq: number;
  readonly n: number;
  readonly kind: typeof kindRecords | typeof kindLedger;
  readonly number: number | null;
  readonly sourceId: string;
  readonly received: Micros;
  /** One byte per entry; empty when all are 0. */
  readonly flags: Uint8Array;
  /** 16 bytes per entry; empty for a ledger entry. */
  readonly uids: Uint8Array;
  /** The end of each entry in `body`: uint32, little-endian. */
  readonly ends: Uint8Array;
  /** The exact bytes of the entries, concatenated. */
  readonly body: Uint8Array;
}

/** The chain value before the first segment: 32 zero bytes. */
export const chainStart: Uint8Array = new Uint8Array(32);

/**
 * The chain value of a segment: SHA-256 over the previous value, the numbers (8 bytes each, big-endian, 0 for none), and source id, flags,
 * uids, ends and uncompressed body, each preceded by its length in 8 bytes.
 */
export function chainOf(previous: Uint8Array, content: SegmentContent): Buffer {
  const source = Buffer.from(content.sourceId, 'utf8');
  const small = /* mutant: chain-parts */ [source, content.flags, content.uids, content.ends];
  const head = Buffer.allocUnsafe(32 + 5 * 8 + small.reduce((sum, part) => sum + 8 + part.length, 0) + 8);
  head.set(previous, 0);
  let at = 32;
  const writeNumber = (value: number): void => {
    at = head.writeBigUInt64BE(BigInt(value), at);
  };
  for (const value of [content.seq, content.n, content.kind, content.number ?? 0, content.received]) writeNumber(value);
  for (const part of small) {
    writeNumber(part.length);
    head.set(part, at);
    at += part.length;
  }
  writeNumber(content.body.length);
  return /* mutant: chain-body */ createHash('sha256').update(head).update(content.body).digest();
}

/** The uid of a ledger entry: a hash of the window's source, range and revision, computed as for a record (docs/formats.md, "Identity"). */
export function ledgerUid(text: string): string {
  const { source, from, to, revision } = JSON.parse(text) as { source: string; from: number; to: number; revision: number };
  const hash = createHash('sha256');
  for (const part of ['waybill/ledger/1', source, String(from), String(to), String(revision)]) {
    const bytes = Buffer.from(part, 'utf8');
    const length = Buffer.allocUnsafe(4);
    length.writeUInt32BE(bytes.length);
    hash.update(length).update(bytes);
  }
  return hash.digest().toString('base64url', 0, 16);
}

/** Compresses a body with zstd level 1 if that makes it smaller. Returns the `kind` column and the bytes to store. */
export function packBody(kind: number, body: Uint8Array): { kind: number; body: Uint8Array } {
  const packed = zstdCompressSync(body, { params: { [constants.ZSTD_c_compressionLevel]: 1 } });
  return packed.length < body.length ? { kind: kind | (codecZstd << 8), body: packed } : { kind, body };
}

export function kindOf(column: number): number {
  return column & 0xff;
}

/** Returns the bytes of a stored body. Throws when the codec is unknown or the bytes are damaged. */
export function unpackBody(column: number, body: Uint8Array): Uint8Array {
  const codec = column >> 8;
  if (codec === codecPlain) return body;
  try {
    if (codec === codecZstd) return zstdDecompressSync(body);
  } catch (cause) {
    throw damaged(`segment cannot be unpacked: ${messageOf(cause)}`, cause);
  }
  throw damaged(`segment has codec ${codec}, known are 0 and 1`);
}

/** Concatenates entries and returns the body and the table of ends. */
export function joinBody(parts: readonly Uint8Array[]): { body: Buffer; ends: Buffer } {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const body = Buffer.allocUnsafe(length);
  const ends = Buffer.allocUnsafe(parts.length * 4);
  let at = 0;
  parts.forEach((part, i) => {
    body.set(part, at);
    at += part.length;
    ends.writeUInt32LE(at, i * 4);
  });
  return { body, ends };
}
