/**
 * Checks the paths of file sinks and the directories of archives: they must not be files of the
 * state, of the configuration, or of another sink. Links are resolved, because a directory may have
 * several names.
 */
import { lstatSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { Document, Fault } from './document.ts';
import { memberOf } from './schema-walk.ts';
import { sideFile } from '../settings/side-file.ts';
import { unresolved } from '../settings/values.ts';

/**
 * The files of Waybill in the state directory: databases with the files of SQLite, and the socket.
 */
const ownFiles = [
  ...['waybill.db', 'lock.db'].flatMap((name) => ['', '-wal', '-shm', '-journal'].map((end) => `${name}${end}`)),
  'waybill.sock',
];

/** The setting with the path, by type of sink. */
const pathKeys: ReadonlyMap<unknown, 'path' | 'directory'> = new Map([
  ['file', 'path'],
  ['archive', 'directory'],
]);

/** The files that a file sink keeps for its file. */
const keptBeside = ['position', 'lock'] as const;

/**
 * Reads the disk and changes nothing.
 * @param read  every file of the configuration: included files, secrets and certificates too
 */
export function sinkPathFaults({ value }: Document, read: readonly string[]): readonly Fault[] {
  const sinks = memberOf(value, 'sinks');
  const keys = (Array.isArray(sinks) ? sinks : []).map((sink) => pathKeys.get(memberOf(sink, 'type')));
  const names = (Array.isArray(sinks) ? sinks : []).map((sink, index) => {
    const path = memberOf(sink, keys[index] ?? '');
    return typeof path === 'string' && path !== '' && path !== unresolved ? path : undefined;
  });
  const paths = names.map((name) => (name === undefined ? undefined : placeOf(name)));
  const given = memberOf(value, 'dataDir') ?? './state';
  const dataDir = typeof given === 'string' && given !== '' && given !== unresolved ? given : undefined;
  const files = dataDir === undefined ? [] : ownFiles.map((name) => placeOf(join(dataDir, name)));
  // The directory itself, and the target if it is a link.
  const own = dataDir === undefined ? [] : [placeOf(dataDir), ...files.slice(0, 1).map(dirname), ...files];
  // Reads follow a link, so its target must not be written either.
  const readFrom = [...new Set(read)].map((file) => [file, placeOf(file), targetOf(file)] as const);
  const readAt = (place: string): string | undefined => readFrom.find(([, ...places]) => places.some((each) => isSame(each, place)))?.[0];
  const isOwn = (place: string): boolean => own.some((each) => isSame(each, place));

  return paths.flatMap((place, index) => {
    if (place === undefined) return [];
    const key = keys[index] ?? 'path';
    const path = ['sinks', index, key];
    const at = (of: (other: string, at: number) => boolean): number =>
      paths.findIndex((other, at) => other !== undefined && at !== index && of(other, at));
    if (isOwn(place)) return [{ path, message: 'is the state directory or a file in it' }];
    if (key === 'path' && names[index]?.endsWith('/') === true) return [{ path, message: 'ends with a slash: it must name a file' }];
    for (const kept of keptBeside)
      if (isOwn(sideFile(place, kept))) return [{ path, message: `needs a ${kept} file next to it, and that path is a file of the state` }];
    for (const kept of [undefined, ...keptBeside]) {
      const file = readAt(kept === undefined ? place : sideFile(place, kept));
      if (file === undefined) continue;
      const what = `${JSON.stringify(file)}, a file of the configuration`;
      return [{ path, message: kept === undefined ? `is ${what}` : `needs a ${kept} file next to it, and that path is ${what}` }];
    }
    const same = at((other, position) => position < index && isSame(other, place));
    if (same >= 0) return [{ path, message: `is also the path of another sink, sinks[${same}]` }];
    for (const kept of keptBeside) {
      const other = at((each) => isSame(sideFile(each, kept), place));
      if (other >= 0) return [{ path, message: `is the ${kept} file of another sink, sinks[${other}]` }];
    }
    return [];
  });
}

/** The target of a path after all links; the path itself if nothing exists there. */
function targetOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return placeOf(path);
  }
}

/** The absolute path with the links of its directory resolved. Neither has to exist. */
function placeOf(path: string): string {
  const whole = resolve(path);
  const above = dirname(whole);
  if (above === whole) return whole;
  try {
    return join(realpathSync(above), basename(whole));
  } catch {
    return join(placeOf(above), basename(whole));
  }
}

/**
 * Compares by name, and existing files also by device and inode, because a file may have several
 * names.
 */
function isSame(one: string, other: string): boolean {
  if (one === other) return true;
  const [a, b] = [one, other].map((place) => {
    try {
      return lstatSync(place, { bigint: true, throwIfNoEntry: false });
    } catch {
      // Not permitted to read here: the files cannot be compared.
      return undefined;
    }
  });
  return a !== undefined && b !== undefined && a.dev === b.dev && a.ino === b.ino;
}
