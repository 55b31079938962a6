/** Creates a sink's pipeline and delivery loop from its configuration. */
import type { Config, SinkConfig } from '../config/load.ts';
import type { DaemonOptions } from './options.ts';
import { Delivery } from '../deliver/delivery.ts';
import { pipeline, textOf } from '../deliver/pipeline.ts';
import type { MessageLimit } from '../deliver/pipeline.ts';
import { encoder, shortener } from '../encode/index.ts';
import type { EncodeSettings } from '../encode/define.ts';
import { WaybillError } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import type { SinkState } from '../journal/sink-positions.ts';
import type { EcsEvent, Encode, NormalizeLedger } from '../model/event.ts';
import type { Message, ResumePoint, SinkLoss } from '../model/sink.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import { ledgerNormalizer } from '../normalize/ledger-event.ts';
import { normalizer } from '../normalize/normalizer.ts';
import type { NormalizeSettings } from '../normalize/normalizer.ts';
import { compileWhere } from '../normalize/filter.ts';
import type { Certificates } from './certificates.ts';
import { sinkContext } from './open-sink.ts';
import { settingsOf, settingsOfRemoved } from './source/service-facts.ts';
import { profileOf } from './source/profile.ts';
import { testEvents } from './operations/test-events.ts';

/** A configured sink, for operator actions. */
export interface ConfiguredSink {
  readonly id: string;
  readonly definition: SinkConfig['definition'];
  readonly settings: SinkConfig['settings'];
  /** Undefined where no loop exists: requests are stored in the state. */
  readonly loop: Delivery | undefined;
  /** Test events in the sink's format; see test-events.ts. */
  readonly testMessages: (code: string, count: number) => readonly Message[];
}

export type DeliveryOptions = Pick<DaemonOptions, 'config' | 'clock' | 'random' | 'log' | 'tracer'>;

/** Registers the sink with the journal and creates its loop without starting it. */
export function createDelivery(
  sink: SinkConfig,
  journal: Journal,
  options: DeliveryOptions,
  meters: Meters,
  certificates?: Pick<Certificates, 'shown'>,
): ConfiguredSink & { readonly loop: Delivery } {
  const { config, clock, random, tracer } = options;
  const { definition, id, type, settings } = sink;
  const log = options.log.child(`sink/${type}`);
  const state = register(sink, journal, log);
  const resumePoint = resumePointOf(state, journal, (loss) => {
    meters.sinkLoss(id);
    log.write('sink.records_lost', { sink: id, code: 'file_truncated', first: loss.first, last: loss.last, detail: loss.message });
  });
  const { encode } = writerOf(sink);
  const limit = limitOf(sink, meters);
  const normalizeSettings = normalizeSettingsOf(sink, config, journal);
  const context = sinkContext(sink, config, { clock, log, shown: (host, peer) => certificates?.shown(id, host, peer) });
  const loop = new Delivery({
    settings: {
      ...{ id, type, batch: sink.batch, deadline: definition.deadline, resolvable: definition.resolvable(settings) },
      failReadinessAfter: sink.failReadinessAfter ?? Infinity,
    },
    pipeline: pipeline({
      normalize: new Map([...normalizeSettings].map(([source, each]) => [source, normalizer(each)])),
      ...(sink.ledger && { normalizeLedger: ledgerNormalizersOf(sink, normalizeSettings) }),
      matches: sink.filter ? compileWhere(sink.filter) : () => true,
      encode,
      limit,
      fromTime: state.fromTime,
      withheld: (source, time) => journal.history.withheld(id, source, time),
      unexpected: (source, tags) => {
        for (const tag of tags) meters.recordsUnexpected(source, tag);
      },
    }),
    open: (signal) => definition.open(settings, context, resumePoint, signal),
    ...{ journal, clock, random, log, meters, ...(tracer && { tracer }) },
  });
  const testMessages = (code: string, count: number): readonly Message[] => {
    const [source = config.sources[0]] = config.sources.filter((each) => sink.sources?.includes(each.id) ?? true);
    if (!source) throw new WaybillError('usage', `cannot test the sink "${id}": no source is configured`);
    const normalize = normalizer(settingsOf(source, sink, config));
    const write: Encode = (event) => textOf(event, encode, limit);
    return testEvents({ source: source.id, normalize, write, code, count, now: clock.now() });
  };
  return { id, definition, settings, loop, testMessages };
}

function register({ id, type, start, definition, settings, sources, filter }: SinkConfig, journal: Journal, log: Log): SinkState {
  const startTime = start.kind === 'instant' ? start.at : undefined;
  const position = journal.positionFor(start.kind === 'instant' ? start.at : start.kind);
  const state = journal.sinkPositions.register(id, type, definition.destination(settings), position, startTime);
  const { isChanged, widened } = journal.sinkPositions.select(id, { sources, filter });
  if (isChanged) log.write('sink.selection_changed', { sink: id, sources: widened });
  return state;
}

/** @param lost  called after the journal has stored the loss */
function resumePointOf(state: SinkState, journal: Journal, lost: (loss: SinkLoss) => void): ResumePoint {
  return {
    journal: journal.id,
    get position() {
      return state.delivered;
    },
    get resumeNote() {
      return state.resumeNote;
    },
    get adopt() {
      return state.orders.adopt;
    },
    chainAt: (seq) => journal.chainAt(seq),
    commitResumeNote: (resumeNote) => journal.commitResumeNote(state.id, resumeNote),
    lost: async (loss, resumeNote) => {
      await journal.lost(state.id, loss, resumeNote);
      lost(loss);
    },
  };
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

/**
 * By source. Operations on a sink or the daemon have no source: a sink receives them if it receives every source, at one place for all.
 */
function ledgerNormalizersOf(sink: SinkConfig, bySource: ReadonlyMap<string, NormalizeSettings>): Map<string, NormalizeLedger> {
  const normalizers = new Map([...bySource].map(([source, settings]) => [source, ledgerNormalizer(settings)]));
  const isPerSource = Object.values(sink.settings).some((value) => typeof value === 'string' && value.includes('{source}'));
  const [any] = bySource.values();
  if (sink.sources !== undefined || isPerSource || !any) return normalizers;
  return normalizers.set('', ledgerNormalizer({ ...any, tenantId: undefined, baseUrl: undefined }));
}

/** The receiver's limit, and the encoder that fits a longer message into it. */
function limitOf(sink: SinkConfig, meters: Meters): MessageLimit | undefined {
  const bytes = sink.definition.messageBytes?.(sink.settings);
  if (bytes === undefined) return undefined;
  const { shorten } = writerOf(sink);
  return { bytes, shorten: (event) => shorten(event, bytes), shortened: () => meters.messageTruncated(sink.id) };
}

/** The encoder of a sink, and its variant for a limit in bytes, which gives undefined when an event cannot fit. */
export function writerOf({ format, includeOriginal, cef }: SinkConfig): {
  readonly encode: Encode;
  readonly shorten: (event: EcsEvent, bytes: number) => string | undefined;
} {
  const settings: EncodeSettings = { includeOriginal, cef };
  return { encode: encoder(format, settings), shorten: (event, bytes) => shortener(format, settings, bytes)(event) };
}
