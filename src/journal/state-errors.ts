/** Error codes for failures of SQLite and the file system in the state directory. */
import { readFileSync, statSync, type Stats } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { damaged } from './damage.ts';

/** Converts errors of SQLite and the file system to error codes. A WaybillError is returned unchanged. */
export function asStateError(thrown: unknown, directory: string): WaybillError {
  if (thrown instanceof WaybillError) return thrown;
  const code = (thrown as { code?: unknown }).code;
  const text = typeof code === 'string' ? code : '';
  if (isDamage(thrown)) return damaged(messageOf(thrown), thrown, directory);
  if (text.startsWith('SQLITE_FULL') || text === 'ENOSPC') {
    return new WaybillError('journal_full', `cannot write the state in "${directory}": its disk is full`, { cause: thrown });
  }
  if (text.startsWith('SQLITE_BUSY')) {
    const message = 'another program has waybill.db locked: end it, and let programs read only a copy (docs/operations.md, state_unusable)';
    return new WaybillError('state_unusable', `cannot use the state in "${directory}": ${message}`, { cause: thrown });
  }
  return new WaybillError('state_unusable', `cannot use the state in "${directory}": ${messageOf(thrown)}`, { cause: thrown });
}

export function isDamage(thrown: unknown): boolean {
  return thrown instanceof Database.SqliteError && /^SQLITE_(CORRUPT|NOTADB)/.test(thrown.code);
}

/** The error for a user who may not read the directory, which the daemon creates with mode 0700. */
export function forbidden(directory: string, cause: unknown): WaybillError {
  const user = process.getuid?.();
  const self = user === undefined ? 'this user' : userName(user);
  const found = [join(directory, 'waybill.db'), directory].map(statOf).find((stats) => stats !== undefined);
  const owner = found && userName(found.uid);
  const mode = found && (found.mode & 0o777).toString(8).padStart(4, '0');
  const message =
    owner === undefined ? `${self} may not enter a directory above it` : `it belongs to ${owner} (mode ${mode}), this is ${self}`;
  const advice = `run the command as ${owner ?? 'the owner'}, or ask the running daemon: status, ledger, gaps list and operations list take --admin URL, with the read token in WAYBILL_ADMIN_TOKEN`;
  return new WaybillError('state_unusable', `cannot read the state in "${directory}": ${message}; ${advice}`, { cause });
}

export function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    // The owner is not readable either.
    return undefined;
  }
}

function userName(uid: number): string {
  if (uid === 0) return 'root';
  const line = passwd().find((each) => each.split(':')[2] === String(uid));
  return line?.split(':')[0] ?? `uid ${uid}`;
}

function passwd(): string[] {
  try {
    return readFileSync('/etc/passwd', 'utf8').split('\n');
  } catch {
    // Container images may lack /etc/passwd; the number is shown.
    return [];
  }
}
