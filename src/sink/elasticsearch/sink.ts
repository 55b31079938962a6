/** The open sink `elasticsearch`: searches for messages that may already be stored, creates the others, and checks the result of each item. */
import { WaybillError, codeOf } from '../../errors/errors.ts';
import type { RetryableRejection, Batch, ResumePoint, Message, Rejection, Sink, DeliveryResult } from '../../model/sink.ts';
import type { SinkContext } from '../define.ts';
import { ElasticClient, understood, type Answer } from './client.ts';
import { authenticate } from './identify.ts';
import { errorFrom, itemFrom, itemResultOf, requestResultOf, plainText, messageOfItem } from './items.ts';
import { membersOf } from '../../record/json-object.ts';
import { quote } from '../../errors/quote.ts';
import type { Item, ItemError, RequestResult } from './items.ts';
import { Reader } from './resolve.ts';
import { credentialsOf, patternOf, targeting, type ElasticsearchSettings } from './settings.ts';
import { install, mappingOf } from './templates.ts';

/** How long the server waits for a shard, so that it reports the item before the deadline of the send. */
const serverWait = '20s';

const lineBreak = Buffer.from('\n');

/** A message that was not stored and can be retried. */
interface Left {
  readonly message: Message;
  readonly result: 'retryable' | 'suspect';
  readonly item: Item;
}

const codes = {
  rejected: 'sink_refused',
  retryable: 'sink_unavailable',
  blocked: 'sink_blocked',
  unknown: 'sink_outcome_unknown',
} as const satisfies Record<RequestResult, string>;

export class ElasticsearchSink implements Sink {
  readonly #settings: ElasticsearchSettings;
  readonly #id: string;
  readonly #client: ElasticClient;
  readonly #reader: Reader;
  readonly #resumePoint: ResumePoint;
  readonly #targetOf: (message: Message) => string;
  readonly #progress: Map<string, number | null>;

  static async open(
    settings: ElasticsearchSettings,
    context: SinkContext,
    kept: ResumePoint,
    signal: AbortSignal,
  ): Promise<ElasticsearchSink> {
    const client = await ElasticClient.make(settings, context);
    try {
      await understood(context.id, 'sink_unavailable', signal, async () => {
        await authenticate(client, settings, context, signal);
        if (settings.templates === 'install') await install(client, settings, context.id, signal);
        if (settings.templates === 'check' && (await mappingOf(client, settings, signal)).isOurs === false) {
          context.log.write('sink.template_missing', { sink: context.id, target: patternOf(settings) });
        }
      });
      return new ElasticsearchSink(settings, context.id, client, kept);
    } catch (thrown) {
      await client[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  private constructor(settings: ElasticsearchSettings, id: string, client: ElasticClient, kept: ResumePoint) {
    this.#settings = settings;
    this.#id = id;
    this.#client = client;
    this.#reader = new Reader(client, id);
    this.#resumePoint = kept;
    this.#targetOf = targeting(settings);
    this.#progress = progressOf(kept.resumeNote);
  }

  async send(batch: Batch, signal: AbortSignal): Promise<DeliveryResult> {
    return understood(this.#id, 'sink_outcome_unknown', signal, () => this.#send(batch, signal));
  }

  async #send(batch: Batch, signal: AbortSignal): Promise<DeliveryResult> {
    const messages = this.#settings.index === undefined ? await this.#missing(batch, signal) : batch.messages;
    const duplicates = batch.messages.length - messages.length;
    if (messages.length === 0) return { rejections: [], duplicates };
    const { index } = this.#settings;
    const query = {
      timeout: serverWait,
      // mutant: bulk-filter
      filter_path: ['_id', 'status', 'result', 'error', 'failure_store'].map((name) => `items.create.${name}`).join(','),
    };
    const answer = await this.#client.request(
      {
        method: 'POST',
        path: '/_bulk',
        query: { ...query, ...(index === undefined && { require_data_stream: 'true' }) },
        lines: this.#lines(messages),
      },
      signal,
    );
    const refusal = this.#refusalOfOne(answer, messages);
    if (refusal) return { rejections: [], duplicates, retryable: refusal };
    const delivered = await this.#resolve(messages, this.#items(answer, messages), signal);
    return { ...delivered, duplicates: duplicates + (delivered.duplicates ?? 0) };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
  }

  /** The messages to create: searches first for messages that may already be stored. */
  async #missing(batch: Batch, signal: AbortSignal): Promise<readonly Message[]> {
    const there = new Set<string>();
    for (const [target, messages] of Map.groupBy(batch.messages, this.#targetOf)) {
      const mark = await this.#mark(target, signal);
      const isOld = ({ time, undated }: Message): boolean => mark !== null && (undated === true || Math.floor(time / 1000) <= mark);
      if (/* mutant: search-uncertain */ !batch.uncertain && !messages.some(isOld)) continue;
      const uids = messages.map(({ uid }) => uid);
      for (const uid of (await this.#reader.has(target, uids, signal)) ?? []) there.add(uid);
    }
    return there.size === 0 ? batch.messages : batch.messages.filter(({ uid }) => !there.has(uid));
  }

  /** The time, ms, of the newest event that another writer had written to a data stream before this state first did; null for none. */
  async #mark(target: string, signal: AbortSignal): Promise<number | null> {
    const known = this.#progress.get(target);
    if (known !== undefined) return known;
    const found = await this.#reader.newest(target, signal);
    // Without the privilege to read, the next open searches again.
    this.#progress.set(target, found ?? null);
    if (found !== undefined) await this.#resumePoint.commitResumeNote(resumeNoteOf(this.#progress));
    return found ?? null;
  }

  #lines(messages: readonly Message[]): Buffer {
    return Buffer.concat(
      messages.flatMap((message) => [
        Buffer.from(/* mutant: bulk-action */ `{"create":{"_index":"${this.#targetOf(message)}","_id":"${message.uid}"}}\n`),
        message.bytes,
        lineBreak,
      ]),
    );
  }

  /** The whole request is refused, and has one message, which may be the cause or not. Undefined: otherwise. */
  #refusalOfOne(answer: Answer, [only, ...others]: readonly Message[]): RetryableRejection | undefined {
    const { status, error, isElasticsearch } = answer;
    if (!only || others.length > 0 || status === 413 || requestResultOf(status, error, isElasticsearch) !== 'rejected') return undefined;
    const message = this.#messageOf(answer);
    const reason = {
      seq: only.seq,
      code: String(status),
      message: error ? `the server responded ${messageOfItem({ error })}` : message,
    };
    return { code: 'sink_blocked', seqs: [only.seq], message, reasons: [reason] };
  }

  #messageOf({ status, error, isElasticsearch }: Answer): string {
    if (!isElasticsearch && !error && status !== 413 && requestResultOf(status, error, false) === 'rejected')
      return `sink "${this.#id}": another server than Elasticsearch responded ${status}; see sinks.${this.#id}.nodes`;
    return `sink "${this.#id}": the server responded ${status} ${plainText(error)}${this.#hint(status, error)}`;
  }

  /** The result of each message. Throws for a response without results. */
  #items(answer: Answer, messages: readonly Message[]): readonly Item[] {
    const { status, body, error, retryAfterMs, isElasticsearch } = answer;
    if (status === 200) {
      const items = Array.isArray(body.items) ? body.items.map((item) => /* mutant: bulk-item */ membersOf(item).create) : undefined;
      if (items?.length === messages.length) return items.map(itemFrom);
      throw new WaybillError(
        'sink_outcome_unknown',
        `sink "${this.#id}": the response has ${items?.length ?? 'no'} results for a batch of ${messages.length}`,
      );
    }
    const code = codes[requestResultOf(status, error, isElasticsearch)];
    throw new WaybillError(code, this.#messageOf(answer), { retryAfterMs, isCrowded: status === 429 });
  }

  async #resolve(messages: readonly Message[], items: readonly Item[], signal: AbortSignal): Promise<DeliveryResult> {
    const rejections: Rejection[] = [];
    const left: Left[] = [];
    const uids = new Set(messages.map(({ uid }) => uid));
    /** The last message of each target that it has stored. */
    const stored = new Map<string, number>();
    let duplicates = 0;
    let dropped = 0;
    for (const [at, message] of messages.entries()) {
      const item = items[at] ?? {};
      const { seq, uid } = message;
      const target = this.#targetOf(message);
      const { _id: id = '', status } = item;
      const result = itemResultOf(item);
      // A pipeline may change the `_id`, and so does the failure store; the results stay in the order of the documents.
      if (result === 'unexpected' || id === '' || (id !== uid && uids.has(id)))
        throw new WaybillError(
          'sink_outcome_unknown',
          `sink "${this.#id}": result ${at} of the response (status ${status ?? 'missing'}) is for another document`,
        );
      if (result === 'delivered') stored.set(target, seq);
      else if (result === 'duplicate') {
        // mutant: id-of-pipeline
        if (id === uid || (await this.#reader.uidOf(target, id, signal)) === uid) duplicates += 1;
        else
          rejections.push({
            seq,
            code: 'id_taken',
            message: `a pipeline of "${target}" gave it the _id "${quote(id, 100)}" of another event`,
          });
      } else if (result === 'dropped') {
        if (this.#settings.dropped === 'count') dropped += 1;
        else
          rejections.push({
            seq,
            code: 'dropped',
            message: `a pipeline of "${target}" dropped it (on purpose? sinks.${this.#id}.dropped: count)`,
          });
      } else if (result === 'rejected') rejections.push({ seq, code: item.error?.type ?? 'rejected', message: messageOfItem(item) });
      else if (result === 'failure_store') {
        const detail = await this.#failureText(target, id, signal);
        rejections.push({ seq, code: 'failure_store', message: detail });
      } else left.push({ message, result, item });
    }
    return { rejections, duplicates, dropped, retryable: this.#retry(left, messages.length, stored) };
  }

  /** The retryable part of a batch, with the message of its worst error. */
  #retry(left: readonly Left[], of: number, stored: ReadonlyMap<string, number>): RetryableRejection | undefined {
    const isProven = ({ message }: Left): boolean => message.seq < (stored.get(this.#targetOf(message)) ?? 0);
    const isBlocked = (each: Left): boolean => each.result === 'suspect' && !isProven(each) && (each.item.status ?? 0) < 500;
    const worst = left.find(isBlocked) ?? left[0];
    if (worst === undefined) return undefined;
    const { message, item } = worst;
    const { status = 0, error } = item;
    return {
      seqs: left.map(({ message: { seq } }) => seq),
      code: isBlocked(worst) ? 'sink_blocked' : 'sink_unavailable',
      message: `sink "${this.#id}" cannot write to "${this.#targetOf(message)}" (${left.length} of ${of}): ${status} ${plainText(error)}${this.#hint(status, error, this.#targetOf(message))}`,
      // mutant: pipeline-suspects
      suspects: left.filter(isProven).map(({ message: { seq } }) => seq),
      reasons: left.map(reasonOf),
    };
  }

  /** The setting, privilege or command that fixes the error. */
  #hint(status: number, error: ItemError | undefined, target?: string): string {
    const pattern = target ?? patternOf(this.#settings);
    const setting = (name: string): string => `sinks.${this.#id}.${name}`;
    const { type, reason = '' } = error ?? {};
    if (status === 401) return ` (${setting(credentialsOf(this.#settings))})`;
    // A pipeline may route a document to another index, to which neither our key nor our templates apply.
    const named = /\b(?:indices|index) \[([^\]]*)\]/.exec(reason)?.[1];
    const isElsewhere = target !== undefined && named !== undefined && !named.includes(target);
    if (status === 403 && type === 'security_exception' && !isElsewhere)
      return ` (${setting(credentialsOf(this.#settings))} needs create_doc and auto_configure on "${pattern}")`;
    if (error?.isLimit ?? error?.caused_by?.isLimit)
      return ` (raise index.mapping.total_fields.limit of "${pattern}", or set index.mapping.total_fields.ignore_dynamic_beyond_limit)`;
    if ((status === 404 && !isElsewhere) || (status === 400 && reason.startsWith('pipeline ')))
      return ` ("waybill setup elasticsearch --sink ${this.#id}" installs the templates)`;
    if (status === 413) return ` (${setting('batch.maxBytes')})`;
    if (target !== undefined && (status !== 403 || isElsewhere) && itemResultOf({ status, ...(error && { error }) }) === 'suspect')
      return ` (a pipeline of "${pattern}"? See index.default_pipeline and index.final_pipeline of its settings)`;
    if (status === 403 || status === 406 || status === 400) return ` (${setting(this.#settings.index === undefined ? 'nodes' : 'index')})`;
    return '';
  }

  /** Reads the error of a document from the failure store, because the `_bulk` response lacks it. */
  async #failureText(target: string, id: string, signal: AbortSignal): Promise<string> {
    const known = 'stored in the failure store of the data stream';
    try {
      const query = { size: 1, _source: ['error.type', 'error.message'], query: { ids: { values: [id] } } };
      const path = `/${encodeURIComponent(`${target}::failures`)}`;
      await this.#client.request({ method: 'POST', path: `${path}/_refresh` }, signal);
      const { body } = await this.#client.request({ method: 'POST', path: `${path}/_search`, json: query }, signal);
      const { hits } = body as { hits?: { hits?: readonly { _source?: { error?: { type?: unknown; message?: unknown } } }[] } };
      const found = hits?.hits?.[0]?._source?.error;
      const error = found && errorFrom({ type: found.type, reason: found.message });
      return error === undefined ? known : `${known}: ${messageOfItem({ error })}`;
    } catch (thrown) {
      // The document is in the failure store even if its error is unreadable.
      signal.throwIfAborted();
      return `${known}: ${codeOf(thrown) ?? 'its error cannot be read'}`;
    }
  }
}

/** The dead letter of a document that its target, for example a pipeline, refuses while it stores others. */
function reasonOf({ message: { seq }, result, item }: Left): Rejection {
  const reason = { seq, code: item.error?.type ?? String(item.status), message: messageOfItem(item) };
  return result === 'retryable' ? { ...reason, isPassing: true } : reason;
}

/** The resume note: for each data stream, the time, ms, up to which it may contain records of another writer. */
function resumeNoteOf(progress: ReadonlyMap<string, number | null>): string {
  return JSON.stringify({ resolveUntil: Object.fromEntries(progress) });
}

function progressOf(note: string | undefined): Map<string, number | null> {
  if (note === undefined) return new Map();
  const { resolveUntil = {} } = JSON.parse(note) as { readonly resolveUntil?: Readonly<Record<string, number | null>> };
  return new Map(Object.entries(resolveUntil));
}
