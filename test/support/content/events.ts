/**
 * Events for content tests: a record with a code, a user, a file and a second, in the form in which
 * a query engine sees its document.
 */
import { encoder } from '../../../src/encode/index.ts';
import { normalizer } from '../../../src/normalize/normalizer.ts';
import { poorest, recordOf, settings } from '../normalize/records.ts';

/** A document with dotted paths; a path that is absent has no value. */
export type Row = Readonly<Record<string, unknown>>;

/** A record of the service, with only the fields that every endpoint shows. */
interface Happening {
  readonly code: string;
  readonly user?: string;
  readonly file?: string;
  /** Seconds after `start`. */
  readonly at: number;
}

export const start = Date.parse('2026-03-04T09:00:00Z');

let nextId = 1;

export function recordFor({ code, user = 'u-1', file = 'p-1', at }: Happening): Readonly<Record<string, unknown>> {
  const [actionAttempted, result, resultReason] = code.split(':');
  const logTimestamp = new Date(start + at * 1000).toISOString().slice(0, -1);
  return { ...poorest, logId: nextId++, userId: user, payloadId: file, actionAttempted, result, resultReason, logTimestamp };
}

const normalize = normalizer(settings);
const encode = encoder('ecs', { includeOriginal: true, cef: { ipv6: 'c6a2', geo: 'cfp' } });

/** @param record  an object, or the text of any JSON value */
export function eventOf(record: object | string): Row {
  return flat(JSON.parse(encode(normalize(recordOf(typeof record === 'string' ? record : JSON.stringify(record)))).toString()), '');
}

/** The leaves of a document by their dotted paths; arrays are leaves. */
export function flat(value: unknown, path: string): Row {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return { [path]: value };
  return Object.assign({}, ...Object.entries(value).map(([name, inner]) => flat(inner, path === '' ? name : `${path}.${name}`))) as Row;
}

/** The values of a field: none, one, or the items of an array. */
export function valuesOf(row: Row, field: string): readonly unknown[] {
  const value = row[field];
  return value === undefined || value === null ? [] : Array.isArray(value) ? value : [value];
}

/** A text in which `*` stands for any characters. */
export function wildcard(text: string, flags = 's'): RegExp {
  return new RegExp(`^${text.replaceAll(/[\\^$.|?+()[\]{}]/g, String.raw`\$&`).replaceAll('*', '.*')}$`, flags);
}
