/** Checks that the paths that sinks write are not files of the state, of the configuration, or of another sink. Links are resolved. */
import { lstatSync, realpathSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { SinkDefinition, WrittenSink } from '../sink/define.ts';
import type { Fault } from './document.ts';
import { sideFile } from '../settings/side-file.ts';
import { unresolved } from '../settings/values.ts';

/** The files of Waybill in the state directory: databases with the files of SQLite, and the socket. */
const ownFiles = [
  ...['waybill.db', 'lock.db'].flatMap((name) => ['', '-wal', '-shm', '-journal'].map((end) => `${name}${end}`)),
  'waybill.sock',
];

/**
 * Reads the disk and changes nothing.
 * @param given  the setting `dataDir`
 * @param read  every file of the configuration: included files, secrets and certificates too
 */
export function sinkPathFaults(
  sinks: readonly WrittenSink[],
  types: readonly SinkDefinition[],
  given: unknown,
  read: readonly string[],
): readonly Fault[] {
  const paths = sinks.flatMap(({ index, settings }) => {
    const path = types.find(({ type }) => type === settings['type'])?.path;
    const name = path && settings[path.setting];
    return path && typeof name === 'string' && name !== '' && name !== unresolved ? [{ ...path, index, name, place: placeOf(name) }] : [];
  });
  const dataDir = typeof given === 'string' && given !== '' && given !== unresolved ? given : undefined;
  const files = dataDir === undefined ? [] : ownFiles.map((name) => placeOf(join(dataDir, name)));
  // The directory itself, and the target if it is a link.
  const own = dataDir === undefined ? [] : [placeOf(dataDir), ...files.slice(0, 1).map(dirname), ...files];
  // Reads follow a link, so its target must not be written either.
  const readFrom = [...new Set(read)].map((file) => [file, placeOf(file), targetOf(file)] as const);
  const readAt = (place: string): string | undefined => readFrom.find(([, ...places]) => places.some((each) => isSame(each, place)))?.[0];
  const isOwn = (place: string): boolean => own.some((each) => isSame(each, place));

  return paths.flatMap((written, position) => {
    const { index, setting, kind, kept, name, place } = written;
    const fault = (message: string): readonly Fault[] => [{ path: ['sinks', index, setting], message }];
    const beside = kept.map((ending) => ({ needs: `needs a ${ending} file next to it, and that path is`, at: sideFile(place, ending) }));
    if (isOwn(place)) return fault('is the state directory or a file in it');
    if (kind === 'file' && name.endsWith('/')) return fault('ends with a slash: it must name a file');
    if (kind === 'file' && statSync(place, { throwIfNoEntry: false })?.isDirectory())
      return fault('is a directory: it must name a file in it');
    for (const { needs, at } of beside) if (isOwn(at)) return fault(`${needs} a file of the state`);
    for (const { needs, at } of [{ needs: 'is', at: place }, ...beside]) {
      const file = readAt(at);
      if (file !== undefined) return fault(`${needs} ${JSON.stringify(file)}, a file of the configuration`);
    }
    const same = paths.slice(0, position).find((other) => isSame(other.place, place));
    if (same) return fault(`is also the path of another sink, sinks[${same.index}]`);
    for (const other of paths) {
      if (other === written) continue;
      const ending = other.kept.find((each) => isSame(sideFile(other.place, each), place));
      if (ending !== undefined) return fault(`is the ${ending} file of another sink, sinks[${other.index}]`);
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

/** Compares by name, and existing files also by device and inode, because a file may have several names. */
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
