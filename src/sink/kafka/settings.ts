/** The settings of the sink `kafka`, and values derived from them. */
import { z } from 'zod';
import { facts, httpsUrl, line, secret, text, unresolved } from '../../settings/values.ts';
import { tlsSettings } from '../../connect/settings.ts';
import type { SettingFault, WrittenSink, SinkContext } from '../define.ts';

/** SASL mechanisms by Kafka's names. */
const mechanisms = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512', 'OAUTHBEARER'] as const;
const brokerExpects = 'host:port, a name or an IPv4 address (the client does not support IPv6 addresses: use a name)';
const topicName = /^(?!\.{1,2}$)[A-Za-z0-9._-]{1,249}$/;

const saslSettings = z
  .strictObject({
    mechanism: z.enum(mechanisms).describe('SASL mechanism'),
    username: line().optional().describe('User of PLAIN and SCRAM'),
    password: secret().optional().describe('Password of PLAIN and SCRAM'),
    oauth: z
      .strictObject({
        tokenUrl: httpsUrl().describe('Token endpoint, for the grant client_credentials'),
        clientId: line().describe('Client id'),
        clientSecret: secret().describe('Client secret, sent by HTTP Basic'),
        scope: line().optional().describe('Scope of the token'),
      })
      .optional()
      .describe('Token service of OAUTHBEARER'),
  })
  .superRefine(({ mechanism, username, password, oauth }, context) => {
    const isOauth = mechanism === 'OAUTHBEARER';
    const given = { username, password, oauth };
    for (const key of ['username', 'password', 'oauth'] as const) {
      const isNeeded = (key === 'oauth') === isOauth;
      if (isNeeded && given[key] === undefined)
        context.addIssue({ code: 'custom', path: [key], message: `is missing: ${mechanism} needs it` });
      if (!isNeeded && given[key] !== undefined)
        context.addIssue({
          code: 'custom',
          path: [key],
          message: `is not used: ${mechanism} requires ${isOauth ? 'oauth' : 'username and password'}`,
        });
    }
  })
  .describe('Authentication; without it none, or the certificate of `tls`');

export const kafkaSettings = z.strictObject({
  brokers: z
    .array(text(/^[A-Za-z0-9._-]+:[0-9]{1,5}$/, brokerExpects))
    .min(1, 'names no broker')
    .describe('Bootstrap brokers, `host:port`'),
  topic: z
    .string()
    .refine((name) => topicName.test(name.replaceAll('{source}', 'x')), 'is not the name of a topic')
    .register(facts, {
      expects: 'the name of a topic: letters, digits, dot, hyphen and underscore; {source} stands for the id of the source',
    })
    .describe('Topic of the messages, which must exist; `{source}` stands for the id of the source'),
  clientId: line().default('waybill').describe('Name of the client in the logs, metrics and quotas of the brokers'),
  tls: tlsSettings
    .optional()
    .describe('TLS to the brokers: trust and client certificate. `tls: {}` trusts the built-in roots; without it no TLS'),
  sasl: saslSettings.optional(),
  compression: z.enum(['none', 'gzip', 'zstd']).default('none').describe('Compression of batches'),
  key: z
    .enum(['payloadId', 'uid', 'source', 'none'])
    .default('payloadId')
    .describe('Key of each message, which selects its partition; default its uid where the record has no such key'),
  exactlyOnce: z
    .boolean()
    .default(true)
    .describe(
      'Messages and position in one transaction: once for consumers that read committed. `false`: at least once, without transactions',
    ),
  progressTopic: text(topicName, 'the name of a topic: letters, digits, dot, hyphen and underscore')
    .optional()
    .describe('Topic that keeps the position of this sink alone; default `waybill-progress-` and the id of the sink'),
});

export type KafkaSettings = z.output<typeof kafkaSettings>;

export function topicsOf(topic: string, sources: readonly string[]): readonly string[] {
  return topic.includes('{source}') ? sources.map((source) => topic.replaceAll('{source}', source)) : [topic];
}

/** The reason why brokers delete messages of a topic with this `cleanup.policy`; undefined: they do not. */
export function compactionProblem(policy: string | undefined, { key }: Pick<KafkaSettings, 'key'>): string | undefined {
  if (key === 'uid' || !/\bcompact\b/.test(policy ?? '')) return undefined;
  const effect =
    key === 'none' ? 'brokers refuse messages without a key' : `brokers keep only the last message of each ${key}, and delete the others`;
  return `cleanup.policy is ${policy ?? ''}: ${effect}; set cleanup.policy=delete, or key: uid`;
}

export function progressTopicOf(id: string, { progressTopic }: KafkaSettings): string {
  return progressTopic ?? defaultProgressTopic(id);
}

/** Why a progress topic cannot be used; undefined: it can. @param partitions  0: it does not exist */
export function partitionProblem(topic: string, partitions: number, fleet: SinkContext['fleet']): string | undefined {
  const needed = fleet ? (fleet.shards ?? (fleet.shard ?? 0) + 1) : 1;
  if (fleet ? partitions >= needed : partitions === 1) return undefined;
  const has = partitions === 0 ? 'does not exist' : `has ${partitions} partition${partitions === 1 ? '' : 's'}`;
  if (!fleet) return `"${topic}" ${has} and must have one`;
  const each = fleet.shards === undefined ? 'each shard' : `each of the ${fleet.shards} shards`;
  return `"${topic}" ${has}, and ${each} of the fleet needs a partition: "waybill setup kafka" prints the command`;
}

/** Makes brokers compact a progress topic soon: at two transactions a second, an open would otherwise read 170,000 records a day. */
export const progressConfig: Readonly<Record<string, string>> = {
  'cleanup.policy': 'compact',
  'segment.bytes': '16777216',
  'segment.ms': '600000',
  'min.cleanable.dirty.ratio': '0.01',
};

/** Identifies the sink of a journal. A producer that uses the id later fences the earlier one. */
export function transactionalIdOf(journal: string, id: string): string {
  return `waybill-${journal}-${id}`;
}

/** ms after which the broker aborts a transaction: a minute longer than the deadline of a send. */
export const transactionTimeoutMs = 90_000;
export const sendDeadlineMs = 30_000;

/** Two sinks on one cluster need separate progress topics: entries of one block the other. */
export function progressTopicFaults(own: readonly WrittenSink[]): readonly SettingFault[] {
  const topics = own.flatMap((sink) => {
    const { id, brokers, exactlyOnce, progressTopic: given } = sink.settings;
    const name = given ?? (typeof id === 'string' ? defaultProgressTopic(id) : undefined);
    return exactlyOnce !== false && typeof name === 'string' && name !== unresolved ? [{ sink, given, name, brokers }] : [];
  });
  const isOneCluster = (a: unknown, b: unknown): boolean => Array.isArray(a) && Array.isArray(b) && a.some((broker) => b.includes(broker));
  return topics.flatMap((topic): readonly SettingFault[] => {
    const { sink, given, name } = topic;
    const isSame = (other: (typeof topics)[number]): boolean =>
      other !== topic &&
      other.name === name &&
      isOneCluster(other.brokers, topic.brokers) &&
      (other.sink.index < sink.index || other.given === undefined);
    const other = given === undefined ? undefined : topics.find(isSame);
    const fault = (message: string) => [{ sink, setting: 'progressTopic', message }];
    if (other) return fault(`is also the progress topic of another sink, sinks[${other.sink.index}]: each needs a separate one`);
    return sink.settings['topic'] === name ? fault('is the topic of the messages: the position needs a separate one') : [];
  });
}

function defaultProgressTopic(id: string): string {
  return `waybill-progress-${id}`;
}
