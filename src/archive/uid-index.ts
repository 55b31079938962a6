/**
 * The index of an archive: the uid of each record to its leaf, one file for each 65,536 leaves. It makes a search fast and is no evidence: entries
 * contain the same, so a file that is missing or wrong can be computed again.
 */
import { bundleStep, entryAt, isBundle, isRecord, uidBytes } from './entry.ts';
import type { ArchiveStore } from './store.ts';
import { bundlePath, tileWidth } from './tiles.ts';
import { sortByUid } from './uid-order.ts';

/** Leaves of a file. */
export const indexWidth = 65_536;
/** The uid, and the number of the leaf in the file (2 bytes, big-endian). */
const rowBytes = uidBytes + 2;

export function indexPath(number: number): string {
  return `index/${String(number).padStart(10, '0')}`;
}

/** The number in the path of a file of the index; undefined for another path. */
export function indexNumber(path: string): number | undefined {
  const [, digits] = /^index\/(\d{10})$/.exec(path) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** @returns the numbers of the files that an archive of this size should have and lacks */
export async function missingIndexes(store: ArchiveStore, size: number): Promise<readonly number[]> {
  if (size < indexWidth) return [];
  const stored = new Set(await Array.fromAsync(store.list('index/')));
  return Array.from({ length: Math.floor(size / indexWidth) }, (_, number) => number).filter((number) => !stored.has(indexPath(number)));
}

/** @returns the file with this number from the complete bundles of its leaves; undefined when one is missing or is not a bundle */
export async function computeIndex(read: ArchiveStore['read'], number: number): Promise<Buffer | undefined> {
  const bundles = indexWidth / tileWidth;
  const paths = Array.from({ length: bundles }, (_, i) => bundlePath({ index: number * bundles + i, width: tileWidth }));
  const stored = await Promise.all(paths.map(read));
  const entries = Buffer.concat(stored.flatMap((bytes) => bytes ?? []));
  return entries.length === indexWidth * bundleStep && isBundle(entries) ? formatIndex(entries) : undefined;
}

/** @param bundle  the entries of the leaves, in order. @returns rows in the order of their uids, bytewise */
export function formatIndex(bundle: Buffer): Buffer {
  const leaves = new Float64Array(bundle.length / bundleStep);
  let records = 0;
  for (let leaf = 0; leaf < leaves.length; leaf += 1) if (isRecord(bundle, entryAt(leaf))) leaves[records++] = leaf;
  const sorted = leaves.subarray(0, records);
  sortByUid(sorted, bundle, uidAt);
  const rows = Buffer.alloc(records * rowBytes);
  for (const [i, leaf] of sorted.entries()) writeRow(rows, i * rowBytes, bundle, uidAt(leaf), leaf);
  return rows;
}

function uidAt(leaf: number): number {
  return entryAt(leaf) + 1;
}

/** By hand: calls out of JavaScript cost more for so few bytes. */
function writeRow(rows: Buffer, at: number, bundle: Buffer, uid: number, leaf: number): void {
  for (let i = 0; i < uidBytes; i += 1) rows[at + i] = bundle[uid + i] as number;
  rows[at + uidBytes] = leaf >> 8;
  rows[at + uidBytes + 1] = leaf & 0xff;
}

/** @returns the number of the leaf in the file, to be compared with its entry */
export function searchIndex(rows: Buffer, uid: Uint8Array): number | undefined {
  let [low, high] = [0, Math.floor(rows.length / rowBytes)];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    const at = middle * rowBytes;
    const difference = rows.compare(uid, 0, uidBytes, at, at + uidBytes);
    if (difference === 0) return rows.readUInt16BE(at + uidBytes);
    if (difference < 0) low = middle + 1;
    else high = middle;
  }
  return undefined;
}
