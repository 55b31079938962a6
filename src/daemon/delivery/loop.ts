/** Creates a delivery loop from its plan, with its pipeline and the resume point of its sink. */
import type { Peer } from '../../connect/trust.ts';
import { Delivery } from '../../deliver/delivery.ts';
import { pipeline, type PipelineParts } from '../../deliver/pipeline.ts';
import { WaybillError } from '../../errors/errors.ts';
import type { ArchivedRecords, ArchiveReplay, DeliverJournal } from '../../model/journal.ts';
import type { Window } from '../../model/ledger.ts';
import type { ResumePoint, SinkLoss } from '../../model/sink.ts';
import type { Log, Meters, Tracer } from '../../model/telemetry.ts';
import type { Clock, Micros, Random } from '../../model/time.ts';
import { ledgerNormalizer } from '../../normalize/ledger-event.ts';
import { normalizer } from '../../normalize/normalizer.ts';
import { compileWhere } from '../../normalize/filter.ts';
import type { ArchiveSettings } from '../../sink/archive/settings.ts';
import type { SinkContext, SinkDefinition } from '../../sink/define.ts';
import { limitOf, sinkContext, writerOf } from '../open-sink.ts';
import type { SinkPlan } from './plan.ts';

export interface LoopParts {
  readonly definition: SinkDefinition;
  readonly journal: DeliverJournal;
  /**
   * The present settings of the archive that a sink writes; undefined if it is not in the configuration. A replay asks for them each time
   * that it opens the archive, so a reload that changes an archive restarts no other sink.
   */
  readonly archive: (sink: string) => Promise<ArchiveSettings | undefined> | ArchiveSettings | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The log of this sink. */
  readonly log: Log;
  readonly meters: Meters;
  readonly tracer?: Tracer | undefined;
  /** Called with each server certificate. */
  readonly shown?: ((host: string, peer: Pick<Peer, 'validTo'>) => void) | undefined;
}

/** Creates the loop without starting it. */
export function createLoop(
  plan: SinkPlan,
  { definition, journal, archive, clock, random, log, meters, tracer, shown }: LoopParts,
): Delivery {
  const { sink } = plan;
  const { id, type, settings } = sink;
  const context = sinkContext(sink, plan.config, { clock, log, shown });
  const resumePoint = resumePointOf(id, journal, (loss) => {
    meters.sinkLoss(id);
    log.write('sink.records_lost', { sink: id, code: 'file_truncated', first: loss.first, last: loss.last, detail: loss.message });
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
    pipeline: pipeline(pipelineParts(plan, definition, journal, meters)),
    open: async (signal) => {
      if (plan.moved !== undefined) throw new WaybillError('config_invalid', `cannot use sinks.${id}: ${plan.moved}`);
      return definition.open(settings, context, resumePoint, signal);
    },
    openArchive: async (replay, signal) =>
      archivedRecords(replay, await archive(replay.archive), { ...context, id: replay.archive }, journal.id, signal),
    journal,
    clock,
    random,
    log,
    meters,
    ...(tracer && { tracer }),
  });
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

function pipelineParts(plan: SinkPlan, definition: SinkDefinition, journal: DeliverJournal, meters: Meters): PipelineParts {
  const { sink, normalize, normalizeLedger, fromTime } = plan;
  return {
    normalize: new Map([...normalize].map(([source, each]) => [source, normalizer(each)])),
    normalizeLedger: new Map([...normalizeLedger].map(([source, each]) => [source, ledgerNormalizer(each)])),
    matches: sink.filter ? compileWhere(sink.filter) : () => true,
    encode: writerOf(sink).encode,
    limit: limitOf({ ...sink, definition }, meters),
    fromTime,
    withheld: (source, time) => isWithin(journal.withheld(sink.id, source), time),
    unexpected: (source, tags) => {
      for (const tag of tags) meters.recordsUnexpected(source, tag);
    },
  };
}

function isWithin(windows: readonly Window[], time: () => Micros | undefined): boolean {
  if (windows.length === 0) return false;
  const at = time();
  return at !== undefined && windows.some(({ from, to }) => from <= at && at < to);
}

/** @param lost  called after the journal has stored the loss */
function resumePointOf(id: string, journal: DeliverJournal, lost: (loss: SinkLoss) => void): ResumePoint {
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
    restored: () => journal.restored(id),
    replayedFrom: () => journal.replayedFrom(id),
    archiveCheckpoint: (checkpoint) => journal.archiveCheckpoint(id, checkpoint),
    lost: async (loss, resumeNote) => {
      await journal.lost(id, loss, resumeNote);
      lost(loss);
    },
  };
}
