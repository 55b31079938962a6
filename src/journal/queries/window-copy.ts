/**
 * The windows of a completeness report at one moment, in a temporary table of the connection. A slow reader of the report reads the copy,
 * which delays no checkpoint of the daemon and which no recount changes. SQLite keeps the table in memory up to a few MiB, then in a
 * temporary file without a name (https://sqlite.org/tempfiles.html).
 */
import type { Database } from 'better-sqlite3';
import type { Micros } from '../../model/time.ts';
import type { WindowDbRow } from '../window-rows.ts';

const rowsAtOnce = 500;
const cacheKiB = 2_048;

export class WindowCopy implements Disposable {
  readonly #db: Database;
  /** The number of rows; they are numbered from 1. */
  #count = 0;

  constructor(db: Database) {
    this.#db = db;
    db.pragma(`temp.cache_size = -${cacheKiB}`);
    db.exec('CREATE TEMP TABLE report_windows AS SELECT * FROM windows LIMIT 0');
  }

  /**
   * Copies the windows of a source that start before `to` and end after `from`, within the transaction of the snapshot.
   * @returns the copies
   */
  take(source: number, from: Micros = 0, to: Micros = Number.MAX_SAFE_INTEGER): Iterable<WindowDbRow> {
    const first = this.#count;
    this.#count += this.#db
      .prepare('INSERT INTO temp.report_windows SELECT * FROM windows WHERE source = ? AND from_us < ? AND to_us > ? ORDER BY from_us')
      .run(source, to, from).changes;
    const last = this.#count;
    return { [Symbol.iterator]: () => this.#rows(first, last) };
  }

  /** Reads a few rows at a time, so that no statement stays open during other reads. */
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
