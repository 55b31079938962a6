/** Archive segments: the lines of one checkpoint as gzipped NDJSON. The name has the SHA-256 of the file. */
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';
import { messageOf } from '../errors.ts';
import { sha256 } from './merkle.ts';

/** A parameter, because the simulation has no threads. */
export interface Codec {
  compress(bytes: Uint8Array): Promise<Buffer>;
  decompress(bytes: Uint8Array, options: { readonly maxOutputLength: number }): Promise<Buffer>;
}

const gzipCodec: Codec = { compress: promisify(gzip), decompress: promisify(gunzip) };
const lineFeed = 0x0a;
/** A writer ends a segment far below this. */
const maxBytes = 256 * 1024 * 1024;
const namePattern = /^segments\/(\d{16})-([0-9a-f]{64})\.ndjson\.gz$/;

export interface SegmentName {
  readonly path: string;
  /** The index of the leaf of its first line. */
  readonly firstLeaf: number;
  /** SHA-256 of the file in hexadecimal. */
  readonly digest: string;
}

export async function formatSegment(
  firstLeaf: number,
  lines: readonly Uint8Array[],
  codec = gzipCodec,
): Promise<{ readonly path: string; readonly bytes: Buffer }> {
  const bytes = await codec.compress(Buffer.concat(lines.flatMap((line) => [line, Buffer.of(lineFeed)])));
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
  const text = await unpack(bytes, codec);
  const lines: Buffer[] = [];
  let start = 0;
  for (let end = text.indexOf(lineFeed); end >= 0; end = text.indexOf(lineFeed, start)) {
    lines.push(text.subarray(start, end));
    start = end + 1;
  }
  if (start < text.length) throw new SegmentError('the last line has no line break');
  return lines;
}

async function unpack(bytes: Uint8Array, codec: Codec): Promise<Buffer> {
  try {
    return await codec.decompress(bytes, { maxOutputLength: maxBytes });
  } catch (cause) {
    throw new SegmentError(`cannot unpack it: ${messageOf(cause)}`, { cause });
  }
}
