/**
 * A verified copy of the state. SQLite's online backup copies the pages of one read transaction, so that the writes of a running daemon
 * neither appear in the copy nor restart it. VACUUM INTO gives the same content, but reports no progress and cannot be cancelled.
 */
import { closeSync, fsyncSync, mkdirSync, openSync, realpathSync, renameSync, rmSync, statfsSync } from 'node:fs';
import { dirname, join, resolve, sep } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Database } from 'better-sqlite3';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { makePrivate } from '../disk/lock.ts';
import type { Clock } from '../model/time.ts';
import { connect } from './connection.ts';
import { journalId } from './schema.ts';
import { SelfCheck } from './self-check.ts';
import { Sources } from './sources.ts';
import { openReadOnly } from './state.ts';
import { asStateError } from './state-errors.ts';
import { Store } from './store.ts';

interface Backup {
  readonly journal: string;
  readonly bytes: number;
  /** The last entry of the copy, and its chain value. */
  readonly seq: number;
  readonly chain: Buffer;
}

interface BackupOptions {
  readonly clock: Clock;
  /** Called after each step of the copy. @param share  copied part, 0 to 1 */
  readonly copied: (share: number, bytes: number) => void;
  readonly verifying: () => void;
  readonly signal: AbortSignal;
}

/** 4 MiB. */
const stepPages = 1_024;

/**
 * Copies the state in `from` to the new directory `to`. The copy gets the name of a state after its
 * verification: SQLite's integrity check, the invariants of the self-check, and the same head.
 * @throws WaybillError `usage` if `to` exists or is inside `from`, `backup_failed`, or an error of the state in `from`;
 * then `to` does not exist
 */
export async function backUp(from: string, to: string, options: BackupOptions): Promise<Backup> {
  const source = openReadOnly(from);
  try {
    if (`${realpathSync(dirname(resolve(to)))}${sep}`.startsWith(`${realpathSync(from)}${sep}`))
      throw new WaybillError('usage', `cannot back up to "${to}": it is inside the state directory "${from}"`);
    createTarget(to);
    try {
      const partial = join(to, 'waybill.db.partial');
      makePrivate(partial);
      const backup = await copy(source, partial, options);
      options.signal.throwIfAborted();
      options.verifying();
      await verify(partial, backup, options);
      sync(partial);
      renameSync(partial, join(to, 'waybill.db'));
      sync(to);
      sync(dirname(resolve(to)));
      return backup;
    } catch (thrown) {
      rmSync(to, { recursive: true, force: true });
      throw thrown;
    }
  } catch (thrown) {
    throw thrown instanceof WaybillError ? thrown : failed(to, messageOf(thrown), thrown);
  } finally {
    source.close();
  }
}

function createTarget(to: string): void {
  try {
    mkdirSync(to, { mode: 0o700 });
  } catch (thrown) {
    const isThere = thrown instanceof Error && 'code' in thrown && thrown.code === 'EEXIST';
    throw isThere ? new WaybillError('usage', `cannot back up to "${to}": it exists; name a new directory`) : thrown;
  }
}

/** Copies the database as of the start of one read transaction. */
async function copy(source: Database, file: string, { copied, signal }: BackupOptions): Promise<Backup> {
  source.exec('BEGIN');
  // The first read starts the transaction, whose snapshot the backup copies.
  const head = headOf(source);
  const journal = journalId(source);
  const pageSize = source.pragma('page_size', { simple: true }) as number;
  const bytes = pageSize * (source.pragma('page_count', { simple: true }) as number);
  const { bavail, bsize } = statfsSync(dirname(file));
  if (bavail * bsize < bytes) throw failed(dirname(file), `the copy needs ${bytes} bytes, and the disk has only ${bavail * bsize} free`);
  await source.backup(file, {
    progress: ({ totalPages, remainingPages }) => {
      signal.throwIfAborted();
      copied((totalPages - remainingPages) / totalPages, bytes);
      return stepPages;
    },
  });
  source.exec('COMMIT');
  return { journal, bytes, ...head };
}

/** @throws WaybillError `backup_failed` unless the file has the journal whole, up to this head */
export async function verify(
  file: string,
  { journal, seq, chain }: Omit<Backup, 'bytes'>,
  { clock, signal }: Pick<BackupOptions, 'clock' | 'signal'>,
): Promise<void> {
  const directory = dirname(file);
  const db = connect(file, { timeout: 0 }, (thrown) => asStateError(thrown, directory));
  try {
    // Leaves one file, without WAL.
    db.pragma('journal_mode = DELETE');
    const problems = db.pragma('integrity_check(1)', { simple: true }) as string;
    if (problems !== 'ok') throw failed(directory, `the state is damaged: ${problems}`);
    const head = headOf(db);
    if (head.seq !== seq || !head.chain.equals(chain) || journalId(db) !== journal)
      throw failed(directory, `the copy ends at entry ${head.seq}, the state at entry ${seq}`);
    const sources = new Sources(new Store(db, directory, 0, 0));
    const check = new SelfCheck(db, clock, sources.ids, (n) => sources.get(sources.ids.get(n) ?? '').ranges);
    while (!check.step(1, Infinity)) {
      await nextTurn();
      signal.throwIfAborted();
    }
  } finally {
    db.close();
  }
}

function headOf(db: Database): { seq: number; chain: Buffer } {
  return db.prepare<[], { seq: number; chain: Buffer }>('SELECT seq, chain FROM head WHERE one = 1').get() as {
    seq: number;
    chain: Buffer;
  };
}

/** Waits until the disk has a file, or the names in a directory. */
export function sync(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function failed(to: string, message: string, cause?: unknown): WaybillError {
  return new WaybillError('backup_failed', `cannot back up to "${to}": ${message}`, { cause });
}
