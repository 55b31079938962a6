/**
 * Splunk through its HTTP Event Collector. Status 200 means that a request is in Splunk's input queue; with `indexerAcknowledgement`, a
 * batch is delivered when all of its requests are indexed. Splunk cannot be queried for single events, so a batch with an unknown outcome
 * is sent again.
 */
import { randomUUID } from 'node:crypto';
import { codeOf, WaybillError, messageOf } from '../../errors/errors.ts';
import type { Batch, Message, Sink, DeliveryResult } from '../../model/sink.ts';
import type { Clock } from '../../model/time.ts';
import { defineSink, type SinkContext } from '../define.ts';
import { acknowledged } from './acknowledge.ts';
import type { HecClient } from './client.ts';
import { readReply, settingOf, type Reply } from './reply.ts';
import { requestsOf, type HecRequest } from './request.ts';
import { baseOf, metadataOf, maxRequests, splunkHecSettings, type SplunkHecSettings } from './settings.ts';

/** Delay before the next request when Splunk's queue is nearly full, ms. */
const crowdedMs = 1_000;

export const splunkHec = defineSink('splunk-hec', {
  summary: 'Splunk, through its HTTP Event Collector',
  config: splunkHecSettings,
  formats: 'any',
  original: false,
  batch: { records: 4_000, bytes: 8 * 1024 * 1024, wait: 1_000 },
  resolvable: () => false,
  // Longer than the time limits of the requests and the acknowledgements together.
  deadline: 600_000,
  // The address may change without a change of the destination.
  destination: ({ index }) => (index === undefined ? "the token's index" : `index ${index}`),
  guarantees: [
    {
      settings: '`indexerAcknowledgement: true`',
      applies: ({ indexerAcknowledgement }) => indexerAcknowledgement,
      delivery: 'at least once',
      duplicates: 'one batch per crash, timeout or rejected event',
      losses: '0 after the acknowledgement',
    },
    {
      settings: '`indexerAcknowledgement: false`',
      delivery: 'at least once, to the input queue',
      duplicates: 'one batch per failure',
      losses: 'events that Splunk loses after status 200, which confirms only its input queue',
    },
  ],
  check: async (settings, context, signal) => (await import('./check.ts')).checkCollector(settings, context, signal),
  open: (settings, context, _kept, signal) => SplunkHecSink.open(settings, context, signal),
});

interface Answered {
  readonly asked: readonly Message[];
  readonly reply: Reply;
  readonly retryAfterMs: number | undefined;
}

class SplunkHecSink implements Sink {
  readonly #settings: SplunkHecSettings;
  readonly #id: string;
  readonly #clock: Clock;
  readonly #client: HecClient;
  readonly #channel: string;
  readonly #metadataOf: ReturnType<typeof metadataOf>;
  /** Messages at which Splunk stopped. Each begins a request, so that a second rejection applies to it alone. */
  readonly #suspects = new Set<number>();
  #isCrowded = false;
  /** Set after a success without `ackId`: the next send first checks that the receiver acknowledges. */
  #mustProbe = false;
  #hasAnswered = false;

  static async open(settings: SplunkHecSettings, context: SinkContext, signal: AbortSignal): Promise<SplunkHecSink> {
    const { HecClient } = await import('./client.ts');
    const { probe } = await import('./check.ts');
    const sink = new SplunkHecSink(settings, context, new HecClient(settings, context));
    try {
      await probe(sink.#client, settings, context.id, sink.#channel, signal);
      return sink;
    } catch (thrown) {
      await sink[Symbol.asyncDispose]();
      throw thrown;
    }
  }

  private constructor(settings: SplunkHecSettings, context: SinkContext, client: HecClient) {
    this.#settings = settings;
    this.#id = context.id;
    this.#clock = context.clock;
    this.#client = client;
    this.#channel = settings.channel ?? randomUUID();
    this.#metadataOf = metadataOf(settings);
  }

  /** Sends groups of concurrent requests. Sends no further group after a failed request. */
  async send({ messages }: Batch, signal: AbortSignal): Promise<DeliveryResult> {
    if (this.#mustProbe) {
      const { probe } = await import('./check.ts');
      await probe(this.#client, this.#settings, this.#id, this.#channel, signal);
      this.#mustProbe = false;
    }
    const requests = requestsOf(messages, this.#metadataOf, this.#suspects);
    const ackIds: number[] = [];
    const stopped: DeliveryResult[] = [];
    for (let sent = 0; sent < requests.length && stopped.length === 0;) {
      // The cookie of the first response selects the server behind a load balancer that has the channel.
      const now = requests.slice(sent, sent + /* mutant: first-request-alone */ (this.#hasAnswered ? maxRequests(this.#settings) : 1));
      sent += now.length;
      const answers = await this.#postAll(now, signal);
      const later = requests.slice(sent).flatMap((each) => each.messages);
      const failed = answers.filter(({ reply }) => reply.meaning !== 'delivered' && reply.meaning !== 'crowded');
      for (const answer of failed) {
        const { reply, asked, retryAfterMs } = answer;
        if (reply.meaning === 'unknown') throw this.#error('sink_outcome_unknown', messages, reply, retryAfterMs);
        stopped.push(this.#stopped(asked, answer === failed.at(-1) ? later : [], messages, answer));
      }
      if (!this.#settings.indexerAcknowledgement) continue;
      for (const answer of answers) if (!failed.includes(answer)) ackIds.push(await this.#ackIdOf(answer.reply));
    }
    if (ackIds.length > 0) await acknowledged(this.#client, this.#channel, ackIds, { id: this.#id, clock: this.#clock }, signal);
    return together(stopped);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
  }

  /** Waits for all requests, even when one fails. */
  async #postAll(requests: readonly HecRequest[], signal: AbortSignal): Promise<readonly Answered[]> {
    const settled = await Promise.allSettled(requests.map((request) => this.#post(request, signal)));
    const failed = settled.flatMap((each) => (each.status === 'rejected' ? [each.reason as unknown] : []));
    const unknown = failed.find((thrown) => codeOf(thrown) !== 'sink_unavailable' && codeOf(thrown) !== 'sink_blocked');
    // If only some requests were sent, the outcome of the batch is unknown.
    if (unknown !== undefined) throw unknown as Error;
    if (failed.length > 0 && failed.length < settled.length)
      throw new WaybillError('sink_outcome_unknown', messageOf(failed[0]), { cause: failed[0] });
    if (failed[0] !== undefined) throw failed[0] as WaybillError;
    this.#hasAnswered = true;
    return settled.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  }

  async #post(request: HecRequest, signal: AbortSignal): Promise<Answered> {
    if (this.#isCrowded) await this.#clock.sleep(crowdedMs, signal);
    const channel = this.#settings.indexerAcknowledgement ? this.#channel : undefined;
    const answer = await this.#client.post('event', request.body, channel, signal);
    const reply = readReply(answer);
    this.#isCrowded = reply.meaning === 'crowded';
    return { asked: request.messages, reply, retryAfterMs: answer.retryAfterMs };
  }

  /**
   * The result of a request that failed. Splunk has accepted the events before the named event (moby/moby issue 35862) but does not
   * acknowledge them, so with `indexerAcknowledgement` they are sent again. A named message is rejected only if it was the first of its
   * request. A refusal may be about one message: the loop halves the batch until that message is alone.
   */
  #stopped(asked: readonly Message[], later: readonly Message[], all: readonly Message[], answer: Answered): DeliveryResult {
    const { reply, retryAfterMs } = answer;
    const { meaning, stoppedAt = -1 } = reply;
    const suspect = asked[stoppedAt];
    const settled = suspect && !this.#settings.indexerAcknowledgement ? stoppedAt : 0;
    const isNamed = meaning === 'rejected' && suspect !== undefined;
    const isRejected = isNamed && stoppedAt === 0;
    const isRefused = meaning === 'refused';
    const rest = [...asked.slice(isRejected ? 1 : settled), ...later];
    const code = meaning === 'blocked' ? 'sink_blocked' : 'sink_unavailable';
    if (isRejected) this.#suspects.delete(suspect.seq);
    else if (isNamed) this.#suspects.add(suspect.seq);
    else if (rest.length === all.length) {
      const [{ seq }, ...others] = all as [Message, ...Message[]];
      if (!isRefused || others.length > 0)
        throw this.#error(isRefused || meaning === 'rejected' ? 'sink_refused' : code, all, reply, retryAfterMs);
      const message = this.#message('sink_blocked', all, reply);
      const reasons = [{ seq, code: String(reply.code ?? reply.status), message }];
      return { rejections: [], retryable: { code: 'sink_blocked', seqs: [seq], message, retryAfterMs, reasons } };
    }
    const rejections = isRejected
      ? [{ seq: suspect.seq, code: String(reply.code), message: this.#message('sink_refused', [suspect], reply) }]
      : [];
    if (rest.length === 0) return { rejections };
    const seqs = rest.map(({ seq }) => seq);
    return {
      rejections,
      retryable: { code, seqs, message: this.#message(code, rest, reply), retryAfterMs, isAtOnce: isNamed || isRefused },
    };
  }

  async #ackIdOf({ ackId, message }: Reply): Promise<number> {
    if (ackId !== undefined) return ackId;
    this.#mustProbe = true;
    const { notAcknowledging } = await import('./check.ts');
    throw notAcknowledging(this.#settings, this.#id, `${message}, without ackId`);
  }

  #error(
    code: 'sink_unavailable' | 'sink_blocked' | 'sink_refused' | 'sink_outcome_unknown',
    messages: readonly Message[],
    reply: Reply,
    retryAfterMs?: number,
  ): WaybillError {
    return new WaybillError(code, this.#message(code, messages, reply), { retryAfterMs });
  }

  #message(code: string, messages: readonly Message[], reply: Reply): string {
    const count = messages.length === 1 ? 'one message' : `${messages.length} messages`;
    const what = `cannot send ${count} to "${baseOf(this.#settings)}" for sink "${this.#id}"`;
    if (reply.meaning === 'refused' && reply.code === undefined)
      return `${what}: another server than Splunk answered ${reply.message}; see sinks.${this.#id}.url`;
    const about = settingOf(reply);
    const named = about === 'token' ? this.#settings.token.describe() : `sinks.${this.#id}.${about}`;
    return `${what}${code === 'sink_blocked' ? ` (${named})` : ''}: ${reply.message}`;
  }
}

function together(parts: readonly DeliveryResult[]): DeliveryResult {
  const rejections = parts.flatMap((part) => part.rejections);
  const retryable = parts.flatMap((part) => part.retryable ?? []);
  const [first] = retryable;
  if (!first) return { rejections };
  const code = retryable.some((each) => each.code === 'sink_blocked') ? 'sink_blocked' : 'sink_unavailable';
  const waits = retryable.flatMap(({ retryAfterMs }) => retryAfterMs ?? []);
  const retryAfterMs = waits.length === 0 ? undefined : Math.max(...waits);
  const isAtOnce = retryable.every((each) => each.isAtOnce === true);
  return { rejections, retryable: { ...first, code, seqs: retryable.flatMap(({ seqs }) => seqs), retryAfterMs, isAtOnce } };
}
