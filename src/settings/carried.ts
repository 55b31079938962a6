/** Settings as data that can be cloned into another thread. A secret and PEM files cross as their references: each thread reads them itself. */
import { PemFiles } from './pem.ts';
import type { Environment } from './reference.ts';
import { Secret } from './secret.ts';

const mark = '@class';

export function carriedSettings(value: unknown): unknown {
  if (value instanceof Secret) return { [mark]: 'secret', ...value.carried() };
  if (value instanceof PemFiles) return { [mark]: 'pem', ...value.carried() };
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(carriedSettings);
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [key, carriedSettings(item)]));
  if (Object.getPrototypeOf(value) !== Object.prototype) throw new TypeError(`cannot pass settings of the class ${value.constructor.name}`);
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, carriedSettings(item)]));
}

/** @param environment  of this thread, for references to variables */
export function revivedSettings(value: unknown, environment: Environment): unknown {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => revivedSettings(item, environment));
  if (value instanceof Map) return new Map([...value].map(([key, item]) => [key, revivedSettings(item, environment)]));
  if (mark in value) {
    const { [mark]: name, ...parts } = value as { readonly [mark]: string };
    return name === 'secret'
      ? Secret.revived(parts as ReturnType<Secret['carried']>, environment)
      : PemFiles.revived(parts as ReturnType<PemFiles['carried']>);
  }
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, revivedSettings(item, environment)]));
}
