/**
 * What people did to the state: one row each, and a line of the ledger in the same transaction, so that it is archived and signed with
 * everything else. `actor` is what the person claimed.
 */
import type { Statement } from 'better-sqlite3';
import type { Operation } from '../model/journal.ts';
import type { Micros } from '../model/time.ts';
import type { Segments } from './segments.ts';
import type { Store } from './store.ts';

export class Operations {
  readonly #segments: Segments;
  readonly #insert: Statement;
  readonly #outcome: Statement;
  readonly #last: Statement<[Micros, string], { at: Micros | null }>;

  constructor(store: Store, segments: Segments) {
    this.#segments = segments;
    this.#insert = store.db.prepare('INSERT INTO operations (at_us, actor, operation, detail) VALUES (?, ?, ?, ?)');
    this.#outcome = store.db.prepare("UPDATE operations SET detail = json_set(detail, '$.outcome', ?) WHERE operation_no = ?");
    this.#last = store.db.prepare(
      "SELECT max(at_us) AS at FROM operations WHERE at_us >= ? AND CASE WHEN json_valid(detail) THEN json_extract(detail, '$.source') END = ?",
    );
  }

  /** When a person last did something about a source, if not before `since`. */
  last(source: string, since: Micros): Micros | undefined {
    return this.#last.get(since, source)?.at ?? undefined;
  }

  /** Within a transaction: the row and its line. @returns its number. `source` is the number of the source that it concerns; without one it concerns the daemon. */
  write({ at, actor, operation, detail, source: id = '' }: Operation, source = 0): number {
    const { lastInsertRowid } = this.#insert.run(at, actor, operation, JSON.stringify(detail));
    writeMoment(this.#segments, source, id, at, { ledger: 'operation', number: Number(lastInsertRowid), actor, operation, detail });
    return Number(lastInsertRowid);
  }

  /** Within a transaction: what came of the operation of this number, which was written down before it was known. */
  writeOutcome(operation: number, outcome: string): void {
    this.#outcome.run(outcome, operation);
  }
}

/**
 * Within a transaction: a line of the ledger about one moment (a suspension, its end, an operation) and not about a window. Its `from` and `to` are
 * that moment; `revision` tells lines of the same microsecond apart.
 */
export function writeMoment(segments: Segments, source: number, id: string, at: Micros, fields: Readonly<Record<string, unknown>>): number {
  const { ledger, ...more } = fields;
  const line = { ledger, source: id, from: at, to: at, revision: segments.ledgerEntriesAt(source, at) + 1, ...more };
  return segments.writeLedgerEntry(source, id, JSON.stringify(line), at, at, at);
}
