/** Base64 of RFC 4648 section 4 as the specification carries files in JSON: one text for each content, so that nothing can hide in it. */
import { badField } from './endpoint.ts';

/** @throws Problem 400 that names the field: other characters, blanks, missing padding, or bits beyond the content that are not 0 */
export function bytesOf(field: string, text: string): Buffer {
  const bytes = Buffer.from(text, 'base64');
  // What Node passes over does not come back.
  if (bytes.toString('base64') !== text) throw badField(field, 'is not Base64 (RFC 4648 section 4, with padding)');
  return bytes;
}

/** How many characters carry so many bytes. */
export function fileCarrierBytes(bytes: number): number {
  return Math.ceil(bytes / 3) * 4;
}
