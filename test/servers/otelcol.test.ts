/** A demo run with a real OpenTelemetry Collector, checked by the output of its file exporter. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { endOf, inPlace, until } from '../support/e2e-place.ts';
import type { Place } from '../support/e2e-place.ts';
import { freePort } from '../support/servers/ports.ts';
import { cacheFolder, notAsked } from '../support/servers/programs.ts';

const program = join(cacheFolder(), 'otelcol-0.160.0/otelcol');
const missing = notAsked() ?? (existsSync(program) ? undefined : `no ${program}: test/servers/install.sh otelcol builds it`);

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
}
/** A line of the file exporter: OTLP as JSON. */
interface Line {
  readonly resourceSpans?: readonly { readonly scopeSpans: readonly { readonly spans: readonly Span[] }[] }[];
  readonly resourceMetrics?: readonly { readonly scopeMetrics: readonly { readonly metrics: readonly { readonly name: string }[] }[] }[];
}

test('a collector receives the trace of a page, the trace of a batch and the metrics of a demo', { timeout: 180_000 }, async ({ skip }) => {
  if (missing !== undefined) return skip(missing);
  await inPlace('otelcol', async (place) => {
    const port = await freePort();
    const collector = spawn(program, ['--config', configure(place, port)], { stdio: ['ignore', 'ignore', 'pipe'] });
    let output = '';
    collector.stderr.setEncoding('utf8').on('data', (text: string) => (output += text));
    try {
      await until(
        () => `a ready collector\n${output}`,
        30_000,
        () => (output.includes('Everything is ready') ? true : undefined),
      );
      place.environment = {
        ...{ OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`, OTEL_EXPORTER_OTLP_COMPRESSION: 'gzip' },
        ...{ OTEL_METRIC_EXPORT_INTERVAL: '1000', OTEL_BSP_SCHEDULE_DELAY: '500' },
      };
      const demo = place.spawnWaybill(['demo']);
      demo.stdout?.resume();
      demo.stderr?.resume();
      const ended = endOf(demo);
      const { spans, metrics } = await until(
        () => `both traces and the gauges in the file of the collector\n${output}\n${JSON.stringify([...received(place).metrics])}`,
        120_000,
        () => {
          const found = received(place);
          return hasTraces(found.spans) && found.metrics.has('waybill_windows') ? found : undefined;
        },
      );
      demo.kill('SIGTERM');
      await ended;
      for (const name of ['waybill_records_collected_total', 'waybill_events_delivered_total', 'waybill_completeness_lag_seconds'])
        expect([...metrics]).toContain(name);
      expect(childrenOf(spans, 'collect page')).toEqual(expect.arrayContaining(['GET', 'append journal']));
      expect(childrenOf(spans, 'deliver batch')).toEqual(
        expect.arrayContaining(['read journal', expect.stringMatching(/^send /), 'acknowledge journal']),
      );
    } finally {
      const end = endOf(collector);
      collector.kill('SIGTERM');
      await end;
    }
  });
});

function configure(place: Place, port: number): string {
  const pipeline = { receivers: ['otlp'], exporters: ['file'] };
  const file = place.path('otelcol.yaml');
  const configuration = {
    receivers: { otlp: { protocols: { http: { endpoint: `127.0.0.1:${port}` } } } },
    exporters: { file: { path: place.path('otlp.jsonl'), flush_interval: '100ms' } },
    service: { telemetry: { metrics: { level: 'none' } }, pipelines: { metrics: pipeline, traces: pipeline } },
  };
  writeFileSync(file, JSON.stringify(configuration));
  return file;
}

function received(place: Place): { readonly spans: readonly Span[]; readonly metrics: ReadonlySet<string> } {
  const path = place.path('otlp.jsonl');
  // The last line may be incomplete.
  const complete = existsSync(path) ? readFileSync(path, 'utf8').split('\n').slice(0, -1) : [];
  const lines = complete.map((line) => JSON.parse(line) as Line);
  return {
    spans: lines.flatMap(({ resourceSpans = [] }) => resourceSpans.flatMap(({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans))),
    metrics: new Set(
      lines.flatMap(({ resourceMetrics = [] }) =>
        resourceMetrics.flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics.map(({ name }) => name))),
      ),
    ),
  };
}

function hasTraces(spans: readonly Span[]): boolean {
  return childrenOf(spans, 'collect page').length >= 2 && childrenOf(spans, 'deliver batch').length >= 3;
}

/** The names of the children of the first span of this name, in the same trace. */
function childrenOf(spans: readonly Span[], name: string): string[] {
  const root = spans.find((span) => span.name === name && !span.parentSpanId);
  return spans.filter(({ traceId, parentSpanId }) => traceId === root?.traceId && parentSpanId === root.spanId).map((span) => span.name);
}
