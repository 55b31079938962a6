/**
 * The records of an archive, in order, for a replay. Each segment is verified against the signed
 * checkpoints before a record of it is returned.
 */
import type { KeyObject } from 'node:crypto';
import { WaybillError } from '../errors/errors.ts';
import type { ArchivedPart, ArchivedRecords, Entry, Limit, LineRange } from '../model/journal.ts';
import type { Micros } from '../model/time.ts';
import { readRecord } from '../record/read.ts';
import { checkpointPath } from './checkpoint.ts';
import type { Checkpoint } from './checkpoint.ts';
import { formatEntry } from './entry.ts';
import { equal, leafHash } from './merkle.ts';
import { parseLine, parseRecordLine } from './parse-line.ts';
import type { ArchivedRecord } from './parse-line.ts';
import { linesOf, parseSegmentPath, SegmentError, unpackSegment } from './segment.ts';
import type { ArchiveStore } from './store.ts';
import { checkpointNumbers, readCheckpoint, readEdgeTiles } from './stored-log.ts';
import { TiledTree } from './tiled-tree.ts';

/** Entries of this journal after `seq` are left out: the sink receives them from the journal. */
export interface JournalEnd {
  readonly journal: string;
  readonly seq: number;
}

/** Closed with the reader. */
type OpenStore = ArchiveStore & Partial<AsyncDisposable>;

/** Lines with the numbers after `after`, up to and including `through`: a verified segment, or lines that cannot be read. */
interface Part extends LineRange {
  /** Undefined for lines that cannot be read. */
  readonly entries?: readonly ArchivedEntry[];
  /** Set when a file is there, but none leads to the signed root. */
  readonly isAltered?: boolean;
}

export class ArchivedRecordReader implements ArchivedRecords {
  readonly origin: string;
  readonly lines: number;
  readonly #store: OpenStore;
  readonly #keys: readonly KeyObject[];
  readonly #end: JournalEnd;
  readonly #newest: number;
  /** Paths by their first leaf: more than one if an attempt was not finished. */
  readonly #segments: ReadonlyMap<number, readonly string[]>;
  /** The first leaves, ascending. */
  readonly #leaves: readonly number[];
  /** By the number of a checkpoint that a search has read. */
  readonly #sizes = new Map<number, number>();
  /** The tree of checkpoint `number`. */
  #at: { readonly number: number; readonly tree: TiledTree } = { number: 0, tree: TiledTree.empty() };
  #segment: Part = { after: 0, through: 0 };

  private constructor(
    store: OpenStore,
    keys: readonly KeyObject[],
    end: JournalEnd,
    newest: number,
    { origin, size }: Pick<Checkpoint, 'origin' | 'size'>,
    segments: readonly string[],
  ) {
    this.#store = store;
    this.#keys = keys;
    this.#end = end;
    this.#newest = newest;
    this.origin = origin;
    this.lines = size;
    const named = segments.flatMap((path) => parseSegmentPath(path) ?? []).filter(({ firstLeaf }) => firstLeaf < size);
    this.#segments = new Map(
      [...Map.groupBy(named, ({ firstLeaf }) => firstLeaf)].map(([leaf, names]) => [leaf, names.map(({ path }) => path)]),
    );
    this.#leaves = [...this.#segments.keys()].sort((a, b) => a - b);
  }

  /**
   * @param keys  the signing key of the archive, then the previous key if there is one
   * @throws WaybillError `archive_broken`, as `read` does, for a missing or altered object
   */
  static async open(store: OpenStore, keys: readonly KeyObject[], end: JournalEnd): Promise<ArchivedRecordReader> {
    const newest = (await checkpointNumbers(store)).at(-1);
    if (newest === undefined) return new ArchivedRecordReader(store, keys, end, 0, { origin: '', size: 0 }, []);
    const { checkpoint } = await readCheckpoint(store, newest, keys, broken);
    return new ArchivedRecordReader(store, keys, end, newest, checkpoint, await Array.fromAsync(store.list('segments/')));
  }

  async read(after: number, { records, bytes }: Limit, skippedThrough?: number): Promise<ArchivedPart> {
    const found: Entry[] = [];
    const missing: LineRange[] = [];
    const end = skippedThrough ?? this.lines;
    let length = 0;
    let at = after;
    while (found.length < records && at < end) {
      let part: Part;
      try {
        part = await this.#partAfter(at, skippedThrough !== undefined);
      } catch (thrown) {
        // The records before an object that cannot be read are returned first.
        if (found.length > 0) break;
        throw thrown;
      }
      const through = Math.min(part.through, end);
      if (!part.entries) missing.push({ after: at, through });
      for (const entry of part.entries ?? []) {
        if (entry.seq <= at || entry.seq > end) continue;
        length += entry.bytes.length;
        const last = found.at(-1);
        if (last && (found.length === records || length > bytes))
          return { entries: found, through: last.seq, missing: missing.filter((range) => range.after < last.seq) };
        found.push(entry);
      }
      at = through;
    }
    return { entries: found, through: at, missing };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]?.();
  }

  /** @throws WaybillError `archive_broken`, unless `isSkipped`, for an altered segment, and for missing ones that no segment follows */
  async #partAfter(after: number, isSkipped: boolean): Promise<Part> {
    if (this.#segment.after <= after && after < this.#segment.through) return this.#segment;
    const { number, size } = await this.#lastUpTo(after);
    const part = await this.#part(number, size, await this.#checkpoint(number + 1));
    if (part.entries) this.#segment = part;
    else if (!isSkipped && (part.isAltered || part.through === this.lines)) {
      const reason = part.isAltered
        ? `no segment of this name leads to the root that the checkpoint of ${part.through} lines signs`
        : 'it is missing, and no segment follows';
      throw broken(`segments/${String(size).padStart(16, '0')}-…`, reason);
    }
    return part;
  }

  /** The segment that extends the tree of checkpoint `number` to the root of the next checkpoint. */
  async #part(number: number, after: number, to: Checkpoint): Promise<Part> {
    let isAltered = false;
    for (const path of this.#segments.get(after) ?? []) {
      const bytes = await this.#store.read(path);
      if (!bytes) continue;
      const tree = (await this.#treeAt(number)).copy();
      const entries = await this.#entries(bytes, tree);
      tree.takeTiles();
      if (entries && tree.size === to.size && equal(tree.root(), to.root)) {
        this.#at = { number: number + 1, tree };
        return { after, through: to.size, entries };
      }
      isAltered = true;
    }
    return { after, through: isAltered ? to.size : await this.#endOfMissing(after), isAltered };
  }

  /** The line before the next segment. A name inside a signed segment is the name of none. */
  async #endOfMissing(after: number): Promise<number> {
    const next = this.#leaves[indexAfter(this.#leaves, after)];
    if (next === undefined) return this.lines;
    const { number, size } = await this.#lastUpTo(next);
    return size === next ? next : (await this.#checkpoint(number + 1)).size;
  }

  async #checkpoint(number: number): Promise<Checkpoint> {
    return (await readCheckpoint(this.#store, number, this.#keys, broken)).checkpoint;
  }

  /** The last checkpoint that has at most `size` lines; 0: the empty tree. */
  async #lastUpTo(size: number): Promise<{ readonly number: number; readonly size: number }> {
    if (this.#at.tree.size === size) return { number: this.#at.number, size };
    let [low, high] = [0, this.#newest];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if ((await this.#sizeOf(middle)) <= size) low = middle;
      else high = middle;
    }
    return { number: low, size: await this.#sizeOf(low) };
  }

  async #sizeOf(number: number): Promise<number> {
    const size = number === 0 ? 0 : (this.#sizes.get(number) ?? (await this.#checkpoint(number)).size);
    this.#sizes.set(number, size);
    return size;
  }

  /** The tree of a checkpoint, from its tiles unless it was just read. */
  async #treeAt(number: number): Promise<TiledTree> {
    if (this.#at.number === number) return this.#at.tree;
    if (number === 0) return TiledTree.empty();
    const { size, root } = await this.#checkpoint(number);
    const tree = TiledTree.from(size, await readEdgeTiles(this.#store, size, this.lines, broken));
    if (!equal(tree.root(), root)) throw broken(checkpointPath(number), 'the tiles do not have the root that it signs');
    return tree;
  }

  /** @returns undefined for a file that is not a segment */
  async #entries(segment: Uint8Array, tree: TiledTree): Promise<readonly ArchivedEntry[] | undefined> {
    const { journal, seq } = this.#end;
    const entries: ArchivedEntry[] = [];
    let through = Infinity;
    try {
      for (const line of linesOf(await unpackSegment(segment))) {
        const facts = parseLine(line);
        if (!facts) return undefined;
        tree.append(leafHash(formatEntry(facts, line)));
        if (facts.kind === 'record') entries.push(new ArchivedEntry(tree.size, facts.seq, parseRecordLine(line)));
        else if (facts.kind === 'position' && facts.journal === journal) through = seq;
      }
    } catch (thrown) {
      if (thrown instanceof SegmentError) return undefined;
      throw thrown;
    }
    return entries.filter(({ journalSeq }) => journalSeq <= through);
  }
}

/** A record with the number of its line in place of its number in the journal. */
class ArchivedEntry implements Entry {
  readonly kind = 'record';
  readonly number = undefined;
  readonly chain = new Uint8Array();
  readonly seq: number;
  readonly journalSeq: number;
  readonly uid: string;
  readonly source: string;
  readonly received: Micros;
  readonly late: boolean;
  readonly bytes: Uint8Array;

  constructor(line: number, journalSeq: number, { uid, source, received, late, record }: ArchivedRecord) {
    this.seq = line;
    this.journalSeq = journalSeq;
    this.uid = uid;
    this.source = source;
    this.received = received;
    this.late = late;
    this.bytes = record;
  }

  get text(): string {
    return Buffer.from(this.bytes).toString();
  }

  get time(): Micros | undefined {
    return readRecord(this.bytes).time;
  }
}

function broken(path: string, reason: string): WaybillError {
  return new WaybillError('archive_broken', `cannot read "${path}" of the archive: ${reason}; see "waybill archive verify"`);
}

/** The index of the first number after `value` in ascending numbers. */
function indexAfter(numbers: readonly number[], value: number): number {
  let [low, high] = [0, numbers.length];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if ((numbers[middle] ?? Infinity) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
