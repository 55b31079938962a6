/** Proves that the newest checkpoint of an archive contains a line, for one record or for each of many lines. */
import { WaybillError } from '../errors/errors.ts';
import { uidBytes } from '../record/identity.ts';
import { UidSet } from '../record/uid-set.ts';
import { type Checkpoint, checkpointPath, openCheckpoint, parseCosignaturePath, tokenNumber, tokenPath } from './checkpoint.ts';
import { isRecord, parseBundle, uidOf } from './entry.ts';
import { equal, hashBytes, inclusionRanges, leafHash, provesInclusion, sha256, type LeafRange } from './merkle.ts';
import type { LineRange } from './line.ts';
import { parseLine, type LineFacts } from './parse-line.ts';
import type { InclusionProof } from './proof-file.ts';
import { linesOf, SegmentError, segmentPlace, unpackSegment, type SegmentName } from './segment.ts';
import type { ArchiveStore } from './store.ts';
import { checkpointNumbers, segmentNames } from './stored-log.ts';
import { TiledTree } from './tiled-tree.ts';
import { bundlePath, completeRoot, edgeTiles, rangeHash, tileAt, tilePath, tilesOf, tileWidth, type Tile, type TileId } from './tiles.ts';
import { indexNumber, indexPath, indexWidth, searchIndex } from './uid-index.ts';

/** Files of the index that are requested at once, 1 MiB each. */
const indexesAtOnce = 8;
/** 8 KiB each. */
const maxTiles = 2_048;
/** Bundles that are requested at once, 15 KiB each. */
const bundlesAtOnce = 16;
/** Places before a line where its segment may begin: anyone with the storage may add files. */
const maxPlaces = 100;

/** Lines whose segments cannot be read. */
export interface LeftOut extends LeafRange {
  /**
   * `removed`: the oldest segments are missing, as retention leaves an archive. `missing`: other segments are.
   * `altered`: files have their names, but not the lines of the log.
   */
  readonly result: 'removed' | 'missing' | 'altered';
  /** What is wrong with the first of these files. */
  readonly problem: string | undefined;
}

/** The lines of a segment, from `first` to `last`: the first line of an archive is 1. */
export interface ProvenSegment extends LineRange {
  readonly path: string;
  readonly facts: readonly LineFacts[];
}

interface Newer {
  readonly path: string;
  /** The number of its lines that cannot be proven; undefined if nobody can tell, because it does not follow the checkpoint before it. */
  readonly lines: number | undefined;
}

export class Prover {
  /** The number of lines that can be proven. */
  readonly size: number;
  /** A newer checkpoint that cannot be used: its tiles are missing or do not have its root, or the file is no checkpoint. */
  readonly newer: Newer | undefined;
  readonly #store: ArchiveStore;
  readonly #note: Buffer;
  readonly #checkpoint: Checkpoint;
  /** In the order of their first leaves. */
  readonly #segments: readonly SegmentName[];
  /** The last tile of each level, by path: the signed root proves them. */
  readonly #edge: ReadonlyMap<string, Uint8Array>;
  /** Other tiles, by path. */
  readonly #tiles = new Map<string, Promise<Uint8Array>>();
  /** The hash that was computed last for each place of a proof, from its end: most ranges of neighbouring lines are equal. */
  readonly #hashes = new Map<number, { readonly range: LeafRange; readonly hash: Uint8Array }>();
  /** Why the first segment since it was reset could not be used. */
  #problem: string | undefined;
  /** The bundle that was read last: lines are proven in order. */
  #last: { readonly bundle: number; readonly entries: readonly Buffer[] } | undefined;

  private constructor(store: ArchiveStore, { note, checkpoint, edge, newer }: Newest, segments: readonly SegmentName[]) {
    this.size = checkpoint.size;
    this.newer = newer;
    this.#store = store;
    this.#note = note;
    this.#checkpoint = checkpoint;
    this.#edge = new Map(edge.map((tile) => [tilePath(tile), tile.hashes]));
    this.#segments = segments;
  }

  /**
   * @throws WaybillError `archive_broken`, as every method does, for a missing or altered object
   */
  static async open(store: ArchiveStore): Promise<Prover> {
    const newest = await newestOf(store);
    // Listed after the checkpoint: a daemon stores a segment before its checkpoint, so the list has every committed segment.
    const segments = (await segmentNames(store)).toSorted((a, b) => a.firstLeaf - b.firstLeaf);
    return new Prover(store, newest, segments);
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

  /**
   * Proves the same line to the first checkpoint with a time stamp or a cosignature that covers it.
   * @param folders  `timestamps/`, `cosignatures/`
   * @returns with this time stamp, or with the cosignatures in the checkpoint; undefined if there is none
   */
  async stamped({ line, entry, index }: InclusionProof, folders: readonly string[]): Promise<InclusionProof | undefined> {
    const paths = (await Promise.all(folders.map((folder) => Array.fromAsync(this.#store.list(folder))))).flat();
    const stamped = new Set(paths.map((path) => tokenNumber(path) ?? parseCosignaturePath(path)?.number));
    const numbers = (await checkpointNumbers(this.#store)).filter((number) => stamped.has(number));
    let [first, end] = [0, numbers.length];
    while (first < end) {
      const middle = Math.floor((first + end) / 2);
      if (((await this.#noteOf(numbers[middle]))?.checkpoint.size ?? 0) > index) end = middle;
      else first = middle + 1;
    }
    const number = numbers[first];
    const found = await this.#noteOf(number);
    if (number === undefined || !found || found.checkpoint.size > this.size) return undefined;
    const { path, note, checkpoint } = found;
    const timeStamp = paths.includes(tokenPath(number)) ? await this.#store.read(tokenPath(number)) : undefined;
    const cosigned = timeStamp ? [] : paths.filter((each) => parseCosignaturePath(each)?.number === number).sort();
    const notes = await Promise.all(cosigned.map((each) => needed(this.#store, each)));
    const lines = notes.map((each) => each.subarray(each.indexOf(note) === 0 ? note.length : each.length));
    const proof = await this.#proof(index, entry, line, checkpoint.size);
    if (!provesInclusion({ index, hash: leafHash(entry) }, checkpoint, proof.hashes))
      throw unusable(path, 'its root differs from that of the tiles');
    return { ...proof, checkpoint: Buffer.concat([note, ...lines]), timeStamp };
  }

  async #noteOf(number: number | undefined): Promise<StoredNote | undefined> {
    return number === undefined ? undefined : noteAt(this.#store, checkpointPath(number));
  }

  /** The uids of the records among the first `lines` lines. */
  async uids(lines: number): Promise<UidSet> {
    const found = new UidSet();
    for (let bundle = 0; bundle * tileWidth < lines; bundle += bundlesAtOnce) {
      const numbers = Array.from({ length: bundlesAtOnce }, (_, i) => bundle + i).filter((number) => number * tileWidth < lines);
      const entries = (await Promise.all(numbers.map((number) => this.#signedEntries(number)))).flat();
      const records = entries.slice(0, lines - bundle * tileWidth).filter((entry) => isRecord(entry));
      found.addBytes(Buffer.concat(records.map(uidOf)));
    }
    return found;
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

  /**
   * The lines of the archive that `isWanted` selects, in order. Memory does not grow with their number.
   * @param onLeftOut  called in order for each range of lines whose segments are missing or altered
   */
  async *lines(isWanted: (facts: LineFacts, line: Buffer) => boolean, onLeftOut: (part: LeftOut) => void): AsyncGenerator<InclusionProof> {
    for await (const { firstLeaf, lines } of this.#committed(onLeftOut))
      for (const [i, { line, entry }] of lines.entries()) {
        const facts = parseLine(line);
        if (facts && isWanted(facts, line)) yield await this.#proof(firstLeaf + i, entry, line);
      }
  }

  /** The segments of the archive, in order. @param onLeftOut  as for `lines` */
  async *segments(onLeftOut: (part: LeftOut) => void): AsyncGenerator<ProvenSegment> {
    for await (const { path, firstLeaf, lines } of this.#committed(onLeftOut))
      yield { path, first: firstLeaf + 1, last: firstLeaf + lines.length, facts: lines.flatMap(({ line }) => parseLine(line) ?? []) };
  }

  async *#committed(onLeftOut: (part: LeftOut) => void): AsyncGenerator<SegmentName & { readonly lines: readonly CommittedLine[] }> {
    const { size } = this.#checkpoint;
    let next = 0;
    const leaveOut = (to: number): void => {
      const absent = next === 0 && to < size ? 'removed' : 'missing';
      if (next < to) onLeftOut({ from: next, to, result: this.#problem === undefined ? absent : 'altered', problem: this.#problem });
      this.#problem = undefined;
    };
    for (const segment of this.#segments) {
      // A committed segment ends where another begins: none begins before `next` and ends after it.
      if (segment.firstLeaf < next || segment.firstLeaf >= size) continue;
      const lines = await this.#committedLines(segment);
      if (lines.length === 0) continue;
      leaveOut(segment.firstLeaf);
      yield { ...segment, lines };
      next = segment.firstLeaf + lines.length;
    }
    leaveOut(size);
  }

  /** @param size  of the tree: that of the newest checkpoint, or a smaller one, whose subtrees it has */
  async #proof(index: number, entry: Buffer, line: Buffer, size = this.size): Promise<InclusionProof> {
    const ranges = inclusionRanges(index, size);
    const hashes: Uint8Array[] = [];
    for (const [i, range] of ranges.entries())
      hashes.push(this.#known(range, ranges.length - i) ?? (await this.#hash(range, ranges.length - i)));
    return { line, entry, index, hashes, checkpoint: this.#note };
  }

  #known({ from, to }: LeafRange, place: number): Uint8Array | undefined {
    const last = this.#hashes.get(place);
    return last?.range.from === from && last.range.to === to ? last.hash : undefined;
  }

  async #hash(range: LeafRange, place: number): Promise<Uint8Array> {
    const { size } = this.#checkpoint;
    const tiles = new Map<string, Uint8Array>();
    for (const tile of tilesOf(range, size)) tiles.set(tilePath(tile), await this.#tile(tile));
    const hash = rangeHash(range, size, (tile) => tiles.get(tilePath(tile)) ?? new Uint8Array());
    this.#hashes.set(place, { range, hash });
    return hash;
  }

  /** The hashes of a tile that lead to the signed root. */
  async #tile(tile: TileId): Promise<Uint8Array> {
    const path = tilePath(tile);
    const edge = this.#edge.get(path);
    if (edge) return edge;
    if (this.#tiles.size >= maxTiles) this.#tiles.clear();
    const read = this.#tiles.get(path) ?? this.#readTile(tile, path);
    this.#tiles.set(path, read);
    return read;
  }

  /** A complete tile. */
  async #readTile({ level, index }: TileId, path: string): Promise<Uint8Array> {
    const parent = await this.#tile(tileAt(level + 1, Math.floor(index / tileWidth), this.#checkpoint.size));
    const hashes = await needed(this.#store, path);
    const root = hashAt(parent, index % tileWidth);
    if (hashes.length !== tileWidth * hashBytes || !equal(completeRoot(hashes), root))
      throw unusable(path, 'it does not lead to the signed root');
    return hashes;
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

  /** Whoever may write files may change entries and segments alike: the tile shows it. */
  async #signedEntries(bundle: number): Promise<readonly Buffer[]> {
    const tile = tileAt(0, bundle, this.#checkpoint.size);
    const [entries, hashes] = await Promise.all([this.#readBundle(bundle), this.#tile(tile)]);
    if (entries.length !== tile.width || entries.some((entry, i) => !equal(leafHash(entry), hashAt(hashes, i))))
      throw unusable(bundlePath(tile), 'its entries do not lead to the signed root');
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
    throw unusable(segmentPlace(firsts[0] ?? 0), this.#problem ?? `it is missing, or has no line for leaf ${index}`);
  }

  /**
   * Empty for a file that does not have the lines of the log, such as a segment of an unfinished attempt.
   * The position as the last line shows that it is a complete segment: a part would hide the others.
   */
  async #committedLines(segment: SegmentName): Promise<readonly CommittedLine[]> {
    const lines = await this.#read(segment.path);
    if (lines.length === 0) return [];
    const found = await this.#withEntries(lines, segment.firstLeaf);
    if (found.length === lines.length && parseLine(lines.at(-1) ?? Buffer.alloc(0))?.kind === 'position') return found;
    this.#problem ??= `"${segment.path}" does not have the signed lines`;
    return [];
  }

  /** Ends before the first line that is not the one of its leaf. */
  async #withEntries(lines: readonly Buffer[], firstLeaf: number): Promise<readonly CommittedLine[]> {
    const found: CommittedLine[] = [];
    const end = Math.min(firstLeaf + lines.length, this.#checkpoint.size);
    for (let bundle = Math.floor(firstLeaf / tileWidth); bundle * tileWidth < end; bundle += bundlesAtOnce) {
      const numbers = Array.from({ length: bundlesAtOnce }, (_, i) => bundle + i).filter((number) => number * tileWidth < end);
      const bundles = await Promise.all(numbers.map((number) => this.#signedEntries(number)));
      for (const entry of bundles.flat().slice(Math.max(0, firstLeaf - bundle * tileWidth), end - bundle * tileWidth)) {
        const line = lines[found.length];
        if (!line || !isOf(entry, line)) return found;
        found.push({ line, entry });
      }
    }
    return found;
  }

  /** Empty for a file that is not a segment. */
  async #read(path: string): Promise<readonly Buffer[]> {
    const bytes = await this.#store.read(path);
    if (!bytes) return [];
    try {
      return [...linesOf(await unpackSegment(bytes))];
    } catch (thrown) {
      if (!(thrown instanceof SegmentError)) throw thrown;
      this.#problem ??= `"${path}" is not a segment: ${thrown.message}`;
      return [];
    }
  }
}

interface CommittedLine {
  readonly line: Buffer;
  readonly entry: Buffer;
}

interface Newest {
  readonly note: Buffer;
  readonly checkpoint: Checkpoint;
  readonly edge: readonly Tile[];
  readonly newer: Newer | undefined;
}

/**
 * The newest checkpoint whose tiles are stored. A writer stores them between the numbered checkpoint and its
 * copy `checkpoint`. So at most the newest checkpoint may lack tiles, and only while the copy is older: an
 * old copy must not hide more lines. The copy is newer than the list if a daemon added a checkpoint after the listing.
 * Each checkpoint has more lines than the one before it. A newest file that has not may hide any number of lines.
 */
async function newestOf(store: ArchiveStore): Promise<Newest> {
  const [last = 0, former = 0] = (await checkpointNumbers(store)).toReversed();
  const paths = ['checkpoint', checkpointPath(last), checkpointPath(former)];
  const notes = await Promise.all(paths.map((path) => noteAt(store, path)));
  const [copy = 0, newest = 0, before = 0] = notes.map((note) => note?.checkpoint.size);
  const follows = newest > before || last === 0;
  const hasFormer = last < 2 || (former === last - 1 && before > 0);
  if (!follows && !hasFormer) throw unusable(checkpointPath(last), 'it does not follow the checkpoint before it');
  const leastSize = hasFormer ? Math.min(follows ? newest : Infinity, Math.max(copy, before)) : newest;
  const [largest, ...others] = notes.flatMap((note) => note ?? []).sort((x, y) => y.checkpoint.size - x.checkpoint.size);
  if (!largest) throw unusable('checkpoint', 'it is missing, or not a checkpoint');
  for (const { note, checkpoint } of [largest, ...others].filter((each) => each.checkpoint.size >= leastSize)) {
    const edge = await edgeOf(store, checkpoint);
    const lines = largest.checkpoint.size - checkpoint.size;
    if (edge && !follows) return { note, checkpoint, edge, newer: { path: checkpointPath(last), lines: undefined } };
    if (edge) return { note, checkpoint, edge, newer: lines > 0 ? { path: largest.path, lines } : undefined };
  }
  throw unusable(largest.path, 'tiles of it are missing, or do not have its root');
}

interface StoredNote extends Pick<Newest, 'note' | 'checkpoint'> {
  readonly path: string;
}

async function noteAt(store: ArchiveStore, path: string): Promise<StoredNote | undefined> {
  const note = await store.read(path);
  const checkpoint = openCheckpoint(note, []);
  return note && typeof checkpoint === 'object' ? { path, note, checkpoint } : undefined;
}

/**
 * The last tile of each level of the tree of a checkpoint. All before them, and before the last entries, are stored earlier.
 * @returns undefined if one of them is missing, or if they do not have the signed root
 */
async function edgeOf(store: ArchiveStore, { size, root }: Checkpoint): Promise<readonly Tile[] | undefined> {
  const tiles = edgeTiles(size);
  const paths = [bundlePath(tileAt(0, Math.ceil(size / tileWidth) - 1, size)), ...tiles.map(tilePath)];
  const [entries, ...found] = await Promise.all(paths.map((path) => store.read(path)));
  const edge = tiles.flatMap((tile, i) => (found[i]?.length === tile.width * hashBytes ? { ...tile, hashes: found[i] } : []));
  return entries && edge.length === tiles.length && equal(TiledTree.from(size, edge).root(), root) ? edge : undefined;
}

function isOfUid(entry: Uint8Array, uid: Uint8Array): boolean {
  return isRecord(entry) && equal(uidOf(entry), uid);
}

/** An entry ends with the SHA-256 of its line. */
function isOf(entry: Buffer, line: Uint8Array): boolean {
  return equal(sha256(line), entry.subarray(25));
}

function hashAt(hashes: Uint8Array, i: number): Uint8Array {
  return hashes.subarray(i * hashBytes, (i + 1) * hashBytes);
}

async function needed(store: ArchiveStore, path: string): Promise<Buffer> {
  const bytes = await store.read(path);
  if (!bytes) throw unusable(path, 'it is missing');
  return bytes;
}

function unusable(path: string, reason: string): WaybillError {
  return new WaybillError('archive_broken', `cannot use "${path}" of the archive: ${reason}; see "waybill archive verify"`);
}
