/**
 * What is kept about a source beside its ledger, so that what is still in the journal of one that is gone from the configuration is delivered
 * as it would have been: how its events are named, and what is hidden from them. Never a key.
 */
import type { Config, SinkConfig, SourceConfig } from '../../config/load.ts';
import type { NormalizeSettings } from '../../normalize/normalizer.ts';
import type { ObserverSettings, PrivacySettings } from '../../normalize/settings.ts';

/** Plain JSON, in the profile of the source. */
export interface ServiceFacts {
  readonly tenantId: string;
  readonly baseUrl: string;
  readonly observer: ObserverSettings;
  readonly rules: PrivacySettings['rules'];
  /** Whether its pseudonyms were made with a key of its own. */
  readonly ownKey: boolean;
}

export function factsOf({ auth, baseUrl, observer, privacy }: SourceConfig, config: Config): ServiceFacts {
  return { tenantId: auth.tenantId, baseUrl, observer, rules: privacy.rules, ownKey: privacy.key !== config.privacy.key };
}

/** How the records of a configured source are normalized for a sink. */
export function settingsOf({ id, auth, baseUrl, observer, privacy }: SourceConfig, sink: SinkConfig, config: Config): NormalizeSettings {
  return whole({ tenantId: auth.tenantId, baseUrl, observer, privacy: { ...privacy, ...sink.privacy } }, id, sink, config);
}

/**
 * The same for one that is gone. A pseudonym whose key is gone as well becomes a mask: hidden all the same. Without facts (it was gone before it
 * ever answered) the general rules hold.
 */
export function settingsOfGone(id: string, facts: ServiceFacts | undefined, sink: SinkConfig, config: Config): NormalizeSettings {
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
