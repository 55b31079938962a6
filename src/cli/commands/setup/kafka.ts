/** `waybill setup kafka`: creates the progress topic, and prints the commands of an administrator. */
import { addAbortListener } from 'node:events';
import { systemClock } from '../../../time/clock.ts';
import { loadConfig } from '../../../config/load.ts';
import { sinkContext } from '../../../daemon/open-sink.ts';
import { within } from '../../../time/deadline.ts';
import type { WaybillError } from '../../../errors/errors.ts';
import type { SinkContext } from '../../../sink/define.ts';
import { KafkaJsClient } from '../../../sink/kafka/kafkajs.ts';
import { progressConfig, progressTopicOf, type KafkaSettings } from '../../../sink/kafka/settings.ts';
import { setupText } from '../../../sink/kafka/setup.ts';
import { TokenSource } from '../../../sink/kafka/token.ts';
import { lateAt, lookMs } from '../check/sink.ts';
import type { Io } from '../../io.ts';
import { sinkOf } from './sink.ts';

export async function setup(
  values: { readonly config: string | undefined; readonly sink: string; readonly shards: number; readonly print: boolean },
  io: Io,
): Promise<number> {
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: !values.print });
  const sink = sinkOf(config, 'kafka', values.sink);
  const settings = sink.settings as KafkaSettings;
  const context = sinkContext(sink, config, { clock: systemClock });
  const partitions = config.fleet ? values.shards : 1;
  // Printed first, for users without the permission to create the topic.
  io.stdout.write(setupText(sink.id, settings, context.sources ?? [], partitions));
  if (values.print || !settings.exactlyOnce) return 0;
  const late = (): WaybillError => lateAt(sink.id, sink.settings);
  const done = await within((signal) => createProgressTopic(settings, context, partitions, signal), lookMs, late, systemClock, io.signal);
  io.stderr.write(`${done}\n`);
  return 0;
}

async function createProgressTopic(
  settings: KafkaSettings,
  context: SinkContext,
  partitions: number,
  signal: AbortSignal,
): Promise<string> {
  const name = progressTopicOf(context.id, settings);
  await using tokens = settings.sasl?.oauth && new TokenSource(settings.sasl.oauth, context);
  await using client = new KafkaJsClient(settings, context, tokens);
  using _listener = addAbortListener(signal, () => client.cut());
  const found = await client.topic(name, 'progressTopic');
  if (found && found.partitions < partitions)
    return `progress topic "${name}" has ${found.partitions} of ${partitions} partitions: run the command above that alters it`;
  if (found) return `progress topic "${name}" already exists; unchanged`;
  await client.create(name, partitions, progressConfig, 'progressTopic');
  return `created progress topic "${name}": ${partitions === 1 ? 'one partition' : `${partitions} partitions`}, compacted`;
}
