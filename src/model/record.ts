/** An audit record exactly as received. */
import type { Micros, Timestamp } from './time.ts';

/**
 * A JSON value as `record/json.ts` parses it. A number that is not a safe integer keeps its digits as an object of `JSON.rawJSON`
 * (`JSON.isRawJSON(v)`, `v.rawJSON`), so that 9007199254740993 is not rounded.
 */
export type JsonValue = string | number | boolean | null | RawNumber | readonly JsonValue[] | { readonly [key: string]: JsonValue };

export interface RawNumber {
  readonly rawJSON: string;
}

/** Where the fields of a record lie, in memory that many records share. Places count from the first byte of the record. */
export interface Notes {
  /** False also for an object that is nested too deep: such a record is identified by its text. */
  readonly isObject: boolean;
  readonly numbers: Int32Array;
  /** Where the columns of the first field begin. */
  readonly columns: number;
  /** From `marks` to `end`: the bytes that JSON would escape if the record were inside a string. */
  readonly marks: number;
  readonly end: number;
}

/** A record that was read. A field is named by its number: `fieldNumbers` of `record/fields.ts`. */
export interface RecordFields {
  /** The record byte for byte. */
  readonly received: Uint8Array;
  /** The record as valid UTF-8, one JSON value. */
  readonly bytes: Buffer;
  readonly notes: Notes;
  /** See `Notes.isObject`. */
  readonly isObject: boolean;
  /** `logTimestamp`, if it can be read. */
  readonly timestamp: Timestamp | undefined;
  /** `logTimestamp`, by which a window owns the record. */
  readonly time: Micros | undefined;
  /** How the value of a field is written: one of `kinds` of `record/walk.ts`. */
  kind(field: number): number;
  /** The first byte of a field's value, within the quotation marks of a string. */
  from(field: number): number;
  /** The byte after the last of a field's value, within the quotation marks of a string. */
  to(field: number): number;
  /** True for a field that is missing, null, or a string of nothing but white space. */
  isAbsent(field: number): boolean;
  /** True for an integer, and for a text that JSON writes with the very bytes of the record. False for a text that may be blank. */
  isJsonText(field: number): boolean;
  /** A string with U+FFFD for lone surrogates, a number or a boolean as its JSON text. Undefined if absent, an object or an array. */
  text(field: number): string | undefined;
  /** A field as `parseRecord` reads it; null when it is missing. */
  value(field: number): JsonValue;
  /** The complete record as `parseRecord` reads it. */
  tree(): JsonValue;
}

/** A record with the facts that the journal stores with it. */
export interface AuditRecord {
  /** As received, one JSON value. */
  readonly text: string;
  /** 16 bytes in base64url, 22 characters (docs/formats.md, "Identity"). */
  readonly uid: string;
  /** When the response with the record had arrived. */
  readonly received: Micros;
}
