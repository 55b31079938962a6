/** `waybill setup kafka`: the progress topic, and what an administrator does. */
import { parseArgs } from 'node:util';
import { systemClock } from '../../../clock.ts';
import { loadConfig } from '../../../config/load.ts';
import { within } from '../../../deliver/deadline.ts';
import type { WaybillError } from '../../../errors.ts';
import type { SinkContext } from '../../../sink/define.ts';
import { KafkaJsClient } from '../../../sink/kafka/kafkajs.ts';
import { progressConfig, progressTopicOf } from '../../../sink/kafka/settings.ts';
import type { KafkaSettings } from '../../../sink/kafka/settings.ts';
import { setupText } from '../../../sink/kafka/setup.ts';
import { TokenSource } from '../../../sink/kafka/token.ts';
import { lateAt, lookMs } from '../check/sink.ts';
import type { Io } from '../../io.ts';
import { silent, sinkOf } from './sink.ts';

export async function setup(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args,
    options: { config: { type: 'string' }, sink: { type: 'string' }, print: { type: 'boolean', default: false } },
  });
  const { config } = await loadConfig(values.config, io.env, { requireSecrets: !values.print });
  const sink = sinkOf(config, 'kafka', values.sink);
  const settings = sink.settings as KafkaSettings;
  const sources = sink.sources ?? config.sources.map(({ id }) => id);
  // What is to be done comes first: whoever lacks the right to do it here can hand it on.
  io.stdout.write(setupText(sink.id, settings, sources));
  if (values.print || !settings.exactlyOnce) return 0;
  const context = { id: sink.id, format: sink.format, log: silent, clock: systemClock, ca: config.tls.ca, proxy: config.proxy };
  const late = (): WaybillError => lateAt(sink.id, sink.settings);
  const done = await within((signal) => makeProgressTopic(settings, context, signal), lookMs, late, systemClock, io.signal);
  io.stderr.write(`${done}\n`);
  return 0;
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
