/**
 * Tiles of C2SP tlog-tiles: 256 hashes each. A tile of level 0 holds leaf hashes, and one of level
 * L the roots of complete tiles of level L - 1. Pure.
 */
import type { LeafRange } from './merkle.ts';
import { joinSubtrees, largestPower, nodeHash } from './merkle.ts';

/** Hashes of a complete tile. */
export const tileWidth = 256;

export interface TileId {
  readonly level: number;
  readonly index: number;
  /** 1 to 256 hashes. */
  readonly width: number;
}

export interface Tile extends TileId {
  readonly hashes: readonly Uint8Array[];
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

/** The tile with this level and index as it stands in a tree of `size` leaves. */
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
export function rangeHash(range: LeafRange, size: number, hashesOf: (tile: TileId) => readonly Uint8Array[]): Uint8Array {
  return joinSubtrees(subtrees(range, size).map(({ tile, first, count }) => completeRoot(hashesOf(tile).slice(first, first + count))));
}

/** The root over a power of two of hashes. */
export function completeRoot(hashes: readonly Uint8Array[]): Uint8Array {
  let row = hashes;
  while (row.length > 1) row = pairs(row).map(([left, right]) => nodeHash(left, right));
  const [root] = row;
  if (root === undefined) throw new RangeError('a subtree has at least one hash');
  return root;
}

function pairs(row: readonly Uint8Array[]): (readonly [Uint8Array, Uint8Array])[] {
  const found: (readonly [Uint8Array, Uint8Array])[] = [];
  for (let i = 0; i + 1 < row.length; i += 2) found.push([row[i] as Uint8Array, row[i + 1] as Uint8Array]);
  return found;
}
