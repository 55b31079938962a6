/**
 * The lines of an archive: one JSON object each, about a record, a ledger entry, an operation, or
 * the position in the journal that ends a segment. Pure.
 */
import type { Micros } from '../model/time.ts';
import { microsToIso } from '../record/timestamp.ts';

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
}

export type EntryLine = RecordLine | LedgerLine | OperationLine;
export type Line = EntryLine | PositionLine;

const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const blank = 0x20;

/** The key of the received record, which is the last of its line. */
export const recordKey = Buffer.from(',"record":');

/**
 * @param salt  16 random bytes, so that a hash that outlives its line reveals nothing about it
 * @returns UTF-8 without a line break
 */
export function formatLine(line: Line, salt: Uint8Array): Buffer {
  const fields = JSON.stringify({ ...line, ...timesOf(line), record: undefined, salt: Buffer.from(salt).toString('base64url') });
  if (line.kind !== 'record') return Buffer.from(fields);
  return Buffer.concat([Buffer.from(fields.slice(0, -1)), recordKey, onOneLine(line.record), Buffer.from('}')]);
}

function timesOf(line: Line): Readonly<Record<string, string>> {
  if (line.kind === 'record') return { received: timeText(line.received) };
  if (line.kind === 'position') return { at: timeText(line.at), completeSince: timeText(line.completeSince) };
  if (line.kind === 'ledger') return { from: timeText(line.from), to: timeText(line.to), at: timeText(line.at) };
  return { at: timeText(line.at) };
}

/** RFC 3339 in UTC with microseconds. */
function timeText(at: Micros): string {
  return `${microsToIso(at).slice(0, 19)}.${String(at % 1_000_000).padStart(6, '0')}Z`;
}

/** JSON allows a line break only between tokens, where a blank means the same. */
function onOneLine(json: Uint8Array): Uint8Array {
  if (!json.includes(lineFeed) && !json.includes(carriageReturn)) return json;
  return json.map((byte) => (byte === lineFeed || byte === carriageReturn ? blank : byte));
}
