/**
 * Own rotation: when a file is full or its time is over, and the name under which it is kept, `<path>.20261121T230000.000Z`: names sort by
 * time. Times are UTC, so that an interval of a day ends at midnight UTC.
 */
import { lstat, rename } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { isAbsent, syncDirectory } from './disk.ts';

export interface RotateSettings {
  /** Bytes. */
  readonly size?: number | undefined;
  /** ms */
  readonly interval?: number | undefined;
}

/**
 * Whether these bytes belong into the next file. An empty file is never done.
 * @param since  ms since 1970: when the file was begun
 */
export function isDone(rotate: RotateSettings, length: number, since: number, bytes: number, now: number): boolean {
  if (length === 0) return false;
  const { size = Infinity, interval } = rotate;
  if (length + bytes > size) return true;
  // A clock that was set back ends no interval.
  return interval !== undefined && Math.floor(now / interval) > Math.floor(since / interval);
}

/** Gives the file a name of its own, for good once this resolves. */
export async function putAside(path: string, now: number): Promise<void> {
  await rename(path, await freeName(path, now));
  await syncDirectory(dirname(path));
}

/** Bytes of a name, on every file system of Linux. */
const maxNameLength = 255;

/** Why a file of this name could never be put aside; undefined: it can. */
export function tooLongToPutAside(path: string, gzip: boolean): string | undefined {
  const aside = `${basename(path)}.20261121T230000.000Z${gzip ? '.gz.part' : ''}`;
  const over = Buffer.byteLength(aside) - maxNameLength;
  return over > 0 ? `its name is ${over} bytes too long for rotate, which puts it aside as <path>.20261121T230000.000Z` : undefined;
}

/** Whether a name in the directory is that of a file that was put aside: plain, compressed, or half compressed. */
export function kindOfName(path: string, name: string): 'plain' | 'compressed' | 'half' | undefined {
  const begin = `${basename(path)}.`;
  const [, end] = (name.startsWith(begin) && /^\d{8}T\d{6}\.\d{3}Z(|\.gz|\.gz\.part)$/.exec(name.slice(begin.length))) || [];
  return end === undefined ? undefined : end === '' ? 'plain' : end === '.gz' ? 'compressed' : 'half';
}

/** The first time from now on whose name is free: a file that is there is never replaced, nor one that was compressed meanwhile. */
async function freeName(path: string, now: number): Promise<string> {
  for (let at = now; ; at += 1) {
    const name = `${path}.${new Date(at).toISOString().replace(/[-:]/g, '')}`;
    const taken = await Promise.all([name, `${name}.gz`, `${name}.gz.part`].map(isThere));
    if (!taken.includes(true)) return name;
  }
}

async function isThere(path: string): Promise<boolean> {
  try {
    await lstat(path);
    return true;
  } catch (cause) {
    if (isAbsent(cause)) return false;
    throw cause;
  }
}
