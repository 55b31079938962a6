/**
 * Base64 of RFC 4648 section 4 as the specification carries files in JSON: one text for each content, so that nothing can hide in it. Files
 * are decoded and encoded in slices: other requests are served between two of them.
 */
import { setImmediate } from 'node:timers/promises';
import { badField } from './problem.ts';

/** Files of a body that are decoded already, by the text that stands in their place; undefined what is not Base64. */
export type Decoded = ReadonlyMap<string, Buffer | undefined>;

/** Bytes of text in a slice: whole groups of four. */
const sliceChars = 1 << 20;
const sliceBytes = (sliceChars / 4) * 3;

/** @throws Problem 400 that names the field: other characters, blanks, missing padding, or bits beyond the content that are not 0 */
export function bytesOf(field: string, text: string, decoded: Decoded): Buffer {
  const bytes = decoded.has(text) ? decoded.get(text) : strictly(text);
  if (!bytes) throw badField(field, 'is not Base64 (RFC 4648 section 4, with padding)');
  return bytes;
}

/** The content of a long text; undefined when it is not Base64. */
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

/** The text of the content, as slices of bytes. */
export function* encodedSlices(content: Buffer): Generator<Buffer> {
  for (let at = 0; at < content.length; at += sliceBytes)
    yield Buffer.from(content.toString('base64', at, Math.min(at + sliceBytes, content.length)), 'latin1');
}

/** How many characters carry so many bytes. */
export function fileCarrierBytes(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}

function fileBytes(chars: number): number {
  return Math.ceil(chars / 4) * 3;
}

function strictly(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64');
  // What Node passes over does not come back.
  return bytes.toString('base64') === text ? bytes : undefined;
}
