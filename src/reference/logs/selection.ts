/** Which records a query of a logs endpoint selects. */
import type { Span } from './tally.ts';

/** The columns by which the logs endpoints filter; null where the record has no such text, which no filter matches. */
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

/** Which records; every condition holds together. */
export interface Selection extends Span {
  readonly equal: Partial<Record<keyof Keys, string>>;
  /** Only what this user did, and what was done to payloads that this user owns. */
  readonly ownOf: string | undefined;
}
