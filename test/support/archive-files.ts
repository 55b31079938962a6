/** Reads an archive in a directory without the program. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';

/**
 * The texts of the records in an archive directory; with `line`, the texts of all lines. Reads the
 * segment of each checkpoint.
 */
export function archivedRecords(directory: string, of: 'record' | 'line' = 'record'): string[] {
  const names = (folder: string): string[] => (existsSync(join(directory, folder)) ? readdirSync(join(directory, folder)).sort() : []);
  const sizes = names('checkpoints')
    .filter((name) => /^\d+$/.test(name))
    .map((name) => Number(readFileSync(join(directory, 'checkpoints', name), 'utf8').split('\n')[1]));
  return sizes.flatMap((size, i) => {
    const first = sizes[i - 1] ?? 0;
    const lines = names('segments')
      .filter((name) => name.startsWith(`${String(first).padStart(16, '0')}-`))
      .map((name) =>
        gunzipSync(readFileSync(join(directory, 'segments', name)))
          .toString()
          .split('\n')
          .slice(0, -1),
      )
      .findLast((each) => each.length === size - first);
    if (!lines) throw new Error(`no segment of ${directory} leads from leaf ${first} to ${size}`);
    if (of === 'line') return lines;
    return lines.flatMap((line) => (line.startsWith('{"kind":"record"') ? [line.slice(line.indexOf(',"record":') + 10, -1)] : []));
  });
}

/** The path of the public key that the archive in a directory contains. */
export function publicKeyPath(directory: string): string {
  const name = readdirSync(join(directory, 'keys'), { recursive: true, encoding: 'utf8' }).find((each) => each.includes('+')) ?? '';
  return join(directory, 'keys', name);
}

export function publicKeyIn(directory: string): string {
  return readFileSync(publicKeyPath(directory), 'utf8');
}
