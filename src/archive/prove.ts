/** Finds a record in an archive, and proves that the newest checkpoint contains it. */
import { uidBytes } from '../record/identity.ts';
import { checkpointNumber, checkpointPath, parseCheckpoint } from './checkpoint.ts';
import type { Checkpoint } from './checkpoint.ts';
import { parseBundle } from './entry.ts';
import { equal, hashBytes, inclusionRanges, sha256 } from './merkle.ts';
import type { InclusionProof } from './proof-file.ts';
import { parseSegmentPath, segmentLines } from './segment.ts';
import { openNote } from './signed-note.ts';
import type { ArchiveStore } from './store.ts';
import { bundlePath, rangeHash, tileAt, tilePath, tilesOf, tileWidth } from './tiles.ts';

/**
 * @param uid  16 bytes in base64url
 * @returns undefined when the archive has no such record
 * @throws ArchiveDamaged when an object on the way is missing or not what it should be
 */
export async function proveRecord(store: ArchiveStore, uid: string): Promise<InclusionProof | undefined> {
  const { note, checkpoint } = await newestCheckpoint(store);
  const found = await findEntry(store, uidBytes(uid), checkpoint.size);
  if (!found) return undefined;
  const ranges = inclusionRanges(found.index, checkpoint.size);
  const hashes = await readTiles(store, [...new Set(ranges.flatMap((range) => tilesOf(range, checkpoint.size)).map(tilePath))]);
  return {
    line: await findLine(store, found.index, found.entry),
    entry: found.entry,
    index: found.index,
    hashes: ranges.map((range) => rangeHash(range, checkpoint.size, (tile) => hashes.get(tilePath(tile)) ?? [])),
    checkpoint: note,
  };
}

/** An object that a proof needs is missing or not what it should be. */
export class ArchiveDamaged extends Error {
  constructor(path: string, reason: string) {
    super(`cannot use "${path}" of the archive: ${reason}`);
  }
}

async function newestCheckpoint(store: ArchiveStore): Promise<{ readonly note: Buffer; readonly checkpoint: Checkpoint }> {
  let number = 0;
  for await (const path of store.list('checkpoints/')) number = Math.max(number, checkpointNumber(path) ?? 0);
  const path = checkpointPath(Math.max(1, number));
  const bytes = await needed(store, path);
  const note = openNote(bytes, []);
  const checkpoint = typeof note === 'string' ? undefined : parseCheckpoint(note.text);
  if (!checkpoint) throw new ArchiveDamaged(path, 'it is not a checkpoint');
  return { note: bytes, checkpoint };
}

/** Reads the entries from the newest on. */
async function findEntry(
  store: ArchiveStore,
  uid: Uint8Array,
  size: number,
): Promise<{ readonly index: number; readonly entry: Buffer } | undefined> {
  for (let bundle = Math.ceil(size / tileWidth) - 1; bundle >= 0; bundle -= 1) {
    const path = bundlePath(tileAt(0, bundle, size));
    const entries = parseBundle(await needed(store, path));
    if (!entries) throw new ArchiveDamaged(path, 'it is not a bundle of entries');
    const at = entries.findIndex((entry) => equal(entry.subarray(1, 17), uid));
    const entry = entries[at];
    if (entry) return { index: bundle * tileWidth + at, entry };
  }
  return undefined;
}

/** The line stands in the last segment that begins at its leaf or before. */
async function findLine(store: ArchiveStore, index: number, entry: Buffer): Promise<Buffer> {
  const names = (await Array.fromAsync(store.list('segments/'))).flatMap((path) => parseSegmentPath(path) ?? []);
  const first = Math.max(...names.map(({ firstLeaf }) => firstLeaf).filter((leaf) => leaf <= index));
  for (const { path } of names.filter(({ firstLeaf }) => firstLeaf === first)) {
    const line = (await segmentLines(await needed(store, path)))[index - first];
    if (line && equal(sha256(line), entry.subarray(25))) return line;
  }
  throw new ArchiveDamaged(`segments/${String(first).padStart(16, '0')}-…`, `it has no line for leaf ${index}`);
}

async function readTiles(store: ArchiveStore, paths: readonly string[]): Promise<ReadonlyMap<string, readonly Uint8Array[]>> {
  const tiles = await Promise.all(paths.map(async (path) => [path, await needed(store, path)] as const));
  return new Map(
    tiles.map(([path, bytes]) => [
      path,
      Array.from({ length: bytes.length / hashBytes }, (_, i) => bytes.subarray(i * hashBytes, (i + 1) * hashBytes)),
    ]),
  );
}

async function needed(store: ArchiveStore, path: string): Promise<Buffer> {
  const bytes = await store.read(path);
  if (!bytes) throw new ArchiveDamaged(path, 'it is missing');
  return bytes;
}
