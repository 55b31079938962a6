/**
 * How often each id was seen at the service and in somebody's export, for any number of ids in bounded memory: a private database of SQLite, in
 * a file that has no name and goes with the process.
 */
import Database from 'better-sqlite3';
import type { Micros } from '../../../model/time.ts';

export interface Tallied {
  readonly id: string;
  /** At the service, and in the export. */
  readonly here: number;
  readonly there: number;
  /** logTimestamp at the service; null when it is not known there. */
  readonly time: Micros | null;
}

/** `missing`: less often there than at the service. `doubled`: more often, but at least once at the service. `unknown`: only there. */
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
    // Nothing here is worth keeping: no journal, no sync; what does not fit into 16 MiB goes to the file.
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

  addHere(id: string, time: Micros): void {
    this.#add.run(id, 1, 0, time);
  }

  addThere(id: string): void {
    this.#add.run(id, 0, 1, null);
  }

  /** How many different ids each kind has, and how many records or lines they stand for. */
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
