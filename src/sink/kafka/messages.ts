/** Converts a batch to records with key, partition and headers, and groups them into requests. Pure. */
import type { Message } from '../../model/sink.ts';
import type { KafkaSettings } from './settings.ts';

export interface KafkaRecord {
  readonly topic: string;
  readonly partition: number;
  readonly key: string | null;
  readonly value: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/** A record before its partition is known. */
type Keyed = Omit<KafkaRecord, 'partition'> & { readonly spread: string };

export function keyed(message: Message, { topic, key }: Pick<KafkaSettings, 'topic' | 'key'>): Keyed {
  const { uid, source, number, bytes } = message;
  const chosen = { payloadId: message.key, uid, source, none: undefined }[key];
  return {
    topic: topic.replaceAll('{source}', source),
    key: chosen ?? null,
    spread: chosen ?? uid,
    value: bytes,
    headers: { id: uid, ...(number === undefined ? {} : { number: String(number) }), source },
  };
}

/** As Kafka's own clients choose it: murmur2 of the key's UTF-8 bytes, without the sign, modulo the number of partitions. */
export function partitionFor(key: string, partitions: number): number {
  return (murmur2(Buffer.from(key)) & 0x7fffffff) % partitions;
}

const seed = 0x9747b28c;
const factor = 0x5bd1e995;

/** MurmurHash2, 32 bits, with the seed of Kafka (org.apache.kafka.common.utils.Utils#murmur2). */
export function murmur2(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const whole = bytes.length & ~3;
  let hash = seed ^ bytes.length;
  for (let at = 0; at < whole; at += 4) {
    const word = Math.imul(view.getInt32(at, true), factor);
    hash = Math.imul(hash, factor) ^ Math.imul(word ^ (word >>> 24), factor);
  }
  for (let at = bytes.length - 1; at >= whole; at -= 1) hash ^= (bytes[at] ?? 0) << (8 * (at - whole));
  if (whole < bytes.length) hash = Math.imul(hash, factor);
  hash = Math.imul(hash ^ (hash >>> 13), factor);
  return hash ^ (hash >>> 15);
}

/** Maximum records of a partition in a request: for each record, the client copies all earlier ones. */
const maxRecords = 1_000;
/** Maximum bytes of a record in addition to key, value and headers (Kafka documentation, "Record Batch"). */
const recordOverhead = 70;

/**
 * Divides a batch into requests, sent in order, so that the messages of a partition keep their order. For each partition a request has at
 * most the allowed bytes, or a single longer record: compression may make it fit.
 * @param bytesOf  the largest batch of a topic, in bytes
 */
export function rounds(records: readonly KafkaRecord[], bytesOf: (topic: string) => number): KafkaRecord[][] {
  const made: KafkaRecord[][] = [];
  const filled = new Map<string, { round: number; bytes: number; count: number }>();
  for (const record of records) {
    const size = sizeOf(record);
    const partition = `${record.topic} ${record.partition}`;
    const at = filled.get(partition) ?? { round: 0, bytes: 0, count: 0 };
    if (at.count > 0 && (at.bytes + size > bytesOf(record.topic) || at.count >= maxRecords)) {
      at.round += 1;
      at.bytes = at.count = 0;
    }
    at.bytes += size;
    at.count += 1;
    filled.set(partition, at);
    (made[at.round] ??= []).push(record);
  }
  return made;
}

/** Minimum bytes of a batch of one record besides key, value and headers (Kafka documentation, "Record Batch": 61, and 7 of the record). */
const batchOverhead = 68;

/**
 * True if the record exceeds the limit even in a separate batch. Brokers compare `max.message.bytes` with the compressed batch.
 * @param compressed  the value as the batch would contain it
 */
export function isTooLong({ key, value, headers }: KafkaRecord, maxBytes: number, compressed: (value: Uint8Array) => Uint8Array): boolean {
  let size = batchOverhead + (key === null ? 0 : Buffer.byteLength(key));
  for (const name in headers) size += 2 + name.length + Buffer.byteLength(headers[name] ?? '');
  return size + value.length > maxBytes && batchOverhead + compressed(value).length > maxBytes;
}

function sizeOf({ key, value, headers }: KafkaRecord): number {
  let size = recordOverhead + value.length + (key === null ? 0 : Buffer.byteLength(key));
  for (const name in headers) size += 4 + name.length + Buffer.byteLength(headers[name] ?? '');
  return size;
}
