/** Sends batches to one open sink: deadlines, attempts, halving, and what each answer acknowledges. */
import { codeOf, WaybillError, messageOf } from '../errors/errors.ts';
import type { DeliverJournal, Entry } from '../model/journal.ts';
import type { Batch, DeliveryResult, Message, Rejection, RetryableRejection, Sink } from '../model/sink.ts';
import { traced, type Log, type Meters, type Tracer } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { Acknowledging } from './acknowledger.ts';
import type { BatchLimit } from './batch-limit.ts';
import { batchOf, divided, halve, maxUncertain, type Prepared } from './batcher.ts';
import { within } from '../time/deadline.ts';
import type { Pauses } from './pauses.ts';
import type { RetryPolicy } from './retry-policy.ts';
import type { OnDemandResult } from './send-queue.ts';
import { Suspects } from './suspects.ts';

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

/** When the entries of a batch were read: wall clock, ms. */
export interface ReadTime {
  readonly from: number;
  readonly to: number;
}

interface SenderParts {
  readonly id: string;
  readonly type: string;
  /** ms after which the outcome of a call to the sink counts as unknown. */
  readonly deadline: number;
  readonly limit: BatchLimit;
  readonly journal: DeliverJournal;
  readonly acknowledger: Acknowledging;
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
  /** The outcome of `rest` is unknown, because the sink threw this; or it refused each message of `rest`, the first for this reason. */
  readonly unknown?: { readonly thrown: unknown; readonly reason?: Rejection | undefined };
  /** True: send `rest` at once. */
  readonly isAtOnce?: boolean;
  readonly rest: readonly Message[];
}

export class Sender {
  readonly #parts: SenderParts;
  readonly #suspects: Suspects;
  #waitsForOthers = false;
  #hasDropped = false;
  /** An attempt without an answer may have delivered the messages up to this entry. */
  #uncertain: number;

  constructor(parts: SenderParts) {
    this.#parts = parts;
    this.#suspects = new Suspects(parts.clock);
    this.#uncertain = /* mutant: uncertain-after-start */ parts.acknowledger.acknowledged + maxUncertain;
  }

  /** Runs one call to the sink within its deadline. After the deadline its outcome is unknown. */
  call<Result>(run: (signal: AbortSignal, onProgress: () => void) => Promise<Result>, abandon: AbortSignal): Promise<Result> {
    const { id, deadline, clock } = this.#parts;
    const late = (): WaybillError =>
      new WaybillError('sink_outcome_unknown', `sink "${id}" did not answer within ${deadline / 1000} s`, { isLate: true });
    return within(run, deadline, late, clock, abandon);
  }

  /** The last attempt had one message, and was refused: the next one needs others. */
  get waitsForOthers(): boolean {
    return this.#waitsForOthers;
  }

  isUncertain({ messages, entries }: Prepared): boolean {
    if ((messages[0]?.seq ?? Infinity) <= this.#uncertain) return true;
    const { reconcile } = this.#parts.journal.sinkProgress(this.#parts.id).orders;
    if (!reconcile) return false;
    // A record without a readable time has the time of its receipt.
    return messages.some(({ seq, time }) => (reconcile.from <= time && time < reconcile.to) || time === entries.get(seq)?.received);
  }

  /**
   * Sends a batch until every message is delivered or a dead letter. Halves a batch that the sink refuses as a whole, in order, down to the
   * message that causes the refusal.
   * @param read  for the trace
   * @returns how many messages became dead letters
   */
  async deliver(open: OpenSink, batch: Batch, entries: ReadonlyMap<number, Entry>, read?: ReadTime): Promise<number> {
    const { id, tracer } = this.#parts;
    const attributes = {
      'waybill.sink.id': id,
      'waybill.batch.bytes': batch.bytes,
      'messaging.batch.message_count': batch.messages.length,
    };
    const span = tracer.start('deliver batch', attributes, read && { startTime: read.from });
    if (read) {
      const readAttributes = { 'db.system.name': 'sqlite', 'db.operation.name': 'read', 'db.operation.batch.size': entries.size };
      span.child('read journal', readAttributes, { kind: 'client', startTime: read.from }).end(undefined, read.to);
    }
    return traced(span, () => this.#deliver(open, batch, entries));
  }

  async #deliver(open: OpenSink, batch: Batch, entries: ReadonlyMap<number, Entry>): Promise<number> {
    const { id, journal, acknowledger } = this.#parts;
    const { stop } = open;
    const parts = await this.#divide(open, batch, entries);
    let count = 0;
    if (parts.length === 0) {
      const acknowledged = batch.onDemand === undefined ? batch.through.seq : acknowledger.acknowledged;
      await acknowledger.acknowledge(entries, acknowledged, { position: batch.through, resumeNote: undefined }, [], stop);
      this.#suspects.done(batch.messages, true);
    }
    // Rejected messages that follow unsent messages.
    let rejected: readonly Rejection[] = [];
    for (let part = parts.shift(); part; part = parts.shift()) {
      // Commits the position first when the part is further from it than `maxUncertain`.
      if (part.through.seq > journal.sinkProgress(id).acknowledged + maxUncertain) await acknowledger.flush(stop);
      const { through } = part;
      // On-demand sends move no position.
      const acknowledged = part.onDemand === undefined ? through.seq : acknowledger.acknowledged;
      // mutant: send-batch
      const outcome = await this.#send(open, part);
      rejected = [...rejected, ...outcome.rejections];
      const isLater = ({ seq }: Rejection): boolean => batch.onDemand === undefined && seq > through.seq && entries.has(seq);
      const ready = rejected.filter((rejection) => !isLater(rejection));
      const [only] = outcome.rest;
      if (outcome.unknown) {
        const firstLeft = outcome.rest[0]?.seq ?? Infinity;
        const certain = part.messages.filter(({ seq }) => seq < firstLeft);
        if (certain.length > 0 && part.onDemand === undefined)
          this.#succeeded(batchOf(part, certain), { rejections: rejected.filter(({ seq }) => seq < firstLeft) }, stop.aborted);
        if (part.onDemand === undefined) this.#settleLater(part, outcome, rejected);
        const dead = this.#ended(open, part, outcome);
        if (dead) {
          rejected = [...rejected, dead];
          if (part.onDemand !== undefined) {
            await acknowledger.acknowledge(entries, acknowledged, undefined, [dead], stop);
            this.#suspects.settle(dead.seq);
          }
        }
        const last = await this.#acknowledgeUpTo(part, { ...outcome, rest: outcome.rest.slice(dead ? 1 : 0) }, rejected, entries, stop);
        this.#suspects.done(
          batch.messages.filter(({ seq }) => seq <= last),
          false,
        );
        throw outcome.unknown.thrown;
      }
      if (outcome.isAtOnce === true) {
        const left = new Set(outcome.rest);
        this.#succeeded(batchOf(part, part.messages.filter((message) => !left.has(message))), outcome); // prettier-ignore
        const certain = await this.#acknowledgeUpTo(part, outcome, rejected, entries, stop);
        count += rejected.length;
        rejected = rejected.filter(({ seq }) => seq > certain);
        count -= rejected.length;
        parts.unshift(batchOf(part, outcome.rest));
        continue;
      }
      if (outcome.refusal === undefined) {
        this.#succeeded(part, outcome);
        await acknowledger.acknowledge(entries, acknowledged, { position: through, resumeNote: outcome.resumeNote }, ready, stop);
        count += ready.length;
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
        await acknowledger.acknowledge(entries, acknowledged, undefined, dead, stop);
        count += dead.length;
      }
      this.#suspects.done(parts.length === 0 ? batch.messages : part.messages, parts.length === 0);
      rejected = rejected.filter(isLater);
    }
    return count;
  }

  /**
   * The parts of a batch in which to look for a message that the receiver cannot take (suspects.ts). A sink that stores its position takes no
   * message out of order.
   */
  async #divide(open: OpenSink, batch: Batch, entries: ReadonlyMap<number, Entry>): Promise<Batch[]> {
    if (open.sink.position) return [batch];
    const witness = this.#suspects.witness(this.#suspects.unsettled(batch.messages));
    if (witness) {
      const alone = { ...batchOf(batch, [witness]), uncertain: true };
      const outcome = await this.#send(open, alone);
      if (outcome.unknown) {
        this.#ended(open, alone, outcome);
        throw outcome.unknown.thrown;
      }
      // mutant: witness
      if (outcome.rest.length === 0 && outcome.rejections.length === 0) this.#suspects.accepted(witness);
    }
    const left = this.#suspects.unsettled(batch.messages);
    const groups = this.#suspects.groups(left);
    return groups.length === 1 && left === batch.messages ? [batch] : divided(batch, groups, entries);
  }

  /** The receiver took these messages, although not the first of the rest: they are not sent again with it. */
  #settleLater(part: Batch, { rest }: Outcome, rejected: readonly Rejection[]): void {
    const left = new Set([...rest, ...rejected].map(({ seq }) => seq));
    const later = part.messages.filter(({ seq }) => seq > (rest[0]?.seq ?? Infinity) && !left.has(seq));
    // mutant: settle-later
    for (const { seq } of later) this.#suspects.settle(seq);
    this.#succeeded(batchOf(part, later), { rejections: [] }, true);
  }

  /** @returns the dead letter of the message at which an attempt ended, if it is the cause */
  #ended({ stop, abandon }: OpenSink, { messages }: Batch, { rest: [first], unknown }: Outcome): Rejection | undefined {
    const { thrown, reason } = unknown ?? {};
    const code = codeOf(thrown);
    if (!first || stop.aborted || abandon.aborted) return undefined;
    if (!reason && (code === 'sink_unavailable' || code === 'sink_blocked')) return undefined;
    // A batch that takes too long is halved first.
    if (messages.length > 1 && thrown instanceof WaybillError && thrown.isLate) return undefined;
    return this.#suspects.ended(first, messages.length === 1, reason ?? { code: 'no_answer', message: messageOf(thrown) });
  }

  /**
   * Sends a batch once, without retries. Halves a batch that the sink refuses as a whole. Throws
   * every other error of the sink.
   */
  async sendOnce(open: OpenSink, batch: Batch): Promise<OnDemandResult> {
    const { messages } = batch;
    try {
      const { rejections, retryable, resumeNote } = await this.#attempt(open, batch);
      if (!retryable || retryable.seqs.length === 0) return { rejected: rejections, resumeNote };
      return { rejected: rejections, resumeNote, left: retryable.seqs, error: new WaybillError(retryable.code, retryable.message) };
    } catch (thrown) {
      if (codeOf(thrown) !== 'sink_refused') throw thrown;
      const message = messageOf(thrown);
      if (messages.length <= 1) return { rejected: messages.map(({ seq }) => ({ seq, code: 'rejected', message })), resumeNote: undefined };
      const middle = Math.ceil(messages.length / 2);
      const lower = await this.sendOnce(open, batchOf(batch, messages.slice(0, middle)));
      const later = messages.slice(middle);
      if (lower.error) return { ...lower, left: [...(lower.left ?? []), ...later.map(({ seq }) => seq)] };
      const upper = await this.sendOnce(open, batchOf(batch, later));
      return { ...upper, rejected: [...lower.rejected, ...upper.rejected], resumeNote: upper.resumeNote ?? lower.resumeNote };
    }
  }

  /**
   * Acknowledges the entries before the first message of `rest`. An on-demand send moves no position.
   * @returns the last acknowledged entry; 0: none
   */
  async #acknowledgeUpTo(
    part: Batch,
    { rest }: Outcome,
    rejected: readonly Rejection[],
    entries: ReadonlyMap<number, Entry>,
    stop: AbortSignal,
  ): Promise<number> {
    const firstLeft = rest[0]?.seq ?? Infinity;
    const last = part.messages.findLast(({ seq }) => seq < firstLeft);
    if (!last || part.onDemand !== undefined) return 0;
    const ready = rejected.filter(({ seq }) => seq <= last.seq);
    await this.#parts.acknowledger.acknowledge(entries, last.seq, undefined, ready, stop);
    return last.seq;
  }

  /** Sends one batch until the sink has delivered it, refuses the rest of it as a whole, or leaves the outcome unknown. */
  async #send(open: OpenSink, given: Batch): Promise<Outcome> {
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
        const delivered = await this.#attempt(open, batch, (count) => (certain = count));
        limit.took(batch, clock.monotonic() - began);
        rejections.push(...delivered.rejections);
        if (delivered.dropped) this.#dropped(delivered.dropped);
        if (delivered.duplicates) meters.sinkDuplicates(id, delivered.duplicates);
        const { retryable } = delivered;
        const exhausted = retryable === undefined ? [] : this.#suspects.refused(retryable);
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
        const failure = this.#failureOf(retryable, batch.messages, isPartial);
        until = failure.thrown.code === 'sink_blocked' ? stop : isPartial ? abandon : until;
        // The journal may have later messages by now: only these show whether the receiver takes others.
        if (failure.isAll) passing += 1;
        if (/* mutant: refused-alone */ failure.isAll && (!failure.isPassing || /* mutant: passing-alone */ passing >= maxPassingAlone)) {
          this.#uncertain = Math.max(this.#uncertain, batch.through.seq);
          return { rejections, unknown: failure, rest: batch.messages };
        }
        await pauses.afterFailure(failure.thrown, until);
      } catch (thrown) {
        const code = codeOf(thrown);
        if (code === 'sink_unavailable' || code === 'sink_blocked') {
          // mutant: retry-pause
          await pauses.afterFailure(thrown, code === 'sink_blocked' ? stop : until);
          crowded = thrown instanceof WaybillError && thrown.isCrowded ? crowded + 1 : 0;
          // mutant: retry-batch
          if (crowded < maxCrowded || batch.messages.length === 1) continue;
          limit.late(batch);
          return { rejections, refusal: messageOf(thrown), rest: batch.messages };
        }
        this.#uncertain = Math.max(this.#uncertain, batch.through.seq);
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
  #failureOf({ code, message, retryAfterMs, reasons }: RetryableRejection, left: readonly Message[], isPartial: boolean) {
    const suspects = left.filter(({ seq }) => this.#suspects.isCounted(seq));
    const reasonOf = new Map(reasons?.map((each) => [each.seq, each]));
    const isPassing = left.some(({ seq }) => reasonOf.get(seq)?.isPassing);
    const isAll = !isPartial && reasons !== undefined && (suspects.length === 0 || isPassing);
    const [first] = isAll && !isPassing ? left : [];
    this.#waitsForOthers = first !== undefined && left.length === 1;
    const isAboutThem = left.every(({ seq }) => reasonOf.has(seq));
    const isUnclear = (isPartial && isAboutThem) || (first !== undefined && this.#suspects.isUnclear);
    const thrown = new WaybillError(isUnclear || suspects.length === left.length ? 'sink_unavailable' : code, message, { retryAfterMs });
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
  #succeeded({ messages, onDemand }: Batch, { rejections }: DeliveryResult, isOver = false): void {
    const { id, retryPolicy, meters, clock, log } = this.#parts;
    const delivered = messages.length - rejections.length;
    if (delivered === 0) {
      // The sink answered, and rejected every message.
      if (!isOver) retryPolicy.recovered();
      return;
    }
    const oldest = messages.reduce((least, message) => Math.min(least, message.time), Infinity);
    const delaySeconds = Math.max(0, clock.now() / 1000 - oldest / 1e6);
    if (retryPolicy.lastSuccess === undefined) {
      log.write('sink.first_delivery', { sink: id, messages: delivered, delaySeconds: Math.round(delaySeconds * 1000) / 1000 });
    } else if (retryPolicy.state !== 'active' && !isOver) log.write('sink.delivery_resumed', { sink: id });
    retryPolicy.delivered(!isOver);
    meters.eventsDelivered(id, delivered);
    // One sample for each batch: the delay of its oldest message. On-demand sends do not count, because they repeat old messages.
    if (onDemand === undefined) meters.deliveryDelay(id, delaySeconds);
  }
}
