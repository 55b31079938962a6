/** File system operations of the sink `file`: the kind and identity of a file, and syncing a directory. */
import { constants } from 'node:fs';
import { lstat, mkdir, open, type FileHandle } from 'node:fs/promises';
import { dirname } from 'node:path';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import { sideFile } from '../../settings/side-file.ts';
import type { FileName } from './position.ts';

export function blockedAt(path: string, id: string, message: string, cause?: unknown): WaybillError {
  return new WaybillError('sink_blocked', `cannot open "${path}" for sink "${id}" (sinks.${id}.path): ${message}`, { cause });
}

/** Opens the file of a sink, or creates it with mode 0600. @throws WaybillError `sink_blocked` for anything but a file */
export async function openFile(path: string, id: string): Promise<FileHandle> {
  try {
    // Checks before opening: opening a device can have side effects.
    const kind = await kindAt(path);
    if (kind !== undefined) throw blockedAt(path, id, kind);
    return await open(path, constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW, 0o600);
  } catch (cause) {
    throw cause instanceof WaybillError ? cause : blockedAt(path, id, messageOf(cause), cause);
  }
}

export async function openPositionFile(path: string, id: string): Promise<FileHandle> {
  const file = sideFile(path, 'position');
  const folder = dirname(file);
  try {
    await mkdir(folder, { mode: 0o700 }).catch(async (cause: unknown) => {
      if (!(await lstat(folder)).isDirectory()) throw cause;
    });
  } catch (cause) {
    throw blockedAt(file, id, messageOf(cause), cause);
  }
  return openFile(file, id);
}

/** Rejects a file with several names: a lock applies to one name, and two writers would overwrite each other's lines. */
export function linksWords(links: number): string {
  return `the file has ${links} hard links, and another process may write it under another name: keep one name`;
}

/** Describes anything at the path that is not a file; undefined for a file or nothing. */
export async function kindAt(path: string): Promise<string | undefined> {
  const found = await lstat(path).catch((cause: unknown) => {
    if (isAbsent(cause)) return undefined;
    throw cause;
  });
  if (!found || found.isFile()) return undefined;
  if (found.isSymbolicLink()) return 'it is a symbolic link, which is not followed: name the file itself';
  if (found.isDirectory()) return 'it is a directory, not a file';
  return `it is ${found.isFIFO() ? 'a FIFO' : found.isSocket() ? 'a socket' : 'a device'}, not a file`;
}

export function isAbsent(cause: unknown): boolean {
  return (cause as { code?: unknown }).code === 'ENOENT';
}

/** Identity, size and hard-link count of an open file. A count of 0 means that the file was deleted. */
export async function nameAndSize(handle: FileHandle): Promise<{ name: FileName; size: number; links: number }> {
  const found = await handle.stat({ bigint: true });
  return { name: nameOf(found), size: Number(found.size), links: Number(found.nlink) };
}

export function nameOf(found: { dev: bigint; ino: bigint; birthtimeNs: bigint }): FileName {
  return { dev: String(found.dev), ino: String(found.ino), birth: String(found.birthtimeNs) };
}

/** True when the bytes up to here end within a line. */
export async function endsWithinLine(handle: FileHandle, length: number): Promise<boolean> {
  if (length === 0) return false;
  const last = Buffer.alloc(1);
  await handle.read(last, 0, 1, length - 1);
  return last[0] !== 0x0a;
}

export async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
