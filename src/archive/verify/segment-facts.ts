/**
 * The facts of the lines of a segment, in columns. An object for each of 10,000 records would live
 * until the segment is checked, and each collection of garbage until then would copy it.
 */
import type { Micros } from '../../model/time.ts';
import { parseTimestamp } from '../../record/timestamp.ts';
import { writeBytes } from '../base64url.ts';
import { uidBytes } from '../entry.ts';
import type { PositionLine } from '../line.ts';
import type { LineFacts } from '../parse-line.ts';

/** Lines with something in common. */
class LineCount {
  /** Their number, and the first of them. The first line of a segment is 1. */
  count = 0;
  first = 0;

  add(line: number): void {
    if (this.count === 0) this.first = line;
    this.count += 1;
  }
}

type OtherFacts = Exclude<LineFacts, { readonly kind: 'record' }>;

export class SegmentFacts {
  readonly #seqs: Float64Array;
  /** NaN: none that can be read. */
  readonly #times: Float64Array;
  readonly #uids: Buffer;
  readonly #sources: string[] = [];
  /** Undefined for a record. */
  readonly #others: (OtherFacts | undefined)[] = [];
  #source = '';
  #records = 0;
  /** The latest time at which a record was received. */
  #received = '';
  readonly content = { forged: new LineCount(), repeated: new LineCount(), withoutUid: 0 };

  /** @param lines  of the segment */
  constructor(lines: number) {
    this.#seqs = new Float64Array(lines);
    this.#times = new Float64Array(lines);
    this.#uids = Buffer.alloc(lines * uidBytes);
  }

  /** The facts of the next line. */
  add(facts: LineFacts): void {
    const i = this.#others.length;
    this.#seqs[i] = facts.seq;
    if (facts.kind !== 'record') {
      this.#others.push(facts);
      this.#sources.push('');
      return;
    }
    this.#others.push(undefined);
    // A part of a line would keep the complete line in memory. Most lines have the same source.
    if (facts.source !== this.#source) this.#source = Buffer.from(facts.source).toString();
    this.#sources.push(this.#source);
    this.#times[i] = facts.time ?? NaN;
    writeBytes(this.#uids, i * uidBytes, facts.uid);
    this.#records += 1;
    if (facts.received > this.#received && parseTimestamp(facts.received)) this.#received = Buffer.from(facts.received).toString();
    if (facts.isUidTrue === false) this.content.forged.add(i + 1);
    if (facts.isUidTrue === undefined) this.content.withoutUid += 1;
    if (facts.repeated !== undefined) this.content.repeated.add(i + 1);
  }

  get lines(): number {
    return this.#others.length;
  }

  get records(): number {
    return this.#records;
  }

  /** When the last of its records was received; undefined without records. */
  get received(): Micros | undefined {
    return parseTimestamp(this.#received)?.us;
  }

  /** The last line; undefined if that is another one. */
  get position(): PositionLine | undefined {
    const last = this.#others.at(-1);
    return last?.kind === 'position' ? last : undefined;
  }

  seq(line: number): number {
    return this.#seqs[line] ?? NaN;
  }

  /** @returns undefined for a record */
  other(line: number): OtherFacts | undefined {
    return this.#others[line];
  }

  /** Of a record. */
  source(line: number): string {
    return this.#sources[line] ?? '';
  }

  /** Of a record; undefined when it is unreadable. */
  time(line: number): Micros | undefined {
    const time = this.#times[line] ?? NaN;
    return Number.isNaN(time) ? undefined : time;
  }

  /** The uid of each line, one after another; 16 zero bytes for a line without one. */
  get uids(): Buffer {
    return this.#uids;
  }
}
