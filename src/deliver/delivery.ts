/**
 * The loop around one sink: reads the journal, makes batches, sends, acknowledges. It owns waiting, trying again, halving and dead letters; the
 * sink only sends. A loop shares nothing with another but the journal, which it only reads: a slow or broken sink delays itself.
 */
import { codeOf, isFinal, WaybillError, messageOf } from '../errors.ts';
import type { DeliverJournal, Entry } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { RetryableRejection, Batch, Message, Rejection, Sink, DeliveryResult } from '../model/sink.ts';
import type { SinkSnapshot } from '../model/snapshot.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { BatchLimit } from './batch-limit.ts';
import { batchOf, Batches, halve, maxUncertain } from './batcher.ts';
import type { Prepared } from './batcher.ts';
import { OnDemand } from './on-demand.ts';
import { ended, within } from './deadline.ts';
import { RetryPolicy } from './retry-policy.ts';
import type { Pipeline } from './pipeline.ts';

export interface DeliverSettings {
  readonly id: string;
  readonly type: string;
  readonly batch: { readonly maxRecords: number; readonly maxBytes: number; readonly maxWait: number };
  /** ms a send may take before its outcome counts as unknown. */
  readonly deadline: number;
  /** Whether the outcome of a send can be found out afterwards: then acknowledgements wait for the next transaction, at most a second. */
  readonly resolvable: boolean;
  /** ms blocked before the probe for people fails; Infinity: never. */
  readonly failReadinessAfter: number;
}

export interface DeliveryParts {
  readonly settings: DeliverSettings;
  readonly journal: DeliverJournal;
  readonly pipeline: Pipeline;
  readonly open: (signal: AbortSignal) => Promise<Sink>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly meters: Meters;
}

/**
 * What may wait is acknowledged with the next transaction of the journal, or alone after this long: under load it costs no transaction of its own, and
 * when idle the ledger says soon that the sink has everything.
 */
const groupedMs = 1_000;
const maxIdleMs = 60_000;
/** A batch that met a receiver without room so often in a row is halved: it may be larger than what the receiver ever has room for. */
const maxCrowded = 3;
/** How long a sink may take to be closed; less when nobody waits for it any more. */
const closeMs = 10_000;
const closeAbandonedMs = 1_000;

/** What became of a batch: taken but for the rejections; or what is left of it refused whole, of unknown outcome, or still to be sent. */
interface Answer extends DeliveryResult {
  readonly rejected?: string;
  /** What the sink threw. */
  readonly unknown?: { readonly thrown: unknown };
  /** What is left is sent at once. */
  readonly isAtOnce?: boolean;
  readonly rest: readonly Message[];
}

export class Delivery {
  readonly #parts: DeliveryParts;
  readonly #batches: Batches;
  readonly #limit: BatchLimit;
  /** What a person has it get in addition. */
  readonly onDemand: OnDemand;
  /** The last entry that is acknowledged, in the file or waiting for its transaction. */
  #acknowledged: number;
  /** Messages up to here may have been taken by an attempt whose answer never came. */
  #uncertain: number;
  readonly #retryPolicy: RetryPolicy;
  #lastSuccess: Micros | undefined;
  /** When the oldest entry that is not acknowledged was received. */
  #oldest: Micros | undefined;
  /** When the first message of the batch that is being made was there. */
  #since: number | undefined;
  #flushAt: number | undefined;
  #isOpen = false;
  /** Ends whatever the loop waits for. */
  #wake: () => void = () => undefined;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    const { journal, pipeline, settings, clock, random } = parts;
    this.#retryPolicy = new RetryPolicy(clock, random);
    this.#acknowledged = journal.sinkProgress(settings.id).acknowledged;
    this.#uncertain = /* mutant: uncertain-after-start */ this.#acknowledged + maxUncertain;
    this.#limit = new BatchLimit({ records: settings.batch.maxRecords, bytes: settings.batch.maxBytes }, settings.deadline);
    this.#batches = new Batches((after, limit) => journal.read(after, limit), pipeline, this.#limit, this.#acknowledged);
    this.onDemand = new OnDemand({
      ...{ id: settings.id, limit: this.#limit, journal, pipeline, clock, log: parts.log, meters: parts.meters },
      wake: () => this.#wake(),
      away: () => this.#away(),
      acknowledged: () => this.#acknowledged,
    });
  }

  /**
   * Runs until `stop` is aborted; the batch under way may go on until `abandon` is. What it throws is final: the process must end.
   */
  async run(stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      try {
        await this.#withSink(abandon, (sink) => this.#deliver(sink, stop, abandon));
      } catch (thrown) {
        if (isFinal(thrown)) throw thrown;
        if (hasEnded(stop)) break;
        await this.#pause(thrown, stop).catch(() => undefined);
      }
    }
    this.onDemand.giveUp(new WaybillError('sink_unavailable', `sink "${this.#parts.settings.id}" ends`));
    await this.#parts.journal.flush();
  }

  /**
   * Opens the sink for what `work` asks it to send on demand, and delivers nothing: for a state that no daemon has open. Ends when all of it is
   * sent. Throws what the sink throws.
   */
  async runOnDemand<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const result = await this.#withSink(signal, async (sink) => {
      const asked = { isOver: false };
      const done = work().finally(() => (asked.isOver = true));
      const finished = done.catch(() => undefined);
      while (!asked.isOver || this.onDemand.isWaiting) {
        if (this.onDemand.isWaiting) await this.#sendOnDemand(sink, signal, signal);
        else await this.#rest(maxIdleMs, signal, finished);
      }
      return done;
    });
    await this.#parts.journal.flush();
    return result;
  }

  /** A person has changed what the loop waits for: it is tried again at once. */
  wake(): void {
    this.#wake();
  }

  /** Whether the sink is open, and where it is fits the journal. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  view(): Omit<SinkSnapshot, 'deadLetters' | 'hasDelivered'> {
    const { settings, journal, clock } = this.#parts;
    const { state, lastError, troubleMs, attempts, failingSince, nextAttempt } = this.#retryPolicy;
    const isUnready = troubleMs !== undefined && troubleMs > settings.failReadinessAfter;
    const lag = journal.head().seq - this.#acknowledged;
    return {
      id: settings.id,
      type: settings.type,
      state,
      trouble: isUnready ? (lastError ?? state) : undefined,
      acknowledged: this.#acknowledged,
      lagRecords: lag,
      lagSeconds: lag === 0 || this.#oldest === undefined ? 0 : Math.max(0, clock.now() / 1000 - this.#oldest / 1e6),
      lastSuccess: this.#lastSuccess,
      lastError,
      attempts,
      failingSince: failingSince === undefined ? undefined : failingSince * 1000,
      nextAttempt: nextAttempt === undefined ? undefined : nextAttempt * 1000,
      replay: this.onDemand.replayed?.progress(),
    };
  }

  /** Opens the sink, finds out where it is, and closes it whatever happens. What went wrong first is what counts. */
  async #withSink<Result>(abandon: AbortSignal, work: (sink: Sink) => Promise<Result>): Promise<Result> {
    const sink = await this.#open(abandon);
    try {
      await this.#resume(sink, abandon);
      this.#isOpen = true;
      return await work(sink);
    } finally {
      this.#isOpen = false;
      await this.#close(sink, abandon);
    }
  }

  /** A sink that cannot be closed, or not in time, is left to itself: the next one is opened all the same. */
  async #close(sink: Sink, abandon: AbortSignal): Promise<void> {
    const { settings, clock, log } = this.#parts;
    const maxMs = abandon.aborted ? closeAbandonedMs : closeMs;
    const late = (): WaybillError => new WaybillError('aborted', `sink "${settings.id}" was not closed within ${maxMs / 1000} s`);
    try {
      await within(async () => sink[Symbol.asyncDispose](), maxMs, late, clock);
    } catch (error) {
      log.write('sink.close_failed', { sink: settings.id, error });
    }
  }

  /** Opens the sink under its deadline; one that opens later than that is closed again. */
  async #open(abandon: AbortSignal): Promise<Sink> {
    const opening = this.#parts.open(abandon);
    try {
      return await this.#within(() => opening, abandon);
    } catch (thrown) {
      opening.then((sink) => sink[Symbol.asyncDispose]()).catch(() => undefined);
      throw thrown;
    }
  }

  /** A sink that keeps our position is asked for it: what it has is acknowledged, and everything goes on from there. */
  async #resume(sink: Sink, abandon: AbortSignal): Promise<void> {
    const { settings, journal, log } = this.#parts;
    await journal.flush();
    const found = sink.position
      ? await this.#within((signal) => sink.position?.(signal) ?? Promise.resolve(undefined), abandon)
      : undefined;
    // mutant: compare-position
    if (found) await this.#compare(found.position);
    if (/* mutant: sink-position */ found && found.position.seq > journal.sinkProgress(settings.id).acknowledged) {
      await journal.acknowledge(settings.id, { acknowledged: found.position.seq, delivered: found }, []);
    }
    // mutant: delivered-dead-letter
    if (found?.retried !== undefined) await this.onDemand.found(found.retried);
    const { acknowledged, orders } = journal.sinkProgress(settings.id);
    if (orders.adopt === true) {
      await journal.adopted(settings.id);
      log.write('sink.adopted', { sink: settings.id, acknowledged });
    }
    this.#acknowledged = acknowledged;
    this.#batches.restart(acknowledged);
    this.#since = undefined;
    this.#oldest = (await journal.read(this.#acknowledged, { records: 1, bytes: 1 }))[0]?.received;
    // What could not be opened is open now; what is still to be sent will show whether it takes.
    if (this.#retryPolicy.state === 'blocked') this.#retryPolicy.recovered();
  }

  /** A position that this journal never had, or one before what it knows as taken: one of the two went back. */
  async #compare({ seq, chain }: Position): Promise<void> {
    const { settings, journal } = this.#parts;
    const { delivered } = journal.sinkProgress(settings.id);
    const known = seq === delivered.seq ? delivered.chain : await journal.chainAt(seq);
    if (seq >= delivered.seq && known && Buffer.compare(known, chain) === 0) return;
    const reason =
      seq < delivered.seq
        ? `it had taken entry ${delivered.seq} and now ends at ${seq}`
        : `it has entry ${seq}, which this state does not know`;
    throw new WaybillError(
      'sink_blocked',
      `cannot go on with sink "${settings.id}": ${reason}; restore the right state, or see "waybill sinks adopt"`,
    );
  }

  async #deliver(sink: Sink, stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    const { journal, clock } = this.#parts;
    while (!stop.aborted) {
      const changed = journal.changed();
      await this.#fill();
      this.#oldest = this.#batches.received ?? this.#oldest;
      const isDue = this.#isDue();
      if (isDue) await this.#deliverBatch(sink, stop, abandon);
      else if (!this.#batches.hasMessages) {
        this.#passOver();
        // It is open and has everything: nothing says that it does not take.
        if (this.#retryPolicy.state !== 'active') this.#retryPolicy.recovered();
      }
      if (this.onDemand.isWaiting) await this.#sendOnDemand(sink, stop, abandon);
      await this.#flushWhenDue(stop);
      if (isDue || this.onDemand.isWaiting) continue;
      const dueAt = Math.min(this.#flushAt ?? Infinity, this.#dueAt());
      await this.#rest(Math.max(1, dueAt - clock.monotonic()), stop, changed);
    }
  }

  /** Puts into the next batch what is there. */
  async #fill(): Promise<void> {
    await this.#batches.fill();
    if (this.#batches.hasMessages) this.#since ??= this.#parts.clock.monotonic();
  }

  /** When the batch that is being made has waited long enough: `batch.maxWait` after its first message was there. */
  #dueAt(): number {
    return this.#since === undefined ? Infinity : this.#since + this.#parts.settings.batch.maxWait;
  }

  #isDue(): boolean {
    return this.#batches.isFull || this.#dueAt() <= this.#parts.clock.monotonic();
  }

  async #deliverBatch(sink: Sink, stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    if (!this.#batches.hasMessages) {
      this.#passOver();
      // Long stretches of what is for others: everybody else gets a turn.
      await this.#parts.clock.sleep(0, stop);
      return;
    }
    const prepared = this.#batches.take();
    if (!prepared) return;
    this.#since = undefined;
    const { messages, through, bytes, entries, unmade } = prepared;
    if (unmade) {
      await this.#acknowledge(entries, through.seq, undefined, [unmade], stop);
      return;
    }
    const sent = this.#sendAll(sink, { messages, through, uncertain: this.#isUncertain(prepared), bytes }, entries, stop, abandon);
    sent.catch(() => undefined);
    // The next batch is made while this one is on its way; it is not sent before this one is acknowledged.
    await this.#fill();
    await sent;
  }

  #isUncertain({ messages, entries }: Prepared): boolean {
    if ((messages[0]?.seq ?? Infinity) <= this.#uncertain) return true;
    const { reconcile } = this.#parts.journal.sinkProgress(this.#parts.settings.id).orders;
    if (!reconcile) return false;
    // A record without a readable time has that of its receipt.
    return messages.some(({ seq, time }) => (reconcile.from <= time && time < reconcile.to) || time === entries.get(seq)?.received);
  }

  /** Entries that are not for this sink: acknowledged with the next batch, or alone after a while. */
  #passOver(): void {
    const { journal, settings, clock } = this.#parts;
    const passed = this.#batches.take();
    // mutant: pass-over
    if (!passed) return;
    this.#acknowledged = passed.through.seq;
    journal.acknowledgeLater(settings.id, { acknowledged: passed.through.seq, delivered: undefined });
    this.#flushAt ??= clock.monotonic() + groupedMs;
  }

  /** One step of what a person has asked for on demand. What the sink is known to have stays as it is. */
  async #sendOnDemand(sink: Sink, stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    const { journal, settings, clock } = this.#parts;
    await this.#flush(stop);
    await this.onDemand.step({
      present: journal.sinkProgress(settings.id).delivered,
      send: (batch) => this.#within((signal) => sink.send(batch, signal), abandon),
      acknowledge: (batch, entries) => this.#sendAll(sink, batch, entries, stop, abandon),
      deadLetter: (entries, rejection) => this.#acknowledge(entries, this.#acknowledged, undefined, [rejection], stop),
      commit: (write) => this.#commit(write, stop),
      yield: () => clock.sleep(0, stop),
    });
  }

  /** Why the sink does not take now. */
  #away(): WaybillError | undefined {
    const { state, lastError } = this.#retryPolicy;
    if (state === 'active') return undefined;
    const message = `sink "${this.#parts.settings.id}" does not take now: ${lastError ?? ''}`;
    return new WaybillError(state === 'blocked' ? 'sink_blocked' : 'sink_unavailable', message);
  }

  /**
   * Sends a batch until all of it is acknowledged. One that is refused whole is halved, in order, down to the message that is to blame.
   * @returns how many were refused
   */
  async #sendAll(sink: Sink, batch: Batch, entries: ReadonlyMap<number, Entry>, stop: AbortSignal, abandon: AbortSignal): Promise<number> {
    const { journal, settings } = this.#parts;
    const parts: Batch[] = [batch];
    let count = 0;
    // Of messages that were refused while others of their batch are still to be sent.
    let rejected: readonly Rejection[] = [];
    for (let part = parts.shift(); part; part = parts.shift()) {
      // A batch is sent only if its last entry lies within 10,000 of what is acknowledged in the file.
      if (part.through.seq > journal.sinkProgress(settings.id).acknowledged + maxUncertain) await this.#flush(stop);
      const { through } = part;
      // What is sent on demand moves nothing.
      const acknowledged = part.onDemand === undefined ? through.seq : this.#acknowledged;
      // mutant: send-batch
      const answer = await this.#send(sink, part, stop, abandon);
      rejected = [...rejected, ...answer.rejections];
      const isLater = ({ seq }: Rejection): boolean => seq > through.seq && entries.has(seq);
      const ready = rejected.filter((rejection) => !isLater(rejection));
      const [only] = answer.rest;
      if (answer.unknown) {
        const open = answer.rest[0]?.seq ?? Infinity;
        const certain = part.messages.filter(({ seq }) => seq < open);
        if (certain.length > 0 && part.onDemand === undefined)
          this.#succeeded(batchOf(part, certain), { rejections: rejected.filter(({ seq }) => seq < open) });
        await this.#keepCertain(part, answer, rejected, entries, stop);
        throw answer.unknown.thrown;
      }
      if (answer.isAtOnce === true) {
        const left = new Set(answer.rest);
        this.#succeeded(batchOf(part, part.messages.filter((message) => !left.has(message))), answer); // prettier-ignore
        const certain = await this.#keepCertain(part, answer, rejected, entries, stop);
        count += rejected.length;
        rejected = rejected.filter(({ seq }) => seq > certain);
        count -= rejected.length;
        parts.unshift(batchOf(part, answer.rest));
        continue;
      }
      if (answer.rejected === undefined) {
        this.#succeeded(part, answer);
        await this.#acknowledge(entries, acknowledged, { position: through, resumeNote: answer.resumeNote }, ready, stop);
        count += ready.length;
      } else if (answer.rest.length > 1) {
        // mutant: rejected-batch
        part = batchOf(part, answer.rest);
        // mutant: halve-batch
        parts.unshift(...halve(part, entries));
        continue;
      } else if (only) {
        // mutant: dead-letters
        const dead = [...ready, { seq: only.seq, code: 'refused', message: answer.rejected }];
        // mutant: acknowledge-dead-letters
        await this.#acknowledge(entries, acknowledged, undefined, dead, stop);
        count += dead.length;
      }
      rejected = rejected.filter(isLater);
    }
    return count;
  }

  /**
   * What is acknowledged stays so, up to the first message that is left. What is sent on demand moves nothing.
   * @returns the last entry that is acknowledged by it; 0: none
   */
  async #keepCertain(
    part: Batch,
    { rest }: Answer,
    rejected: readonly Rejection[],
    entries: ReadonlyMap<number, Entry>,
    stop: AbortSignal,
  ): Promise<number> {
    const open = rest[0]?.seq ?? Infinity;
    const last = part.messages.findLast(({ seq }) => seq < open);
    if (!last || part.onDemand !== undefined) return 0;
    const ready = rejected.filter(({ seq }) => seq <= last.seq);
    await this.#acknowledge(entries, last.seq, undefined, ready, stop);
    return last.seq;
  }

  /** One batch until the sink has taken it, refuses whole what is left of it, or does not say. */
  async #send(sink: Sink, given: Batch, stop: AbortSignal, abandon: AbortSignal): Promise<Answer> {
    let batch = given;
    const rejections: Rejection[] = [];
    const tried = new Map<number, number>();
    // What is left of a batch that was taken in part is sent within the shutdown timeout: in the next life all of it would come again.
    let to = stop;
    let crowded = 0;
    for (;;) {
      const began = this.#parts.clock.monotonic();
      let certain = 0;
      try {
        const delivered = await this.#within((signal, goesOn) => {
          const heard = (count: number): void => {
            certain = count;
            goesOn();
          };
          return sink.send(batch, signal, heard);
        }, abandon);
        this.#limit.took(batch, this.#parts.clock.monotonic() - began);
        rejections.push(...delivered.rejections);
        if (delivered.duplicates) this.#parts.meters.sinkDuplicates(this.#parts.settings.id, delivered.duplicates);
        const { retryable: retry } = delivered;
        const spent = retry === undefined ? [] : spentOf(retry, tried);
        rejections.push(...spent);
        const left = new Set(retry?.seqs);
        for (const { seq } of spent) left.delete(seq);
        if (/* mutant: nothing-to-retry */ retry === undefined || left.size === 0)
          return { rejections, resumeNote: delivered.resumeNote, rest: [] };
        if (left.size < batch.messages.length) to = abandon;
        batch = batchOf(
          batch,
          // mutant: messages-to-retry
          batch.messages.filter(({ seq }) => left.has(seq)),
        );
        if (retry.isAtOnce === true) return { rejections, isAtOnce: true, rest: batch.messages };
        await this.#pause(new WaybillError(retry.code, retry.message, { retryAfterMs: retry.retryAfterMs }), to);
      } catch (thrown) {
        const code = codeOf(thrown);
        if (code === 'sink_unavailable' || code === 'sink_blocked') {
          // mutant: retry-pause
          await this.#pause(thrown, to);
          crowded = thrown instanceof WaybillError && thrown.isCrowded ? crowded + 1 : 0;
          // mutant: retry-batch
          if (crowded < maxCrowded || batch.messages.length === 1) continue;
          this.#limit.late(batch);
          return { rejections, rejected: messageOf(thrown), rest: batch.messages };
        }
        this.#uncertain = Math.max(this.#uncertain, batch.through.seq);
        if (code === 'sink_refused') return { rejections, rejected: messageOf(thrown), rest: batch.messages };
        if (thrown instanceof WaybillError && thrown.isLate) this.#limit.late(batch);
        // mutant: unknown-result
        return { rejections, unknown: { thrown }, rest: batch.messages.slice(certain) };
      }
    }
  }

  async #acknowledge(
    entries: ReadonlyMap<number, Entry>,
    acknowledged: number,
    delivered: { readonly position: Position; readonly resumeNote: string | undefined } | undefined,
    rejections: readonly Rejection[],
    stop: AbortSignal,
  ): Promise<void> {
    const { journal, settings, clock, log } = this.#parts;
    const acknowledgement = { acknowledged, delivered };
    const deadLetters = rejections.map((rejection) => {
      const entry = entries.get(rejection.seq);
      if (entry) return { entry, rejection, attempts: rejection.attempts ?? 1 };
      throw new WaybillError('sink_blocked', `sink "${settings.id}" refused entry ${rejection.seq}, which was not in its batch`);
    });
    this.#acknowledged = acknowledged;
    if (rejections.length === 0 && settings.resolvable) {
      journal.acknowledgeLater(settings.id, acknowledgement);
      this.#flushAt = Math.min(this.#flushAt ?? Infinity, clock.monotonic() + groupedMs);
      return;
    }
    await this.#commit(() => journal.acknowledge(settings.id, acknowledgement, deadLetters), stop);
    this.#flushAt = undefined;
    // The server's words may quote the record: they stand in the dead letter, not in the log.
    for (const { seq, code } of rejections) log.write('sink.dead_letter', { sink: settings.id, seq, code });
  }

  async #flushWhenDue(stop: AbortSignal): Promise<void> {
    if (this.#flushAt !== undefined && this.#parts.clock.monotonic() >= this.#flushAt) await this.#flush(stop);
  }

  async #flush(stop: AbortSignal): Promise<void> {
    await this.#commit(() => this.#parts.journal.flush(), stop);
    this.#flushAt = undefined;
  }

  /** On a full disk the write is tried again, not the send; meanwhile nothing is sent. */
  async #commit(write: () => Promise<void>, stop: AbortSignal): Promise<void> {
    for (let hasFailed = false; ; hasFailed = true) {
      try {
        await write();
        if (hasFailed) this.#retryPolicy.recovered();
        return;
      } catch (thrown) {
        if (codeOf(thrown) !== 'journal_full') throw thrown;
        await this.#pause(thrown, stop);
      }
    }
  }

  #succeeded({ messages, onDemand }: Batch, { rejections }: DeliveryResult): void {
    const { settings, meters, clock, log } = this.#parts;
    const delivered = messages.length - rejections.length;
    if (delivered === 0) {
      // It has answered, and refused all of it.
      this.#retryPolicy.recovered();
      return;
    }
    const now = clock.now();
    const oldest = messages.reduce((least, message) => Math.min(least, message.time), Infinity);
    const delaySeconds = Math.max(0, now / 1000 - oldest / 1e6);
    if (this.#lastSuccess === undefined) {
      log.write('sink.first_delivery', { sink: settings.id, messages: delivered, delaySeconds: Math.round(delaySeconds * 1000) / 1000 });
    } else if (this.#retryPolicy.state !== 'active') log.write('sink.delivery_resumed', { sink: settings.id });
    this.#retryPolicy.recovered();
    this.#lastSuccess = now * 1000;
    meters.eventsDelivered(settings.id, delivered);
    // One delay a batch, that of its oldest message: what a person waits for. What comes again tells nothing of it.
    if (onDemand === undefined) meters.deliveryDelay(settings.id, delaySeconds);
  }

  async #pause(thrown: unknown, stop: AbortSignal): Promise<void> {
    const { settings, log } = this.#parts;
    const waitMs = this.#retryPolicy.failed(thrown);
    const { attempts } = this.#retryPolicy;
    const fields = { sink: settings.id, code: codeOf(thrown), attempts, retryInMs: Math.round(waitMs), error: thrown };
    if (this.#retryPolicy.state === 'blocked') log.write('sink.delivery_blocked', fields);
    else log.write('sink.delivery_failed', fields);
    const away = this.#away();
    if (away) this.onDemand.giveUp(away);
    await this.#rest(waitMs, stop);
  }

  /** Runs one call of the sink under its deadline: passing it means that the outcome is unknown. */
  #within<Result>(call: (signal: AbortSignal, goesOn: () => void) => Promise<Result>, abandon: AbortSignal): Promise<Result> {
    const { settings, clock } = this.#parts;
    const late = (): WaybillError =>
      new WaybillError('sink_outcome_unknown', `sink "${settings.id}" did not answer within ${settings.deadline / 1000} s`, {
        isLate: true,
      });
    return within(call, settings.deadline, late, clock, abandon);
  }

  /** Sleeps, but no longer than until the promise resolves or a caller wakes the loop. Throws when it is to stop. */
  async #rest(ms: number, stop: AbortSignal, to?: Promise<unknown>): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort(ended);
    const most = to === undefined ? ms : Math.min(ms, maxIdleMs);
    const slept = this.#parts.clock.sleep(most, AbortSignal.any([stop, woken.signal])).catch(() => undefined);
    await (to === undefined ? slept : Promise.race([to, slept]));
    this.#wake = () => undefined;
    woken.abort(ended);
    await slept;
    stop.throwIfAborted();
  }
}

/** Counts one more try of each message that is to blame. @returns those that were wanted so often that they count as refused */
function spentOf(
  { seqs, attempts = Infinity, amid = seqs, message, said = [] }: RetryableRejection,
  tried: Map<number, number>,
): Rejection[] {
  const blamed = new Set(amid);
  return seqs.flatMap((seq) => {
    if (!blamed.has(seq) && !tried.has(seq)) return [];
    const count = (tried.get(seq) ?? 0) + 1;
    tried.set(seq, count);
    if (count < attempts) return [];
    return [{ ...(said.find((each) => each.seq === seq) ?? { seq, code: 'again', message }), attempts: count }];
  });
}

/** Asked anew after an await: the compiler remembers what the loop's condition found. */
function hasEnded(stop: AbortSignal): boolean {
  return stop.aborted;
}
