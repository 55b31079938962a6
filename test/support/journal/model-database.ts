/** A model of the database of a fleet with one shard: the committed rows and the fence row, as a SQLite database in memory. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import type {
  Change,
  Commit,
  Fence,
  Row,
  SeenColumns,
  SegmentColumns,
  ShardDatabase,
  Value,
} from '../../../src/journal/replica/shard-database.ts';

const schema = readFileSync(new URL('../../../src/journal/migrations/001.sql', import.meta.url), 'utf8');

/** The tables of a state that a database stores, with their keys, from the schema of the file. Not the code's own list. */
function storedTables(db: Database.Database): { name: string; key: string[] }[] {
  const names = [...schema.matchAll(/^CREATE TABLE (\w+)/gm)].map(([, name = '']) => name).filter((name) => name !== 'owner');
  return names.map((name) => {
    const columns = db.pragma(`table_info(${name})`) as { name: string; pk: number }[];
    const key = columns.filter(({ pk }) => pk > 0).sort((one, other) => one.pk - other.pk);
    return { name, key: key.map((column) => column.name) };
  });
}

/** The rows of every stored table, in the order of their keys. */
export function contentOf(db: Database.Database): Record<string, unknown[]> {
  return Object.fromEntries(
    storedTables(db).map(({ name, key }) => [name, db.prepare(`SELECT * FROM main.${name} ORDER BY ${key.join(', ')}`).all()]),
  );
}

/** The values that a working copy may leave to its database. */
const largeColumns: Readonly<Record<string, readonly string[]>> = { segments: ['uids', 'ends', 'body'], seen: ['uids'] };

/** A line of the ledger about a moment, such as a suspension. */
function isMoment({ kind, min_us: min, max_us: max }: Row): boolean {
  return Number(kind) % 256 === 2 && min === max;
}

/** The rows of a working copy, with those values from its database that it may have left there. */
export function contentOfCopy(copy: Database.Database, database: Database.Database): Record<string, unknown[]> {
  const stored = contentOf(database) as Record<string, Row[]>;
  const filled = (name: string, row: Row, i: number): Row => {
    const absent = (largeColumns[name] ?? []).filter((column) => Buffer.isBuffer(row[column]) && row[column].length === 0);
    return { ...row, ...Object.fromEntries(absent.map((column) => [column, stored[name]?.[i]?.[column]])) } as Row;
  };
  const rows = Object.entries(contentOf(copy)) as [string, Row[]][];
  return Object.fromEntries(rows.map(([name, all]) => [name, all.map((row, i) => filled(name, row, i))]));
}

export class ModelDatabase {
  readonly rows = new Database(':memory:');
  /** For tests that read the working copy themselves. */
  loadsAll = false;
  /** The first and the last of the commits of each repair. */
  readonly repairs: [first: number, last: number][] = [];
  #fence: Fence = { lease: '', commits: 0 };
  /** What undoes the last commits, the newest last: the fence row before each, and its rows before it. */
  #undo: { readonly fence: Fence; readonly changes: readonly Change[] }[] = [];
  /** The lost commits, the oldest first: their rows, and the number after them. */
  #lost: { readonly commits: number; readonly changes: readonly Change[] }[] = [];
  readonly #where: ReadonlyMap<string, string>;
  readonly #statements = new Map<string, Database.Statement<Value[], Row>>();

  constructor() {
    this.rows.exec(schema);
    // A file of a state has this row. The database has no such table.
    this.rows.exec('INSERT INTO owner (one, epoch) VALUES (1, 0)');
    this.#where = new Map(storedTables(this.rows).map(({ name, key }) => [name, key.map((column) => `${column} = ?`).join(' AND ')]));
  }

  get fence(): Fence {
    return this.#fence;
  }

  /** Gives the shard to a new owner. */
  take(): ShardDatabase {
    this.#fence = { ...this.#fence, lease: randomUUID() };
    const taken = this.#fence;
    return {
      taken,
      load: () => this.load(),
      segments: (seq) => Promise.resolve(this.segments(seq)),
      seen: (source, buckets) => Promise.resolve(this.seen(source, buckets)),
      commit: (commit) => Promise.resolve(this.carryOut(commit)),
      fence: () => Promise.resolve(this.#fence),
      owned: () => Promise.resolve(),
      done: ({ lost }) => lost && void this.repairs.push([lost.first, lost.last]),
    };
  }

  /** Leaves out every large value that it may. */
  async *load(): AsyncGenerator<readonly [string, readonly Row[]]> {
    for (const [name, rows] of Object.entries(contentOf(this.rows)) as [string, Row[]][]) {
      const large = largeColumns[name] ?? [];
      const isKept = (row: Row): boolean => (name === 'seen' ? Number(row['bucket']) < 0 : isMoment(row));
      const empty = Object.fromEntries(large.map((column) => [column, Buffer.alloc(0)]));
      yield [name, rows.map((row) => (this.loadsAll || isKept(row) ? row : { ...row, ...empty }))];
    }
  }

  segments(seq: number): SegmentColumns[] {
    const sql = 'SELECT seq, uids, ends, body FROM segments WHERE seq >= ? ORDER BY seq LIMIT 2';
    return this.rows.prepare<[number], SegmentColumns>(sql).all(seq);
  }

  seen(source: number, buckets: readonly number[]): SeenColumns[] {
    const rows = this.rows.prepare<[number], SeenColumns>('SELECT * FROM seen WHERE source = ?').all(source);
    return rows.filter(({ bucket }) => buckets.includes(bucket));
  }

  /** As the database does when a request reaches it. */
  carryOut({ fence, number, changes }: Commit): boolean {
    const holds = Object.entries(fence).every(([column, value]) => this.#fence[column as keyof Fence] === value);
    if (!holds) return false;
    this.#undo.push({ fence: this.#fence, changes: this.#apply(changes) });
    if (this.#undo.length > 50) this.#undo.shift();
    this.#fence = { ...this.#fence, commits: number };
    if (this.#lost.every(({ commits }) => commits < number)) this.#lost = [];
    return true;
  }

  /** Loses the last commits, as a fail-over to a standby that lacked them. Takes of the shard stay: nothing is lost of those. */
  rollBack(commits = 1): void {
    for (const { fence, changes } of this.#undo.splice(-commits).toReversed()) {
      this.#lost.unshift({ commits: this.#fence.commits, changes: this.#apply(changes) });
      this.#fence = { ...this.#fence, commits: fence.commits };
    }
  }

  /** The commits that are lost, and not repaired. */
  get lost(): number {
    return this.#lost.length;
  }

  /** The server with the lost commits is back. */
  restore(): void {
    for (const { commits, changes } of this.#lost.splice(0)) {
      this.#apply(changes);
      this.#fence = { ...this.#fence, commits };
    }
    this.#undo = [];
  }

  /** @returns the rows before */
  #apply(changes: readonly Change[]): Change[] {
    return this.rows.transaction(() =>
      changes.map(({ table, key, row }) => {
        const where = this.#where.get(table) ?? '';
        const before = this.#prepared(`SELECT * FROM ${table} WHERE ${where}`).get(...key);
        this.#prepared(`DELETE FROM ${table} WHERE ${where}`).run(...key);
        if (row !== undefined) this.#insert(table, row);
        return { table, key, row: before };
      }),
    )();
  }

  /** Takes the rows of a state, as `fleet import` does. */
  replace(from: Database.Database): void {
    this.fill(contentOf(from));
  }

  fill(content: Record<string, unknown[]>): void {
    this.rows.transaction(() => {
      for (const [name, rows] of Object.entries(content) as [string, Row[]][]) {
        this.rows.exec(`DELETE FROM ${name}`);
        for (const row of rows) this.#insert(name, row);
      }
    })();
  }

  #insert(table: string, row: Row): void {
    const columns = Object.keys(row);
    const marks = columns.map(() => '?').join(', ');
    this.#prepared(`INSERT INTO ${table} (${columns.join(', ')}) VALUES (${marks})`).run(...Object.values(row));
  }

  #prepared(sql: string): Database.Statement<Value[], Row> {
    const known = this.#statements.get(sql) ?? this.rows.prepare<Value[], Row>(sql);
    this.#statements.set(sql, known);
    return known;
  }
}
