/**
 * References from the configuration to the environment and to files: `${env:NAME}`, `${env:NAME:-default}`, `${file:/path}`, and `$${` for
 * a literal `${`. Their values may change while the daemon runs, so each use reads the stored template again.
 */
import { statSync } from 'node:fs';
import { WaybillError, messageOf } from '../errors/errors.ts';
import { readRegularFile } from '../disk/regular-file.ts';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Template {
  /** The current text. @throws WaybillError `secret_missing` that names the missing value, but not the setting */
  read(): string;
  /** Forgets the cached contents of files. */
  refresh(): void;
  /** As written, with its references: templates with the same text refer to the same. */
  readonly text: string;
  /** The origin of its value: `file /run/secrets/x`, `environment variable NAME`. */
  readonly origin: string;
  readonly files: readonly string[];
}

type Part = string | Template;

/** @returns the text unchanged when it contains no reference. @throws SyntaxError with the reason when a reference is malformed */
export function parseTemplate(text: string, environment: Environment): string | Template {
  const parts: Part[] = [];
  let rest = text;
  for (;;) {
    const at = rest.indexOf('${');
    if (at < 0) break;
    if (rest[at - 1] === '$') {
      parts.push(`${rest.slice(0, at - 1)}\${`);
      rest = rest.slice(at + 2);
      continue;
    }
    const end = rest.indexOf('}', at);
    parts.push(rest.slice(0, at), reference(end < 0 ? rest.slice(at) : rest.slice(at, end + 1), environment));
    rest = end < 0 ? '' : rest.slice(end + 1);
  }
  parts.push(rest);
  if (parts.every((part) => typeof part === 'string')) return text.replaceAll('$${', '${');
  return { ...joined(parts), text };
}

function joined(parts: readonly Part[]): Template {
  const templates = parts.filter((part) => typeof part !== 'string');
  return {
    read: () => parts.map((part) => (typeof part === 'string' ? part : part.read())).join(''),
    refresh: () => templates.forEach((template) => template.refresh()),
    text: parts.map((part) => (typeof part === 'string' ? part : part.text)).join(''),
    origin: templates.map((template) => template.origin).join(', '),
    files: templates.flatMap((template) => template.files),
  };
}

/** `NAME` or `NAME:-default`. @throws SyntaxError */
export function variable(given: string, environment: Environment): Template {
  const [, name, , otherwise] = /^([A-Za-z_][A-Za-z0-9_]*)(:-([^]*))?$/.exec(given) ?? [];
  if (name === undefined) throw new SyntaxError(`"${given}" is not the name of an environment variable`);
  return {
    read() {
      const value = environment[name];
      if (value !== undefined && value !== '') return value;
      if (otherwise !== undefined) return otherwise;
      throw new WaybillError('secret_missing', `environment variable "${name}" is ${value === undefined ? 'not set' : 'empty'}`);
    },
    refresh: () => undefined,
    text: `\${env:${given}}`,
    origin: `environment variable ${name}`,
    files: [],
  };
}

/** A file's text without one line break at its end; read again when the file has changed. @throws SyntaxError */
export function file(path: string): Template {
  if (path.trim() === '') throw new SyntaxError('"${file:}" has no path');
  let kept: { readonly version: string; readonly text: string } | undefined;
  return {
    read() {
      try {
        const { dev, ino, size, mtimeNs, ctimeNs } = statSync(path, { bigint: true });
        const version = [dev, ino, size, mtimeNs, ctimeNs].join();
        if (kept?.version !== version) kept = { version, text: decode(readRegularFile(path)) };
      } catch (thrown) {
        throw new WaybillError('secret_missing', `file "${path}" cannot be read: ${messageOf(thrown)}`, { cause: thrown });
      }
      if (kept.text.trim() === '') throw new WaybillError('secret_missing', `file "${path}" is empty or blank`);
      return kept.text;
    },
    refresh() {
      kept = undefined;
    },
    text: `\${file:${path}}`,
    origin: `file ${path}`,
    files: [path],
  };
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder('utf-8', { fatal: true }).decode(bytes).replace(/\r?\n$/, '');
}

function reference(text: string, environment: Environment): Template {
  const [, kind, what = ''] = /^\$\{(env|file):([^}]*)\}$/.exec(text) ?? [];
  if (kind === 'env') return variable(what, environment);
  if (kind === 'file') return file(what);
  throw new SyntaxError(
    `"${text}" is not a reference such as \${env:NAME}, \${env:NAME:-default} or \${file:/path}; a literal "\${" is written "$\${"`,
  );
}
