/**
 * Reads where an archive ends: its newest checkpoint, the tree, and the position. Everything is
 * checked against the signed root, so that nothing that another process placed in the archive is continued.
 */
import type { KeyObject } from 'node:crypto';
import { WaybillError } from '../errors.ts';
import { checkpointNumber, checkpointPath, parseCheckpoint } from './checkpoint.ts';
import type { Checkpoint } from './checkpoint.ts';
import { formatEntry, parseBundle } from './entry.ts';
import { EntryLog } from './entry-log.ts';
import type { PositionLine } from './line.ts';
import { emptyRoot, equal, hashBytes, leafHash } from './merkle.ts';
import { parseLine } from './parse-line.ts';
import type { LineFacts } from './parse-line.ts';
import { parseSegmentPath, SegmentError, segmentLines } from './segment.ts';
import { openNote, signerOf } from './signed-note.ts';
import type { Codec } from './segment.ts';
import type { ArchiveStore } from './store.ts';
import { TiledTree } from './tiled-tree.ts';
import { bundlePath, edgeTiles, tileAt, tilePath, tileWidth } from './tiles.ts';
import type { Tile } from './tiles.ts';

export interface Head {
  readonly origin: string;
  /** Of the newest checkpoint; 0 for a new archive. */
  readonly number: number;
  readonly log: EntryLog;
  readonly position: PositionLine | undefined;
}

/**
 * @param newOrigin  the origin of an archive that begins
 * @throws WaybillError `archive_broken`
 */
export async function openHead(store: ArchiveStore, key: KeyObject, newOrigin: () => string, codec?: Codec): Promise<Head> {
  const number = await newestNumber(store);
  if (number === 0) {
    await assertNewest(store, 0, 0);
    return { origin: newOrigin(), number, log: new EntryLog(), position: undefined };
  }
  const newest = await readCheckpoint(store, number, key);
  await assertNewest(store, number, newest.size);
  const sizeBefore = number === 1 ? 0 : (await readCheckpoint(store, number - 1)).size;
  const { tree, position } = await committedSegment(store, await treeBefore(store, sizeBefore, newest.size), newest, codec);
  return { origin: newest.origin, number, log: new EntryLog(tree, await lastBundle(store, tree)), position };
}

/** The origin that the first checkpoint names, unchecked; undefined for an archive without one. */
export async function originOf(store: ArchiveStore): Promise<string | undefined> {
  const note = openNote((await store.read(checkpointPath(1))) ?? Buffer.alloc(0), []);
  return typeof note === 'string' ? undefined : parseCheckpoint(note.text)?.origin;
}

/** Checkpoints are numbered without holes. */
async function newestNumber(store: ArchiveStore): Promise<number> {
  const numbers: number[] = [];
  for await (const path of store.list('checkpoints/')) {
    const number = checkpointNumber(path);
    if (number !== undefined) numbers.push(number);
  }
  const hole = numbers.sort((a, b) => a - b).findIndex((number, i) => number !== i + 1);
  if (hole >= 0) throw broken(checkpointPath(hole + 1), 'it is missing');
  return numbers.length;
}

/** The copy of the newest checkpoint is replaced last, so a copy of a larger tree shows that checkpoints were removed. */
async function assertNewest(store: ArchiveStore, number: number, size: number): Promise<void> {
  const note = openNote((await store.read('checkpoint')) ?? Buffer.alloc(0), []);
  const copy = typeof note === 'string' ? undefined : parseCheckpoint(note.text);
  if (copy && copy.size > size) throw broken(checkpointPath(number + 1), 'it is missing, and "checkpoint" is its copy');
}

/** @param key  undefined: the signature is not checked */
async function readCheckpoint(store: ArchiveStore, number: number, key?: KeyObject): Promise<Checkpoint> {
  const path = checkpointPath(number);
  const bytes = await store.read(path);
  if (bytes === undefined) throw broken(path, 'it is missing');
  const unchecked = openNote(bytes, []);
  const checkpoint = typeof unchecked === 'string' ? undefined : parseCheckpoint(unchecked.text);
  if (!checkpoint) throw broken(path, typeof unchecked === 'string' ? unchecked : 'it is not a checkpoint');
  if (key === undefined) return checkpoint;
  const opened = openNote(bytes, [signerOf(checkpoint.origin, key)]);
  if (typeof opened === 'string') throw broken(path, opened);
  if (opened.signedBy.length === 0) throw broken(path, 'it is not signed with the key of this sink');
  return checkpoint;
}

/** The tree as it was before the newest segment, from tiles. */
async function treeBefore(store: ArchiveStore, size: number, newestSize: number): Promise<TiledTree> {
  const tiles: Tile[] = [];
  for (const tile of edgeTiles(size)) {
    const path = tilePath(tileAt(tile.level, tile.index, newestSize));
    const bytes = await store.read(path);
    if (bytes === undefined || bytes.length < tile.width * hashBytes) throw broken(path, bytes ? 'it is too short' : 'it is missing');
    tiles.push({ ...tile, hashes: Array.from({ length: tile.width }, (_, i) => bytes.subarray(i * hashBytes, (i + 1) * hashBytes)) });
  }
  return TiledTree.from(size, tiles);
}

/** The segment that leads from the tree before it to the signed root. Segments of unfinished attempts do not. */
async function committedSegment(
  store: ArchiveStore,
  before: TiledTree,
  newest: Checkpoint,
  codec: Codec | undefined,
): Promise<{ readonly tree: TiledTree; readonly position: PositionLine }> {
  for await (const path of store.list('segments/')) {
    if (parseSegmentPath(path)?.firstLeaf !== before.size) continue;
    const bytes = await store.read(path);
    const tree = before.copy();
    const position = bytes && (await appendLines(tree, bytes, codec));
    if (position && tree.size === newest.size && equal(tree.root(), newest.root)) return { tree, position };
  }
  throw broken(
    `segments/${String(before.size).padStart(16, '0')}-…`,
    'no such segment and the tiles before it have the root of the newest checkpoint',
  );
}

/** @returns the position that ends the segment; undefined for another file */
async function appendLines(tree: TiledTree, segment: Uint8Array, codec: Codec | undefined): Promise<PositionLine | undefined> {
  let last: LineFacts | undefined;
  try {
    for (const line of await segmentLines(segment, codec)) {
      last = parseLine(line);
      if (!last) return undefined;
      tree.append(leafHash(formatEntry(last, line)));
    }
  } catch (thrown) {
    if (thrown instanceof SegmentError) return undefined;
    throw thrown;
  }
  return last?.kind === 'position' ? last : undefined;
}

async function lastBundle(store: ArchiveStore, tree: TiledTree): Promise<readonly Uint8Array[]> {
  const width = tree.size % tileWidth;
  if (width === 0) return [];
  const path = bundlePath({ index: Math.floor(tree.size / tileWidth), width });
  const entries = parseBundle((await store.read(path)) ?? Buffer.alloc(0));
  const [leaves] = tree.takeTiles().filter(({ level, width: hashes }) => level === 0 && hashes === width);
  const isSame = entries?.length === width && entries.every((entry, i) => equal(leafHash(entry), leaves?.hashes[i] ?? emptyRoot));
  if (!isSame) throw broken(path, 'its entries differ from the newest checkpoint');
  return entries;
}

function broken(path: string, reason: string): WaybillError {
  return new WaybillError('archive_broken', `cannot continue the archive at "${path}": ${reason}; compare the archive with a copy`);
}
