/**
 * Where a life can end: around every statement that changes the state, and at every call that reaches the outside. The program knows nothing of
 * this: better-sqlite3 itself tells before and after each change, and the file is copied as it is at that moment.
 */
import { appendFileSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';

/** Told of each change of a state file, by its directory. May throw, to end everything at that point. */
interface Watcher {
  before(what: string, db: Database.Database): void;
  /** COMMIT has returned. */
  committed(db: Database.Database): void;
}

const watchers = new Map<string, Watcher>();
const known = new WeakMap<object, Watcher | null>();

/** From now on whoever watches a directory is told of changes there. */
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

/** Lets better-sqlite3 tell of every change, in this process, once and for ever. */
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

/** A place in memory where states lie; removed by `leave`. */
export class Place {
  readonly #root = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'waybill-simulation-'));
  #number = 0;

  /** The name of a directory that is not there yet. */
  fresh(): string {
    this.#number += 1;
    return join(this.#root, String(this.#number));
  }

  /**
   * The state as the end of a process leaves it: every byte that was written. After a power cut only what SQLite had synced is sure: with
   * synchronous=FULL every commit, and otherwise only what a checkpoint brought into the file itself.
   */
  copy(from: string, powerCut?: { readonly synchronous: number; readonly torn: Uint8Array }): string {
    const to = this.fresh();
    mkdirSync(to, { mode: 0o700 });
    if (!existsSync(join(from, 'waybill.db'))) return to;
    copyFileSync(join(from, 'waybill.db'), join(to, 'waybill.db'));
    const isKept = existsSync(join(from, 'waybill.db-wal')) && (!powerCut || powerCut.synchronous >= 2);
    if (isKept) {
      const wal = join(to, 'waybill.db-wal');
      copyFileSync(join(from, 'waybill.db-wal'), wal);
      // What was being written when the power went may lie there torn.
      if (powerCut) appendFileSync(wal, powerCut.torn);
    }
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
