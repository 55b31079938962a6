/** Sorts the rows of a table by their uids. Pure. */
import { uidBytes } from './entry.ts';

/** A double holds integers of 53 bits: four bytes of a uid, and the number of a row. */
const usualRows = 2 ** 21;

/**
 * Sorts the numbers of rows by the uids of the rows, bytewise. Rows with the same uid are sorted by
 * number.
 *
 * The first bytes of the uids sort as numbers, many times faster than by comparisons. Rows that are
 * equal so far are sorted by the bytes after these: few hashes begin with the same bytes, but nothing
 * in an archive proves that its uids are hashes.
 * @param uidAt  where the uid of a row begins in `bytes`
 * @param from  the bytes of the uids before this one are equal
 */
export function sortByUid(rows: Float64Array, bytes: Buffer, uidAt: (row: number) => number, from = 0): void {
  if (from === uidBytes) return;
  const isUsual = bytes.length <= usualRows * uidBytes;
  const width = Math.min(isUsual ? 4 : 3, uidBytes - from);
  const limit = isUsual ? usualRows : 2 ** 29;
  for (let i = 0; i < rows.length; i += 1) {
    const row = rows[i] as number;
    rows[i] = bytes.readUIntBE(uidAt(row) + from, width) * limit + row;
  }
  rows.sort();
  let first = 0;
  let before = -1;
  for (let i = 0; i < rows.length; i += 1) {
    const key = rows[i] as number;
    const beginning = Math.floor(key / limit);
    rows[i] = key - beginning * limit;
    if (beginning === before) continue;
    if (i - first > 1) sortByUid(rows.subarray(first, i), bytes, uidAt, from + width);
    first = i;
    before = beginning;
  }
  if (rows.length - first > 1) sortByUid(rows.subarray(first), bytes, uidAt, from + width);
}
