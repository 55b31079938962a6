/**
 * Operations of operators. Each is a row and a ledger entry in one transaction, so that the archive
 * sink receives and signs it. `actor` is not authenticated.
 */
import type { Statement } from 'better-sqlite3';
import type { Operation } from '../model/journal.ts';
import type { Micros } from '../model/time.ts';
import { detailOf } from './operation-detail.ts';
import type { Segments } from './segments.ts';
import type { Store } from './store.ts';

export class Operations {
  readonly #segments: Segments;
  readonly #insert: Statement;
  readonly #outcome: Statement;
  readonly #onSink: Statement<[string], { operation: string; detail: string | null }>;
  readonly #last: Statement<[Micros, string], { at: Micros | null }>;

  constructor(store: Store, segments: Segments) {
    this.#segments = segments;
    this.#insert = store.db.prepare('INSERT INTO operations (at_us, actor, operation, detail) VALUES (?, ?, ?, ?)');
    this.#outcome = store.db.prepare("UPDATE operations SET detail = json_set(detail, '$.outcome', ?) WHERE operation_no = ?");
    this.#onSink = store.db.prepare(
      "SELECT operation, detail FROM operations WHERE CASE WHEN json_valid(detail) THEN json_extract(detail, '$.sink') END = ? ORDER BY operation_no",
    );
    this.#last = store.db.prepare(
      "SELECT max(at_us) AS at FROM operations WHERE at_us >= ? AND CASE WHEN json_valid(detail) THEN json_extract(detail, '$.source') END = ?",
    );
  }

  /** The operations on a sink, oldest first, each with its detail. */
  onSink(sink: string): readonly Readonly<Record<string, unknown>>[] {
    return this.#onSink.all(sink).map(({ operation, detail }) => ({ ...detailOf(detail), operation }));
  }

  /** The time of the last operation on a source at or after `since`. */
  last(source: string, since: Micros): Micros | undefined {
    return this.#last.get(since, source)?.at ?? undefined;
  }

  /**
   * Within a transaction: writes the row and the ledger entry. `source` is the source's number; 0 for
   * an operation on the daemon. @returns the operation's number
   */
  write({ at, actor, operation, detail, source: id = '' }: Operation, source = 0): number {
    const { lastInsertRowid } = this.#insert.run(at, actor, operation, JSON.stringify(detail));
    writeMoment(this.#segments, source, id, at, { ledger: 'operation', number: Number(lastInsertRowid), actor, operation, detail });
    return Number(lastInsertRowid);
  }

  /** Within a transaction: adds the outcome to an operation that was written before its outcome was known. */
  writeOutcome(operation: number, outcome: string): void {
    this.#outcome.run(outcome, operation);
  }
}

/**
 * Within a transaction: writes a ledger entry about a moment (a suspension, its end, an operation) instead of a window. `from` and `to` are
 * that moment; `revision` distinguishes entries of the same microsecond.
 */
export function writeMoment(segments: Segments, source: number, id: string, at: Micros, fields: Readonly<Record<string, unknown>>): number {
  const { ledger, ...more } = fields;
  const line = { ledger, source: id, from: at, to: at, revision: segments.ledgerEntriesAt(source, at) + 1, ...more };
  return segments.writeLedgerEntry(source, id, JSON.stringify(line), at, at, at);
}
