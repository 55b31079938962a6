/** Sends batches to one open sink: deadlines, attempts, halving, and what each answer acknowledges. */
import { codeOf, WaybillError, messageOf } from '../errors/errors.ts';
import type { DeliverJournal } from '../model/journal.ts';
import type { Batch, DeliveryResult, Message, Rejection, RetryableRejection, Sink } from '../model/sink.ts';
import { traced, type Log, type Meters, type Tracer } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { Acknowledger } from './acknowledger.ts';
import type { BatchLimit } from './batch-limit.ts';
import { batchOf, divided, halve, maxUncertain, positionOf, type Prepared } from './batcher.ts';
import { within } from '../time/deadline.ts';
import type { Feed } from './feed.ts';
import type { Pauses } from './pauses.ts';
import type { RetryPolicy } from './retry-policy.ts';

/** The sender halves a batch after this many refusals for lack of space: the receiver may never have space for all of it. */
const maxCrowded = 3;

/** A part that the receiver cannot take now is sent alone this often. Then the batch is made anew, with later messages. */
const maxPassingAlone = 3;

/** An open sink, and the two signals that end its use. */
export interface OpenSink {
  readonly sink: Sink;
  /** Ends the loop; the batch in flight continues. */
  readonly stop: AbortSignal;
  /** Ends the batch in flight. */
  readonly abandon: AbortSignal;
}

interface SenderParts {
  readonly id: string;
  readonly type: string;
  /** ms after which the outcome of a call to the sink counts as unknown. */
  readonly deadline: number;
  readonly limit: BatchLimit;
  readonly journal: DeliverJournal;
  readonly acknowledger: Acknowledger;
  readonly pauses: Pauses;
  readonly retryPolicy: RetryPolicy;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
  readonly tracer: Tracer;
}

/** The result of one batch. All messages but `rejections` and `rest` are delivered. */
interface Outcome extends DeliveryResult {
  /** The sink refused `rest` as a whole, with this message. */
  readonly refusal?: string;
  /** The attempt ended: the outcome of `rest` is unknown, because the sink threw this; or it refused each message of `rest`, the first for this reason. */
  readonly unknown?: { readonly thrown: unknown; readonly reason?: Rejection | undefined };
  /** True: send `rest` at once. */
  readonly isAtOnce?: boolean;
  readonly rest: readonly Message[];
}

export class Sender {
  readonly #parts: SenderParts;
  #waitsForOthers = false;
  #hasDropped = false;

  constructor(parts: SenderParts) {
    this.#parts = parts;
  }

  /** Runs one call to the sink within its deadline, while this process owns the journal. After the deadline its outcome is unknown. */
  async call<Result>(run: (signal: AbortSignal, onProgress: () => void) => Promise<Result>, abandon: AbortSignal): Promise<Result> {
    const { id, deadline, clock, journal } = this.#parts;
    const owned = journal.owned?.(abandon);
    // mutant: owned-call
    if (owned) await owned;
    const late = (): WaybillError =>
      new WaybillError('sink_outcome_unknown', `sink "${id}" did not answer within ${deadline / 1000} s`, { isLate: true });
    return within(run, deadline, late, clock, abandon);
  }

  /** The last attempt had one message, and was refused: the next one needs others. */
  get waitsForOthers(): boolean {
    return this.#waitsForOthers;
  }

  /**
   * Sends a batch until every message is delivered or rejected; a batch of requests, until it fails. Halves a batch that the
   * sink refuses as a whole, in order, down to the message that causes the refusal.
   */
  async deliver(open: OpenSink, feed: Feed, prepared: Prepared): Promise<void> {
    const { messages, through, bytes, unmade, entries, read } = prepared;
    if (unmade || messages.length === 0) return feed.acknowledge(through, undefined, unmade ? [unmade] : [], open.stop);
    const { id, tracer } = this.#parts;
    const attributes = {
      'waybill.sink.id': id,
      'waybill.batch.bytes': bytes,
      'messaging.batch.message_count': messages.length,
    };
    const span = tracer.start('deliver batch', attributes, read && { startTime: read.from });
    if (read) {
      const readAttributes = { 'db.system.name': 'sqlite', 'db.operation.name': 'read', 'db.operation.batch.size': entries.size };
      span.child('read journal', readAttributes, { kind: 'client', startTime: read.from }).end(undefined, read.to);
    }
    return traced(span, () => this.#deliver(open, feed, { messages, through, bytes, uncertain: false }, entries));
  }

  async #deliver(open: OpenSink, feed: Feed, batch: Batch, entries: Prepared['entries']): Promise<void> {
    const { id, journal, acknowledger } = this.#parts;
    const { stop } = open;
    const parts = await this.#divide(open, feed, batch, entries);
    if (parts.length === 0) {
      await feed.acknowledge(batch.through, { resumeNote: undefined }, [], stop);
      feed.suspects.done(batch.messages, true);
    }
    // Rejected messages that follow unsent messages.
    let rejected: readonly Rejection[] = [];
    for (let part = parts.shift(); part; part = parts.shift()) {
      // Commits the position first when the part is further from it than `maxUncertain`.
      if (part.through.seq > journal.sinkProgress(id).acknowledged + maxUncertain) await acknowledger.flush(stop);
      const { through } = part;
      // mutant: send-batch
      const outcome = await this.#send(open, feed, part);
      rejected = [...rejected, ...outcome.rejections];
      const isLater = ({ seq }: Rejection): boolean => seq > through.seq && entries.has(seq);
      const ready = rejected.filter((rejection) => !isLater(rejection));
      const [only] = outcome.rest;
      if (outcome.unknown) {
        const firstLeft = outcome.rest[0]?.seq ?? Infinity;
        const certain = part.messages.filter(({ seq }) => seq < firstLeft);
        if (certain.length > 0) this.#succeeded(feed, certain, { rejections: rejected.filter(({ seq }) => seq < firstLeft) }, stop.aborted);
        if (feed.kind === 'request') {
          await feed.acknowledge(through, outcome, ready, stop, outcome.rest);
          throw outcome.unknown.thrown;
        }
        this.#settleLater(feed, part, outcome, rejected);
        const dead = this.#ended(open, feed, part, outcome);
        if (dead) rejected = [...rejected, dead];
        const last = await this.#acknowledgeUpTo(feed, part, outcome.rest.slice(dead ? 1 : 0), rejected, entries, stop);
        feed.suspects.done(
          batch.messages.filter(({ seq }) => seq <= last),
          false,
        );
        throw outcome.unknown.thrown;
      }
      if (outcome.isAtOnce === true) {
        const left = new Set(outcome.rest);
        this.#succeeded(feed, part.messages.filter((message) => !left.has(message)), outcome); // prettier-ignore
        const certain = await this.#acknowledgeUpTo(feed, part, outcome.rest, rejected, entries, stop);
        rejected = rejected.filter(({ seq }) => seq > certain);
        parts.unshift(batchOf(part, outcome.rest));
        continue;
      }
      if (outcome.refusal === undefined) {
        this.#succeeded(feed, part.messages, outcome);
        await feed.acknowledge(through, outcome, ready, stop);
      } else if (outcome.rest.length > 1) {
        // mutant: rejected-batch
        part = batchOf(part, outcome.rest);
        // mutant: halve-batch
        parts.unshift(...halve(part, entries));
        continue;
      } else if (only) {
        // mutant: dead-letters
        const dead = [...ready, { seq: only.seq, code: 'rejected', message: outcome.refusal }];
        // mutant: acknowledge-dead-letters
        await feed.acknowledge(through, undefined, dead, stop);
      }
      feed.suspects.done(parts.length === 0 ? batch.messages : part.messages, parts.length === 0);
      rejected = rejected.filter(isLater);
    }
  }

  /**
   * The parts of a batch in which to look for a message that the receiver cannot take (suspects.ts). A sink that stores its position takes no
   * message out of order.
   */
  async #divide(open: OpenSink, feed: Feed, batch: Batch, entries: Prepared['entries']): Promise<Batch[]> {
    const { suspects } = feed;
    if (open.sink.position) return [batch];
    const witness = suspects.witness(suspects.unsettled(batch.messages));
    if (witness) {
      const alone = { ...batchOf(batch, [witness]), uncertain: true };
      const outcome = await this.#send(open, feed, alone);
      if (outcome.unknown) {
        this.#ended(open, feed, alone, outcome);
        throw outcome.unknown.thrown;
      }
      // mutant: witness
      if (outcome.rest.length === 0 && outcome.rejections.length === 0) suspects.accepted(witness);
    }
    const left = suspects.unsettled(batch.messages);
    const groups = suspects.groups(left);
    return groups.length === 1 && left === batch.messages ? [batch] : divided(batch, groups, entries);
  }

  /** The receiver took these messages, although not the first of the rest: they are not sent again with it. */
  #settleLater(feed: Feed, part: Batch, { rest }: Outcome, rejected: readonly Rejection[]): void {
    const left = new Set([...rest, ...rejected].map(({ seq }) => seq));
    const later = part.messages.filter(({ seq }) => seq > (rest[0]?.seq ?? Infinity) && !left.has(seq));
    // mutant: settle-later
    for (const { seq } of later) feed.suspects.settle(seq);
    this.#succeeded(feed, later, { rejections: [] }, true);
  }

  /** @returns the dead letter of the message at which an attempt ended, if it is the cause */
  #ended({ stop, abandon }: OpenSink, feed: Feed, { messages }: Batch, { rest: [first], unknown }: Outcome): Rejection | undefined {
    const { thrown, reason } = unknown ?? {};
    const code = codeOf(thrown);
    if (!first || feed.kind === 'request' || stop.aborted || abandon.aborted) return undefined;
    if (!reason && (code === 'sink_unavailable' || code === 'sink_blocked')) return undefined;
    // A batch that takes too long is halved first.
    if (messages.length > 1 && thrown instanceof WaybillError && thrown.isLate) return undefined;
    return feed.suspects.ended(first, messages.length === 1, reason ?? { code: 'no_answer', message: messageOf(thrown) });
  }

  /**
   * Acknowledges the messages before the first message of `rest`.
   * @returns the last acknowledged entry; 0: none
   */
  async #acknowledgeUpTo(
    feed: Feed,
    part: Batch,
    rest: readonly Message[],
    rejected: readonly Rejection[],
    entries: Prepared['entries'],
    stop: AbortSignal,
  ): Promise<number> {
    const firstLeft = rest[0]?.seq ?? Infinity;
    const last = part.messages.findLast(({ seq }) => seq < firstLeft);
    if (!last) return 0;
    const ready = rejected.filter(({ seq }) => seq <= last.seq);
    await feed.acknowledge(positionOf(last, part, entries), undefined, ready, stop);
    return last.seq;
  }

  /**
   * Sends one batch until the sink has delivered it, refuses the rest of it as a whole, or leaves the outcome unknown; of a
   * request, until it refuses anything.
   */
  async #send(open: OpenSink, feed: Feed, given: Batch): Promise<Outcome> {
    const { stop, abandon } = open;
    const { id, limit, pauses, clock, meters } = this.#parts;
    let batch = given;
    const rejections: Rejection[] = [];
    // After a partial delivery, the retries continue until the shutdown timeout: otherwise the next
    // start would repeat the whole batch. They end at once when only an operator can help.
    let until = stop;
    let crowded = 0;
    let passing = 0;
    for (;;) {
      const began = clock.monotonic();
      let certain = 0;
      try {
        const delivered = await this.#attempt(open, feed.addressed(batch), (count) => (certain = count));
        limit.took(batch, clock.monotonic() - began);
        rejections.push(...delivered.rejections);
        if (delivered.dropped) this.#dropped(delivered.dropped);
        if (delivered.duplicates) meters.sinkDuplicates(id, delivered.duplicates);
        const { retryable } = delivered;
        const exhausted = retryable === undefined || feed.kind === 'request' ? [] : feed.suspects.refused(retryable);
        rejections.push(...exhausted);
        const left = new Set(retryable?.seqs);
        for (const { seq } of exhausted) left.delete(seq);
        if (/* mutant: nothing-to-retry */ retryable === undefined || left.size === 0)
          return { rejections, resumeNote: delivered.resumeNote, rest: [] };
        const isPartial = left.size < batch.messages.length;
        batch = batchOf(
          batch,
          // mutant: messages-to-retry
          batch.messages.filter(({ seq }) => left.has(seq)),
        );
        if (retryable.isAtOnce === true) return { rejections, isAtOnce: true, rest: batch.messages };
        if (feed.kind === 'request') return { ...delivered, rejections, unknown: { thrown: errorOf(retryable) }, rest: batch.messages };
        const failure = this.#failureOf(feed, retryable, batch.messages, isPartial);
        until = failure.thrown.code === 'sink_blocked' ? stop : isPartial ? abandon : until;
        // The journal may have later messages by now: only these show whether the receiver takes others.
        if (failure.isAll) passing += 1;
        if (/* mutant: refused-alone */ failure.isAll && (!failure.isPassing || /* mutant: passing-alone */ passing >= maxPassingAlone)) {
          feed.maybeSent?.(batch.through.seq);
          return { rejections, unknown: failure, rest: batch.messages };
        }
        await pauses.afterFailure(failure.thrown, until);
      } catch (thrown) {
        const code = codeOf(thrown);
        if (feed.kind !== 'request' && (code === 'sink_unavailable' || code === 'sink_blocked')) {
          // mutant: retry-pause
          await pauses.afterFailure(thrown, code === 'sink_blocked' ? stop : until);
          crowded = thrown instanceof WaybillError && thrown.isCrowded ? crowded + 1 : 0;
          // mutant: retry-batch
          if (crowded < maxCrowded || batch.messages.length === 1) continue;
          limit.late(batch);
          return { rejections, refusal: messageOf(thrown), rest: batch.messages };
        }
        feed.maybeSent?.(batch.through.seq);
        if (code === 'sink_refused') return { rejections, refusal: messageOf(thrown), rest: batch.messages };
        if (thrown instanceof WaybillError && thrown.isLate) limit.late(batch);
        // mutant: unknown-result
        return { rejections, unknown: { thrown }, rest: batch.messages.slice(certain) };
      }
    }
  }

  /**
   * The error of an attempt that left some messages. `isAll`: the receiver refused each message that it got; `reason`: of the first. While it
   * takes others, or may take others, no operator needs to act.
   */
  #failureOf({ suspects: counts }: Feed, retryable: RetryableRejection, left: readonly Message[], isPartial: boolean) {
    const { reasons } = retryable;
    const suspects = left.filter(({ seq }) => counts.isCounted(seq));
    const reasonOf = new Map(reasons?.map((each) => [each.seq, each]));
    const isPassing = left.some(({ seq }) => reasonOf.get(seq)?.isPassing);
    const isAll = !isPartial && reasons !== undefined && (suspects.length === 0 || isPassing);
    const [first] = isAll && !isPassing ? left : [];
    this.#waitsForOthers = first !== undefined && left.length === 1;
    const isAboutThem = left.every(({ seq }) => reasonOf.has(seq));
    const isUnclear = (isPartial && isAboutThem) || (first !== undefined && counts.isUnclear);
    const thrown = errorOf(retryable, isUnclear || suspects.length === left.length ? 'sink_unavailable' : retryable.code);
    return { isAll, isPassing, thrown, reason: first && reasonOf.get(first.seq) };
  }

  #dropped(count: number): void {
    const { id, meters, log } = this.#parts;
    meters.sinkDropped(id, count);
    if (!this.#hasDropped) log.write('sink.records_dropped', { sink: id });
    this.#hasDropped = true;
  }

  /** Calls the sink once, in a span. @param progressed  receives the number of certainly delivered messages */
  async #attempt({ sink, abandon }: OpenSink, batch: Batch, progressed?: (certain: number) => void): Promise<DeliveryResult> {
    const { id, type, tracer } = this.#parts;
    const attributes = {
      'messaging.system': type,
      'messaging.operation.name': 'send',
      'messaging.operation.type': 'send',
      'messaging.destination.name': id,
      'messaging.batch.message_count': batch.messages.length,
    };
    const span = tracer.start(`send ${id}`, attributes, { kind: 'producer' });
    return traced(span, async () => {
      const result = await this.call((signal, onProgress) => {
        const progress = (count: number): void => {
          progressed?.(count);
          onProgress();
        };
        return progressed ? sink.send(batch, signal, progress) : sink.send(batch, signal);
      }, abandon);
      span.set({ 'waybill.messages.rejected': result.rejections.length, 'waybill.messages.retryable': result.retryable?.seqs.length ?? 0 });
      return result;
    });
  }

  /** @param isOver  the rest of the batch is abandoned, or waits: this says nothing about the state of the sink */
  #succeeded(feed: Feed, messages: readonly Message[], { rejections }: Pick<DeliveryResult, 'rejections'>, isOver = false): void {
    // The answer to a request says nothing about delivery.
    if (feed.kind === 'request') return;
    const { id, retryPolicy, meters, clock, log } = this.#parts;
    const delivered = messages.length - rejections.length;
    if (delivered === 0) {
      // The sink answered, and rejected every message.
      if (!isOver) retryPolicy.recovered();
      return;
    }
    const oldest = messages.reduce((least, message) => Math.min(least, message.time), Infinity);
    const delaySeconds = Math.max(0, clock.now() / 1000 - oldest / 1e6);
    if (retryPolicy.attempts.lastSuccess === undefined) {
      log.write('sink.first_delivery', { sink: id, messages: delivered, delaySeconds: Math.round(delaySeconds * 1000) / 1000 });
    } else if (retryPolicy.state !== 'active' && !isOver) log.write('sink.delivery_resumed', { sink: id });
    retryPolicy.delivered(!isOver);
    meters.eventsDelivered(id, delivered);
    // One sample for each batch: the delay of its oldest message. A replay does not count, because it repeats old messages.
    if (feed.kind === 'main') meters.deliveryDelay(id, delaySeconds);
  }
}

function errorOf({ code, message, retryAfterMs }: RetryableRejection, as: RetryableRejection['code'] = code): WaybillError {
  return new WaybillError(as, message, { retryAfterMs });
}
