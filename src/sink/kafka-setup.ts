/** What `waybill setup kafka` prints for the administrator of a cluster: topics, rights, and a consumer that sees only what was committed. Pure. */
import { progressConfig, progressTopicOf, topicsOf } from './kafka-settings.ts';
import type { KafkaSettings } from './kafka-settings.ts';

/** @param sources  ids of the sources that the sink takes: each has a topic where `{source}` stands in its name */
export function setupText(id: string, settings: KafkaSettings, sources: readonly string[]): string {
  const { brokers, topic, exactlyOnce } = settings;
  const server = `--bootstrap-server ${brokers.join(',')}`;
  const topics = topicsOf(topic, sources);
  const progress = progressTopicOf(id, settings);
  const who = `User:${settings.sasl?.username ?? settings.sasl?.oauth?.clientId ?? 'waybill'}`;
  const create = (name: string, partitions: number, config: Readonly<Record<string, string>>): string =>
    `kafka-topics.sh ${server} --create --if-not-exists --topic ${name} --partitions ${partitions} --replication-factor 3 ${options(
      'config',
      Object.entries(config).map(([key, value]) => `${key}=${value}`),
    )}`;
  const allow = (operations: readonly string[], resource: string): string =>
    `kafka-acls.sh ${server} --add --allow-principal '${who}' ${options('operation', operations)} ${resource}`;
  const durable = { 'min.insync.replicas': '2', 'unclean.leader.election.enable': 'false' };
  const prefixed = '--resource-pattern-type prefixed';
  const lines = [
    '# Topics. Choose the partitions of the first; 3 replicas of which 2 are in sync are what the guarantee rests on.',
    ...topics.map((name) => create(name, 6, durable)),
    ...(exactlyOnce ? [create(progress, 1, { ...progressConfig, ...durable })] : []),
    '',
    `# Rights of the sink "${id}". DescribeConfigs lets "waybill check" see what weakens the guarantee.`,
    ...topics.map((name) => allow(['Write', 'Describe', 'DescribeConfigs'], `--topic ${name}`)),
    ...(exactlyOnce
      ? [
          allow(['Read', 'Write', 'Describe', 'DescribeConfigs'], `--topic ${progress}`),
          allow(['Write', 'Describe'], `--transactional-id waybill- ${prefixed}`),
          allow(['Read'], `--group waybill- ${prefixed}`),
        ]
      : []),
    '',
    exactlyOnce
      ? '# A consumer. It must read committed: any other sees messages of transactions that failed, and sees them again.'
      : '# A consumer. A message may come twice after a failure: the header "id" is the same then.',
    ...topics.flatMap((name) => [
      `kcat -C -b ${brokers.join(',')} -t ${name} -X isolation.level=read_committed -o beginning -e -f '%k %h %s\\n'`,
      `kafka-console-consumer.sh ${server} --topic ${name} --isolation-level read_committed --from-beginning`,
    ]),
    ...(exactlyOnce ? ['# Of any client of Kafka: isolation.level=read_committed'] : []),
  ];
  return `${lines.join('\n')}\n`;
}

function options(name: string, values: readonly string[]): string {
  return values.map((value) => `--${name} ${value}`).join(' ');
}
