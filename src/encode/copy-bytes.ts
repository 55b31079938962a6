/** Copies a few bytes: a call of `Buffer.copy` costs more than these loops. */

/** A copy in steps of 8 bytes reads and writes up to 7 bytes after its end. */
export const slack = 8;

/** Copies at least one byte, in steps of 8. Returns the end of the copy. */
export function copyBytes(source: DataView, begin: number, length: number, out: DataView, at: number): number {
  const end = at + length;
  let from = begin;
  let to = at;
  do {
    out.setBigInt64(to, source.getBigInt64(from, true), true);
    from += 8;
    to += 8;
  } while (to < end);
  return end;
}

export function viewOf(bytes: Buffer): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}
