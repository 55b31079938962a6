/**
 * The loop around one sink: reads the journal, makes batches, sends, acknowledges. It owns waiting, trying again, halving and dead letters; the
 * sink only sends. A loop shares nothing with another but the journal, which it only reads: a slow or broken sink delays itself.
 */
import { codeOf, isFinal, WaybillError, wordsOf } from '../errors.ts';
import type { DeliverJournal, Entry } from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Again, Batch, Message, Rejection, Sink, Taken } from '../model/sink.ts';
import type { SinkSnapshot } from '../model/snapshot.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock, Micros, Random } from '../model/time.ts';
import { BatchLimit } from './batch-limit.ts';
import { batchOf, Batches, halve, uncertainMost } from './batches.ts';
import type { Prepared } from './batches.ts';
import { Besides } from './besides.ts';
import { ended, within } from './deadline.ts';
import { Patience } from './patience.ts';
import type { Pipeline } from './pipeline.ts';

export interface DeliverSettings {
  readonly id: string;
  readonly type: string;
  readonly batch: { readonly records: number; readonly bytes: number; readonly wait: number };
  /** ms a send may take before its outcome counts as unknown. */
  readonly deadline: number;
  /** Whether the outcome of a send can be found out afterwards: then acknowledgements wait for the next transaction, at most a second. */
  readonly resolvable: boolean;
  /** ms blocked before the probe for people fails; Infinity: never. */
  readonly unreadyAfter: number;
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
 * at rest the ledger says soon that the sink has everything.
 */
const groupedMs = 1_000;
const idleMostMs = 60_000;
/** A batch that met a receiver without room so often in a row is halved: it may be larger than what the receiver ever has room for. */
const crowdedMost = 3;
/** How long a sink may take to be closed; less when nobody waits for it any more. */
const closeMs = 10_000;
const closeAbandonedMs = 1_000;

/** What became of a batch: taken but for the rejections; or what is left of it refused whole, of unknown outcome, or still to be sent. */
interface Answer extends Taken {
  readonly refused?: string;
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
  /** What a person has it get besides. */
  readonly besides: Besides;
  /** The last entry that is acknowledged, in the file or waiting for its transaction. */
  #acked: number;
  /** Messages up to here may have been taken by an attempt whose answer never came. */
  #uncertain: number;
  readonly #patience: Patience;
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
    this.#patience = new Patience(clock, random);
    this.#acked = journal.sinkMarks(settings.id).acked;
    this.#uncertain = /* mutant: uncertain-after-start */ this.#acked + uncertainMost;
    this.#limit = new BatchLimit(settings.batch, settings.deadline);
    this.#batches = new Batches((after, limit) => journal.read(after, limit), pipeline, this.#limit, this.#acked);
    this.besides = new Besides({
      ...{ id: settings.id, limit: this.#limit, journal, pipeline, clock, log: parts.log, meters: parts.meters },
      wake: () => this.#wake(),
      away: () => this.#away(),
      acked: () => this.#acked,
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
    this.besides.giveUp(new WaybillError('sink_again', `sink "${this.#parts.settings.id}" ends`));
    await this.#parts.journal.flush();
  }

  /**
   * Opens the sink for what `work` asks it to send besides, and delivers nothing: for a state that no daemon has open. Ends when all of it is
   * sent. Throws what the sink throws.
   */
  async runBesides<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const result = await this.#withSink(signal, async (sink) => {
      const asked = { isOver: false };
      const done = work().finally(() => (asked.isOver = true));
      const settled = done.catch(() => undefined);
      while (!asked.isOver || this.besides.isWaiting) {
        if (this.besides.isWaiting) await this.#sendBesides(sink, signal, signal);
        else await this.#rest(idleMostMs, signal, settled);
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

  view(): Omit<SinkSnapshot, 'deadLetters' | 'everDelivered'> {
    const { settings, journal, clock } = this.#parts;
    const { state, lastError, troubleMs, tries, failingSince, nextAttempt } = this.#patience;
    const isUnready = troubleMs !== undefined && troubleMs > settings.unreadyAfter;
    const lag = journal.head().seq - this.#acked;
    return {
      id: settings.id,
      type: settings.type,
      state,
      trouble: isUnready ? (lastError ?? state) : undefined,
      acked: this.#acked,
      lagRecords: lag,
      lagSeconds: lag === 0 || this.#oldest === undefined ? 0 : Math.max(0, clock.now() / 1000 - this.#oldest / 1e6),
      lastSuccess: this.#lastSuccess,
      lastError,
      tries,
      failingSince: failingSince === undefined ? undefined : failingSince * 1000,
      nextAttempt: nextAttempt === undefined ? undefined : nextAttempt * 1000,
      replay: this.besides.replayed?.progress(),
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
    const mostMs = abandon.aborted ? closeAbandonedMs : closeMs;
    const late = (): WaybillError => new WaybillError('aborted', `sink "${settings.id}" was not closed within ${mostMs / 1000} s`);
    try {
      await within(async () => sink[Symbol.asyncDispose](), mostMs, late, clock);
    } catch (error) {
      log.warn({ sink: settings.id, error }, 'sink cannot be closed');
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
    if (/* mutant: sink-position */ found && found.position.seq > journal.sinkMarks(settings.id).acked) {
      await journal.acknowledge(settings.id, { acked: found.position.seq, taken: found }, []);
    }
    // mutant: delivered-dead-letter
    if (found?.retried !== undefined) await this.besides.found(found.retried);
    const { acked, orders } = journal.sinkMarks(settings.id);
    if (orders.adopt === true) {
      await journal.adopted(settings.id);
      log.info({ sink: settings.id, acked }, 'sink is adopted');
    }
    this.#acked = acked;
    this.#batches.restart(acked);
    this.#since = undefined;
    this.#oldest = (await journal.read(this.#acked, { records: 1, bytes: 1 }))[0]?.received;
    // What could not be opened is open now; what is still to be sent will show whether it takes.
    if (this.#patience.state === 'blocked') this.#patience.recovered();
  }

  /** A position that this journal never had, or one before what it knows as taken: one of the two went back. */
  async #compare({ seq, chain }: Position): Promise<void> {
    const { settings, journal } = this.#parts;
    const { taken } = journal.sinkMarks(settings.id);
    const own = seq === taken.seq ? taken.chain : await journal.chainAt(seq);
    if (seq >= taken.seq && own && Buffer.compare(own, chain) === 0) return;
    const reason =
      seq < taken.seq ? `it had taken entry ${taken.seq} and now ends at ${seq}` : `it has entry ${seq}, which this state does not know`;
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
        if (this.#patience.state !== 'active') this.#patience.recovered();
      }
      if (this.besides.isWaiting) await this.#sendBesides(sink, stop, abandon);
      await this.#flushWhenDue(stop);
      if (isDue || this.besides.isWaiting) continue;
      const dueAt = Math.min(this.#flushAt ?? Infinity, this.#dueAt());
      await this.#rest(Math.max(1, dueAt - clock.monotonic()), stop, changed);
    }
  }

  /** Puts into the next batch what is there. */
  async #fill(): Promise<void> {
    await this.#batches.fill();
    if (this.#batches.hasMessages) this.#since ??= this.#parts.clock.monotonic();
  }

  /** When the batch that is being made has waited long enough: `batch.wait` after its first message was there. */
  #dueAt(): number {
    return this.#since === undefined ? Infinity : this.#since + this.#parts.settings.batch.wait;
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
    const settled = this.#settle(sink, { messages, through, uncertain: this.#isUncertain(prepared), bytes }, entries, stop, abandon);
    settled.catch(() => undefined);
    // The next batch is made while this one is on its way; it is not sent before this one is settled.
    await this.#fill();
    await settled;
  }

  #isUncertain({ messages, entries }: Prepared): boolean {
    if ((messages[0]?.seq ?? Infinity) <= this.#uncertain) return true;
    const { verify } = this.#parts.journal.sinkMarks(this.#parts.settings.id).orders;
    if (!verify) return false;
    // A record without a readable time has that of its receipt.
    return messages.some(({ seq, time }) => (verify.from <= time && time < verify.until) || time === entries.get(seq)?.received);
  }

  /** Entries that are not for this sink: acknowledged with the next batch, or alone after a while. */
  #passOver(): void {
    const { journal, settings, clock } = this.#parts;
    const passed = this.#batches.take();
    // mutant: pass-over
    if (!passed) return;
    this.#acked = passed.through.seq;
    journal.acknowledgeLater(settings.id, { acked: passed.through.seq, taken: undefined });
    this.#flushAt ??= clock.monotonic() + groupedMs;
  }

  /** One step of what a person has asked for besides. What the sink is known to have stays as it is. */
  async #sendBesides(sink: Sink, stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    const { journal, settings, clock } = this.#parts;
    await this.#flush(stop);
    await this.besides.step({
      present: journal.sinkMarks(settings.id).taken,
      send: (batch) => this.#within((signal) => sink.send(batch, signal), abandon),
      settle: (batch, entries) => this.#settle(sink, batch, entries, stop, abandon),
      bury: (entries, rejection) => this.#acknowledge(entries, this.#acked, undefined, [rejection], stop),
      commit: (write) => this.#commit(write, stop),
      yield: () => clock.sleep(0, stop),
    });
  }

  /** Why the sink does not take now. */
  #away(): WaybillError | undefined {
    const { state, lastError } = this.#patience;
    if (state === 'active') return undefined;
    const words = `sink "${this.#parts.settings.id}" does not take now: ${lastError ?? ''}`;
    return new WaybillError(state === 'blocked' ? 'sink_blocked' : 'sink_again', words);
  }

  /**
   * Sends a batch until all of it is acknowledged. One that is refused whole is halved, in order, down to the message that is to blame.
   * @returns how many were refused
   */
  async #settle(sink: Sink, batch: Batch, entries: ReadonlyMap<number, Entry>, stop: AbortSignal, abandon: AbortSignal): Promise<number> {
    const { journal, settings } = this.#parts;
    const parts: Batch[] = [batch];
    let count = 0;
    // Of messages that were refused while others of their batch are still to be sent.
    let refused: readonly Rejection[] = [];
    for (let part = parts.shift(); part; part = parts.shift()) {
      // A batch is sent only if its last entry lies within 10,000 of what is acknowledged in the file.
      if (part.through.seq > journal.sinkMarks(settings.id).acked + uncertainMost) await this.#flush(stop);
      const { through } = part;
      // What is sent besides moves nothing.
      const acked = part.besides === undefined ? through.seq : this.#acked;
      // mutant: send-batch
      const answer = await this.#send(sink, part, stop, abandon);
      refused = [...refused, ...answer.rejections];
      const isLater = ({ seq }: Rejection): boolean => seq > through.seq && entries.has(seq);
      const due = refused.filter((rejection) => !isLater(rejection));
      const [only] = answer.rest;
      if (answer.unknown) {
        const open = answer.rest[0]?.seq ?? Infinity;
        const certain = part.messages.filter(({ seq }) => seq < open);
        if (certain.length > 0 && part.besides === undefined)
          this.#succeeded(batchOf(part, certain), { rejections: refused.filter(({ seq }) => seq < open) });
        await this.#keepCertain(part, answer, refused, entries, stop);
        throw answer.unknown.thrown;
      }
      if (answer.isAtOnce === true) {
        const left = new Set(answer.rest);
        this.#succeeded(batchOf(part, part.messages.filter((message) => !left.has(message))), answer); // prettier-ignore
        const certain = await this.#keepCertain(part, answer, refused, entries, stop);
        count += refused.length;
        refused = refused.filter(({ seq }) => seq > certain);
        count -= refused.length;
        parts.unshift(batchOf(part, answer.rest));
        continue;
      }
      if (answer.refused === undefined) {
        this.#succeeded(part, answer);
        await this.#acknowledge(entries, acked, { position: through, note: answer.note }, due, stop);
        count += due.length;
      } else if (answer.rest.length > 1) {
        // mutant: rejected-batch
        part = batchOf(part, answer.rest);
        // mutant: halve-batch
        parts.unshift(...halve(part, entries));
        continue;
      } else if (only) {
        // mutant: dead-letters
        const dead = [...due, { seq: only.seq, code: 'refused', words: answer.refused }];
        // mutant: acknowledge-dead-letters
        await this.#acknowledge(entries, acked, undefined, dead, stop);
        count += dead.length;
      }
      refused = refused.filter(isLater);
    }
    return count;
  }

  /**
   * What is settled stays so, up to the first message that is left. What is sent besides moves nothing.
   * @returns the last entry that is acknowledged by it; 0: none
   */
  async #keepCertain(
    part: Batch,
    { rest }: Answer,
    refused: readonly Rejection[],
    entries: ReadonlyMap<number, Entry>,
    stop: AbortSignal,
  ): Promise<number> {
    const open = rest[0]?.seq ?? Infinity;
    const last = part.messages.findLast(({ seq }) => seq < open);
    if (!last || part.besides !== undefined) return 0;
    const due = refused.filter(({ seq }) => seq <= last.seq);
    await this.#acknowledge(entries, last.seq, undefined, due, stop);
    return last.seq;
  }

  /** One batch until the sink has taken it, refuses whole what is left of it, or does not say. */
  async #send(sink: Sink, given: Batch, stop: AbortSignal, abandon: AbortSignal): Promise<Answer> {
    let batch = given;
    const rejections: Rejection[] = [];
    const tried = new Map<number, number>();
    // What is left of a batch that was taken in part is sent within the grace period: in the next life all of it would come again.
    let until = stop;
    let crowded = 0;
    for (;;) {
      const began = this.#parts.clock.monotonic();
      let certain = 0;
      try {
        const taken = await this.#within((signal, goesOn) => {
          const heard = (count: number): void => {
            certain = count;
            goesOn();
          };
          return sink.send(batch, signal, heard);
        }, abandon);
        this.#limit.took(batch, this.#parts.clock.monotonic() - began);
        rejections.push(...taken.rejections);
        if (taken.duplicates) this.#parts.meters.sinkDuplicates(this.#parts.settings.id, taken.duplicates);
        const { again } = taken;
        const spent = again === undefined ? [] : spentOf(again, tried);
        rejections.push(...spent);
        const left = new Set(again?.seqs);
        for (const { seq } of spent) left.delete(seq);
        if (/* mutant: nothing-to-retry */ again === undefined || left.size === 0) return { rejections, note: taken.note, rest: [] };
        if (left.size < batch.messages.length) until = abandon;
        batch = batchOf(
          batch,
          // mutant: messages-to-retry
          batch.messages.filter(({ seq }) => left.has(seq)),
        );
        if (again.isAtOnce === true) return { rejections, isAtOnce: true, rest: batch.messages };
        await this.#pause(new WaybillError(again.code, again.words, { retryAfterMs: again.retryAfterMs }), until);
      } catch (thrown) {
        const code = codeOf(thrown);
        if (code === 'sink_again' || code === 'sink_blocked') {
          // mutant: retry-pause
          await this.#pause(thrown, until);
          crowded = thrown instanceof WaybillError && thrown.isCrowded ? crowded + 1 : 0;
          // mutant: retry-batch
          if (crowded < crowdedMost || batch.messages.length === 1) continue;
          this.#limit.late(batch);
          return { rejections, refused: wordsOf(thrown), rest: batch.messages };
        }
        this.#uncertain = Math.max(this.#uncertain, batch.through.seq);
        if (code === 'sink_refused') return { rejections, refused: wordsOf(thrown), rest: batch.messages };
        if (thrown instanceof WaybillError && thrown.isLate) this.#limit.late(batch);
        // mutant: unknown-result
        return { rejections, unknown: { thrown }, rest: batch.messages.slice(certain) };
      }
    }
  }

  async #acknowledge(
    entries: ReadonlyMap<number, Entry>,
    acked: number,
    taken: { readonly position: Position; readonly note: string | undefined } | undefined,
    rejections: readonly Rejection[],
    stop: AbortSignal,
  ): Promise<void> {
    const { journal, settings, clock, log } = this.#parts;
    const acknowledgement = { acked, taken };
    const letters = rejections.map((rejection) => {
      const entry = entries.get(rejection.seq);
      if (entry) return { entry, rejection, tries: rejection.tries ?? 1 };
      throw new WaybillError('sink_blocked', `sink "${settings.id}" refused entry ${rejection.seq}, which was not in its batch`);
    });
    this.#acked = acked;
    if (rejections.length === 0 && settings.resolvable) {
      journal.acknowledgeLater(settings.id, acknowledgement);
      this.#flushAt = Math.min(this.#flushAt ?? Infinity, clock.monotonic() + groupedMs);
      return;
    }
    await this.#commit(() => journal.acknowledge(settings.id, acknowledgement, letters), stop);
    this.#flushAt = undefined;
    // The server's words may quote the record: they stand in the dead letter, not in the log.
    for (const { seq, code } of rejections) log.error({ sink: settings.id, seq, code }, 'dead letter');
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
        if (hasFailed) this.#patience.recovered();
        return;
      } catch (thrown) {
        if (codeOf(thrown) !== 'journal_full') throw thrown;
        await this.#pause(thrown, stop);
      }
    }
  }

  #succeeded({ messages, besides }: Batch, { rejections }: Taken): void {
    const { settings, meters, clock, log } = this.#parts;
    const taken = messages.length - rejections.length;
    if (taken === 0) {
      // It has answered, and refused all of it.
      this.#patience.recovered();
      return;
    }
    const now = clock.now();
    const oldest = messages.reduce((least, message) => Math.min(least, message.time), Infinity);
    const delaySeconds = Math.max(0, now / 1000 - oldest / 1e6);
    if (this.#lastSuccess === undefined) {
      log.info({ sink: settings.id, messages: taken, delaySeconds: Math.round(delaySeconds * 1000) / 1000 }, 'first event taken');
    } else if (this.#patience.state !== 'active') log.info({ sink: settings.id }, 'sink takes again');
    this.#patience.recovered();
    this.#lastSuccess = now * 1000;
    meters.eventsSent(settings.id, taken);
    // One delay a batch, that of its oldest message: what a person waits for. What comes again tells nothing of it.
    if (besides === undefined) meters.deliveryDelay(settings.id, delaySeconds);
  }

  async #pause(thrown: unknown, stop: AbortSignal): Promise<void> {
    const { settings, log } = this.#parts;
    const waitMs = this.#patience.failed(thrown);
    const { tries } = this.#patience;
    const fields = { sink: settings.id, code: codeOf(thrown), tries, waitMs: Math.round(waitMs), error: thrown };
    if (this.#patience.state === 'blocked') log.error(fields, 'sink is blocked');
    else log.warn(fields, 'sink does not take');
    const away = this.#away();
    if (away) this.besides.giveUp(away);
    await this.#rest(waitMs, stop);
  }

  /** Runs one call of the sink under its deadline: passing it means that the outcome is unknown. */
  #within<Result>(call: (signal: AbortSignal, goesOn: () => void) => Promise<Result>, abandon: AbortSignal): Promise<Result> {
    const { settings, clock } = this.#parts;
    const late = (): WaybillError =>
      new WaybillError('sink_unknown', `sink "${settings.id}" did not answer within ${settings.deadline / 1000} s`, { isLate: true });
    return within(call, settings.deadline, late, clock, abandon);
  }

  /** Sleeps, but no longer than until the promise resolves or somebody wakes the loop. Throws when it is to stop. */
  async #rest(ms: number, stop: AbortSignal, until?: Promise<unknown>): Promise<void> {
    const woken = new AbortController();
    this.#wake = () => woken.abort(ended);
    const most = until === undefined ? ms : Math.min(ms, idleMostMs);
    const slept = this.#parts.clock.sleep(most, AbortSignal.any([stop, woken.signal])).catch(() => undefined);
    await (until === undefined ? slept : Promise.race([until, slept]));
    this.#wake = () => undefined;
    woken.abort(ended);
    await slept;
    stop.throwIfAborted();
  }
}

/** Counts one more try of each message that is to blame. @returns those that were wanted so often that they count as refused */
function spentOf({ seqs, tries = Infinity, amid = seqs, words, said = [] }: Again, tried: Map<number, number>): Rejection[] {
  const blamed = new Set(amid);
  return seqs.flatMap((seq) => {
    if (!blamed.has(seq) && !tried.has(seq)) return [];
    const count = (tried.get(seq) ?? 0) + 1;
    tried.set(seq, count);
    if (count < tries) return [];
    return [{ ...(said.find((each) => each.seq === seq) ?? { seq, code: 'again', words }), tries: count }];
  });
}

/** Asked anew after an await: the compiler remembers what the loop's condition found. */
function hasEnded(stop: AbortSignal): boolean {
  return stop.aborted;
}
