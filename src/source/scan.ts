/**
 * Finds the items of `data` in the body of a page without parsing them. Each item is cut out byte
 * for byte and is parsed later on its own, so that a malformed item affects one record and not the
 * whole page.
 *
 * A few kilobytes can decompress to millions of items or values, and each object costs a hundred
 * times its bytes. Items and values are therefore counted before objects are created. A page that
 * exceeds the limits is malformed, and the caller requests fewer records.
 *
 * When `scanPage` returns, the body is one JSON object surrounded by white space only (a byte order
 * mark at the start is skipped). Everything except the items of `data` that are objects or arrays
 * has been parsed. In those items every string ends and has no raw control character, and every
 * bracket is closed by its own kind. So the body is valid JSON exactly when every item parses on
 * its own. That later parse checks the rest: numbers, literals, commas, colons, escapes and UTF-8.
 */
import { WaybillError } from '../errors.ts';
import { sizeAndType } from '../quote.ts';

/**
 * Maximum items of `data`: five times the largest page size, because some services ignore the
 * requested size.
 */
export const itemsMax = 50_000;
/** Maximum values of a page, nested ones included: 25 for each record of the largest page size. */
export const valuesMax = 250_000;

interface ScannedPage {
  /** The exact bytes of each item, as views of the body. */
  readonly items: readonly Uint8Array[];
  /** The value of `pagination`, if present. */
  readonly pagination: unknown;
}

/**
 * @param body  UTF-8
 * @param what  the request, for messages: `page 3 of source "production"`
 * @param type  the `content-type` header of the response
 * @throws WaybillError `page_malformed` with the size and media type of the body. Its text is not
 * shown: it may hold records, or the request with its secrets.
 */
export function scanPage(body: Uint8Array, what: string, type?: string | readonly string[]): ScannedPage {
  try {
    return new Scanner(body).page();
  } catch (thrown) {
    if (!(thrown instanceof Flaw)) throw thrown;
    throw new WaybillError('page_malformed', `cannot read ${what}: ${thrown.message}, got ${sizeAndType(body, type)}`);
  }
}

/** The reason why a body is not a page. */
class Flaw extends Error {}

const quotation = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openArray = 0x5b;
const backslash = 0x5c;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

/** The classes of bytes outside of strings. */
const nothing = 0;
const string = 1;
const open = 2;
const close = 3;
const separator = 4;
const another = 5;
const meaning = new Uint8Array(256);
meaning[quotation] = string;
meaning[openArray] = meaning[openObject] = open;
meaning[closeArray] = meaning[closeObject] = close;
meaning[comma] = another;
meaning[colon] = separator;
for (const space of [0x20, 0x09, 0x0a, 0x0d]) meaning[space] = separator;

/** Bytes that end a plain run of a string: quotation mark, backslash, control characters. */
const special = new Uint8Array(256);
special.fill(1, 0, 0x20);
special[quotation] = special[backslash] = 1;

const decoder = new TextDecoder();
const decode = (bytes: Uint8Array): string => decoder.decode(bytes);

class Scanner {
  readonly #body: Uint8Array;
  /**
   * The closing bracket of each open level, innermost last. An array instead of recursion, so that
   * deep nesting cannot exhaust the stack.
   */
  #closers = new Uint8Array(64);
  /** Values so far. An opening bracket starts one, a comma another. */
  #values = 0;

  constructor(body: Uint8Array) {
    this.#body = body;
  }

  page(): ScannedPage {
    const body = this.#body;
    let at = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0;
    at = this.#space(at);
    if (body[at] !== openObject) throw new Flaw('expected a JSON object');
    let items: Uint8Array[] | undefined;
    let pagination: unknown;
    at = this.#space(at + 1);
    if (body[at] === closeObject) at += 1;
    else {
      for (;;) {
        this.#another();
        const keyEnd = this.#string(at);
        const key = this.#parse(at, keyEnd);
        at = this.#space(keyEnd);
        if (body[at] !== colon) throw this.#unexpected(at);
        at = this.#space(at + 1);
        if (key === 'data') {
          // As in JSON.parse the last of duplicate keys counts. Earlier ones must be valid JSON too.
          for (const item of items ?? []) parse(item);
          items = undefined;
          if (body[at] === openArray) {
            items = [];
            at = this.#items(at, items);
          } else at = this.#other(at);
        } else {
          const end = this.#value(at);
          const value = this.#parse(at, end);
          if (key === 'pagination') pagination = value;
          at = end;
        }
        at = this.#space(at);
        if (body[at] === closeObject) {
          at += 1;
          break;
        }
        if (body[at] !== comma) throw this.#unexpected(at);
        at = this.#space(at + 1);
      }
    }
    at = this.#space(at);
    if (at < body.length) throw new Flaw(`expected the end of the JSON object at byte ${at} of ${body.length}`);
    if (items === undefined) throw new Flaw('expected a JSON object with an array "data"');
    return { items, pagination };
  }

  /** Scans an array from its opening bracket and cuts out its items. */
  #items(from: number, items: Uint8Array[]): number {
    const body = this.#body;
    let at = this.#space(from + 1);
    if (body[at] === closeArray) return at + 1;
    for (;;) {
      const begin = at;
      const first = body[at];
      at = first === openObject || first === openArray ? this.#brackets(at) : this.#other(at);
      this.#another();
      if (items.length === itemsMax) throw new Flaw(`expected at most ${itemsMax} items in "data"`);
      items.push(body.subarray(begin, at));
      at = this.#space(at);
      const next = body[at];
      if (next === closeArray) return at + 1;
      if (next !== comma) throw this.#unexpected(at);
      at = this.#space(at + 1);
    }
  }

  /** Scans and parses a value. */
  #other(from: number): number {
    const end = this.#value(from);
    this.#parse(from, end);
    return end;
  }

  /** Returns the end of a value of any kind. */
  #value(from: number): number {
    const body = this.#body;
    const first = body[from];
    if (first === quotation) return this.#string(from);
    if (first === openObject || first === openArray) return this.#brackets(from);
    let at = from;
    while (at < body.length && meaning[body[at] ?? 0] === nothing) at += 1;
    if (at === from) throw this.#unexpected(at);
    return at;
  }

  /**
   * Returns the end of an object or array. Most bytes of a page pass here, so the loop for strings is
   * inlined.
   */
  #brackets(from: number): number {
    const body = this.#body;
    const length = body.length;
    let closers = this.#closers;
    let depth = 0;
    let at = from;
    let values = this.#values;
    while (at < length) {
      const byte = body[at] ?? 0;
      at += 1;
      const kind = meaning[byte];
      if (kind === string) {
        for (;;) {
          while (at < length && special[body[at] ?? 0] === 0) at += 1;
          if (at >= length) throw this.#cut();
          const end = body[at];
          at += 1;
          if (end === quotation) break;
          if (end !== backslash) throw this.#unexpected(at - 1);
          at += 1;
        }
      } else if (kind === another) {
        values += 1;
        if (values > valuesMax) throw tooMany();
      } else if (kind === open) {
        values += 1;
        if (values > valuesMax) throw tooMany();
        if (depth === closers.length) {
          this.#closers = new Uint8Array(depth * 2);
          this.#closers.set(closers);
          closers = this.#closers;
        }
        // The closing bracket has the code of `[` or `{` plus two.
        closers[depth] = byte + 2;
        depth += 1;
      } else if (kind === close) {
        depth -= 1;
        if (closers[depth] !== byte) throw this.#unexpected(at - 1);
        if (depth === 0) {
          this.#values = values;
          return at;
        }
      }
    }
    throw this.#cut();
  }

  /** Returns the end of a string, after its quotation mark. */
  #string(from: number): number {
    const body = this.#body;
    if (body[from] !== quotation) throw this.#unexpected(from);
    for (let at = from + 1; at < body.length; at += 1) {
      const byte = body[at] ?? 0;
      if (byte === quotation) return at + 1;
      if (byte === backslash) at += 1;
    }
    throw this.#cut();
  }

  #space(from: number): number {
    const body = this.#body;
    let at = from;
    for (;;) {
      const byte = body[at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
      at += 1;
    }
  }

  /** Counts a value outside of brackets, or an item. */
  #another(): void {
    this.#values += 1;
    if (this.#values > valuesMax) throw tooMany();
  }

  #parse(from: number, to: number): unknown {
    return parse(this.#body.subarray(from, to));
  }

  #unexpected(at: number): Flaw {
    if (at >= this.#body.length) return this.#cut();
    return new Flaw(`expected JSON, which ends at byte ${at} of ${this.#body.length}`);
  }

  #cut(): Flaw {
    return new Flaw(`expected JSON, which is cut off after ${this.#body.length} bytes`);
  }
}

function tooMany(): Flaw {
  return new Flaw(`expected at most ${valuesMax} values`);
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(decode(bytes)) as unknown;
  } catch {
    // The message of JSON.parse quotes the body.
    throw new Flaw('expected JSON');
  }
}
