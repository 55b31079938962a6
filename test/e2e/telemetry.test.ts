/** Metrics and traces by OTLP, as an independent receiver decodes them. */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { ago, configure, Daemon, sourceOf } from '../support/e2e-daemon.ts';
import { inPlace, until, patience } from '../support/e2e-place.ts';
import { Service } from '../support/e2e-service.ts';
import { OtlpReceiver } from '../support/otlp-receiver.ts';
import type { ReceivedSpan } from '../support/otlp-receiver.ts';

/** Span kinds of trace.proto. */
const [internal, client, producer] = [1, 3, 4];
const file = { id: 'out', type: 'file', path: './out.ndjson' };
const fast = { OTEL_METRIC_EXPORT_INTERVAL: '500', OTEL_BSP_SCHEDULE_DELAY: '200' };

test('one trace for a page, one for a batch, and the metrics of docs/metrics.md', async () => {
  await inPlace('telemetry', async (place) => {
    await using receiver = await OtlpReceiver.start();
    const service = await Service.start(place, '--rate', '20');
    const source = sourceOf(service, ago(5_000));
    configure(place, [source], [file], { telemetry: { otlp: { endpoint: receiver.url } } });
    const secretHeader = 'collector-key-0123456789';
    // The file takes precedence: nothing listens at the address in the environment.
    place.environment = {
      ...{ ...fast, OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9', OTEL_RESOURCE_ATTRIBUTES: 'deployment.environment.name=test' },
      OTEL_EXPORTER_OTLP_HEADERS: `api-key=${secretHeader}`,
    };
    const daemon = new Daemon(place);
    const { trace_id: traceId, span_id: spanId } = await daemon.logged('source.first_record');
    const names = (): string[] => receiver.spans.map(({ name }) => name);
    await until(
      () => `a page, a batch and gauges in ${[...new Set(names())].join(', ')}\n${daemon.words()}`,
      patience,
      () =>
        names().includes('acknowledge journal') && names().includes('collect page') && metricNames(receiver).has('waybill_windows')
          ? true
          : undefined,
    );
    const { code, ms } = await daemon.stop();
    expect(code).toBe(0);
    expect(ms).toBeLessThan(5_000);

    const root = spanWith(receiver, 'collect page', (each) => each.traceId === traceId);
    expect(root).toMatchObject({ parent: '', kind: internal, spanId, status: 0, attributes: { 'waybill.source.id': 'production' } });
    expect(Number(root.attributes['waybill.records.appended'])).toBeGreaterThan(0);
    const url = new URL(service.line.baseUrl);
    const path = `${url.pathname}/logs/full-payload`;
    const request = spanWith(receiver, 'GET', (each) => each.parent === root.spanId);
    expect(request).toMatchObject({ traceId, kind: client });
    expect(request.attributes).toEqual({
      'waybill.source.id': 'production',
      'http.request.method': 'GET',
      'http.response.status_code': 200,
      'server.address': url.hostname,
      'server.port': Number(url.port),
      'url.full': `${url.origin}${path}`,
      'url.path': path,
    });
    const append = spanWith(receiver, 'append journal', (each) => each.parent === root.spanId);
    expect(append).toMatchObject({ traceId, kind: client, attributes: { 'db.system.name': 'sqlite', 'db.operation.name': 'append' } });
    expect([root.start <= request.start, request.end <= append.start, append.end <= root.end]).toEqual([true, true, true]);

    const batch = spanWith(receiver, 'deliver batch', () => true);
    expect(batch).toMatchObject({ parent: '', kind: internal, attributes: { 'waybill.sink.id': 'out' } });
    const parts = receiver.spans.filter(({ parent }) => parent === batch.spanId);
    expect(parts.map(({ name, kind, traceId: id }) => [name, kind, id === batch.traceId])).toEqual(
      expect.arrayContaining([
        ['read journal', client, true],
        ['send out', producer, true],
        ['acknowledge journal', client, true],
      ]),
    );
    expect(parts).toHaveLength(3);
    expect(parts.find(({ name }) => name === 'send out')?.attributes).toMatchObject({
      ...{ 'messaging.system': 'file', 'messaging.operation.name': 'send', 'messaging.destination.name': 'out' },
      'messaging.batch.message_count': batch.attributes['messaging.batch.message_count'],
    });

    const documented = documentedMetrics();
    for (const { name, type, unit } of receiver.metrics) {
      expect(documented.get(name), name).toBe(type);
      expect(unit, name).toBe(/_seconds(_total)?$/.test(name) ? 's' : /_bytes$/.test(name) ? 'By' : '');
    }
    for (const name of ['waybill_records_collected_total', 'waybill_events_delivered_total', 'waybill_source_request_duration_seconds'])
      expect([...metricNames(receiver)]).toContain(name);
    for (const resource of receiver.resources)
      expect(resource).toMatchObject({ 'service.name': 'waybill', 'deployment.environment.name': 'test' });
    expect(receiver.headers.every((headers) => headers['api-key'] === secretHeader)).toBe(true);

    const { clientSecret } = (source as { auth: { clientSecret: string } }).auth;
    const userIds = readFileSync(place.path('out.ndjson'), 'utf8').match(/(?<="user":\{"id":")[^"]{8,}/g) ?? [];
    expect(userIds.length).toBeGreaterThan(0);
    const sent = Buffer.concat(receiver.bodies).toString('latin1');
    for (const text of [clientSecret, service.line.subscriptionKey, secretHeader, 'startTime', ...userIds])
      expect(sent).not.toContain(text);
    expect(JSON.stringify(daemon.log)).not.toContain(secretHeader);
  });
});

// promise: An unreachable OTLP receiver delays neither delivery nor shutdown.
test('an unreachable OTLP receiver is one log line and delays neither delivery nor shutdown', async () => {
  await inPlace('telemetry-down', async (place) => {
    // Accepts connections and never responds.
    const silent = createServer(() => undefined);
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    try {
      const service = await Service.start(place, '--rate', '20');
      configure(place, [sourceOf(service, ago(5_000))], [file]);
      place.environment = {
        ...fast,
        ...{ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${(silent.address() as AddressInfo).port}`, OTEL_EXPORTER_OTLP_TIMEOUT: '400' },
      };
      const daemon = new Daemon(place);
      await daemon.logged('telemetry.export_failed');
      await daemon.logged('sink.first_delivery');
      const { code, ms } = await daemon.stop();
      expect(code).toBe(0);
      expect(ms).toBeLessThan(6_000);
      // The second line is the count written at exit.
      const failures = daemon.log.filter(({ event }) => event === 'telemetry.export_failed');
      expect(failures.length).toBeLessThanOrEqual(2);
      expect(failures[0]).toMatchObject({ code: 'otlp_export_failed', component: 'telemetry', level: 'warn' });
    } finally {
      silent.close();
    }
  });
});

test('without an endpoint no log line has a trace id', async () => {
  await inPlace('telemetry-off', async (place) => {
    const service = await Service.start(place, '--rate', '20');
    configure(place, [sourceOf(service, ago(5_000))], [file]);
    const daemon = new Daemon(place);
    expect(await daemon.logged('source.first_record')).not.toHaveProperty('trace_id');
    await daemon.stop();
    expect(daemon.find('telemetry.started')).toBeUndefined();
  });
});

function spanWith(receiver: OtlpReceiver, name: string, fits: (span: ReceivedSpan) => boolean): ReceivedSpan {
  const found = receiver.spans.find((span) => span.name === name && fits(span));
  if (!found) throw new Error(`no span "${name}" among ${receiver.spans.map((span) => span.name).join(', ')}`);
  return found;
}

function metricNames({ metrics }: OtlpReceiver): Set<string> {
  return new Set(metrics.map(({ name }) => name));
}

/** Name and type by docs/metrics.md. */
function documentedMetrics(): Map<string, string> {
  const text = readFileSync(new URL('../../docs/metrics.md', import.meta.url), 'utf8');
  const rows = [...text.matchAll(/^\| `(\w+)`[^|]*\| (gauge|counter|histogram) /gm)].map(
    ([, name = '', type = '']) => [name, type] as const,
  );
  if (rows.length < 20) throw new Error('cannot read the tables of docs/metrics.md');
  return new Map(rows);
}
