/**
 * The plan of a delivery loop: all its inputs, as data. The main thread builds it from the
 * configuration and the state; the loop may run in another thread.
 */
import type { Config, SinkConfig } from '../../config/load.ts';
import type { Journal } from '../../journal/journal.ts';
import { movedMessage, type SinkState } from '../../journal/sink-positions.ts';
import type { Replay } from '../../model/journal.ts';
import type { Position } from '../../model/ledger.ts';
import type { Micros } from '../../model/time.ts';
import type { Log } from '../../model/telemetry.ts';
import type { NormalizeSettings } from '../../normalize/normalizer.ts';
import { Secret } from '../../settings/secret.ts';
import type { ArchiveSettings } from '../../sink/archive/settings.ts';
import { settingsOf, settingsOfRemoved } from '../../config/service-facts.ts';
import { profileOf } from '../source/profile.ts';

export interface SinkPlan {
  readonly sink: Omit<SinkConfig, 'definition'>;
  /** By source: configured sources, and removed ones whose records may still be in the journal. */
  readonly normalize: ReadonlyMap<string, NormalizeSettings>;
  /** By source, with '' for entries on the daemon; empty for a sink without `ledger: true`. */
  readonly normalizeLedger: ReadonlyMap<string, NormalizeSettings>;
  /** Set for a sink that must not be opened: its destination differs from the one in the state. */
  readonly moved: string | undefined;
  /** The loop skips records with a readable time before this time. */
  readonly fromTime: Micros | undefined;
  /** Every secret of the configuration: the text of a server may contain any of them. */
  readonly secrets: readonly Secret[];
  /** The settings of the daemon that the context of the sink needs. */
  readonly config: Pick<Config, 'tls' | 'proxy'> & { readonly sources: readonly { readonly id: string }[] };
}

/** Registers the sink with the journal, and makes the plan of its loop. @param now  wall clock, ms */
export function planOf({ definition, ...sink }: SinkConfig, config: Config, journal: Journal, log: Log, now: number): SinkPlan {
  const { fromTime, moved } = register({ definition, ...sink }, journal, log, now);
  const normalize = normalizeSettingsOf({ definition, ...sink }, config, journal);
  const { tls, proxy, sources } = config;
  return {
    sink,
    normalize,
    normalizeLedger: sink.ledger ? ledgerSettingsOf(sink, normalize) : new Map<string, never>(),
    moved,
    fromTime,
    secrets: secretsOf(config),
    config: { sources: sources.map(({ id }) => ({ id })), tls, proxy },
  };
}

/** @param id  of a sink. @returns undefined if the configuration has no archive of this id */
export function archiveSettingsOf({ sinks }: Pick<Config, 'sinks'>, id: string): ArchiveSettings | undefined {
  return sinks.find((sink) => sink.id === id && sink.type === 'archive')?.settings as ArchiveSettings | undefined;
}

function secretsOf(value: unknown): Secret[] {
  if (value instanceof Secret) return [value];
  if (Array.isArray(value)) return value.flatMap(secretsOf);
  const isPlain = typeof value === 'object' && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? Object.entries(value).flatMap(([key, item]) => (key === 'definition' ? [] : secretsOf(item))) : [];
}

function register(
  { id, type, start, definition, settings, sources, filter }: SinkConfig,
  journal: Journal,
  log: Log,
  now: number,
): SinkState & { readonly moved?: string | undefined } {
  const known = [...journal.sinkPositions.sinks()].find((each) => each.id === id);
  const destination = definition.destination(settings);
  const { position, startTime, replay } = beginOf(start, journal, !known, now);
  const moved = known && movedMessage(known, type, destination);
  // Keeps the records for it, with the selection that it had.
  // mutant: hold-moved-sink
  if (known && moved !== undefined)
    return { ...journal.sinkPositions.register(id, known.type, known.destination, position, startTime), moved };
  const state = journal.sinkPositions.register(id, type, destination, position, startTime, replay);
  const { isChanged, widened } = journal.sinkPositions.select(id, { sources, filter });
  if (isChanged) log.write('sink.selection_changed', { sink: id, sources: widened });
  return state;
}

interface Begin {
  readonly position: Position;
  readonly startTime?: Micros;
  readonly replay?: Replay;
}

/** @param isNew  false: the sink continues, so it does not receive the archive again */
function beginOf(start: SinkConfig['start'], journal: Journal, isNew: boolean, now: number): Begin {
  if (start.kind === 'instant') return { position: journal.positionFor(start.at), startTime: start.at };
  if (start.kind !== 'archive') return { position: journal.positionFor(start.kind) };
  if (!isNew) return { position: journal.positionFor('journal') };
  const position = journal.positionAfterArchive(start.archive);
  const { archive } = start;
  const replay: Replay = { kind: 'archive', archive, times: undefined, through: position.seq, began: now, at: 0, sent: 0, rejected: 0 };
  return { position, replay };
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

/** Operations on a sink or the daemon have no source: sinks that receive every source get them, in one place for all. */
function ledgerSettingsOf(
  sink: Omit<SinkConfig, 'definition'>,
  bySource: ReadonlyMap<string, NormalizeSettings>,
): SinkPlan['normalizeLedger'] {
  const isPerSource = Object.values(sink.settings).some((value) => typeof value === 'string' && value.includes('{source}'));
  const [any] = bySource.values();
  if (sink.sources !== undefined || isPerSource || !any) return bySource;
  return new Map([...bySource, ['', { ...any, tenantId: undefined, baseUrl: undefined }]]);
}
