/**
 * The windows of one completeness report as they were at one moment, in a temporary table of the connection. Whoever writes the report out may take
 * as long as its reader does: what is read is the copy, which holds back no checkpoint of the daemon, and which no recount changes meanwhile. SQLite
 * keeps it in memory up to a few MiB and then in a temporary file (https://sqlite.org/tempfiles.html), which has no name and ends with the process.
 */
import type { Database } from 'better-sqlite3';
import type { Micros } from '../../model/time.ts';
import type { WindowDbRow } from '../window-rows.ts';

const rowsAtOnce = 500;
const cacheKiB = 2_048;

export class WindowCopy implements Disposable {
  readonly #db: Database;
  /** Rows so far; they are numbered from 1. */
  #count = 0;

  constructor(db: Database) {
    this.#db = db;
    db.pragma(`temp.cache_size = -${cacheKiB}`);
    db.exec('CREATE TEMP TABLE report_windows AS SELECT * FROM windows LIMIT 0');
  }

  /** Copies the windows of a source that begin before `to` and end behind `from`, within the transaction that makes the snapshot. @returns them */
  take(source: number, from: Micros = 0, to: Micros = Number.MAX_SAFE_INTEGER): Iterable<WindowDbRow> {
    const first = this.#count;
    this.#count += this.#db
      .prepare('INSERT INTO temp.report_windows SELECT * FROM windows WHERE source = ? AND from_us < ? AND to_us > ? ORDER BY from_us')
      .run(source, to, from).changes;
    const last = this.#count;
    return { [Symbol.iterator]: () => this.#rows(first, last) };
  }

  /** A few at a time: no statement stays open while others are asked. */
  *#rows(first: number, last: number): Generator<WindowDbRow, void, void> {
    const page = this.#db.prepare<[number, number], WindowDbRow>(
      'SELECT * FROM temp.report_windows WHERE rowid > ? AND rowid <= ? ORDER BY rowid',
    );
    for (let at = first; at < last; at += rowsAtOnce) yield* page.all(at, Math.min(at + rowsAtOnce, last));
  }

  [Symbol.dispose](): void {
    this.#db.exec('DROP TABLE temp.report_windows');
  }
}
