/** Writes the lines of CEF and LEEF as bytes. A usual value is copied from its record; the format cuts and escapes any other as text. */
import { firstConstant, type EcsDocument } from '../record/document.ts';
import { ecsNumbers, type EcsPath } from '../record/ecs.ts';
import type { EcsObserver } from '../record/event.ts';
import type { RecordFields } from '../model/record.ts';
import { kinds } from '../record/walk.ts';
import { copyBytes, slack, viewOf } from './copy-bytes.ts';
import { roomFor } from './reused-memory.ts';

interface LineRules {
  readonly isUsual: (character: string) => boolean;
  /** The form of any value within `max` code units before escaping; '' omits the pair. */
  readonly clean: (value: string, max: number) => string;
}

/** A text that is written as it is, such as a key with the separator before it. */
interface Part {
  readonly view: DataView;
  readonly length: number;
}

interface Pair {
  readonly key: Part;
  readonly field: number;
  /** UTF-16 code units. */
  readonly max: number;
  /** Follows the value. */
  readonly label: Part | undefined;
}

/** UTF-8 needs at most three bytes for a UTF-16 code unit. */
const maxBytesPerUnit = 3;
const space = 0x20;
/** ASCII characters that need no escape in a JSON string (RFC 8259, section 7), without the space. */
const unescaped = Array.from({ length: 0x7f - space }, (_, i) => i + space + 1).filter((code) => code !== 0x22 && code !== 0x5c);

export function partOf(text: string): Part {
  return { view: viewOf(Buffer.from(text + ' '.repeat(slack))), length: Buffer.byteLength(text) };
}

export function pairOf(key: string, path: EcsPath, max: number, label?: string): Pair {
  return { key: partOf(key), field: ecsNumbers[path], max, label: label === undefined ? undefined : partOf(label) };
}

/** Writes a header once for each observer: it is constant for a source. */
export function headers(write: (observer: EcsObserver) => string): (observer: EcsObserver) => Part {
  const known = new WeakMap<EcsObserver, Part>();
  return (observer) => {
    let header = known.get(observer);
    if (header === undefined) {
      header = partOf(write(observer));
      known.set(observer, header);
    }
    return header;
  };
}

export class LineWriter {
  readonly #clean: LineRules['clean'];
  /** By code: 1 for a character that is written as it is. */
  readonly #usual = new Uint8Array(0x80);
  /** Characters that need no escape in JSON, but that the format escapes or removes. */
  readonly #changed: readonly number[];
  #out: Buffer = Buffer.alloc(0);
  #outView = viewOf(this.#out);
  #at = 0;
  /** The bytes of the record, if each usual value can be copied from there. */
  #source: Buffer = Buffer.alloc(0);
  #sourceView = viewOf(this.#source);
  #record: RecordFields | undefined;

  constructor({ isUsual, clean }: LineRules) {
    this.#clean = clean;
    for (let code = space + 1; code < 0x7f; code += 1) this.#usual[code] = Number(isUsual(String.fromCharCode(code)));
    this.#changed = unescaped.filter((code) => this.#usual[code] === 0);
  }

  begin({ record }: EcsDocument): void {
    this.#at = 0;
    this.#reserve(0);
    this.#record = record !== undefined && !this.#changed.some((code) => record.bytes.includes(code)) ? record : undefined;
    if (this.#record === undefined) return;
    const { bytes } = this.#record;
    const source = roomFor(bytes.length + slack, this.#source);
    if (source !== this.#source) this.#sourceView = viewOf(source);
    this.#source = source;
    source.set(bytes);
  }

  /** @returns the line, valid until the next `begin` */
  end(): Buffer {
    return this.#out.subarray(0, this.#at);
  }

  text(text: string): void {
    const { length } = text;
    this.#reserve(length * maxBytesPerUnit);
    const out = this.#out;
    const at = this.#at;
    for (let i = 0; i < length; i += 1) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) {
        this.#at += out.write(text, at);
        return;
      }
      out[at + i] = code;
    }
    this.#at += length;
  }

  /** Omits absent fields. */
  pairs(document: EcsDocument, pairs: readonly Pair[]): void {
    for (const pair of pairs) this.pair(document, pair);
  }

  pair(document: EcsDocument, { key, field, max, label }: Pair): void {
    const value = document.values[field];
    if (value === undefined) return;
    const isCopied = typeof value === 'number' && value < firstConstant && this.#copy(key, value, max);
    if ((isCopied || this.value(key, document.text(field), max)) && label !== undefined) this.part(label);
  }

  /** @returns false without a value; then nothing is written */
  value(key: Part, value: string | undefined, max: number): boolean {
    if (value === undefined) return false;
    const text = value.length <= max && this.#isUsualText(value) ? value : this.#clean(value, max);
    if (text === '') return false;
    this.part(key);
    this.text(text);
    return true;
  }

  part({ view, length }: Part): void {
    this.#reserve(length);
    this.#at = copyBytes(view, 0, length, this.#outView, this.#at);
  }

  /** @returns false if the record has no usual value; then nothing is written */
  #copy(key: Part, field: number, max: number): boolean {
    const record = this.#record;
    if (record === undefined || record.kind(field) !== kinds.plain) return false;
    const from = record.from(field);
    const length = record.to(field) - from;
    // A document has no copy of a blank value, or of one with white space first.
    if (length > max || this.#source[from + length - 1] === space) return false;
    this.#reserve(key.length + length);
    const at = copyBytes(key.view, 0, key.length, this.#outView, this.#at);
    this.#at = copyBytes(this.#sourceView, from, length, this.#outView, at);
    return true;
  }

  #isUsualText(text: string): boolean {
    const usual = this.#usual;
    const last = text.length - 1;
    for (let i = 0; i <= last; i += 1) {
      const code = text.charCodeAt(i);
      if (usual[code] !== 1 && (code !== space || i === 0 || i === last)) return false;
    }
    return true;
  }

  #reserve(size: number): void {
    const needed = this.#at + size + slack;
    const out = roomFor(needed, this.#out);
    if (out === this.#out) return;
    out.set(this.#out.subarray(0, this.#at));
    this.#out = out;
    this.#outView = viewOf(out);
  }
}
