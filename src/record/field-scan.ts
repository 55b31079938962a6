/**
 * Reads only the fields for identity and time from the bytes of a record, in one walk that checks
 * all bytes against the grammar of JSON (RFC 8259). Collect needs no other field, and parsing all
 * of them would be most of its work. `parseRecord` handles unusual records: this scan gives the
 * same result or none.
 */
import { isAbsent, type JsonObject } from './json.ts';

/** The five fields, as `parseRecord` would read them. */
const requested = ['logId', 'logTimestamp', 'actionAttempted', 'result', 'resultReason'] as const;

const quotation = 0x22;
const backslash = 0x5c;
const colon = 0x3a;
const comma = 0x2c;
const openObject = 0x7b;
const closeObject = 0x7d;
const openArray = 0x5b;
const closeArray = 0x5d;
/** Deeper nesting is unusual. */
const depthMax = 16;
/** A longer text is unusual. */
const textMax = 256;
/** A number holds an integer of so many digits exactly. */
const digitsMax = 15;

/**
 * The kind of each byte within a string: 0 plain, 1 special (quotation mark, backslash, control
 * character), 2 not ASCII.
 */
const inString = new Uint8Array(256);
inString.fill(1, 0, 0x20);
inString[quotation] = inString[backslash] = 1;
inString.fill(2, 0x7f);

/**
 * @returns undefined when the bytes are no JSON object, or one with anything unusual about the five
 * fields: then use `parseRecord`
 */
export function scanFields(bytes: Uint8Array): JsonObject | undefined {
  return new FieldScan(bytes).record();
}

class FieldScan {
  readonly #bytes: Uint8Array;
  #at = 0;
  /** The last string is printable ASCII without escapes. */
  #isPlain = false;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  record(): JsonObject | undefined {
    const found: Record<string, string | number | null> = {};
    if (this.#bytes[this.#at] !== openObject) return undefined;
    this.#at += 1;
    this.#space();
    if (this.#bytes[this.#at] === closeObject) return undefined;
    for (;;) {
      const keyFrom = this.#at;
      if (!this.#string() || !this.#isPlain) return undefined;
      const name = this.#nameOf(keyFrom + 1, this.#at - 1);
      if (!this.#past(colon)) return undefined;
      if (name === undefined) {
        if (!this.#value(0)) return undefined;
      } else {
        const value = this.#field();
        if (value === undefined) return undefined;
        found[name] = value;
      }
      this.#space();
      const next = this.#bytes[this.#at];
      this.#at += 1;
      if (next === closeObject) break;
      if (next !== comma) return undefined;
      this.#space();
    }
    // Without an id the whole record is its identity.
    const id = found['logId'];
    if (this.#at !== this.#bytes.length || isAbsent(id)) return undefined;
    return found;
  }

  /**
   * The field that a key names; undefined for other keys. The positions are inside its quotation
   * marks.
   */
  #nameOf(from: number, to: number): (typeof requested)[number] | undefined {
    const length = to - from;
    for (const name of requested) {
      if (name.length !== length) continue;
      let i = 0;
      while (i < length && this.#bytes[from + i] === name.charCodeAt(i)) i += 1;
      if (i === length) return name;
    }
    return undefined;
  }

  /**
   * The value of one of the five fields: plain text, a small integer, or null; undefined for
   * anything else.
   */
  #field(): string | number | null | undefined {
    const from = this.#at;
    const first = this.#bytes[from];
    if (first === quotation) {
      if (!this.#string() || !this.#isPlain || this.#at - from > textMax) return undefined;
      return this.#ascii(from + 1, this.#at - 1);
    }
    if (first === 0x6e) return this.#word('null') ? null : undefined;
    if (first === undefined || first < 0x31 || first > 0x39 || !this.#number() || this.#at - from > digitsMax) return undefined;
    const digits = this.#ascii(from, this.#at);
    return /^\d+$/.test(digits) ? Number(digits) : undefined;
  }

  #ascii(from: number, to: number): string {
    let text = '';
    for (let at = from; at < to; at += 1) text += String.fromCharCode(this.#bytes[at] ?? 0);
    return text;
  }

  /** Walks over a value of any kind; false when there is none. */
  #value(depth: number): boolean {
    switch (this.#bytes[this.#at]) {
      case quotation:
        return this.#string();
      case openObject:
        return this.#members(depth, closeObject);
      case openArray:
        return this.#members(depth, closeArray);
      case 0x74:
        return this.#word('true');
      case 0x66:
        return this.#word('false');
      case 0x6e:
        return this.#word('null');
      default:
        return this.#number();
    }
  }

  /** Walks over the members of an object, or the items of an array. */
  #members(depth: number, close: number): boolean {
    if (depth === depthMax) return false;
    this.#at += 1;
    this.#space();
    if (this.#bytes[this.#at] === close) {
      this.#at += 1;
      return true;
    }
    for (;;) {
      if (close === closeObject && !(this.#string() && this.#past(colon))) return false;
      if (!this.#value(depth + 1)) return false;
      this.#space();
      const next = this.#bytes[this.#at];
      this.#at += 1;
      if (next === close) return true;
      if (next !== comma) return false;
      this.#space();
    }
  }

  /** Walks over a string, quotation marks included. */
  #string(): boolean {
    const bytes = this.#bytes;
    const { length } = bytes;
    let at = this.#at;
    if (bytes[at] !== quotation) return false;
    at += 1;
    this.#isPlain = true;
    for (;;) {
      let kind = 0;
      while (at < length && (kind = inString[bytes[at] ?? 0] ?? 0) === 0) at += 1;
      if (at >= length) return false;
      const byte = bytes[at];
      at += 1;
      if (byte === quotation) break;
      this.#isPlain = false;
      if (kind === 2) continue;
      if (byte !== backslash) return false;
      const escaped = bytes[at];
      at += 1;
      if (escaped === 0x75) {
        for (let i = 0; i < 4; i += 1, at += 1) if (!isHex(bytes[at])) return false;
      } else if (!isEscape(escaped)) return false;
    }
    this.#at = at;
    return true;
  }

  /** Walks over a number: `-`, an integer without leading zeros, a fraction, an exponent. */
  #number(): boolean {
    if (this.#bytes[this.#at] === 0x2d) this.#at += 1;
    if (this.#bytes[this.#at] === 0x30) this.#at += 1;
    else if (!this.#digits()) return false;
    if (this.#bytes[this.#at] === 0x2e) {
      this.#at += 1;
      if (!this.#digits()) return false;
    }
    const exponent = this.#bytes[this.#at];
    if (exponent === 0x65 || exponent === 0x45) {
      this.#at += 1;
      const sign = this.#bytes[this.#at];
      if (sign === 0x2b || sign === 0x2d) this.#at += 1;
      return this.#digits();
    }
    return true;
  }

  #digits(): boolean {
    const from = this.#at;
    while (isDigit(this.#bytes[this.#at])) this.#at += 1;
    return this.#at > from;
  }

  #word(word: string): boolean {
    for (let i = 0; i < word.length; i += 1, this.#at += 1) if (this.#bytes[this.#at] !== word.charCodeAt(i)) return false;
    return true;
  }

  /** Steps over white space, this byte, and white space. */
  #past(byte: number): boolean {
    this.#space();
    if (this.#bytes[this.#at] !== byte) return false;
    this.#at += 1;
    this.#space();
    return true;
  }

  #space(): void {
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
      this.#at += 1;
    }
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function isHex(byte: number | undefined): boolean {
  return isDigit(byte) || (byte !== undefined && ((byte >= 0x41 && byte <= 0x46) || (byte >= 0x61 && byte <= 0x66)));
}

/** `"`, `\`, `/`, b, f, n, r, t */
function isEscape(byte: number | undefined): boolean {
  return byte !== undefined && '"\\/bfnrt'.includes(String.fromCharCode(byte));
}
