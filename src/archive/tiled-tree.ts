/**
 * A tree that grows leaf by leaf. It holds only the last tile of each level, so that its memory
 * stays the same whatever its size, and gives the tiles to store.
 */
import { joinSubtrees, largestPower } from './merkle.ts';
import { completeRoot, edgeTiles, tileWidth } from './tiles.ts';
import type { Tile } from './tiles.ts';

export class TiledTree {
  /** The hashes of the last tile of each level, fewer than 256 each. */
  readonly #edge: Uint8Array[][];
  #size: number;
  #completed: Tile[] = [];

  private constructor(size: number, edge: Uint8Array[][]) {
    this.#size = size;
    this.#edge = edge;
  }

  static empty(): TiledTree {
    return new TiledTree(0, []);
  }

  /** @param tiles the tiles that `edgeTiles(size)` names, each with at least its hashes */
  static from(size: number, tiles: readonly Tile[]): TiledTree {
    const edge = Array.from({ length: Math.max(0, ...tiles.map(({ level }) => level + 1)) }, (): Uint8Array[] => []);
    for (const { level, width } of edgeTiles(size))
      edge[level] = [...(tiles.find((tile) => tile.level === level)?.hashes.slice(0, width) ?? [])];
    return new TiledTree(size, edge);
  }

  get size(): number {
    return this.#size;
  }

  copy(): TiledTree {
    return new TiledTree(
      this.#size,
      this.#edge.map((hashes) => [...hashes]),
    );
  }

  append(leaf: Uint8Array): void {
    this.#size += 1;
    this.#push(0, leaf);
  }

  root(): Uint8Array {
    return joinSubtrees(this.#edge.toReversed().flatMap((hashes) => powersOfTwo(hashes).map(completeRoot)));
  }

  /** The tiles completed since the last call, and the last tile of each level: what a checkpoint of this size needs. */
  takeTiles(): readonly Tile[] {
    const completed = this.#completed;
    this.#completed = [];
    return [...completed, ...edgeTiles(this.#size).map((tile) => ({ ...tile, hashes: [...(this.#edge[tile.level] ?? [])] }))];
  }

  #push(level: number, hash: Uint8Array): void {
    const hashes = (this.#edge[level] ??= []);
    hashes.push(hash);
    if (hashes.length < tileWidth) return;
    this.#edge[level] = [];
    this.#completed.push({ level, index: this.#size / tileWidth ** (level + 1) - 1, width: tileWidth, hashes });
    this.#push(level + 1, completeRoot(hashes));
  }
}

/** Cuts hashes into parts of a power of two, the largest first. */
function powersOfTwo(hashes: readonly Uint8Array[]): readonly (readonly Uint8Array[])[] {
  if (hashes.length === 0) return [];
  const count = largestPower(hashes.length);
  return [hashes.slice(0, count), ...powersOfTwo(hashes.slice(count))];
}
