/** `waybill setup kafka`: the progress topic, and what an administrator does. */
import type { Config, SinkConfig } from '../config/load.ts';
import type { SinkContext } from '../sink/define.ts';
import { KafkaJsClient } from '../sink/kafka-kafkajs.ts';
import { progressConfig, progressTopicOf } from '../sink/kafka-settings.ts';
import type { KafkaSettings } from '../sink/kafka-settings.ts';
import { setupText } from '../sink/kafka-setup.ts';
import { TokenSource } from '../sink/kafka-token.ts';
import type { Io } from './io.ts';

export async function setup(
  sink: SinkConfig,
  config: Config,
  io: Pick<Io, 'stdout' | 'stderr' | 'signal'>,
  { isPrint, context }: { readonly isPrint: boolean; readonly context: SinkContext },
): Promise<void> {
  const settings = sink.settings as KafkaSettings;
  const sources = sink.sources ?? config.sources.map(({ id }) => id);
  // What is to be done comes first: whoever lacks the right to do it here can hand it on.
  io.stdout.write(setupText(sink.id, settings, sources));
  if (!isPrint && settings.exactlyOnce) io.stderr.write(`${await makeProgressTopic(settings, context, io.signal)}\n`);
}

async function makeProgressTopic(settings: KafkaSettings, context: SinkContext, signal: AbortSignal): Promise<string> {
  const name = progressTopicOf(context.id, settings);
  await using tokens = settings.sasl?.oauth && new TokenSource(settings.sasl.oauth, context);
  await using client = new KafkaJsClient(settings, context, tokens);
  const cut = (): void => {
    client.cut();
  };
  signal.addEventListener('abort', cut, { once: true });
  try {
    if ((await client.topic(name, 'progressTopic')) !== undefined) return `progress topic "${name}" is there already; it stays as it is`;
    await client.create(name, progressConfig, 'progressTopic');
    return `progress topic "${name}" is made: one partition, compacted`;
  } finally {
    signal.removeEventListener('abort', cut);
  }
}
