/** Long text in chunks that are generated on demand, so that it is never entirely in memory. Pure. */

import { harmless } from '../errors/escape.ts';

/** A text, or its chunks. */
export type Chunks = string | Iterable<string>;

/** `Array.join` for parts that are texts or chunks. */
export function* joined(parts: Iterable<Chunks>, separator: string): Generator<string, void, void> {
  let isFirst = true;
  for (const part of parts) {
    if (!isFirst) yield separator;
    isFirst = false;
    if (typeof part === 'string') yield part;
    else yield* part;
  }
}

/** The same text in chunks of at least `minLength` characters, except the last: each chunk has a fixed cost. */
export function* gathered(chunks: Iterable<string>, minLength: number): Generator<string, void, void> {
  let held = '';
  for (const chunk of chunks) {
    held += chunk;
    if (held.length < minLength) continue;
    yield held;
    held = '';
  }
  if (held !== '') yield held;
}

/** A lazy `Array.map`; as often iterable as `items` is. */
export function mapped<Item, Result>(items: Iterable<Item>, make: (item: Item) => Result): Iterable<Result> {
  return {
    *[Symbol.iterator]() {
      for (const item of items) yield make(item);
    },
  };
}

/** The result of `JSON.stringify(value, null, 2)` in chunks, with iterables as arrays. Control characters are escaped for terminals. */
export function* jsonChunks(value: unknown, indent = ''): Generator<string, void, void> {
  if (typeof value !== 'object' || value === null) return yield whole(value, indent);
  const isList = Symbol.iterator in value;
  const inner = `${indent}  `;
  let separator = '';
  yield isList ? '[' : '{';
  for (const [name, item] of isList ? unnamed(value as Iterable<unknown>) : named(value)) {
    yield `${separator}\n${inner}${name}`;
    separator = ',';
    // A lazy item is in memory as a whole already, and the engine serializes it faster.
    if (isList && !Array.isArray(value)) yield whole(item, inner);
    else yield* jsonChunks(item, inner);
  }
  if (separator !== '') yield `\n${indent}`;
  yield isList ? ']' : '}';
}

/** The same as one text with a final line break: the result of a command with `--json`. */
export function jsonText(value: unknown): string {
  return `${[...jsonChunks(value)].join('')}\n`;
}

function whole(value: unknown, indent: string): string {
  return harmless(JSON.stringify(value, null, 2)).replaceAll('\n', `\n${indent}`);
}

function unnamed(items: Iterable<unknown>): Iterable<readonly [name: string, item: unknown]> {
  return mapped(items, (item) => ['', item]);
}

function named(value: object): (readonly [name: string, item: unknown])[] {
  const entries = Object.entries(value).filter(([, item]) => item !== undefined);
  return entries.map(([name, item]) => [`${harmless(JSON.stringify(name))}: `, item]);
}
