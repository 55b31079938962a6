/** The selection of records by a query of a logs endpoint. */
import type { Span } from './tally.ts';

/**
 * The columns by which the logs endpoints filter; null if the record has no such text; no filter
 * matches it.
 */
export interface Keys {
  readonly userId: string | null;
  readonly payloadId: string | null;
  readonly payloadName: string | null;
  readonly currentPayloadOwnerId: string | null;
  readonly actionAttempted: string | null;
  readonly result: string | null;
  readonly resultReason: string | null;
  readonly userLastNameFirstName: string | null;
}

/** A selection: all conditions must hold. */
export interface Selection extends Span {
  readonly equal: Partial<Record<keyof Keys, string>>;
  /** Only actions of this user, and actions on payloads of this user. */
  readonly ownOf: string | undefined;
}
