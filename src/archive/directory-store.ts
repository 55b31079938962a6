/** An archive in a local directory. A reader never finds a part of a file, and a power cut leaves no part. */
import { randomUUID } from 'node:crypto';
import * as fs from 'node:fs';
import { link, lstat, mkdir, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { maxBytesOf, type WritableArchiveStore } from './store.ts';

/** A `FileHandle` takes twice the CPU for each call. A segment has more than 80 files. */
const [open, close, fsync] = [promisify(fs.open), promisify(fs.close), promisify(fs.fsync)];
const [fstat, fchmod, read, writeFile] = [promisify(fs.fstat), promisify(fs.fchmod), promisify(fs.read), promisify(fs.writeFile)];

/** Opening a pipe does not wait for its writer. */
const readFlags = fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW | fs.constants.O_NONBLOCK;
/** The folders that verifiers read. */
const archiveFolder = /^(checkpoints|segments|tile|keys|timestamps|cosignatures)\//;
const createFlags = fs.constants.O_WRONLY | fs.constants.O_CREAT | fs.constants.O_EXCL | fs.constants.O_NOFOLLOW;

/** More levels of folders than an archive has. A path must not become too long for the system. */
const maxDepth = 9;

/** The files that are being written in a folder at the same time. */
interface Writes {
  /** How many have no name yet. */
  unnamed: number;
  /** Their names are on disk. */
  readonly synced: PromiseWithResolvers<unknown>;
}

export class DirectoryStore implements WritableArchiveStore, AsyncDisposable {
  readonly #root: string;
  readonly #signal: AbortSignal | undefined;
  /** Folders that this store created or found. Their names are on disk when the promise resolves. */
  readonly #folders = new Map<string, Promise<void>>();
  /** Folders that are no links, nor stand in one. */
  readonly #real = new Set<string>();
  /** By folder: the files that are being written. */
  readonly #writes = new Map<string, Writes>();

  /** @param signal  ends reading: `read` and `list` then throw its reason */
  constructor(root: string, signal?: AbortSignal) {
    this.#root = resolve(root);
    this.#signal = signal;
  }

  async read(path: string): Promise<Buffer | undefined> {
    this.#signal?.throwIfAborted();
    if (await this.#isBehindLink(dirname(path))) return undefined;
    return this.#unlessAbsent(() => readFile(join(this.#root, path), maxBytesOf(path)));
  }

  /** What stands in a folder that is a link is no part of the archive. */
  async #isBehindLink(folder: string): Promise<boolean> {
    if (folder === '.' || this.#real.has(folder)) return false;
    const found = await this.#unlessAbsent(() => lstat(join(this.#root, folder)));
    const isLink = found?.isSymbolicLink() === true || (await this.#isBehindLink(dirname(folder)));
    if (found && !isLink) this.#real.add(folder);
    return isLink;
  }

  async *list(folder: string): AsyncGenerator<string> {
    this.#signal?.throwIfAborted();
    const found = await this.#entriesOf(folder);
    if (!found) yield folder.slice(0, -1);
    for (const each of found ?? []) {
      if (each.isDirectory() && depthOf(folder) < maxDepth) yield* this.list(`${folder}${each.name}/`);
      else yield `${folder}${each.name}`;
    }
  }

  /**
   * No folder inside an archive is a link: it could lead to any number of files.
   * @returns undefined for a folder that cannot be read and is not part of an archive, such as `lost+found` of a volume
   */
  async #entriesOf(folder: string): Promise<readonly fs.Dirent[] | undefined> {
    // With the slash at its end, a link would be followed.
    const path = join(this.#root, folder.slice(0, -1));
    try {
      const isLink = folder !== '' && (await this.#unlessAbsent(() => lstat(path)))?.isSymbolicLink();
      if (isLink) return [];
      return (await this.#unlessAbsent(() => readdir(path, { withFileTypes: true }))) ?? [];
    } catch (thrown) {
      if (codeOf(thrown) === 'EACCES' && folder !== '' && !archiveFolder.test(folder)) return undefined;
      throw thrown;
    }
  }

  async create(path: string, bytes: Uint8Array): Promise<boolean> {
    return this.#write(path, bytes, async (temporary, target) => {
      try {
        await link(temporary, target);
        return true;
      } catch (cause) {
        if (codeOf(cause) !== 'EEXIST') throw cause;
        return (await this.read(path))?.equals(bytes) === true;
      } finally {
        await unlink(temporary);
      }
    });
  }

  async replace(path: string, bytes: Uint8Array): Promise<void> {
    await this.#write(path, bytes, rename);
  }

  /** After a power cut, the file may be there again. */
  async remove(path: string): Promise<void> {
    await this.#unlessAbsent(() => unlink(join(this.#root, path)));
  }

  /** No file stays open. */
  async [Symbol.asyncDispose](): Promise<void> {}

  /** @returns undefined for a path that has no file */
  async #unlessAbsent<Result>(work: () => Promise<Result>): Promise<Result | undefined> {
    try {
      return await work();
    } catch (cause) {
      const code = codeOf(cause);
      // A link or a socket in place of a file, or a file in place of a folder inside the archive.
      if (code === 'ENOENT' || code === 'ELOOP' || code === 'ENXIO') return undefined;
      if (code === 'ENOTDIR' && (await stat(this.#root)).isDirectory()) return undefined;
      throw cause;
    }
  }

  /** Writes a temporary file in the same folder, syncs it, gives it its name, and syncs the name. */
  async #write<Result>(path: string, bytes: Uint8Array, name: (temporary: string, target: string) => Promise<Result>): Promise<Result> {
    const target = join(this.#root, path);
    const folder = dirname(target);
    await this.#makeFolder(folder);
    return this.#synced(folder, async () => {
      const temporary = join(folder, `.${randomUUID()}.part`);
      const file = await open(temporary, createFlags, 0o600);
      try {
        await writeFile(file, bytes);
        await fchmod(file, 0o440);
        // mutant: sync-archive-file
        await fsync(file);
      } catch (cause) {
        await unlink(temporary);
        throw cause;
      } finally {
        await close(file);
      }
      return name(temporary, target);
    });
  }

  /** Syncs the names in a folder after `write`, once for all files that are written at the same time. */
  async #synced<Result>(folder: string, write: () => Promise<Result>): Promise<Result> {
    const writes = this.#writes.get(folder) ?? { unnamed: 0, synced: Promise.withResolvers<unknown>() };
    this.#writes.set(folder, writes);
    writes.unnamed += 1;
    try {
      return await write();
    } finally {
      writes.unnamed -= 1;
      if (writes.unnamed === 0) {
        this.#writes.delete(folder);
        writes.synced.resolve(/* mutant: sync-archive-name-in-folder */ syncFolder(folder));
      }
      await writes.synced.promise;
    }
  }

  /** Creates a folder, and syncs its name. Later calls wait for the first one. */
  #makeFolder(folder: string): Promise<void> {
    const before = this.#folders.get(folder);
    if (before) return before;
    const made = folder === this.#root ? this.#makeRoot() : this.#makeIn(dirname(folder), folder);
    this.#folders.set(folder, made);
    made.catch(() => this.#folders.delete(folder));
    return made;
  }

  async #makeIn(parent: string, folder: string): Promise<void> {
    await this.#makeFolder(parent);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    // mutant: sync-archive-folder
    await syncFolder(parent);
  }

  /** Also creates the parent folders that are missing. */
  async #makeRoot(): Promise<void> {
    const first = (await mkdir(this.#root, { recursive: true, mode: 0o700 })) ?? this.#root;
    for (let at = this.#root; at.length >= first.length; at = dirname(at)) await syncFolder(dirname(at));
  }
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, fs.constants.O_RDONLY);
  try {
    await fsync(folder);
  } finally {
    await close(folder);
  }
}

/** @returns undefined for anything but a regular file of at most `maxBytes` */
async function readFile(path: string, maxBytes: number): Promise<Buffer | undefined> {
  const file = await open(path, readFlags);
  try {
    const found = await fstat(file);
    return found.isFile() && found.size <= maxBytes ? await readFully(file, found.size) : undefined;
  } finally {
    await close(file);
  }
}

/** @returns fewer bytes if the file became shorter meanwhile */
async function readFully(file: number, length: number): Promise<Buffer> {
  const bytes = Buffer.allocUnsafeSlow(length);
  let end = 0;
  while (end < length) {
    const { bytesRead } = await read(file, bytes, end, length - end, end);
    if (bytesRead === 0) break;
    end += bytesRead;
  }
  return bytes.subarray(0, end);
}

/** 0 for the archive itself. @param folder  '' or ends with a slash */
function depthOf(folder: string): number {
  return folder.split('/').length - 1;
}

function codeOf(cause: unknown): unknown {
  return (cause as { code?: unknown }).code;
}
