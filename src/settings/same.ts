/** Compares settings by what the operator wrote. */
import { isDeepStrictEqual } from 'node:util';
import { PemFiles } from './pem.ts';
import { Secret } from './secret.ts';

/** Secrets are the same by their reference, files by their path: their content may change. */
export function isSame(before: unknown, after: unknown): boolean {
  return isDeepStrictEqual(comparable(before), comparable(after));
}

/** Plain data, because `isDeepStrictEqual` ignores the private fields of a secret. A key with the value undefined equals a missing key. */
function comparable(value: unknown): unknown {
  if (value instanceof Secret) return value.reference;
  if (value instanceof PemFiles) return value.paths;
  if (Array.isArray(value)) return value.map(comparable);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return Object.fromEntries(entries.map(([key, item]) => [key, comparable(item)]));
}
