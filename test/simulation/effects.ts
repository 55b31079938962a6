/**
 * The points at which a life (life.ts) can end: before every statement that changes the state, and
 * at every call to the outside. The program has no hooks for this: the simulation intercepts
 * better-sqlite3, and copies the file as it is at that moment.
 */
import { appendFileSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import type { ModelDatabase } from '../support/journal/model-database.ts';

/**
 * The callbacks for changes of the state file in one directory. They may throw to end the life at
 * that point.
 */
interface Watcher {
  before(what: string, db: Database.Database): void;
  /** COMMIT has returned. */
  committed(db: Database.Database): void;
}

const watchers = new Map<string, Watcher>();
const known = new WeakMap<object, Watcher | null>();

/** Registers the watcher of a directory; undefined removes it. */
export function watch(directory: string, watcher: Watcher | undefined): void {
  if (watcher) watchers.set(directory, watcher);
  else watchers.delete(directory);
}

function watcherOf(db: Database.Database): Watcher | null {
  let found = known.get(db);
  if (found === undefined) {
    found = (basename(db.name) === 'waybill.db' ? watchers.get(dirname(db.name)) : undefined) ?? null;
    known.set(db, found);
  }
  return found;
}

/** Intercepts every change through better-sqlite3, for the lifetime of this process. */
function intercept(): void {
  const probe = new Database(':memory:');
  const statements = Object.getPrototypeOf(probe.prepare('SELECT 1')) as {
    run: (this: Database.Statement, ...parameters: unknown[]) => Database.RunResult;
  };
  probe.close();
  const databases = Database.prototype;
  const { run } = statements;
  statements.run = function (...parameters) {
    watcherOf(this.database)?.before('statement', this.database);
    return run.apply(this, parameters);
  };
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called with its object below
  const { exec } = databases;
  databases.exec = function (this: Database.Database, sql: string) {
    const watcher = watcherOf(this);
    watcher?.before(sql.length < 20 ? sql : 'script', this);
    const result = exec.call(this, sql);
    if (watcher && sql === 'COMMIT') watcher.committed(this);
    return result;
  };
}

intercept();

/** A directory in memory for states; `leave` removes it. */
export class Place {
  readonly #root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'waybill-simulation-'));
  #number = 0;

  /** The path of a new directory, not yet created. */
  fresh(): string {
    this.#number += 1;
    return join(this.#root, String(this.#number));
  }

  /**
   * The state as the end of a process leaves it, with every byte that was written. A power cut
   * keeps only what SQLite had synced: every commit with synchronous=FULL, otherwise only what a
   * checkpoint moved to the database file. With a database, its rows are the state.
   */
  copy(from: string, powerCut?: { readonly synchronous: number; readonly torn: Uint8Array }, database?: ModelDatabase): string {
    if (database) {
      // Only an owner that lives can repair a loss: else the server with the lost commits comes back first.
      database.restore();
      return this.serialized(database.rows);
    }
    const to = this.fresh();
    mkdirSync(to, { mode: 0o700 });
    if (!existsSync(join(from, 'waybill.db'))) return to;
    copyFileSync(join(from, 'waybill.db'), join(to, 'waybill.db'));
    const isKept = existsSync(join(from, 'waybill.db-wal')) && (!powerCut || powerCut.synchronous >= 2);
    if (isKept) {
      const wal = join(to, 'waybill.db-wal');
      copyFileSync(join(from, 'waybill.db-wal'), wal);
      // A power cut may leave a torn write at the end of the WAL.
      if (powerCut) appendFileSync(wal, powerCut.torn);
    }
    return to;
  }

  /** A state with these rows. */
  serialized(rows: Database.Database): string {
    const to = this.fresh();
    mkdirSync(to, { mode: 0o700 });
    writeFileSync(join(to, 'waybill.db'), rows.serialize());
    return to;
  }

  remove(directory: string): void {
    rmSync(directory, { recursive: true, force: true });
  }

  write(name: string, text: string): string {
    const path = join(this.#root, name);
    writeFileSync(path, text);
    return path;
  }

  leave(): void {
    rmSync(this.#root, { recursive: true, force: true });
  }
}
