/** Archive segments: the lines of one checkpoint as gzipped NDJSON. The name has the SHA-256 of the file. */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { messageOf } from '../errors.ts';
import { sha256 } from './merkle.ts';

/** A parameter, because the simulation has no threads. */
export interface Codec {
  compress(bytes: Uint8Array): Promise<Buffer>;
  decompress(bytes: Uint8Array, options: { readonly maxOutputLength: number; readonly chunkSize: number }): Promise<Buffer>;
}

const [pack, unpack] = [promisify(gzip), promisify(gunzip)];
const gzipCodec: Codec = {
  compress: (bytes) => pack(bytes, { chunkSize: chunkSize(bytes.length / 4) }),
  decompress: (bytes, options) => unpack(bytes, options),
};
const lineFeed = 0x0a;
/** Far more than a segment of the writer contains. */
const maxBytes = 256 * 1024 * 1024;
/** The lines of a usual segment have 10 MB. */
const maxChunk = 32 * 1024 * 1024;
const namePattern = /^segments\/(\d{16})-([0-9a-f]{64})\.ndjson\.gz$/;

export interface SegmentName {
  readonly path: string;
  /** The index of the leaf of its first line. */
  readonly firstLeaf: number;
  /** SHA-256 of the file in hexadecimal. */
  readonly digest: string;
}

/** @param text  the lines, each with a line break */
export async function formatSegment(
  firstLeaf: number,
  text: Uint8Array,
  codec = gzipCodec,
): Promise<{ readonly path: string; readonly bytes: Buffer }> {
  const bytes = await codec.compress(text);
  const digest = sha256(bytes).toString('hex');
  return { path: `segments/${String(firstLeaf).padStart(16, '0')}-${digest}.ndjson.gz`, bytes };
}

/** @returns undefined for a path that is not a segment's */
export function parseSegmentPath(path: string): SegmentName | undefined {
  const [, leaf, digest] = namePattern.exec(path) ?? [];
  return digest === undefined ? undefined : { path, firstLeaf: Number(leaf), digest };
}

/** A file that is not a segment. */
export class SegmentError extends Error {}

/**
 * The lines of a segment.
 * @throws SegmentError for a file that is not gzip, unpacks to more than 256 MiB, or has a last line without a line break
 */
export async function segmentLines(bytes: Uint8Array, codec = gzipCodec): Promise<readonly Buffer[]> {
  const text = await unpacked(bytes, codec);
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = text.indexOf(lineFeed); end >= 0; end = text.indexOf(lineFeed, start)) {
    lines.push(text.subarray(start, end));
    start = end + 1;
  }
  if (start < text.length) throw new SegmentError('the last line has no line break');
  return lines;
}

/** Unpacks a gzip file. The length of the content at its end (RFC 1952, section 2.3.1) is only a claim. */
async function unpacked(bytes: Uint8Array, codec: Codec): Promise<Buffer> {
  const claimed = bytes.length < 4 ? 0 : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).readUInt32LE(bytes.length - 4);
  try {
    return await codec.decompress(bytes, { maxOutputLength: maxBytes, chunkSize: chunkSize(claimed + 1) });
  } catch (cause) {
    throw new SegmentError(`cannot decompress the segment: ${messageOf(cause)}`, { cause });
  }
}

/** Few large chunks need less time than many small ones. */
function chunkSize(bytes: number): number {
  return Math.round(Math.min(Math.max(bytes, 16 * 1024), maxChunk));
}
