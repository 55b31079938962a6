/**
 * The time of a record, by which a window owns it. Collect reads it of received records, and the
 * journal of stored ones.
 */
import type { JsonValue } from '../model/record.ts';
import type { Micros } from '../model/time.ts';
import { objectOf } from './json.ts';
import { timestampMicros } from './timestamp.ts';

/** `logTimestamp` of a record in µs; undefined when there is none that can be read. */
export function timeOfRecord(value: JsonValue): Micros | undefined {
  return timestampMicros(objectOf(value)?.['logTimestamp']);
}
