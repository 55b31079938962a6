/**
 * Notes which rows each transaction of a working copy changes. Triggers do it, so that no statement can be forgotten, and the list of tables
 * comes from the schema, so that no table can.
 */
import type { Database, Statement } from 'better-sqlite3';
import type { Change, Row, Value } from './shard-database.ts';

interface Column {
  readonly name: string;
  readonly type: string;
  /** NOT NULL. */
  readonly isRequired: boolean;
  /** The default as SQL; null without one. */
  readonly initial: string | null;
}

/** A table whose rows the database stores. */
export interface Table {
  readonly name: string;
  readonly columns: readonly Column[];
  /** The columns of the primary key. */
  readonly key: readonly string[];
}

/** `owner` names the process that holds the local file. */
const local = 'owner';
const mostKeys = 3;
/** Pages for other changes, in a file that has grown above its limit. */
const sparePages = 64;

/** All tables of the state, sorted by name, except the table that describes the file. */
export function tablesOf(db: Database): Table[] {
  const names = db
    .prepare<[string], { name: string }>(
      "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> ? ORDER BY name",
    )
    .all(local);
  return names.map(({ name }) => {
    const found = db.pragma(`main.table_info(${name})`) as {
      name: string;
      type: string;
      notnull: number;
      dflt_value: string | null;
      pk: number;
    }[];
    const columns = found.map((each) => ({ name: each.name, type: each.type, isRequired: each.notnull === 1, initial: each.dflt_value }));
    const key = found.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk);
    return { name, columns, key: key.map((column) => column.name) };
  });
}

export class Capture {
  readonly tables: readonly Table[];
  readonly #db: Database;
  /** By table: the row of a key. */
  readonly #rows: ReadonlyMap<string, Statement<Value[], Row>>;

  /** Begins to note changes on this connection. */
  constructor(db: Database) {
    this.#db = db;
    this.tables = /* mutant: captured-tables */ tablesOf(db);
    this.#rows = new Map(
      this.tables.map(({ name, key }) => {
        const where = key.map((column) => `${column} = ?`).join(' AND ');
        return [name, db.prepare<Value[], Row>(`SELECT * FROM main.${name} WHERE ${where}`)];
      }),
    );
    db.pragma('temp_store = MEMORY');
    // Without it, REPLACE deletes a row without its trigger.
    db.pragma('recursive_triggers = ON');
    db.exec('CREATE TEMP TABLE changed (t INTEGER NOT NULL, k0 ANY, k1 ANY, k2 ANY) STRICT');
    for (const [t, { name, key }] of this.tables.entries()) {
      const on = (event: string, row: 'new' | 'old', trigger: string): void => {
        const values = keyList(key, (column) => `${row}.${column}`);
        db.exec(
          `CREATE TEMP TRIGGER ${trigger}_${name} AFTER ${event} ON main.${name} BEGIN INSERT INTO changed VALUES (${t}, ${values}); END`,
        );
      };
      on('INSERT', 'new', 'inserted');
      on('DELETE', 'old', 'deleted');
      // mutant: capture-updates
      on('UPDATE', 'new', 'updated');
      on(`UPDATE OF ${key.join(', ')}`, 'old', 'renamed');
    }
  }

  /** Notes every row, for a journal that the database does not have yet. */
  noteAll(): void {
    for (const [t, { name, key }] of this.tables.entries())
      this.#db.exec(`INSERT INTO temp.changed SELECT ${t}, ${keyList(key, (column) => column)} FROM main.${name}`);
  }

  /** Runs a transaction whose changes belong to this copy alone. */
  uncaptured<Result>(work: () => Result): Result {
    const count = (name: string): number => this.#db.pragma(name, { simple: true }) as number;
    const limit = count('max_page_count');
    // The page limit is for content of the shard, not for fetched rows. Pages stay free for an acknowledgement.
    this.#db.pragma('max_page_count = 4294967294');
    try {
      return this.#withoutNotes(work);
    } finally {
      this.#db.pragma(`max_page_count = ${Math.max(limit, count('page_count') + sparePages)}`);
    }
  }

  #withoutNotes<Result>(work: () => Result): Result {
    return this.#db.transaction(() => {
      const before = this.#db.prepare<[], { id: number | null }>('SELECT max(rowid) AS id FROM temp.changed').get()?.id ?? 0;
      const result = work();
      this.#db.prepare('DELETE FROM temp.changed WHERE rowid > ?').run(before);
      return result;
    })();
  }

  /** Within a transaction, as its last step: the final content of each row that was changed since the last call. */
  collect(): Change[] {
    const sql = 'SELECT DISTINCT t, k0, k1, k2 FROM temp.changed';
    const noted = this.#db.prepare<[], { t: number; k0: Value; k1: Value; k2: Value }>(sql).all();
    if (noted.length === 0) return [];
    this.#db.exec('DELETE FROM temp.changed');
    return this.contentOf(
      noted.flatMap(({ t, k0, k1, k2 }) => {
        const table = this.tables[t];
        return table ? [{ table: table.name, key: [k0, k1, k2].slice(0, table.key.length) }] : [];
      }),
    );
  }

  /** The present content of rows. */
  contentOf(rows: readonly Pick<Change, 'table' | 'key'>[]): Change[] {
    return rows.map(({ table, key }) => ({ table, key, row: /* mutant: captured-row */ this.#rows.get(table)?.get(...key) }));
  }
}

function keyList(key: readonly string[], value: (column: string) => string): string {
  if (key.length > mostKeys) throw new Error(`a primary key has more than ${mostKeys} columns: ${key.join(', ')}`);
  return Array.from({ length: mostKeys }, (_, i) => (key[i] === undefined ? 'NULL' : value(key[i]))).join(', ');
}
