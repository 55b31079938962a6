/**
 * Checks the invariants of the state while it is in use: a few segments and windows at a time, in a round of one day. A violation ends the
 * process before anything is built on it (docs/testing.md, "Invariants").
 */
import type { Database, Statement } from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import type { Clock, Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import { damaged } from './damage.ts';
import type { RangeRow as OwnedRange } from './ledger.ts';
import { mayBeForgotten } from './uid-retention.ts';
import { bucketOf } from './seen-uids.ts';
import { chainOf, flagNoTime, kindLedger, kindOf, kindRecords, unpackBody } from './segment.ts';

import type { SegmentRow } from './segments.ts';

/** Limit of the stored bytes that one step unpacks, so that a step stays short. */
const stepBytes = 4 * 1024 * 1024;
const minStepSegments = 16;
const stepWindows = 500;
const roundMs = 86_400_000;
const textDecoder = new TextDecoder('utf-8', { ignoreBOM: true });

type Row = SegmentRow & { readonly min_us: number | null; readonly max_us: number | null };

interface HeadRow {
  readonly seq: number;
  readonly chain: Buffer;
  readonly number: number;
  readonly pruned_seq: number;
  readonly pruned_chain: Buffer;
}

interface RangeRow {
  readonly source: number;
  readonly id: string;
  readonly from_us: number;
  readonly to_us: number | null;
  readonly closed_until_us: number;
  readonly frontier_us: number;
}

interface WindowRow {
  readonly from_us: number;
  readonly to_us: number;
  readonly state: string;
  readonly proof: number;
  readonly reason: string | null;
}

interface SinkRow {
  readonly id: string;
  readonly from_seq: number;
  readonly acknowledged: number;
  readonly delivered: number;
  readonly delivered_chain: Buffer;
}

interface DeadLetterRow {
  readonly seq: number;
  readonly source: number;
  readonly uid: Buffer;
  readonly received_us: number;
  readonly body: Buffer | null;
}

/** The end of the checked part of the chain. */
interface Place {
  readonly seq: number;
  readonly chain: Uint8Array;
  readonly number: number | undefined;
}

export class SelfCheck {
  readonly #db: Database;
  readonly #clock: Clock;
  readonly #sourceIds: ReadonlyMap<number, string>;
  readonly #rangesOf: (source: number) => readonly OwnedRange[];
  readonly #segments: Statement<[number], Row>;
  readonly #seen: Statement<[number, number, number, number], { uids: Buffer }>;
  readonly #windows: Statement<[number, number, number, number], WindowRow>;
  readonly #deadLetters: Statement<[string, number, number], DeadLetterRow>;
  #startAt = 0;
  #chain: Place | undefined;
  #sinkIds: readonly string[] = [];
  #ranges: { range: RangeRow; at: Micros }[] = [];
  #isDone = true;

  /** @param rangesOf  returns the ranges of a source by its number, for their `uidsKeptSince` */
  constructor(db: Database, clock: Clock, sourceIds: ReadonlyMap<number, string>, rangesOf: (source: number) => readonly OwnedRange[]) {
    this.#db = db;
    this.#clock = clock;
    this.#sourceIds = sourceIds;
    this.#rangesOf = rangesOf;
    this.#segments = db.prepare('SELECT * FROM segments WHERE seq > ? ORDER BY seq');
    this.#seen = db.prepare('SELECT uids FROM seen WHERE source = ? AND bucket BETWEEN ? AND ? AND seq = ?');
    this.#deadLetters = db.prepare(
      'SELECT seq, source, uid, received_us, body FROM dead_letters WHERE sink = ? AND seq BETWEEN ? AND ? ORDER BY seq',
    );
    this.#windows = db.prepare(
      `SELECT from_us, to_us, state, proof IS NOT NULL AS proof, reason FROM windows WHERE source = ? AND from_us >= ? AND from_us < ?
       ORDER BY from_us LIMIT ?`,
    );
  }

  /**
   * Runs one step of the round; does nothing between two rounds. Returns true when a round has just ended.
   * @param share  the part of the entries to check in this step, so that a round takes a day
   * @param limit  the last entry that the file has
   * @throws WaybillError `state_corrupt` when stored data is damaged, `internal_error` when the program violated an invariant
   */
  step(share: number, limit: number): boolean {
    if (this.#isDone) {
      if (this.#clock.monotonic() < this.#startAt) return false;
      this.#begin();
    }
    const isChainDone = this.#followChain(share, limit);
    const isTilingDone = this.#checkWindows();
    this.#isDone = isChainDone && isTilingDone;
    return this.#isDone;
  }

  /** The segments that a step checks at least, with their uids that the working copy of a shard does not have. */
  next(): { readonly seq: number; readonly source: number; readonly buckets: readonly number[] }[] {
    const segments = this.#db.prepare<[number, number], { seq: number; source: number; min: Micros; max: Micros }>(
      'SELECT seq, source, coalesce(min_us, 0) AS min, coalesce(max_us, -1) AS max FROM segments WHERE seq > ? ORDER BY seq LIMIT ?',
    );
    const absent = this.#db.prepare<[number, number, number, number], { bucket: number }>(
      'SELECT bucket FROM seen WHERE source = ? AND bucket BETWEEN ? AND ? AND seq = ? AND length(uids) = 0',
    );
    const after = Math.max(this.#chain?.seq ?? 0, this.#head().pruned_seq);
    return segments.all(after, minStepSegments).map(({ seq, source, min, max }) => {
      const buckets = absent.all(source, bucketOf(min), bucketOf(max), seq).map(({ bucket }) => bucket);
      return { seq, source, buckets };
    });
  }

  #begin(): void {
    this.#startAt = this.#clock.monotonic() + roundMs;
    this.#isDone = false;
    this.#chain = undefined;
    this.#ranges = this.#rangeRows().map((range) => ({ range, at: range.from_us }));
    this.#checkProgress();
    this.#sinkIds = this.#sinks().map(({ id }) => id);
  }

  /** Segments are contiguous, and each chain value follows from the previous one and the content of the segment. */
  #followChain(share: number, limit: number): boolean {
    const head = this.#head();
    let place = this.#chain;
    // The segment was pruned in the meantime; the head stores the last pruned chain value.
    if (place === undefined || place.seq < head.pruned_seq) place = { seq: head.pruned_seq, chain: head.pruned_chain, number: undefined };
    const through = place.seq + (head.seq - head.pruned_seq) * share;
    let bytes = 0;
    let rows = 0;
    let isStopped = false;
    for (const row of this.#segments.iterate(place.seq)) {
      isStopped = row.seq > limit;
      if (isStopped) break;
      rows += 1;
      place = this.#segment(place, row);
      bytes += row.body.length;
      isStopped = bytes > stepBytes || (rows >= minStepSegments && place.seq >= through);
      if (isStopped) break;
    }
    this.#chain = place;
    if (isStopped) return false;
    if (place.seq !== head.seq || Buffer.compare(place.chain, head.chain) !== 0 || (place.number ?? head.number) !== head.number) {
      throw damaged(`segments end at entry ${place.seq}, but the head is ${head.seq}`);
    }
    return true;
  }

  #segment(before: Place, row: Row): Place {
    const { seq, n, number, flags, uids, ends } = row;
    if (![row.body, row.chain, ends, uids, flags].every((part) => part instanceof Uint8Array))
      throw damaged(`segment ${seq} has values of the wrong type`);
    const kind = kindOf(row.kind);
    if (seq !== before.seq + 1) throw damaged(`segment ${seq} does not follow entry ${before.seq}`);
    if (number !== null && before.number !== undefined && number !== before.number + 1)
      throw damaged(`segment ${seq} starts at record ${number}, which does not follow the previous segment`);
    let body: Uint8Array;
    try {
      body = unpackBody(row.kind, row.body);
    } catch (cause) {
      throw damaged(`segment ${seq} cannot be unpacked`, cause);
    }
    const sourceId = this.#sourceIds.get(row.source) ?? '';
    const isRecords = kind === kindRecords;
    const received = row.received_us;
    const content = { seq, n, kind: isRecords ? kindRecords : kindLedger, number, sourceId, received, flags, uids, ends, body } as const;
    const chain = chainOf(before.chain, content);
    if (Buffer.compare(chain, row.chain) !== 0) throw damaged(`segment ${seq} was changed after it was written: its chain value is wrong`);
    if (isRecords) this.#checkSeenUids(row);
    this.#checkDeadLetters(row, body);
    return { seq: seq + n - 1, chain, number: number === null ? before.number : number + n - 1 };
  }

  /** While uids are kept, a segment has exactly one stored uid for each of its records. */
  #checkSeenUids({ seq, n, source, min_us: min, max_us: max, uids, flags }: Row): void {
    if (min === null || max === null || flags.some((flag) => (flag & flagNoTime) !== 0)) return;
    const known = this.#seen.all(source, bucketOf(min), bucketOf(max), seq);
    const count = known.reduce((sum, row) => sum + row.uids.length / 16, 0);
    if (count > n || (count < n && !mayBeForgotten(this.#rangesOf(source), min, max)))
      throw broken(`segment ${seq} has ${n} records but ${count} stored uids`);
    const inWindow = new Set(Array.from({ length: n }, (_, i) => uids.toString('latin1', i * 16, i * 16 + 16)));
    for (const row of known)
      for (let at = 0; at < row.uids.length; at += 16)
        if (!inWindow.has(row.uids.toString('latin1', at, at + 16))) throw broken(`segment ${seq} has a stored uid without a record`);
  }

  /** Each dead letter holds the text of an entry of the journal. */
  #checkDeadLetters({ seq, n, source, received_us: received, uids, ends }: Row, body: Uint8Array): void {
    for (const id of this.#sinkIds) {
      for (const deadLetter of this.#deadLetters.all(id, seq, seq + n - 1)) {
        const at = deadLetter.seq - seq;
        const begin = at === 0 ? 0 : ends.readUInt32LE((at - 1) * 4);
        const isWhole =
          deadLetter.source === source &&
          deadLetter.received_us === received &&
          (uids.length === 0 || deadLetter.uid.equals(uids.subarray(at * 16, at * 16 + 16))) &&
          (deadLetter.body === null ||
            deadLetter.body.toString('utf8') === textDecoder.decode(body.subarray(begin, ends.readUInt32LE(at * 4))));
        if (!isWhole) throw broken(`the dead letter of sink "${id}" for entry ${deadLetter.seq} differs from the entry`);
      }
    }
  }

  /** The windows of each range are contiguous up to `closedUntil`, and each has a proof or a gap reason. */
  #checkWindows(): boolean {
    const current = this.#ranges[0];
    if (!current) return true;
    const { range } = current;
    const name = `the ledger of "${range.id}"`;
    const rows = this.#windows.all(range.source, current.at, range.to_us ?? Number.MAX_SAFE_INTEGER, stepWindows);
    for (const row of rows) {
      const at = microsToIso(row.from_us);
      if (row.from_us !== current.at || row.to_us <= row.from_us) throw broken(`${name} has a hole or an overlap at ${at}`);
      if (row.state === 'proven' ? row.proof === 0 : row.reason === null)
        throw broken(`${name} has a window at ${at} without proof or reason`);
      current.at = row.to_us;
    }
    if (rows.length === stepWindows) return false;
    const closedUntil = this.#rangeRows().find((each) => each.source === range.source && each.from_us === range.from_us)?.closed_until_us;
    if (closedUntil !== undefined && current.at !== closedUntil)
      throw broken(
        `${name} ends at ${microsToIso(current.at)}, but the last closed window of its range ends at ${microsToIso(closedUntil)}`,
      );
    this.#ranges.shift();
    return this.#ranges.length === 0;
  }

  /**
   * pruned ≤ acknowledged ≤ head, and delivered ≤ acknowledged. The frontier is the first gap or the end of the closed windows of the live
   * range. Dead letters belong to acknowledged entries, and the entry of `delivered` is in this journal.
   */
  #checkProgress(): void {
    const { seq, pruned_seq: pruned } = this.#head();
    const deadLetters = this.#db.prepare<[string], { first: number | null; last: number | null }>(
      'SELECT min(seq) AS first, max(seq) AS last FROM dead_letters WHERE sink = ?',
    );
    const holding = this.#db.prepare<[number], { chain: Buffer }>('SELECT chain FROM segments WHERE seq <= ? ORDER BY seq DESC LIMIT 1');
    for (const { id, from_seq: from, acknowledged, delivered, delivered_chain: chain } of this.#sinks()) {
      if (pruned > acknowledged || acknowledged > seq || delivered > acknowledged)
        throw broken(
          `sink "${id}" has acknowledged entry ${acknowledged} and delivered entry ${delivered}, but the journal keeps entries ${pruned} to ${seq}`,
        );
      const { first, last } = deadLetters.get(id) ?? { first: null, last: null };
      if ((first ?? Infinity) <= from || (last ?? 0) > acknowledged)
        throw broken(
          `sink "${id}" has dead letters of entries ${first ?? 0} to ${last ?? 0}, but has acknowledged entries ${from} to ${acknowledged}`,
        );
      if (delivered > pruned && holding.get(delivered)?.chain.equals(chain) === false)
        throw broken(`sink "${id}" has delivered entry ${delivered}, which is not in this journal`);
    }
    const gap = this.#db.prepare<[number, number], { first: number | null }>(
      "SELECT min(from_us) AS first FROM windows WHERE source = ? AND from_us >= ? AND state = 'gap'",
    );
    for (const range of this.#rangeRows().filter(({ to_us: to }) => to === null)) {
      const expected = gap.get(range.source, range.from_us)?.first ?? range.closed_until_us;
      if (range.frontier_us !== expected)
        throw broken(`the frontier of "${range.id}" is ${microsToIso(range.frontier_us)} and should be ${microsToIso(expected)}`);
    }
  }

  #sinks(): SinkRow[] {
    return this.#db
      .prepare<[], SinkRow>("SELECT id, from_seq, acknowledged, delivered, delivered_chain FROM sinks WHERE state <> 'retired'")
      .all();
  }

  #rangeRows(): RangeRow[] {
    return this.#db
      .prepare<[], RangeRow>(
        'SELECT source, id, from_us, to_us, closed_until_us, frontier_us FROM ranges JOIN sources ON source_no = source ORDER BY source, from_us',
      )
      .all();
  }

  #head(): HeadRow {
    return this.#db.prepare('SELECT seq, chain, number, pruned_seq, pruned_chain FROM head WHERE one = 1').get() as HeadRow;
  }
}

function broken(message: string): WaybillError {
  return new WaybillError('internal_error', `state violates an invariant: ${message}`);
}
