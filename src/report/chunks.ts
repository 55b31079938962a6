/** Long text in pieces, made as it is asked for: what is written out this way is never whole in memory. Pure. */

import { harmless } from '../escape.ts';

/** A text, or the pieces of one. */
export type Chunks = string | Iterable<string>;

/** What `join` makes of the parts, piece by piece. */
export function* joined(parts: Iterable<Chunks>, separator: string): Generator<string, void, void> {
  let isFirst = true;
  for (const part of parts) {
    if (!isFirst) yield separator;
    isFirst = false;
    if (typeof part === 'string') yield part;
    else yield* part;
  }
}

/** The same text in pieces of at least this many characters, but for the last: short ones cost more to pass on than to make. */
export function* gathered(chunks: Iterable<string>, least: number): Generator<string, void, void> {
  let held = '';
  for (const chunk of chunks) {
    held += chunk;
    if (held.length < least) continue;
    yield held;
    held = '';
  }
  if (held !== '') yield held;
}

/** Each item as something else; can be gone through as often as the items can. */
export function mapped<Item, Result>(items: Iterable<Item>, make: (item: Item) => Result): Iterable<Result> {
  return {
    *[Symbol.iterator]() {
      for (const item of items) yield make(item);
    },
  };
}

/**
 * What `JSON.stringify(value, null, 2)` gives of a value of JSON, with whatever can be gone through for an array; characters that a terminal would obey
 * are escaped.
 */
export function* jsonChunks(value: unknown, indent = ''): Generator<string, void, void> {
  if (typeof value !== 'object' || value === null) return yield whole(value, indent);
  const isList = Symbol.iterator in value;
  const inner = `${indent}  `;
  let separator = '';
  yield isList ? '[' : '{';
  for (const [name, item] of isList ? unnamed(value as Iterable<unknown>) : named(value)) {
    yield `${separator}\n${inner}${name}`;
    separator = ',';
    // What comes one by one is in memory one by one: the engine is quicker.
    if (isList && !Array.isArray(value)) yield whole(item, inner);
    else yield* jsonChunks(item, inner);
  }
  if (separator !== '') yield `\n${indent}`;
  yield isList ? ']' : '}';
}

/** The same in one piece, with a line break: the result of a command with `--json`. */
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
