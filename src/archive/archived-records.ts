/**
 * The records of an archive, in order, for a replay. Each segment is verified against the signed
 * checkpoints before a record of it is returned.
 */
import type { KeyObject } from 'node:crypto';
import { codeOf, WaybillError } from '../errors/errors.ts';
import type { ArchivedRecords, Entry, Limit } from '../model/journal.ts';
import type { Micros } from '../model/time.ts';
import { readRecord } from '../record/read.ts';
import { checkpointPath, type Checkpoint } from './checkpoint.ts';
import { formatEntry } from './entry.ts';
import { equal, leafHash } from './merkle.ts';
import { parseRecordLine, type ArchivedRecord } from './parse-line.ts';
import { readLines, segmentPlace, type SegmentName } from './segment.ts';
import type { ArchiveStore } from './store.ts';
import { checkpointNumbers, readCheckpoint, readEdgeTiles, segmentNames } from './stored-log.ts';
import { TiledTree } from './tiled-tree.ts';

/** Entries of this journal after `seq` are left out: the sink receives them from the journal. */
export interface JournalEnd {
  readonly journal: string;
  readonly seq: number;
}

/** Closed with the reader. */
type OpenStore = ArchiveStore & Partial<AsyncDisposable>;

/** The records of a verified segment, whose lines have the numbers after `after`, up to and including `through`. */
interface Segment {
  readonly after: number;
  readonly through: number;
  readonly entries: readonly ArchivedEntry[];
  readonly journal: string;
}

export class ArchivedRecordReader implements ArchivedRecords {
  readonly origin: string;
  readonly lines: number;
  readonly #store: OpenStore;
  readonly #keys: readonly KeyObject[];
  readonly #end: JournalEnd;
  readonly #newest: number;
  /** By their first leaf: more than one if an attempt was not finished. */
  readonly #segments: ReadonlyMap<number, readonly SegmentName[]>;
  /** By the number of a checkpoint that a search has read. */
  readonly #sizes = new Map<number, number>();
  /** The tree of checkpoint `number`. */
  #at: { readonly number: number; readonly tree: TiledTree } = { number: 0, tree: TiledTree.empty() };
  /** By the last record of a segment: the last line before the next record. Its segment may be removed before the replay is complete. */
  readonly #ends = new Map<number, number>();
  #segment: Segment = { after: 0, through: 0, entries: [], journal: '' };
  /** The journal whose entries after `end.seq` are left out: under this name, the newest segment has the journal of this state. */
  #journal: string;

  private constructor(
    store: OpenStore,
    keys: readonly KeyObject[],
    end: JournalEnd,
    newest: number,
    { origin, size }: Pick<Checkpoint, 'origin' | 'size'>,
    segments: readonly SegmentName[],
  ) {
    this.#store = store;
    this.#keys = keys;
    this.#end = end;
    this.#journal = end.journal;
    this.#newest = newest;
    this.origin = origin;
    this.lines = size;
    this.#segments = Map.groupBy(
      segments.filter(({ firstLeaf }) => firstLeaf < size),
      ({ firstLeaf }) => firstLeaf,
    );
  }

  /**
   * @param keys  the signing key of the archive, then the previous key if there is one
   * @throws WaybillError `archive_broken`, as `read` does, for a missing or altered object
   */
  static async open(store: OpenStore, keys: readonly KeyObject[], end: JournalEnd): Promise<ArchivedRecordReader> {
    const newest = (await checkpointNumbers(store)).at(-1);
    if (newest === undefined) return new ArchivedRecordReader(store, keys, end, 0, { origin: '', size: 0 }, []);
    const { checkpoint } = await readCheckpoint(store, newest, keys, broken);
    const reader = new ArchivedRecordReader(store, keys, end, newest, checkpoint, await segmentNames(store));
    await reader.#nameJournal();
    return reader;
  }

  /** An operator may have made a restored state continue the archive: what the former copy archived is not in its journal (`sinks adopt`). */
  async #nameJournal(): Promise<void> {
    try {
      const { journal } = await this.#segmentAfter(this.lines - 1);
      if (journal.startsWith(`${this.#journal}.`)) this.#journal = journal;
    } catch (thrown) {
      // `read` reports the segment when the replay reaches it.
      if (codeOf(thrown) !== 'archive_broken') throw thrown;
    }
    this.#segment = { after: 0, through: 0, entries: [], journal: '' };
  }

  async read(after: number, { records, bytes }: Limit): Promise<readonly Entry[]> {
    const found: Entry[] = [];
    let length = 0;
    let at = after;
    while (found.length < records && at < this.lines) {
      let segment: Segment;
      try {
        segment = await this.#segmentAfter(at);
      } catch (thrown) {
        if (found.length > 0) break;
        throw thrown;
      }
      for (const entry of segment.entries) {
        if (entry.seq <= at) continue;
        length += entry.bytes.length;
        if (found.length === records || (found.length > 0 && length > bytes)) return found;
        found.push(entry);
      }
      at = segment.through;
      const last = found.at(-1);
      if (last) this.#ends.set(last.seq, at);
    }
    return found;
  }

  endOf(line: number): number {
    const end = this.#ends.get(line) ?? line;
    this.#ends.clear();
    return end;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#store[Symbol.asyncDispose]?.();
  }

  /** The segment that has the line behind `after`: it extends the tree of a checkpoint to the root of the next one. */
  async #segmentAfter(after: number): Promise<Segment> {
    if (this.#segment.after <= after && after < this.#segment.through) return this.#segment;
    const { number, size } = await this.#lastUpTo(after);
    const to = await this.#checkpoint(number + 1);
    let isAltered = false;
    for (const { path } of this.#segments.get(size) ?? []) {
      const bytes = await this.#store.read(path);
      if (!bytes) continue;
      const tree = (await this.#treeAt(number)).copy();
      const found = await this.#entries(bytes, tree);
      tree.takeTiles();
      if (found && tree.size === to.size && equal(tree.root(), to.root)) {
        this.#at = { number: number + 1, tree };
        return (this.#segment = { after: size, through: to.size, ...found });
      }
      isAltered = true;
    }
    const last = isAltered ? to.size : await this.#endOfMissing(size);
    const file = segmentPlace(size);
    const reason = isAltered ? `no file "${file}" leads to the root that the checkpoint signs` : `"${file}" is missing`;
    const others = last === this.lines ? ', and no segment follows' : '';
    throw new WaybillError(
      'archive_broken',
      `cannot read the lines ${after + 1} to ${last} of the archive: ${reason}${others}; "--from ${last + 1}" goes on behind them, and "waybill archive verify" examines the archive`,
    );
  }

  /** The line before the next segment. A name inside a signed segment is the name of none. */
  async #endOfMissing(after: number): Promise<number> {
    let next = this.lines;
    for (const leaf of this.#segments.keys()) if (leaf > after && leaf < next) next = leaf;
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
  async #entries(segment: Uint8Array, tree: TiledTree): Promise<Pick<Segment, 'entries' | 'journal'> | undefined> {
    const lines = await readLines(segment);
    if (!lines) return undefined;
    const entries: ArchivedEntry[] = [];
    let journal = '';
    for (const { facts, line } of lines) {
      tree.append(leafHash(formatEntry(facts, line)));
      if (facts.kind === 'record') entries.push(new ArchivedEntry(tree.size, facts.seq, parseRecordLine(line)));
      else if (facts.kind === 'position') ({ journal } = facts);
    }
    const through = journal === this.#journal ? this.#end.seq : Infinity;
    return { entries: entries.filter(({ journalSeq }) => journalSeq <= through), journal };
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
