/**
 * Compresses rotated files, one at a time, while the sink writes. Deletes the plain file only when the compressed one and its name are on
 * disk. After a kill, an unfinished compression starts again.
 */
import { constants, createReadStream } from 'node:fs';
import { open, readdir, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Log } from '../../model/telemetry.ts';
import { sideFile } from '../../settings/side-file.ts';
import { syncDirectory } from './disk.ts';
import { kindOfName } from './rotation.ts';

export class Compressor implements AsyncDisposable {
  readonly #path: string;
  readonly #isRequested: boolean;
  readonly #id: string;
  readonly #log: Log;
  readonly #stop = new AbortController();
  #isDue = false;
  #running: Promise<void> | undefined;

  /** @param isRequested  false: only removes unfinished files */
  constructor(path: string, isRequested: boolean, id: string, log: Log) {
    this.#path = path;
    this.#isRequested = isRequested;
    this.#id = id;
    this.#log = log;
  }

  /** A file that fails stays unchanged until the next call. */
  begin(): void {
    this.#isDue = true;
    this.#running ??= this.#run().finally(() => (this.#running = undefined));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (this.#isDue && !signal.aborted) {
      this.#isDue = false;
      try {
        const folder = dirname(this.#path);
        const files = await namesIn(folder);
        const aside = dirname(sideFile(this.#path, ''));
        for (const name of await namesIn(aside)) if (kindOfName(this.#path, name) === 'half') await unlink(join(aside, name));
        if (!this.#isRequested) continue;
        for (const name of files.sort()) if (kindOfName(this.#path, name) === 'plain') await compress(join(folder, name), signal);
      } catch (error) {
        if (!hasEnded(signal)) this.#log.write('sink.compression_failed', { sink: this.#id, path: this.#path, error });
      }
    }
  }
}

/** A function, because the compiler keeps the narrowing of the loop's condition after an await. */
function hasEnded(signal: AbortSignal): boolean {
  return signal.aborted;
}

async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder, { withFileTypes: true })).filter((entry) => entry.isFile()).map(({ name }) => name);
}

async function compress(plain: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted();
  const half = /* mutant: unfinished-archive */ sideFile(plain, 'gz.part');
  const to = await open(half, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o600);
  try {
    const from = createReadStream(plain);
    await pipeline(from, createGzip(), (chunks: AsyncIterable<Buffer>) => to.writeFile(chunks), { signal });
    await to.sync();
  } finally {
    await to.close();
  }
  await rename(half, `${plain}.gz`);
  // mutant: sync-archive-name
  await syncDirectory(dirname(plain));
  await unlink(plain);
}
