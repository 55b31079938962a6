/** Windows, proofs, gaps and suspensions: the entries of the ledger. */
import type { WindowQuery } from './source.ts';
import type { Micros } from './time.ts';

export interface Window {
  readonly from: Micros;
  readonly to: Micros;
}

/** A sequence number of the journal, with the chain value of the segment that holds it. 0 is the beginning, with 32 zero bytes. */
export interface Position {
  readonly seq: number;
  readonly chain: Uint8Array;
}

/** The numbers that show that a window was read whole (docs/guarantees.md, "The proof"). */
export interface Proof {
  /** The query that was counted, word for word; a recount asks the very same. */
  readonly query: WindowQuery;
  /** What the service counted for that query after the last page; it counts the padding too. */
  readonly total: number;
  /** How many of the distinct records received the window itself owns. */
  readonly inWindow: number;
  /** SHA-256 over the uids that the window owns: 16 bytes each, sorted as bytes, one after another. */
  readonly digest: Uint8Array;
  readonly passes: number;
  readonly requests: number;
  /** Server time of the first and the last answer. */
  readonly first: Micros;
  readonly last: Micros;
}

/** Why a window could not be proven. */
export type GapReason = 'total' | 'count' | 'out_of_range' | 'unreadable' | 'size';

export type Verdict =
  | { readonly proven: true; readonly proof: Proof }
  | {
      readonly proven: false;
      readonly reason: GapReason;
      /** What a person should know: the page that cannot be read, the numbers that never agreed. */
      readonly message: string;
      readonly query: WindowQuery;
      readonly total: number | undefined;
      readonly inWindow: number;
      readonly seen: number;
      readonly digest: Uint8Array;
      readonly passes: number;
      readonly requests: number;
    };

/** A stretch of a source's time that its ledger covers: [from, to), read and closed up to `closedUntil`. */
export interface Range {
  readonly from: Micros;
  /** null: the live range, without an end. */
  readonly to: Micros | null;
  readonly closedUntil: Micros;
  /** Records dated before it are no longer known by uid, and outside. */
  readonly uidsKeptSince: Micros;
}

/** How a person wants a range of history to be read; kept with the range. */
export interface BackfillOrder {
  /** When it was asked for. */
  readonly asked: Micros;
  readonly paused: boolean;
  /** Requests a second at most for it, within the budget of the source. */
  readonly rate?: number | undefined;
  /** Only these sinks get its records; undefined: every sink. */
  readonly sinks?: readonly string[] | undefined;
  /** What the service counted for it when it was asked for. */
  readonly expected?: number | undefined;
}

/** A range of history that a person added to a source's ledger. */
export interface Backfill extends Range {
  readonly to: Micros;
  readonly order: BackfillOrder;
}

/** How far a backfill is. */
export interface BackfillProgress {
  readonly from: Micros;
  readonly to: Micros;
  readonly closedUntil: Micros;
  /** running | paused | done */
  readonly state: 'running' | 'paused' | 'done';
  /** Windows that are closed or gaps, how many records lie in them, and how many of them are gaps. */
  readonly windows: number;
  readonly records: number;
  readonly gaps: number;
  readonly order: BackfillOrder;
  /** Records a second, and the time left: while it runs, and only from the running daemon. */
  readonly perSecond?: number | undefined;
  readonly secondsLeft?: number | undefined;
}

/** A window as it stands in the ledger. */
export interface LedgerWindow extends Window {
  readonly query: WindowQuery;
  readonly state: 'proven' | 'gap' | 'accepted';
  readonly total: number | undefined;
  readonly records: number;
  readonly late: number;
  readonly received: number;
  readonly recounts: number;
  /** Server time of its last proof, or of the last try of a gap. */
  readonly closed: Micros;
  /** Server time at which it is looked at again; undefined: final. */
  readonly next: Micros | undefined;
  readonly attempts: number;
  readonly reason: string | undefined;
}

/** How late records were: first seen minus logTimestamp, µs. `within` counts by the bounds of journal/late-delays.ts, the last what is beyond. */
export interface LateDelays {
  readonly longest: Micros;
  readonly within: readonly number[];
}

/** A part of a gap that is divided, with the query of its own. */
export interface GapPart extends Window {
  readonly query: WindowQuery;
}

/** What was found about a window, and when it is looked at again. */
export interface WindowStep {
  readonly verdict: Verdict;
  readonly next: Micros | undefined;
  /** Server time. */
  readonly at: Micros;
  /** Whether this was a recount of a closed window. */
  readonly recount: boolean;
}

/**
 * Why a source is suspended: the service shows fewer fields or fewer rows than it did, or nothing at all; a page has no readable time, or the clock
 * of the service is more than an hour ahead. Meanwhile nothing is closed (docs/guarantees.md, "Suspension").
 */
export type SuspensionReason = 'fields' | 'rows' | 'forbidden' | 'timestamp' | 'clock';

export interface Suspension {
  readonly reason: SuspensionReason;
  /** What a person should know, in one line. */
  readonly message: string;
  /** Server time. */
  readonly since: Micros;
  /** `fields`: those that are gone. */
  readonly fields?: readonly string[];
  /** When a sound window was last counted whole, server time: what was closed since then may hold less than there is. */
  readonly lastFullVisibility?: Micros;
  /** `rows`: where the windows begin that hold less than was proven; the first is the one whose count ends the suspension. */
  readonly windows?: readonly Micros[];
  /** `rows`: where the others begin that hold less, once they were counted; a person accepts them together. */
  readonly shrunk?: readonly Micros[];
}

/** What is said about a window of the ledger without a new proof. */
export interface Remark {
  readonly reason: 'reread' | 'shrunk' | undefined;
  readonly message: string | undefined;
  readonly next: Micros | undefined;
  /** Counts below the stored total in a row. */
  readonly attempts: number;
}

/** Where a source stands. */
export interface SourceProgress {
  readonly id: string;
  readonly frontier: Micros;
  /** 0 before the first poll. */
  readonly polledUntil: Micros;
  readonly state: string;
  readonly suspension: Suspension | undefined;
  /** What is kept about the service itself, JSON. */
  readonly profile: string | undefined;
  /** Records appended ever, those of them that were late, and the newest readable time among them. */
  readonly collected: number;
  readonly late: number;
  readonly lastRecord: Micros | undefined;
  readonly live: Range;
}
