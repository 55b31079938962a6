/** When a record says it happened: the time by which a window owns it. Collect asks it of what arrives, the journal of what it reads back. */
import type { JsonValue } from '../model/record.ts';
import type { Micros } from '../model/time.ts';
import { objectOf } from './json.ts';
import { timestampMicros } from './timestamp.ts';

/** `logTimestamp` of a record in µs; undefined when there is none that can be read. */
export function timeOfRecord(value: JsonValue): Micros | undefined {
  return timestampMicros(objectOf(value)?.['logTimestamp']);
}
