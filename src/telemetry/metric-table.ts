/**
 * The table of metrics, from which metrics.ts creates the instruments and docs/metrics.md is generated. Labels are ids of the configuration
 * and fixed values, never a part of a record. A metric's name ends with its unit.
 */
import { suspensionReasons } from '../model/ledger.ts';

export interface Metric {
  readonly type: 'counter' | 'gauge' | 'histogram';
  /** Label names, separated by spaces. */
  readonly labels: string;
  /** The HELP line. */
  readonly help: string;
  /** Further sentences for docs/metrics.md. */
  readonly note?: string;
}

export const metricTable = {
  process_start_time_seconds: { type: 'gauge', labels: '', help: 'Start time of the process since the Unix epoch' },
  process_cpu_seconds_total: { type: 'counter', labels: '', help: 'Total user and system CPU time' },
  process_resident_memory_bytes: { type: 'gauge', labels: '', help: 'Resident memory size' },
  process_open_fds: { type: 'gauge', labels: '', help: 'Number of open file descriptors', note: 'Linux only.' },
  waybill_build_info: { type: 'gauge', labels: 'version revision', help: 'Always 1; the labels name the running release' },
  waybill_log_lines_lost_total: {
    type: 'counter',
    labels: '',
    help: 'Log lines that could not be written',
    note: 'The reader of the log is stuck or closed, or its disk is full.',
  },
  waybill_config_last_reload_successful: {
    type: 'gauge',
    labels: '',
    help: '0 after a changed configuration was rejected, else 1',
    note: 'While it is 0, the daemon runs with the configuration before the change. The event `config.rejected` has the reasons.',
  },
  waybill_state_created_timestamp_seconds: {
    type: 'gauge',
    labels: '',
    help: 'Creation time of the state',
    note: 'An unexpected recent time means that the volume was lost.',
  },
  waybill_journal_bytes: {
    type: 'gauge',
    labels: '',
    help: 'Size of the journal, as journal.maxSize limits it',
    note: 'Pages of the database file and its WAL. At least 62.5 MiB count for the WAL, or an eighth of a `maxSize` below 500 MiB.',
  },
  waybill_journal_max_size_bytes: {
    type: 'gauge',
    labels: '',
    help: 'journal.maxSize',
    note: 'Collection pauses at 97 % of it and resumes below 90 %.',
  },
  waybill_collection_paused: {
    type: 'gauge',
    labels: 'reason',
    help: '1 while collection is paused for this reason, else 0',
    note: 'Reasons: `journal_full`, `disk`.',
  },
  waybill_certificate_expiry_timestamp_seconds: {
    type: 'gauge',
    labels: 'target',
    help: 'Expiry time of a certificate in use',
    note:
      'Server certificates: `sources.ID`, `sources.ID.auth`, `sinks.ID` (if it has several servers, the certificate that expires first). Own certificates: ' +
      '`sources.ID.tls.cert`, `sources.ID.auth.tls.cert`, `sinks.ID.tls.cert`, `admin.tls.cert`.',
  },
  waybill_members: {
    type: 'gauge',
    labels: '',
    help: 'Members of the fleet',
    note: 'Each member exports the same number, and the same of `waybill_shards`, `waybill_shard_takes` and `waybill_rollbacks`: use `max`.',
  },
  waybill_shards: {
    type: 'gauge',
    labels: 'state',
    help: 'Shards of the fleet, by state',
    note: 'States: `owned`, `free` (no member has a lease).',
  },
  waybill_shard_takes: { type: 'gauge', labels: '', help: 'Take-overs of shards since the setup of the fleet' },
  waybill_rollbacks: {
    type: 'gauge',
    labels: 'outcome',
    help: 'Roll-backs of a shard by its database since the setup of the fleet',
    note: 'Outcomes: `repaired` (the owner wrote the lost rows again), `lost`.',
  },
  waybill_shards_opened: { type: 'gauge', labels: '', help: 'Shards that this member owns and has opened' },
  waybill_leases_lost_total: { type: 'counter', labels: '', help: 'Shards that this member did not give up, and that it owns no longer' },
  waybill_database_last_success_timestamp_seconds: {
    type: 'gauge',
    labels: '',
    help: 'Time of the last answer of the database of the fleet to this member',
    note: 'It asks five times in the time of a lease.',
  },
  waybill_database_commit_seconds: {
    type: 'histogram',
    labels: '',
    help: 'Time from the first attempt of a commit of a shard until the database has it',
  },
  waybill_records_collected_total: {
    type: 'counter',
    labels: 'source',
    help: 'Records appended to the journal',
    note: 'Each record counts once.',
  },
  waybill_records_late_total: { type: 'counter', labels: 'source', help: 'Records first seen after their window was closed' },
  waybill_record_delay_seconds: {
    type: 'histogram',
    labels: 'source',
    help: 'Time from logTimestamp until the record was first seen',
    note: 'A time in the future counts as 0. Records of a backfill, and records that an outage delayed, do not count.',
  },
  waybill_records_unexpected_total: { type: 'counter', labels: 'source tag', help: 'Records with unexpected content, by tag' },
  waybill_complete_until_timestamp_seconds: {
    type: 'gauge',
    labels: 'source',
    help: 'Time before which every window was proven once or is accepted',
    note: 'Absent until a window is proven. `waybill_windows` counts the windows in doubt among them.',
  },
  waybill_completeness_lag_seconds: {
    type: 'gauge',
    labels: 'source',
    help: 'Age of the oldest time that is not proven, by the time of the service',
    note: 'Normally at most about twice `closeDelay`.',
  },
  waybill_source_close_delay_seconds: { type: 'gauge', labels: 'source', help: 'closeDelay: the age at which a window is closed' },
  waybill_source_last_success_timestamp_seconds: { type: 'gauge', labels: 'source', help: 'Time of the last successful response' },
  waybill_last_record_timestamp_seconds: { type: 'gauge', labels: 'source', help: 'logTimestamp of the newest record' },
  waybill_source_state: {
    type: 'gauge',
    labels: 'source state',
    help: '1 for the current state of the source, 0 for the others',
    note: 'States: `active`, `waiting`, `catching up`, `failing`, `paused`, `suspended`, `unconfigured`, `retired`, the words of `status`.',
  },
  waybill_source_suspensions_total: {
    type: 'counter',
    labels: 'source reason',
    help: 'Suspensions, by reason',
    note: `Reasons: ${suspensionReasons.map((reason) => `\`${reason}\``).join(', ')}.`,
  },
  waybill_source_requests_total: { type: 'counter', labels: 'source outcome', help: 'Requests to the source, by outcome' },
  waybill_source_request_duration_seconds: { type: 'histogram', labels: 'source', help: 'Duration of requests to the source' },
  waybill_calibration_changes_total: {
    type: 'counter',
    labels: 'source',
    help: 'Calibrations that found changed behaviour of the service',
  },
  waybill_clock_offset_seconds: { type: 'gauge', labels: 'source', help: 'Clock of the service minus the local clock' },
  waybill_windows: {
    type: 'gauge',
    labels: 'source state',
    help: 'Windows in the ledger, by state',
    note: 'Each window counts once. States: `proven` (final windows included), `gap`, `accepted`, `in_doubt` (proven once; a later count or a suspension contradicts it).',
  },
  waybill_gaps: { type: 'gauge', labels: 'source', help: 'Gaps: windows whose last read did not prove them' },
  waybill_windows_shrunk_total: {
    type: 'counter',
    labels: 'source',
    help: 'Windows for which the service shows fewer records than before',
  },
  waybill_recounts_overdue: { type: 'gauge', labels: 'source', help: 'Overdue recounts' },
  waybill_events_delivered_total: { type: 'counter', labels: 'sink', help: 'Messages accepted by the sink' },
  waybill_delivery_delay_seconds: {
    type: 'histogram',
    labels: 'sink',
    help: 'Time from logTimestamp until the sink accepted the message',
    note: 'One sample for each batch: the delay of its oldest message.',
  },
  waybill_sink_retries_total: { type: 'counter', labels: 'sink', help: 'Failed attempts, each followed by a retry' },
  waybill_sink_lag_entries: { type: 'gauge', labels: 'sink', help: 'Journal entries not yet acknowledged by the sink' },
  waybill_sink_lag_seconds: { type: 'gauge', labels: 'sink', help: 'Age of the oldest journal entry not yet acknowledged by the sink' },
  waybill_sink_state: {
    type: 'gauge',
    labels: 'sink state',
    help: '1 for the current state of the sink, 0 for the others',
    note: 'States: `active`, `waiting`, `retrying`, `blocked`, `unconfigured`, `retired`, the words of `status`.',
  },
  waybill_sink_last_success_timestamp_seconds: { type: 'gauge', labels: 'sink', help: 'Time of the last accepted batch' },
  waybill_archive_time_stamp_timestamp_seconds: {
    type: 'gauge',
    labels: 'sink',
    help: 'Time of the newest time stamp (RFC 3161) of the archive',
    note: 'Only for a sink `archive` with `timestamp`. A value older than two days means that the time-stamping authority does not answer.',
  },
  waybill_archive_cosignature_timestamp_seconds: {
    type: 'gauge',
    labels: 'sink witness',
    help: 'Time of the newest cosignature of the archive by the witness; 0 without any',
    note: 'Only for a sink `archive` with `witnesses`. The alert WaybillCosignatureOld fires 3 hours after it.',
  },
  waybill_sink_replay_failed: {
    type: 'gauge',
    labels: 'sink',
    help: '1 while the archive of a replay to the sink cannot be read',
    note: 'New records are delivered, and attempts continue.',
  },
  waybill_sink_dropped_total: {
    type: 'counter',
    labels: 'sink',
    help: 'Messages that the receiver dropped by its own configuration, counted as delivered',
  },
  waybill_sink_duplicates_total: { type: 'counter', labels: 'sink', help: 'Messages that the sink reported as already present' },
  waybill_sink_losses_total: {
    type: 'counter',
    labels: 'sink',
    help: 'Losses of delivered records that the sink reported',
    note: 'A file was truncated or deleted.',
  },
  waybill_messages_truncated_total: { type: 'counter', labels: 'sink', help: 'Messages truncated to the maximum size of the receiver' },
  waybill_dead_letters: { type: 'gauge', labels: 'sink', help: 'Records that the sink rejected permanently' },
} as const satisfies Readonly<Record<string, Metric>>;

/** `seconds`, `bytes`, or empty for a number. */
export function unitOf(name: string): string {
  return /_(seconds|bytes)(?:_total)?$/.exec(name)?.[1] ?? '';
}

type MetricName = keyof typeof metricTable;
export type NameOf<Type extends Metric['type']> = {
  [Name in MetricName]: (typeof metricTable)[Name]['type'] extends Type ? Name : never;
}[MetricName];
