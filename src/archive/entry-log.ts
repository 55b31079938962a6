/** The log of entries: its tree and last bundle, and the objects that an archive stores for both. Pure. */
import { formatBundle } from './entry.ts';
import { leafHash } from './merkle.ts';
import { TiledTree } from './tiled-tree.ts';
import { bundlePath, tilePath, tileWidth } from './tiles.ts';
import type { Tile } from './tiles.ts';

export interface StoredObject {
  readonly path: string;
  readonly bytes: Buffer;
}

/** What was added since the last call of `take`. */
export interface Growth {
  readonly tiles: readonly Tile[];
  /** The tiles and bundles that an archive of this size has, and one of the size before has not. */
  readonly objects: readonly StoredObject[];
}

export class EntryLog {
  readonly #tree: TiledTree;
  /** Entries from the beginning of the last bundle that was taken. */
  #entries: Uint8Array[];

  /** @param bundle  the entries of the last bundle of the tree, fewer than 256 */
  constructor(tree = TiledTree.empty(), bundle: readonly Uint8Array[] = []) {
    this.#tree = tree;
    this.#entries = [...bundle];
  }

  get size(): number {
    return this.#tree.size;
  }

  copy(): EntryLog {
    return new EntryLog(this.#tree.copy(), this.#entries);
  }

  append(entry: Uint8Array): void {
    this.#tree.append(leafHash(entry));
    this.#entries.push(entry);
  }

  root(): Uint8Array {
    return this.#tree.root();
  }

  take(): Growth {
    const tiles = this.#tree.takeTiles();
    const bundles = bundlesOf(Math.ceil((this.size - this.#entries.length) / tileWidth), this.#entries);
    this.#entries = this.#entries.slice(this.#entries.length - (this.size % tileWidth));
    return { tiles, objects: [...tiles.map((tile) => ({ path: tilePath(tile), bytes: Buffer.concat(tile.hashes) })), ...bundles] };
  }
}

/** @param first  the index of the first bundle */
function bundlesOf(first: number, entries: readonly Uint8Array[]): readonly StoredObject[] {
  return Array.from({ length: Math.ceil(entries.length / tileWidth) }, (_, i) => {
    const bundle = entries.slice(i * tileWidth, (i + 1) * tileWidth);
    return { path: bundlePath({ index: first + i, width: bundle.length }), bytes: formatBundle(bundle) };
  });
}
