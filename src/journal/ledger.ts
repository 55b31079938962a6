/**
 * The ledger: the windows of each source with their proofs, and the marks that follow from them. Only here is a window opened, closed or
 * left as a gap; every change of a window appends its line to the journal in the same transaction.
 */
import type { Statement } from 'better-sqlite3';
import { WaybillError } from '../errors.ts';
import type { GapReason, LedgerWindow, Micros, Proof, Range, Turn, Window, WindowQuery } from '../model.ts';
import { withLate } from './late.ts';
import type { Segments } from './segments.ts';
import type { Store } from './store.ts';

export interface SourceRow {
  readonly n: number;
  readonly id: string;
  frontier: Micros;
  tip: Micros;
  mode: string;
  profile: string | undefined;
}

/** A range whose marks move. */
export interface RangeRow extends Range {
  reached: Micros;
  remembered: Micros;
}

export interface WindowDbRow {
  from_us: number;
  until_us: number;
  query: string;
  state: 'closed' | 'gap' | 'accepted';
  total: number | null;
  own: number;
  late: number;
  seen: number;
  digest: Buffer | null;
  proof: string | null;
  closed_us: number;
  recounts: number;
  next_us: number | null;
  tries: number;
  reason: string | null;
  words: string | null;
  turn: number;
  seq: number;
  late_delays: string | null;
}

export class Ledger {
  readonly #store: Store;
  readonly #segments: Segments;
  readonly #get: Statement<[number, number], WindowDbRow>;
  readonly #owning: Statement<[number, number], { until_us: number; state: string; from_us: number }>;
  readonly #from: Statement<[number, number], WindowDbRow>;
  readonly #due: Statement<[number, number], WindowDbRow>;
  readonly #insert: Statement;
  readonly #update: Statement;
  readonly #addLate: Statement;
  readonly #setReached: Statement;
  readonly #setFrontier: Statement;
  readonly #unsettled: Statement<[number, number], { first: number | null }>;

  constructor(store: Store, segments: Segments) {
    const { db } = store;
    this.#store = store;
    this.#segments = segments;
    this.#get = db.prepare('SELECT * FROM windows WHERE source = ? AND from_us = ?');
    this.#owning = db.prepare(
      'SELECT from_us, until_us, state FROM windows WHERE source = ? AND from_us <= ? ORDER BY from_us DESC LIMIT 1',
    );
    this.#from = db.prepare('SELECT * FROM windows WHERE source = ? AND from_us >= ? ORDER BY from_us');
    this.#due = db.prepare('SELECT * FROM windows WHERE source = ? AND next_us <= ? ORDER BY next_us LIMIT 1');
    this.#insert = db.prepare(
      `INSERT INTO windows (source, from_us, until_us, query, state, total, own, seen, digest, proof, closed_us, recounts, next_us, tries, reason, words, turn, seq)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, 1, ?)`,
    );
    this.#update = db.prepare(
      `UPDATE windows SET state = ?, total = ?, own = ?, seen = ?, digest = ?, proof = ?, closed_us = ?, recounts = ?, next_us = ?, tries = ?, reason = ?,
       words = ?, turn = ?, seq = ? WHERE source = ? AND from_us = ?`,
    );
    this.#addLate = db.prepare('UPDATE windows SET late = late + ?, late_delays = ? WHERE source = ? AND from_us = ?');
    this.#setReached = db.prepare('UPDATE ranges SET reached_us = ?, remembered_us = ? WHERE source = ? AND from_us = ?');
    this.#setFrontier = db.prepare('UPDATE sources SET frontier_us = ? WHERE n = ?');
    this.#unsettled = db.prepare(
      "SELECT min(from_us) AS first FROM windows WHERE source = ? AND from_us >= ? AND (state = 'gap' OR next_us IS NOT NULL)",
    );
  }

  /** The window that owns a time, if the ledger has one already. */
  owner(source: number, time: Micros): { from: Micros; state: string } | undefined {
    const row = this.#owning.get(source, time);
    return row && time < row.until_us ? { from: row.from_us, state: row.state } : undefined;
  }

  /** Within a transaction: late records that a closed window owns, by their delays. */
  addLate(source: number, from: Micros, delays: readonly Micros[]): void {
    this.#addLate.run(delays.length, withLate(this.#get.get(source, from)?.late_delays ?? null, delays), source, from);
  }

  /** The window that is due first for a recount or another try, if one is due at `now` (server time). */
  due(source: number, now: Micros): LedgerWindow | undefined {
    const row = this.#due.get(source, now);
    return row && readable(row);
  }

  /**
   * Writes what was found about a window: a new one must begin where its range ends, another must be there with the same end. A proof moves the
   * frontier when contiguous; a gap holds it. `lastAge` is the last recount age in µs, behind which uids may be forgotten.
   */
  record(source: SourceRow, range: RangeRow, window: Window, turn: Turn, lastAge: Micros): void {
    this.#store.transaction(() => {
      const before = this.#get.get(source.n, window.from);
      const isNew = before === undefined;
      if (isNew && window.from !== range.reached) {
        throw new WaybillError('invariant', `window of "${source.id}" begins at ${window.from}, its range has reached ${range.reached}`);
      }
      if (before && before.until_us !== window.until) {
        throw new WaybillError('invariant', `window of "${source.id}" at ${window.from} ends at ${before.until_us}, not ${window.until}`);
      }
      const row = after(before, window, turn);
      row.seq = this.#segments.writeLedgerEntry(source.n, source.id, lineOf(source.id, row), window.from, window.until, turn.at);
      this.#write(source.n, row, isNew);
      const reached = Math.max(range.reached, window.until);
      const frontier = range.until === null ? this.#frontier(source.n, source.frontier) : source.frontier;
      const remembered = this.#remembered(source.n, range, reached, lastAge);
      this.#setReached.run(reached, remembered, source.n, range.from);
      if (frontier !== source.frontier) this.#setFrontier.run(frontier, source.n);
      this.#store.after(() => {
        range.reached = reached;
        range.remembered = remembered;
        source.frontier = frontier;
      });
    });
  }

  /** A recount that found the stored total: the window stands, its next recount is later. */
  confirm(source: SourceRow, range: RangeRow, window: Window, next: Micros | undefined, at: Micros, lastAge: Micros): void {
    this.#store.transaction(() => {
      const before = this.#get.get(source.n, window.from);
      if (!before) throw new WaybillError('invariant', `window of "${source.id}" at ${window.from} is not in the ledger`);
      const row = { ...before, recounts: before.recounts + 1, next_us: next ?? null, turn: before.turn + 1 };
      row.seq = this.#segments.writeLedgerEntry(source.n, source.id, lineOf(source.id, row), window.from, window.until, at);
      this.#write(source.n, row, false);
      const remembered = this.#remembered(source.n, range, range.reached, lastAge);
      this.#setReached.run(range.reached, remembered, source.n, range.from);
      this.#store.after(() => (range.remembered = remembered));
    });
  }

  #write(source: number, row: WindowDbRow, isNew: boolean): void {
    if (isNew) {
      this.#insert.run(
        source, row.from_us, row.until_us, row.query, row.state, row.total, row.own, row.seen, row.digest, row.proof, row.closed_us, row.next_us,
        row.tries, row.reason, row.words, row.seq,
      ); // prettier-ignore
      return;
    }
    this.#update.run(
      row.state, row.total, row.own, row.seen, row.digest, row.proof, row.closed_us, row.recounts, row.next_us, row.tries, row.reason, row.words,
      row.turn, row.seq, source, row.from_us,
    ); // prettier-ignore
  }

  /** The end of the unbroken run of closed or accepted windows that begins at `from`. */
  #frontier(source: number, from: Micros): Micros {
    let frontier = from;
    for (const row of this.#from.iterate(source, from)) {
      if (row.from_us !== frontier || row.state === 'gap') break;
      frontier = row.until_us;
    }
    return frontier;
  }

  /** Follows `reached` at the distance of the last recount, and stops before the first window that may still be read again. */
  #remembered(source: number, range: RangeRow, reached: Micros, lastAge: Micros): Micros {
    const first = this.#unsettled.get(source, range.remembered)?.first ?? reached;
    return Math.max(range.remembered, Math.min(reached - lastAge, first));
  }
}

/** A row as the rooms outside read it. */
export function readable(row: WindowDbRow): LedgerWindow {
  return {
    from: row.from_us,
    until: row.until_us,
    query: JSON.parse(row.query) as WindowQuery,
    state: row.state,
    total: row.total ?? undefined,
    own: row.own,
    late: row.late,
    seen: row.seen,
    recounts: row.recounts,
    next: row.next_us ?? undefined,
    tries: row.tries,
    reason: row.reason ?? undefined,
  };
}

/** The window's row once the verdict is in. A closed window whose re-read could not be proven stays closed, and is listed as open. */
function after(before: WindowDbRow | undefined, window: Window, turn: Turn): WindowDbRow {
  const { verdict } = turn;
  const shared = {
    from_us: window.from,
    until_us: window.until,
    late: before?.late ?? 0,
    late_delays: before?.late_delays ?? null,
    closed_us: turn.at,
    recounts: (before?.recounts ?? 0) + (turn.recount ? 1 : 0),
    next_us: turn.next ?? null,
    turn: (before?.turn ?? 0) + 1,
    seq: 0,
  };
  if (verdict.proven) {
    const { proof } = verdict;
    // A window that once showed more than can be proven now has lost records to retention: proven, but never silently. It stays listed, and
    // its recounts end.
    const vanished = before?.reason === 'vanished' || Math.max(before?.seen ?? 0, before?.total ?? 0) > proof.total;
    return {
      ...shared,
      next_us: vanished ? null : shared.next_us,
      query: JSON.stringify(proof.query),
      state: 'closed',
      total: proof.total,
      own: proof.own,
      seen: proof.total,
      digest: Buffer.from(proof.digest),
      proof: proofText(proof),
      tries: 0,
      reason: vanished ? 'vanished' : null,
      words: null,
    };
  }
  const tries = (before?.tries ?? 0) + 1;
  if (before?.state === 'closed')
    return {
      ...before,
      ...shared,
      tries,
      seen: Math.max(before.seen, verdict.seen),
      reason: 'reread',
      words: verdict.words,
      closed_us: before.closed_us,
    };
  return {
    ...shared,
    query: JSON.stringify(verdict.query),
    state: 'gap',
    total: greatest(before?.total ?? undefined, verdict.total) ?? null,
    own: verdict.own,
    seen: Math.max(before?.seen ?? 0, verdict.seen),
    digest: Buffer.from(verdict.digest),
    proof: null,
    tries,
    reason: verdict.reason satisfies GapReason,
    words: verdict.words,
  };
}

function greatest(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined ? b : b === undefined ? a : Math.max(a, b);
}

function proofText(proof: Proof): string {
  return JSON.stringify({ passes: proof.passes, requests: proof.requests, first: proof.first, last: proof.last });
}

/** The line of the ledger that goes into the journal: the whole of what is claimed about the window at this turn. */
function lineOf(sourceId: string, row: WindowDbRow): string {
  return JSON.stringify({
    ledger: 'window',
    source: sourceId,
    from: row.from_us,
    until: row.until_us,
    turn: row.turn,
    state: row.state,
    reason: row.reason ?? undefined,
    words: row.words ?? undefined,
    query: JSON.parse(row.query) as unknown,
    total: row.total ?? undefined,
    own: row.own,
    late: row.late,
    digest: row.digest?.toString('hex'),
    proof: row.proof === null ? undefined : (JSON.parse(row.proof) as unknown),
    closed: row.closed_us,
    recounts: row.recounts,
    next: row.next_us ?? undefined,
    tries: row.tries,
  });
}
