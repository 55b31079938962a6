/** Turns a journal entry into a sink's message: select, normalize, encode. Each sink has its own pipeline. Pure, except for the counts. */
import type { Entry } from '../model/journal.ts';
import type { Message } from '../model/sink.ts';
import type { Micros } from '../model/time.ts';
import type { EcsEvent, Encode, Normalize, NormalizeLedger } from '../record/event.ts';
import type { RecordFields } from '../model/record.ts';
import { readRecord } from '../record/read.ts';
import type { Put } from './batch-space.ts';

export interface PipelineParts {
  /** By source. The sink gets no records of a source without an entry. */
  readonly normalize: ReadonlyMap<string, Normalize>;
  /** By source, with '' for entries about the daemon. Empty for a sink without `ledger: true`. */
  readonly normalizeLedger?: ReadonlyMap<string, NormalizeLedger>;
  /** `filter` on the record as received, before privacy. */
  readonly matches: (record: RecordFields) => boolean;
  readonly encode: Encode;
  /** The receiver's limit; undefined: any length. */
  readonly limit?: MessageLimit | undefined;
  /** Skips records with a readable time before this time. */
  readonly fromTime: Micros | undefined;
  /** True for records of a backfill that was requested for other sinks only. */
  readonly withheld?: (source: string, time: () => Micros | undefined) => boolean;
  readonly unexpected: (source: string, tags: readonly string[]) => void;
}

export interface MessageLimit {
  /** Maximum size of a message. */
  readonly bytes: number;
  /** Encodes the event within `bytes`; undefined when that is impossible. */
  readonly shorten: (event: EcsEvent) => Buffer | undefined;
  readonly shortened: () => void;
}

/** @returns a message whose bytes `put` stored; undefined when the entry is not for this sink */
export type Pipeline = (entry: Entry, put: Put) => Message | undefined;

export function pipeline(parts: PipelineParts): Pipeline {
  const { normalize, matches, encode, limit, fromTime, withheld, unexpected } = parts;
  return (entry, put) => {
    if (entry.kind === 'ledger') return /* mutant: ledger-entry */ ledgerMessage(parts, entry, put);
    const { seq, number, source, late } = entry;
    const toEvent = normalize.get(source);
    if (!toEvent) return undefined;
    const record = readRecord(entry.bytes, entry.notes);
    if (!matches(record)) return undefined;
    if (fromTime !== undefined && (record.time ?? fromTime) < fromTime) return undefined;
    if (withheld?.(source, () => record.time)) return undefined;
    const { uid, received } = entry;
    const event = toEvent({ record, uid, received });
    if (event.unexpected.length > 0) unexpected(source, event.unexpected);
    const { time, severity, action, key } = event;
    const undated = event.unexpected.includes('invalid_timestamp');
    const bytes = put(bytesOf(event, encode, limit));
    return { seq, number, uid, source, time, received, late, undated, severity, action, key, bytes };
  };
}

/** The sink's `start` and backfills apply to a ledger entry. `filter` does not: it names fields of records. */
function ledgerMessage(parts: PipelineParts, entry: Entry, put: Put): Message | undefined {
  const { normalizeLedger, encode, limit, fromTime, withheld } = parts;
  const { seq, uid, source, received, late } = entry;
  const toEvent = normalizeLedger?.get(source);
  if (!toEvent) return undefined;
  const event = toEvent({ record: readRecord(entry.bytes), uid, received });
  const { from, to, severity, action, key } = event;
  if (fromTime !== undefined && from < fromTime && to <= fromTime) return undefined;
  if (withheld?.(source, () => from)) return undefined;
  const bytes = put(bytesOf(event, encode, limit));
  // `undated`: after a lost state, the new journal writes the same entry at another time.
  return {
    seq,
    number: undefined,
    uid,
    source,
    time: received,
    received,
    late,
    undated: true,
    isLedger: true,
    severity,
    action,
    key,
    bytes,
  };
}

/** @throws RangeError when the event cannot be shortened to the receiver's limit */
export function bytesOf(event: EcsEvent, encode: Encode, limit: MessageLimit | undefined): Buffer {
  const bytes = encode(event);
  if (limit === undefined || bytes.length <= limit.bytes) return bytes;
  const { length } = bytes;
  const short = limit.shorten(event);
  if (short === undefined) throw new RangeError(`cannot shorten a message of ${length} bytes to the ${limit.bytes} that the sink accepts`);
  limit.shortened();
  return short;
}
