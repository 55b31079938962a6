/**
 * A tree that grows leaf by leaf. It keeps only the last tile of each level, so that its memory
 * does not grow with it, and returns the tiles to store.
 */
import { hashBytes, joinSubtrees, largestPower } from './merkle.ts';
import { completeRoot, edgeTiles, tileWidth, type Tile } from './tiles.ts';

/** The last tile of a level, with room for 256 hashes. */
interface EdgeTile {
  hashes: Buffer;
  /** Fewer than 256. */
  width: number;
}

export class TiledTree {
  /** By level. */
  readonly #edge: EdgeTile[];
  #size: number;
  #completed: Tile[] = [];

  private constructor(size: number, edge: EdgeTile[]) {
    this.#size = size;
    this.#edge = edge;
  }

  static empty(): TiledTree {
    return new TiledTree(0, []);
  }

  /** @param tiles the tiles that `edgeTiles(size)` names, each with at least its hashes */
  static from(size: number, tiles: readonly Tile[]): TiledTree {
    const edge = Array.from({ length: Math.max(0, ...tiles.map(({ level }) => level + 1)) }, emptyTile);
    for (const { level, width } of edgeTiles(size)) {
      const { hashes } = (edge[level] = { ...emptyTile(), width });
      hashes.set(tiles.find((tile) => tile.level === level)?.hashes.subarray(0, width * hashBytes) ?? []);
    }
    return new TiledTree(size, edge);
  }

  get size(): number {
    return this.#size;
  }

  copy(): TiledTree {
    return new TiledTree(
      this.#size,
      this.#edge.map(({ hashes, width }) => ({ hashes: Buffer.from(hashes), width })),
    );
  }

  append(leaf: Uint8Array): void {
    this.#size += 1;
    this.#push(0, leaf);
  }

  root(): Uint8Array {
    return joinSubtrees(this.#edge.toReversed().flatMap((tile) => powersOfTwo(hashesOf(tile)).map(completeRoot)));
  }

  /** The tiles completed since the last call, and the last tile of each level: what a checkpoint of this size needs. */
  takeTiles(): readonly Tile[] {
    const completed = this.#completed;
    this.#completed = [];
    const last = edgeTiles(this.#size).map((tile) => ({ ...tile, hashes: Buffer.from(hashesOf(this.#edge[tile.level] ?? emptyTile())) }));
    return [...completed, ...last];
  }

  #push(level: number, hash: Uint8Array): void {
    const tile = (this.#edge[level] ??= emptyTile());
    tile.hashes.set(hash, tile.width * hashBytes);
    tile.width += 1;
    if (tile.width < tileWidth) return;
    this.#edge[level] = emptyTile();
    this.#completed.push({ level, index: this.#size / tileWidth ** (level + 1) - 1, width: tileWidth, hashes: tile.hashes });
    this.#push(level + 1, completeRoot(tile.hashes));
  }
}

function emptyTile(): EdgeTile {
  return { hashes: Buffer.allocUnsafe(tileWidth * hashBytes), width: 0 };
}

function hashesOf({ hashes, width }: EdgeTile): Uint8Array {
  return hashes.subarray(0, width * hashBytes);
}

/** Cuts hashes into parts of a power of two, the largest first. */
function powersOfTwo(hashes: Uint8Array): readonly Uint8Array[] {
  if (hashes.length === 0) return [];
  const bytes = largestPower(hashes.length / hashBytes) * hashBytes;
  return [hashes.subarray(0, bytes), ...powersOfTwo(hashes.subarray(bytes))];
}
