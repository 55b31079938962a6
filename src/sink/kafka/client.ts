/**
 * What the protocol of the sink asks of a client of Kafka. kafkajs stands behind it (kafka-kafkajs.ts); another client can take its place without the
 * protocol knowing. Every error that a call ends with says already what it means: `sink_blocked`, `sink_refused`, `sink_unavailable`, `sink_outcome_unknown`.
 */
import type { KafkaRecord } from './messages.ts';
import type { ReadRecord } from './progress.ts';

export interface TopicFacts {
  readonly partitions: number;
  /** Of the partition that has the fewest. */
  readonly replicas: number;
  /** Undefined when the right to read it is not there. */
  readonly config: ReadonlyMap<string, string> | undefined;
}

export interface OpenTransaction {
  /** One request to each broker. @returns the offset of the first record in its partition */
  send(records: readonly KafkaRecord[]): Promise<bigint>;
  commit(): Promise<void>;
}

/** The owner of a transactional id. There is no abort: a late end of a transaction could hit the next one (docs/guarantees.md, "Kafka"). */
export interface Owner {
  begin(): Promise<OpenTransaction>;
}

export interface KafkaClient extends AsyncDisposable {
  /** What is known of a topic; undefined when there is none. `setting` is the one that names it. */
  topic(name: string, setting: string): Promise<TopicFacts | undefined>;
  /** A topic with one partition and as many replicas as the cluster gives by itself. One that is there already stays as it is. */
  create(name: string, config: Readonly<Record<string, string>>, setting: string): Promise<void>;
  /** Becomes the owner of a transactional id: whoever had it can do nothing more, and what it left open is ended. */
  own(transactionalId: string): Promise<Owner>;
  /** Outside of transactions: resolves when every replica in sync has it. */
  send(records: readonly KafkaRecord[]): Promise<void>;
  /** What was committed in the first partition of a topic, from an offset on, up to the record for which `isLast` holds. */
  read(topic: string, from: bigint, isLast: (record: ReadRecord) => boolean): Promise<readonly ReadRecord[]>;
  /** Asks whether a topic may be read by a group as ours are named. */
  mayRead(topic: string): Promise<void>;
  /** Asks whether a topic may be written, by a request that no broker obeys: it wants two acknowledgements, and there are 0, 1 and all. */
  mayWrite(topic: string, setting: string): Promise<void>;
  /** Ends it at once: nothing that it has under way can reach a broker any more, and none of its calls goes on. */
  cut(): void;
  /** The certificate of the last connection, in words. */
  readonly peer: string | undefined;
}
