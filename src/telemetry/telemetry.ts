/** Metrics and traces by OTLP. The packages of the exporters are loaded only when an endpoint is configured. */
import type { Resource } from '@opentelemetry/resources';
import type { IMetricReader } from '@opentelemetry/sdk-metrics';
import { noTracer, type Log, type Tracer } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { TelemetrySettings } from './settings.ts';

interface Telemetry {
  readonly tracer: Tracer;
  /** A further reader of the instruments of metrics.ts; undefined while metrics are not exported. */
  readonly reader?: IMetricReader | undefined;
  readonly resource?: Resource | undefined;
  /** Sends pending metrics and traces, for a bounded time. Disposing `metrics` ends the reader. */
  readonly stop: (metrics: AsyncDisposable) => Promise<void>;
}

const off: Telemetry = { tracer: noTracer, stop: (metrics) => endOf(metrics) };

async function endOf(metrics: AsyncDisposable): Promise<void> {
  await metrics[Symbol.asyncDispose]();
}

/** @param environment  the same variables that the OpenTelemetry packages read from `process.env` */
export async function startTelemetry(
  { otlp: { endpoint } }: TelemetrySettings,
  version: string,
  log: Log,
  clock: Clock,
  environment: Readonly<Record<string, string | undefined>> = process.env,
): Promise<Telemetry> {
  const isOn = endpoint !== undefined || Boolean(environment['OTEL_EXPORTER_OTLP_ENDPOINT']?.trim());
  if (!isOn || environment['OTEL_SDK_DISABLED']?.trim().toLowerCase() === 'true') return off;
  const { startOtlp } = await import('./otlp.ts');
  return startOtlp(endpoint, version, log, clock);
}
