/** An audit record exactly as received. */
import type { Micros } from './time.ts';

/**
 * A JSON value as `record/json.ts` parses it. A number that is not a safe integer keeps its digits
 * as an object of `JSON.rawJSON` (`JSON.isRawJSON(v)`, `v.rawJSON`), so that 9007199254740993 is
 * not rounded.
 */
export type JsonValue = string | number | boolean | null | RawNumber | readonly JsonValue[] | { readonly [key: string]: JsonValue };

export interface RawNumber {
  readonly rawJSON: string;
}

/** A record with the facts that the journal stores with it. */
export interface AuditRecord {
  /** The record as received, one JSON value. */
  readonly text: string;
  /** 16 bytes in base64url, 22 characters (docs/formats.md, "Identity"). */
  readonly uid: string;
  /** When the response with the record had arrived. */
  readonly received: Micros;
}
