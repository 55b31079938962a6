/**
 * Walks once over the bytes of a record: checks the grammar of JSON (RFC 8259) and notes where each known field lies. It decodes nothing:
 * collect needs only identity and time, and parsing all fields would be most of its work.
 */
import type { Notes } from '../model/record.ts';
import { fieldNumbers, fieldPaths } from './fields.ts';

export const kinds = {
  /** The field is missing or null. */
  absent: 0,
  /** A string of printable ASCII without escapes. */
  plain: 1,
  /** A string without escapes that is not plain. */
  unescaped: 2,
  escaped: 3,
  /** At most 15 digits: a number holds every such integer exactly. */
  integer: 4,
  number: 5,
  boolean: 6,
  object: 7,
  array: 8,
} as const;

/** The kind of a field's value, its first byte, and the byte after its last, without the quotation marks of a string. */
export const columnsPerField = 3;
const columnCount = fieldPaths.length * columnsPerField;

/** What a walk counts down: every opening bracket begins a value, every comma another. */
export interface Budget {
  valuesLeft: number;
}

/** The values exceed the budget. */
export class TooManyValues extends Error {}

export class UnexpectedByte extends SyntaxError {
  /** Its place; the length of the bytes when they end too early. */
  readonly at: number;

  constructor(bytes: Uint8Array, at: number) {
    const byte = bytes[at];
    super(byte === undefined ? 'unexpected end' : `unexpected byte 0x${byte.toString(16).padStart(2, '0')} at ${at}`);
    this.at = at;
  }
}

export interface Walked {
  readonly notes: Omit<Notes, 'isObject'>;
  /** The byte after the value. */
  readonly to: number;
  readonly isObject: boolean;
  /** The largest number of objects and arrays inside one another. */
  readonly depth: number;
  /** False when a string holds bytes above 0x7f: they may be invalid UTF-8. */
  readonly isAscii: boolean;
}

const quotation = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const minus = 0x2d;
const zero = 0x30;
const openObject = 0x7b;
const closeObject = 0x7d;
const openArray = 0x5b;
const closeArray = 0x5d;
const maxExactDigits = 15;

/** Bytes in a string: 0 plain, 1 end, escape or control character, 2 not ASCII. */
const inString = new Uint8Array(256);
inString.fill(1, 0, 0x20);
inString[quotation] = inString[backslash] = 1;
inString.fill(2, 0x80);

/** The letter after a backslash: the length of its escape; 0 for no escape. */
const escapeLength = new Uint8Array(256);
for (const letter of Buffer.from('"\\/bfnrt')) escapeLength[letter] = 2;
const unicodeEscape = 6;
escapeLength[0x75] = unicodeEscape;
/** 1 for a hexadecimal digit. */
const isHex = new Uint8Array(256);
for (const digit of Buffer.from('0123456789ABCDEFabcdef')) isHex[digit] = 1;

const nothing = new Uint8Array();
/** How many numbers are reserved at once. Each record keeps its part of them, so no part is used again. */
const numbersAtOnce = 16_384;
/** Most records have fewer marks. */
const usualMarks = 256;
/** More than any record has; the engine counts integers up to this without memory. */
const unlimited = 2 ** 30 - 1;
const maxKeptLevels = 1_024;
const none = -1;
const network = fieldNumbers.userNetwork;
/** The places before the first field of a record, and of `userNetwork`. */
const beforeRecord = fieldPaths.length;
const beforeNetwork = beforeRecord + 1;
/** The keys of the fields, as bytes, by field. */
const keys: readonly Buffer[] = fieldPaths.map((path) => Buffer.from(path.slice(path.indexOf('.') + 1)));

/** The fields by level and key, for a key that is not the expected one. */
const fieldsOf = [false, true].map(
  (inNetwork) => new Map(keys.flatMap((key, field) => (field > network === inNetwork ? [[key.toString(), field] as const] : []))),
);
/** The keys as records usually contain them, `"logId":`. One array is several times faster to compare with than one for each key. */
const quotedKeys = Buffer.concat(keys.map((key) => Buffer.from(`"${key.toString()}":`)));
const quotedFrom: readonly number[] = keys.reduce((starts, key) => [...starts, (starts.at(-1) ?? 0) + key.length + 3], [0]);
const longestKey = Math.max(...keys.map(({ length }) => length));

export class Walk {
  #bytes: Uint8Array = nothing;
  #valuesLeft = unlimited;
  #from = 0;
  #at = 0;
  #level = 0;
  /** Of each open object and array: its closing bracket, and the field whose value it is. */
  readonly #closers: number[] = [];
  readonly #fields: number[] = [];
  #numbers = new Int32Array(numbersAtOnce);
  #columns = 0;
  #filled = 0;
  #isAscii = true;
  /** The field that followed each field in the last record: a guess, checked against the bytes. */
  readonly #followers = new Int8Array(fieldPaths.length + 2).fill(none);

  /** @throws UnexpectedByte when the bytes are not one JSON value with optional white space around it */
  over(bytes: Uint8Array): Walked {
    this.#begin(bytes, 0, unlimited);
    this.#space();
    const isObject = bytes[this.#at] === openObject;
    const depth = this.#walk(isObject);
    this.#space();
    if (this.#at < bytes.length) throw this.#unexpected();
    return this.#end(isObject, depth);
  }

  /** Walks over one value within a larger text. @throws UnexpectedByte when no JSON value begins at `from`; TooManyValues */
  within(bytes: Uint8Array, from: number, budget: Budget): Walked {
    this.#begin(bytes, from, budget.valuesLeft);
    const isObject = bytes[from] === openObject;
    const depth = this.#walk(isObject);
    budget.valuesLeft = this.#valuesLeft;
    return this.#end(isObject, depth);
  }

  #begin(bytes: Uint8Array, from: number, valuesLeft: number): void {
    this.#bytes = bytes;
    this.#valuesLeft = valuesLeft;
    this.#from = this.#at = from;
    this.#level = 0;
    // Releases the memory of a record that was nested deep.
    if (this.#closers.length > maxKeptLevels) this.#closers.length = this.#fields.length = 0;
    this.#isAscii = true;
    // The notes of the record, with no field.
    this.#columns = this.#filled;
    if (this.#filled + columnCount + usualMarks > this.#numbers.length) this.#moveNotes();
    this.#filled += columnCount;
  }

  /** @returns the depth */
  #walk(isObject: boolean): number {
    let depth = 0;
    let field = none;
    let previous = none;
    for (;;) {
      const isOpened = this.#value(field);
      if (isOpened) {
        depth = Math.max(depth, this.#level);
        previous = this.#level === 1 ? beforeRecord : beforeNetwork;
      }
      const level = this.#next(isOpened);
      if (level === 0) return depth;
      field = none;
      if (this.#closers[level - 1] !== closeObject) continue;
      // The fields of the record are at level 1, the fields of `userNetwork` at level 2.
      const isKnown = isObject && (level === 1 || (level === 2 && this.#fields[1] === network));
      if (isKnown) previous = field = this.#field(previous, level === 2);
      else this.#key();
    }
  }

  #end(isObject: boolean, depth: number): Walked {
    // The record is a view of a page, which may be large.
    this.#bytes = nothing;
    const columns = this.#columns;
    const notes = { numbers: this.#numbers, columns, marks: columns + columnCount, end: this.#filled };
    return { notes, to: this.#at, isObject, depth, isAscii: this.#isAscii };
  }

  /** Moves the notes of this record to new memory, with room for as many again. */
  #moveNotes(): void {
    const notes = this.#numbers.subarray(this.#columns, this.#filled);
    this.#numbers = new Int32Array(Math.max(numbersAtOnce, 2 * notes.length));
    this.#numbers.set(notes);
    this.#columns = 0;
    this.#filled = notes.length;
  }

  /** Steps over a value, or into an object or array: then true. */
  #value(field: number): boolean {
    const from = this.#at;
    const first = this.#bytes[from];
    if (first === quotation) {
      const kind = this.#string();
      if (field !== none) this.#note(field, kind, from + 1, this.#at - 1);
      return false;
    }
    if (first === openObject || first === openArray) {
      this.#count();
      this.#closers[this.#level] = first === openObject ? closeObject : closeArray;
      this.#fields[this.#level] = field;
      this.#level += 1;
      this.#at += 1;
      if (field !== none) this.#note(field, first === openObject ? kinds.object : kinds.array, from, from);
      return true;
    }
    const kind = this.#scalar(first);
    if (field !== none) this.#note(field, kind, from, this.#at);
    return false;
  }

  #scalar(first: number | undefined): number {
    switch (first) {
      case 0x6e:
        return this.#word('null', kinds.absent);
      case 0x74:
        return this.#word('true', kinds.boolean);
      case 0x66:
        return this.#word('false', kinds.boolean);
      default:
        return this.#number();
    }
  }

  /** The last of several equal keys counts, as in JSON.parse. */
  #note(field: number, kind: number, from: number, to: number): void {
    const numbers = this.#numbers;
    const at = this.#columns + field * columnsPerField;
    if (field === network && numbers[at] !== kinds.absent) numbers.fill(0, at, this.#columns + columnCount);
    numbers[at] = kind;
    numbers[at + 1] = from - this.#from;
    numbers[at + 2] = to - this.#from;
  }

  /** Steps to the next key or item. Returns the number of open objects and arrays: 0 after the record. */
  #next(isOpened: boolean): number {
    const closers = this.#closers;
    let isFirst = isOpened;
    for (;;) {
      const level = this.#level;
      if (level === 0) return 0;
      this.#space();
      const byte = this.#bytes[this.#at];
      if (byte === closers[level - 1]) {
        this.#at += 1;
        this.#level = level - 1;
        const field = this.#fields[level - 1] ?? none;
        if (field !== none) this.#numbers[this.#columns + field * columnsPerField + 2] = this.#at - this.#from;
        isFirst = false;
        continue;
      }
      if (isFirst) return level;
      if (byte !== comma) throw this.#unexpected();
      this.#count();
      this.#at += 1;
      this.#space();
      return level;
    }
  }

  /** Steps over a key and its colon to its value. Returns the field that it names. */
  #field(previous: number, inNetwork: boolean): number {
    const bytes = this.#bytes;
    const from = this.#at;
    const guess = this.#followers[previous] ?? none;
    if (guess !== none && guess > network === inNetwork) {
      const end = quotedFrom[guess + 1] ?? 0;
      let at = from;
      let i = quotedFrom[guess] ?? 0;
      while (i < end && bytes[at] === quotedKeys[i]) {
        i += 1;
        at += 1;
      }
      if (i === end) {
        this.#markBoth(from, at - 2);
        this.#at = at;
        this.#space();
        return guess;
      }
    }
    const [kind, to] = this.#key();
    // An escape has six bytes at most.
    if (to - from > 6 * longestKey) return none;
    const text = Buffer.from(bytes.subarray(from + 1, to)).toString('latin1');
    const key = kind === kinds.escaped ? (JSON.parse(`"${text}"`) as string) : text;
    const field = fieldsOf[inNetwork ? 1 : 0]?.get(key) ?? none;
    if (previous !== none) this.#followers[previous] = field;
    return field;
  }

  /** Steps over a key and its colon. Returns the kind of the key, and where it ends. */
  #key(): readonly [kind: number, to: number] {
    if (this.#bytes[this.#at] !== quotation) throw this.#unexpected();
    const kind = this.#string();
    const to = this.#at - 1;
    this.#space();
    if (this.#bytes[this.#at] !== colon) throw this.#unexpected();
    this.#at += 1;
    this.#space();
    return [kind, to];
  }

  /** Steps over a string with its quotation marks. Returns its kind. */
  #string(): number {
    const bytes = this.#bytes;
    const from = this.#at;
    let at = from + 1;
    let kind: number = kinds.plain;
    for (;;) {
      // The end of the bytes counts as a control character.
      while (inString[bytes[at] ?? 0] === 0) at += 1;
      const byte = bytes[at] ?? 0;
      if (byte === quotation) break;
      this.#at = at;
      if (byte >= 0x80) {
        at += 1;
        this.#isAscii = false;
        if (kind === kinds.plain) kind = kinds.unescaped;
      } else {
        if (byte !== backslash) throw this.#unexpected();
        // Marks are in the order of their places.
        if (kind !== kinds.escaped) this.#mark(from);
        at += this.#escape();
        kind = kinds.escaped;
      }
    }
    if (kind === kinds.escaped) this.#mark(at);
    else this.#markBoth(from, at);
    this.#at = at + 1;
    return kind;
  }

  #escape(): number {
    const bytes = this.#bytes;
    this.#mark(this.#at);
    this.#at += 1;
    const letter = bytes[this.#at] ?? 0;
    if (letter === quotation || letter === backslash) this.#mark(this.#at);
    const length = escapeLength[letter] ?? 0;
    if (length === 0) throw this.#unexpected();
    if (length === unicodeEscape)
      for (let at = this.#at + 1; at <= this.#at + 4; at += 1) if (isHex[bytes[at] ?? 0] === 0) throw this.#unexpected();
    return length;
  }

  /** Steps over a number: `-`, an integer without leading zeros, a fraction, an exponent. */
  #number(): number {
    const from = this.#at;
    const bytes = this.#bytes;
    let kind: number = kinds.integer;
    if (bytes[this.#at] === minus) {
      this.#at += 1;
      kind = kinds.number;
    }
    if (bytes[this.#at] === zero) this.#at += 1;
    else this.#digits();
    if (bytes[this.#at] === 0x2e) {
      this.#at += 1;
      this.#digits();
      kind = kinds.number;
    }
    const exponent = bytes[this.#at];
    if (exponent === 0x65 || exponent === 0x45) {
      this.#at += 1;
      const sign = bytes[this.#at];
      if (sign === 0x2b || sign === minus) this.#at += 1;
      this.#digits();
      kind = kinds.number;
    }
    return this.#at - from > maxExactDigits ? kinds.number : kind;
  }

  #digits(): void {
    const bytes = this.#bytes;
    const from = this.#at;
    let at = from;
    for (;;) {
      const digit = bytes[at];
      if (digit === undefined || digit < zero || digit > 0x39) break;
      at += 1;
    }
    this.#at = at;
    if (at === from) throw this.#unexpected();
  }

  #word(word: string, kind: number): number {
    for (let i = 0; i < word.length; i += 1, this.#at += 1) if (this.#bytes[this.#at] !== word.charCodeAt(i)) throw this.#unexpected();
    return kind;
  }

  #space(): void {
    for (;;) {
      const byte = this.#bytes[this.#at];
      if (byte === undefined || byte > 0x20) return;
      if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return;
      if (byte !== 0x20) this.#mark(this.#at);
      this.#at += 1;
    }
  }

  #count(): void {
    this.#valuesLeft -= 1;
    if (this.#valuesLeft < 0) throw new TooManyValues();
  }

  #mark(at: number): void {
    if (this.#filled === this.#numbers.length) this.#moveNotes();
    this.#numbers[this.#filled] = at - this.#from;
    this.#filled += 1;
  }

  /** Marks both ends of a string without escapes. */
  #markBoth(from: number, to: number): void {
    if (this.#filled + 2 > this.#numbers.length) this.#moveNotes();
    const numbers = this.#numbers;
    const at = this.#filled;
    numbers[at] = from - this.#from;
    numbers[at + 1] = to - this.#from;
    this.#filled = at + 2;
  }

  #unexpected(): UnexpectedByte {
    return new UnexpectedByte(this.#bytes, this.#at);
  }
}
