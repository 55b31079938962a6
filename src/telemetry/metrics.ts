/** The instruments of the metric table: counters and histograms (Meters), and gauges read from a Snapshot at each scrape. */
import { existsSync, readdirSync } from 'node:fs';
import type { Counter, Histogram, Meter, ObservableGauge } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  type AggregationTemporalitySelector,
  type IMetricReader,
  InstrumentType,
  MeterProvider,
  MetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics';
import { completeUntil, suspensionReasons } from '../model/ledger.ts';
import { staleSeconds, type MemberSnapshot, type Snapshot } from '../model/snapshot.ts';
import type { Meters } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import { delayBounds } from './delays.ts';
import { exposition } from './exposition.ts';
import { metricTable, unitOf, type NameOf } from './metric-table.ts';

export interface Metrics extends AsyncDisposable {
  readonly meters: Meters;
  /** Sets the source of the gauges. Before it is set, only process metrics, `waybill_build_info` and counters are served. */
  readonly bind: (snapshot: (() => Snapshot | Promise<Snapshot>) | undefined) => void;
  /** Prometheus text format 0.0.4. Rejects when the snapshot fails. */
  readonly text: () => Promise<string>;
}

/** Upper bounds in seconds: a request ends within its timeout, a delivery within minutes or after an outage of the sink. */
const requestBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const commitBounds = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];
const deliveryBounds = [1, 2, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400];

/** The units of OpenTelemetry (UCUM). */
const ucumUnits: Readonly<Record<string, string>> = { seconds: 's', bytes: 'By' };

const sourceStates = ['active', 'waiting', 'catching up', 'failing', 'paused', 'suspended', 'unconfigured', 'retired'] as const;
const sinkStates = ['active', 'waiting', 'retrying', 'blocked', 'unconfigured', 'retired'] as const;

type Instruments = ReturnType<typeof createInstruments>;

/** @param telemetry  exports the same instruments; default none */
export function createMetrics(
  version: string,
  revision: string,
  lostLines: () => number = () => 0,
  telemetry?: { readonly reader?: IMetricReader | undefined; readonly resource?: Resource | undefined },
): Metrics {
  const reader = new PullReader();
  const { resource } = telemetry ?? {};
  const provider = new MeterProvider({
    readers: telemetry?.reader ? [reader, telemetry.reader] : [reader],
    ...(resource && { resource }),
  });
  const meter = provider.getMeter('waybill');
  let snapshot: (() => Snapshot | Promise<Snapshot>) | undefined;

  const instruments = createInstruments(meter);
  observeProcess(meter, lostLines);
  gauge(meter, 'waybill_build_info').addCallback((result) => result.observe(1, { version, revision }));
  observeSnapshot(meter, instruments, () => snapshot?.());
  return {
    meters: metersOf(instruments),
    bind: (from) => (snapshot = from),
    text: async () => {
      const { resourceMetrics, errors } = await reader.collect();
      if (errors.length > 0) throw new AggregateError(errors, 'cannot read the metrics');
      return exposition(resourceMetrics);
    },
    [Symbol.asyncDispose]: () => provider.shutdown(),
  };
}

function createInstruments(meter: Meter) {
  const counter = (name: NameOf<'counter'>): Counter => meter.createCounter(name, described(name));
  const histogram = (name: NameOf<'histogram'>, explicitBucketBoundaries: number[]): Histogram =>
    meter.createHistogram(name, { ...described(name), advice: { explicitBucketBoundaries } });
  return {
    collected: counter('waybill_records_collected_total'),
    late: counter('waybill_records_late_total'),
    recordDelay: histogram('waybill_record_delay_seconds', [...delayBounds]),
    requests: counter('waybill_source_requests_total'),
    requestDuration: histogram('waybill_source_request_duration_seconds', requestBounds),
    suspensions: counter('waybill_source_suspensions_total'),
    shrunk: counter('waybill_windows_shrunk_total'),
    calibrations: counter('waybill_calibration_changes_total'),
    unexpected: counter('waybill_records_unexpected_total'),
    delivered: counter('waybill_events_delivered_total'),
    deliveryDelay: histogram('waybill_delivery_delay_seconds', deliveryBounds),
    retries: counter('waybill_sink_retries_total'),
    dropped: counter('waybill_sink_dropped_total'),
    duplicates: counter('waybill_sink_duplicates_total'),
    losses: counter('waybill_sink_losses_total'),
    truncated: counter('waybill_messages_truncated_total'),
    commits: histogram('waybill_database_commit_seconds', commitBounds),
    leasesLost: counter('waybill_leases_lost_total'),
  };
}

function described(name: keyof typeof metricTable): { readonly description: string; readonly unit: string } {
  return { description: metricTable[name].help, unit: ucumUnits[unitOf(name)] ?? '' };
}

function metersOf(to: Instruments): Meters {
  return {
    recordsCollected: (source, count) => to.collected.add(count, { source }),
    recordsLate: (source, count) => to.late.add(count, { source }),
    recordDelay: (source, seconds) => to.recordDelay.record(notNegative(seconds), { source }),
    sourceRequest: (source, outcome, seconds) => {
      to.requests.add(1, { source, outcome });
      to.requestDuration.record(notNegative(seconds), { source });
    },
    sourceSuspended: (source, reason) => to.suspensions.add(1, { source, reason }),
    windowShrunk: (source) => to.shrunk.add(1, { source }),
    calibrationChanged: (source) => to.calibrations.add(1, { source }),
    recordsUnexpected: (source, tag) => to.unexpected.add(1, { source, tag }),
    eventsDelivered: (sink, count) => to.delivered.add(count, { sink }),
    deliveryDelay: (sink, seconds) => to.deliveryDelay.record(notNegative(seconds), { sink }),
    sinkRetried: (sink) => to.retries.add(1, { sink }),
    sinkDropped: (sink, count) => to.dropped.add(count, { sink }),
    sinkDuplicates: (sink, count) => to.duplicates.add(count, { sink }),
    sinkLoss: (sink) => to.losses.add(1, { sink }),
    messageTruncated: (sink) => to.truncated.add(1, { sink }),
    databaseCommit: (seconds) => to.commits.record(seconds),
    leaseLost: () => to.leasesLost.add(1),
  };
}

function observeProcess(meter: Meter, lostLines: () => number): void {
  const observedCounter = (name: NameOf<'counter'>, read: () => number): void =>
    meter.createObservableCounter(name, described(name)).addCallback((result) => result.observe(read()));
  observedCounter('waybill_log_lines_lost_total', lostLines);
  observedCounter('process_cpu_seconds_total', cpuSeconds);
  for (const [name, read] of Object.entries(processGauges))
    gauge(meter, name as keyof typeof processGauges).addCallback((result) => {
      const value = read();
      if (value !== undefined) result.observe(value);
    });
}

/** One callback serves all gauges, because each snapshot queries the journal. */
function observeSnapshot(meter: Meter, instruments: Instruments, snapshot: () => Snapshot | Promise<Snapshot> | undefined): void {
  const gauges = Object.entries(snapshotGauges).map(([name, observe]) => ({ gauge: gauge(meter, name as NameOf<'gauge'>), observe }));
  meter.addBatchObservableCallback(
    async (result) => {
      const now = await snapshot();
      if (!now) return;
      for (const { gauge: observed, observe } of gauges) observe(now, (value, labels) => result.observe(observed, value, labels));
      // The SDK runs callbacks before it reads the counters.
      startAtZero(instruments, now);
    },
    gauges.map(({ gauge: observed }) => observed),
  );
}

/** Prometheus misses the first increase of a counter that does not start at 0. */
function startAtZero(instruments: Instruments, { sources, sinks, member }: Snapshot): void {
  const { collected, late, shrunk, calibrations, suspensions, delivered, retries, dropped, duplicates, losses, truncated } = instruments;
  if (member) instruments.leasesLost.add(0);
  for (const { id } of sources) {
    for (const counter of [collected, late, shrunk, calibrations]) counter.add(0, { source: id });
    for (const reason of suspensionReasons) suspensions.add(0, { source: id, reason });
  }
  for (const { id } of sinks)
    for (const counter of [delivered, retries, dropped, duplicates, losses, truncated]) counter.add(0, { sink: id });
}

function gauge(meter: Meter, name: NameOf<'gauge'>): ObservableGauge {
  return meter.createObservableGauge(name, described(name));
}

/** A cumulative gauge would repeat the last value of a retired sink. */
const aggregationTemporalitySelector: AggregationTemporalitySelector = (type) =>
  type === InstrumentType.OBSERVABLE_GAUGE ? AggregationTemporality.DELTA : AggregationTemporality.CUMULATIVE;

/** Omits gauges of removed sources and sinks, as the Prometheus text does. OTLP gauges have no temporality: nothing else changes. */
export function withoutStaleGauges<Exporter extends PushMetricExporter>(exporter: Exporter): Exporter {
  const preferred = exporter.selectAggregationTemporality?.bind(exporter);
  exporter.selectAggregationTemporality = (type) =>
    type === InstrumentType.OBSERVABLE_GAUGE || !preferred ? aggregationTemporalitySelector(type) : preferred(type);
  return exporter;
}

class PullReader extends MetricReader {
  constructor() {
    super({ aggregationTemporalitySelector });
  }
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

type Result = (value: number, labels?: Record<string, string>) => void;
type Observe = (snapshot: Snapshot, result: Result) => unknown;

/** Read at each scrape. */
const processGauges = {
  process_start_time_seconds: () => performance.timeOrigin / 1_000,
  process_resident_memory_bytes: () => process.memoryUsage.rss(),
  process_open_fds: openFiles,
} as const satisfies Partial<Record<NameOf<'gauge'>, () => number | undefined>>;

/** A gauge of the table without an observer is a type error. */
const snapshotGauges: Readonly<Record<Exclude<NameOf<'gauge'>, keyof typeof processGauges | 'waybill_build_info'>, Observe>> = {
  waybill_config_last_reload_successful: (s, r) => r(s.rejected ? 0 : 1),
  // A member without a shard knows no state.
  waybill_state_created_timestamp_seconds: (s, r) => s.member?.opened === 0 || r(seconds(s.created)),
  waybill_complete_until_timestamp_seconds: ofSources((s) => seconds(completeUntil(s))),
  waybill_completeness_lag_seconds: ofSources((s, now) =>
    s.frontier === 0 ? undefined : Math.max(0, seconds((s.serverNow ?? now) - s.frontier)),
  ),
  waybill_source_close_delay_seconds: ofSources((s) => s.closeDelaySeconds),
  waybill_source_last_success_timestamp_seconds: ofSources((s) => seconds(s.lastSuccess)),
  waybill_last_record_timestamp_seconds: ofSources((s) => seconds(s.lastRecord)),
  waybill_source_state: (s, r) => s.sources.forEach((one) => oneOf(r, 'state', sourceStates, one.state, { source: one.id })),
  waybill_windows: windows,
  waybill_gaps: ofSources((s) => s.windows.gap),
  waybill_recounts_overdue: ofSources((s) => s.recountsOverdue),
  waybill_clock_offset_seconds: ofSources((s) => s.clockOffsetSeconds),
  waybill_sink_lag_entries: ofSinks((s) => s.lagEntries),
  waybill_sink_lag_seconds: ofSinks((s) => s.lagSeconds),
  waybill_sink_state: (s, r) => s.sinks.forEach((one) => oneOf(r, 'state', sinkStates, one.state, { sink: one.id })),
  waybill_sink_last_success_timestamp_seconds: ofSinks((s) => seconds(s.lastSuccess)),
  waybill_archive_time_stamp_timestamp_seconds: ofSinks((s) => seconds(s.timeStamp?.newest)),
  waybill_archive_cosignature_timestamp_seconds: (s, r) =>
    s.sinks.forEach(({ id, cosignatures }) =>
      cosignatures?.forEach(({ witness, newest }) => r(seconds(newest ?? 0), { sink: id, witness })),
    ),
  waybill_sink_replay_failed: ofSinks((s) => (s.replays?.[0]?.state === 'failed' ? 1 : 0)),
  waybill_dead_letters: ofSinks((s) => s.deadLetters),
  waybill_journal_bytes: (s, r) => r(s.journal.bytes),
  waybill_journal_max_size_bytes: (s, r) => r(s.journal.maxSize),
  waybill_certificate_expiry_timestamp_seconds: (s, r) => s.certificates?.forEach(({ target, at }) => r(seconds(at), { target })),
  waybill_collection_paused: paused,
  waybill_members: ofFleet((counts, r) => r(counts.members)),
  waybill_shards: ofFleet(({ shards, free }, r) => {
    r(shards - free, { state: 'owned' });
    r(free, { state: 'free' });
  }),
  waybill_shard_takes: ofFleet(({ takes }, r) => r(takes)),
  waybill_rollbacks: ofFleet(({ repaired, lost }, r) => {
    r(repaired, { outcome: 'repaired' });
    r(lost, { outcome: 'lost' });
  }),
  waybill_shards_opened: ({ member }, r) => member && r(member.opened),
  waybill_database_last_success_timestamp_seconds: ({ member }, r) => member?.counts && r(seconds(member.counts.at)),
};

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

/** Undefined if the system has no /proc. */
function openFiles(): number | undefined {
  return existsSync('/proc/self/fd') ? readdirSync('/proc/self/fd').length : undefined;
}

function ofSources(value: (source: Snapshot['sources'][number], now: Micros) => number | undefined): Observe {
  return (snapshot, result) => {
    for (const source of snapshot.sources) {
      const number = value(source, snapshot.now);
      if (number !== undefined) result(number, { source: source.id });
    }
  };
}

function ofSinks(value: (sink: Snapshot['sinks'][number]) => number | undefined): Observe {
  return (snapshot, result) => {
    for (const sink of snapshot.sinks) {
      const number = value(sink);
      if (number !== undefined) result(number, { sink: sink.id });
    }
  };
}

function ofFleet(observe: (counts: NonNullable<MemberSnapshot['counts']>, result: Result) => void): Observe {
  // Old counts would keep an alert that is over.
  return ({ member, now }, result) => member?.counts && now - member.counts.at < staleSeconds * 1e6 && observe(member.counts, result);
}

function windows(snapshot: Snapshot, result: Result): void {
  for (const { id, windows: of } of snapshot.sources) {
    for (const state of ['proven', 'gap', 'accepted'] as const) result(of[state], { source: id, state });
    result(of.inDoubt, { source: id, state: 'in_doubt' });
  }
}

/** The label is the code in front of the message, so that it has few values. */
function paused(snapshot: Snapshot, result: Result): void {
  const reason = snapshot.journal.paused === undefined ? undefined : (/^[a-z_]+/.exec(snapshot.journal.paused)?.[0] ?? 'other');
  oneOf(result, 'reason', ['journal_full', 'disk'], reason, {});
}

/** Reports 1 for the current value and 0 for every other known value: an alert cannot match a series that disappears. */
function oneOf(result: Result, label: string, known: readonly string[], present: string | undefined, labels: Record<string, string>): void {
  for (const value of new Set([...known, ...(present === undefined ? [] : [present])])) {
    result(value === present ? 1 : 0, { ...labels, [label]: value });
  }
}

function seconds(at: Micros): number;
function seconds(at: Micros | undefined): number | undefined;
function seconds(at: Micros | undefined): number | undefined {
  return at === undefined ? undefined : at / 1e6;
}

/** The clock of the service may be ahead; a histogram drops negative samples. */
function notNegative(value: number): number {
  return Math.max(0, value);
}
