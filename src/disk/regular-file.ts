/** Reads a file that a setting names. A pipe or a device is refused: a read could wait forever, or take data that another reader needs. */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';

// With O_NONBLOCK, opening a pipe does not wait for its writer. A regular file is read as usual.
const flags = constants.O_RDONLY | constants.O_NONBLOCK;

/** @throws Error an error of the file system; for anything but a regular file, an error with its path */
export function readRegularFile(path: string): Buffer {
  const file = openSync(path, flags);
  try {
    if (!fstatSync(file).isFile()) throw notRegular(path);
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

/** The same in the thread pool: a hung mount does not stop the caller's thread. */
export async function readRegularFileAsync(path: string): Promise<Buffer> {
  await using file = await open(path, flags);
  if (!(await file.stat()).isFile()) throw notRegular(path);
  return await file.readFile();
}

function notRegular(path: string): Error {
  return new Error(`"${path}" is not a regular file`);
}
