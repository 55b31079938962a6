/**
 * The metrics: what is counted while it happens (Meters), and gauges that are read from a Snapshot at each request. Names and labels are
 * those of docs/metrics.md, to the letter, on the wire; labels are ids and fixed values, never a part of a record.
 */
import type { Counter, Histogram } from '@opentelemetry/api';
import { PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import {
  AggregationTemporality,
  type AggregationTemporalitySelector,
  InstrumentType,
  MeterProvider,
  MetricReader,
} from '@opentelemetry/sdk-metrics';
import type { SuspensionReason } from '../model/ledger.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Meters } from '../model/telemetry.ts';
import type { Micros } from '../model/time.ts';
import { delayBounds } from './delays.ts';

export interface Metrics extends AsyncDisposable {
  readonly meters: Meters;
  /** Where the gauges come from, from now on. Before this only `waybill_build_info` and what was counted are there. */
  readonly bind: (snapshot: () => Snapshot) => void;
  /** The Prometheus text format, version 0.0.4. Rejects when the snapshot cannot be made. */
  readonly text: () => Promise<string>;
}

/** Upper bounds in seconds: requests end within their timeout, delivery within minutes or a sink's outage, records within the last recount. */
const requestBounds = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
const deliveryBounds = [1, 2, 5, 10, 30, 60, 300, 900, 3_600, 21_600, 86_400];

const sourceStates = ['active', 'suspended', 'unconfigured', 'retired'] as const;
const suspensionReasons: readonly SuspensionReason[] = ['fields', 'rows', 'forbidden', 'timestamp', 'clock'];
const sinkStates = ['active', 'retrying', 'blocked', 'unconfigured', 'retired'] as const;

export function createMetrics(version: string, revision: string, lostLines: () => number = () => 0): Metrics {
  const reader = new PullReader();
  const provider = new MeterProvider({ readers: [reader] });
  const meter = provider.getMeter('waybill');
  // Neither scope labels nor target_info: the names on the wire are a contract.
  const serializer = new PrometheusSerializer(undefined, false, undefined, true, true);
  let snapshot: (() => Snapshot) | undefined;

  const counter = (name: string, description: string): Counter => meter.createCounter(name, { description });
  const histogram = (name: string, description: string, explicitBucketBoundaries: number[]): Histogram =>
    meter.createHistogram(name, { description, advice: { explicitBucketBoundaries } });

  const collected = counter('waybill_records_collected_total', 'Records appended to the journal');
  const late = counter('waybill_records_late_total', 'Records first seen after their window was closed');
  const recordDelay = histogram('waybill_record_delay_seconds', 'First seen minus logTimestamp', [...delayBounds]);
  const requests = counter('waybill_source_requests_total', 'Requests to the source, by outcome');
  const requestDuration = histogram('waybill_source_request_duration_seconds', 'Duration of requests to the source', requestBounds);
  const suspensions = counter('waybill_source_suspensions_total', 'Suspensions that started, by reason');
  const shrunk = counter('waybill_windows_shrunk_total', 'Windows of which the service shows fewer records than it did');
  const calibrations = counter('waybill_calibration_changes_total', 'Calibrations that found another service than the one before');
  const unexpected = counter('waybill_records_unexpected_total', 'Records with unexpected content, by tag');
  const delivered = counter('waybill_events_delivered_total', 'Messages accepted by the sink');
  const deliveryDelay = histogram('waybill_delivery_delay_seconds', 'logTimestamp to accepted by the sink', deliveryBounds);
  const duplicates = counter('waybill_sink_duplicates_total', 'Messages that the sink reported as already present');
  const losses = counter('waybill_sink_losses_total', 'Times that a sink lost delivered records');
  const truncated = counter('waybill_messages_truncated_total', 'Messages truncated to what the frames of the sink can carry');

  const build = meter.createObservableGauge('waybill_build_info', { description: 'Always 1; the release that runs' });
  build.addCallback((result) => result.observe(1, { version, revision }));
  const lost = meter.createObservableCounter('waybill_log_lines_lost_total', { description: 'Log lines that could not be written' });
  lost.addCallback((result) => result.observe(lostLines()));
  const read = gauges().map(([name, description, observe]) => ({ gauge: meter.createObservableGauge(name, { description }), observe }));
  // One snapshot for all gauges: it asks the journal.
  meter.addBatchObservableCallback(
    (result) => {
      const now = snapshot?.();
      if (!now) return;
      for (const { gauge, observe } of read) observe(now, (value, labels) => result.observe(gauge, value, labels));
      // A counter begins at 0, so that its first increase is an increase. Callbacks run before the counters are read.
      for (const { id } of now.sources) for (const one of [collected, late, shrunk, calibrations]) one.add(0, { source: id });
      for (const { id } of now.sources) for (const reason of suspensionReasons) suspensions.add(0, { source: id, reason });
      for (const { id } of now.sinks) for (const one of [delivered, duplicates, losses, truncated]) one.add(0, { sink: id });
    },
    read.map(({ gauge }) => gauge),
  );

  return {
    meters: {
      recordsCollected: (source, count) => collected.add(count, { source }),
      recordsLate: (source, count) => late.add(count, { source }),
      recordDelay: (source, seconds) => recordDelay.record(notNegative(seconds), { source }),
      sourceRequest: (source, outcome, seconds) => {
        requests.add(1, { source, outcome });
        requestDuration.record(notNegative(seconds), { source });
      },
      sourceSuspended: (source, reason) => suspensions.add(1, { source, reason }),
      windowShrunk: (source) => shrunk.add(1, { source }),
      calibrationChanged: (source) => calibrations.add(1, { source }),
      recordsUnexpected: (source, tag) => unexpected.add(1, { source, tag }),
      eventsDelivered: (sink, count) => delivered.add(count, { sink }),
      deliveryDelay: (sink, seconds) => deliveryDelay.record(notNegative(seconds), { sink }),
      sinkDuplicates: (sink, count) => duplicates.add(count, { sink }),
      sinkLoss: (sink) => losses.add(1, { sink }),
      messageTruncated: (sink) => truncated.add(1, { sink }),
    },
    bind: (from) => (snapshot = from),
    text: async () => {
      const { resourceMetrics, errors } = await reader.collect();
      if (errors.length > 0) throw new AggregateError(errors, 'cannot read the metrics');
      // The exporter brings a patch release of the SDK of its own: the same enums by another declaration.
      // eslint-disable-next-line @typescript-eslint/no-unsafe-enum-assignment
      return serializer.serialize(resourceMetrics);
    },
    [Symbol.asyncDispose]: () => provider.shutdown(),
  };
}

/** Cumulative, a gauge would repeat for ever the last value of a sink that was retired. */
const aggregationTemporalitySelector: AggregationTemporalitySelector = (type) =>
  type === InstrumentType.OBSERVABLE_GAUGE ? AggregationTemporality.DELTA : AggregationTemporality.CUMULATIVE;

/** Reads when it is asked to: the exporter's own reader brings a web server, and keeps gauges of what is gone. */
class PullReader extends MetricReader {
  constructor() {
    super({ aggregationTemporalitySelector });
  }
  protected override async onForceFlush(): Promise<void> {}
  protected override async onShutdown(): Promise<void> {}
}

type Result = (value: number, labels?: Record<string, string>) => void;
type Observe = (snapshot: Snapshot, result: Result) => void;

function gauges(): readonly (readonly [name: string, description: string, observe: Observe])[] {
  return [
    ['waybill_state_created_timestamp_seconds', 'When the state was created', (s, r) => r(seconds(s.created))],
    [
      'waybill_frontier_timestamp_seconds',
      'The instant before which every window is proven or accepted',
      ofSources((s) => seconds(s.frontier)),
    ],
    [
      'waybill_frontier_lag_seconds',
      'Server time minus frontier',
      ofSources((s, now) => Math.max(0, seconds((s.serverNow ?? now) - s.frontier))),
    ],
    ['waybill_source_close_delay_seconds', 'The age at which a window is closed', ofSources((s) => s.closeDelaySeconds)],
    ['waybill_source_last_success_timestamp_seconds', 'The last good answer of the source', ofSources((s) => seconds(s.lastSuccess))],
    ['waybill_last_record_timestamp_seconds', 'logTimestamp of the newest record', ofSources((s) => seconds(s.lastRecord))],
    [
      'waybill_source_state',
      '1 for the state the source is in',
      (s, r) => s.sources.forEach((one) => oneOf(r, 'state', sourceStates, one.state, { source: one.id })),
    ],
    ['waybill_windows', 'Windows in the ledger, by state', windows],
    ['waybill_gaps', 'Windows that could not be proven and were not accepted', ofSources((s) => s.gaps)],
    ['waybill_recounts_overdue', 'Recounts whose time has passed', ofSources((s) => s.recountsOverdue)],
    ['waybill_clock_offset_seconds', 'Server clock minus clock of this machine', ofSources((s) => s.clockOffsetSeconds)],
    ['waybill_sink_lag_records', 'Entries of the journal the sink has not acknowledged', ofSinks((s) => s.lagRecords)],
    ['waybill_sink_lag_seconds', 'Age of the oldest entry the sink has not acknowledged', ofSinks((s) => s.lagSeconds)],
    [
      'waybill_sink_state',
      '1 for the state the sink is in',
      (s, r) => s.sinks.forEach((one) => oneOf(r, 'state', sinkStates, one.state, { sink: one.id })),
    ],
    ['waybill_sink_last_success_timestamp_seconds', 'The last batch the sink accepted', ofSinks((s) => seconds(s.lastSuccess))],
    ['waybill_dead_letters', 'Records that the sink rejected for good, kept', ofSinks((s) => s.deadLetters)],
    ['waybill_journal_bytes', 'Used size of the journal', (s, r) => r(s.journal.bytes)],
    ['waybill_journal_max_size_bytes', 'The size at which collecting pauses', (s, r) => r(s.journal.maxSize)],
    [
      'waybill_certificate_expiry_timestamp_seconds',
      'When a certificate in use ends',
      (s, r) => s.certificates?.forEach(({ target, at }) => r(seconds(at), { target })),
    ],
    ['waybill_collection_paused', '1 while collecting pauses for this reason', paused],
  ];
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

function windows(snapshot: Snapshot, result: Result): void {
  for (const { id, windows: of } of snapshot.sources) {
    for (const state of ['proven', 'gap', 'accepted'] as const) result(of[state], { source: id, state });
  }
}

/** The reason is one of a few codes, so that the label has few values; the sentence behind it is for `status`. */
function paused(snapshot: Snapshot, result: Result): void {
  const reason = snapshot.journal.paused === undefined ? undefined : (/^[a-z_]+/.exec(snapshot.journal.paused)?.[0] ?? 'other');
  oneOf(result, 'reason', ['journal_full', 'disk'], reason, {});
}

/** Every known value with 0, the present one with 1: a series that only disappears cannot be alerted on. */
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

/** The other machine's clock may be ahead; a histogram takes no number below 0 and would drop the sample. */
function notNegative(value: number): number {
  return Math.max(0, value);
}
