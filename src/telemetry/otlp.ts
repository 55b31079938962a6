/**
 * The exporters of metrics and traces, with the variables of the OpenTelemetry specification. @opentelemetry/sdk-node 0.301 would cost 15
 * MiB of memory, 0.2 s of CPU, 7 MiB of the image and 40 packages for protocols that Waybill does not offer.
 */
import { within } from '../time/deadline.ts';
import { diag, DiagLogLevel } from '@opentelemetry/api';
import { getStringFromEnv, parseKeyPairsIntoRecord, setGlobalErrorHandler } from '@opentelemetry/core';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  resourceAttributesEnvDetector,
  resourceFromAttributes,
  serviceNameEnvDetector,
} from '@opentelemetry/resources';
import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics';
import { AlwaysOffSampler, AlwaysOnSampler, BatchSpanProcessor, TraceIdRatioBasedSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import type { Sampler } from '@opentelemetry/sdk-trace';
import { WaybillError } from '../errors/errors.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { remember } from '../errors/secrets.ts';
import { withoutStaleGauges } from './metrics.ts';
import { tracerOf } from './tracer.ts';
import { positive, samplerName, samplerRatio } from './variables.ts';

/** ms. Every request ends within this time, also a request to an unreachable receiver while the process stops. */
const maxTimeout = 5_000;
/** ms */
const maxFlush = 3_000;
/** Owner of the header values in the list of secrets. */
const headers = {};

/** @param endpoint  of the configuration; undefined: the exporters read OTEL_EXPORTER_OTLP_ENDPOINT */
export function startOtlp(endpoint: string | undefined, version: string, log: Log, clock: Clock) {
  for (const name of ['', 'TRACES_', 'METRICS_'])
    for (const value of Object.values(parseKeyPairsIntoRecord(getStringFromEnv(`OTEL_EXPORTER_OTLP_${name}HEADERS`))))
      remember(headers, value);
  reportFailures(log);
  const resource = defaultResource()
    .merge(resourceFromAttributes({ 'service.name': 'waybill', 'service.version': version }))
    .merge(detectResources({ detectors: [resourceAttributesEnvDetector, serviceNameEnvDetector] }));
  const options = (signal: 'traces' | 'metrics') => ({
    ...(endpoint !== undefined && { url: `${endpoint}/v1/${signal}` }),
    timeoutMillis: Math.min(timeoutOf(signal) ?? maxTimeout, maxTimeout),
  });
  const isSent = (signal: string): boolean => getStringFromEnv(`OTEL_${signal.toUpperCase()}_EXPORTER`) !== 'none';
  const reader = isSent('metrics') ? metricReader(new OTLPMetricExporter(options('metrics'))) : undefined;
  const processor = isSent('traces')
    ? new BatchSpanProcessor({ exporter: new OTLPTraceExporter(options('traces')), ...queue() })
    : undefined;
  const provider = new TracerProvider({ resource, sampler: sampler(), spanProcessors: processor ? [processor] : [] });
  const signals = ['metrics', 'traces'].filter(isSent);
  log.write('telemetry.started', { endpoint: endpoint ?? getStringFromEnv('OTEL_EXPORTER_OTLP_ENDPOINT'), signals });
  return {
    tracer: tracerOf(provider.getTracer('waybill', version)),
    reader,
    resource,
    stop: async (metrics: AsyncDisposable): Promise<void> => {
      await bounded(Promise.all([metrics[Symbol.asyncDispose](), provider.shutdown()]), log, clock);
      diag.disable();
    },
  };
}

function metricReader(exporter: OTLPMetricExporter): PeriodicExportingMetricReader {
  const exportIntervalMillis = positive('OTEL_METRIC_EXPORT_INTERVAL') ?? 60_000;
  const exportTimeoutMillis = Math.min(positive('OTEL_METRIC_EXPORT_TIMEOUT') ?? 30_000, exportIntervalMillis);
  return new PeriodicExportingMetricReader({ exporter: withoutStaleGauges(exporter), exportIntervalMillis, exportTimeoutMillis });
}

function timeoutOf(signal: 'traces' | 'metrics'): number | undefined {
  const name = signal === 'traces' ? 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT' : 'OTEL_EXPORTER_OTLP_METRICS_TIMEOUT';
  return positive(name) ?? positive('OTEL_EXPORTER_OTLP_TIMEOUT');
}

function queue() {
  const maxQueueSize = positive('OTEL_BSP_MAX_QUEUE_SIZE') ?? 2_048;
  return {
    maxQueueSize,
    maxExportBatchSize: Math.min(positive('OTEL_BSP_MAX_EXPORT_BATCH_SIZE') ?? 512, maxQueueSize),
    scheduledDelayMillis: positive('OTEL_BSP_SCHEDULE_DELAY') ?? 5_000,
    exportTimeoutMillis: positive('OTEL_BSP_EXPORT_TIMEOUT') ?? 30_000,
  };
}

function sampler(): Sampler {
  const name = samplerName();
  if (name === 'always_off') return new AlwaysOffSampler();
  return name === 'traceidratio' ? new TraceIdRatioBasedSampler(samplerRatio() ?? 1) : new AlwaysOnSampler();
}

/** The packages report every failure here. The log writes the line once a minute, with the number of omitted lines. */
function reportFailures(log: Log): void {
  const report = (message: string, cause?: unknown): void => {
    const error = new WaybillError('otlp_export_failed', message, { cause });
    log.write('telemetry.export_failed', { code: error.code, error });
  };
  const unused = (): void => undefined;
  const logger = { error: report, warn: report, info: unused, debug: unused, verbose: unused };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  setGlobalErrorHandler((thrown) => report('cannot export by OTLP', thrown));
}

/** Waits for `work`, at most `maxFlush`. Logs a failure. */
async function bounded(work: Promise<unknown>, log: Log, clock: Clock): Promise<void> {
  const late = (): Error => new Error(`no response within ${maxFlush} ms`);
  await within(() => work, maxFlush, late, clock).catch((cause: unknown) => {
    const error = new WaybillError('otlp_export_failed', 'cannot send the last metrics and traces', { cause });
    log.write('telemetry.export_failed', { code: error.code, error });
  });
}
