/**
 * The segments of the journal: the collector appends at the head, and the loop of each sink reads in order. The last megabytes stay in
 * memory, so that a sink that keeps up reads nothing from the file. They are kept as bytes, because garbage collection would copy waiting
 * strings again and again.
 */
import type { Statement } from 'better-sqlite3';
import type { WaybillError } from '../errors/errors.ts';
import type { CollectedRecord, Entry, Limit, ReplayRange } from '../model/journal.ts';
import type { Position, Window } from '../model/ledger.ts';
import type { Micros } from '../model/time.ts';
import { damaged } from './damage.ts';
import {
  chainOf,
  chainStart,
  flagLate,
  flagNoObject,
  flagNoTime,
  joinBody,
  kindLedger,
  kindOf,
  kindRecords,
  packBody,
  unpackBody,
} from './segment.ts';
import type { SegmentContent } from './segment.ts';
import { beginOf, SegmentReader, type Unpacked } from './segment-entry.ts';
import type { Store } from './store.ts';

/** Default size of the recent segments that stay in memory. */
const handOverBytes = 2 * 1024 * 1024;
const unpackedHeld = 4;
/** Number of newest segments to search for the ledger entries of one microsecond. The journal writes far fewer in that time. */
const momentsBack = 256;

interface Head {
  readonly seq: number;
  /** Counts records only. */
  readonly number: number;
  readonly chain: Uint8Array;
}

export interface SegmentRow {
  seq: number;
  n: number;
  kind: number;
  number: number | null;
  source: number;
  received_us: number;
  flags: Buffer;
  uids: Buffer;
  ends: Buffer;
  body: Buffer;
  chain: Buffer;
}

export class Segments {
  readonly #store: Store;
  readonly #sourceIds: ReadonlyMap<number, string>;
  readonly #leastAcknowledged: () => number;
  readonly #insert: Statement;
  readonly #setHead: Statement;
  readonly #holding: Statement<[number], SegmentRow>;
  readonly #last: Statement<[number], { kind: number; source: number; min_us: number | null; max_us: number | null }>;
  readonly #pruned: Statement<[], { pruned_seq: number }>;
  readonly #timed: Statement<[number, number, number, number], { seq: number; n: number }>;
  readonly #numbered: Statement<[number], { seq: number; n: number; number: number | null }>;
  #head: Head;
  #recent: Unpacked[] = [];
  #recentBytes = 0;
  #unpacked: Unpacked[] = [];

  /**
   * `sourceIds` is the live map of source numbers to ids; `acknowledged` returns the position that every
   * sink has reached; `handOver` is the size of the recent segments that stay in memory, in bytes.
   */
  constructor(store: Store, sourceIds: ReadonlyMap<number, string>, acknowledged: () => number) {
    this.#store = store;
    this.#sourceIds = sourceIds;
    this.#leastAcknowledged = acknowledged;
    this.#insert = store.db.prepare(
      `INSERT INTO segments (seq, n, kind, number, source, min_us, max_us, received_us, flags, uids, ends, body, chain)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    );
    this.#setHead = store.db.prepare('UPDATE head SET seq = ?, number = ?, chain = ? WHERE one = 1');
    this.#holding = store.db.prepare('SELECT * FROM segments WHERE seq <= ? ORDER BY seq DESC LIMIT 1');
    this.#last = store.db.prepare('SELECT kind, source, min_us, max_us FROM segments ORDER BY seq DESC LIMIT ?');
    this.#pruned = store.db.prepare('SELECT pruned_seq FROM head WHERE one = 1');
    this.#timed = store.db.prepare(
      `SELECT seq, n FROM segments WHERE seq >= (SELECT coalesce(max(seq), 0) FROM segments WHERE seq <= ?) AND seq + n - 1 > ?
       AND (kind & 255) = ${kindRecords} AND min_us < ? AND max_us >= ? ORDER BY seq LIMIT 1`,
    );
    this.#numbered = store.db.prepare('SELECT seq, n, number FROM segments WHERE seq <= ? ORDER BY seq DESC LIMIT 1');
    const head = store.db.prepare<[], Head>('SELECT seq, number, chain FROM head WHERE one = 1').get();
    if (!head) throw this.#damaged('it has no row "head"');
    this.#head = head;
    this.#checkHead();
  }

  get head(): Head {
    return this.#head;
  }

  /** Within a transaction: writes a segment of records and returns the seq of the first. `late[i]` belongs to `records[i]`. */
  writeRecords(source: number, sourceId: string, records: readonly CollectedRecord[], late: readonly boolean[], received: Micros): number {
    const { body, ends } = joinBody(records.map((record) => record.bytes));
    const uids = Buffer.allocUnsafe(records.length * 16);
    let flagged = 0;
    let min: Micros | null = null;
    let max: Micros | null = null;
    const flags = Buffer.allocUnsafe(records.length);
    records.forEach((record, i) => {
      uids.write(record.uid, i * 16, 16, 'base64url');
      const flag = (late[i] ? flagLate : 0) | (record.isObject ? 0 : flagNoObject) | (record.time === undefined ? flagNoTime : 0);
      flags[i] = flag;
      flagged |= flag;
      if (record.time === undefined) return;
      if (min === null || record.time < min) min = record.time;
      if (max === null || record.time > max) max = record.time;
    });
    const before = this.#head;
    const content: SegmentContent = {
      seq: before.seq + 1,
      n: records.length,
      kind: kindRecords,
      number: before.number + 1,
      sourceId,
      received,
      flags: flagged === 0 ? new Uint8Array(0) : flags,
      uids,
      ends,
      body,
    };
    const chain = this.#write(source, content, min, max);
    this.#store.after(() => this.#handOver({ ...content, source: sourceId, chain, notes: records.map((record) => record.notes) }));
    return content.seq;
  }

  /** Within a transaction: writes a ledger entry, JSON text, and returns its seq. */
  writeLedgerEntry(source: number, sourceId: string, line: string, from: Micros, to: Micros, received: Micros): number {
    const { body, ends } = joinBody([Buffer.from(line, 'utf8')]);
    const nothing = new Uint8Array(0);
    const content: SegmentContent = {
      seq: this.#head.seq + 1,
      n: 1,
      kind: kindLedger,
      number: null,
      sourceId,
      received,
      flags: nothing,
      uids: nothing,
      ends,
      body,
    };
    this.#write(source, content, from, to);
    return content.seq;
  }

  /** The number of ledger entries about this exact moment. They are written close together, at the end of the journal. */
  ledgerEntriesAt(source: number, at: Micros): number {
    return this.#last
      .all(momentsBack)
      .filter((row) => row.source === source && kindOf(row.kind) === kindLedger && row.min_us === at && row.max_us === at).length;
  }

  laggingPosition(): number | undefined {
    const acknowledged = this.#leastAcknowledged();
    const ahead = this.#recent.reduce((sum, segment) => (segment.seq + segment.n - 1 > acknowledged ? sum + segment.body.length : sum), 0);
    // A sink that has less than this to read from memory keeps up.
    return ahead > handOverBytes / 2 ? acknowledged : undefined;
  }

  /** @param through  the last entry to read */
  read(after: number, limit: Limit, through: number): readonly Entry[] {
    const reader = new SegmentReader(after, limit);
    while (reader.next <= Math.min(through, this.#head.seq) && !reader.isFull) reader.read(this.#segmentWith(reader.next));
    return reader.entries;
  }

  /** The chain hash of the segment that contains position `seq`; undefined when this journal has no such position. */
  chainAt(seq: number): Uint8Array | undefined {
    if (seq === this.#head.seq) return this.#head.chain;
    if (seq === 0) return chainStart;
    if (seq > this.#head.seq || seq < 0) return undefined;
    const pruned = this.beginning();
    if (seq === pruned.seq) return pruned.chain;
    const row = this.#holding.get(seq);
    return row && seq < row.seq + row.n ? row.chain : undefined;
  }

  /** The position before the first entry that is not pruned. */
  beginning(): Position {
    const { pruned_seq, pruned_chain } = this.#store.db.prepare('SELECT pruned_seq, pruned_chain FROM head WHERE one = 1').get() as {
      pruned_seq: number;
      pruned_chain: Buffer;
    };
    return { seq: pruned_seq, chain: pruned_chain };
  }

  /** The position before the first segment that may hold a time at or after `time`; undefined without such a segment. */
  before(time: Micros): Position | undefined {
    const sql = 'SELECT min(seq) AS seq FROM segments WHERE max_us >= ?';
    const first = this.#store.db.prepare<[number], { seq: number | null }>(sql).get(time)?.seq;
    return first ? { seq: first - 1, chain: this.chainAt(first - 1) ?? chainStart } : undefined;
  }

  /**
   * Deletes at most `most` segments that end at or before `through` and were received before `before`.
   * @returns the number of deleted entries
   */
  prune(through: number, before: Micros, limit: number): number {
    const { db } = this.#store;
    const sql = 'SELECT seq, n, chain FROM segments WHERE seq + n - 1 <= ? AND received_us < ? ORDER BY seq LIMIT ?';
    const rows = db.prepare<[number, number, number], { seq: number; n: number; chain: Buffer }>(sql).all(through, before, limit);
    const last = rows.at(-1);
    if (!last) return 0;
    this.#store.transaction(() => {
      db.prepare('DELETE FROM segments WHERE seq <= ?').run(last.seq);
      db.prepare('UPDATE head SET pruned_seq = ?, pruned_chain = ? WHERE one = 1').run(last.seq + last.n - 1, last.chain);
    });
    this.#store.shrink();
    return rows.reduce((sum, row) => sum + row.n, 0);
  }

  pruned(): number {
    return this.#pruned.get()?.pruned_seq ?? 0;
  }

  /** The next entries of a range that the journal stores, after `from` and through `end`: none unless `from` < `end`. */
  rangeAfter(given: number, { last, times }: ReplayRange): { after: number; from: number; end: number } {
    const after = Math.max(given, this.pruned());
    const row = times && this.#timed.get(after + 1, after, times.to, times.from);
    if (times && !row) return { after, from: after, end: after };
    return { after, from: row ? Math.max(after, row.seq - 1) : after, end: row ? Math.min(last, row.seq + row.n - 1) : last };
  }

  /** The number of entries from `first` through `last`, limited to `times`; approximate, as it counts whole segments. */
  countOf(first: number, last: number, times: Window | undefined): number {
    const timed = times ? `AND (kind & 255) = ${kindRecords} AND min_us < ? AND max_us >= ?` : '';
    const sql = `SELECT coalesce(sum(min(seq + n - 1, ?) - max(seq, ?) + 1), 0) AS count FROM segments WHERE seq <= ? AND seq + n - 1 >= ? ${timed}`;
    const given = [last, first, last, first, ...(times ? [times.to, times.from] : [])];
    return this.#store.db.prepare<number[], { count: number }>(sql).get(...given)?.count ?? 0;
  }

  /** The number of a record that the journal still stores. */
  numberOf(seq: number): number | undefined {
    const row = this.#numbered.get(seq);
    return row && seq < row.seq + row.n && row.number !== null ? row.number + seq - row.seq : undefined;
  }

  #write(source: number, content: SegmentContent, min: Micros | null, max: Micros | null): Uint8Array {
    const before = this.#head;
    const chain = chainOf(before.chain, content);
    const packed = packBody(content.kind, content.body);
    const { seq, n, number, received, flags, uids, ends } = content;
    this.#insert.run(seq, n, packed.kind, number, source, min, max, received, flags, uids, ends, packed.body, chain);
    const head = { seq: seq + n - 1, number: before.number + (content.kind === kindRecords ? n : 0), chain };
    this.#setHead.run(head.seq, head.number, head.chain);
    this.#head = head;
    this.#store.undo(() => (this.#head = before));
    return chain;
  }

  /** Keeps the newest segments in memory until every sink has read them, within the size limit. Older segments are read from the file. */
  #handOver(segment: Unpacked): void {
    this.#recent.push(segment);
    this.#recentBytes += segment.body.length;
    const acknowledged = this.#leastAcknowledged();
    for (let oldest = this.#recent[0]; oldest; oldest = this.#recent[0]) {
      if (oldest.seq + oldest.n - 1 > acknowledged && (this.#recentBytes <= handOverBytes || this.#recent.length === 1)) break;
      this.#recent.shift();
      this.#recentBytes -= oldest.body.length;
    }
  }

  /** The segment that contains entry `seq`. Its body is shared: it must not be changed. */
  #segmentWith(seq: number): Unpacked {
    for (const held of [this.#recent, this.#unpacked]) {
      for (let i = held.length - 1; i >= 0; i -= 1) {
        const segment = held[i];
        if (segment && segment.seq <= seq && seq < segment.seq + segment.n) return segment;
      }
    }
    const row = this.#holding.get(seq);
    if (!row || seq >= row.seq + row.n) throw this.#damaged(`journal has no segment for entry ${seq}`);
    const segment = this.#unpack(row);
    this.#unpacked.push(segment);
    if (this.#unpacked.length > unpackedHeld) this.#unpacked.shift();
    return segment;
  }

  #unpack(row: SegmentRow): Unpacked {
    const { seq, n, number, received_us: received, flags, uids, ends, chain } = row;
    let body: Uint8Array;
    try {
      body = unpackBody(row.kind, row.body);
    } catch (cause) {
      throw this.#damaged(`segment at entry ${seq} cannot be unpacked`, cause);
    }
    if (ends.length !== n * 4 || beginOf(ends, n) !== body.length)
      throw this.#damaged(`segment at entry ${seq} does not have its ${n} entries`);
    const source = this.#sourceIds.get(row.source) ?? '';
    return { seq, n, kind: kindOf(row.kind), number, received, flags, uids, ends, body, source, chain };
  }

  /** Checks that the last segment ends at the head and has its chain value, which detects a truncated or modified file. */
  #checkHead(): void {
    if (this.#head.seq === 0) return;
    const row = this.#holding.get(this.#head.seq);
    if (!row) {
      const { pruned_seq } = this.#store.db.prepare('SELECT pruned_seq FROM head WHERE one = 1').get() as { pruned_seq: number };
      if (pruned_seq === this.#head.seq) return;
    }
    if (!row || row.seq + row.n - 1 !== this.#head.seq || Buffer.compare(row.chain, this.#head.chain) !== 0) {
      throw this.#damaged(`head (entry ${this.#head.seq}) differs from the end of the last segment`);
    }
  }

  #damaged(message: string, cause?: unknown): WaybillError {
    return damaged(message, cause, this.#store.directory);
  }
}
