/**
 * The SQLite file of the service: log records, people, payloads and policies share it, so that the
 * change of a call and its log record are one transaction. Each part of the service creates its
 * own tables and accesses no others.
 */
import { chmodSync, closeSync, existsSync, openSync, rmSync } from 'node:fs';
import Database, { type Statement } from 'better-sqlite3';

class DataFileInUse extends Error {
  override readonly name = 'DataFileInUse';

  constructor(file: string, cause: Error) {
    super(`--data: another process uses ${file}`, { cause });
  }
}

export class DataFile {
  readonly #db: Database.Database;
  readonly #statements = new Map<string, Statement>();

  /**
   * @param file      path of the database
   * @param lasting   false: the file is unlinked at once, so that it disappears with the process,
   * even after a kill
   * @throws DataFileInUse
   */
  constructor(file: string, lasting: boolean) {
    this.#db = opened(file, lasting);
    try {
      this.#begin(lasting);
    } catch (error) {
      this.#db.close();
      if (error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')) throw new DataFileInUse(file, error);
      throw unusable(file, error);
    }
    if (!lasting && process.platform !== 'win32') rmSync(file);
  }

  #begin(lasting: boolean): void {
    this.#db.pragma('page_size = 16384');
    // Two services with one file would assign the same ids, so the first locks it until its process
    // ends.
    this.#db.pragma('locking_mode = EXCLUSIVE');
    // A write-ahead log that is synced at its checkpoints keeps the file consistent after a power
    // failure.
    this.#db.pragma(lasting ? 'journal_mode = WAL' : 'journal_mode = MEMORY');
    this.#db.pragma(lasting ? 'synchronous = NORMAL' : 'synchronous = OFF');
    this.#db.pragma('foreign_keys = ON');
    this.#db.pragma('cache_size = -262144');
    this.#db.pragma(`mmap_size = ${2 ** 36}`);
    this.#db.pragma('temp_store = MEMORY');
    this.#db.exec('CREATE TABLE IF NOT EXISTS facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT');
  }

  exec(sql: string): void {
    this.#db.exec(sql);
  }

  prepared(sql: string): Statement {
    let statement = this.#statements.get(sql);
    if (!statement) this.#statements.set(sql, (statement = this.#db.prepare(sql)));
    return statement;
  }

  /** Runs `work` in a transaction; within another transaction, as a part of it. */
  transaction<T>(work: () => T): T {
    return this.#db.transaction(work)();
  }

  /** A stored fact about the data, such as the seed. */
  fact(name: string): string | undefined {
    return this.prepared('SELECT value FROM facts WHERE name = ?').pluck().get([name]) as string | undefined;
  }

  setFact(name: string, value: string): void {
    this.prepared('INSERT OR REPLACE INTO facts VALUES (?, ?)').run([name, value]);
  }

  close(): void {
    this.#db.close();
  }
}

function opened(file: string, lasting: boolean): Database.Database {
  try {
    if (lasting) makePrivate(file);
    return new Database(file, { timeout: 0 });
  } catch (error) {
    throw unusable(file, error);
  }
}

function unusable(file: string, cause: unknown): Error {
  return new Error(`--data: cannot use ${file}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
}

/**
 * Creates the file with mode 0600, because it contains keys and passwords; SQLite uses the same
 * mode for its other files. An existing file is not opened: closing it would release the locks of
 * this process on it (POSIX, fcntl).
 */
function makePrivate(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
  for (const each of [file, `${file}-wal`, `${file}-shm`]) if (existsSync(each)) chmodSync(each, 0o600);
}
