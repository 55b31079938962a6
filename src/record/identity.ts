/**
 * The identity of a record: 16 bytes of a SHA-256 over the id of its source and fields that no permission hides and no second read changes,
 * so every run, state and order of arrival give the same identity.
 */
import { hash } from 'node:crypto';
import type { JsonValue, RecordFields } from '../model/record.ts';
import { fieldNumbers } from './fields.ts';
import { isRawNumber, objectOf } from './json.ts';
import { kinds } from './walk.ts';

const { logId, logTimestamp, actionAttempted, result, resultReason } = fieldNumbers;

/** The first hashed part: another rule would have another number. */
const rule = 'waybill/1';

/**
 * The identity as 22 characters of base64url. It hashes these parts, each as its length (4 bytes, big-endian) and its UTF-8; a missing or
 * null part is four bytes FF; a number, boolean, object or array is its JSON text:
 * - a record: `waybill/1`, source id, logId, time, actionAttempted, result, resultReason
 * - a record without logId: `waybill/1`, source id, the record as canonical JSON
 * - what is not an object: `waybill/1`, source id, its text
 */
export function identify(sourceId: string): (record: RecordFields) => string {
  const parts = new Parts([rule, sourceId]);
  return (record) => {
    parts.reset();
    if (!record.isObject) {
      parts.addBytes(record.bytes, 0, record.bytes.length);
    } else if (record.isAbsent(logId)) {
      parts.add(canonical(record.tree()));
    } else {
      addField(parts, record, logId);
      addTime(parts, record);
      addField(parts, record, actionAttempted);
      addField(parts, record, result);
      addField(parts, record, resultReason);
    }
    return parts.digest();
  };
}

/**
 * The same for a record with a `logId` whose parts are known: `logId`, time, `actionAttempted`, `result`, `resultReason`. A part is
 * undefined if it is missing or null.
 */
export function identifyTexts(sourceId: string): (parts: readonly (string | undefined)[]) => string {
  const collected = new Parts([rule, sourceId]);
  return (parts) => {
    collected.reset();
    for (const part of parts) collected.add(part);
    return collected.digest();
  };
}

export function uidBytes(uid: string): Buffer {
  return Buffer.from(uid, 'base64url');
}

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

/** Most values are hashed as the bytes that they are written with. */
function addField(parts: Parts, record: RecordFields, field: number): void {
  const kind = record.kind(field);
  if (kind === kinds.plain || kind === kinds.unescaped || kind === kinds.integer) {
    parts.addBytes(record.bytes, record.from(field), record.to(field));
  } else {
    parts.add(partOf(record.value(field)));
  }
}

function partOf(value: JsonValue): string | undefined {
  if (typeof value === 'string') return value;
  if (value === null) return undefined;
  return isRawNumber(value) ? value.rawJSON : JSON.stringify(value);
}

function addTime(parts: Parts, record: RecordFields): void {
  const { timestamp } = record;
  const length = record.kind(logTimestamp) === kinds.plain ? timestamp?.identityLength : undefined;
  const from = record.from(logTimestamp);
  if (length !== undefined) parts.addBytes(record.bytes, from, from + length);
  else parts.add(timestamp?.identity ?? partOf(record.value(logTimestamp)));
}

/** One buffer, reused for every record, so that one call computes the hash. */
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
    const length = part?.length ?? 0;
    this.#reserve(4 + 3 * length);
    const from = this.#end + 4;
    this.#close(part === undefined ? undefined : this.#bytes.write(part, from, 'utf8'));
  }

  addBytes(bytes: Uint8Array, from: number, to: number): void {
    this.#reserve(4 + to - from);
    const target = this.#bytes;
    const start = this.#end + 4;
    // A loop is faster than a call out of JavaScript for a short part.
    if (to - from > 64) target.set(bytes.subarray(from, to), start);
    else for (let i = from; i < to; i += 1) target[start + i - from] = bytes[i] ?? 0;
    this.#close(to - from);
  }

  /** Writes the length in front of a part that follows it; undefined: the part is missing. */
  #close(length: number | undefined): void {
    const prefix = length ?? 0xffffffff;
    this.#bytes[this.#end] = prefix >>> 24;
    this.#bytes[this.#end + 1] = prefix >>> 16;
    this.#bytes[this.#end + 2] = prefix >>> 8;
    this.#bytes[this.#end + 3] = prefix;
    this.#end += 4 + (length ?? 0);
  }

  digest(): string {
    const sum = hash('sha256', this.#bytes.subarray(0, this.#end), 'base64url');
    // 16 bytes are 21 characters and the upper two bits of the next one.
    return sum.slice(0, 21) + lastOf(sum.charCodeAt(21));
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
