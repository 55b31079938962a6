/**
 * The way of one entry to one sink: is it for this sink, what event is it, what text. Pure but for the count of odd records. Each sink has its
 * own pipeline, so that nothing is shared between two loops but the journal.
 */
import type { EcsEvent, Encode, Normalize } from '../model/event.ts';
import type { Entry } from '../model/journal.ts';
import type { JsonValue } from '../model/record.ts';
import type { Message } from '../model/sink.ts';
import type { Micros } from '../model/time.ts';
import { parseRecord } from '../record/json.ts';
import { timeOfRecord } from '../record/time-of.ts';
import type { Put } from './batch-space.ts';

export interface PipelineParts {
  /** How to normalize the records of each source that this sink takes; a source that is missing is not for this sink. */
  readonly normalize: ReadonlyMap<string, Normalize>;
  /** `filter` on the record as received, before privacy. */
  readonly matches: (value: JsonValue) => boolean;
  readonly encode: Encode;
  /** What the receiver's frames can carry; undefined: any length. */
  readonly limit?: MessageLimit | undefined;
  /** Records with a readable time before it are not for this sink. */
  readonly fromTime: Micros | undefined;
  /** Whether this sink is to get a source's records of that time: history may have been asked for other sinks alone. */
  readonly withheld?: (source: string, time: () => Micros | undefined) => boolean;
  readonly unexpected: (source: string, tags: readonly string[]) => void;
}

export interface MessageLimit {
  /** Bytes of a message at most. */
  readonly bytes: number;
  /** The same event in no more than that; undefined when it cannot be made so short. */
  readonly shorten: (event: EcsEvent) => string | undefined;
  readonly shortened: () => void;
}

/** Turns an entry into a message, whose bytes lie where `put` wrote them; undefined when it is not for this sink. */
export type Pipeline = (entry: Entry, put: Put) => Message | undefined;

export function pipeline(parts: PipelineParts): Pipeline {
  const { normalize, matches, encode, limit, fromTime, withheld, unexpected } = parts;
  return (entry, put) => {
    if (entry.kind === 'ledger') return undefined;
    const { seq, number, uid, source, text, received } = entry;
    const toEvent = normalize.get(source);
    if (!toEvent) return undefined;
    // Parsed here, once for each sink: a value that was kept since it was collected costs more, in the collection of garbage, than this does.
    const value = parseRecord(text);
    if (!matches(value)) return undefined;
    if (fromTime !== undefined && (timeOfRecord(value) ?? fromTime) < fromTime) return undefined;
    if (withheld?.(source, () => timeOfRecord(value))) return undefined;
    const event = toEvent({ text, uid, received, value });
    if (event.unexpected.length > 0) unexpected(source, event.unexpected);
    const { time, severity, action, key } = event;
    const undated = event.unexpected.includes('invalid_timestamp');
    return { seq, number, uid, source, time, undated, severity, action, key, bytes: put(textOf(event, encode, limit)) };
  };
}

/** The text of an event as a sink gets it. @throws RangeError when it cannot be made as short as the receiver's frames are */
export function textOf(event: EcsEvent, encode: Encode, limit: MessageLimit | undefined): string {
  const text = encode(event);
  if (limit === undefined) return text;
  const length = Buffer.byteLength(text);
  if (length <= limit.bytes) return text;
  const short = limit.shorten(event);
  if (short === undefined)
    throw new RangeError(`a message of ${length} bytes cannot be shortened to the ${limit.bytes} that this sink takes`);
  limit.shortened();
  return short;
}
