/** The settings of the log and of OpenTelemetry. */
import { z } from 'zod';
import { otlpUrl } from '../settings/values.ts';

const level = z.enum(['debug', 'info', 'warn', 'error']);

/** `log` */
export const logSettings = z
  .strictObject({
    level: level.default('info').describe('Minimum level; overridden by LOG_LEVEL'),
    format: z
      .enum(['json', 'pretty', 'ecs'])
      .optional()
      .describe('`json`, `ecs` (JSON with ECS field names) or `pretty` (for terminals); default `pretty` on a terminal, else `json`'),
    levels: z.record(z.string().min(1), level).default({}).describe('Minimum level by component, e.g. `sink/kafka: debug`'),
  })
  .prefault({})
  .describe('Log, written to standard error');

/** `telemetry` */
export const telemetrySettings = z
  .strictObject({
    otlp: z
      .strictObject({
        endpoint: otlpUrl()
          .optional()
          .describe('Address of an OTLP/HTTP receiver, without `/v1/traces`; overrides OTEL_EXPORTER_OTLP_ENDPOINT; default off'),
      })
      .prefault({})
      .describe('Export of metrics and traces by OTLP over HTTP'),
  })
  .prefault({})
  .describe('OpenTelemetry; the other settings are the OTEL_ variables of docs/operations.md');

export type TelemetrySettings = z.output<typeof telemetrySettings>;
