/**
 * The state directory and its file: ownership, format and the SQLite settings that the guarantees depend on. All durable data of a daemon
 * is in `waybill.db`. The process holds `lock.db` for its lifetime, so that there is one owner.
 */
import { randomUUID } from 'node:crypto';
import { accessSync, constants, existsSync, mkdirSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import Database from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import { makePrivate, tryLock } from '../disk/lock.ts';
import type { Clock, Micros } from '../model/time.ts';
import { connect } from './connection.ts';
import { damaged } from './damage.ts';
import { pageBytes, diskBudgetOf } from './disk-budget.ts';
import { Capture } from './replica/capture.ts';
import { loadRows } from './replica/load.ts';
import { Replica } from './replica/replica.ts';
import type { ShardDatabase } from './replica/shard-database.ts';
import { hasMeta, migrate, refuseMoved, refuseOther } from './schema.ts';
import { asStateError, forbidden, isDamage, statOf } from './state-errors.ts';

/** SQLite 3.7.0 to 3.51.2 can corrupt a WAL file when two connections write or checkpoint at once (sqlite.org, "WAL-reset bug"). */
const minSqliteVersion = [3, 51, 3];

export interface StateOptions {
  /** Maximum size of the file and its WAL together, bytes. */
  readonly maxSize: number;
  /** How long to wait for another owner to end, ms. */
  readonly lockWait: number;
  /** Called once before the first wait. */
  readonly waits?: () => void;
  readonly version: string;
  /** Refuse a directory without a state. */
  readonly expectState: boolean;
  /** Open a state although it was moved to a fleet, to complete the move. */
  readonly isMoving?: boolean;
  /** The database of a shard. The directory then holds only a working copy, which is made anew. */
  readonly database?: ShardDatabase | undefined;
  /** Bytes above which the working copy leaves delivered bodies to the database. */
  readonly localSize?: number;
}

export interface OpenState {
  readonly db: Database.Database;
  readonly lock: Database.Database;
  readonly directory: string;
  readonly epoch: number;
  /** Inode of the opened file. */
  readonly inode: number;
  /** True when this call created the state. */
  readonly created: boolean;
  /** Set for the working copy of a shard. */
  readonly replica: Replica | undefined;
}

/**
 * Opens the state as its only owner.
 * @throws WaybillError `state_locked`, `state_too_new`, `state_missing`, `state_unusable` or `state_corrupt`
 */
export async function openState(directory: string, options: StateOptions, clock: Clock, signal: AbortSignal): Promise<OpenState> {
  requireSqlite();
  const file = join(directory, 'waybill.db');
  const missing = (): WaybillError =>
    new WaybillError('state_missing', `cannot find a state in "${directory}": --require-state forbids a new one; is the volume mounted?`);
  try {
    if (options.expectState) accessSync(file, constants.F_OK);
  } catch (thrown) {
    throw accessError(thrown, directory, missing);
  }
  makeDirectory(directory);
  const lock = await takeLock(directory, options, clock, signal);
  try {
    if (options.database) for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true });
    const created = !holdsState(file, directory, options);
    if (options.expectState && created) throw missing();
    const db = openFile(file, directory, options.maxSize);
    migrate(db, options.version, clock, directory);
    const epoch = newOwner(db, clock, directory);
    const opened = { db, lock, directory, epoch, inode: statSync(file).ino };
    if (!options.database) return { ...opened, created, replica: undefined };
    return { ...opened, ...(await takeOver(db, options.database, options.version, clock, directory)) };
  } catch (thrown) {
    lock.close();
    throw thrown;
  }
}

/** Makes `db`, a new state, the working copy of a shard: it gets the rows of the database, and its changes go there. */
async function takeOver(db: Database.Database, database: ShardDatabase, version: string, clock: Clock, directory: string) {
  try {
    // The database keeps what counts.
    db.pragma('synchronous = OFF');
    const created = !(await loadRows(db, database));
    const capture = new Capture(db);
    if (created) capture.noteAll();
    else migrate(db, version, clock, directory);
    return { created, replica: new Replica(db, capture, database, clock) };
  } catch (thrown) {
    db.close();
    throw thrown;
  }
}

/** Opens the state read-only, for commands; a daemon may be running. */
export function openReadOnly(directory: string): Database.Database {
  requireSqlite();
  const file = join(directory, 'waybill.db');
  const missing = (): WaybillError => new WaybillError('state_missing', `cannot find a state in "${directory}": ${lackIn(directory)}`);
  let db: Database.Database | undefined;
  try {
    accessSync(file, constants.R_OK);
    db = connect(file, { readonly: true, timeout: 2_000 }, (thrown) => asStateError(thrown, directory));
    db.pragma('trusted_schema = OFF');
    refuseOther(db, directory, '');
    if (!hasMeta(db)) throw missing();
    return db;
  } catch (thrown) {
    db?.close();
    throw accessError(thrown, directory, missing);
  }
}

function accessError(thrown: unknown, directory: string, missing: () => WaybillError): WaybillError {
  const code = thrown instanceof Error && 'code' in thrown ? thrown.code : undefined;
  if (code === 'ENOENT' || code === 'ENOTDIR') return missing();
  return code === 'EACCES' ? forbidden(directory, thrown) : asStateError(thrown, directory);
}

export function readState<Result>(directory: string, work: (db: Database.Database) => Result): Result {
  const db = openReadOnly(directory);
  try {
    return work(db);
  } finally {
    db.close();
  }
}

/** Reads the state again and again through one read-only connection: opening it costs many times more than a small read. */
export class StateReader implements Disposable {
  readonly #directory: string;
  #open: { readonly db: Database.Database; readonly inode: number } | undefined;

  constructor(directory: string) {
    this.#directory = directory;
  }

  read<Result>(work: (db: Database.Database) => Result): Result {
    try {
      const inode = statOf(join(this.#directory, 'waybill.db'))?.ino;
      // A removed or replaced file: the open connection would still read the old one.
      if (this.#open?.inode !== inode) this[Symbol.dispose]();
      this.#open ??= { db: openSmall(this.#directory), inode: inode ?? 0 };
      return work(this.#open.db);
    } catch (thrown) {
      this[Symbol.dispose]();
      throw thrown;
    }
  }

  [Symbol.dispose](): void {
    this.#open?.db.close();
    this.#open = undefined;
  }
}

/** Opens the state with a page cache of 256 KiB instead of 2 MiB, because this connection stays open. */
function openSmall(directory: string): Database.Database {
  const db = openReadOnly(directory);
  db.pragma('cache_size = -256');
  return db;
}

/** The reason why a directory has no state. */
function lackIn(directory: string): string {
  const found = statOf(directory);
  if (found === undefined) return 'there is no such directory; has the daemon run?';
  return found.isDirectory() ? 'the directory has none; has the daemon run?' : 'it is not a directory';
}

/** The time of the last write to the state by its file times, µs of the wall clock: about when its daemon ended. */
export function lastWrite(directory: string): Micros {
  // A reader creates an empty WAL file with the present time.
  const files = ['waybill.db', 'waybill.db-wal'].map((name) => statOf(join(directory, name))).filter((stats) => stats !== undefined);
  return Math.max(0, ...files.filter(({ size }) => size > 0).map(({ mtimeMs }) => Math.floor(mtimeMs * 1000)));
}

function requireSqlite(): void {
  const probe = new Database(':memory:');
  const found = (probe.prepare('SELECT sqlite_version() AS v').get() as { v: string }).v;
  probe.close();
  const parts = found.split('.').map(Number);
  for (let i = 0; i < 3; i += 1) {
    const difference = (parts[i] ?? 0) - (minSqliteVersion[i] ?? 0);
    if (difference > 0) return;
    if (difference < 0) {
      throw new WaybillError(
        'state_unusable',
        `cannot use SQLite ${found}: versions before ${minSqliteVersion.join('.')} can corrupt a WAL file`,
      );
    }
  }
}

function makeDirectory(directory: string): void {
  try {
    makeBelow(directory);
    if (!statSync(directory).isDirectory())
      throw new WaybillError('state_unusable', `cannot use "${directory}" for the state: it is not a directory`);
  } catch (thrown) {
    throw asStateError(thrown, directory);
  }
}

/**
 * Creates a directory and its missing parents. `recursive` of Node does not return where no
 * directory can be created, as below /proc (nodejs/node, mkdirp retries on ENOENT).
 */
function makeBelow(directory: string): void {
  const missing: string[] = [];
  for (let at = resolve(directory); !existsSync(at); at = dirname(at)) missing.unshift(at);
  for (const at of missing) mkdirSync(at, { mode: 0o700 });
}

async function takeLock(
  directory: string,
  { lockWait, waits = () => undefined }: Pick<StateOptions, 'lockWait' | 'waits'>,
  clock: Clock,
  signal: AbortSignal,
): Promise<Database.Database> {
  const file = join(directory, 'lock.db');
  const deadline = clock.monotonic() + lockWait;
  for (let isFirst = true; ; isFirst = false) {
    let lock;
    try {
      lock = tryLock(file);
    } catch (thrown) {
      throw asStateError(thrown, directory);
    }
    if (lock) return lock;
    if (clock.monotonic() >= deadline)
      throw new WaybillError('state_locked', `cannot lock the state in "${directory}": ${ownerWords(directory)}`);
    if (isFirst) waits();
    await clock.sleep(Math.min(250, Math.max(1, deadline - clock.monotonic())), signal);
  }
}

/** The owner of the lock as the state names it. The owner may still be starting. */
function ownerWords(directory: string): string {
  const another = 'another running process owns it';
  let db: Database.Database | undefined;
  try {
    db = new Database(join(directory, 'waybill.db'), { readonly: true, timeout: 0 });
    const owner = db.prepare('SELECT instance, since_us FROM owner WHERE one = 1').get() as
      { instance: string | null; since_us: number | null } | undefined;
    const [, pid] = /^pid (\d+)/.exec(owner?.instance ?? '') ?? [];
    const since = owner?.since_us ? `, since ${new Date(Math.floor(owner.since_us / 1000)).toISOString().slice(0, 19)}Z` : '';
    return `${another}${pid === undefined ? '' : ` (pid ${pid})`}${since}`;
  } catch {
    // On its first start the owner has not written a row, or its file is not readable. Only the lock is certain.
    return another;
  } finally {
    db?.close();
  }
}

function openFile(file: string, directory: string, maxSize: number): Database.Database {
  let db: Database.Database | undefined;
  const budget = diskBudgetOf(maxSize);
  try {
    makePrivate(file);
    // Errors other than damage pass unchanged: the caller may try again.
    db = connect(file, { timeout: 0 }, (thrown) => (isDamage(thrown) ? asStateError(thrown, directory) : thrown));
    // auto_vacuum takes effect only before the first table; the other settings belong to the connection.
    for (const pragma of [
      `page_size = ${pageBytes}`,
      'auto_vacuum = INCREMENTAL',
      'journal_mode = WAL',
      // mutant: synchronous
      'synchronous = FULL',
      'foreign_keys = ON',
      'trusted_schema = OFF',
      'cell_size_check = ON',
      'mmap_size = 0',
      `journal_size_limit = ${budget.walBytes}`,
      'busy_timeout = 0',
      `wal_autocheckpoint = ${budget.checkpointPages}`,
      'cache_size = -8192',
      `max_page_count = ${budget.filePages}`,
    ]) {
      db.pragma(pragma);
    }
    if (db.pragma('journal_mode', { simple: true }) !== 'wal') {
      throw new WaybillError(
        'state_unusable',
        `cannot use "${directory}" for the state: its file system does not support WAL (network file systems do not)`,
      );
    }
    return db;
  } catch (thrown) {
    db?.close();
    throw asStateError(thrown, directory);
  }
}

/** True if the file holds a state. Reads without creating or changing the file, which may be empty or of another program. */
function holdsState(file: string, directory: string, { version, isMoving }: StateOptions): boolean {
  if (!existsSync(file)) return false;
  let db: Database.Database | undefined;
  try {
    db = new Database(file, { readonly: true, timeout: 0 });
    refuseOther(db, directory, version);
    if (isMoving !== true) refuseMoved(db, directory);
    return hasMeta(db);
  } catch (thrown) {
    throw asStateError(thrown, directory);
  } finally {
    db?.close();
  }
}

/**
 * In a transaction, because better-sqlite3 does not report the failed commit of a statement that `get` reads: the start would go on with an
 * epoch that is not stored.
 */
function newOwner(db: Database.Database, clock: Clock, directory: string): number {
  const epoch = db.prepare<[], { epoch: number }>('SELECT epoch FROM owner WHERE one = 1');
  const update = db.prepare('UPDATE owner SET epoch = epoch + 1, instance = ?, since_us = ? WHERE one = 1');
  try {
    const next = db
      .transaction(() => {
        update.run(`pid ${process.pid} ${randomUUID()}`, clock.now() * 1000);
        return epoch.get()?.epoch;
      })
      .immediate();
    if (next === undefined) throw damaged('it has no row "owner"', undefined, directory);
    return next;
  } catch (thrown) {
    db.close();
    throw asStateError(thrown, directory);
  }
}
