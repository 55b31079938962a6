/** What the daemon and commands need of a configured sink: the context in which it is opened, checked or set up, and the writer of its messages. */
import type { Config, SinkConfig } from '../config/load.ts';
import type { MessageLimit } from '../deliver/pipeline.ts';
import type { EncodeSettings } from '../encode/define.ts';
import { encoder, shortener } from '../encode/index.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { EcsEvent, Encode } from '../record/event.ts';
import type { SinkContext } from '../sink/define.ts';
import { silentLog } from '../telemetry/discard.ts';

/**
 * Without a log, for commands that print their findings themselves, the context drops log lines.
 * @param place  the shard whose place at the sinks the journal keeps after a move; 'none': the place of one process
 */
export function sinkContext(
  { id, format, ledger, sources, filter }: Pick<SinkConfig, 'id' | 'format' | 'ledger' | 'sources' | 'filter'>,
  config: Pick<Config, 'tls' | 'proxy' | 'fleet' | 'shard'> & { readonly sources: readonly { readonly id: string }[] },
  { clock, log = silentLog, shown }: { readonly clock: Clock; readonly log?: Log; readonly shown?: SinkContext['shown'] },
  place?: number | 'none',
): SinkContext {
  const { tls, proxy, shard } = config;
  const own = config.fleet && { shard };
  const fleet = place === undefined ? own : { shard: place === 'none' ? undefined : place };
  const selection = { sources: sources ?? config.sources.map((source) => source.id), selected: sources, filtered: filter !== undefined };
  return { id, format, ledger, ...selection, log, clock, fleet, ca: tls.ca, proxy, shown };
}

/** The receiver's limit, and the encoder that fits a longer message into it. */
export function limitOf(
  sink: Pick<SinkConfig, 'id' | 'definition' | 'settings' | keyof Written>,
  meters: Pick<Meters, 'messageTruncated'>,
): MessageLimit | undefined {
  const bytes = sink.definition.messageBytes?.(sink.settings);
  if (bytes === undefined) return undefined;
  const { shorten } = writerOf(sink);
  return { bytes, shorten: (event) => shorten(event, bytes), shortened: () => meters.messageTruncated(sink.id) };
}

type Written = Pick<SinkConfig, 'format' | 'includeOriginal' | 'cef'>;

/** The encoder of a sink. `shorten` encodes within a limit in bytes, and returns undefined when an event cannot fit. */
export function writerOf({ format, includeOriginal, cef }: Written): {
  readonly encode: Encode;
  readonly shorten: (event: EcsEvent, bytes: number) => Buffer | undefined;
} {
  const settings: EncodeSettings = { includeOriginal, cef };
  return { encode: encoder(format, settings), shorten: (event, bytes) => shortener(format, settings, bytes)(event) };
}
