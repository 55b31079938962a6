import { readdirSync, readFileSync } from 'node:fs';
import { afterEach, expect, test } from 'vitest';
import type { Meters } from '../../../src/model/telemetry.ts';
import { metricTable, unitOf } from '../../../src/telemetry/metric-table.ts';
import type { Metric } from '../../../src/telemetry/metric-table.ts';
import { createMetrics, type Metrics } from '../../../src/telemetry/metrics.ts';
import { parseExposition, type Exposition } from '../../support/telemetry/exposition.ts';
import { windowStates, micros, now, sink, snapshot, source } from '../../support/report/snapshots.ts';

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

const families = Object.entries<Metric>(metricTable);

test('every metric of the table is exposed with its type and labels, and no other', async () => {
  const { meters, bind, text } = start();
  bind(() =>
    snapshot({
      member: { opened: 2, counts: { at: now, members: 3, shards: 16, free: 1, takes: 40, repaired: 1, lost: 2 } },
      sinks: [
        sink({
          timeStamp: { newest: micros('2026-11-20T00:00:00Z'), lastError: undefined },
          cosignatures: [{ witness: 'w', newest: undefined, lastError: undefined }],
        }),
      ],
    }),
  );
  meters.recordDelay('production', 3);
  meters.sourceRequest('production', 'ok', 0.2);
  meters.recordsUnexpected('production', 'unknown_action');
  meters.deliveryDelay('siem', 12);
  meters.databaseCommit(0.002);
  const { samples, types } = parseExposition(await text());
  expect([...types].sort()).toEqual(families.map(([name, { type }]) => [name, type]).sort());
  for (const [name, { type, labels }] of families) {
    const expected = labels === '' ? [] : labels.split(' ');
    const names = type === 'histogram' ? [`${name}_count`, `${name}_sum`, `${name}_bucket`] : [name];
    for (const wire of names) {
      const of = samples.filter((s) => s.name === wire);
      expect(of.length, wire).toBeGreaterThan(0);
      const wanted = (wire.endsWith('_bucket') ? [...expected, 'le'] : expected).toSorted();
      for (const sample of of) expect(Object.keys(sample.labels).sort(), wire).toEqual(wanted);
    }
  }
});

test('every counter and histogram has a method of Meters that changes it, and a caller of that method', async () => {
  const { meters, text } = start();
  const sources = readdirSync(new URL('../../../src', import.meta.url), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.startsWith('telemetry/'))
    .map((path) => readFileSync(new URL(`../../../src/${path}`, import.meta.url), 'utf8'));
  for (const [name, write] of Object.entries(meters) as [keyof Meters, (...values: unknown[]) => void][]) {
    expect(
      sources.filter((source) => new RegExp(`[mM]eters\\??\\.${name}\\(`).test(source)),
      name,
    ).not.toEqual([]);
    if (name === 'sourceRequest') write('a', 'ok', 1);
    else if (name === 'databaseCommit') write(1);
    else if (['sourceSuspended', 'recordsUnexpected'].includes(name)) write('a', 'fields');
    else write('a', 1);
  }
  const { samples } = parseExposition(await text());
  const observed = ['waybill_log_lines_lost_total', 'process_cpu_seconds_total'];
  for (const [name, { type }] of families.filter(([each, metric]) => metric.type !== 'gauge' && !observed.includes(each))) {
    const wire = type === 'histogram' ? `${name}_count` : name;
    expect(samples.filter((sample) => sample.name === wire && sample.value > 0).length, wire).toBe(1);
  }
});

test('names end with their unit, and counters with _total', () => {
  for (const [name, { type }] of families) {
    expect(name.endsWith('_total'), name).toBe(type === 'counter');
    expect(unitOf(name), name).toBe(/seconds|bytes/.exec(name)?.[0] ?? '');
  }
});

test('process metrics describe this process', async () => {
  const exposition = parseExposition(await start().text());
  expect(Math.abs((value(exposition, 'process_start_time_seconds') ?? 0) + process.uptime() - Date.now() / 1_000)).toBeLessThan(120);
  expect(value(exposition, 'process_cpu_seconds_total')).toBeGreaterThan(0);
  expect(value(exposition, 'process_resident_memory_bytes')).toBeGreaterThan(1e6);
  expect(value(exposition, 'process_open_fds')).toBeGreaterThan(2);
});

test('a member of a fleet shows what the database said within a minute, and no state before it has opened a shard', async () => {
  const { bind, text } = start();
  const counts = { at: now - 59e6, members: 3, shards: 16, free: 1, takes: 40, repaired: 1, lost: 2 };
  let present = snapshot({ member: { opened: 0, counts } });
  bind(() => present);
  const fresh = parseExposition(await text());
  expect(value(fresh, 'waybill_shards', { state: 'owned' })).toBe(15);
  expect(value(fresh, 'waybill_shards', { state: 'free' })).toBe(1);
  expect(value(fresh, 'waybill_rollbacks', { outcome: 'lost' })).toBe(2);
  expect(value(fresh, 'waybill_leases_lost_total')).toBe(0);
  expect(value(fresh, 'waybill_state_created_timestamp_seconds')).toBeUndefined();
  present = snapshot({ member: { opened: 2, counts: { ...counts, at: now - 61e6 } } });
  const old = parseExposition(await text());
  expect(value(old, 'waybill_shards', { state: 'free' })).toBeUndefined();
  expect(value(old, 'waybill_database_last_success_timestamp_seconds')).toBe(now / 1e6 - 61);
  expect(value(old, 'waybill_state_created_timestamp_seconds')).toBeGreaterThan(0);
});

test('gauges show the snapshot at the time of the scrape', async () => {
  const { bind, text } = start();
  const begins = micros('2026-11-20T02:44:00Z');
  const nothingProven = { liveFrom: begins, frontier: begins, serverNow: micros('2026-11-20T03:03:00Z') };
  let present = snapshot({
    sources: [
      source({ state: 'suspended', windows: windowStates({ gap: 2, accepted: 1, inDoubt: 4 }), serverNow: micros('2026-11-20T03:05:00Z') }),
    ],
    sinks: [sink({ state: 'blocked', lagEntries: 90, lagSeconds: 61.5, deadLetters: 3 })],
    journal: { bytes: 9, maxSize: 10, head: 5, paused: 'journal_full: 97 % of 10 B are used', directory: '/state' },
  });
  bind(() => present);
  const first = parseExposition(await text());
  expect(value(first, 'waybill_complete_until_timestamp_seconds', { source: 'production' })).toBe(1_795_142_700);
  expect(value(first, 'waybill_completeness_lag_seconds', { source: 'production' })).toBe(20 * 60);
  expect(value(first, 'waybill_source_state', { source: 'production', state: 'suspended' })).toBe(1);
  expect(value(first, 'waybill_source_state', { source: 'production', state: 'active' })).toBe(0);
  expect(value(first, 'waybill_windows', { source: 'production', state: 'accepted' })).toBe(1);
  expect(value(first, 'waybill_gaps', { source: 'production' })).toBe(2);
  const byState = ['proven', 'gap', 'accepted', 'in_doubt'].map((state) =>
    value(first, 'waybill_windows', { source: 'production', state }),
  );
  expect(byState).toEqual([405, 2, 1, 4]);
  expect(value(first, 'waybill_sink_state', { sink: 'siem', state: 'blocked' })).toBe(1);
  expect(value(first, 'waybill_sink_lag_seconds', { sink: 'siem' })).toBe(61.5);
  expect(value(first, 'waybill_dead_letters', { sink: 'siem' })).toBe(3);
  expect(value(first, 'waybill_collection_paused', { reason: 'journal_full' })).toBe(1);
  expect(value(first, 'waybill_collection_paused', { reason: 'disk' })).toBe(0);
  expect(value(first, 'waybill_certificate_expiry_timestamp_seconds', { target: 'sources.production' })).toBe(1_798_761_600);

  present = snapshot({ sources: [source({ lastSuccess: undefined, clockOffsetSeconds: undefined, ...nothingProven })], sinks: [] });
  const second = parseExposition(await text());
  expect(value(second, 'waybill_source_state', { source: 'production', state: 'suspended' })).toBe(0);
  expect(value(second, 'waybill_collection_paused', { reason: 'journal_full' })).toBe(0);
  expect(value(second, 'waybill_source_last_success_timestamp_seconds', { source: 'production' })).toBeUndefined();
  expect(value(second, 'waybill_complete_until_timestamp_seconds', { source: 'production' })).toBeUndefined();
  expect(value(second, 'waybill_completeness_lag_seconds', { source: 'production' })).toBe(19 * 60);
  expect(second.samples.filter((s) => s.name.startsWith('waybill_sink_state'))).toEqual([]);
});

test('counters start at 0 for every source and sink, and add up', async () => {
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

test('a negative delay counts as 0, and a delay of 20 days in its bucket', async () => {
  const { meters, text } = start();
  meters.recordDelay('production', -4);
  meters.recordDelay('production', 20 * 86_400);
  const exposition = parseExposition(await text());
  expect(value(exposition, 'waybill_record_delay_seconds_bucket', { source: 'production', le: '1' })).toBe(1);
  expect(value(exposition, 'waybill_record_delay_seconds_bucket', { source: 'production', le: '1209600' })).toBe(1);
  expect(value(exposition, 'waybill_record_delay_seconds_bucket', { source: 'production', le: '2592000' })).toBe(2);
  expect(value(exposition, 'waybill_record_delay_seconds_sum', { source: 'production' })).toBe(1_728_000);
});

test('a failed snapshot is an error, not a response without gauges', async () => {
  const { bind, text } = start();
  bind(() => {
    throw new Error('database is closed');
  });
  await expect(text()).rejects.toThrow('cannot read the metrics');
});

test('a histogram sums up its buckets, and labels are escaped', async () => {
  const { meters, text } = start();
  const source = 'a"b\\c\nd';
  meters.sourceRequest(source, 'ok', 0.2);
  meters.sourceRequest(source, 'ok', 90);
  const lines = (await text()).split('\n').filter((line) => line.includes('waybill_source_request_duration_seconds'));
  const labels = 'source="a\\"b\\\\c\\nd"';
  const bucket = (le: string, count: number): string => `waybill_source_request_duration_seconds_bucket{${labels},le="${le}"} ${count}`;
  expect(lines).toEqual([
    `# HELP waybill_source_request_duration_seconds ${metricTable.waybill_source_request_duration_seconds.help}`,
    '# TYPE waybill_source_request_duration_seconds histogram',
    `waybill_source_request_duration_seconds_count{${labels}} 2`,
    `waybill_source_request_duration_seconds_sum{${labels}} 90.2`,
    ...['0.05', '0.1'].map((le) => bucket(le, 0)),
    ...['0.25', '0.5', '1', '2.5', '5', '10', '30', '60'].map((le) => bucket(le, 1)),
    bucket('+Inf', 2),
  ]);
});
