/** The state of the daemon at one moment, from which status, readiness probes and gauges are computed. */
import type { ReplayProgress } from './journal.ts';
import type { BackfillProgress, Suspension, Window, WindowStates } from './ledger.ts';
import type { LedgerReportState } from './ledger-report.ts';
import type { CosignatureState, TimeStampState } from './sink.ts';
import type { ClockMeasurement } from './source.ts';
import type { DelayMeasure } from './telemetry.ts';
import type { Micros } from './time.ts';

/** The start that the configuration requests for a source. */
export interface RequestedStart {
  readonly from: Micros;
  /** Tolerance for the difference between two clocks: a start at most this much before the ledger's start means the same. */
  readonly apart: Micros;
}

/** Time that `start` requests and that lies before the start of the ledger. */
export interface Unread {
  readonly from: Micros;
  readonly to: Micros;
  readonly startsAt: Micros;
}

export interface SourceSnapshot {
  readonly id: string;
  /** active | suspended | unconfigured | retired */
  readonly state: string;
  /** Why it is not ready, in one line. */
  readonly trouble?: string | undefined;
  /** Start of the live range, and how far its windows are proven or accepted without a break; both 0 before the ledger starts. */
  readonly liveFrom: Micros;
  readonly frontier: Micros;
  readonly closedUntil: Micros;
  readonly polledUntil: Micros;
  readonly collected: number;
  readonly late: number;
  readonly windows: WindowStates;
  readonly recountsOverdue: number;
  readonly closeDelaySeconds: number;
  readonly lastSuccess?: Micros | undefined;
  readonly lastRecord?: Micros | undefined;
  readonly lastError?: string | undefined;
  /** The failure of the newest request, until a request is answered. Running daemon only. */
  readonly failing?: SourceFailure | undefined;
  /** The earlier of server time and local time. While the service's clock stands still, local time continues it. */
  readonly serverNow?: Micros | undefined;
  /** Clock of the service minus clock of this machine. */
  readonly clockOffsetSeconds?: number | undefined;
  /** Set while the clock of the service is being measured. Running daemon only. */
  readonly clock?: ClockMeasurement | undefined;
  /** The earliest server time at which the next live window can be proven: older than `closeDelay`, clock known. Running daemon only. */
  readonly nextProof?: Micros | undefined;
  readonly backfills?: readonly BackfillProgress[] | undefined;
  readonly delays?: DelayMeasure | undefined;
  /** Set when `start` is earlier than the start of the ledger and no backfill covers the difference. */
  readonly unread?: Unread | undefined;
  /** The current suspension; also known when no daemon runs. */
  readonly held?: (Pick<Suspension, 'reason' | 'message'> & Partial<Pick<Suspension, 'since'>>) | undefined;
  /** Set when the responses carry no `Date`. `known`: a lower bound of server time from records; undefined before the first record. */
  readonly undated?: { readonly known: Micros | undefined } | undefined;
  /** What the service shows that the ledger cannot hold: no period is complete with it. Also known when no daemon runs. */
  readonly contradiction?: string | undefined;
  /** How queries differ from the usual ones, because the service refuses these. Running daemon only. */
  readonly queryForms?: readonly string[] | undefined;
  /** The error of a calibration that is due and failed. */
  readonly uncalibrated?: string | undefined;
  /** Retired sources only. */
  readonly retiredAt?: Micros | undefined;
  /** Coverage of the whole ledger; only when a summary was requested. */
  readonly coverage?: Coverage | undefined;
}

export interface SourceFailure {
  readonly code: string | undefined;
  readonly message: string;
  /** Wall clock: the first failure in a row, and the next attempt. */
  readonly since: Micros;
  readonly nextAttempt?: Micros | undefined;
}

export interface SinkSnapshot {
  readonly id: string;
  readonly type: string;
  /** active | retrying | blocked | unconfigured | retired; stopped when no daemon runs */
  readonly state: string;
  readonly trouble?: string | undefined;
  readonly acknowledged: number;
  /** Records and lines of the ledger that wait for the sink. */
  readonly lagEntries: number;
  /** The records among them. */
  readonly lagRecords: number;
  readonly lagSeconds: number;
  readonly deadLetters: number;
  /** While no record has passed the filter of the sink: how many, at most, it has held back. */
  readonly unselected?: number | undefined;
  readonly lastSuccess?: Micros | undefined;
  readonly lastError?: string | undefined;
  /** The code of `lastError`. Running daemon only. */
  readonly lastCode?: string | undefined;
  /** When the sink last accepted a message after a failure; wall clock. Running daemon only. */
  readonly recoveredAt?: Micros | undefined;
  /** Failed attempts in a row. Running daemon only. */
  readonly attempts?: number | undefined;
  /** True once the sink has accepted a message, in any run on this state. */
  readonly hasDelivered: boolean;
  /** When the first of these failed attempts ended, and when the next attempt starts; wall clock. Running daemon only. */
  readonly failingSince?: Micros | undefined;
  readonly nextAttempt?: Micros | undefined;
  /** Only of an archive with a time-stamp authority. Running daemon only. */
  readonly timeStamp?: TimeStampState | undefined;
  /** The state of each witness; only of an archive with witnesses. Running daemon only. */
  readonly cosignatures?: readonly CosignatureState[] | undefined;
  /**
   * The last replay from the journal and the last one from an archive: failed ones first, then the one under way. If no loop runs: the
   * replays that the next loop continues.
   */
  readonly replays?: readonly ReplayProgress[];
}

/** The part of a source's ledger in one period: with server time, the input of the summary. Times in µs. */
export interface Coverage {
  /** Start of the ledger, planned or existing; undefined when unknown. */
  readonly startsAt: Micros | undefined;
  /** Start of the live range; undefined before the first response. */
  readonly liveFrom: Micros | undefined;
  /** Requested backfills, sorted by start. */
  readonly history: readonly (Window & { readonly paused: boolean })[];
  /** Ranges whose windows are all proven, gaps or accepted; sorted by start. */
  readonly read: readonly Window[];
  readonly windows: WindowStates;
  /** Windows of the period that no sink is to receive completely. Omitted when 0. */
  readonly unanswered?: number;
  readonly sinks: readonly SinkCoverage[];
}

/** The state of one sink for the windows of its sources that begin at or after its start. */
export interface SinkCoverage {
  readonly id: string;
  /** The ledger makes no statement on earlier windows: the sink starts here, or its `filter` or `sources` changed. Omitted for the first entry. */
  readonly since?: { readonly at: Micros; readonly reason: 'start' | 'selection' };
  readonly windows: number;
  /** Windows with a record that the sink has not acknowledged, has lost or has as a dead letter. */
  readonly lacking: number;
  /** The windows among these with delivered records that the sink lost. */
  readonly lost: number;
  /** Set when `lost` is: the last loss, as text. */
  readonly loss?: string | undefined;
  /** Set when `lost` is: the first and the last entry of all these losses, for a replay. */
  readonly lostEntries?: { readonly first: number; readonly last: number };
  /** Dead letters in these windows; 0 for a sink with a filter. */
  readonly deadLetters: number;
  /** Records without a readable time, and so without a window, that are not delivered. Omitted when 0. */
  readonly undated?: number;
  /** True when the period has no window for this sink yet, and records of the period are not delivered. */
  readonly waits?: boolean;
}

export interface Snapshot {
  readonly version: string;
  readonly created: Micros;
  readonly now: Micros;
  readonly journal: {
    /** Used pages, and the reserve for the WAL; compare with `maxSize`. */
    readonly bytes: number;
    /** The part of `bytes` for the WAL. */
    readonly setAside?: number;
    readonly maxSize: number;
    readonly head: number;
    /** The last pruned entry. */
    readonly pruned?: number;
    /** `journal_full` or `disk`; text may follow. */
    readonly paused: string | undefined;
    readonly directory: string;
    /** Committed transactions since the daemon started. */
    readonly commits?: number;
  };
  readonly sources: readonly SourceSnapshot[];
  readonly sinks: readonly SinkSnapshot[];
  /** Running daemon only. */
  readonly certificates?: readonly CertificateEnd[];
  /** Set while the configuration on disk is rejected: since when, wall clock, and one line for each problem. Running daemon only. */
  readonly rejected?: { readonly since: Micros; readonly problems: readonly string[] } | undefined;
  /** By setting, where the configuration takes a secret from: `${file:./secret}`. Running daemon only. */
  readonly secrets?: Readonly<Record<string, string>>;
  readonly host?: string;
  /** Set for a fleet: everything else is the sum of its shards. */
  readonly fleet?: FleetSnapshot;
  /** Set for the metrics of a member of a fleet: everything else is the sum of the shards that it owns. */
  readonly member?: MemberSnapshot;
  /** Set when no daemon runs. `since`: about the last write to the state, wall clock. */
  readonly stopped?: { readonly since: Micros } | undefined;
}

/** Seconds after which the status of a shard no longer tells how it is now: a take-over takes half of that. */
export const staleSeconds = 60;

/** The processes of a fleet and its shards, by the clock of the database. */
interface FleetSnapshot {
  /** Those that have answered within two leases. */
  readonly members: readonly { readonly name: string; readonly release: string; readonly seenSeconds: number }[];
  /** `owner`: the member with a lease. `statusSeconds`: the age of what the snapshot says about the shard; null: nothing is known of it. */
  readonly shards: readonly { readonly shard: number; readonly owner: string | null; readonly statusSeconds: number | null }[];
  /** Why the database does not answer; the snapshot is the last one before. */
  readonly unreachable?: string;
  /** Newest first: repaired roll-backs of the last day, and other roll-backs of the last week. */
  readonly rollbacks: readonly Rollback[];
  /** What the page shows in addition. */
  readonly page: PageFacts;
}

/** Commits of a shard that the database had acknowledged and then lost. */
interface Rollback {
  readonly shard: number;
  readonly first: number;
  readonly last: number;
  /** Their owner has written their rows again. */
  readonly repaired: boolean;
  readonly at: Micros;
}

/** Counts of the fleet and of one member. */
export interface MemberSnapshot {
  /** The shards that it owns and has opened. */
  readonly opened: number;
  /** The answer of the database to its last turn; undefined before the first one. */
  readonly counts:
    | {
        /** Wall clock of the answer. */
        readonly at: Micros;
        readonly members: number;
        readonly shards: number;
        /** The shards without an owner. */
        readonly free: number;
        /** Since the setup: take-overs, and roll-backs that were repaired or not. */
        readonly takes: number;
        readonly repaired: number;
        readonly lost: number;
      }
    | undefined;
}

/** The shards of which nothing is known, or nothing new. */
export function unreported({ shards }: FleetSnapshot): number[] {
  return shards.filter(({ statusSeconds }) => statusSeconds === null || statusSeconds >= staleSeconds).map(({ shard }) => shard);
}

/** The newest windows of each source, oldest first, and the records of the windows that began since midnight UTC. */
export interface PageFacts {
  readonly windows: ReadonlyMap<string, readonly ShownWindow[]>;
  readonly today: { readonly records: number; readonly late: number };
}

export interface ShownWindow {
  readonly from: Micros;
  readonly to: Micros;
  readonly state: LedgerReportState;
  /** A later count or a suspension disagrees with the proof. */
  readonly isInDoubt: boolean;
  readonly records: number;
  /** The count of the service, with the padding of the window; null without a proof. */
  readonly total: number | null;
}

/** A certificate that ends sooner, in µs, is a problem that `status` shows and the log repeats daily. */
export const endingWithin = 14 * 86_400 * 1e6;

/** When a certificate in use expires; `target` is its setting: `sources.production.auth`. */
export interface CertificateEnd {
  readonly target: string;
  readonly at: Micros;
}
