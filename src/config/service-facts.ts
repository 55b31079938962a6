/**
 * Facts of a source for normalizing its records, without keys. Its profile stores them: the remaining records of a source that is removed
 * from the configuration keep their names and privacy rules.
 */
import type { Config, SinkConfig, SourceConfig } from './load.ts';
import type { NormalizeSettings } from '../normalize/normalizer.ts';
import type { ObserverSettings, PrivacySettings } from '../normalize/settings.ts';

/** Plain JSON. */
export interface ServiceFacts {
  readonly tenantId: string;
  readonly baseUrl: string;
  readonly observer: ObserverSettings;
  readonly rules: PrivacySettings['rules'];
  /** True when the source has a privacy key that differs from the general one. */
  readonly ownKey: boolean;
}

export function factsOf({ auth, baseUrl, observer, privacy }: SourceConfig, config: Config): ServiceFacts {
  return { tenantId: auth.tenantId, baseUrl, observer, rules: privacy.rules, ownKey: privacy.key !== config.privacy.key };
}

export function settingsOf({ id, auth, baseUrl, observer, privacy }: SourceConfig, sink: SinkConfig, config: Config): NormalizeSettings {
  return whole({ tenantId: auth.tenantId, baseUrl, observer, privacy: { ...privacy, ...sink.privacy } }, id, sink, config);
}

/**
 * For a source that was removed from the configuration. Without its key, a mask replaces each pseudonym. Without facts (it was removed
 * before its first response), the general rules apply.
 */
export function settingsOfRemoved(id: string, facts: ServiceFacts | undefined, sink: SinkConfig, config: Config): NormalizeSettings {
  const key = facts?.ownKey ? undefined : config.privacy.key;
  const given = { rules: facts?.rules ?? config.privacy.rules, ...(key !== undefined && { key }), ...sink.privacy };
  const rules = given.rules.map((rule) =>
    rule.action === 'pseudonymize' && given.key === undefined ? { ...rule, action: 'mask' as const } : rule,
  );
  const observer = facts?.observer ?? { vendor: 'Waybill', product: 'Data Protection and Audit Service', version: '1.0' };
  return whole({ tenantId: facts?.tenantId, baseUrl: facts?.baseUrl, observer, privacy: { ...given, rules } }, id, sink, config);
}

function whole(
  parts: Pick<NormalizeSettings, 'tenantId' | 'baseUrl' | 'observer' | 'privacy'>,
  source: string,
  { definition, settings }: SinkConfig,
  { mapping }: Config,
): NormalizeSettings {
  return { ...parts, ...(definition.dataStream?.(settings, source) ?? { dataset: 'dpas.audit', namespace: 'default' }), mapping };
}
