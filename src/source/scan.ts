/**
 * Reads the items of `data` in the body of a page, in one pass over its bytes: each item is a record whose fields were found, without a
 * value. The body is one JSON object surrounded by white space only (a byte order mark at the start is skipped).
 *
 * A few kilobytes can decompress to millions of items or values, and each object costs a hundred times its bytes. Items and values are
 * therefore counted before objects are created. A page that exceeds the limits is malformed, and the caller requests fewer records.
 */
import { readItem } from '../record/read.ts';
import type { RecordFields } from '../model/record.ts';
import { TooManyValues, UnexpectedByte } from '../record/walk.ts';
import type { Budget } from '../record/walk.ts';
import { WaybillError } from '../errors/errors.ts';
import { sizeAndType } from '../errors/quote.ts';

/** Maximum items of `data`: five times the largest page size, because some services ignore the requested size. */
export const itemsMax = 50_000;
/** Maximum values of a page, nested ones included: 25 for each record of the largest page size. */
export const valuesMax = 250_000;

interface ScannedPage {
  /** Views of the body. */
  readonly items: readonly RecordFields[];
  /** The value of `pagination`, if present. */
  readonly pagination: unknown;
}

/**
 * @param body  UTF-8
 * @param what  the request, for messages: `page 3 of source "production"`
 * @param type  the `content-type` header of the response
 * @throws WaybillError `page_malformed` with size and media type, without the text: it may hold records, or the request with its secrets
 */
export function scanPage(body: Uint8Array, what: string, type?: string | readonly string[]): ScannedPage {
  try {
    return new Scanner(body).page();
  } catch (thrown) {
    if (!(thrown instanceof Flaw)) throw thrown;
    const message = `cannot read ${what}: ${thrown.message}, got ${sizeAndType(body, type)}`;
    throw new WaybillError('page_malformed', message, { isEmpty: body.length === 0 });
  }
}

/** The reason why a body is not a page. */
class Flaw extends Error {}

const quotation = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const openArray = 0x5b;
const closeArray = 0x5d;
const openObject = 0x7b;
const closeObject = 0x7d;

const decoder = new TextDecoder();

class Scanner {
  readonly #body: Uint8Array;
  readonly #budget: Budget = { valuesLeft: valuesMax };

  constructor(body: Uint8Array) {
    this.#body = body;
  }

  page(): ScannedPage {
    const body = this.#body;
    let at = body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? 3 : 0;
    at = this.#space(at);
    if (body[at] !== openObject) throw new Flaw('expected a JSON object');
    let items: RecordFields[] | undefined;
    let pagination: unknown;
    at = this.#space(at + 1);
    if (body[at] === closeObject) at += 1;
    else {
      for (;;) {
        this.#another();
        if (body[at] !== quotation) throw this.#unexpected(at);
        const key = this.#item(at).received;
        at = this.#space(at + key.length);
        if (body[at] !== colon) throw this.#unexpected(at);
        at = this.#space(at + 1);
        const name = parse(key);
        // As in JSON.parse the last of duplicate keys counts.
        if (name === 'data' && body[at] === openArray) {
          items = [];
          at = this.#items(at, items);
        } else {
          const value = this.#item(at).received;
          // Some services send null in place of an empty list. The count shows whether records are missing.
          if (name === 'data') items = isNull(value) ? [] : undefined;
          if (name === 'pagination') pagination = parse(value);
          at += value.length;
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

  /** Reads an array from its opening bracket. @returns the byte after it */
  #items(from: number, items: RecordFields[]): number {
    const body = this.#body;
    let at = this.#space(from + 1);
    if (body[at] === closeArray) return at + 1;
    for (;;) {
      const item = this.#item(at);
      this.#another();
      if (items.length === itemsMax) throw new Flaw(`expected at most ${itemsMax} items in "data"`);
      items.push(item);
      at = this.#space(at + item.received.length);
      const next = body[at];
      if (next === closeArray) return at + 1;
      if (next !== comma) throw this.#unexpected(at);
      at = this.#space(at + 1);
    }
  }

  #item(from: number): RecordFields {
    try {
      return readItem(this.#body, from, this.#budget);
    } catch (thrown) {
      if (thrown instanceof UnexpectedByte) throw this.#unexpected(thrown.at);
      if (thrown instanceof TooManyValues) throw tooMany();
      throw thrown;
    }
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

  #another(): void {
    this.#budget.valuesLeft -= 1;
    if (this.#budget.valuesLeft < 0) throw tooMany();
  }

  #unexpected(at: number): Flaw {
    const { length } = this.#body;
    return new Flaw(
      at < length
        ? `expected JSON, which is valid only up to byte ${at} of ${length}`
        : `expected complete JSON; it ends too early, after ${length} bytes`,
    );
  }
}

function tooMany(): Flaw {
  return new Flaw(`expected at most ${valuesMax} values`);
}

function isNull(value: Uint8Array): boolean {
  return value.length === 4 && value[0] === 0x6e;
}

function parse(bytes: Uint8Array): unknown {
  return JSON.parse(decoder.decode(bytes));
}
