/** Rotation by size and interval, in UTC. A rotated file is named `<path>.20261121T230000.000Z`: names sort by time. */
import { lstat, rename } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { sideFile } from '../../settings/side-file.ts';
import { isAbsent, syncDirectory } from './disk.ts';

export interface RotateSettings {
  /** Bytes. */
  readonly size?: number | undefined;
  /** ms */
  readonly interval?: number | undefined;
}

/** True when a file must be rotated before these bytes; never for an empty file. @param since  ms since 1970: start of the file */
export function isRotationDue(rotate: RotateSettings, length: number, since: number, bytes: number, now: number): boolean {
  if (length === 0) return false;
  const { size = Infinity, interval } = rotate;
  if (length + bytes > size) return true;
  // Setting the clock back does not end an interval.
  return interval !== undefined && Math.floor(now / interval) > Math.floor(since / interval);
}

/** Renames the file; the new name is on disk when this resolves. */
export async function rotateFile(path: string, now: number): Promise<void> {
  await rename(path, await freeName(path, now));
  await syncDirectory(dirname(path));
}

/** Maximum bytes of a file name on Linux file systems. */
const maxNameLength = 255;

/** The reason why the sink cannot rotate a file of this name; undefined: it can. */
export function rotationProblem(path: string, gzip: boolean): string | undefined {
  const aside = `${basename(path)}.20261121T230000.000Z${gzip ? '.gz.part' : ''}`;
  const over = Buffer.byteLength(aside) - maxNameLength;
  return over > 0 ? `its name is ${over} bytes too long for rotate, which renames it to <path>.20261121T230000.000Z` : undefined;
}

/** The kind of a rotated file by its name: plain, compressed, or partly compressed; undefined for another file. */
export function kindOfName(path: string, name: string): 'plain' | 'compressed' | 'half' | undefined {
  const begin = `${basename(path)}.`;
  const [, end] = (name.startsWith(begin) && /^\d{8}T\d{6}\.\d{3}Z(|\.gz|\.gz\.part)$/.exec(name.slice(begin.length))) || [];
  return end === undefined ? undefined : end === '' ? 'plain' : end === '.gz' ? 'compressed' : 'half';
}

/** The first time from now on whose name is unused, also with a `.gz` suffix: an existing file is never replaced. */
async function freeName(path: string, now: number): Promise<string> {
  for (let at = now; ; at += 1) {
    const name = `${path}.${new Date(at).toISOString().replace(/[-:]/g, '')}`;
    const taken = await Promise.all([name, `${name}.gz`, sideFile(name, 'gz.part')].map(isThere));
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
