/** The `detail` of an operation for display: times in RFC 3339; the state stores them in µs. */
import type { Micros } from '../model/time.ts';
import { storedJson } from './damage.ts';

export type Detail = Readonly<Record<string, unknown>>;

/** Keys whose values are times, at any depth. */
const times: ReadonlySet<string> = new Set(['from', 'to', 'ends', 'closedUntil']);

/** Parses a stored detail. Text that is not JSON becomes `message`. */
export function detailOf(text: string | null): Detail {
  if (text === null) return {};
  try {
    const value = storedJson(text);
    return isObject(value) ? { ...value } : { message: text };
  } catch {
    return { message: text };
  }
}

/** Converts every time to text, also in nested values. */
export function withTimes(detail: Detail): Detail {
  return Object.fromEntries(
    Object.entries(detail).map(([name, value]) => [name, typeof value === 'number' && times.has(name) ? instant(value) : nested(value)]),
  );
}

/** Flattens a detail to one level: ranges of time as `FROM to TO`, other nested values as JSON, no undefined values. */
export function flat(detail: Detail): Record<string, string | number | boolean> {
  const entries = Object.entries(withTimes(detail)).filter(([, value]) => value !== null && value !== undefined);
  return Object.fromEntries(entries.map(([name, value]) => [name, isPlain(value) ? value : textOf(value)]));
}

/** RFC 3339 in UTC, with milliseconds only if they are not zero. */
export function instant(at: Micros): string {
  return new Date(at / 1000).toISOString().replace('.000Z', 'Z');
}

function nested(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(nested);
  return isObject(value) ? withTimes(value) : value;
}

function textOf(value: unknown): string {
  const spans = Array.isArray(value) ? value.map(spanText) : [undefined];
  return spans.includes(undefined) ? JSON.stringify(value) : spans.join(', ');
}

function spanText(value: unknown): string | undefined {
  if (!isObject(value) || Object.keys(value).length !== 2) return undefined;
  const { from, to } = value;
  return typeof from === 'string' && typeof to === 'string' ? `${from} to ${to}` : undefined;
}

function isPlain(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

function isObject(value: unknown): value is Detail {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
