/**
 * A lock that one process has, on a file that is there for nothing else: an exclusive transaction of SQLite, which the operating system
 * releases with the process, however that ends.
 */
import { chmodSync, closeSync, existsSync, openSync } from 'node:fs';
import Database from 'better-sqlite3';

/**
 * Takes the lock, and makes its file where there is none.
 * @returns what holds it until it is closed; undefined while another process, or this one, has it
 * @throws what SQLite or the file system says where there can be no lock
 */
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
 * Makes the file before SQLite does, which gives the mode of a database to its -wal and -shm as well. One that is there is not opened: closing
 * it would release the locks that this process holds on it (POSIX, fcntl).
 */
export function makePrivate(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'a', 0o600));
  chmodSync(file, 0o600);
}
