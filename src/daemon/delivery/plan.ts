/**
 * The plan of a delivery loop: everything that the loop needs to know, as data. The main thread makes it from the configuration and the state;
 * the loop may run in another thread.
 */
import type { Config, SinkConfig } from '../../config/load.ts';
import type { Journal } from '../../journal/journal.ts';
import type { SinkState } from '../../journal/sink-positions.ts';
import type { Micros } from '../../model/time.ts';
import type { Log } from '../../model/telemetry.ts';
import type { NormalizeSettings } from '../../normalize/normalizer.ts';
import { Secret } from '../../settings/secret.ts';
import { settingsOf, settingsOfRemoved } from '../source/service-facts.ts';
import { profileOf } from '../source/profile.ts';

export interface SinkPlan {
  readonly sink: Omit<SinkConfig, 'definition'>;
  /** By source: configured sources, and removed ones whose records may still be in the journal. */
  readonly normalize: ReadonlyMap<string, NormalizeSettings>;
  /** By source, with '' for entries on the daemon; empty for a sink without `ledger: true`. */
  readonly normalizeLedger: ReadonlyMap<string, NormalizeSettings>;
  /** Records with a readable time before it are skipped. */
  readonly fromTime: Micros | undefined;
  /** Every secret of the configuration: text of a server may hold any of them. */
  readonly secrets: readonly Secret[];
  /** The settings of the daemon that the context of the sink needs. */
  readonly config: Pick<Config, 'tls' | 'proxy'> & { readonly sources: readonly { readonly id: string }[] };
}

/** Registers the sink with the journal, and makes the plan of its loop. */
export function planOf({ definition, ...sink }: SinkConfig, config: Config, journal: Journal, log: Log): SinkPlan {
  const { fromTime } = register({ definition, ...sink }, journal, log);
  const normalize = normalizeSettingsOf({ definition, ...sink }, config, journal);
  const { tls, proxy, sources } = config;
  return {
    ...{ sink, normalize, normalizeLedger: sink.ledger ? ledgerSettingsOf(sink, normalize) : new Map<string, never>(), fromTime },
    secrets: secretsOf(config),
    config: { sources: sources.map(({ id }) => ({ id })), tls, proxy },
  };
}

function secretsOf(value: unknown): Secret[] {
  if (value instanceof Secret) return [value];
  if (Array.isArray(value)) return value.flatMap(secretsOf);
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? Object.entries(value).flatMap(([key, item]) => (key === 'definition' ? [] : secretsOf(item))) : [];
}

function register({ id, type, start, definition, settings, sources, filter }: SinkConfig, journal: Journal, log: Log): SinkState {
  const startTime = start.kind === 'instant' ? start.at : undefined;
  const position = journal.positionFor(start.kind === 'instant' ? start.at : start.kind);
  const state = journal.sinkPositions.register(id, type, definition.destination(settings), position, startTime);
  const { isChanged, widened } = journal.sinkPositions.select(id, { sources, filter });
  if (isChanged) log.write('sink.selection_changed', { sink: id, sources: widened });
  return state;
}

function normalizeSettingsOf(sink: SinkConfig, config: Config, journal: Journal): Map<string, NormalizeSettings> {
  const isRequested = (id: string): boolean => sink.sources?.includes(id) ?? true;
  const removed = journal.sourceIds().filter((id) => /* mutant: unconfigured-source */ !config.sources.some((source) => source.id === id));
  return new Map([
    ...removed
      .filter(isRequested)
      .map((id) => [id, settingsOfRemoved(id, profileOf(journal.progress(id).profile).service, sink, config)] as const),
    ...config.sources.filter(({ id }) => isRequested(id)).map((source) => [source.id, settingsOf(source, sink, config)] as const),
  ]);
}

/** Operations on a sink or the daemon have no source: a sink receives them if it receives every source, at one place for all. */
function ledgerSettingsOf(
  sink: Omit<SinkConfig, 'definition'>,
  bySource: ReadonlyMap<string, NormalizeSettings>,
): SinkPlan['normalizeLedger'] {
  const isPerSource = Object.values(sink.settings).some((value) => typeof value === 'string' && value.includes('{source}'));
  const [any] = bySource.values();
  if (sink.sources !== undefined || isPerSource || !any) return bySource;
  return new Map([...bySource, ['', { ...any, tenantId: undefined, baseUrl: undefined }]]);
}
