/** The state of the daemon at one moment, from which status, readiness probes and gauges are computed. */
import type { ReplayProgress } from './journal.ts';
import type { BackfillProgress, Suspension, Window } from './ledger.ts';
import type { ClockMeasurement } from './source.ts';
import type { DelayMeasure } from './telemetry.ts';
import type { Micros } from './time.ts';

/** From when on the configuration wants a source collected. */
export interface RequestedStart {
  readonly from: Micros;
  /** So much before the begin of the ledger it may lie and mean the same, by two clocks. */
  readonly apart: Micros;
}

/** What `start` asks for and the ledger of a source does not have: between these times, before the ledger's begin. */
export interface Unread {
  readonly from: Micros;
  readonly to: Micros;
  /** Where the ledger begins. */
  readonly startsAt: Micros;
}

export interface SourceSnapshot {
  readonly id: string;
  /** active | suspended | unconfigured | retired */
  readonly state: string;
  /** Why it is not ready, in one line; undefined when it is. */
  readonly trouble: string | undefined;
  readonly frontier: Micros;
  readonly closedUntil: Micros;
  readonly polledUntil: Micros;
  readonly collected: number;
  readonly late: number;
  readonly windows: { readonly proven: number; readonly gap: number; readonly accepted: number };
  readonly gaps: number;
  readonly recountsOverdue: number;
  readonly closeDelaySeconds: number;
  readonly lastSuccess: Micros | undefined;
  readonly lastRecord: Micros | undefined;
  readonly lastError: string | undefined;
  /** What both clocks have reached, that of the service and ours; while the clock of the service stands still it goes on with ours. */
  readonly serverNow: Micros | undefined;
  /** The clock of the service less that of this machine. */
  readonly clockOffsetSeconds: number | undefined;
  /** While the clock of the service is being measured; undefined once it is known. Of the running daemon alone. */
  readonly clock?: ClockMeasurement | undefined;
  /**
   * When the next window of the live range can be proven at the earliest, server time: its end has the age `closeDelay` then, and the clock of the
   * service is known. Of the running daemon alone.
   */
  readonly nextProof?: Micros | undefined;
  /** Ranges of history that are not read to their end. */
  readonly backfills?: readonly BackfillProgress[] | undefined;
  readonly delays?: DelayMeasure | undefined;
  /** Where `start` was set to an earlier time than the ledger begins at, and no backfill has been asked for it. */
  readonly unread?: Unread | undefined;
  /** The suspension, while it lasts: the state knows it also when no daemon runs. */
  readonly held?: Pick<Suspension, 'reason' | 'message'> | undefined;
  /** Its answers carry no `Date`: what time it is there at least, by its records; undefined before the first of them. */
  readonly undated?: { readonly known: Micros | undefined } | undefined;
  /** Why the calibration that is due could not be made, while that is so. */
  readonly uncalibrated?: string | undefined;
  /** When it was retired; only of a retired source. */
  readonly retiredAt?: Micros | undefined;
  /** Of its whole ledger; only where a verdict was asked for. */
  readonly coverage?: Coverage | undefined;
}

export interface SinkSnapshot {
  readonly id: string;
  readonly type: string;
  /** active | retrying | blocked | unconfigured | retired; stopped, where no daemon runs */
  readonly state: string;
  readonly trouble: string | undefined;
  readonly acknowledged: number;
  readonly lagRecords: number;
  readonly lagSeconds: number;
  readonly deadLetters: number;
  readonly lastSuccess: Micros | undefined;
  readonly lastError: string | undefined;
  /** Failed attempts in a row; 0: the last one succeeded. Only from the running daemon. */
  readonly attempts?: number | undefined;
  /** Whether it has accepted a message, in this run or an earlier one of the same state. */
  readonly hasDelivered: boolean;
  /** When the first of the failed attempts in a row ended, and when the next one begins, by the wall clock. Only from the running daemon. */
  readonly failingSince?: Micros | undefined;
  readonly nextAttempt?: Micros | undefined;
  /** The one under way, or the last that ended; of the running daemon alone. */
  readonly replay?: ReplayProgress | undefined;
}

/** What the ledger of a source has of one period: with the present, all that the verdict follows from. Times in µs. */
export interface Coverage {
  /** Where the ledger begins, or will begin by `start`; undefined: not known yet. */
  readonly startsAt: Micros | undefined;
  /** Where the live range begins; undefined before the first answer. */
  readonly liveFrom: Micros | undefined;
  /** Ranges of history that were requested, by their begin. */
  readonly history: readonly (Window & { readonly paused: boolean })[];
  /** Stretches in which every window is closed, a gap or accepted; by their begin. */
  readonly read: readonly Window[];
  readonly windows: {
    readonly all: number;
    readonly final: number;
    readonly gaps: number;
    readonly accepted: number;
    /** Proven, but a later count or a suspension disagrees. */
    readonly inDoubt: number;
  };
  readonly sinks: readonly SinkCoverage[];
}

/** What one sink has of the windows that it owes: of its sources, those that begin at or after its start. */
export interface SinkCoverage {
  readonly id: string;
  readonly windows: number;
  /** Windows of whose time it has not acknowledged a collected record, or lost a delivered one, and windows that hold a dead letter. */
  readonly lacking: number;
  /** Of the lacking windows: those of whose time it lost delivered records. */
  readonly lost: number;
  /** Only with `lost`: what happened last, for a person. */
  readonly loss?: string;
  /** In those windows; 0 where a filter decides what it gets. */
  readonly deadLetters: number;
  /** Records without a readable time that it lacks: they wait, or are dead letters. They belong to no window. Left out where it is 0. */
  readonly undated?: number;
  /** Set where it owes no window yet, and records of the period wait for it. */
  readonly waits?: boolean;
}

/** The state of the whole daemon at one moment: what status, probes and gauges are made of. */
export interface Snapshot {
  readonly version: string;
  readonly created: Micros;
  readonly now: Micros;
  readonly journal: {
    /** Of `maxSize`: pages that hold something, and what is set aside for the WAL. */
    readonly bytes: number;
    /** The part of `bytes` that the WAL may take and does not take now. */
    readonly setAside?: number;
    readonly maxSize: number;
    readonly head: number;
    /** `journal_full` or `disk`: which of the two is used up; words may follow. */
    readonly paused: string | undefined;
    /** Where the state lies. */
    readonly directory: string;
    /** Transactions committed since the daemon started. */
    readonly commits?: number;
  };
  readonly sources: readonly SourceSnapshot[];
  readonly sinks: readonly SinkSnapshot[];
  /** Of the running daemon alone. */
  readonly certificates?: readonly CertificateEnd[];
  /** Set when no daemon runs: `since` is about when one wrote to the state last, by the wall clock. */
  readonly stopped?: { readonly since: Micros } | undefined;
}

/** When a certificate in use ends; `target` is the setting that it belongs to: `sources.production.auth`. */
export interface CertificateEnd {
  readonly target: string;
  readonly at: Micros;
}
