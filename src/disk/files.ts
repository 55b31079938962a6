/**
 * Where the files of the program are: below `src` in a checkout, `dist` in the package. The build keeps this module in a folder of `dist`,
 * but moves others to any file there: they must not use `import.meta.url` for a path.
 */
import { extname } from 'node:path';

const code = new URL('../', import.meta.url);

/** A file of the package, such as `docs/operations.md`. */
export function packageFile(path: string): URL {
  return new URL(`../${path}`, code);
}

/** A file that the code reads, such as `journal/migrations/001.sql`. */
export function codeFile(path: string): URL {
  return new URL(path, code);
}

/** A program that runs in a thread or process, such as `daemon/admin/thread`. */
export function programFile(name: string): URL {
  return new URL(`${name}${extname(import.meta.url)}`, code);
}
