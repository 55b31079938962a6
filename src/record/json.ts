/** Parses the text of one record, for collect and normalize alike. No digit is lost, and no record can exhaust the stack. */
import type { JsonValue, RawNumber } from '../model/record.ts';

/** A record, or its `userNetwork`. */
export type JsonObject = Readonly<Record<string, JsonValue>>;

/** `JSON` with source text access (ECMA-262, JSON.parse source text access), for which TypeScript has no types yet. */
const json = JSON as typeof JSON & {
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
  parse(text: string, reviver: (key: string, value: unknown, context: { readonly source?: string }) => unknown): unknown;
};

/** Levels of nesting that are read; the specification has two. */
const depthMax = 64;

/**
 * Reads a record. Numbers that are not safe integers keep the digits of the text, as made by `JSON.rawJSON`; so 9007199254740993 and 1.50
 * stay what they are, while 1.0 and 1e3 are the integers 1 and 1000. A text nested deeper than `depthMax` is returned as a string: it is a
 * record that is not an object.
 * @throws SyntaxError when the text is not JSON
 */
export function parseRecord(text: string): JsonValue {
  const renamed = text.includes('\\') ? withoutEscapedKeys(text) : text;
  const value = parseExactly(renamed);
  if (value === undefined) return text;
  return renamed === text ? value : withKeys(value);
}

/** Undefined for a text that is nested too deep. */
function parseExactly(text: string): JsonValue | undefined {
  const value = JSON.parse(text) as JsonValue;
  switch (inspect(value, 0)) {
    case plain:
      return value;
    case inexact:
      return json.parse(text, keepDigits) as JsonValue;
    default:
      return undefined;
  }
}

const colonAfter = /[ \t\r\n]*:/y;

/**
 * The strings, braces and brackets of a JSON text, in order; the ends of a string are its quotes. V8 has no stack for a pattern that matches a
 * whole string with millions of escapes.
 */
export function* tokensIn(json: string): Generator<{ readonly start: number; readonly end: number; readonly isKey: boolean }> {
  let start = -1;
  for (const { 0: found, index } of json.matchAll(/\\.|["{}[\]]/gs)) {
    if (start >= 0 && found === '"') {
      colonAfter.lastIndex = index + 1;
      yield { start, end: index, isKey: colonAfter.test(json) };
      start = -1;
    } else if (found === '"') start = index;
    else if (start < 0) yield { start: index, end: index, isKey: false };
  }
}

/** What a key must escape in JSON, and the mark that replaces the escape. */
const escapedInKeys = /["\\%\0-\x1f]/g;
const markInKeys = /%(..)/g;

/**
 * Writes every key without a backslash: `%09` in place of a tab, `%25` in place of a percent sign. Equal keys stay equal, so the last
 * counts. V8 13.6 (Node 24) reads `{"k":0,"\t":1}` with the key `\` if it has read the keys `k` and `\` before, as it compares the expected
 * key with the escaped text: the identity of a record would depend on other records.
 */
function withoutEscapedKeys(text: string): string {
  const parts: string[] = [];
  let copied = 0;
  for (const { start, end, isKey } of tokensIn(text)) {
    const string = isKey ? text.slice(start, end + 1) : '';
    if (!/[\\%]/.test(string)) continue;
    const key = JSON.parse(string) as string;
    parts.push(text.slice(copied, start));
    parts.push(`"${key.replace(escapedInKeys, (character) => `%${character.charCodeAt(0).toString(16).padStart(2, '0')}`)}"`);
    copied = end + 1;
  }
  return parts.join('') + text.slice(copied);
}

/** Undoes `withoutEscapedKeys`. */
function withKeys(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return (value as readonly JsonValue[]).map(withKeys);
  const object = objectOf(value);
  if (object === undefined) return value;
  const keyOf = (name: string): string => name.replace(markInKeys, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 16)));
  return Object.fromEntries(Object.entries(object).map(([name, item]) => [keyOf(name), withKeys(item)]));
}

export function isRawNumber(value: JsonValue | undefined): value is RawNumber {
  return json.isRawJSON(value);
}

/** The value as an object with fields; undefined for everything else. */
export function objectOf(value: JsonValue | undefined): JsonObject | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !json.isRawJSON(value) ? (value as JsonObject) : undefined;
}

/** True if the value counts as absent: missing, null, or text of only white space. */
export function isAbsent(value: JsonValue | undefined): boolean {
  return value === undefined || value === null || (typeof value === 'string' && isBlank(value));
}

/** A string (a lone surrogate becomes U+FFFD), or a number or boolean as its JSON text; undefined if absent, an object or an array. */
export function textOf(value: JsonValue | undefined): string | undefined {
  switch (typeof value) {
    case 'string':
      return isBlank(value) ? undefined : value.toWellFormed();
    case 'number':
    case 'boolean':
      return JSON.stringify(value);
    case 'object':
      return json.isRawJSON(value) ? value.rawJSON : undefined;
    default:
      return undefined;
  }
}

const plain = 0;
const inexact = 1;
const deep = 2;

/** Returns `plain` for a value that equals its text, and another constant when a number lost digits or the value is nested too deep. */
function inspect(value: JsonValue, depth: number): number {
  if (typeof value === 'number') return isExact(value) ? plain : inexact;
  if (typeof value !== 'object' || value === null) return plain;
  if (depth === depthMax) return deep;
  let found = plain;
  if (Array.isArray(value)) {
    for (const item of value as readonly JsonValue[]) {
      if (typeof item === 'string') continue;
      const next = inspect(item, depth + 1);
      if (next > found) found = next;
    }
    return found;
  }
  const object = value as JsonObject;
  // `for in` over what JSON.parse made is several times faster than Object.values, and every record passes here.
  for (const key in object) {
    const item = object[key];
    if (item === undefined || typeof item === 'string') continue;
    const next = inspect(item, depth + 1);
    if (next > found) found = next;
  }
  return found;
}

/** An integer whose digits the number gives back; -0 would lose its sign. */
function isExact(value: number): boolean {
  return Number.isSafeInteger(value) && !Object.is(value, -0);
}

function keepDigits(_key: string, value: unknown, context: { readonly source?: string }): unknown {
  if (typeof value !== 'number' || isExact(value) || context.source === undefined) return value;
  return json.rawJSON(context.source);
}

/** The text of a number as `parseRecord` reads it. */
export function exactText(text: string): string {
  const value = Number(text);
  return isExact(value) ? String(value) : text;
}

export function isBlank(text: string): boolean {
  const first = text.charCodeAt(0);
  // Nearly every value begins with a visible ASCII character.
  return first > 0x20 && first < 0x7f ? false : text.trim() === '';
}
