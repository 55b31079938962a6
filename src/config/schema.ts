/**
 * The schema of the whole configuration, put together from the settings that stand beside what they configure, and from the definitions of
 * the sinks. A room adds its settings here with one line.
 */
import { z } from 'zod';
import { deliverSettings } from '../deliver/settings.ts';
import { cefSettings, originalSettings } from '../encode/settings.ts';
import { journalSettings } from '../journal/settings.ts';
import { mappingSettings, observerSettings, privacySettings, whereSettings } from '../normalize/settings.ts';
import { adminSettings, logSettings } from '../admin/settings.ts';
import type { SinkDefinition } from '../sink/define.ts';
import { proxySettings, trustSettings } from '../connect/settings.ts';
import { sourceSettings } from '../source/settings.ts';
import { duration, facts, line, notYet, path } from '../settings/values.ts';

/** Types of sinks that the contract names and a later release brings. */
export const laterSinks = ['archive'];

facts.add(privacySettings.shape.key, { secret: true, expects: 'text of at least 16 characters' });

const source = sourceSettings
  .extend({
    privacy: privacySettings.optional().describe('Rules and key for this source; overrides the top-level `privacy`'),
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
      filter: whereSettings.optional().describe('Only records that match; default all'),
      cef: cefSettings,
      privacy: privacySettings.optional().describe('Rules and key for this sink; overrides those of the source'),
      ...laterKeys(definition),
      ...definition.config.shape,
    })
    .describe(`Sink of type ${definition.type}: ${definition.summary}`);
}

/** Known to be refused; for the type of the schema they are not there. */
function laterKeys({ later = [] }: SinkDefinition): object {
  return Object.fromEntries(later.map((key) => [key, notYet()]));
}

/** Making a schema takes longer than using it: one for each list of sinks. */
const made = new WeakMap<readonly SinkDefinition[], ConfigSchema>();

/** The whole, for sinks of these types. */
export function configSchema(sinks: readonly SinkDefinition[]): ConfigSchema {
  const schema = made.get(sinks) ?? assemble(sinks);
  made.set(sinks, schema);
  return schema;
}

function assemble(sinks: readonly SinkDefinition[]) {
  const [first, ...others] = sinks.map(sinkSchema);
  if (!first) throw new RangeError('cannot make a schema without any type of sink');
  return z
    .strictObject({
      dataDir: stateDirectory,
      journal: journalSettings,
      tls: trustSettings,
      proxy: proxySettings
        .optional()
        .describe('Proxy of every HTTPS connection; default HTTPS_PROXY and NO_PROXY of the environment; `none` ignores these'),
      sources: z
        .array(source)
        .min(1, 'names no source: nothing would be collected')
        .describe('Sources to poll: at least one, here or in an included file'),
      privacy: privacySettings.prefault({}).describe('Fields to hide in every message; a source or sink may override it'),
      mapping: mappingSettings,
      sinks: z
        .array(z.discriminatedUnion('type', [first, ...others]))
        .default([])
        .describe('Destinations of messages'),
      shutdownTimeout: duration({ max: '1h' }).prefault('20s').describe('Time limit for a stop'),
      admin: adminSettings,
      log: logSettings,
      include: z
        .array(line('the path of a file, or a pattern such as tenants/*.yaml'))
        .default([])
        .describe('More sources and sinks: files, or patterns such as `tenants/*.yaml`, relative to this file'),
      telemetry: notYet(),
    })
    .describe('Configuration of Waybill');
}

type ConfigSchema = ReturnType<typeof assemble>;
export type Settings = z.output<ConfigSchema>;
