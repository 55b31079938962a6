/** Archive segments: the lines of one checkpoint as gzipped NDJSON. The name has the SHA-256 of the file. */
import { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { createGunzip, gzip } from 'node:zlib';
import { messageOf } from '../errors.ts';
import { sha256 } from './merkle.ts';

const compress = promisify(gzip);
const lineFeed = 0x0a;
/** Bytes unpacked at once. */
const blockBytes = 64 * 1024;
/** Far above the largest record. */
const maxLineBytes = 64 * 1024 * 1024;
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
): Promise<{ readonly path: string; readonly bytes: Buffer }> {
  const bytes = await compress(Buffer.concat(lines.flatMap((line) => [line, Buffer.of(lineFeed)])));
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
 * Unpacks a segment block by block, so that memory does not depend on its size.
 * @returns the complete lines of each block
 * @throws SegmentError for a file that is not gzip, a last line without a line break, or a line that is too long
 */
export async function* segmentLines(bytes: Uint8Array): AsyncGenerator<readonly Buffer[]> {
  let rest = Buffer.alloc(0);
  for await (const block of unpacked(bytes)) {
    const text = Buffer.concat([rest, block]);
    const lines: Buffer[] = [];
    let start = 0;
    for (let end = text.indexOf(lineFeed); end >= 0; end = text.indexOf(lineFeed, start)) {
      lines.push(text.subarray(start, end));
      start = end + 1;
    }
    rest = text.subarray(start);
    if (rest.length > maxLineBytes) throw new SegmentError(`a line is longer than ${maxLineBytes} bytes`);
    yield lines;
  }
  if (rest.length > 0) throw new SegmentError('the last line has no line break');
}

async function* unpacked(bytes: Uint8Array): AsyncGenerator<Buffer> {
  try {
    yield* Readable.from([bytes]).pipe(createGunzip({ chunkSize: blockBytes })) as AsyncIterable<Buffer>;
  } catch (cause) {
    throw new SegmentError(`cannot unpack it: ${messageOf(cause)}`, { cause });
  }
}
