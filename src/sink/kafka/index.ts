/** The definition of the sink `kafka`; KafkaSink (sink.ts) sends. */
import { defineSink } from '../define.ts';
import { kafkaSettings, progressTopicFaults, sendDeadlineMs } from './settings.ts';

const losses = '0 with acks -1 (always) and min.insync.replicas of 2 or more';

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
  faults: progressTopicFaults,
  guarantees: [
    {
      settings: '`exactlyOnce: true`',
      applies: ({ exactlyOnce }) => exactlyOnce,
      delivery: 'exactly once for consumers with isolation.level=read_committed',
      duplicates: '0',
      losses,
    },
    { settings: '`exactlyOnce: false`', delivery: 'at least once', duplicates: 'one batch per failure', losses },
  ],
  check: async (settings, context, signal) => (await import('./check.ts')).checkKafka(settings, context, signal),
  open: async (settings, context, kept, signal) => (await import('./sink.ts')).KafkaSink.open(settings, context, kept, signal),
});
