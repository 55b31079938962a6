/** Proves that the newest checkpoint of an archive contains a line, for one record or for each of many lines. */
import { WaybillError } from '../errors.ts';
import { uidBytes } from '../record/identity.ts';
import { checkpointPath, parseCheckpoint } from './checkpoint.ts';
import type { Checkpoint } from './checkpoint.ts';
import { isRecord, parseBundle, uidOf } from './entry.ts';
import { equal, inclusionRanges, sha256 } from './merkle.ts';
import { parseLine } from './parse-line.ts';
import type { LineFacts } from './parse-line.ts';
import type { InclusionProof } from './proof-file.ts';
import { linesOf, parseSegmentPath, SegmentError, unpackSegment } from './segment.ts';
import type { SegmentName } from './segment.ts';
import { openNote } from './signed-note.ts';
import type { ArchiveStore } from './store.ts';
import { checkpointNumbers } from './stored-log.ts';
import { bundlePath, edgeTiles, rangeHash, tileAt, tilePath, tilesOf, tileWidth } from './tiles.ts';
import type { TileId } from './tiles.ts';
import { indexNumber, indexPath, indexWidth, searchIndex } from './uid-index.ts';

/** Files of the index that are requested at once, 1 MiB each. */
const indexesAtOnce = 8;
/** 8 KiB each. */
const maxTiles = 2_048;
/** Bundles that are requested at once, 15 KiB each. */
const bundlesAtOnce = 16;
/** Places before a line where its segment may begin: anyone with the storage may add files. */
const maxPlaces = 100;

export class Prover {
  /** A newer checkpoint whose lines cannot be proven, because tiles of it are missing. */
  readonly newer: string | undefined;
  readonly #store: ArchiveStore;
  readonly #note: Buffer;
  readonly #checkpoint: Checkpoint;
  /** In the order of their first leaves. */
  readonly #segments: readonly SegmentName[];
  /** By path. */
  readonly #tiles = new Map<string, Uint8Array>();
  /** Why the last segment could not be read. */
  #problem: string | undefined;
  /** The bundle that was read last: lines are proven in order. */
  #last: { readonly bundle: number; readonly entries: readonly Buffer[] } | undefined;

  private constructor(store: ArchiveStore, { note, checkpoint, newer }: Newest, segments: readonly SegmentName[]) {
    this.newer = newer;
    this.#store = store;
    this.#note = note;
    this.#checkpoint = checkpoint;
    this.#segments = segments;
  }

  /**
   * @throws WaybillError `archive_broken`, as every method does, for a missing or altered object
   */
  static async open(store: ArchiveStore): Promise<Prover> {
    const newest = await newestOf(store);
    // A daemon may add segments meanwhile: those of a checkpoint are stored before it.
    const segments = (await Array.fromAsync(store.list('segments/'))).flatMap((each) => parseSegmentPath(each) ?? []);
    return new Prover(
      store,
      newest,
      segments.sort((a, b) => a.firstLeaf - b.firstLeaf),
    );
  }

  /**
   * @param uid  16 bytes in base64url
   * @param onSearch  called before every entry is read, because the index does not lead to the record
   * @returns undefined when the archive has no such record
   */
  async record(uid: string, onSearch: () => void = () => undefined): Promise<InclusionProof | undefined> {
    const bytes = uidBytes(uid);
    const complete = Math.floor(this.#checkpoint.size / indexWidth) * indexWidth;
    const indexed = (await this.#leafByEntries(bytes, complete)) ?? (await this.#leafByIndex(bytes));
    if (indexed === undefined && complete > 0) onSearch();
    const index = indexed ?? (await this.#leafByEntries(bytes, 0));
    if (index === undefined) return undefined;
    const entry = await this.#entry(index);
    return this.#proof(index, entry, await this.#line(index, entry));
  }

  /** Reads entries from the newest back to leaf `from`, a multiple of 256. */
  async #leafByEntries(uid: Uint8Array, from: number): Promise<number | undefined> {
    for (let bundle = Math.ceil(this.#checkpoint.size / tileWidth) - 1; bundle >= from / tileWidth; bundle -= 1) {
      const at = (await this.#bundle(bundle)).findIndex((entry) => isOfUid(entry, uid));
      if (at >= 0) return bundle * tileWidth + at;
    }
    return undefined;
  }

  /** A leaf that an index names counts only with the entry of this record. */
  async #leafByIndex(uid: Uint8Array): Promise<number | undefined> {
    // Whoever may write files may give the checkpoint any size: only files that exist are read.
    const stored = (await Array.fromAsync(this.#store.list('index/'))).flatMap((path) => indexNumber(path) ?? []);
    const complete = stored.filter((number) => (number + 1) * indexWidth <= this.#checkpoint.size).sort((a, b) => b - a);
    for (let at = 0; at < complete.length; at += indexesAtOnce) {
      const numbers = complete.slice(at, at + indexesAtOnce);
      const indexes = await Promise.all(numbers.map((number) => this.#store.read(indexPath(number))));
      for (const [i, rows] of indexes.entries()) {
        const found = rows && searchIndex(rows, uid);
        const leaf = found === undefined ? undefined : (numbers[i] ?? 0) * indexWidth + found;
        if (leaf !== undefined && isOfUid(await this.#entry(leaf), uid)) return leaf;
      }
    }
    return undefined;
  }

  /** The lines of the archive that `isWanted` selects, in order. Memory does not grow with their number. */
  async *lines(isWanted: (facts: LineFacts) => boolean): AsyncGenerator<InclusionProof> {
    let next = 0;
    for (const segment of this.#segments) {
      if (segment.firstLeaf !== next) continue;
      const lines = await this.#committedLines(segment);
      for (const [i, { line, entry }] of lines.entries()) {
        const facts = parseLine(line);
        if (facts && isWanted(facts)) yield await this.#proof(segment.firstLeaf + i, entry, line);
      }
      next += lines.length;
      if (lines.length > 0) this.#problem = undefined;
    }
    if (next !== this.#checkpoint.size) throw unusable(segmentName(next), this.#problem ?? `the lines from leaf ${next} on are missing`);
  }

  async #proof(index: number, entry: Buffer, line: Buffer): Promise<InclusionProof> {
    const { size } = this.#checkpoint;
    const ranges = inclusionRanges(index, size);
    for (const tile of ranges.flatMap((range) => tilesOf(range, size))) await this.#load(tile);
    const hashes = ranges.map((range) => rangeHash(range, size, (tile) => this.#tiles.get(tilePath(tile)) ?? new Uint8Array()));
    if (this.#tiles.size > maxTiles) this.#tiles.clear();
    return { line, entry, index, hashes, checkpoint: this.#note };
  }

  async #load(tile: TileId): Promise<void> {
    const path = tilePath(tile);
    if (this.#tiles.has(path)) return;
    this.#tiles.set(path, await needed(this.#store, path));
  }

  async #bundle(bundle: number): Promise<readonly Buffer[]> {
    if (this.#last?.bundle === bundle) return this.#last.entries;
    this.#last = { bundle, entries: await this.#readBundle(bundle) };
    return this.#last.entries;
  }

  async #readBundle(bundle: number): Promise<readonly Buffer[]> {
    const path = bundlePath(tileAt(0, bundle, this.#checkpoint.size));
    const entries = parseBundle(await needed(this.#store, path));
    if (!entries) throw unusable(path, 'it is not a bundle of entries');
    return entries;
  }

  async #entry(index: number): Promise<Buffer> {
    const entry = (await this.#bundle(Math.floor(index / tileWidth)))[index % tileWidth];
    if (!entry) throw unusable(bundlePath({ index: Math.floor(index / tileWidth), width: tileWidth }), `it has no entry for leaf ${index}`);
    return entry;
  }

  /** The line is in the last segment of the log that starts at its leaf or earlier. A planted file may start between. */
  async #line(index: number, entry: Buffer): Promise<Buffer> {
    const firsts = [...new Set(this.#segments.map(({ firstLeaf }) => firstLeaf))].filter((first) => first <= index).reverse();
    for (const first of firsts.slice(0, maxPlaces)) {
      for (const { path } of this.#segments.filter(({ firstLeaf }) => firstLeaf === first)) {
        const line = (await this.#read(path))[index - first];
        if (line && isOf(entry, line)) return line;
      }
    }
    throw unusable(segmentName(firsts[0] ?? 0), this.#problem ?? `it has no line for leaf ${index}`);
  }

  /**
   * Empty for a file that does not have the lines of the log, such as a segment of an unfinished attempt.
   * The position as the last line shows that it is a complete segment: a part would hide the others.
   */
  async #committedLines({ path, firstLeaf }: SegmentName): Promise<readonly { readonly line: Buffer; readonly entry: Buffer }[]> {
    const lines = await this.#read(path);
    const end = firstLeaf + lines.length;
    if (lines.length === 0 || end > this.#checkpoint.size) return [];
    const found: { line: Buffer; entry: Buffer }[] = [];
    for (let bundle = Math.floor(firstLeaf / tileWidth); bundle * tileWidth < end; bundle += bundlesAtOnce) {
      const numbers = Array.from({ length: bundlesAtOnce }, (_, i) => bundle + i).filter((number) => number * tileWidth < end);
      const bundles = await Promise.all(numbers.map((number) => this.#readBundle(number)));
      for (const entry of bundles.flat().slice(Math.max(0, firstLeaf - bundle * tileWidth), end - bundle * tileWidth)) {
        const line = lines[found.length];
        if (!line || !isOf(entry, line)) return [];
        found.push({ line, entry });
      }
    }
    return found.length === lines.length && parseLine(lines.at(-1) ?? Buffer.alloc(0))?.kind === 'position' ? found : [];
  }

  /** Empty for a file that is not a segment. */
  async #read(path: string): Promise<readonly Buffer[]> {
    const bytes = await this.#store.read(path);
    if (!bytes) {
      this.#problem = 'it is missing';
      return [];
    }
    try {
      return [...linesOf(await unpackSegment(bytes))];
    } catch (thrown) {
      if (!(thrown instanceof SegmentError)) throw thrown;
      this.#problem = thrown.message;
      return [];
    }
  }
}

interface Newest {
  readonly note: Buffer;
  readonly checkpoint: Checkpoint;
  readonly newer: string | undefined;
}

/**
 * The newest checkpoint whose tiles are stored. A writer stores them between the numbered checkpoint and its
 * copy `checkpoint`; a copy that someone replaced by an older one must not hide lines.
 */
async function newestOf(store: ArchiveStore): Promise<Newest> {
  const paths = ['checkpoint', checkpointPath((await checkpointNumbers(store)).at(-1) ?? 0)];
  const notes = (await Promise.all(paths.map((path) => noteAt(store, path)))).flatMap((note) => note ?? []);
  const [largest, ...others] = notes.sort((x, y) => y.checkpoint.size - x.checkpoint.size);
  if (!largest) throw unusable('checkpoint', 'it is missing, or not a checkpoint');
  for (const stored of [largest, ...others])
    if (await hasTiles(store, stored.checkpoint.size)) return { ...stored, newer: stored === largest ? undefined : largest.path };
  return { ...largest, newer: undefined };
}

interface StoredNote extends Pick<Newest, 'note' | 'checkpoint'> {
  readonly path: string;
}

async function noteAt(store: ArchiveStore, path: string): Promise<StoredNote | undefined> {
  const note = await store.read(path);
  const opened = note && openNote(note, []);
  const checkpoint = typeof opened === 'object' ? parseCheckpoint(opened.text) : undefined;
  return note && checkpoint && { path, note, checkpoint };
}

/** The last entries and tiles: all before them are stored earlier. */
async function hasTiles(store: ArchiveStore, size: number): Promise<boolean> {
  const last = tileAt(0, Math.ceil(size / tileWidth) - 1, size);
  const paths = [bundlePath(last), ...edgeTiles(size).map(tilePath)];
  const found = await Promise.all(paths.map((path) => store.read(path)));
  return found.every((bytes) => bytes !== undefined);
}

function isOfUid(entry: Uint8Array, uid: Uint8Array): boolean {
  return isRecord(entry) && equal(uidOf(entry), uid);
}

/** An entry ends with the SHA-256 of its line. */
function isOf(entry: Buffer, line: Uint8Array): boolean {
  return equal(sha256(line), entry.subarray(25));
}

async function needed(store: ArchiveStore, path: string): Promise<Buffer> {
  const bytes = await store.read(path);
  if (!bytes) throw unusable(path, 'it is missing');
  return bytes;
}

function segmentName(firstLeaf: number): string {
  return `segments/${String(firstLeaf).padStart(16, '0')}-…`;
}

function unusable(path: string, reason: string): WaybillError {
  return new WaybillError('archive_broken', `cannot use "${path}" of the archive: ${reason}; see "waybill archive verify"`);
}
