import { afterEach, expect, test } from 'vitest';
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts';
import { parseExposition, type Exposition } from './exposition.ts';
import { micros, sink, snapshot, source } from '../report/snapshots.ts';

let metrics: Metrics | undefined;
afterEach(async () => {
  await metrics?.[Symbol.asyncDispose]();
  metrics = undefined;
});

function start(): Metrics {
  return (metrics = createMetrics('0.1.0', 'a6486f3'));
}

function value(exposition: Exposition, name: string, labels: Record<string, string> = {}): number | undefined {
  const found = exposition.samples.filter((s) => s.name === name && JSON.stringify(sorted(s.labels)) === JSON.stringify(sorted(labels)));
  expect(found.length, `${name} ${JSON.stringify(labels)} stands there at most once`).toBeLessThanOrEqual(1);
  return found[0]?.value;
}

function sorted(labels: Readonly<Record<string, string>>): [string, string][] {
  return Object.entries(labels).sort(([a], [b]) => a.localeCompare(b));
}

// The contract's list (docs/metrics.md): name, type, labels besides those of a histogram. All that meters and a snapshot can feed.
const contract: readonly (readonly [string, string, readonly string[]])[] = [
  ['waybill_build_info', 'gauge', ['revision', 'version']],
  ['waybill_log_lines_lost_total', 'counter', []],
  ['waybill_state_created_timestamp_seconds', 'gauge', []],
  ['waybill_records_collected_total', 'counter', ['source']],
  ['waybill_records_late_total', 'counter', ['source']],
  ['waybill_record_delay_seconds', 'histogram', ['source']],
  ['waybill_frontier_timestamp_seconds', 'gauge', ['source']],
  ['waybill_frontier_lag_seconds', 'gauge', ['source']],
  ['waybill_source_close_delay_seconds', 'gauge', ['source']],
  ['waybill_source_last_success_timestamp_seconds', 'gauge', ['source']],
  ['waybill_last_record_timestamp_seconds', 'gauge', ['source']],
  ['waybill_source_state', 'gauge', ['source', 'state']],
  ['waybill_source_suspensions_total', 'counter', ['reason', 'source']],
  ['waybill_windows_shrunk_total', 'counter', ['source']],
  ['waybill_calibration_changes_total', 'counter', ['source']],
  ['waybill_windows', 'gauge', ['source', 'state']],
  ['waybill_gaps', 'gauge', ['source']],
  ['waybill_recounts_overdue', 'gauge', ['source']],
  ['waybill_clock_offset_seconds', 'gauge', ['source']],
  ['waybill_source_requests_total', 'counter', ['outcome', 'source']],
  ['waybill_source_request_duration_seconds', 'histogram', ['source']],
  ['waybill_records_unexpected_total', 'counter', ['source', 'tag']],
  ['waybill_events_delivered_total', 'counter', ['sink']],
  ['waybill_sink_lag_records', 'gauge', ['sink']],
  ['waybill_sink_lag_seconds', 'gauge', ['sink']],
  ['waybill_sink_state', 'gauge', ['sink', 'state']],
  ['waybill_sink_last_success_timestamp_seconds', 'gauge', ['sink']],
  ['waybill_delivery_delay_seconds', 'histogram', ['sink']],
  ['waybill_sink_duplicates_total', 'counter', ['sink']],
  ['waybill_sink_losses_total', 'counter', ['sink']],
  ['waybill_messages_truncated_total', 'counter', ['sink']],
  ['waybill_dead_letters', 'gauge', ['sink']],
  ['waybill_journal_bytes', 'gauge', []],
  ['waybill_journal_max_size_bytes', 'gauge', []],
  ['waybill_collection_paused', 'gauge', ['reason']],
  ['waybill_certificate_expiry_timestamp_seconds', 'gauge', ['target']],
];

test('every name, type and label on the wire is the one of the contract, and nothing else is there', async () => {
  const { meters, bind, text } = start();
  bind(() => snapshot());
  meters.recordDelay('production', 3);
  meters.sourceRequest('production', 'ok', 0.2);
  meters.recordsUnexpected('production', 'unknown_action');
  meters.deliveryDelay('siem', 12);
  const { samples, types } = parseExposition(await text());
  expect([...types].sort()).toEqual(contract.map(([name, type]) => [name, type]).sort());
  for (const [name, type, labels] of contract) {
    const names = type === 'histogram' ? [`${name}_count`, `${name}_sum`, `${name}_bucket`] : [name];
    for (const wire of names) {
      const of = samples.filter((s) => s.name === wire);
      expect(of.length, wire).toBeGreaterThan(0);
      const wanted = wire.endsWith('_bucket') ? [...labels, 'le'].sort() : [...labels];
      for (const sample of of) expect(Object.keys(sample.labels).sort(), wire).toEqual(wanted);
    }
  }
});

test('gauges say what the snapshot says at the moment of asking', async () => {
  const { bind, text } = start();
  let present = snapshot({
    sources: [
      source({ state: 'suspended', gaps: 2, windows: { proven: 400, gap: 2, accepted: 1 }, serverNow: micros('2026-11-20T03:05:00Z') }),
    ],
    sinks: [sink({ state: 'blocked', lagRecords: 90, lagSeconds: 61.5, deadLetters: 3 })],
    journal: { bytes: 9, maxSize: 10, head: 5, paused: 'journal_full: 97 % of 10 B are used', directory: '/state' },
  });
  bind(() => present);
  const first = parseExposition(await text());
  expect(value(first, 'waybill_frontier_timestamp_seconds', { source: 'production' })).toBe(1_795_142_700);
  expect(value(first, 'waybill_frontier_lag_seconds', { source: 'production' })).toBe(20 * 60);
  expect(value(first, 'waybill_source_state', { source: 'production', state: 'suspended' })).toBe(1);
  expect(value(first, 'waybill_source_state', { source: 'production', state: 'active' })).toBe(0);
  expect(value(first, 'waybill_windows', { source: 'production', state: 'accepted' })).toBe(1);
  expect(value(first, 'waybill_gaps', { source: 'production' })).toBe(2);
  expect(value(first, 'waybill_sink_state', { sink: 'siem', state: 'blocked' })).toBe(1);
  expect(value(first, 'waybill_sink_lag_seconds', { sink: 'siem' })).toBe(61.5);
  expect(value(first, 'waybill_dead_letters', { sink: 'siem' })).toBe(3);
  expect(value(first, 'waybill_collection_paused', { reason: 'journal_full' })).toBe(1);
  expect(value(first, 'waybill_collection_paused', { reason: 'disk' })).toBe(0);
  expect(value(first, 'waybill_certificate_expiry_timestamp_seconds', { target: 'sources.production' })).toBe(1_798_761_600);

  present = snapshot({ sources: [source({ lastSuccess: undefined, clockOffsetSeconds: undefined })], sinks: [] });
  const second = parseExposition(await text());
  expect(value(second, 'waybill_source_state', { source: 'production', state: 'suspended' })).toBe(0);
  expect(value(second, 'waybill_collection_paused', { reason: 'journal_full' })).toBe(0);
  expect(value(second, 'waybill_source_last_success_timestamp_seconds', { source: 'production' })).toBeUndefined();
  expect(second.samples.filter((s) => s.name.startsWith('waybill_sink_state'))).toEqual([]);
});

test('counters begin at 0 for every source and sink and then add up', async () => {
  const { meters, bind, text } = start();
  bind(() => snapshot({ sources: [source(), source({ id: 'test' })] }));
  const first = parseExposition(await text());
  expect(value(first, 'waybill_records_collected_total', { source: 'test' })).toBe(0);
  expect(value(first, 'waybill_events_delivered_total', { sink: 'siem' })).toBe(0);
  meters.recordsCollected('test', 40);
  meters.recordsCollected('test', 2);
  meters.sourceRequest('test', 'busy', 1);
  meters.sourceRequest('test', 'ok', 0.1);
  meters.sourceRequest('test', 'ok', 0.1);
  const second = parseExposition(await text());
  expect(value(second, 'waybill_records_collected_total', { source: 'test' })).toBe(42);
  expect(value(second, 'waybill_records_collected_total', { source: 'production' })).toBe(0);
  expect(value(second, 'waybill_source_requests_total', { source: 'test', outcome: 'ok' })).toBe(2);
  expect(value(second, 'waybill_source_request_duration_seconds_count', { source: 'test' })).toBe(3);
});

test('a record from a clock that is ahead is counted with a delay of 0, a record 20 days late in its bucket', async () => {
  const { meters, text } = start();
  meters.recordDelay('production', -4);
  meters.recordDelay('production', 20 * 86_400);
  const exposition = parseExposition(await text());
  expect(value(exposition, 'waybill_record_delay_seconds_bucket', { source: 'production', le: '1' })).toBe(1);
  expect(value(exposition, 'waybill_record_delay_seconds_bucket', { source: 'production', le: '1209600' })).toBe(1);
  expect(value(exposition, 'waybill_record_delay_seconds_bucket', { source: 'production', le: '2592000' })).toBe(2);
  expect(value(exposition, 'waybill_record_delay_seconds_sum', { source: 'production' })).toBe(1_728_000);
});

test('a snapshot that cannot be made is an error, not a page without gauges', async () => {
  const { bind, text } = start();
  bind(() => {
    throw new Error('database is closed');
  });
  await expect(text()).rejects.toThrow('cannot read the metrics');
});
