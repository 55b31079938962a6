/**
 * The lines of an archive: one JSON object each, about a record, a ledger entry, an operation, or
 * the position in the journal that ends a segment. Pure.
 */
import type { Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';
import { writeText } from './base64url.ts';

export interface RecordLine {
  readonly kind: 'record';
  readonly seq: number;
  /** 16 bytes in base64url. */
  readonly uid: string;
  readonly source: string;
  readonly received: Micros;
  readonly late: boolean;
  /** The record as received, after the privacy rules of the sink: one JSON value in UTF-8. */
  readonly record: Uint8Array;
}

export interface LedgerLine {
  readonly kind: 'ledger';
  readonly seq: number;
  readonly source: string;
  readonly from: Micros;
  readonly to: Micros;
  /** Of the window. A suspension and its end have `from` equal to `to`. */
  readonly state: 'proven' | 'gap' | 'accepted' | 'suspended' | 'resumed';
  readonly query: Readonly<Record<string, string>> | null;
  readonly total: number | null;
  /** Records in the window, and SHA-256 over their sorted uids in hexadecimal. */
  readonly records: number;
  readonly digest: string | null;
  readonly passes: number | null;
  readonly recounts: number;
  readonly reason: string | null;
  /** Server time. */
  readonly at: Micros;
}

export interface OperationLine {
  readonly kind: 'operation';
  readonly seq: number;
  readonly at: Micros;
  /** Not authenticated; null: unknown. */
  readonly actor: string | null;
  readonly operation: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

/** The last line of each segment. */
export interface PositionLine {
  readonly kind: 'position';
  /** The id of the journal. */
  readonly journal: string;
  /** The id of the sink; undefined: a release before names were stored. */
  readonly sink?: string | undefined;
  /** The segment holds every entry for the sink with a sequence number above `after`, up to `seq`. */
  readonly after: number;
  readonly seq: number;
  /** The chain of the journal at `seq`, in hexadecimal. */
  readonly chain: string;
  readonly at: Micros;
  /** The archive has every record of its sources that is dated at this time or later. */
  readonly completeSince: Micros;
  /** The sources of the sink; null: all. */
  readonly sources: readonly string[] | null;
  /** The sink has a filter: the archive lacks records of its sources. */
  readonly filtered: boolean;
  /** The newest time stamp when the segment was written: its checkpoint, and the SHA-256 of its file in hexadecimal. */
  readonly timestamp?: { readonly checkpoint: number; readonly sha256: string } | undefined;
  /** Lines that an order to prune named, and whose segments were not all deleted when the segment was written. */
  readonly removing?: readonly LineRange[] | undefined;
  /** How many lines the archive had, and when, as an operator made this state continue it. Records among them are not archived again. */
  readonly adopted?: { readonly lines: number; readonly at: Micros } | undefined;
  /** Only in the first line: the last checkpoint of the archive that this one continues, as the text of a signed note. */
  readonly former?: string | undefined;
}

/** The lines from `first` to `last`, both included. The first line of an archive is 1. */
export interface LineRange {
  readonly first: number;
  readonly last: number;
}

/** What an operation line orders for one archive (docs/formats.md, "Operations on an archive"). */
export type ArchiveOrder = PruneOrder | HoldOrder | ReleaseOrder;

interface PruneOrder {
  readonly operation: 'archive prune';
  /** The origin of the archive. */
  readonly archive: string;
  readonly lines: readonly LineRange[];
  readonly before: Micros;
  readonly reason: string;
}

export interface HoldOrder {
  readonly operation: 'archive hold';
  readonly archive: string;
  readonly case: string;
  readonly lines: readonly LineRange[];
  /** Half-open; null: open. */
  readonly from: Micros | null;
  readonly to: Micros | null;
}

interface ReleaseOrder {
  readonly operation: 'archive release';
  readonly archive: string;
  readonly case: string;
}

export type EntryLine = RecordLine | LedgerLine | OperationLine;
export type Line = EntryLine | PositionLine;

/** A salt is random, so that a hash that outlives its line reveals nothing about it. */
export const saltBytes = 16;

/** A verifier refuses a longer line of another kind than a record: a reason has 2,000 characters, and the id of a source 32. */
export const maxOtherBytes = 1_048_576;

/** What follows the salt of a record's line, up to the received record. */
const recordKey = Buffer.from('","record":');
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const blank = 0x20;
const closingBrace = 0x7d;
/** More than the fields of a record's line need, unless the name of the source is long. */
const usualHead = 512;

/** Lines one after another. */
export interface LineTexts {
  /** UTF-8, a line break after each line, and no other. */
  readonly text: Buffer;
  /** The index behind the line break of each line. */
  readonly ends: readonly number[];
}

/** Formats lines into a buffer that the next call reuses: the lines of a segment take 10 MB. */
export class LineFormatter {
  #bytes = Buffer.alloc(0);
  #end = 0;
  #ends: number[] = [];
  /** Most lines of records share these with the line before. */
  #source = '';
  #received = NaN;
  #late = false;
  /** From the uid to the salt: `","source":"production","received":"2026-07-01T00:00:00.000007Z","late":false,"salt":"`. */
  #shared = Buffer.alloc(0);

  /**
   * @param salts  16 bytes for each line
   * @returns texts that are valid until the next call
   */
  format(lines: readonly Line[], salts: Uint8Array): LineTexts {
    [this.#end, this.#ends] = [0, []];
    this.#reserve(lines.reduce((sum, line) => sum + usualHead + (line.kind === 'record' ? line.record.length : 0), 0));
    let at = 0;
    for (const line of lines) {
      if (line.kind === 'record') this.#addRecord(line, salts, at);
      else this.#add(JSON.stringify({ ...line, ...timesOf(line), salt: Buffer.from(salts).toString('base64url', at, at + saltBytes) }));
      at += saltBytes;
    }
    const text = this.#bytes.subarray(0, this.#end);
    blankLineBreaks(text);
    for (const end of this.#ends) text[end - 1] = lineFeed;
    return { text, ends: this.#ends };
  }

  #add(line: string): void {
    if (line.length * 3 > maxOtherBytes && Buffer.byteLength(line) > maxOtherBytes)
      throw new RangeError('a line of an archive is longer than 1 MiB');
    this.#reserve(3 * line.length + 1);
    this.#end += this.#bytes.write(line, this.#end);
    this.#endLine();
  }

  #addRecord({ seq, uid, source, received, late, record }: RecordLine, salts: Uint8Array, saltAt: number): void {
    if (source !== this.#source || received !== this.#received || late !== this.#late) {
      [this.#source, this.#received, this.#late] = [source, received, late];
      this.#shared = Buffer.from(`","source":${JSON.stringify(source)},"received":"${timeText(received)}","late":${late},"salt":"`);
    }
    this.#reserve(usualHead + this.#shared.length + record.length);
    this.#end += this.#bytes.write(`{"kind":"record","seq":${seq},"uid":"${uid}`, this.#end, 'latin1');
    this.#bytes.set(this.#shared, this.#end);
    this.#end = writeText(this.#bytes, this.#end + this.#shared.length, salts, saltAt);
    this.#bytes.set(recordKey, this.#end);
    this.#end += recordKey.length;
    this.#bytes.set(record, this.#end);
    this.#end += record.length;
    this.#bytes[this.#end] = closingBrace;
    this.#end += 1;
    this.#endLine();
  }

  /** The line break follows when all lines are there. */
  #endLine(): void {
    this.#bytes[this.#end] = blank;
    this.#end += 1;
    this.#ends.push(this.#end);
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#bytes.length) return;
    const wider = Buffer.allocUnsafe(2 * this.#end + length);
    this.#bytes.copy(wider, 0, 0, this.#end);
    this.#bytes = wider;
  }
}

function timesOf(line: Exclude<Line, RecordLine>): Readonly<Record<string, unknown>> {
  if (line.kind === 'position') {
    const adopted = line.adopted && { ...line.adopted, at: timeText(line.adopted.at) };
    return { at: timeText(line.at), completeSince: timeText(line.completeSince), adopted };
  }
  if (line.kind === 'ledger') return { from: timeText(line.from), to: timeText(line.to), at: timeText(line.at) };
  return { at: timeText(line.at) };
}

/** RFC 3339 in UTC with microseconds. */
function timeText(at: Micros): string {
  return `${microsToIso(at).slice(0, 19)}.${String(at % 1_000_000).padStart(6, '0')}Z`;
}

/** JSON allows a line break only between tokens, where a blank means the same. A search of all lines takes less than one of each. */
function blankLineBreaks(json: Buffer): void {
  for (const lineBreak of [lineFeed, carriageReturn])
    for (let at = json.indexOf(lineBreak); at >= 0; at = json.indexOf(lineBreak, at + 1)) json[at] = blank;
}
