/** An archive in a local directory. A reader never finds a part of a file, and a power cut leaves no part. */
import { randomUUID } from 'node:crypto';
import { constants } from 'node:fs';
import { link, mkdir, open, readdir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { WritableArchiveStore } from './store.ts';

/** More than any file of an archive has: a segment unpacks to 256 MiB or less. */
const maxFileBytes = 300_000_000;
/** Opening a pipe does not wait for its writer. */
const readFlags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

export class DirectoryStore implements WritableArchiveStore, AsyncDisposable {
  readonly #root: string;
  /** Folders whose names are on disk. */
  readonly #folders = new Set<string>();
  /** By folder: the running sync, and the next sync, which waits for its end. */
  readonly #syncs = new Map<string, Promise<void>>();
  readonly #nextSyncs = new Map<string, Promise<void>>();

  constructor(root: string) {
    this.#root = resolve(root);
  }

  async read(path: string): Promise<Buffer | undefined> {
    return this.#unlessAbsent(() => readFile(join(this.#root, path)));
  }

  async *list(folder: string): AsyncGenerator<string> {
    const found = await this.#unlessAbsent(() => readdir(join(this.#root, folder), { withFileTypes: true }));
    for (const each of found ?? []) {
      if (each.isDirectory()) yield* this.list(`${folder}${each.name}/`);
      else yield `${folder}${each.name}`;
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
    const temporary = join(folder, `.${randomUUID()}.part`);
    const handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW, 0o600);
    try {
      await handle.writeFile(bytes);
      await handle.chmod(0o440);
      // mutant: sync-archive-file
      await handle.sync();
    } catch (cause) {
      await unlink(temporary);
      throw cause;
    } finally {
      await handle.close();
    }
    const named = await name(temporary, target);
    // mutant: sync-archive-name-in-folder
    await this.#syncName(folder);
    return named;
  }

  /** Syncs a folder, once for all files that got their names before the sync begins. */
  #syncName(folder: string): Promise<void> {
    const waiting = this.#nextSyncs.get(folder);
    if (waiting) return waiting;
    const next = (this.#syncs.get(folder) ?? Promise.resolve())
      .catch(() => undefined)
      .then(() => {
        this.#nextSyncs.delete(folder);
        const sync = syncFolder(folder);
        this.#syncs.set(folder, sync);
        return sync;
      });
    this.#nextSyncs.set(folder, next);
    return next;
  }

  /** Creates a folder. Syncs its parent folders up to the root, so that every name is on disk. */
  async #makeFolder(folder: string): Promise<void> {
    if (this.#folders.has(folder)) return;
    const first = await mkdir(folder, { recursive: true, mode: 0o700 });
    const top = first !== undefined && first.length < this.#root.length ? first : this.#root;
    // mutant: sync-archive-folder
    for (let at = folder; at.length >= top.length; at = dirname(at)) await syncFolder(dirname(at));
    this.#folders.add(folder);
  }
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, constants.O_RDONLY);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** @returns undefined for anything but a regular file of at most `maxFileBytes` */
async function readFile(path: string): Promise<Buffer | undefined> {
  const handle = await open(path, readFlags);
  try {
    const found = await handle.stat();
    return found.isFile() && found.size <= maxFileBytes ? await handle.readFile() : undefined;
  } finally {
    await handle.close();
  }
}

function codeOf(cause: unknown): unknown {
  return (cause as { code?: unknown }).code;
}
