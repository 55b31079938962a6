/**
 * Tiles of C2SP tlog-tiles: 256 hashes each. A tile of level 0 holds leaf hashes, and one of level
 * L the roots of complete tiles of level L - 1. Pure.
 */
import type { LeafRange } from './merkle.ts';
import { hashBytes, joinSubtrees, largestPower, writeSha256 } from './merkle.ts';

/** Hashes of a complete tile. */
export const tileWidth = 256;

export interface TileId {
  readonly level: number;
  readonly index: number;
  /** 1 to 256 hashes. */
  readonly width: number;
}

export interface Tile extends TileId {
  /** One after another, 32 bytes each. */
  readonly hashes: Uint8Array;
}

export function tilePath({ level, index, width }: TileId): string {
  return `tile/${level}/${numberPath(index, width)}`;
}

/** The path of the entries whose leaf hashes the tile of level 0 with this index and width holds. */
export function bundlePath({ index, width }: Omit<TileId, 'level'>): string {
  return `tile/entries/${numberPath(index, width)}`;
}

/** 1234067 is `x001/x234/067`; a partial tile ends with its width. */
function numberPath(index: number, width: number): string {
  const digits = String(index);
  const groups = digits.padStart(Math.ceil(digits.length / 3) * 3, '0').match(/\d{3}/g) ?? [];
  const path = groups.map((group, i) => (i < groups.length - 1 ? `x${group}` : group)).join('/');
  return width < tileWidth ? `${path}.p/${width}` : path;
}

/** The last tile of each level of a tree, unless that tile is empty: complete tiles before it are implied. */
export function edgeTiles(size: number): readonly TileId[] {
  const tiles: TileId[] = [];
  for (let level = 0, hashes = size; hashes > 0; level += 1, hashes = Math.floor(hashes / tileWidth)) {
    const width = hashes % tileWidth;
    if (width > 0) tiles.push({ level, index: Math.floor(hashes / tileWidth), width });
  }
  return tiles;
}

/** The tile with this level and index in a tree of `size` leaves. */
export function tileAt(level: number, index: number, size: number): TileId {
  const hashes = Math.floor(size / tileWidth ** level);
  return { level, index, width: Math.min(tileWidth, hashes - index * tileWidth) };
}

/** A complete subtree, and the hashes of the tile that it spans. */
interface Subtree {
  readonly tile: TileId;
  readonly first: number;
  readonly count: number;
}

/**
 * The complete subtrees that a range consists of, the largest first. The range is one of a proof:
 * it begins at a multiple of the power of two that is at least its length.
 */
function subtrees({ from, to }: LeafRange, size: number): readonly Subtree[] {
  const found: Subtree[] = [];
  for (let at = from; at < to;) {
    const leaves = largestPower(to - at);
    let [level, count] = [0, leaves];
    for (; count >= tileWidth; count /= tileWidth) level += 1;
    const first = at / tileWidth ** level;
    found.push({ tile: tileAt(level, Math.floor(first / tileWidth), size), first: first % tileWidth, count });
    at += leaves;
  }
  return found;
}

/** The tiles that `rangeHash` reads. */
export function tilesOf(range: LeafRange, size: number): readonly TileId[] {
  return subtrees(range, size).map(({ tile }) => tile);
}

/** The hash of a range of a proof. */
export function rangeHash(range: LeafRange, size: number, hashesOf: (tile: TileId) => Uint8Array): Uint8Array {
  return joinSubtrees(
    subtrees(range, size).map(({ tile, first, count }) =>
      completeRoot(hashesOf(tile).subarray(first * hashBytes, (first + count) * hashBytes)),
    ),
  );
}

/** The hashes of a subtree, after one byte for a prefix. Pairs are hashed in place, and their parents overwrite hashes that were used already. */
const row = Buffer.alloc(1 + tileWidth * hashBytes);
const pairs = Array.from({ length: tileWidth / 2 }, (_, i) => row.subarray(2 * i * hashBytes, 1 + 2 * (i + 1) * hashBytes));
const nodePrefix = 0x01;

/** The root over a power of two of hashes, at most 256. */
export function completeRoot(hashes: Uint8Array): Uint8Array {
  if (hashes.length === 0) throw new RangeError('a subtree has at least one hash');
  row.set(hashes, 1);
  for (let nodes = hashes.length / hashBytes / 2; nodes >= 1; nodes /= 2)
    for (let i = 0; i < nodes; i += 1) {
      const pair = pairs[i] as Buffer;
      // Overwrites the last byte of the previous pair, whose parent is computed already.
      pair[0] = nodePrefix;
      writeSha256(row, 1 + i * hashBytes, pair);
    }
  return Buffer.from(row.subarray(1, 1 + hashBytes));
}
