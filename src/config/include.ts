/** Included files add sources and sinks after the ones of the main file, and nothing else. Messages name the file of a setting. */
import { globSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { messageOf } from '../errors/errors.ts';
import { readRegularFile } from '../disk/regular-file.ts';
import { type Document, type Fault, keyOf, type Path, type Place } from './document.ts';
import { memberOf } from './schema-walk.ts';

interface WithIncluded {
  readonly document: Document;
  /** The files, in the order of inclusion. */
  readonly included: readonly string[];
  /** The names and patterns of `include`. */
  readonly patterns: readonly string[];
  /** Patterns without a matching file. */
  readonly warnings: readonly string[];
}

const lists = ['sources', 'sinks'] as const;

/** Reads the included files. An unreadable file is a fault of `include`; invalid YAML is an error. */
export function withIncluded(main: Document, file: string, parse: (text: string) => Document): WithIncluded {
  const given = memberOf(main.value, 'include');
  const patterns = Array.isArray(given) ? given : [];
  if (main.errors.length > 0 || patterns.length === 0) return { document: main, included: [], patterns: [], warnings: [] };
  const value = { ...(main.value as Record<string, unknown>) };
  const places = new Map(main.places);
  const faults: Fault[] = [...main.faults];
  const errors: string[] = [];
  const included: string[] = [];
  const warnings: string[] = [];
  for (const [index, pattern] of patterns.entries()) {
    if (typeof pattern !== 'string') continue;
    const path = ['include', index];
    const fail = (message: string): number => faults.push({ path, message });
    const isPattern = /[*?[\]{}]/.test(pattern);
    const names = isPattern ? globSync(pattern, { cwd: dirname(file) }).toSorted() : [pattern];
    if (names.length === 0) warnings.push(`include: no file matches ${JSON.stringify(pattern)}`);
    for (const name of names) {
      const full = resolve(dirname(file), name);
      if (included.includes(full)) {
        if (!isPattern) fail(`${JSON.stringify(name)} is already included`);
        continue;
      }
      let text: string;
      try {
        text = readRegularFile(full).toString('utf8');
      } catch (thrown) {
        fail(`${JSON.stringify(name)} cannot be read: ${messageOf(thrown)}`);
        continue;
      }
      included.push(full);
      const document = parse(text);
      errors.push(...document.errors.map((error) => `${name}, ${error}`));
      const other = Object.keys((document.value as object | undefined) ?? {}).filter((key) => !lists.some((list) => list === key));
      if (other.length > 0)
        fail(`${JSON.stringify(name)} has "${other.join('", "')}": an included file may contain only sources and sinks`);
      append(document, { name, turn: included.length });
    }
  }
  return {
    document: { value, places, faults, errors },
    included,
    patterns: patterns.filter((pattern) => typeof pattern === 'string'),
    warnings,
  };

  function append(document: Document, from: NonNullable<Place['file']>): void {
    for (const list of lists) {
      const items = memberOf(document.value, list);
      if (items === undefined || items === null) continue;
      const there = memberOf(value, list);
      if (!Array.isArray(items)) {
        faults.push({ path: [list], message: `in ${from.name} is not a list` });
        continue;
      }
      const before: readonly unknown[] = Array.isArray(there) ? there : [];
      // The schema reports a value in the main file that is not a list.
      if (there === undefined || Array.isArray(there)) value[list] = [...before, ...(items as readonly unknown[])];
      const moved = ([first, index, ...rest]: Path): Path | undefined =>
        first === list && typeof index === 'number' ? [list, index + before.length, ...rest] : undefined;
      for (const [key, place] of document.places) {
        const path = moved(JSON.parse(key) as Path);
        if (path) places.set(keyOf(path), { ...place, file: from });
      }
      for (const fault of document.faults) {
        const path = moved(fault.path);
        if (path) faults.push({ ...fault, path });
      }
    }
    const outside = document.faults.filter(
      ({ path: [first, index] }) => !(lists.some((list) => list === first) && typeof index === 'number'),
    );
    for (const { message, missing } of outside)
      faults.push({ path: ['include'], message: `in ${from.name}: ${message}`, ...(missing && { missing }) });
  }
}
