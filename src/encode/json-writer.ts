/** Writes ECS documents as JSON bytes. The keys are prepared once; the values of a usual record are copied from its bytes. */
import { type EcsDocument, firstConstant } from '../record/document.ts';
import { ecsNumbers, ecsTable, type EcsPath } from '../record/ecs.ts';
import type { RecordFields } from '../model/record.ts';
import { copyBytes, slack, viewOf } from './copy-bytes.ts';
import { roomFor } from './reused-memory.ts';

const hashLength = 64;
/** From this length on, a call out of JavaScript is faster than a loop. */
const longBytes = 256;
const longText = 32;
/** JSON needs at most six bytes for a UTF-16 code unit: `\u001f`. */
const maxBytesPerUnit = 6;

const comma = 0x2c;
const backslash = 0x5c;
const openObject = 0x7b;
const closeObject = 0x7d;
const closeList = 0x5d;
/** `",` as an integer, little-endian. */
const endOfText = 0x2c22;

/** UTF-16 code units of a pair, or of half of one. */
const firstSurrogate = 0xd800;
const lastSurrogate = 0xdfff;

/** ASCII characters that need no escape in a JSON string. */
const isPlain = new Uint8Array(128).fill(1, 0x20, 0x7f);
isPlain[0x22] = isPlain[backslash] = 0;
const plainText = /^[ !#-[\]-~]*$/;
/** The letter that follows the backslash, by the byte that is escaped. */
const letters = new Uint8Array(128);
for (const [byte, letter] of ['""', '\\\\', '\nn', '\rr', '\tt'].map((pair) => Buffer.from(pair))) letters[byte ?? 0] = letter ?? 0;

/**
 * Numbers of a step: what to do, an operand, where the key begins, its length. The first four steps write a field; the operand is its
 * number.
 */
const stepSize = 4;
const stepText = 0;
const stepNumber = 1;
const stepHash = 2;
const stepRecord = 3;
const stepOpen = 4;
/** Closes an object or a list. The operand is the code of its bracket. */
const stepClose = 5;

export class JsonWriter {
  readonly #steps: Int32Array;
  readonly #keys: DataView;
  /** Room for all keys and the punctuation. */
  readonly #room: number;
  /** Where each open object or list begins, with its key. */
  readonly #opened: number[] = [];
  #out: Buffer = Buffer.alloc(0);
  #outView = viewOf(this.#out);
  /** The constants of the document and its record: the values are copied from here. */
  #source: Buffer = Buffer.alloc(0);
  #sourceView = viewOf(this.#source);
  #recordAt = 0;
  #originalAt = 0;

  /** @param paths  the fields to write, in the order of the table */
  constructor(paths: readonly EcsPath[]) {
    const program = new Program();
    for (const path of paths) program.add(path);
    const { steps, keys } = program.end();
    this.#steps = Int32Array.from(steps);
    this.#keys = viewOf(Buffer.from(`${keys}${' '.repeat(slack)}`));
    this.#room = keys.length + steps.length + slack + hashLength;
  }

  /** @returns one line of JSON, valid until the next call */
  write(document: EcsDocument): Buffer {
    const { values, original } = document;
    this.#load(document);
    this.#reserve(document);
    const out = this.#out;
    const view = this.#outView;
    const keys = this.#keys;
    const steps = this.#steps;
    const opened = this.#opened;
    let level = 0;
    out[0] = openObject;
    let at = 1;
    for (let i = 0; i < steps.length; i += stepSize) {
      const step = steps[i] ?? 0;
      const operand = steps[i + 1] ?? 0;
      const key = steps[i + 2] ?? 0;
      const keyLength = steps[i + 3] ?? 0;
      if (step === stepClose) {
        level -= 1;
        const begin = opened[level] ?? 0;
        // An empty object or list is omitted.
        if (at === begin + keyLength) at = begin;
        else {
          out[at - 1] = operand;
          out[at] = comma;
          at += 1;
        }
        continue;
      }
      if (step === stepOpen) {
        opened[level] = at;
        level += 1;
        at = copyBytes(keys, key, keyLength, view, at);
        continue;
      }
      const value = step === stepHash ? document.hash : values[operand];
      if (value === undefined && (step !== stepRecord || original === undefined)) continue;
      at = copyBytes(keys, key, keyLength, view, at);
      if (typeof value === 'string') at = writeText(value, out, at);
      else if (value !== undefined) at = this.#copyValue(document, value, at);
      else if (original !== undefined) at = this.#writeEscaped(original, at);
      if (step === stepNumber) {
        out[at] = comma;
        at += 1;
      } else {
        view.setInt16(at, endOfText, true);
        at += 2;
      }
    }
    out[at - 1] = closeObject;
    return out.subarray(0, at);
  }

  #load({ constants: { bytes }, record, original }: EcsDocument): void {
    this.#recordAt = bytes.length;
    this.#originalAt = this.#recordAt + (original === record ? 0 : (record?.bytes.length ?? 0));
    const size = bytes.length + (record?.bytes.length ?? 0) + (original?.bytes.length ?? 0) + slack;
    const source = roomFor(size, this.#source);
    if (source !== this.#source) this.#sourceView = viewOf(source);
    this.#source = source;
    source.set(bytes);
    if (record !== undefined) source.set(record.bytes, this.#recordAt);
    if (original !== undefined && original !== record) source.set(original.bytes, this.#originalAt);
  }

  /** Makes room for a document, however its values are escaped. */
  #reserve({ values, constants, record, original }: EcsDocument): void {
    const { starts } = constants;
    let size = this.#room + 2 * (original?.bytes.length ?? 0);
    for (let number = 0; number < values.length; number += 1) {
      const value = values[number];
      if (typeof value === 'string') size += value.length * maxBytesPerUnit;
      else if (value === undefined) continue;
      else if (value >= firstConstant) size += (starts[value - firstConstant + 1] ?? 0) - (starts[value - firstConstant] ?? 0);
      else if (record !== undefined) size += record.to(value) - record.from(value);
    }
    const out = roomFor(size, this.#out);
    if (out !== this.#out) this.#outView = viewOf(out);
    this.#out = out;
  }

  /** Copies the bytes of a field of the record, or of a constant. Returns the end of the copy. */
  #copyValue({ constants: { starts }, record }: EcsDocument, value: number, at: number): number {
    let from = 0;
    let to = 0;
    if (value >= firstConstant) {
      from = starts[value - firstConstant] ?? 0;
      to = starts[value - firstConstant + 1] ?? 0;
    } else if (record !== undefined) {
      from = this.#recordAt + record.from(value);
      to = this.#recordAt + record.to(value);
    }
    if (to - from < longBytes) return copyBytes(this.#sourceView, from, to - from, this.#outView, at);
    return at + this.#source.copy(this.#out, at, from, to);
  }

  /** Writes a record as the content of a JSON string. Returns its end. */
  #writeEscaped({ bytes, notes: { numbers, marks, end } }: RecordFields, begin: number): number {
    const source = this.#sourceView;
    const start = this.#originalAt;
    const out = this.#out;
    const view = this.#outView;
    let at = begin;
    let from = 0;
    for (let i = marks; i < end; i += 1) {
      const mark = numbers[i] ?? 0;
      if (mark > from) at = copyBytes(source, start + from, mark - from, view, at);
      out[at] = backslash;
      out[at + 1] = letters[bytes[mark] ?? 0] ?? 0;
      at += 2;
      from = mark + 1;
    }
    return bytes.length > from ? copyBytes(source, start + from, bytes.length - from, view, at) : at;
  }
}

/** Writes a text as the content of a JSON string. Returns its end. */
function writeText(text: string, out: Buffer, begin: number): number {
  const { length } = text;
  if (length >= longText && plainText.test(text)) return begin + out.write(text, begin, 'latin1');
  let at = begin;
  for (let i = 0; i < length; i += 1) {
    const code = text.charCodeAt(i);
    if (code < 0x80) {
      if (isPlain[code] === 0) return writeStringified(text, out, begin);
      out[at] = code;
      at += 1;
    } else if (code < 0x800) {
      out[at] = 0xc0 | (code >> 6);
      out[at + 1] = 0x80 | (code & 0x3f);
      at += 2;
    } else {
      if (code >= firstSurrogate && code <= lastSurrogate) return writeStringified(text, out, begin);
      out[at] = 0xe0 | (code >> 12);
      out[at + 1] = 0x80 | ((code >> 6) & 0x3f);
      out[at + 2] = 0x80 | (code & 0x3f);
      at += 3;
    }
  }
  return at;
}

/** The same for a text that has an escape or a surrogate. */
function writeStringified(text: string, out: Buffer, begin: number): number {
  return begin + out.write(JSON.stringify(text.toWellFormed()).slice(1, -1), begin);
}

class Program {
  readonly #steps: number[] = [];
  #keys = '';
  readonly #open: { readonly name: string; readonly bracket: number; readonly keyLength: number }[] = [];

  add(path: EcsPath): void {
    const names = path.replace('[', '.[').split('.');
    const last = names.at(-1) ?? '';
    const parents = names.slice(0, -1);
    const same = parents.findIndex((name, i) => this.#open[i]?.name !== name);
    this.#close(same < 0 ? parents.length : same);
    for (let i = this.#open.length; i < parents.length; i += 1) {
      const name = parents[i] ?? '';
      const isList = (names[i + 1] ?? '').startsWith('[');
      const keyLength = this.#step(stepOpen, 0, `"${name}":${isList ? '[' : '{'}`);
      this.#open.push({ name, bracket: isList ? closeList : closeObject, keyLength });
    }
    const origin = ecsTable[path];
    const key = last.startsWith('[') ? '' : `"${last}":`;
    if (origin === 'number') this.#step(stepNumber, ecsNumbers[path], key);
    else this.#step(origin === 'hash' ? stepHash : origin === 'record' ? stepRecord : stepText, ecsNumbers[path], `${key}"`);
  }

  end(): { readonly steps: readonly number[]; readonly keys: string } {
    this.#close(0);
    return { steps: this.#steps, keys: this.#keys };
  }

  #close(level: number): void {
    for (const { bracket, keyLength } of this.#open.splice(level).reverse()) this.#steps.push(stepClose, bracket, 0, keyLength);
  }

  /** Returns the length of the key. */
  #step(step: number, operand: number, key: string): number {
    this.#steps.push(step, operand, this.#keys.length, key.length);
    this.#keys += key;
    return key.length;
  }
}
