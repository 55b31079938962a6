/** A lock between processes: an exclusive SQLite transaction on a separate file, which the operating system ends with the process. */
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';

/** @returns the lock, held until it is closed; undefined while a process holds it. @throws the error of SQLite or the file system */
export function tryLock(file: string): Database.Database | undefined {
  makePrivate(file);
  const lock = new Database(file, { timeout: 0 });
  try {
    lock.exec(/* mutant: state-lock */ 'BEGIN EXCLUSIVE');
    return lock;
  } catch (thrown) {
    lock.close();
    const { code } = thrown as { code?: unknown };
    if (typeof code === 'string' && code.startsWith('SQLITE_BUSY')) return undefined;
    throw thrown;
  }
}

/**
 * Creates the file before SQLite does: SQLite gives its mode to -wal and -shm too. An existing file is not opened: closing it would release
 * the locks of this process on it (POSIX, fcntl).
 */
export function makePrivate(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
  chmodSync(file, 0o600);
}
