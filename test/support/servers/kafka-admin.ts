/**
 * Administration of a broker for the tests: topics and permissions, by the plain listener, which
 * may do everything.
 */
import kafkajs from 'kafkajs';
import { quietTimers } from '../../../src/sink/kafka/timers.ts';
import { until } from '../e2e-place.ts';
import type { KafkaBroker } from './kafka-broker.ts';

export async function administer<Result>(broker: KafkaBroker, work: (admin: kafkajs.Admin) => Promise<Result>): Promise<Result> {
  quietTimers();
  const admin = new kafkajs.Kafka({ brokers: [broker.address()], logLevel: kafkajs.logLevel.NOTHING }).admin();
  await admin.connect();
  try {
    return await work(admin);
  } finally {
    await admin.disconnect();
  }
}

/**
 * Creates a topic, and waits until it has leaders: for the client that creates it, a topic without
 * them fails.
 */
export async function createTopic(broker: KafkaBroker, wish: Omit<kafkajs.ITopicConfig, 'replicationFactor'>): Promise<void> {
  await administer(broker, async (admin) => {
    await admin.createTopics({ waitForLeaders: false, topics: [{ ...wish, replicationFactor: 1 }] });
    await until(`the topic ${wish.topic} has its leaders`, 60_000, async () => {
      const found = await admin.fetchTopicMetadata({ topics: [wish.topic] }).catch(() => undefined);
      const partitions = found?.topics[0]?.partitions ?? [];
      return (partitions.length === (wish.numPartitions ?? 1) && partitions.every(({ leader }) => leader >= 0)) || undefined;
    });
  });
}

/** Grants all permissions, for tests of other subjects. */
export async function allow(broker: KafkaBroker, principal: string): Promise<void> {
  const { AclResourceTypes: type, AclOperationTypes, AclPermissionTypes, ResourcePatternTypes } = kafkajs;
  const acl = [type.TOPIC, type.GROUP, type.TRANSACTIONAL_ID, type.CLUSTER].map((resourceType) => ({
    ...{
      resourceType,
      principal: `User:${principal}`,
      host: '*',
      operation: AclOperationTypes.ALL,
      permissionType: AclPermissionTypes.ALLOW,
    },
    ...(resourceType === type.CLUSTER
      ? { resourceName: 'kafka-cluster', resourcePatternType: ResourcePatternTypes.LITERAL }
      : { resourceName: '*', resourcePatternType: ResourcePatternTypes.LITERAL }),
  }));
  await administer(broker, (admin) => admin.createAcls({ acl }));
}

/** Parses a line of `kafka-acls.sh --add` into the permissions that it grants. */
export function aclsOf(line: string): kafkajs.AclEntry[] {
  const { AclResourceTypes, AclOperationTypes, AclPermissionTypes, ResourcePatternTypes } = kafkajs;
  const values = (option: string): string[] =>
    [...line.matchAll(new RegExp(`--${option} '?([^ ']+)'?`, 'g'))].map(([, value]) => value ?? '');
  const resources = { topic: AclResourceTypes.TOPIC, group: AclResourceTypes.GROUP, 'transactional-id': AclResourceTypes.TRANSACTIONAL_ID };
  const operations: Record<string, kafkajs.AclOperationTypes> = {
    Read: AclOperationTypes.READ,
    Write: AclOperationTypes.WRITE,
    Describe: AclOperationTypes.DESCRIBE,
    DescribeConfigs: AclOperationTypes.DESCRIBE_CONFIGS,
  };
  const resourcePatternType = line.includes('--resource-pattern-type prefixed')
    ? ResourcePatternTypes.PREFIXED
    : ResourcePatternTypes.LITERAL;
  return Object.entries(resources).flatMap(([option, resourceType]) =>
    values(option).flatMap((resourceName) =>
      values('operation').map((operation) => ({
        ...{ resourceType, resourceName, resourcePatternType, principal: values('allow-principal')[0] ?? '', host: '*' },
        ...{ operation: operations[operation] ?? AclOperationTypes.UNKNOWN, permissionType: AclPermissionTypes.ALLOW },
      })),
    ),
  );
}
