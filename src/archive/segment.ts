/** Archive segments: the lines of one checkpoint as gzipped NDJSON. The name has the SHA-256 of the file. */
import { promisify } from 'node:util';
import { crc32, gzip, inflateRaw, type Zlib } from 'node:zlib';
import { messageOf } from '../errors/errors.ts';
import type { LineTexts } from './line.ts';
import { sha256 } from './merkle.ts';
import { parseLine, type LineFacts } from './parse-line.ts';

/** A parameter, because the simulation has no threads. */
export interface Codec {
  /** Gzip. */
  compress(bytes: Uint8Array): Promise<Buffer>;
  /** Raw deflate. */
  inflate(bytes: Uint8Array, options: InflateOptions): Promise<Inflated>;
}

interface InflateOptions {
  readonly info: true;
  readonly maxOutputLength: number;
  readonly chunkSize: number;
}

interface Inflated {
  readonly buffer: Buffer;
  /** `bytesWritten` is the number of input bytes up to the end of the deflate stream. */
  readonly engine: Pick<Zlib, 'bytesWritten'>;
}

const [pack, unpack] = [promisify(gzip), promisify(inflateRaw)];
/** Takes less than half the CPU of level 6. Segments are 13 % larger, the archive with its tiles 6 % (measured with records of the benchmark). */
const level = 3;
const gzipCodec: Codec = {
  compress: (bytes) => pack(bytes, { level, chunkSize: chunkSize(bytes.length / 4) }),
  inflate: (bytes, options) => unpack(bytes, options) as Promise<unknown> as Promise<Inflated>,
};
/**
 * Of a gzip file without a name or a comment. Then follow 6 more bytes, the deflated content, its
 * CRC-32 and its length (RFC 1952, section 2.3).
 */
const gzipHeader = Buffer.of(0x1f, 0x8b, 0x08, 0x00);
const [headerBytes, trailerBytes] = [10, 8];
const lineFeed = 0x0a;
/** Far more than a segment of the writer contains. */
const maxBytes = 256 * 1024 * 1024;
/** The shortest line, of an operation, has more. */
const minLineBytes = 40;
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

/** A segment without its digest, for messages. */
export function segmentPlace(firstLeaf: number): string {
  return `segments/${String(firstLeaf).padStart(16, '0')}-…`;
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
 * @throws SegmentError for a file that is not one member of gzip, unpacks to more than 256 MiB, has
 * no line or too short lines, or has a last line without a line break
 */
export async function unpackSegment(bytes: Uint8Array, codec = gzipCodec): Promise<LineTexts> {
  const text = await unpacked(bytes, codec);
  const ends: number[] = [];
  for (let at = text.indexOf(lineFeed); at >= 0; at = text.indexOf(lineFeed, at + 1)) {
    ends.push(at + 1);
    // A planted file of line breaks alone would fill the memory.
    if (ends.length * minLineBytes > text.length) throw new SegmentError('its lines are too short for lines of an archive');
  }
  if ((ends.at(-1) ?? 0) < text.length) throw new SegmentError('the last line has no line break');
  if (ends.length === 0) throw new SegmentError('it has no line');
  return { text, ends };
}

/** @returns each line with what it states; undefined for a file that is not a segment */
export async function readLines(
  segment: Uint8Array,
  codec?: Codec,
): Promise<readonly { readonly line: Buffer; readonly facts: LineFacts }[] | undefined> {
  try {
    const read: { readonly line: Buffer; readonly facts: LineFacts }[] = [];
    for (const line of linesOf(await unpackSegment(segment, codec))) {
      const facts = parseLine(line);
      if (!facts) return undefined;
      read.push({ line, facts });
    }
    return read;
  } catch (thrown) {
    if (thrown instanceof SegmentError) return undefined;
    throw thrown;
  }
}

/** Each line without its line break. */
export function* linesOf({ text, ends }: LineTexts): Generator<Buffer> {
  let start = 0;
  for (const end of ends) {
    yield text.subarray(start, end - 1);
    start = end;
  }
}

/** Unpacks a gzip file of one member and no other bytes. Gunzip would accept both. */
async function unpacked(bytes: Uint8Array, codec: Codec): Promise<Buffer> {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  if (file.length < headerBytes + trailerBytes || !file.subarray(0, 4).equals(gzipHeader)) throw new SegmentError('it is not a gzip file');
  const content = file.subarray(headerBytes, -trailerBytes);
  const length = file.readUInt32LE(file.length - 4);
  const { buffer, engine } = await inflated(content, length, codec);
  if (engine.bytesWritten !== content.length || buffer.length !== length || crc32(buffer) !== file.readUInt32LE(file.length - trailerBytes))
    throw new SegmentError('it is not one gzip file with the length and the checksum of its content');
  return buffer;
}

async function inflated(content: Buffer, length: number, codec: Codec): Promise<Inflated> {
  try {
    return await codec.inflate(content, { info: true, maxOutputLength: maxBytes, chunkSize: chunkSize(length + 1) });
  } catch (cause) {
    throw new SegmentError(`cannot decompress the segment: ${messageOf(cause)}`, { cause });
  }
}

/** Few large chunks need less time than many small ones. */
function chunkSize(bytes: number): number {
  return Math.round(Math.min(Math.max(bytes, 16 * 1024), maxChunk));
}
