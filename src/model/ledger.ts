/** Windows, proofs, gaps and suspensions: the entries of the ledger. */
import type { WindowQuery } from './source.ts';
import type { Micros } from './time.ts';

export interface Window {
  readonly from: Micros;
  readonly to: Micros;
}

/** A sequence number of the journal, with the chain value of its segment. 0 is the start, with 32 zero bytes. */
export interface Position {
  readonly seq: number;
  readonly chain: Uint8Array;
}

/** The numbers that show that a window was read completely (docs/guarantees.md, "The proof"). */
export interface Proof {
  /** The query that was counted, literally. A recount sends the same query. */
  readonly query: WindowQuery;
  /** The service's count for the query after the last page, padding included. */
  readonly total: number;
  readonly inWindow: number;
  /** SHA-256 over the uids of the records in the window: 16 bytes each, sorted bytewise, concatenated. */
  readonly digest: Uint8Array;
  readonly passes: number;
  readonly requests: number;
  /** Server time of the first and the last response. */
  readonly first: Micros;
  readonly last: Micros;
}

export const gapReasons = ['total', 'count', 'out_of_range', 'unreadable', 'size'] as const;
export type GapReason = (typeof gapReasons)[number];

export type Verdict =
  | { readonly proven: true; readonly proof: Proof }
  | {
      readonly proven: false;
      readonly reason: GapReason;
      /** For the operator: the unreadable page, or the numbers that differ. */
      readonly message: string;
      readonly query: WindowQuery;
      readonly total: number | undefined;
      readonly inWindow: number;
      readonly seen: number;
      readonly digest: Uint8Array;
      readonly passes: number;
      readonly requests: number;
    };

/** A range of time that the ledger of a source covers: [from, to), closed up to `closedUntil`. */
export interface Range {
  readonly from: Micros;
  /** Null for the live range, which has no end. */
  readonly to: Micros | null;
  readonly closedUntil: Micros;
  /** The uids of records before this time are deleted. Such records count as `outside`. */
  readonly uidsKeptSince: Micros;
}

/** The options of a backfill, stored with its range. */
export interface BackfillOrder {
  readonly asked: Micros;
  readonly paused: boolean;
  /** Maximum requests a second, within the budget of the source. */
  readonly rate?: number | undefined;
  /** Only these sinks receive the records; undefined: every sink. */
  readonly sinks?: readonly string[] | undefined;
  /** The service's count for the range at the time of the request. */
  readonly expected?: number | undefined;
}

/** A range of history that an operator added to the ledger of a source. */
export interface Backfill extends Range {
  readonly to: Micros;
  readonly order: BackfillOrder;
}

export interface BackfillProgress {
  readonly from: Micros;
  readonly to: Micros;
  readonly closedUntil: Micros;
  readonly state: 'running' | 'paused' | 'done';
  /** Proven windows and gaps, the records in them, and the gaps alone. */
  readonly windows: number;
  readonly records: number;
  readonly gaps: number;
  readonly order: BackfillOrder;
  /** Records a second, and the remaining time. Running daemon only, while the backfill runs. */
  readonly perSecond?: number | undefined;
  readonly secondsLeft?: number | undefined;
}

/** Numbers of windows: `all` = `proven` + `gap` + `accepted` + `inDoubt`. */
export interface WindowStates {
  readonly all: number;
  /** Final ones included, those in doubt not. */
  readonly proven: number;
  readonly final: number;
  readonly gap: number;
  readonly accepted: number;
  /** Proven once; a later count or a suspension contradicts it. */
  readonly inDoubt: number;
}

export interface LedgerWindow extends Window {
  readonly query: WindowQuery;
  readonly state: 'proven' | 'gap' | 'accepted';
  readonly total: number | undefined;
  readonly records: number;
  readonly late: number;
  readonly received: number;
  readonly recounts: number;
  /** Server time of the last proof, or of the last attempt of a gap. */
  readonly closed: Micros;
  /** Server time of the next recount or attempt; undefined: final. */
  readonly next: Micros | undefined;
  readonly attempts: number;
  readonly reason: string | undefined;
}

/** First seen minus logTimestamp, in µs. `within` counts by the bounds of journal/late-delays.ts; the last item counts longer delays. */
export interface LateDelays {
  readonly longest: Micros;
  readonly within: readonly number[];
}

export interface GapPart extends Window {
  readonly query: WindowQuery;
}

/** The result of reading a window, and when to look at it again. */
export interface WindowStep {
  readonly verdict: Verdict;
  readonly next: Micros | undefined;
  /** Server time. */
  readonly at: Micros;
  readonly recount: boolean;
}

/**
 * Why a source is suspended: the service shows fewer fields or records than before, or nothing; a page has no readable time; the clock of
 * the service is more than an hour ahead; a record is not found by its time; or the configuration has another service under the id of the
 * source. No window is closed meanwhile (docs/guarantees.md, "Suspension").
 */
export const suspensionReasons = ['fields', 'rows', 'forbidden', 'timestamp', 'clock', 'moved', 'filter'] as const;
export type SuspensionReason = (typeof suspensionReasons)[number];

export interface Suspension {
  readonly reason: SuspensionReason;
  /** For the operator, in one line. */
  readonly message: string;
  /** Server time. */
  readonly since: Micros;
  /** `fields`: the missing fields. */
  readonly fields?: readonly string[];
  /** The server time at which a sample window was last counted completely. A window closed later may lack records. */
  readonly lastFullVisibility?: Micros;
  /** `rows`: starts of the windows whose count is below the proven total. The suspension ends when the first of them is complete again. */
  readonly windows?: readonly Micros[];
  /** `rows`: starts of further windows below their total, found by recounts. An operator accepts them together. */
  readonly shrunk?: readonly Micros[];
  /** `moved`: the suspension that was in force before, and is again after it. */
  readonly previous?: Suspension;
}

export function suspensionMessage({ reason, message }: Suspension): string {
  return `suspended (${reason}): ${message}`;
}

/** A change of the service that a known source polls. */
export interface SourceMove {
  /** The service before and after, as `https://service.example/v2/api of tenant 00000000-…`. */
  readonly before: string;
  readonly present: string;
  /** The number of windows that are counted once more. */
  readonly windows: number;
}

/** A finding about a window that does not change its proof. */
export interface Remark {
  readonly reason: 'reread' | 'shrunk' | undefined;
  readonly message: string | undefined;
  readonly next: Micros | undefined;
  /** Counts below the proven total in a row. */
  readonly attempts: number;
}

/** The time before which every window is proven or accepted; undefined until the first is: the frontier starts where the live range starts. */
export function completeUntil({ frontier, liveFrom }: { readonly frontier: Micros; readonly liveFrom: Micros }): Micros | undefined {
  return frontier > liveFrom ? frontier : undefined;
}

export interface SourceProgress {
  readonly id: string;
  readonly frontier: Micros;
  /** 0 before the first poll. */
  readonly polledUntil: Micros;
  readonly state: string;
  readonly suspension: Suspension | undefined;
  /** Facts about the service, as JSON. */
  readonly profile: string | undefined;
  /** Records appended in total, the late ones among them, and the newest readable time. */
  readonly collected: number;
  readonly late: number;
  readonly lastRecord: Micros | undefined;
  readonly live: Range;
}
