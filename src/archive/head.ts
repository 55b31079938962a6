/**
 * Reads where an archive ends: its newest checkpoint, the tree, and the position. Everything is
 * checked against the signed root, so that objects of another process are never continued.
 */
import type { KeyObject } from 'node:crypto';
import { WaybillError } from '../errors/errors.ts';
import { checkpointPath, openCheckpoint, type Checkpoint } from './checkpoint.ts';
import { parseBundle } from './entry.ts';
import { EntryLog, type StoredObject } from './entry-log.ts';
import type { PositionLine } from './line.ts';
import { equal, leafHash } from './merkle.ts';
import { readLines, segmentPlace } from './segment.ts';
import { formatVerifier, keyName, type Verifier } from './signed-note.ts';
import type { Codec } from './segment.ts';
import type { ArchiveStore } from './store.ts';
import { checkpointNumbers, readCheckpoint, readEdgeTiles, segmentNames } from './stored-log.ts';
import { TiledTree } from './tiled-tree.ts';
import { bundlePath, tileAt, tileWidth } from './tiles.ts';

export interface Head {
  readonly origin: string;
  /** Of the newest checkpoint; 0 for a new archive. */
  readonly number: number;
  readonly log: EntryLog;
  readonly position: PositionLine | undefined;
  /** The newest checkpoint, as it is stored; undefined for a new archive. */
  readonly note: Uint8Array | undefined;
  /** Two keys signed the newest checkpoint. */
  readonly isKeyChange: boolean;
  /** The first key signed the newest checkpoint; also true for a new archive. */
  readonly isKeyKnown: boolean;
  /** Objects that the newest checkpoint needs, and that its writer may not have stored before it ended. */
  readonly unpublished: readonly StoredObject[];
}

/**
 * @param keys  the signing key, then the previous key if there is one
 * @param newOrigin  the origin of an archive that begins
 * @throws WaybillError `archive_broken`
 */
export async function openHead(store: ArchiveStore, keys: readonly KeyObject[], newOrigin: () => string, codec?: Codec): Promise<Head> {
  // The copy is read first: a daemon that runs meanwhile must not make it newer than the listed checkpoints.
  const copy = await store.read('checkpoint');
  const number = await newestNumber(store);
  if (number === 0) {
    assertNewest(copy, 0, 0);
    return {
      origin: newOrigin(),
      number,
      log: new EntryLog(),
      position: undefined,
      note: undefined,
      isKeyChange: false,
      isKeyKnown: true,
      unpublished: [],
    };
  }
  const { note, checkpoint, signedBy, isKeyKnown } = await readCheckpoint(store, number, keys, broken);
  assertNewest(copy, number, checkpoint.size);
  const sizeBefore = number === 1 ? 0 : (await readCheckpoint(store, number - 1, undefined, broken)).checkpoint.size;
  const isPublished = copy?.equals(note) === true;
  const before = await logBefore(store, sizeBefore, isPublished ? checkpoint.size : sizeBefore);
  const { log, position } = await committedSegment(store, before, checkpoint, codec);
  const { objects } = log.take();
  if (isPublished) await assertStored(store, objects);
  const unpublished = isPublished ? [] : [...objects, ...signedBy.map(publicKeyObject), { path: 'checkpoint', bytes: note }];
  const isKeyChange = signedBy.length > 1;
  return { origin: checkpoint.origin, number, log, position, note, isKeyChange, isKeyKnown, unpublished };
}

/** The origin that the first checkpoint names, unchecked; undefined for an archive without one. */
export async function originOf(store: ArchiveStore): Promise<string | undefined> {
  const opened = openCheckpoint(await store.read(checkpointPath(1)), []);
  return typeof opened === 'string' ? undefined : opened.origin;
}

/** Checkpoints are numbered without holes. */
async function newestNumber(store: ArchiveStore): Promise<number> {
  const numbers = await checkpointNumbers(store);
  const hole = numbers.findIndex((number, i) => number !== i + 1);
  if (hole >= 0) throw broken(checkpointPath(hole + 1), 'it is missing');
  return numbers.length;
}

/** The copy of the newest checkpoint is replaced last, so a copy of a larger tree shows that checkpoints were removed. */
function assertNewest(copy: Uint8Array | undefined, number: number, size: number): void {
  const copied = openCheckpoint(copy, []);
  if (typeof copied === 'object' && copied.size > size)
    throw broken(checkpointPath(number + 1), 'it is missing, and "checkpoint" is its copy');
}

/** The public key of a checkpoint, as it is stored for auditors. */
export function publicKeyObject(key: Verifier): StoredObject {
  return { path: `keys/${keyName(key)}`, bytes: Buffer.from(`${formatVerifier(key)}\n`) };
}

/**
 * The log before the newest segment, from tiles and its last bundle.
 * @param storedSize  the size of the tree whose tiles are stored: a partial tile of a smaller tree
 * may have been deleted
 */
async function logBefore(store: ArchiveStore, size: number, storedSize: number): Promise<EntryLog> {
  const tiles = await readEdgeTiles(store, size, storedSize, broken);
  const count = size % tileWidth;
  if (count === 0) return new EntryLog(TiledTree.from(size, tiles));
  const path = bundlePath(tileAt(0, Math.floor(size / tileWidth), storedSize));
  const entries = parseBundle((await store.read(path)) ?? Buffer.alloc(0))?.slice(0, count);
  const leaves = tiles[0]?.hashes ?? new Uint8Array();
  if (entries?.length !== count || !equal(Buffer.concat(entries.map(leafHash)), leaves))
    throw broken(path, 'its entries differ from the newest checkpoint');
  return new EntryLog(TiledTree.from(size, tiles), entries);
}

/**
 * The segment that extends the log before it to the signed root. Segments of unfinished attempts do
 * not.
 */
async function committedSegment(
  store: ArchiveStore,
  before: EntryLog,
  newest: Checkpoint,
  codec: Codec | undefined,
): Promise<{ readonly log: EntryLog; readonly position: PositionLine }> {
  for (const { path, firstLeaf } of await segmentNames(store)) {
    if (firstLeaf !== before.size) continue;
    const bytes = await store.read(path);
    const log = before.copy();
    const position = bytes && (await appendLines(log, bytes, codec));
    if (position && log.size === newest.size && equal(log.root(), newest.root)) return { log, position };
  }
  throw broken(segmentPlace(before.size), 'no segment of this name leads to the root of the newest checkpoint');
}

/** @returns the position that ends the segment; undefined for another file */
async function appendLines(log: EntryLog, segment: Uint8Array, codec: Codec | undefined): Promise<PositionLine | undefined> {
  const lines = await readLines(segment, codec);
  for (const { facts, line } of lines ?? []) log.append(facts, line);
  const last = lines?.at(-1)?.facts;
  return last?.kind === 'position' ? last : undefined;
}

async function assertStored(store: ArchiveStore, objects: readonly StoredObject[]): Promise<void> {
  const stored = await Promise.all(objects.map(({ path }) => store.read(path)));
  for (const [i, { path, bytes }] of objects.entries())
    if (stored[i]?.equals(bytes) !== true) throw broken(path, stored[i] ? 'it differs from the newest checkpoint' : 'it is missing');
}

function broken(path: string, reason: string): WaybillError {
  return new WaybillError('archive_broken', `cannot continue the archive at "${path}": ${reason}; compare the archive with a copy`);
}
