/**
 * The records of an archive, in order, for a replay. Each segment is verified against the signed
 * checkpoints before a record of it is returned.
 */
import type { KeyObject } from 'node:crypto';
import { WaybillError } from '../errors.ts';
import type { ArchivedRecords, Entry, Limit } from '../model/journal.ts';
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

/** A verified segment. */
interface VerifiedSegment {
  /** Its lines have the numbers after `after`, up to and including `through`. */
  readonly after: number;
  readonly through: number;
  readonly entries: readonly ArchivedEntry[];
}

export class ArchivedRecordReader implements ArchivedRecords {
  readonly origin: string;
  readonly lines: number;
  readonly removed: number;
  readonly #store: OpenStore;
  readonly #keys: readonly KeyObject[];
  readonly #end: JournalEnd;
  readonly #newest: number;
  /** Paths by their first leaf: more than one if an attempt was not finished. */
  readonly #segments: ReadonlyMap<number, readonly string[]>;
  /** The tree of checkpoint `number`. */
  #at: { readonly number: number; readonly tree: TiledTree } = { number: 0, tree: TiledTree.empty() };
  #segment: VerifiedSegment = { after: 0, through: 0, entries: [] };

  private constructor(
    store: OpenStore,
    keys: readonly KeyObject[],
    end: JournalEnd,
    newest: number,
    last: Checkpoint,
    segments: readonly string[],
  ) {
    this.#store = store;
    this.#keys = keys;
    this.#end = end;
    this.#newest = newest;
    this.origin = last.origin;
    this.lines = last.size;
    const named = segments.flatMap((path) => parseSegmentPath(path) ?? []);
    this.#segments = new Map(
      [...Map.groupBy(named, ({ firstLeaf }) => firstLeaf)].map(([leaf, names]) => [leaf, names.map(({ path }) => path)]),
    );
    const first = named.reduce((least, { firstLeaf }) => Math.min(least, firstLeaf), Infinity);
    // Without any segment nothing was read: the first one is then reported as missing.
    this.removed = first < last.size ? first : 0;
  }

  /**
   *
   * @param keys  the signing key of the archive, then the previous key if there is one
   * @throws WaybillError `archive_broken`, as `read` does, for a missing or altered object
   */
  static async open(store: OpenStore, keys: readonly KeyObject[], end: JournalEnd): Promise<ArchivedRecordReader> {
    const newest = (await checkpointNumbers(store)).at(-1) ?? 1;
    const { checkpoint } = await readCheckpoint(store, newest, keys, broken);
    return new ArchivedRecordReader(store, keys, end, newest, checkpoint, await Array.fromAsync(store.list('segments/')));
  }

  async read(after: number, { records, bytes }: Limit): Promise<readonly Entry[]> {
    const found: Entry[] = [];
    let length = 0;
    for (let at = Math.max(after, this.removed); found.length < records && at < this.lines;) {
      const { entries, through } = await this.#segmentAfter(at).catch((thrown: unknown) => {
        // The records before an altered segment are read first.
        if (found.length > 0) return { entries: [], through: this.lines };
        throw thrown;
      });
      for (const entry of entries) {
        if (entry.seq <= at || found.length >= records) continue;
        length += entry.bytes.length;
        if (found.length > 0 && length > bytes) return found;
        found.push(entry);
      }
      at = Math.max(through, at);
    }
    return found;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]?.();
  }

  async #segmentAfter(after: number): Promise<VerifiedSegment> {
    if (this.#segment.after <= after && after < this.#segment.through) return this.#segment;
    if (this.#at.tree.size !== after) this.#at = await this.#before(after);
    const number = this.#at.number + 1;
    const { tree, entries } = await this.#verified(await this.#checkpoint(number), this.#at.tree);
    this.#segment = { after: this.#at.tree.size, through: tree.size, entries };
    this.#at = { number, tree };
    return this.#segment;
  }

  async #checkpoint(number: number): Promise<Checkpoint> {
    return (await readCheckpoint(this.#store, number, this.#keys, broken)).checkpoint;
  }

  /** The last checkpoint that has at most `size` lines, with its tree from tiles. */
  async #before(size: number): Promise<{ readonly number: number; readonly tree: TiledTree }> {
    let [low, high] = [0, this.#newest];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if ((await this.#checkpoint(middle)).size <= size) low = middle;
      else high = middle;
    }
    if (low === 0) return { number: 0, tree: TiledTree.empty() };
    const checkpoint = await this.#checkpoint(low);
    const tiles = await readEdgeTiles(this.#store, checkpoint.size, this.lines, broken);
    const tree = TiledTree.from(checkpoint.size, tiles);
    if (!equal(tree.root(), checkpoint.root)) throw broken(checkpointPath(low), 'the tiles do not have the root that it signs');
    return { number: low, tree };
  }

  /** The segment that extends the tree before it to the signed root. */
  async #verified(to: Checkpoint, before: TiledTree): Promise<{ readonly tree: TiledTree; readonly entries: readonly ArchivedEntry[] }> {
    for (const path of this.#segments.get(before.size) ?? []) {
      const bytes = await this.#store.read(path);
      const tree = before.copy();
      const entries = bytes && (await this.#entries(bytes, tree));
      tree.takeTiles();
      if (entries && tree.size === to.size && equal(tree.root(), to.root)) return { tree, entries };
    }
    const path = `segments/${String(before.size).padStart(16, '0')}-…`;
    throw broken(path, `no segment of this name leads to the root that the checkpoint of ${to.size} lines signs`);
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
