/** Occurrences of each id at the service and in the export, in bounded memory: an unnamed SQLite file that ends with the process. */
import Database from 'better-sqlite3';
import type { Micros } from '../../../model/time.ts';

export interface Tallied {
  readonly id: string;
  /** Occurrences at the service. */
  readonly here: number;
  /** Occurrences in the export. */
  readonly there: number;
  /** logTimestamp at the service; null when the service does not know the id. */
  readonly time: Micros | null;
}

/** In the export: `missing`: fewer than at the service; `doubled`: more, at least one at the service; `unknown`: only in the export. */
export type Kind = 'missing' | 'doubled' | 'unknown';

const conditions: Readonly<Record<Kind, string>> = {
  missing: 'there < here',
  doubled: 'here > 0 AND there > here',
  unknown: 'here = 0',
};

export class Tally implements Disposable {
  readonly #db: Database.Database;
  readonly #add;

  constructor() {
    this.#db = new Database('');
    // The file is temporary: no journal, no sync. SQLite writes to it only beyond 16 MiB of cache.
    for (const pragma of ['journal_mode = OFF', 'synchronous = OFF', 'cache_size = -16384', 'temp_store = FILE']) this.#db.pragma(pragma);
    this.#db.exec(
      'CREATE TABLE ids (id TEXT PRIMARY KEY, here INTEGER NOT NULL, there INTEGER NOT NULL, time INTEGER) STRICT, WITHOUT ROWID',
    );
    this.#add = this.#db.prepare<[string, number, number, number | null]>(
      `INSERT INTO ids (id, here, there, time) VALUES (?, ?, ?, ?)
       ON CONFLICT (id) DO UPDATE SET here = here + excluded.here, there = there + excluded.there, time = coalesce(excluded.time, time)`,
    );
    this.#db.exec('BEGIN');
  }

  addHere(id: string, time: Micros | null): void {
    this.#add.run(id, 1, 0, time);
  }

  addThere(id: string): void {
    this.#add.run(id, 0, 1, null);
  }

  /** Distinct ids of a kind, and the records or lines that they occur in. */
  count(kind: Kind): { readonly ids: number; readonly records: number } {
    const of = kind === 'missing' ? 'here - there' : kind === 'doubled' ? 'there - here' : 'there';
    const row = this.#db
      .prepare<[], { ids: number; records: number | null }>(
        `SELECT count(*) AS ids, sum(${of}) AS records FROM ids WHERE ${conditions[kind]}`,
      )
      .get();
    return { ids: row?.ids ?? 0, records: row?.records ?? 0 };
  }

  /** In the order of the ids as text. */
  of(kind: Kind): Iterable<Tallied> {
    return this.#db.prepare<[], Tallied>(`SELECT id, here, there, time FROM ids WHERE ${conditions[kind]} ORDER BY id`).iterate();
  }

  [Symbol.dispose](): void {
    this.#db.close();
  }
}
