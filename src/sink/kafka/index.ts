/** The definition of the sink `kafka`; KafkaSink (sink.ts) sends. */
import { defineSink, type Guarantee } from '../define.ts';
import { kafkaSettings, sendDeadlineMs, type KafkaSettings } from './settings.ts';

export const kafka = defineSink('kafka', {
  summary: 'a Kafka topic, with or without transactions',
  config: kafkaSettings,
  formats: ['ecs', 'cef', 'raw'],
  batch: { records: 500, bytes: 1024 * 1024, wait: 1_000 },
  // Without transactions, the sink cannot look up an unknown outcome.
  resolvable: ({ exactlyOnce }) => exactlyOnce,
  keepsPosition: ({ exactlyOnce }) => exactlyOnce,
  deadline: sendDeadlineMs,
  // Brokers are moved and renamed; the topic identifies the destination.
  destination: ({ topic }) => topic,
  guarantee,
  check: async (settings, context, signal) => (await import('./check.ts')).checkKafka(settings, context, signal),
  open: async (settings, context, kept, signal) => (await import('./sink.ts')).KafkaSink.open(settings, context, kept, signal),
});

function guarantee({ exactlyOnce }: KafkaSettings): Guarantee {
  const losses = '0 with acks -1 and min.insync.replicas of 2 or more';
  if (exactlyOnce) return { delivery: 'exactly once', duplicates: '0 for consumers that read committed', losses };
  return { delivery: 'at least once', duplicates: 'one batch per failure', losses };
}
