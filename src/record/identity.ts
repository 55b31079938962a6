/**
 * The identity of a record: 16 bytes of a SHA-256 over fields that no permission hides and no
 * second read changes. It depends only on the record as received and the id of its source, so every
 * run, every state directory and every order of arrival give the same identity.
 */
import { hash } from 'node:crypto';
import type { JsonValue } from '../model/record.ts';
import { isAbsent, isRawNumber, objectOf } from './json.ts';
import { parseTimestamp } from './timestamp.ts';

/** The first hashed part: another rule would have another number. */
const rule = 'waybill/1';

/**
 * The identity of the records of one source, as 22 characters of base64url.
 *
 * Hashed are parts in this order, each as its length (4 bytes, big-endian) and its UTF-8; a part
 * that is missing or null is four bytes FF; a number, boolean, object or array is its JSON text:
 * - a record: `waybill/1`, source id, logId, time, actionAttempted, result, resultReason
 * - a record without logId: `waybill/1`, source id, the record as canonical JSON
 * - what is not an object: `waybill/1`, source id, its text
 * @returns a function of the record's value, as `parseRecord` reads it, and of its text, which is
 * asked for where it is needed
 */
export function identify(sourceId: string): (value: JsonValue, text: () => string) => string {
  const parts = new Parts([rule, sourceId]);
  return (value, text) => {
    const record = objectOf(value);
    parts.reset();
    if (record === undefined) {
      parts.add(text());
    } else if (isAbsent(record.logId)) {
      parts.add(canonical(record));
    } else {
      parts.add(partOf(record.logId));
      parts.add(timeOf(record.logTimestamp));
      parts.add(partOf(record.actionAttempted));
      parts.add(partOf(record.result));
      parts.add(partOf(record.resultReason));
    }
    return parts.digest();
  };
}

/** The 16 bytes of a uid. */
export function uidBytes(uid: string): Buffer {
  return Buffer.from(uid, 'base64url');
}

/** The uid whose 16 bytes stand at `offset`. */
export function uidText(bytes: Uint8Array, offset = 0): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + offset, 16).toString('base64url');
}

/** JSON without blanks, with the keys of every object in the order of their UTF-16 code units. */
export function canonical(value: JsonValue): string {
  if (Array.isArray(value)) return `[${(value as readonly JsonValue[]).map(canonical).join(',')}]`;
  const object = objectOf(value);
  if (object === undefined) return JSON.stringify(value);
  const pairs = Object.keys(object).sort();
  return `{${pairs.map((key) => `${JSON.stringify(key)}:${canonical(object[key] ?? null)}`).join(',')}}`;
}

function partOf(value: JsonValue | undefined): string | undefined {
  if (typeof value === 'string') return value;
  if (value === undefined || value === null) return undefined;
  return isRawNumber(value) ? value.rawJSON : JSON.stringify(value);
}

function timeOf(value: JsonValue | undefined): string | undefined {
  const text = partOf(value);
  return text === undefined ? undefined : (parseTimestamp(text)?.identity ?? text);
}

/** Collects parts in one buffer, reused for every record, so that one call computes the hash. */
class Parts {
  #bytes = Buffer.alloc(1024);
  #start = 0;
  #end = 0;

  constructor(constants: readonly string[]) {
    for (const constant of constants) this.add(constant);
    this.#start = this.#end;
  }

  reset(): void {
    this.#end = this.#start;
    // Releases the memory of a huge record.
    if (this.#bytes.length > 65_536) this.#bytes = Buffer.from(this.#bytes.subarray(0, this.#start));
  }

  add(part: string | undefined): void {
    const length = part === undefined ? 0 : part.length;
    this.#reserve(4 + 3 * length);
    const from = this.#end + 4;
    const written = part === undefined ? 0 : this.#write(part, from);
    const prefix = part === undefined ? 0xffffffff : written;
    this.#bytes[this.#end] = prefix >>> 24;
    this.#bytes[this.#end + 1] = prefix >>> 16;
    this.#bytes[this.#end + 2] = prefix >>> 8;
    this.#bytes[this.#end + 3] = prefix;
    this.#end = from + written;
  }

  digest(): string {
    const sum = hash('sha256', this.#bytes.subarray(0, this.#end), 'base64url');
    // 16 bytes are 21 characters and the upper two bits of the next one.
    return sum.slice(0, 21) + lastOf(sum.charCodeAt(21));
  }

  /** Short ASCII, the usual case, is copied here: faster than a call out of JavaScript. */
  #write(part: string, from: number): number {
    const bytes = this.#bytes;
    if (part.length > 64) return bytes.write(part, from, 'utf8');
    for (let i = 0; i < part.length; i += 1) {
      const code = part.charCodeAt(i);
      if (code > 0x7f) return bytes.write(part, from, 'utf8');
      bytes[from + i] = code;
    }
    return part.length;
  }

  #reserve(more: number): void {
    if (this.#end + more <= this.#bytes.length) return;
    const wider = Buffer.alloc(Math.max(this.#bytes.length * 2, this.#end + more));
    this.#bytes.copy(wider, 0, 0, this.#end);
    this.#bytes = wider;
  }
}

/** A character of base64url with its lower four bits cleared: A, Q, g or w. */
function lastOf(code: number): string {
  // Values 0-15 are A-P, 16-31 are Q-Z and a-f, 32-47 are g-v, 48-63 are w-z, 0-9, - and _.
  if (code >= 0x41 && code <= 0x50) return 'A';
  if ((code >= 0x51 && code <= 0x5a) || (code >= 0x61 && code <= 0x66)) return 'Q';
  return code >= 0x67 && code <= 0x76 ? 'g' : 'w';
}
