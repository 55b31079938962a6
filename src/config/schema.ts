/** The schema of the whole configuration, assembled from the `settings.ts` of each folder of src and the definitions of the sinks. */
import { z } from 'zod';
import { deliverSettings } from '../deliver/settings.ts';
import { cefSettings, originalSettings } from '../encode/settings.ts';
import { fleetSettings } from '../fleet/settings.ts';
import { journalSettings } from '../journal/settings.ts';
import { mappingSettings, observerSettings, privacySettings, whereSettings } from '../normalize/settings.ts';
import { adminSettings } from '../admin/settings.ts';
import type { SinkDefinition } from '../sink/define.ts';
import { proxySettings, trustSettings } from '../connect/settings.ts';
import { sourceSettings } from '../source/settings.ts';
import { logSettings, telemetrySettings } from '../telemetry/settings.ts';
import { duration, facts, line, path } from '../settings/values.ts';

facts.add(privacySettings.shape.key, { secret: true, expects: 'text of at least 16 characters' });

const source = sourceSettings
  .extend({
    privacy: privacySettings.optional().describe('Rules and key for this source; override the top-level `privacy`'),
    observer: observerSettings,
  })
  .describe('One polled service: one tenant, one set of credentials');

export const stateDirectory = path().default('./state').describe('State directory; created with mode 0700, an existing one is unchanged');

function sinkSchema(definition: SinkDefinition) {
  return z
    .strictObject({
      ...deliverSettings(definition.formats, definition.batch),
      type: z.literal(definition.type).describe(definition.summary),
      includeOriginal: originalSettings(definition.original ?? true),
      filter: whereSettings.optional().describe('Deliver only matching records; default all'),
      cef: cefSettings,
      privacy: privacySettings.optional().describe('Rules and key for this sink; override the `privacy` of the source'),
      ...definition.config.shape,
    })
    .describe(`Sink of type ${definition.type}: ${definition.summary}`);
}

/** Assembling a schema is expensive, so each list of sinks has one schema. */
const assembled = new WeakMap<readonly SinkDefinition[], ConfigSchema>();

export function configSchema(sinks: readonly SinkDefinition[]): ConfigSchema {
  const schema = assembled.get(sinks) ?? assemble(sinks);
  assembled.set(sinks, schema);
  return schema;
}

function assemble(sinks: readonly SinkDefinition[]) {
  const [first, ...others] = sinks.map(sinkSchema);
  if (!first) throw new RangeError('cannot assemble a schema without a sink type');
  return z
    .strictObject({
      dataDir: stateDirectory,
      journal: journalSettings,
      fleet: fleetSettings.optional(),
      tls: trustSettings,
      proxy: proxySettings
        .optional()
        .describe('Proxy for every HTTPS connection; default the variables HTTPS_PROXY and NO_PROXY; `none` ignores them'),
      sources: z
        .array(source)
        .min(1, 'names no source: at least one is required')
        .describe('Sources to poll; at least one, here or in an included file'),
      privacy: privacySettings.prefault({}).describe('Fields to hide in every message; a source or sink may override them'),
      mapping: mappingSettings,
      sinks: z
        .array(z.discriminatedUnion('type', [first, ...others]))
        .default([])
        .describe('Destinations of messages'),
      shutdownTimeout: duration({ min: '1s', max: '1h' }).prefault('20s').describe('Maximum time for a shutdown'),
      admin: adminSettings,
      log: logSettings,
      include: z
        .array(line('the path of a file, or a pattern such as tenants/*.yaml'))
        .default([])
        .describe('Files with more sources and sinks: paths or patterns such as `tenants/*.yaml`, relative to this file'),
      telemetry: telemetrySettings,
    })
    .describe('Configuration of Waybill');
}

type ConfigSchema = ReturnType<typeof assemble>;
export type Settings = z.output<ConfigSchema>;
