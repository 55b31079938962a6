import { InMemorySpanExporter, SimpleSpanProcessor, TracerProvider } from '@opentelemetry/sdk-trace';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/time/clock.ts';
import { WaybillError } from '../../../src/errors/errors.ts';
import { noSpan, noTracer, traced } from '../../../src/model/telemetry.ts';
import type { Tracer } from '../../../src/model/telemetry.ts';
import { remember } from '../../../src/errors/secrets.ts';
import { createLog } from '../../../src/telemetry/log.ts';
import { startTelemetry } from '../../../src/telemetry/telemetry.ts';
import { tracerOf } from '../../../src/telemetry/tracer.ts';

function start(): { readonly tracer: Tracer; readonly exporter: InMemorySpanExporter } {
  const exporter = new InMemorySpanExporter();
  const provider = new TracerProvider({ spanProcessors: [new SimpleSpanProcessor({ exporter })] });
  return { tracer: tracerOf(provider.getTracer('test')), exporter };
}

test.each(['json', 'ecs'] as const)('a log line inside a span carries its ids (%s), a line outside carries none', async (format) => {
  const { tracer } = start();
  let text = '';
  const clock = { now: () => 0, monotonic: () => 0, sleep: () => Promise.resolve() };
  const { root } = createLog({ level: 'info', format, levels: {} }, clock, { write: (line: string) => (text += line) }, {});
  const span = tracer.start('collect page');
  await traced(span, async () => {
    await Promise.resolve();
    root.write('admin.listening', { addresses: [] });
  });
  root.write('admin.listening', { addresses: [] });
  const [inside, outside] = text.trim().split('\n').map((line) => JSON.parse(line) as Record<string, unknown>); // prettier-ignore
  const [trace, id] = format === 'ecs' ? ['trace.id', 'span.id'] : ['trace_id', 'span_id'];
  expect(inside).toMatchObject({ [trace]: expect.stringMatching(/^[0-9a-f]{32}$/) as unknown, [id]: expect.stringMatching(/^[0-9a-f]{16}$/) as unknown }); // prettier-ignore
  expect(outside).not.toHaveProperty([trace]);
  expect(JSON.stringify(inside)).not.toContain('"waybill":{"trace_id"');
});

test('concurrent work keeps its own span, and a span started in it is a child', async () => {
  const { tracer, exporter } = start();
  const work = (name: string): Promise<void> =>
    traced(tracer.start(name), async () => {
      await new Promise(setImmediate);
      tracer.start(`${name}-child`).end();
    });
  await Promise.all([work('a'), work('b')]);
  const spans = new Map(exporter.getFinishedSpans().map((span) => [span.name, span]));
  for (const name of ['a', 'b']) expect(spans.get(`${name}-child`)?.parentSpanContext?.spanId).toBe(spans.get(name)?.spanContext().spanId);
  expect(spans.get('a')?.spanContext().traceId).not.toBe(spans.get('b')?.spanContext().traceId);
});

test('secrets are removed from attributes, and an error leaves only its code', async () => {
  const { tracer, exporter } = start();
  const owner = {};
  remember(owner, 'correct-horse-battery');
  const failure = new WaybillError('source_busy', 'the record of Ada');
  const span = tracer.start('GET', { 'url.full': 'https://a/correct-horse-battery' });
  await expect(traced(span, () => Promise.reject(failure))).rejects.toBe(failure);
  const [ended] = exporter.getFinishedSpans();
  expect(ended?.attributes).toEqual({ 'url.full': 'https://a/[secret]', 'error.type': 'source_busy' });
  expect(ended?.status).toEqual({ code: 2 });
  expect(ended?.events).toEqual([]);
});

test('telemetry is off without an endpoint, and with OTEL_SDK_DISABLED: no span, no reader', async () => {
  const log = { write: () => expect.unreachable() };
  const endpoint = 'http://127.0.0.1:9';
  const disabled = { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_SDK_DISABLED: 'true' };
  for (const [settings, environment] of [
    [{}, {}],
    [{}, disabled],
    [{ endpoint }, disabled],
  ] as const) {
    // prettier-ignore
    const telemetry = await startTelemetry({ otlp: settings }, '0.1.0', log, systemClock, environment);
    expect([telemetry.tracer, telemetry.reader]).toEqual([noTracer, undefined]);
  }
  expect(noTracer.start('collect page').child('append journal')).toBe(noSpan);
});
