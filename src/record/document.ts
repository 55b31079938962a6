/**
 * The ECS document of an event: where the value of each field of ecs.ts is. Most values are bytes of the record, which the format `ecs`
 * copies, and no other format decodes what it does not use.
 */
import { hash } from 'node:crypto';
import { ecsPaths, ecsTable } from './ecs.ts';
import { fieldNumbers, fieldPaths } from './fields.ts';
import type { RecordFields } from '../model/record.ts';

/** A text; the number of a field of the record, whose bytes JSON writes; or, above these, of a constant. Undefined: absent. */
type Value = string | number | undefined;

/** Texts that many documents share, as JSON writes them between quotation marks. */
interface Constants {
  readonly texts: readonly string[];
  readonly bytes: Buffer;
  /** Where each begins, and where the last ends. */
  readonly starts: readonly number[];
}

export const firstConstant = fieldPaths.length;
const noConstants: Constants = { texts: [], bytes: Buffer.alloc(0), starts: [0] };

/** The fields of the document that copy a field of the record, by the number of that field. */
const copiesOf: readonly (readonly number[])[] = fieldPaths.map((_, field) =>
  ecsPaths.flatMap((path, number) => ((fieldNumbers as Readonly<Record<string, number>>)[ecsTable[path]] === field ? [number] : [])),
);

/** The texts of the list that is being set. Reused, because a new array for each list would be most of the garbage of a document. */
const listed: string[] = [];

const nothing: readonly Value[] = ecsPaths.map(() => undefined);

export const masked = '***';

export class EcsDocument {
  readonly values: Value[];
  readonly constants: Constants;
  /** The record whose fields are copied, and whose hash is `event.hash`. */
  #record: RecordFields | undefined;
  /** The record of `event.original`. */
  #original: RecordFields | undefined;

  private constructor(values: readonly Value[], constants: Constants) {
    this.values = values.slice();
    this.constants = constants;
  }

  static empty(): EcsDocument {
    return new EcsDocument(nothing, noConstants);
  }

  copy(): EcsDocument {
    const copy = new EcsDocument(this.values, this.constants);
    copy.#record = this.#record;
    copy.#original = this.#original;
    return copy;
  }

  /** Copies of it need not encode its texts again. */
  constant(): EcsDocument {
    const texts = this.values.flatMap((_, number) => this.text(number) ?? []);
    const encoded = texts.map((text) => Buffer.from(JSON.stringify(text.toWellFormed()).slice(1, -1)));
    const starts = encoded.reduce<number[]>((ends, { length }) => [...ends, (ends.at(-1) ?? 0) + length], [0]);
    let constant = firstConstant;
    const values = this.values.map((value) => (value === undefined ? undefined : constant++));
    return new EcsDocument(values, { texts, bytes: Buffer.concat(encoded), starts });
  }

  setRecord(record: RecordFields): void {
    this.#record = this.#original = record;
  }

  /** Sets the fields that copy one of the record, `event.original` and `event.hash`. */
  copyRecord(record: RecordFields): void {
    this.setRecord(record);
    const { values } = this;
    for (let field = 0; field < copiesOf.length; field += 1) {
      const value = record.isJsonText(field) ? field : record.text(field);
      for (const number of copiesOf[field] ?? []) values[number] = value;
    }
  }

  /** Sets `event.original` to the text of another record; undefined removes it. The hash stays. */
  setOriginal(record: RecordFields | undefined): void {
    this.#original = record;
  }

  /** Undefined removes the field. */
  set(number: number, text: string | undefined): void {
    this.values[number] = text;
  }

  setSame(number: number, other: number): void {
    this.values[number] = this.values[other];
  }

  /** Sets the items of a list to the values of other fields, each once. Masked values are left out: they would all seem equal. */
  setList(items: readonly number[], others: readonly number[]): void {
    let count = 0;
    for (const other of others) {
      const text = this.text(other);
      if (text === undefined || text === masked) continue;
      const before = listed.indexOf(text);
      if (before >= 0 && before < count) continue;
      this.setSame(items[count] ?? other, other);
      listed[count] = text;
      count += 1;
    }
  }

  /** Undefined when absent. */
  text(number: number): string | undefined {
    const value = this.values[number];
    if (typeof value !== 'number') return value;
    return value < firstConstant ? this.#record?.text(value) : this.constants.texts[value - firstConstant];
  }

  get record(): RecordFields | undefined {
    return this.#record;
  }

  get original(): RecordFields | undefined {
    return this.#original;
  }

  /** The SHA-256 of the record, in hex. */
  get hash(): string {
    return hash('sha256', this.#record?.bytes ?? '', 'hex');
  }
}
