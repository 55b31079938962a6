/** Finds the known fields in the bytes of a record, decoded only where a caller asks. Its spelling has no effect on identity and time. */
import { isUtf8 } from 'node:buffer';
import type { JsonValue, Notes, RecordFields } from '../model/record.ts';
import type { Micros, Timestamp } from '../model/time.ts';
import { fieldNumbers } from './fields.ts';
import { exactText, isBlank, parseRecord } from './json.ts';
import { parseTimestamp } from './timestamp.ts';
import { type Budget, columnsPerField, kinds, Walk, type Walked } from './walk.ts';

/** Deeper nesting is rare; then `parseRecord` decides what the record is. */
const usualDepth = 64;
const walk = new Walk();

/**
 * 1 for the first byte of a visible character in UTF-8. White space beyond ASCII begins with 0xc2, 0xe1, 0xe2, 0xe3 or 0xef (ECMA-262,
 * String.prototype.trim): these bytes decide nothing.
 */
const visibleStart = new Uint8Array(256).fill(1, 0x21, 0x7f).fill(1, 0xc3);
for (const byte of [0xe1, 0xe2, 0xe3, 0xef]) visibleStart[byte] = 0;

/**
 * @param received  UTF-8; an invalid sequence is read as U+FFFD
 * @param notes  of an earlier reading of the same bytes, which is not repeated
 * @throws UnexpectedByte when the bytes are not JSON
 */
export function readRecord(received: Uint8Array, notes?: Notes): RecordFields {
  return notes ? new ReadRecord(received, viewOf(received), notes) : recordOf(received, walk.over(received));
}

/**
 * Reads the record that begins at `from` of a page, and finds where it ends; `received` is a view. @throws UnexpectedByte, TooManyValues
 */
export function readItem(page: Uint8Array, from: number, budget: Budget): RecordFields {
  const walked = walk.within(page, from, budget);
  return recordOf(page.subarray(from, walked.to), walked);
}

function recordOf(received: Uint8Array, walked: Walked): RecordFields {
  const bytes = viewOf(received);
  if (walked.isAscii || isUtf8(received)) return fieldsOf(received, bytes, walked);
  const replaced = Buffer.from(bytes.toString());
  return fieldsOf(received, replaced, walk.over(replaced));
}

function fieldsOf(received: Uint8Array, bytes: Buffer, { notes, isObject, depth }: Walked): RecordFields {
  const isRead = isObject && (depth <= usualDepth || typeof parseRecord(bytes.toString()) === 'object');
  const { numbers, columns, marks, end } = notes;
  if (!isRead) numbers.fill(0, columns, marks);
  return new ReadRecord(received, bytes, { isObject: isRead, numbers, columns, marks, end });
}

/** A lone surrogate is read as U+FFFD. */
export function readText(text: string): RecordFields {
  return readRecord(Buffer.from(text));
}

class ReadRecord implements RecordFields {
  readonly received: Uint8Array;
  readonly bytes: Buffer;
  readonly notes: Notes;
  readonly #numbers: Int32Array;
  readonly #columns: number;
  /** The record, one character a byte. */
  #latin1: string | undefined;
  #timestamp: Timestamp | undefined | 'unread' = 'unread';

  constructor(received: Uint8Array, bytes: Buffer, notes: Notes) {
    this.received = received;
    this.bytes = bytes;
    this.notes = notes;
    this.#numbers = notes.numbers;
    this.#columns = notes.columns;
  }

  get isObject(): boolean {
    return this.notes.isObject;
  }

  kind(field: number): number {
    return this.#numbers[this.#columns + field * columnsPerField] ?? 0;
  }

  from(field: number): number {
    return this.#numbers[this.#columns + field * columnsPerField + 1] ?? 0;
  }

  to(field: number): number {
    return this.#numbers[this.#columns + field * columnsPerField + 2] ?? 0;
  }

  isAbsent(field: number): boolean {
    const kind = this.kind(field);
    if (this.#isVisible(field)) return false;
    return isString(kind) ? isBlank(this.#string(field)) : kind === kinds.absent;
  }

  isJsonText(field: number): boolean {
    return this.kind(field) === kinds.integer || this.#isVisible(field);
  }

  /** True for a text without escapes whose first byte shows that it is not blank: nearly every text. */
  #isVisible(field: number): boolean {
    const kind = this.kind(field);
    if (kind !== kinds.plain && kind !== kinds.unescaped) return false;
    const from = this.from(field);
    return visibleStart[this.bytes[from] ?? 0] === 1 && this.to(field) > from;
  }

  text(field: number): string | undefined {
    const kind = this.kind(field);
    if (kind === kinds.absent || kind === kinds.object || kind === kinds.array) return undefined;
    if (kind === kinds.escaped || kind === kinds.unescaped) {
      const text = this.#string(field);
      return isBlank(text) ? undefined : text.toWellFormed();
    }
    // A slice of one text costs a tenth of a call that decodes.
    const text = (this.#latin1 ??= this.bytes.toString('latin1')).slice(this.from(field), this.to(field));
    if (kind === kinds.plain) return isBlank(text) ? undefined : text;
    return kind === kinds.number ? exactText(text) : text;
  }

  value(field: number): JsonValue {
    const kind = this.kind(field);
    if (kind === kinds.absent) return null;
    return isString(kind) ? this.#string(field) : parseRecord(this.bytes.toString('utf8', this.from(field), this.to(field)));
  }

  tree(): JsonValue {
    return parseRecord(this.bytes.toString());
  }

  get timestamp(): Timestamp | undefined {
    if (this.#timestamp === 'unread') {
      const field = fieldNumbers.logTimestamp;
      this.#timestamp = isString(this.kind(field)) ? parseTimestamp(this.#string(field)) : undefined;
    }
    return this.#timestamp;
  }

  get time(): Micros | undefined {
    return this.timestamp?.us;
  }

  #string(field: number): string {
    const from = this.from(field);
    const to = this.to(field);
    switch (this.kind(field)) {
      case kinds.plain:
        return this.#latin1?.slice(from, to) ?? this.bytes.toString('latin1', from, to);
      case kinds.unescaped:
        return this.bytes.toString('utf8', from, to);
      default:
        return JSON.parse(this.bytes.toString('utf8', from - 1, to + 1)) as string;
    }
  }
}

function isString(kind: number): boolean {
  return kind === kinds.plain || kind === kinds.unescaped || kind === kinds.escaped;
}

function viewOf(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
