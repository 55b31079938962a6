/** The checks of `waybill check` for a sink `kafka`: topics, privileges, and settings that weaken the guarantee. Sends no record. */
import { addAbortListener } from 'node:events';
import { WaybillError, messageOf } from '../../errors/errors.ts';
import { isLoopback } from '../../settings/loopback.ts';
import { error, ok, warning, type Finding, type SinkContext } from '../define.ts';
import type { KafkaClient, TopicFacts } from './client.ts';
import { KafkaJsClient } from './kafkajs.ts';
import { compactionProblem, partitionProblem, progressConfig, progressTopicOf, topicsOf, type KafkaSettings } from './settings.ts';
import { TokenSource } from './token.ts';

/** The broker's default of `message.max.bytes`. */
const usualMessageBytes = 1_048_588;

/** A week, the broker's default of `log.retention.hours`. */
const usualRetentionMs = 604_800_000;

/** A separate transactional id: a check must not fence a running sink. */
const checkId = (id: string): string => `waybill-check-${id}`;

export async function checkKafka(settings: KafkaSettings, context: SinkContext, signal: AbortSignal): Promise<readonly Finding[]> {
  const { id } = context;
  const findings: Finding[] = [...unprotected(settings, id)];
  const tokens = settings.sasl?.oauth && new TokenSource(settings.sasl.oauth, context);
  const client = new KafkaJsClient(settings, context, tokens);
  using _listener = addAbortListener(signal, () => client.cut());
  try {
    await look(client, settings, context, findings);
  } catch (thrown) {
    signal.throwIfAborted();
    if (!(thrown instanceof WaybillError)) throw thrown;
    findings.push(error(messageOf(thrown)));
  } finally {
    await client[Symbol.asyncDispose]();
    await tokens?.[Symbol.asyncDispose]();
  }
  return findings;
}

async function look(client: KafkaClient, settings: KafkaSettings, { id, sources, fleet }: SinkContext, findings: Finding[]): Promise<void> {
  const { topic, exactlyOnce, tls } = settings;
  for (const name of topicsOf(topic, sources ?? [])) await lookAtTopic(client, settings, name, id, findings);
  if (tls !== undefined && client.peer !== undefined) findings.push(ok(client.peer));
  if (exactlyOnce) await lookAtProgress(client, settings, id, fleet, findings);
}

async function lookAtTopic(client: KafkaClient, settings: KafkaSettings, topic: string, id: string, findings: Finding[]): Promise<void> {
  const setting = `sinks.${id}.topic`;
  const found = await client.topic(topic, 'topic');
  if (found === undefined) {
    findings.push(error(`topic "${topic}" does not exist: "waybill setup kafka --sink ${id}" prints the command that creates it`, setting));
    return;
  }
  findings.push(
    ok(
      `topic "${topic}" exists, with ${counted(found.partitions, 'partition')}; acks -1: a message counts as delivered once every in-sync replica has it`,
    ),
  );
  findings.push(...durability(topic, found, setting), ...deletion(topic, found, settings, setting));
  const limit = Number(found.config?.get('max.message.bytes'));
  if (limit < usualMessageBytes)
    findings.push(
      warning(
        `"${topic}": max.message.bytes is ${limit}: a longer message becomes a dead letter without being sent (brokers grant ${usualMessageBytes} by default)`,
        setting,
      ),
    );
  await right(findings, () => client.mayWrite(topic, 'topic'), `may write to "${topic}"`, setting);
}

async function lookAtProgress(
  client: KafkaClient,
  settings: KafkaSettings,
  id: string,
  fleet: SinkContext['fleet'],
  findings: Finding[],
): Promise<void> {
  const progress = progressTopicOf(id, settings);
  const setting = `sinks.${id}.progressTopic`;
  const own = checkId(id);
  await right(
    findings,
    () => client.own(own),
    `may own transactional ids that begin with "waybill-" (tried with "${own}")`,
    `sinks.${id}.exactlyOnce`,
  );
  const found = await client.topic(progress, 'progressTopic');
  if (found === undefined && !fleet) {
    findings.push(
      warning(
        `progress topic "${progress}" does not exist yet: the sink creates it at the start if permitted; "waybill setup kafka --sink ${id}" creates it now`,
        setting,
      ),
    );
    return;
  }
  const problem = partitionProblem(progress, found?.partitions ?? 0, fleet);
  if (found === undefined || problem !== undefined) {
    findings.push(error(`progress topic ${problem ?? ''}`, setting));
    return;
  }
  const different = Object.entries(progressConfig).filter(
    ([name, value]) => found.config !== undefined && found.config.get(name) !== value,
  );
  if (different.length > 0) {
    const requested = different.map(([name, value]) => `${name}=${value}, not ${found.config?.get(name) ?? 'unset'}`).join('; ');
    findings.push(warning(`progress topic "${progress}" should have ${requested}`, setting));
  } else
    findings.push(
      ok(
        `progress topic "${progress}" exists, with ${fleet ? `${counted(found.partitions, 'partition')} for ${fleet.shards ?? 'the'} shards` : 'one partition'}, compacted`,
      ),
    );
  findings.push(...durability(progress, found, setting));
  await right(findings, () => client.mayWrite(progress, 'progressTopic'), `may write to "${progress}"`, setting);
  await right(findings, () => client.mayRead(progress), `may read "${progress}", with a group that begins with "waybill-"`, setting);
}

/** One finding for a privilege: granted, or the broker's error. */
async function right(findings: Finding[], ask: () => Promise<unknown>, message: string, setting: string): Promise<void> {
  try {
    await ask();
    findings.push(ok(message));
  } catch (thrown) {
    if (!(thrown instanceof WaybillError)) throw thrown;
    findings.push(error(messageOf(thrown), setting));
  }
}

/** Settings of a topic with which brokers may lose acknowledged records. */
function durability(topic: string, { replicas, config }: TopicFacts, setting: string): Finding[] {
  const findings: Finding[] = [];
  const warn = (message: string): void => {
    findings.push(warning(`"${topic}": ${message}`, setting));
  };
  if (replicas < 3) warn(`${counted(replicas, 'replica')}; with 3, one broker may fail during maintenance of another`);
  if (config === undefined) {
    warn('min.insync.replicas and unclean.leader.election.enable are not visible: the permission DescribeConfigs on the topic is missing');
    return findings;
  }
  const insync = Number(config.get('min.insync.replicas') ?? 1);
  if (insync < 2)
    warn(`min.insync.replicas is ${insync}: a record on one broker counts as delivered, and is lost with that broker; set 2 or more`);
  if (config.get('unclean.leader.election.enable') === 'true')
    warn('unclean.leader.election.enable is true: a replica that lacks messages may become the leader, and they are lost');
  return findings;
}

/** Settings of a topic with which brokers delete messages before they are read, or all but the last of a key. */
function deletion(topic: string, { config }: TopicFacts, settings: KafkaSettings, setting: string): Finding[] {
  const policy = config?.get('cleanup.policy');
  const problem = compactionProblem(policy, settings);
  const found = problem === undefined ? [] : [error(`"${topic}": ${problem}`, setting)];
  if (policy !== undefined && !policy.includes('delete')) return found;
  const [ms, bytes] = ['retention.ms', 'retention.bytes'].map((name) => Number(config?.get(name) ?? -1));
  const warn = (message: string): void => void found.push(warning(`"${topic}": ${message}`, setting));
  if (ms !== undefined && ms >= 0 && ms < usualRetentionMs)
    warn(`retention.ms is ${ms} (${Math.round(ms / 360_000) / 10} h): a consumer that stops for longer loses messages (default 168 h)`);
  if (bytes !== undefined && bytes >= 0)
    warn(`retention.bytes is ${bytes} a partition: brokers delete older messages, whether they were read or not`);
  return found;
}

/** A password that is sent without encryption. */
function unprotected({ sasl, tls, brokers }: KafkaSettings, id: string): Finding[] {
  const isLocal = brokers.every((broker) => isLoopback(broker.slice(0, broker.lastIndexOf(':'))));
  if (sasl === undefined || tls !== undefined || isLocal || sasl.mechanism.startsWith('SCRAM')) return [];
  const message = `${sasl.mechanism} without tls: ${sasl.mechanism === 'PLAIN' ? 'the password' : 'the token'} can be read in transit`;
  return [warning(message, `sinks.${id}.tls`)];
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}
