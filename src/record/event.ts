/** A record after normalization: the ECS document that every format is encoded from. */
import type { Micros } from '../model/time.ts';
import type { EcsDocument } from './document.ts';
import type { RecordFields } from '../model/record.ts';

export interface EcsObserver {
  readonly vendor: string;
  readonly product: string;
  readonly version: string;
}

/** An ECS document with what an envelope needs without decoding the document. */
export interface EcsEvent {
  readonly document: EcsDocument;
  /** One shared object for all events of a source. */
  readonly observer: EcsObserver;
  /** The name of the outcome, without user or file and without control characters: `Protected file open denied`. */
  readonly name: string;
  /** `logTimestamp` in µs, or the time of receipt when it is unreadable. */
  readonly time: Micros;
  /** 0-10. */
  readonly severity: number;
  /** actionAttempted as received; `Unknown` when absent. */
  readonly action: string;
  /** payloadId after the privacy settings; undefined when absent or masked. */
  readonly key: string | undefined;
  /** Tags for what is unexpected in the record (`missing_field`, …), each once; usually empty. */
  readonly unexpected: readonly string[];
}

/** A ledger entry as an event, with its period in µs: [from, to), or one moment. */
export interface LedgerEvent extends EcsEvent {
  readonly from: Micros;
  readonly to: Micros;
}

/** A record that was read, with the facts that the journal stores with it. */
export interface ReceivedRecord {
  readonly record: RecordFields;
  /** 16 bytes in base64url, 22 characters (docs/formats.md, "Identity"). */
  readonly uid: string;
  /** When the response had arrived. */
  readonly received: Micros;
}

/** Pure and total: an unexpected record yields a tag, never an exception. */
export type Normalize = (received: ReceivedRecord) => EcsEvent;

/** Pure and total: the record is the ledger entry as the journal stores it. */
export type NormalizeLedger = (received: ReceivedRecord) => LedgerEvent;

/** Pure and total. Returns one well-formed line without a line break, as UTF-8 that is valid until the next call. */
export type Encode = (event: EcsEvent) => Buffer;
