/**
 * A Kafka client as the sink uses it; kafkajs.ts implements it. Every error is a WaybillError: `sink_blocked`, `sink_refused`,
 * `sink_unavailable` or `sink_outcome_unknown`.
 */
import type { KafkaRecord } from './messages.ts';
import type { ReadRecord } from './progress.ts';

export interface TopicFacts {
  readonly partitions: number;
  /** The lowest number of replicas of a partition. */
  readonly replicas: number;
  /** Undefined without the privilege to read the configuration. */
  readonly config: ReadonlyMap<string, string> | undefined;
}

export interface OpenTransaction {
  /** One request to each broker. @returns the offset of the first record in its partition */
  send(records: readonly KafkaRecord[]): Promise<bigint>;
  commit(): Promise<void>;
}

/** The owner of a transactional id. It cannot abort: a delayed abort could end the next transaction (docs/guarantees.md, "Kafka"). */
export interface Owner {
  begin(): Promise<OpenTransaction>;
}

export interface KafkaClient extends AsyncDisposable {
  /** Undefined when the topic does not exist. `setting` names the topic. */
  topic(name: string, setting: string): Promise<TopicFacts | undefined>;
  /** Creates a topic with the default replication factor. An existing topic stays unchanged. */
  create(name: string, partitions: number, config: Readonly<Record<string, string>>, setting: string): Promise<void>;
  /** Becomes the owner of a transactional id: fences the previous owner and ends its open transaction. */
  own(transactionalId: string): Promise<Owner>;
  /** Sends records without a transaction. Resolves when every in-sync replica has them. */
  send(records: readonly KafkaRecord[]): Promise<void>;
  /** The committed records of a partition, from an offset to the record for which `isLast` is true. */
  read(topic: string, partition: number, from: bigint, isLast: (record: ReadRecord) => boolean): Promise<readonly ReadRecord[]>;
  /** Checks the privilege to read a topic with a group whose name begins with `waybill-`. */
  mayRead(topic: string): Promise<void>;
  /** Checks the privilege to write a topic with a request that every broker rejects: `acks: 2` (valid are 0, 1 and all). */
  mayWrite(topic: string, setting: string): Promise<void>;
  /** Cuts the connections at once: no request in flight can reach a broker, and every call ends. */
  cut(): void;
  readonly peer: string | undefined;
}
