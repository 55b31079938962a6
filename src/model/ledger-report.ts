/** The completeness report. */
import type { WindowQuery } from './source.ts';

/** The completeness report as `ledger --json` prints it. Times in RFC 3339. Sums add `records`, never `total`, which includes padding. */
export interface LedgerReport<Windows extends LedgerReportWindows = readonly LedgerReportWindow[]> extends LedgerTables<Windows> {
  /** The summary as text, and its parts (src/report/summary.ts). */
  readonly summary: string;
  readonly complete: boolean;
  /** Null: nothing is lacking, but no sink answers for some windows. */
  readonly delivered: boolean | null;
  readonly final: boolean;
  readonly uncovered: readonly LedgerReportHole[];
}

/** Time that is due and not proven. */
interface LedgerReportHole {
  readonly source: string;
  readonly from: string;
  readonly to: string;
  /** before_ledger | not_requested | history_unread | retired | unconfigured | daemon_stopped | journal_full | suspended | source_failing | behind */
  readonly reason: string;
  /** The reason as text, with the last error if there is one. */
  readonly message: string;
}

/** The lists of the report, without the summary. */
export interface LedgerTables<Windows extends LedgerReportWindows = readonly LedgerReportWindow[]> {
  /** The time of the report, and the requested period. Null: from the start of the ledger, or up to now. */
  readonly generatedAt: string;
  readonly from: string | null;
  readonly to: string | null;
  readonly sources: readonly LedgerReportSource<Windows>[];
  /** Operator actions in the period; `actor` is not authenticated. */
  readonly operations: readonly LedgerReportOperation[];
}

/** Sorted by start. A report may exceed memory, so the windows are not kept: each iteration reads them again. */
export type LedgerReportWindows = Iterable<LedgerReportWindow>;

export type LongLedgerReport = LedgerReport<LedgerReportWindows>;

export type LongLedgerReportSource = LedgerReportSource<LedgerReportWindows>;

export interface LedgerReportSource<Windows extends LedgerReportWindows = readonly LedgerReportWindow[]> {
  readonly id: string;
  /** active | suspended | unconfigured | retired */
  readonly state: string;
  /** Start of the ledger; null before the first response. */
  readonly startsAt: string | null;
  /** Every earlier window is proven or accepted; every earlier window was read. */
  readonly completeUntil: string | null;
  readonly readUntil: string | null;
  /** Records in the windows below, and the late ones among them. */
  readonly collected: number;
  readonly late: number;
  readonly lateDelays: LedgerReportDelays;
  /** The whole ledger: collected = inWindows + outside. Outside: in no closed window yet, or without a readable time. */
  readonly lifetime: { readonly collected: number; readonly inWindows: number; readonly outside: number };
  /** The ranges that the numbers cover: whole windows, without unread time. */
  readonly covered: readonly { readonly from: string; readonly to: string }[];
  readonly sinks: readonly LedgerReportSink[];
  /** Suspensions that the journal still stores, with their end. */
  readonly suspensions: readonly LedgerReportSuspension[];
  readonly windows: Windows;
}

/** `within`: records by delay, each in the first class that fits: 1h, 6h, 1d, 3d, 7d, 14d, 30d, later. */
export interface LedgerReportDelays {
  readonly longestSeconds: number | null;
  readonly within: Readonly<Record<string, number>>;
}

/** Delivery to one sink of the windows that begin at or after its start. */
export interface LedgerReportSink {
  readonly id: string;
  readonly type: string;
  readonly state: string;
  /** The sink receives records from this time on; null: all. */
  readonly since: string | null;
  /** The sink has a `filter`, so the ledger does not know how many records it should receive. */
  readonly filtered: boolean;
  readonly windows: number;
  readonly complete: number;
  /** Windows with delivered records that the sink lost; such a window is not complete. */
  readonly lost: number;
  /** Records of the complete windows minus dead letters; null when `filtered`. */
  readonly records: number | null;
  readonly deadLetters: number;
}

/** Delivery of one window, or of all windows of a day or month, to one sink. */
export interface LedgerReportSinkWindow {
  /** The sink acknowledged every record of the window and lost none. */
  readonly complete: boolean;
  readonly lost?: true;
  readonly deadLetters: number;
}

export interface LedgerReportSuspension {
  readonly at: string;
  /** `suspended`, `changed` (its reason or message while it lasts) or `active`. */
  readonly event: string;
  readonly reason: string | null;
  readonly message: string | null;
}

export interface LedgerReportOperation {
  readonly at: string;
  /** The name that the operator gave; null when unknown. */
  readonly actor: string | null;
  readonly operation: string;
  readonly detail: Readonly<Record<string, string | number | boolean>>;
}

/** `final`: proven, without further recounts. */
export type LedgerReportState = 'proven' | 'final' | 'gap' | 'accepted';

export interface LedgerReportWindow {
  readonly from: string;
  readonly to: string;
  readonly state: LedgerReportState;
  /** Of a gap; of a proven window `reread` if it is in doubt, `shrunk` if the service no longer shows all its records, else null. */
  readonly reason: string | null;
  readonly message: string | null;
  /** The count of the service for the query, which is wider than the window; for a gap the highest count seen. */
  readonly total: number | null;
  /** Distinct records received for the query; equal to `total` when proven. */
  readonly received: number;
  readonly records: number;
  readonly late: number;
  readonly lateLongestSeconds: number | null;
  readonly passes: number;
  /** Recounts done and recounts left; null for a gap or an unconfigured source. */
  readonly recounts: number;
  readonly recountsDue: number | null;
  readonly nextRecount: string | null;
  readonly closedAt: string | null;
  /** SHA-256 over the uids in the window (docs/guarantees.md), hex. */
  readonly digest: string | null;
  /** The bounds of the counted query, literally. */
  readonly query: WindowQuery;
  readonly sinks: Readonly<Record<string, LedgerReportSinkWindow>>;
}
