/** The topics, privileges and a consumer that an administrator of a cluster sets up for a sink. Reads no file except `tls.cert`. */
import { X509Certificate } from 'node:crypto';
import { messageOf } from '../../errors/errors.ts';
import { progressConfig, progressTopicOf, topicsOf, type KafkaSettings } from './settings.ts';

/**
 * @param sources  ids of the sink's sources: each has a topic if the topic's name has `{source}`
 * @param shards  of a fleet: each has a partition of the progress topic
 */
export function setupText(id: string, settings: KafkaSettings, sources: readonly string[], shards = 1): string {
  const { brokers, topic, exactlyOnce } = settings;
  const server = `--bootstrap-server ${brokers.join(',')}`;
  const topics = topicsOf(topic, sources);
  const progress = progressTopicOf(id, settings);
  const principal = principalOf(settings);
  const actor = `User:${principal.name}`;
  const create = (name: string, partitions: number, config: Readonly<Record<string, string>>): string =>
    `kafka-topics.sh ${server} --create --if-not-exists --topic ${name} --partitions ${partitions} --replication-factor 3 ${options(
      'config',
      Object.entries(config).map(([key, value]) => `${key}=${value}`),
    )}`;
  const allow = (operations: readonly string[], resource: string): string =>
    `kafka-acls.sh ${server} --add --allow-principal '${actor}' ${options('operation', operations)} ${resource}`;
  const durable = { 'min.insync.replicas': '2', 'unclean.leader.election.enable': 'false' };
  const prefixed = '--resource-pattern-type prefixed';
  const lines = [
    '# Topics. Choose the partitions of the first; the guarantee requires 3 replicas, 2 of them in sync.',
    ...topics.map((name) => create(name, 6, durable)),
    ...(exactlyOnce ? [create(progress, shards, { ...progressConfig, ...durable })] : []),
    ...(exactlyOnce && shards > 1
      ? [
          '# Each shard of the fleet has a partition. If the topic has fewer:',
          `kafka-topics.sh ${server} --alter --topic ${progress} --partitions ${shards}`,
        ]
      : []),
    '',
    `# Rights of the sink "${id}". DescribeConfigs lets "waybill check" see what weakens the guarantee.`,
    ...principal.remarks.map((remark) => `# ${remark}`),
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
      ? '# A consumer. It must read committed: otherwise it sees the messages of failed transactions, and later sees them again.'
      : '# A consumer. A message may arrive twice after a failure, with the same header "id".',
    ...topics.flatMap((name) => [
      `kcat -C -b ${brokers.join(',')} -t ${name} -X isolation.level=read_committed -o beginning -e -f '%k %h %s\\n'`,
      `kafka-console-consumer.sh ${server} --topic ${name} --isolation-level read_committed --from-beginning`,
    ]),
    ...(exactlyOnce ? ['# For any other client of Kafka: isolation.level=read_committed'] : []),
  ];
  return `${lines.join('\n')}\n`;
}

/** Attribute types that Java writes by name in RFC 2253 (X500Principal.getName). It writes others as an OID with a hexadecimal value. */
const namedTypes = new Set(['CN', 'C', 'L', 'ST', 'O', 'OU', 'STREET', 'DC', 'UID']);

/** The sink's principal at the brokers: its SASL user, else the subject of its client certificate. */
function principalOf({ sasl, tls }: KafkaSettings): { readonly name: string; readonly remarks: readonly string[] } {
  const user = sasl?.username ?? sasl?.oauth?.clientId;
  if (user !== undefined) return { name: user, remarks: [] };
  if (tls?.cert === undefined) return { name: 'ANONYMOUS', remarks: ['Without SASL and without tls.cert the brokers see User:ANONYMOUS.'] };
  const remark = 'The principal is the subject of tls.cert; ssl.principal.mapping.rules of the brokers may change it.';
  try {
    // Node returns one line for each relative name, first to last. RFC 2253 begins with the last.
    const parts = new X509Certificate(tls.cert.read().join('\n')).subject.split('\n').reverse();
    const isNamed = parts.flatMap((part) => part.split(' + ')).every((part) => namedTypes.has(part.split('=', 1)[0] ?? ''));
    const odd =
      'Its subject has types that Java writes as OIDs: compare the principal in the log of the brokers (kafka.authorizer.logger).';
    return { name: parts.join(',').replaceAll(' + ', '+'), remarks: isNamed ? [remark] : [remark, odd] };
  } catch (thrown) {
    return {
      name: '<subject of tls.cert>',
      remarks: [remark, `cannot read tls.cert here (${messageOf(thrown)}): openssl x509 -noout -subject -nameopt RFC2253 -in CERT`],
    };
  }
}

function options(name: string, values: readonly string[]): string {
  return values.map((value) => `--${name} ${value}`).join(' ');
}
