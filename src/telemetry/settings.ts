/** The settings of OpenTelemetry. */
import { z } from 'zod';
import { otlpUrl } from '../settings/values.ts';

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
