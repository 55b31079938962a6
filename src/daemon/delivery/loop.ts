/** Creates the delivery loop of a configured sink, with its pipeline and its resume point. */
import type { Config, SinkConfig } from '../../config/load.ts';
import { settingsOf, settingsOfRemoved } from '../../config/service-facts.ts';
import type { Peer } from '../../connect/trust.ts';
import { Delivery } from '../../deliver/delivery.ts';
import { pipeline, type Pipeline } from '../../deliver/pipeline.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { ArchivedRecords, ArchiveReplay, DeliverJournal } from '../../model/journal.ts';
import type { Window } from '../../model/ledger.ts';
import type { ResumePoint, SinkLoss } from '../../model/sink.ts';
import type { Log, Meters, Tracer } from '../../model/telemetry.ts';
import type { Clock, Micros, Random } from '../../model/time.ts';
import { compileWhere } from '../../normalize/filter.ts';
import { ledgerNormalizer } from '../../normalize/ledger-event.ts';
import { normalizer, type NormalizeSettings } from '../../normalize/normalizer.ts';
import type { ArchiveSettings } from '../../sink/archive/settings.ts';
import type { SinkContext } from '../../sink/define.ts';
import { limitOf, sinkContext, writerOf } from '../open-sink.ts';
import { profileOf } from '../source/profile.ts';
import { register } from './register.ts';

export interface LoopParts {
  readonly config: Config;
  readonly journal: Journal;
  /**
   * The present settings of the archive that a sink writes; undefined if it is not in the configuration. A replay asks for them each time
   * that it opens the archive, so a reload that changes an archive restarts no other sink.
   */
  readonly archive: (sink: string) => ArchiveSettings | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The log of this sink. */
  readonly log: Log;
  readonly meters: Meters;
  readonly tracer?: Tracer | undefined;
  /** Called with each server certificate. */
  readonly shown?: ((host: string, peer: Pick<Peer, 'validTo'>) => void) | undefined;
}

/** Registers the sink with the journal, and creates its loop without starting it. */
export function createLoop(sink: SinkConfig, parts: LoopParts): Delivery {
  const { config, journal, archive, clock, random, log, meters, tracer, shown } = parts;
  const { id, type, definition, settings } = sink;
  const { fromTime, moved } = register(sink, journal, log, clock.now());
  const context = sinkContext(sink, config, { clock, log, shown }, journal.placeAtSinks());
  const resumePoint = resumePointOf(id, journal, (loss) => {
    meters.sinkLoss(id);
    log.write('sink.records_lost', {
      sink: id,
      code: loss.code ?? 'file_truncated',
      first: loss.first,
      last: loss.last,
      detail: loss.message,
    });
  });
  return new Delivery({
    settings: {
      id,
      type,
      batch: sink.batch,
      deadline: definition.deadline,
      resolvable: definition.resolvable(settings),
      failReadinessAfter: sink.failReadinessAfter ?? Infinity,
    },
    pipeline: pipelineOf(sink, fromTime, parts),
    open: async (signal) => {
      if (moved !== undefined) throw new WaybillError('config_invalid', `cannot use sinks.${id}: ${moved}`);
      return definition.open(settings, context, resumePoint, signal);
    },
    openArchive: (replay, signal) =>
      archivedRecords(replay, archive(replay.archive), { ...context, id: replay.archive }, journal.id, signal),
    journal,
    clock,
    random,
    log,
    meters,
    ...(tracer && { tracer }),
  });
}

/** @param id  of a sink. @returns undefined if the configuration has no archive of this id */
export function archiveSettingsOf({ sinks }: Pick<Config, 'sinks'>, id: string): ArchiveSettings | undefined {
  return sinks.find((sink) => sink.id === id && sink.type === 'archive')?.settings as ArchiveSettings | undefined;
}

/** Loads the code of archives only for a replay from an archive. */
async function archivedRecords(
  { archive, through }: ArchiveReplay,
  settings: ArchiveSettings | undefined,
  context: SinkContext,
  journal: string,
  signal: AbortSignal,
): Promise<ArchivedRecords> {
  if (!settings)
    throw new WaybillError('archive_broken', `cannot read the archive of the sink "${archive}": it is not in the configuration`);
  const { openArchivedRecords } = await import('../../sink/archive/archived-records.ts');
  return openArchivedRecords(settings, context, { journal, seq: through }, signal);
}

function pipelineOf(sink: SinkConfig, fromTime: Micros | undefined, { config, journal, meters }: LoopParts): Pipeline {
  const normalize = normalizeSettingsOf(sink, config, journal);
  const normalizeLedger = ledgerSettingsOf(sink, normalize);
  return pipeline({
    normalize: new Map([...normalize].map(([source, each]) => [source, normalizer(each)])),
    normalizeLedger: new Map([...normalizeLedger].map(([source, each]) => [source, ledgerNormalizer(each)])),
    matches: sink.filter ? compileWhere(sink.filter) : () => true,
    encode: writerOf(sink).encode,
    limit: limitOf(sink, meters),
    fromTime,
    withheld: (source, time) => isWithin(journal.withheld(sink.id, source), time),
    unexpected: (source, tags) => {
      for (const tag of tags) meters.recordsUnexpected(source, tag);
    },
  });
}

/** By source: configured sources, and removed ones whose records may still be in the journal. */
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

/** By source, with '' for entries on the daemon. Operations on a sink or the daemon have no source: sinks that receive every source get them, in one place for all. */
function ledgerSettingsOf(sink: SinkConfig, bySource: ReadonlyMap<string, NormalizeSettings>): ReadonlyMap<string, NormalizeSettings> {
  if (!sink.ledger) return new Map();
  const isPerSource = Object.values(sink.settings).some((value) => typeof value === 'string' && value.includes('{source}'));
  const [any] = bySource.values();
  if (sink.sources !== undefined || isPerSource || !any) return bySource;
  return new Map([...bySource, ['', { ...any, tenantId: undefined, baseUrl: undefined }]]);
}

function isWithin(windows: readonly Window[], time: () => Micros | undefined): boolean {
  if (windows.length === 0) return false;
  const at = time();
  return at !== undefined && windows.some(({ from, to }) => from <= at && at < to);
}

/** @param lost  called after the journal has stored the loss */
function resumePointOf(id: string, journal: DeliverJournal, lost: (loss: SinkLoss) => void): ResumePoint {
  let told: SinkLoss | undefined;
  return {
    journal: journal.id,
    get position() {
      return journal.sinkProgress(id).delivered;
    },
    get resumeNote() {
      return journal.sinkProgress(id).resumeNote;
    },
    get completeSince() {
      return journal.sinkProgress(id).completeSince;
    },
    get adopt() {
      return journal.sinkProgress(id).orders.adopt;
    },
    chainAt: (seq) => journal.chainAt(seq),
    commitResumeNote: (resumeNote) => journal.commitResumeNote(id, resumeNote),
    restored: () => {
      told = undefined;
      return journal.restored(id);
    },
    replayedFrom: () => journal.replayedFrom(id),
    archiveCheckpoint: (checkpoint) => journal.archiveCheckpoint(id, checkpoint),
    lost: async (loss, resumeNote) => {
      // A blocked sink finds the same loss at each attempt.
      if (told?.first === loss.first && told.last === loss.last) return;
      told = loss;
      await journal.lost(id, loss, resumeNote);
      lost(loss);
    },
  };
}
