/**
 * Base64 (RFC 4648 section 4), strictly: each content has exactly one text. Files are decoded and
 * encoded in slices, so that other requests are served in between.
 */
import { setImmediate } from 'node:timers/promises';
import { badField } from './problem.ts';

/** The decoded files of a body, by the text that replaces them; undefined for invalid Base64. */
export type Decoded = ReadonlyMap<string, Buffer | undefined>;

/** Bytes of text in a slice: a multiple of four. */
const sliceChars = 1 << 20;
const sliceBytes = (sliceChars / 4) * 3;

/**
 * @throws Problem 400 for other characters, spaces, missing padding, or unused bits that are not 0
 */
export function bytesOf(field: string, text: string, decoded: Decoded): Buffer {
  const bytes = decoded.has(text) ? decoded.get(text) : strictly(text);
  if (!bytes) throw badField(field, 'is not Base64 (RFC 4648 section 4, with padding)');
  return bytes;
}

/** The content of a long text; undefined if it is not Base64. */
export async function decodedInSlices(text: Buffer): Promise<Buffer | undefined> {
  const content = Buffer.allocUnsafe(fileBytes(text.length));
  let length = 0;
  for (let at = 0; at < text.length; at += sliceChars) {
    const bytes = strictly(text.toString('latin1', at, Math.min(at + sliceChars, text.length)));
    // Padding within the text ends a slice early.
    if (!bytes || (bytes.length < sliceBytes && at + sliceChars < text.length)) return undefined;
    length += bytes.copy(content, length);
    await setImmediate();
  }
  return content.subarray(0, length);
}

export function* encodedSlices(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += sliceBytes)
    yield Buffer.from(content.toString('base64', at, Math.min(at + sliceBytes, content.length)), 'latin1');
}

/** The number of characters for a number of bytes. */
export function fileCarrierBytes(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

function fileBytes(chars: number): number {
  return Math.ceil(chars / 4) * 3;
}

function strictly(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // Node skips invalid characters, so the text of the result differs then.
  return bytes.toString('base64') === text ? bytes : undefined;
}
