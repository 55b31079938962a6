/** Certificates and keys in PEM files. Each use reads the files, so that the next connection uses a renewed certificate. */
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { readRegularFile } from '../disk/regular-file.ts';

export class PemFiles {
  readonly paths: readonly string[];
  #setting = 'a PEM file';

  constructor(paths: readonly string[]) {
    this.paths = paths;
  }

  /** Called once, when the configuration is loaded. */
  bind(setting: string): void {
    this.#setting = setting;
  }

  /**
   * The current text of each file; of a directory, each `.pem`, `.crt` or `.cer` by name.
   * @throws WaybillError `config_invalid` that names the setting: a file cannot be read or has no PEM, or a directory has none
   */
  read(): readonly string[] {
    return this.paths.flatMap((path) => {
      try {
        return filesOf(path).map(readPem);
      } catch (thrown) {
        throw new WaybillError('config_invalid', `cannot read "${this.#setting}": ${messageOf(thrown)}`, { cause: thrown });
      }
    });
  }

  /** The setting and its paths, for messages. */
  describe(): string {
    return `${this.#setting} (${this.paths.join(', ')})`;
  }

  toJSON(): readonly string[] {
    return this.paths;
  }
}

function filesOf(path: string): readonly string[] {
  if (!statSync(path).isDirectory()) return [path];
  const files = readdirSync(path)
    .filter((name) => /\.(pem|crt|cer)$/i.test(name))
    .sort()
    .map((name) => join(path, name));
  if (files.length === 0) throw new Error(`no file in "${path}" ends in .pem, .crt or .cer`);
  return files;
}

function readPem(path: string): string {
  const text = readRegularFile(path).toString('utf8');
  if (!/-----BEGIN [A-Z0-9 ]+-----[^]+-----END [A-Z0-9 ]+-----/.test(text)) throw new Error(`"${path}" contains no PEM block`);
  return text;
}
