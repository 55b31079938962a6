/** One audit record exactly as received. */
import type { Micros } from './time.ts';

/**
 * A value of JSON as `record/json.ts` reads it. A number that is not a safe integer is kept with the digits of its text, as an object made
 * by `JSON.rawJSON` (read with `JSON.isRawJSON(v)` and `v.rawJSON`), so that 9007199254740993 stays what it is.
 */
export type JsonValue = string | number | boolean | null | RawNumber | readonly JsonValue[] | { readonly [key: string]: JsonValue };

export interface RawNumber {
  readonly rawJSON: string;
}

/** A record with what the journal knows about it. */
export interface AuditRecord {
  /** The record as received, one JSON value. */
  readonly text: string;
  /** Its identity: 16 bytes in base64url, 22 characters (docs/formats.md, "Identity"). */
  readonly uid: string;
  /** When the response that held it had arrived. */
  readonly received: Micros;
  /** `text` as a value, where somebody has parsed it already. */
  readonly value?: JsonValue | undefined;
}
