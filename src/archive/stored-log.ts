/** Reads signed checkpoints, and the last tiles of a tree, as an archive stores them. */
import type { KeyObject } from 'node:crypto';
import type { WaybillError } from '../errors/errors.ts';
import { checkpointNumber, checkpointPath, openCheckpoint, type Checkpoint } from './checkpoint.ts';
import { consistencyRanges, hashBytes, type LeafRange } from './merkle.ts';
import { parseSegmentPath, type SegmentName } from './segment.ts';
import { signerOf, type Verifier } from './signed-note.ts';
import type { ArchiveStore } from './store.ts';
import { edgeTiles, rangeHash, tileAt, tilePath, tilesOf, type Tile } from './tiles.ts';

/** Creates the error for an object that is missing or wrong; each caller has its own message. */
type Broken = (path: string, reason: string) => WaybillError;

interface StoredCheckpoint {
  readonly note: Buffer;
  readonly checkpoint: Checkpoint;
  /** The known keys whose signatures are valid, in the order of the signatures. */
  readonly signedBy: readonly Verifier[];
  /** True if the first of the given keys signed it. */
  readonly isKeyKnown: boolean;
}

/**
 * The numbers of the stored checkpoints, ascending. While a daemon adds checkpoints, a list of a folder may have a
 * number and lack the one before it: a second list has it.
 */
export async function checkpointNumbers(store: ArchiveStore): Promise<readonly number[]> {
  const numbers = await listedNumbers(store);
  const last = numbers.at(-1) ?? 0;
  return numbers.length === last ? numbers : (await listedNumbers(store)).filter((number) => number <= last);
}

async function listedNumbers(store: ArchiveStore): Promise<readonly number[]> {
  const paths = await Array.fromAsync(store.list('checkpoints/'));
  return paths.flatMap((path) => checkpointNumber(path) ?? []).sort((a, b) => a - b);
}

/** All segments of the store, in any order. An interrupted attempt leaves its segment. */
export async function segmentNames(store: ArchiveStore): Promise<readonly SegmentName[]> {
  return (await Array.fromAsync(store.list('segments/'))).flatMap((path) => parseSegmentPath(path) ?? []);
}

/**
 * @param keys  the signing key of the archive, then the previous key if there is one; undefined: the signature is not checked
 * @throws the error of `broken`, also when none of the keys signed it
 */
export async function readCheckpoint(
  store: ArchiveStore,
  number: number,
  keys: readonly KeyObject[] | undefined,
  broken: Broken,
): Promise<StoredCheckpoint> {
  const path = checkpointPath(number);
  const note = await store.read(path);
  if (note === undefined) throw broken(path, 'it is missing');
  const [origin = ''] = note.toString().split('\n', 1);
  const signers = keys?.map((key) => signerOf(origin, key)) ?? [];
  const checkpoint = openCheckpoint(note, signers);
  if (typeof checkpoint === 'string') throw broken(path, checkpoint);
  const { signedBy } = checkpoint;
  if (keys && signedBy.length === 0) throw broken(path, 'it is not signed with the key of this archive');
  return { note, checkpoint, signedBy, isKeyKnown: signedBy.some((signer) => signer === signers[0]) };
}

/**
 * The last tile of each level of a tree, unchecked.
 * @param storedSize  of the tree whose tiles are stored: a partial tile of a smaller tree may be gone, and a tile of the larger one has its hashes
 */
export async function readEdgeTiles(store: ArchiveStore, size: number, storedSize: number, broken: Broken): Promise<readonly Tile[]> {
  const tiles: Tile[] = [];
  for (const tile of edgeTiles(size)) {
    const path = tilePath(tileAt(tile.level, tile.index, storedSize));
    const bytes = (await store.read(path)) ?? (await store.read(tilePath(tile)));
    if (bytes === undefined || bytes.length < tile.width * hashBytes) throw broken(path, bytes ? 'it is too short' : 'it is missing');
    tiles.push({ ...tile, hashes: bytes.subarray(0, tile.width * hashBytes) });
  }
  return tiles;
}

/** The hashes that prove that a tree of `to` leaves extends one of `from` leaves, from the tiles of the larger one, unchecked. */
export async function readConsistencyProof(store: ArchiveStore, { from, to }: LeafRange, broken: Broken): Promise<readonly Uint8Array[]> {
  const ranges = consistencyRanges({ from, to });
  const tiles = new Map<string, Buffer>();
  for (const tile of ranges.flatMap((range) => tilesOf(range, to))) {
    const path = tilePath(tile);
    const bytes = tiles.get(path) ?? (await store.read(path));
    if (bytes?.length !== tile.width * hashBytes) throw broken(path, bytes ? 'it has another length' : 'it is missing');
    tiles.set(path, bytes);
  }
  return ranges.map((range) => rangeHash(range, to, (tile) => tiles.get(tilePath(tile)) ?? new Uint8Array()));
}
