/** The lock file of a writer (settings/side-file.ts): each process writes at the end that it knows, so a second would overwrite lines. */
import { statSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import { sideFile } from '../../settings/side-file.ts';
import { blockedAt, kindAt, nameOf } from './disk.ts';
import { sameFile, type FileName } from './position.ts';

interface Held {
  /** The lock file; undefined when it was deleted at once. */
  readonly name: FileName | undefined;
  readonly close: () => void;
  /** Number of sink instances of this process that hold the lock: a new instance may open before the old one has closed. */
  lives: number;
}

/** By the resolved path of the lock. */
const held = new Map<string, Held>();

/**
 * Acquires the lock of a file for one more sink instance of this process. @returns the function that releases it; call it once
 * @param path  of the sink's file, absolute; its directory exists
 * @throws WaybillError `sink_blocked` while another process holds it, or when the file system does not support it
 */
export async function lockFor(path: string, id: string): Promise<() => void> {
  const file = sideFile(join(await realpath(dirname(path)), basename(path)), 'lock');
  try {
    const kind = await kindAt(file);
    if (kind !== undefined) throw blockedAt(file, id, kind);
    const { tryLock } = await import('../../disk/lock.ts');
    // No await from here on: another instance could open or close in between.
    const known = held.get(file);
    if (known && isThere(file, known)) {
      known.lives += 1;
      return () => releaseLock(file, known);
    }
    const lock = tryLock(file);
    // mutant: file-lock
    if (!lock) throw blockedAt(path, id, `another running process writes it and holds "${file}"`);
    const own: Held = { name: nameAt(file), close: () => void lock.close(), lives: 1 };
    held.set(file, own);
    return () => releaseLock(file, own);
  } catch (cause) {
    throw cause instanceof WaybillError ? cause : blockedAt(file, id, messageOf(cause), cause);
  }
}

function releaseLock(file: string, own: Held): void {
  own.lives -= 1;
  // mutant: release-file-lock
  if (own.lives > 0) return;
  own.close();
  if (held.get(file) === own) held.delete(file);
}

/** A lock has no effect after its file was deleted. */
function isThere(file: string, { name }: Held): boolean {
  const found = nameAt(file);
  return name !== undefined && found !== undefined && sameFile(name, found);
}

function nameAt(file: string): FileName | undefined {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found && nameOf(found);
}
