/** Creates the delivery of a configured sink: registers it with the journal, and creates its loop. */
import type { Config, SinkConfig } from '../config/load.ts';
import type { Delivery } from '../deliver/delivery.ts';
import { bytesOf } from '../deliver/pipeline.ts';
import { WaybillError } from '../errors/errors.ts';
import type { Journal } from '../journal/journal.ts';
import type { Message } from '../model/sink.ts';
import type { Meters } from '../model/telemetry.ts';
import type { Encode } from '../record/event.ts';
import { normalizer } from '../normalize/normalizer.ts';
import type { Certificates } from './certificates.ts';
import { limitOf, writerOf } from './open-sink.ts';
import { archiveSettingsOf, createLoop, type LoopParts } from './delivery/loop.ts';
import { testEvents } from './delivery/test-events.ts';
import type { DaemonOptions } from './options.ts';
import { settingsOf } from '../config/service-facts.ts';

/** A configured sink, for operator actions. */
export interface ConfiguredSink {
  readonly id: string;
  readonly definition: SinkConfig['definition'];
  readonly settings: SinkConfig['settings'];
  /** Undefined in a command, which has no loop: the state stores requests. */
  readonly loop: Delivery | undefined;
  /** Test events in the sink's format; see test-events.ts. */
  readonly testMessages: (code: string, count: number) => readonly Message[];
}

export type DeliveryOptions = Pick<DaemonOptions, 'config' | 'clock' | 'random' | 'log' | 'tracer'>;

/** A sink with a loop that has not started. */
export type CreatedSink = ConfiguredSink & { readonly loop: Delivery };

/** Registers the sink with the journal and creates its loop without starting it. @param archive  default from the configuration */
export function createDelivery(
  sink: SinkConfig,
  journal: Journal,
  options: DeliveryOptions,
  meters: Meters,
  certificates?: Pick<Certificates, 'shown'>,
  archive: LoopParts['archive'] = (id) => archiveSettingsOf(options.config, id),
): CreatedSink {
  const { config, clock, random, tracer } = options;
  const { definition, id, type, settings } = sink;
  const log = options.log.child(`sink/${type}`);
  const shown: LoopParts['shown'] = (host, peer) => certificates?.shown(id, host, peer);
  const loop = createLoop(sink, { config, journal, archive, clock, random, log, meters, tracer, shown });
  const testMessages = (code: string, count: number): readonly Message[] => testMessagesOf(sink, config, meters, code, count, clock.now());
  return { id, definition, settings, loop, testMessages };
}

function testMessagesOf(sink: SinkConfig, config: Config, meters: Meters, code: string, count: number, now: number): readonly Message[] {
  const source = config.sources.find((each) => sink.sources?.includes(each.id) ?? true);
  if (!source) throw new WaybillError('usage', `cannot test the sink "${sink.id}": no source is configured`);
  const { encode } = writerOf(sink);
  const limit = limitOf(sink, meters);
  const write: Encode = (event) => bytesOf(event, encode, limit);
  return testEvents({ source: source.id, normalize: normalizer(settingsOf(source, sink, config)), write, code, count, now });
}
