/** The log of entries: its tree and last bundle, and the objects that an archive stores for both. Pure. */
import { bundleStep, entryBytes, writeEntry, writeToBundle } from './entry.ts';
import type { Line } from './line.ts';
import { hashBytes, writeLeafHash } from './merkle.ts';
import { TiledTree } from './tiled-tree.ts';
import { bundlePath, tilePath, tileWidth, type Tile } from './tiles.ts';

export interface StoredObject {
  readonly path: string;
  readonly bytes: Uint8Array;
}

interface Bundle extends StoredObject {
  readonly bytes: Buffer;
}

/** The additions since the last call of `take`. */
export interface Growth {
  readonly tiles: readonly Tile[];
  /** The complete bundles. */
  readonly bundles: readonly Bundle[];
  /** The tiles and bundles that an archive of this size has in addition to the archive before. */
  readonly objects: readonly StoredObject[];
}

const [entry, leaf] = [Buffer.alloc(entryBytes), Buffer.alloc(hashBytes)];

export class EntryLog {
  readonly #tree: TiledTree;
  /** The last bundle, with room for 256 entries. */
  #bundle = emptyBundle();
  #completed: Bundle[] = [];

  /** @param bundle  the entries of the last bundle of the tree, fewer than 256 */
  constructor(tree = TiledTree.empty(), bundle: readonly Uint8Array[] = []) {
    this.#tree = tree;
    for (const [i, each] of bundle.entries()) writeToBundle(this.#bundle, i, each);
  }

  get size(): number {
    return this.#tree.size;
  }

  /** A copy without the additions that `take` would return. */
  copy(): EntryLog {
    const copy = new EntryLog(this.#tree.copy());
    copy.#bundle = Buffer.from(this.#bundle);
    return copy;
  }

  append(line: Pick<Line, 'kind' | 'seq'> & { readonly uid?: string }, text: Uint8Array): void {
    writeEntry(entry, line, text);
    this.appendEntry(entry);
  }

  appendEntry(added: Uint8Array): void {
    writeToBundle(this.#bundle, this.size % tileWidth, added);
    writeLeafHash(leaf, added);
    this.#tree.append(leaf);
    if (this.size % tileWidth > 0) return;
    this.#completed.push({ path: bundlePath({ index: this.size / tileWidth - 1, width: tileWidth }), bytes: this.#bundle });
    this.#bundle = emptyBundle();
  }

  root(): Uint8Array {
    return this.#tree.root();
  }

  take(): Growth {
    const tiles = this.#tree.takeTiles();
    const bundles = this.#completed;
    this.#completed = [];
    const width = this.size % tileWidth;
    const path = bundlePath({ index: Math.floor(this.size / tileWidth), width });
    const last = width === 0 ? [] : [{ path, bytes: Buffer.from(this.#bundle.subarray(0, width * bundleStep)) }];
    return { tiles, bundles, objects: [...tiles.map((tile) => ({ path: tilePath(tile), bytes: tile.hashes })), ...bundles, ...last] };
  }
}

function emptyBundle(): Buffer {
  return Buffer.allocUnsafe(tileWidth * bundleStep);
}
