/**
 * One process a file: whoever writes it holds `<path>.lock`. Another process would cut what this one writes, and write over it, for each writes at
 * the place where it knows the end.
 */
import { statSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { WaybillError, messageOf } from '../../errors.ts';
import { blockedAt, kindAt, nameOf } from './disk.ts';
import { sameFile } from './position.ts';
import type { FileName } from './position.ts';

interface Held {
  /** The lock's file; undefined where somebody deleted it at once. */
  readonly name: FileName | undefined;
  readonly close: () => void;
  /** Lives of sinks in this process that have it: one may begin before another has ended. */
  lives: number;
}

/** By the path of the lock, through no link. */
const held = new Map<string, Held>();

/**
 * Takes the lock of a file, for one more life of a sink in this process.
 * @param path  of the sink's file, absolute; its directory is there
 * @returns what lets go of it; call it once
 * @throws WaybillError `sink_blocked` while another process has it, and where there can be none
 */
export async function lockFor(path: string, id: string): Promise<() => void> {
  const file = join(await realpath(dirname(path)), `${basename(path)}.lock`);
  try {
    const kind = await kindAt(file);
    if (kind !== undefined) throw blockedAt(file, id, kind);
    const { tryLock } = await import('../../lock.ts');
    // Nothing is awaited from here on: another life may end or begin meanwhile.
    const known = held.get(file);
    if (known && isThere(file, known)) {
      known.lives += 1;
      return () => letGo(file, known);
    }
    const lock = tryLock(file);
    // mutant: file-lock
    if (!lock) throw blockedAt(path, id, `another running process writes it, and holds "${file}"`);
    const own: Held = { name: nameAt(file), close: () => void lock.close(), lives: 1 };
    held.set(file, own);
    return () => letGo(file, own);
  } catch (cause) {
    throw cause instanceof WaybillError ? cause : blockedAt(file, id, messageOf(cause), cause);
  }
}

function letGo(file: string, own: Held): void {
  own.lives -= 1;
  // mutant: release-file-lock
  if (own.lives > 0) return;
  own.close();
  if (held.get(file) === own) held.delete(file);
}

/** A lock whose file somebody has deleted keeps nobody out. */
function isThere(file: string, { name }: Held): boolean {
  const found = nameAt(file);
  return name !== undefined && found !== undefined && sameFile(name, found);
}

function nameAt(file: string): FileName | undefined {
  const found = statSync(file, { bigint: true, throwIfNoEntry: false });
  return found && nameOf(found);
}
