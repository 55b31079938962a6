import { createHash } from 'node:crypto';

/** The rule of uids implemented a second time, from docs/formats.md: the hash of the parts. */
export function uidOfParts(parts: readonly (string | null)[]): string {
  const sum = createHash('sha256');
  for (const part of parts) {
    const bytes = Buffer.from(part ?? '', 'utf8');
    const length = Buffer.alloc(4, 0xff);
    if (part !== null) length.writeUInt32BE(bytes.length);
    sum.update(length).update(bytes);
  }
  return sum.digest().subarray(0, 16).toString('base64url');
}
