/**
 * Reads, resolves and discards dead letters. sink-positions.ts creates them together with their
 * acknowledgement. Each operation of an operator is one transaction with its row in `operations`.
 */
import type { Database, Statement } from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import type { Entry, DeadLetterResult, Operation } from '../model/journal.ts';
import type { Micros } from '../model/time.ts';
import { chainStart, kindLedger } from './segment.ts';
import type { Operations } from './operations.ts';
import type { SinkPositions } from './sink-positions.ts';
import type { Store } from './store.ts';

/** A stored dead letter. A discarded one has no `body`. */
export interface DeadLetterRow {
  readonly sink: string;
  readonly seq: number;
  readonly source: string;
  readonly uid: string;
  /** `logTimestamp`, if readable; the time of receipt; the time of the last rejection. */
  readonly time: Micros | undefined;
  readonly received: Micros;
  readonly at: Micros;
  readonly code: string;
  readonly message: string;
  readonly attempts: number;
  readonly state: 'stored' | 'discarded';
}

interface Row {
  sink: string;
  seq: number;
  source: string;
  uid: Buffer;
  time_us: number | null;
  received_us: number;
  at_us: number;
  code: string;
  message: string;
  attempts: number;
  state: 'stored' | 'discarded';
  kind: number;
}

const columns =
  "sink, seq, coalesce(id, '') AS source, uid, time_us, received_us, at_us, code, message, attempts, dead_letters.state AS state, kind";
/** `operations` lists at most this many dead letters by number. */
const maxNamed = 100;
const from = 'FROM dead_letters LEFT JOIN sources ON source_no = source';

export class DeadLetters {
  readonly #store: Store;
  readonly #progress: SinkPositions;
  readonly #operations: Operations;
  readonly #one: Statement<[string, number], Row & { body: Buffer | null }>;
  readonly #remove: Statement;
  readonly #refuse: Statement;
  readonly #discard: Statement;

  constructor(store: Store, progress: SinkPositions, operations: Operations) {
    this.#store = store;
    this.#progress = progress;
    this.#operations = operations;
    const { db } = store;
    this.#one = db.prepare(`SELECT ${columns}, body ${from} WHERE sink = ? AND seq = ?`);
    this.#remove = db.prepare("DELETE FROM dead_letters WHERE sink = ? AND seq = ? AND state = 'stored'");
    this.#refuse = db.prepare(
      "UPDATE dead_letters SET code = ?, message = ?, attempts = attempts + 1, at_us = ? WHERE sink = ? AND seq = ? AND state = 'stored'",
    );
    this.#discard = db.prepare(
      "UPDATE dead_letters SET body = NULL, message = '', state = 'discarded' WHERE sink = ? AND seq = ? AND state = 'stored'",
    );
  }

  /**
   * A dead letter as a journal entry; undefined if its copy of the record was removed.
   * `numberOf` returns the number of the record with this `seq`; undefined if the journal deleted the record.
   */
  entry(sink: string, seq: number, numberOf: (seq: number) => number | undefined): Entry | undefined {
    const row = this.#one.get(sink, seq);
    if (row?.state !== 'stored' || row.body === null) return undefined;
    return {
      kind: /* mutant: dead-letter-kind */ row.kind === kindLedger ? 'ledger' : 'record',
      seq,
      number: numberOf(seq),
      source: row.source,
      bytes: row.body,
      text: row.body.toString('utf8'),
      uid: row.uid.toString('base64url'),
      received: row.received_us,
      time: row.time_us ?? undefined,
      late: false,
      // It has no position: sending it moves none.
      chain: chainStart,
    };
  }

  /**
   * Stores the result of sending a dead letter again, with the sink's note. A delivered dead letter
   * is removed; a dead letter discarded in the meantime stays discarded.
   */
  resolve(sink: string, seq: number, result: DeadLetterResult, operation: Operation): void {
    const detail = { sink, seq, delivered: result.delivered, ...operation.detail };
    this.#change(sink, { ...operation, detail }, () => {
      if (result.delivered && result.resumeNote !== undefined) this.#progress.writeResumeNote(sink, result.resumeNote);
      if (result.delivered) return this.#remove.run(sink, seq).changes;
      this.#refuse.run(result.rejection.code, result.rejection.message, operation.at, sink, seq);
      return 0;
    });
  }

  /**
   * Deletes the copies of the records, and the messages of the sink, which may quote them; the rows
   * stay. @throws WaybillError `usage` when one of them has no copy
   */
  discard(sink: string, seqs: readonly number[], operation: Operation): void {
    const stored = new Set(this.stored(sink));
    const missing = seqs.find((seq) => !stored.has(seq));
    if (missing !== undefined)
      throw new WaybillError('usage', `cannot discard entry ${missing} of sink "${sink}": the state has no copy of this dead letter`);
    const named = seqs.length <= maxNamed ? { seqs } : { first: seqs[0], last: seqs.at(-1) };
    const detail = { sink, count: seqs.length, ...named, ...operation.detail };
    this.#change(sink, { ...operation, detail }, () => seqs.reduce((sum, seq) => sum + this.#discard.run(sink, seq).changes, 0));
  }

  stored(sink: string): number[] {
    return this.#store.db
      .prepare<[string], { seq: number }>("SELECT seq FROM dead_letters WHERE sink = ? AND state = 'stored' ORDER BY seq")
      .all(sink)
      .map(({ seq }) => seq);
  }

  /** All records that a sink rejected and did not accept later, in any state. */
  rejected(sink: string): Set<number> {
    const rows = this.#store.db.prepare<[string], { seq: number }>('SELECT seq FROM dead_letters WHERE sink = ?').all(sink);
    return new Set(rows.map(({ seq }) => seq));
  }

  /** Runs `change` and writes the operation in one transaction. `change` returns the number of dead letters that were resolved. */
  #change(sink: string, operation: Operation, change: () => number): void {
    this.#store.transaction(() => {
      const fewer = change();
      this.#operations.write(operation);
      this.#store.after(() => (this.#progress.sink(sink).deadLetters -= fewer));
    });
  }
}

/** The dead letters of all sinks, in order, without the records. */
export function deadLettersOf(db: Database): DeadLetterRow[] {
  return db
    .prepare<[], Row>(`SELECT ${columns} ${from} ORDER BY sink, seq`)
    .all()
    .map(({ sink, seq, source, uid, time_us, received_us, at_us, code, message, attempts, state }) => ({
      sink,
      seq,
      source,
      uid: uid.toString('base64url'),
      time: time_us ?? undefined,
      received: received_us,
      at: at_us,
      code,
      message,
      attempts,
      state,
    }));
}

export function isDeadLetter(db: Database, sink: string, seq: number): boolean {
  return db.prepare<[string, number]>('SELECT 1 FROM dead_letters WHERE sink = ? AND seq = ?').get(sink, seq) !== undefined;
}

/** The record of a dead letter, exactly as received; undefined when its copy is gone. */
export function recordOfDeadLetter(db: Database, sink: string, seq: number): Buffer | undefined {
  const row = db
    .prepare<[string, number], { body: Buffer | null }>('SELECT body FROM dead_letters WHERE sink = ? AND seq = ?')
    .get(sink, seq);
  return row?.body ?? undefined;
}
