/**
 * The SQL of windows and of the progress that follows from them. The rules are in ledger.ts. Every
 * write belongs to a transaction of the ledger.
 */
import type { Database } from 'better-sqlite3';
import type { LedgerWindow } from '../model/ledger.ts';
import type { WindowQuery } from '../model/source.ts';
import type { Micros } from '../model/time.ts';
import { storedJson } from './damage.ts';

export interface WindowDbRow {
  from_us: number;
  to_us: number;
  query: string;
  state: 'proven' | 'gap' | 'accepted';
  total: number | null;
  records: number;
  late: number;
  received: number;
  digest: Buffer | null;
  proof: string | null;
  closed_us: number;
  recounts: number;
  next_us: number | null;
  attempts: number;
  reason: string | null;
  message: string | null;
  revision: number;
  seq: number;
  late_delays: string | null;
}

export class WindowRows {
  readonly sql: ReturnType<typeof statementsOf>;
  /** By source: no window is due before this time. Each turn of a scheduler needs it, and most turns come earlier. */
  readonly #nothingDueBefore = new Map<number, Micros>();

  constructor(db: Database) {
    this.sql = statementsOf(db);
  }

  /** The window due first at `now`. Recounts, one request each, come before attempts of gaps. */
  due(source: number, now: Micros): WindowDbRow | undefined {
    if (now < (this.#nothingDueBefore.get(source) ?? -Infinity)) return undefined;
    const first = this.sql.firstDue.get(source);
    const earliest = first?.next_us ?? Infinity;
    this.#nothingDueBefore.set(source, earliest);
    return earliest <= now ? (this.sql.dueRecount.get(source, now) ?? first) : undefined;
  }

  write(source: number, row: WindowDbRow, isNew: boolean): void {
    if ((row.next_us ?? Infinity) < (this.#nothingDueBefore.get(source) ?? -Infinity)) this.#nothingDueBefore.delete(source);
    if (isNew) {
      this.sql.insert.run(
        source, row.from_us, row.to_us, row.query, row.state, row.total, row.records, row.received, row.digest, row.proof, row.closed_us, row.next_us,
        row.attempts, row.reason, row.message, row.seq,
      ); // prettier-ignore
      return;
    }
    this.sql.update.run(
      row.state, row.total, row.records, row.received, row.digest, row.proof, row.closed_us, row.recounts, row.next_us, row.attempts, row.reason, row.message,
      row.revision, row.seq, source, row.from_us,
    ); // prettier-ignore
  }

  /** Puts each proven window in doubt, and makes it due at once, the oldest first. */
  doubtAll(source: number, message: string): number {
    this.#nothingDueBefore.delete(source);
    return this.sql.doubtAll.run(message, source).changes;
  }
}

function statementsOf(db: Database) {
  return {
    window: db.prepare<[number, number], WindowDbRow>('SELECT * FROM windows WHERE source = ? AND from_us = ?'),
    /** The last window that starts at or before a time. */
    lastBefore: db.prepare<[number, number], { to_us: number; state: string; from_us: number }>(
      'SELECT from_us, to_us, state FROM windows WHERE source = ? AND from_us <= ? ORDER BY from_us DESC LIMIT 1',
    ),
    since: db.prepare<[number, number], WindowDbRow>('SELECT * FROM windows WHERE source = ? AND from_us >= ? ORDER BY from_us'),
    dueRecount: db.prepare<[number, number], WindowDbRow>(
      `SELECT * FROM windows WHERE source = ? AND next_us <= ? AND state = 'proven' AND (reason IS NULL OR (reason = 'reread' AND received <= total))
       ORDER BY next_us LIMIT 1`,
    ),
    firstDue: db.prepare<[number], WindowDbRow>('SELECT * FROM windows WHERE source = ? AND next_us IS NOT NULL ORDER BY next_us LIMIT 1'),
    insert: db.prepare(
      `INSERT INTO windows (source, from_us, to_us, query, state, total, records, received, digest, proof, closed_us, recounts, next_us, attempts, reason, message, revision, seq)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, 1, ?)`,
    ),
    update: db.prepare(
      `UPDATE windows SET state = ?, total = ?, records = ?, received = ?, digest = ?, proof = ?, closed_us = ?, recounts = ?, next_us = ?, attempts = ?, reason = ?,
       message = ?, revision = ?, seq = ? WHERE source = ? AND from_us = ?`,
    ),
    doubtAll: db.prepare(
      `UPDATE windows SET reason = 'reread', message = ?, next_us = to_us, attempts = 0
       WHERE source = ? AND state = 'proven' AND (reason IS NULL OR reason = 'reread')`,
    ),
    narrow: db.prepare('UPDATE windows SET to_us = ?, query = ? WHERE source = ? AND from_us = ?'),
    addLate: db.prepare('UPDATE windows SET late = late + ?, late_delays = ? WHERE source = ? AND from_us = ?'),
    setClosedUntil: db.prepare('UPDATE ranges SET closed_until_us = ?, uids_kept_since_us = ? WHERE source = ? AND from_us = ?'),
    setFrontier: db.prepare('UPDATE sources SET frontier_us = ? WHERE source_no = ?'),
    /** The start of the first window that may be read again: a gap, pending, in doubt, or closed at or after the last parameter. */
    unresolved: db.prepare<[number, number, Micros], { first: number | null }>(
      `SELECT min(from_us) AS first FROM windows WHERE source = ? AND from_us >= ?
       AND (state = 'gap' OR next_us IS NOT NULL OR (state = 'proven' AND reason = 'reread') OR closed_us >= ?)`,
    ),
    closedSince: db.prepare<[number, number], WindowDbRow>(
      "SELECT * FROM windows WHERE source = ? AND closed_us >= ? AND state = 'proven' AND reason IS NULL ORDER BY from_us",
    ),
    latest: db.prepare<[number, number, number, number], WindowDbRow>(
      'SELECT * FROM windows WHERE source = ? AND from_us >= ? AND from_us < ? ORDER BY from_us DESC LIMIT ?',
    ),
    richest: db.prepare<[number, number, number, number], WindowDbRow>(
      `SELECT * FROM windows WHERE source = ? AND from_us >= ? AND from_us < ? AND state = 'proven' AND total > 0
       AND (reason IS NULL OR (reason = 'reread' AND next_us IS NOT NULL)) ORDER BY total DESC, from_us DESC LIMIT ?`,
    ),
  };
}

export function readable(row: WindowDbRow): LedgerWindow {
  return {
    from: row.from_us,
    to: row.to_us,
    query: storedJson(row.query) as WindowQuery,
    state: row.state,
    total: row.total ?? undefined,
    records: row.records,
    late: row.late,
    received: row.received,
    recounts: row.recounts,
    closed: row.closed_us,
    next: row.next_us ?? undefined,
    attempts: row.attempts,
    reason: row.reason ?? undefined,
  };
}
