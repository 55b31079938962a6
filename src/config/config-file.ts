/**
 * The configuration as files. The daemon reads it again after SIGHUP, and after a change of a file. Compares the content of the files every
 * few seconds, so a symlink to another file is a change too.
 */
import { orAborted } from '../time/deadline.ts';
import { createHash } from 'node:crypto';
import { readFileSync, statSync } from 'node:fs';
import { glob } from 'node:fs/promises';
import { resolve } from 'node:path';
import { loadConfig, type Loaded, type Watched } from './load.ts';
import type { Clock } from '../model/time.ts';
import { readRegularFile, readRegularFileAsync } from '../disk/regular-file.ts';
import type { Environment } from '../settings/reference.ts';

const pollMs = 2_000;
/** Time between two checks, in ms. A change is used only if both find the same content: another process may still be writing the file. */
const agreeMs = 500;

export interface ConfigSource {
  /** Resolves when the daemon has to read the configuration again. `changed`: true after a change of a file, false after SIGHUP. */
  due(signal: AbortSignal): Promise<{ readonly changed: boolean }>;
  /** @throws WaybillError `config_invalid`, with every problem in `problems` */
  load(): Promise<Loaded>;
}

interface ConfigFileOptions {
  /** Of `--config`. */
  readonly path: string | undefined;
  readonly environment: Environment;
  readonly clock: Clock;
}

export class ConfigFile implements ConfigSource {
  readonly #options: ConfigFileOptions;
  #watched: Watched | undefined;
  /** The file of the start, even while it is missing: a reload must not use a configuration from another place. */
  #file: string | undefined;
  /** A hash of the files, taken before the last reload. Undefined before the first check, which then reports a change. */
  #seen: string | undefined;
  /** The content of a configuration that is not a regular file: a pipe, such as `--config /dev/stdin`, has its content only once. */
  #piped: string | undefined;
  #isRequested = false;
  #wake = (): void => undefined;

  constructor(options: ConfigFileOptions) {
    this.#options = options;
  }

  async load(): Promise<Loaded> {
    const { path, environment, clock } = this.#options;
    const read = (file: string): string => {
      if (this.#piped !== undefined) return this.#piped;
      // Only the start may wait for the writer of a pipe.
      if (this.#file !== undefined) return readRegularFile(file).toString('utf8');
      const isPiped = !statSync(file).isFile();
      const text = readFileSync(file, 'utf8');
      if (isPiped) this.#piped = text;
      return text;
    };
    const reads = (watched: Watched): void => void (this.#watched = watched);
    const loaded = await loadConfig(this.#file ?? path, environment, { now: clock.now(), reads, read });
    this.#file = loaded.file;
    return loaded;
  }

  /** Call after SIGHUP: `due` resolves at once. */
  request(): void {
    this.#isRequested = true;
    this.#wake();
  }

  /** The signal ends it even while a read hangs, for example on a dead network mount. */
  async due(signal: AbortSignal): Promise<{ readonly changed: boolean }> {
    for (;;) {
      await this.#rest(signal);
      if (this.#isRequested) {
        this.#isRequested = false;
        this.#seen = await orAborted(this.#look(), signal);
        return { changed: false };
      }
      const seen = await orAborted(this.#look(), signal);
      if (seen === this.#seen) continue;
      await this.#options.clock.sleep(agreeMs, signal);
      if ((await orAborted(this.#look(), signal)) !== seen) continue;
      this.#seen = seen;
      return { changed: true };
    }
  }

  async #rest(signal: AbortSignal): Promise<void> {
    if (this.#isRequested) return;
    const woken = new AbortController();
    this.#wake = () => woken.abort();
    await this.#options.clock.sleep(pollMs, AbortSignal.any([signal, woken.signal])).catch(() => undefined);
    signal.throwIfAborted();
  }

  async #look(): Promise<string> {
    const { files, patterns, directory } = this.#watched ?? { files: [], patterns: [], directory: '.' };
    const names = new Set(files.map((file) => resolve(file)));
    for (const pattern of patterns) {
      // A name without a pattern is watched even before its file exists.
      if (!/[*?[\]{}]/.test(pattern)) names.add(resolve(directory, pattern));
      else for await (const name of glob(pattern, { cwd: directory })) names.add(resolve(directory, name));
    }
    const hash = createHash('sha256');
    for (const name of [...names].toSorted()) {
      hash.update(JSON.stringify(name));
      hash.update(await contentOf(name));
    }
    return hash.digest('hex');
  }
}

/** The reason in place of the content when a file cannot be read: `load` reports it. */
async function contentOf(file: string): Promise<Uint8Array | string> {
  try {
    return await readRegularFileAsync(file);
  } catch (thrown) {
    return String(thrown);
  }
}
