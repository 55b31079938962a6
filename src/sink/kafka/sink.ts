/**
 * Sends to Kafka. With `exactlyOnce`, one transaction commits messages and position. Three rules follow from the client's sequence numbers
 * (docs/guarantees.md, "Kafka"): one send at a time, no use of a producer after an error, and no reliance on its idempotence.
 */
import { addAbortListener } from 'node:events';
import { randomUUID } from 'node:crypto';
import { codeOf, WaybillError } from '../../errors/errors.ts';
import type { Position } from '../../model/ledger.ts';
import type { Batch, FeedPosition, ResumePoint, ResumePosition, Rejection, Sink, DeliveryResult } from '../../model/sink.ts';
import type { SinkContext } from '../define.ts';
import type { KafkaClient, Owner } from './client.ts';
import { isTooLong, keyed, partitionFor, rounds, type KafkaRecord } from './messages.ts';
import { holdsPosition, lastProgress, openKey, ownProgress, progressText, type Progress, type ReadRecord } from './progress.ts';
import { compactionProblem, partitionProblem, progressConfig, progressTopicOf, transactionalIdOf, type KafkaSettings } from './settings.ts';
import type { TokenSource } from './token.ts';

/** The largest batch for a topic with unknown settings: the brokers' default limit is 1,048,588 bytes. */
const batchBytesUsual = 1_000_000;
/** The resume note of a batch without a transaction: any position in the progress topic is older. */
const notInTransactions = '';
/** The search for the last position starts this many records before the end of the progress topic. */
const lookBack = 1_000n;
/** The client's sequence numbers overflow at 2^31: a producer is replaced long before. */
const maxMessages = 1_000_000_000;

/** Sinks that this process has opened successfully, by `connectionKey`. */
const opened = new Set<string>();

/** Identifies a sink by its settings for connecting: another listener or mechanism has not worked yet. */
function connectionKey({ brokers, sasl, tls }: KafkaSettings, id: string): string {
  return JSON.stringify([id, brokers, sasl?.mechanism, tls !== undefined]);
}

/** A client and its producer. The first error ends both. */
interface Session {
  readonly client: KafkaClient;
  /** Undefined outside of transactions. */
  readonly owner: Owner | undefined;
  sent: number;
}

interface Topic {
  readonly partitions: number;
  /** Maximum bytes of a batch. */
  readonly bytes: number;
  /** `max.message.bytes`; undefined without the privilege to read it. */
  readonly limit: number | undefined;
}

export class KafkaSink implements Sink {
  readonly #settings: KafkaSettings;
  readonly #context: SinkContext;
  readonly #resumePoint: ResumePoint;
  readonly #tokens: TokenSource | undefined;
  readonly #progressTopic: string;
  /** Each shard of a fleet has its own partition: the positions of one journal would block another. */
  readonly #progressPartition: number;
  readonly #topics = new Map<string, Topic>();
  #session: Session | undefined;
  #position: Position | undefined;
  /** The dead letter in the last transaction, as read at open. */
  #feed: FeedPosition | undefined;
  /** A batch may have been committed: only a new open can find out. */
  #isUnknown = false;

  static async open(settings: KafkaSettings, context: SinkContext, kept: ResumePoint, signal: AbortSignal): Promise<KafkaSink> {
    const oauth = settings.sasl?.oauth;
    const tokens = oauth && new (await import('./token.ts')).TokenSource(oauth, context);
    const sink = new KafkaSink(settings, context, kept, tokens);
    try {
      await sink.#begin(signal, (session) => sink.#resume(session));
      opened.add(connectionKey(settings, context.id));
      return sink;
    } catch (thrown) {
      await sink[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  private constructor(settings: KafkaSettings, context: SinkContext, kept: ResumePoint, tokens: TokenSource | undefined) {
    this.#settings = settings;
    this.#context = context;
    this.#resumePoint = kept;
    this.#progressTopic = progressTopicOf(context.id, settings);
    this.#progressPartition = context.fleet?.shard ?? 0;
    this.#tokens = tokens;
  }

  async position(): Promise<ResumePosition | undefined> {
    const sink = this.#context.id;
    return this.#position && { position: this.#position, resumeNote: this.#resumeNote(), sink, feed: this.#feed };
  }

  async send(batch: Batch, signal: AbortSignal): Promise<DeliveryResult> {
    if (this.#isUnknown) throw this.#error('sink_outcome_unknown', 'the outcome of a batch is not known yet');
    if (this.#session && this.#session.sent > maxMessages) await this.#end();
    // Without a session, the outcome of the last batch is certain.
    const session = this.#session ?? (await this.#begin(signal, (next) => this.#continue(next)));
    try {
      return await this.#within(signal, session.client, () => this.#send(session, batch));
    } catch (thrown) {
      const code = codeOf(thrown);
      // mutant: unknown-after-error
      this.#isUnknown ||= code !== 'sink_blocked' && code !== 'sink_unavailable' && code !== 'sink_refused';
      await this.#end();
      throw thrown;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    await session?.client[Symbol.asyncDispose]();
    await this.#tokens?.[Symbol.asyncDispose]();
  }

  async #send(session: Session, batch: Batch): Promise<DeliveryResult> {
    const records = await this.#records(session.client, batch);
    const rejections = await this.#tooLong(session.client, batch, records);
    const left =
      rejections.length === 0 ? records : records.filter((_, i) => !rejections.some(({ seq }) => seq === batch.messages[i]?.seq));
    const requests = rounds(left, (topic) => this.#topics.get(topic)?.bytes ?? batchBytesUsual);
    session.sent += batch.messages.length;
    const { owner, client } = session;
    if (owner === undefined) {
      for (const request of requests) await client.send(request);
      return { rejections, resumeNote: notInTransactions };
    }
    // mutant: begin-transaction
    const transaction = await owner.begin();
    const last = /* mutant: position-in-transaction */ [...(requests.pop() ?? []), this.#progressOf(batch)];
    // mutant: send-in-order
    for (const request of [...requests, last]) await transaction.send(request);
    // Until the response arrives, the outcome is unknown whatever ends the wait, even a rejected certificate of another broker.
    this.#isUnknown = true;
    // mutant: commit-transaction
    await transaction.commit();
    this.#isUnknown = false;
    this.#position = batch.through;
    return { rejections, resumeNote: this.#resumeNote() };
  }

  /** Creates a client and, with transactions, acquires the transactional id, which ends the transaction of an earlier owner. */
  async #begin(signal: AbortSignal, then: (session: Session) => Promise<void>): Promise<Session> {
    const { exactlyOnce } = this.#settings;
    const { KafkaJsClient } = await import('./kafkajs.ts');
    const client = new KafkaJsClient(
      this.#settings,
      this.#context,
      this.#tokens,
      opened.has(connectionKey(this.#settings, this.#context.id)),
    );
    try {
      return await this.#within(signal, client, async () => {
        await this.#prepare(client);
        const owner = exactlyOnce ? await client.own(transactionalIdOf(this.#resumePoint.journal, this.#context.id)) : undefined;
        const session = { client, owner, sent: 0 };
        await then(session);
        this.#session = session;
        return session;
      });
    } catch (thrown) {
      client.cut();
      throw thrown;
    }
  }

  async #end(): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    session?.client.cut();
  }

  /** Cuts the client when the signal is aborted: no request in flight can reach a broker. */
  async #within<Result>(signal: AbortSignal, client: KafkaClient, work: () => Promise<Result>): Promise<Result> {
    signal.throwIfAborted();
    using _listener = addAbortListener(signal, () => {
      // mutant: cut-client
      client.cut();
    });
    try {
      return await work();
    } catch (thrown) {
      signal.throwIfAborted();
      throw thrown;
    }
  }

  /** Checks the topics before a send: the client would retry a missing topic for long. */
  async #prepare(client: KafkaClient): Promise<void> {
    const { topic, exactlyOnce } = this.#settings;
    if (!topic.includes('{source}')) await this.#topic(client, topic);
    if (!exactlyOnce) return;
    const found = await client.topic(this.#progressTopic, 'progressTopic');
    const { fleet } = this.#context;
    if (found === undefined && !fleet) {
      await client.create(this.#progressTopic, 1, progressConfig, 'progressTopic');
      return;
    }
    const message = partitionProblem(this.#progressTopic, found?.partitions ?? 0, fleet);
    if (message !== undefined) throw this.#error('sink_blocked', message, 'progressTopic');
  }

  async #resume({ client, owner }: Session): Promise<void> {
    if (owner === undefined) return;
    const records = await this.#progressRecords(client, owner);
    const { id } = this.#context;
    if (this.#resumePoint.adopt === true) {
      ownProgress(records, id, this.#progressTopic);
      await this.#adopt(owner);
      return;
    }
    const last = this.#progressIn(records);
    this.#position = last?.position;
    this.#feed = last?.feed;
  }

  /** A process that was stopped does not know that its successor has sent since its last batch: with the next producer it would send that again. */
  async #continue({ client, owner }: Session): Promise<void> {
    if (owner === undefined) return;
    const last = this.#progressIn(await this.#progressRecords(client, owner));
    if (last?.position.seq === this.#position?.seq) return;
    this.#isUnknown = true;
    throw this.#error('sink_outcome_unknown', 'another process has sent in the meantime');
  }

  /**
   * The records of the progress topic before the own "open" record, which marks the end also when control records follow: the last one of this
   * sink has its position. Only the owner of the transactional id reads it: by then, transactions of an earlier owner have been committed or aborted.
   */
  async #progressRecords(client: KafkaClient, owner: Owner): Promise<readonly ReadRecord[]> {
    const { id } = this.#context;
    const topic = this.#progressTopic;
    const mark = `${this.#resumePoint.journal}/${randomUUID()}`;
    const transaction = await owner.begin();
    const end = await transaction.send([{ ...this.#progressRecord(openKey(id), mark) }]);
    await transaction.commit();
    const isMark = ({ key, value }: { key: string | undefined; value: string | undefined }): boolean =>
      // mutant: opening-record
      key === openKey(id) && value === mark;
    const from = end > lookBack ? end - lookBack : 0n;
    const records = await client.read(topic, this.#progressPartition, from, isMark);
    return from > 0n && !holdsPosition(records, id) ? client.read(topic, this.#progressPartition, 0n, isMark) : records;
  }

  /** Before the first transaction of this journal, an older position does not matter. After it, a topic without a position has lost it. */
  #progressIn(records: readonly ReadRecord[]): Progress | undefined {
    const { journal, resumeNote: note, position } = this.#resumePoint;
    const found = lastProgress(records, this.#context.id, journal, this.#progressTopic);
    if (note === undefined || note === notInTransactions) return found && found.position.seq < position.seq ? undefined : found;
    if (found !== undefined) return found;
    const message = `"${this.#progressTopic}" has no position, and entry ${position.seq} was delivered (by "${note}"): the topic was emptied, or the setting names another one; restore it, or see "waybill sinks adopt"`;
    throw this.#error('sink_blocked', message, 'progressTopic');
  }

  /** Replaces the position in the topic with the position of this journal. */
  async #adopt(owner: Owner): Promise<void> {
    const { journal, position } = this.#resumePoint;
    const transaction = await owner.begin();
    await transaction.send([this.#progressRecord(this.#context.id, progressText({ journal, position, adopted: true }))]);
    await transaction.commit();
    this.#position = position;
  }

  async #records(client: KafkaClient, { messages }: Batch): Promise<KafkaRecord[]> {
    const records: KafkaRecord[] = [];
    for (const message of messages) {
      const { spread, ...record } = keyed(message, this.#settings);
      const { partitions } = this.#topics.get(record.topic) ?? (await this.#topic(client, record.topic));
      records.push({ ...record, partition: partitionFor(spread, partitions) });
    }
    return records;
  }

  /** Rejects messages that exceed `max.message.bytes`: a broker does not name them, and halving would need a transaction for each step. */
  async #tooLong(client: KafkaClient, { messages }: Batch, records: readonly KafkaRecord[]): Promise<Rejection[]> {
    const { compress } = await import('./kafkajs.ts');
    const isBeyond = (record: KafkaRecord): boolean => {
      const { limit } = this.#topics.get(record.topic) ?? {};
      return limit !== undefined && isTooLong(record, limit, compress[this.#settings.compression]);
    };
    // Reads the limit again: it may be higher now.
    const names = new Set(records.filter(isBeyond).map(({ topic }) => topic));
    for (const name of names) await this.#topic(client, name);
    return records.flatMap((record, i) => {
      const { seq } = messages[i] ?? {};
      if (seq === undefined || !names.has(record.topic) || !isBeyond(record)) return [];
      const { limit } = this.#topics.get(record.topic) ?? {};
      const message = `a message of ${record.value.length} bytes exceeds max.message.bytes=${limit} of topic "${record.topic}"; it was not sent`;
      return [{ seq, code: 'MESSAGE_TOO_LARGE', message }];
    });
  }

  async #topic(client: KafkaClient, name: string): Promise<Topic> {
    const found = await client.topic(name, 'topic');
    if (found === undefined)
      throw this.#error(
        'sink_blocked',
        `topic "${name}" does not exist: "waybill setup kafka" prints the command that creates it`,
        'topic',
      );
    const problem = this.#topics.has(name) ? undefined : compactionProblem(found.config?.get('cleanup.policy'), this.#settings);
    if (problem !== undefined) this.#context.log.write('sink.topic_compacted', { sink: this.#context.id, topic: name, detail: problem });
    const given = Number(found.config?.get('max.message.bytes'));
    const limit = given > 0 ? given : undefined;
    const topic = { partitions: found.partitions, bytes: Math.min(limit ?? batchBytesUsual, batchBytesUsual), limit };
    this.#topics.set(name, topic);
    return topic;
  }

  #progressOf({ through: position, feed }: Batch): KafkaRecord {
    return this.#progressRecord(this.#context.id, progressText({ journal: this.#resumePoint.journal, position, feed }));
  }

  #progressRecord(key: string, value: string): KafkaRecord {
    return { topic: this.#progressTopic, partition: this.#progressPartition, key, value: Buffer.from(value), headers: {} };
  }

  /** The progress topic with the position, stored with the acknowledgement. */
  #resumeNote(): string {
    return this.#progressTopic;
  }

  #error(code: 'sink_blocked' | 'sink_outcome_unknown', message: string, setting?: string): WaybillError {
    const { id } = this.#context;
    return new WaybillError(code, `cannot use sink "${id}"${setting === undefined ? '' : ` (sinks.${id}.${setting})`}: ${message}`);
  }
}
