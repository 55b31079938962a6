/** One sink of the daemon: the way of a record to it, and the loop around it. */
import type { Config, SinkConfig } from '../config/load.ts';
import type { DaemonOptions } from '../daemon.ts';
import { Delivery } from '../deliver/loop.ts';
import { pipeline } from '../deliver/pipeline.ts';
import type { MessageLimit } from '../deliver/pipeline.ts';
import { encoder, isEncodedFormat, shortener } from '../encode/index.ts';
import type { EncodedFormat, EncodeSettings } from '../encode/index.ts';
import { WaybillError } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import type { Meters, Normalize } from '../model.ts';
import { normalizer } from '../normalize/normalizer.ts';
import { compileWhere } from '../normalize/where.ts';
import { isResolvable } from '../sink/define.ts';
import { settingsOf, settingsOfGone } from './service-facts.ts';
import { profileOf } from './profile.ts';

/** Registers the sink with the journal and makes its loop, which is not running yet. */
export function createDelivery(sink: SinkConfig, journal: Journal, options: DaemonOptions, meters: Meters): { id: string; loop: Delivery } {
  const { config, clock, random } = options;
  const { definition, id } = sink;
  const log = options.log.child(`sink/${sink.type}`);
  const from = sink.from.kind === 'instant' ? sink.from.at : sink.from.kind;
  const start = journal.positionFor(from);
  const destination = definition.destination(sink.settings);
  const state = journal.progress.register(id, sink.type, destination, start, sink.from.kind === 'instant' ? sink.from.at : undefined);
  const kept = {
    journal: journal.id,
    get position() {
      return state.taken;
    },
    get note() {
      return state.note;
    },
    chainAt: (seq: number) => journal.chainAt(seq),
    commitNote: (note: string) => journal.commitNote(id, note),
  };
  const loop = new Delivery({
    settings: {
      id,
      type: sink.type,
      batch: sink.batch,
      deadline: definition.deadline,
      resolvable: isResolvable(definition, sink.settings),
      unreadyAfter: sink.unreadyAfter ?? Infinity,
    },
    journal,
    pipeline: pipeline({
      normalize: normalizersOf(sink, config, journal),
      matches: sink.where ? compileWhere(sink.where) : () => true,
      encode: encoder(...writtenBy(sink)),
      limit: limitOf(sink, meters),
      fromTime: state.fromTime,
      withheld: (source, time) => journal.history.withheld(id, source, time),
      irregular: (source, tags) => {
        for (const tag of tags) meters.eventsIrregular(source, tag);
      },
    }),
    open: (signal) => definition.open(sink.settings, { id, log, clock, ca: config.tls.ca, proxy: config.proxy }, kept, signal),
    clock,
    random,
    log,
    meters,
  });
  return { id, loop };
}

/** By source: those that are configured, and those that are gone and whose records may still be in the journal. */
function normalizersOf(sink: SinkConfig, config: Config, journal: Journal): Map<string, Normalize> {
  const isWanted = (id: string): boolean => sink.sources?.includes(id) ?? true;
  const gone = journal.sourceIds().filter((id) => !config.sources.some((source) => source.id === id));
  return new Map([
    ...gone
      .filter(isWanted)
      .map((id) => [id, normalizer(settingsOfGone(profileOf(journal.marks(id).profile).service, sink, config))] as const),
    ...config.sources.filter(({ id }) => isWanted(id)).map((source) => [source.id, normalizer(settingsOf(source, sink, config))] as const),
  ]);
}

/** What the receiver's frames can carry, and how a longer message is made to fit. */
function limitOf(sink: SinkConfig, meters: Meters): MessageLimit | undefined {
  const bytes = sink.definition.messageBytes?.(sink.settings);
  if (bytes === undefined) return undefined;
  return { bytes, shorten: shortener(...writtenBy(sink), bytes), shortened: () => meters.messageShortened(sink.id) };
}

function writtenBy(sink: SinkConfig): [format: EncodedFormat, settings: EncodeSettings] {
  if (!isEncodedFormat(sink.format))
    throw new WaybillError('config_invalid', `cannot use sinks.${sink.id}.format: "${sink.format}" is not in this release yet`);
  return [sink.format, { original: sink.original, cef: sink.cef }];
}
