/** The completeness report, as `ledger --json` prints it. */
import type { WindowQuery } from './source.ts';

/** The completeness report, exactly as `ledger --json` prints it: times in RFC 3339, sums over `records`, never over `total` (it counts the padding too). */
export interface LedgerReport<Windows extends LedgerReportWindows = readonly LedgerReportWindow[]> extends LedgerTables<Windows> {
  /** The verdict in words, and its parts (src/report/verdict.ts). */
  readonly summary: string;
  readonly complete: boolean;
  readonly delivered: boolean;
  readonly final: boolean;
  readonly uncovered: readonly LedgerReportHole[];
}

/** Time that was due and is not proven. */
interface LedgerReportHole {
  readonly source: string;
  readonly from: string;
  readonly to: string;
  /** before_ledger | not_requested | history_unread | retired | unconfigured | daemon_stopped | journal_full | suspended | source_failing | behind */
  readonly reason: string;
  /** The reason for a person, with the last error where there is one. */
  readonly message: string;
}

/** What the report lists, without the verdict on it. */
export interface LedgerTables<Windows extends LedgerReportWindows = readonly LedgerReportWindow[]> {
  /** When the report was made, and the period asked for; null: from the begin of the ledger, up to now. */
  readonly generatedAt: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly sources: readonly LedgerReportSource<Windows>[];
  /** What people changed in the period; `actor` is what they claimed. */
  readonly operations: readonly LedgerReportOperation[];
}

/** By their begin. There may be more than memory holds: then they are read anew by each who goes through them. */
export type LedgerReportWindows = Iterable<LedgerReportWindow>;

/** A report whose windows may be read as it is written out. */
export type LongLedgerReport = LedgerReport<LedgerReportWindows>;

export type LongLedgerReportSource = LedgerReportSource<LedgerReportWindows>;

export interface LedgerReportSource<Windows extends LedgerReportWindows = readonly LedgerReportWindow[]> {
  readonly id: string;
  /** active | suspended | unconfigured | retired */
  readonly state: string;
  /** Where the ledger begins; null while it has not. */
  readonly startsAt: string | null;
  readonly frontier: string | null;
  readonly closedUntil: string | null;
  /** Of the windows below: records, and those of them that were late. */
  readonly collected: number;
  readonly late: number;
  readonly lateDelays: LedgerReportDelays;
  /** Of the whole ledger: collected ever = in windows + outside (not in a closed window yet, or without a readable time). */
  readonly lifetime: { readonly collected: number; readonly inWindows: number; readonly outside: number };
  /** The stretches that these numbers are about: whole windows, without what was not read. */
  readonly covered: readonly { readonly from: string; readonly to: string }[];
  readonly sinks: readonly LedgerReportSink[];
  /** Hold and its end, as the journal still has them. */
  readonly suspensions: readonly LedgerReportSuspension[];
  readonly windows: Windows;
}

/** `within`: how many came within each age and not sooner: 1h, 6h, 1d, 3d, 7d, 14d, 30d, later. */
export interface LedgerReportDelays {
  readonly longestSeconds: number | null;
  readonly within: Readonly<Record<string, number>>;
}

/** What one sink has of the windows of a source: those that begin where it begins, or later. */
export interface LedgerReportSink {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  /** It gets what is dated from here on; null: everything. */
  readonly since: string | null;
  /** It has a `filter`: how many of the records are for it is not in the ledger. */
  readonly filtered: boolean;
  readonly windows: number;
  readonly complete: number;
  /** Windows of whose time it lost delivered records; none of them is complete. */
  readonly lost: number;
  /** Records of the complete windows less its dead letters; null when `filtered`. */
  readonly records: number | null;
  readonly deadLetters: number;
}

/** What a sink has of a window, or of all windows of a day or month. */
export interface LedgerReportSinkWindow {
  /** It has acknowledged every record of the window's time, and lost none since. */
  readonly complete: boolean;
  /** Only where it lost delivered records of the window's time; then it is not complete. */
  readonly lost?: true;
  /** Records that it refused for good. */
  readonly deadLetters: number;
}

export interface LedgerReportSuspension {
  readonly at: string;
  readonly event: string;
  readonly reason: string | null;
  readonly message: string | null;
}

export interface LedgerReportOperation {
  readonly at: string;
  /** What that person claimed; null when nobody was named. */
  readonly actor: string | null;
  readonly operation: string;
  /** Of an operation on a window: its `source`, `from` and `to`, and `reason`. */
  readonly detail: Readonly<Record<string, string | number | boolean>>;
}

/** `final`: proven, and its last recount is done. */
export type LedgerReportState = 'proven' | 'final' | 'gap' | 'accepted';

export interface LedgerReportWindow {
  readonly from: string;
  readonly to: string;
  readonly state: LedgerReportState;
  /** Why it is a gap; of a proven one `reread` or `shrunk`, when a later count said so. */
  readonly reason: string | null;
  /** What is known about the reason, for a person. */
  readonly message: string | null;
  /** What the service counted for the query, padding included; of a gap the most that it ever counted. */
  readonly total: number | null;
  /** Distinct records received for the query. Proven: the same number as `total`. */
  readonly received: number;
  readonly records: number;
  readonly late: number;
  readonly lateLongestSeconds: number | null;
  readonly passes: number;
  /** Recounts done, and still to come; null when that is not known (the source is not in the configuration, or the window is a gap). */
  readonly recounts: number;
  readonly recountsDue: number | null;
  readonly nextRecount: string | null;
  readonly closedAt: string | null;
  /** SHA-256 over the identities that the window owns (docs/guarantees.md), hex. */
  readonly digest: string | null;
  /** The bounds of the query that was counted, word for word. */
  readonly query: WindowQuery;
  readonly sinks: Readonly<Record<string, LedgerReportSinkWindow>>;
}
