/**
 * The delivery loop of one sink: reads the journal, builds batches and sends them. Loops share only
 * the journal, so a slow or broken sink delays no other.
 */
import { isFinal, WaybillError } from '../errors/errors.ts';
import type { ArchiveReplay, DeliverJournal } from '../model/journal.ts';
import type { Sink } from '../model/sink.ts';
import type { SinkSnapshot } from '../model/snapshot.ts';
import { noTracer, type Log, type Meters, type Tracer } from '../model/telemetry.ts';
import type { Clock, Random } from '../model/time.ts';
import { Acknowledger } from './acknowledger.ts';
import { ArchiveAcknowledger } from './archive-acknowledger.ts';
import { BatchLimit } from './batch-limit.ts';
import { Batches } from './batcher.ts';
import { OnDemand, type OpenArchive } from './on-demand.ts';
import { Opener } from './opener.ts';
import { Pauses } from './pauses.ts';
import type { Pipeline } from './pipeline.ts';
import { RetryPolicy } from './retry-policy.ts';
import { SendQueue } from './send-queue.ts';
import { Sender, type OpenSink, type ReadTime } from './sender.ts';

export interface DeliverSettings {
  readonly id: string;
  readonly type: string;
  readonly batch: { readonly maxRecords: number; readonly maxBytes: number; readonly maxWait: number };
  /** ms after which the outcome of a call to the sink counts as unknown. */
  readonly deadline: number;
  /** The sink can resolve an unknown outcome: acknowledgements may wait for the next transaction, at most a second. */
  readonly resolvable: boolean;
  /** ms without a delivery before the readiness probe fails; Infinity: never. */
  readonly failReadinessAfter: number;
}

interface DeliveryParts {
  readonly settings: DeliverSettings;
  readonly journal: DeliverJournal;
  readonly pipeline: Pipeline;
  readonly open: (signal: AbortSignal) => Promise<Sink>;
  /** Default: there is no archive. */
  readonly openArchive?: OpenArchive;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
  readonly meters: Meters;
  /** Default: no traces. */
  readonly tracer?: Tracer;
}

/** The state of a loop. The journal determines the rest of the snapshot. */
type LoopView = Omit<SinkSnapshot, 'lagEntries' | 'lagRecords' | 'lagSeconds' | 'deadLetters' | 'hasDelivered'>;

export class Delivery {
  readonly #parts: DeliveryParts;
  readonly #batches: Batches;
  readonly #retryPolicy: RetryPolicy;
  readonly #sends = new SendQueue();
  readonly #pauses: Pauses;
  readonly #acknowledger: Acknowledger;
  readonly #sender: Sender;
  readonly #opener: Opener;
  readonly onDemand: OnDemand;
  /** When the next batch got its first message, by the monotonic clock. */
  #since: number | undefined;
  /** The time of reading the next batch from the journal. */
  #read: ReadTime | undefined;
  #sink: Sink | undefined;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    const { journal, pipeline, settings, open, openArchive = noArchive, clock, random, log, meters, tracer = noTracer } = parts;
    const { id, type, deadline, resolvable, batch } = settings;
    const limit = new BatchLimit({ records: batch.maxRecords, bytes: batch.maxBytes }, deadline);
    const shared = { id, limit, journal, clock, log, meters, tracer };
    const sends = this.#sends;
    const retryPolicy = (this.#retryPolicy = new RetryPolicy(clock, random));
    const pauses = (this.#pauses = new Pauses({ ...shared, retryPolicy, sends }));
    const acknowledger = (this.#acknowledger = new Acknowledger({ ...shared, resolvable, pauses, retryPolicy }));
    const sender = (this.#sender = new Sender({ ...shared, type, deadline, acknowledger, pauses, retryPolicy }));
    const archiveAcknowledger = new ArchiveAcknowledger(id, acknowledger, log);
    const archiveReplays = {
      sender: new Sender({ ...shared, type, deadline, acknowledger: archiveAcknowledger, pauses, retryPolicy }),
      acknowledger: archiveAcknowledger,
    };
    const onDemand = (this.onDemand = new OnDemand({
      ...shared,
      pipeline,
      sends,
      sender,
      acknowledger,
      archiveReplays,
      pauses,
      openArchive,
      archiveRetries: new RetryPolicy(clock, random),
    }));
    this.#opener = new Opener({ ...shared, open, sender, onDemand });
    this.#batches = new Batches((after, max) => journal.read(after, max), pipeline, limit, clock, acknowledger.acknowledged);
  }

  /**
   * Runs until `stop` is aborted; the batch in flight continues until `abandon` is aborted.
   * @throws only fatal errors: the process must end
   */
  async run(stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    this.onDemand.resume();
    while (!stop.aborted) {
      try {
        await this.#withSink(abandon, (sink) => this.#deliver({ sink, stop, abandon }));
      } catch (thrown) {
        if (isFinal(thrown)) throw thrown;
        if (hasEnded(stop)) break;
        const others = this.#sender.waitsForOthers ? this.#parts.journal.changed() : undefined;
        await this.#pauses.afterFailure(thrown, stop, others).catch(() => undefined);
      }
    }
    this.onDemand.close(new WaybillError('sink_unavailable', `cannot send to sink "${this.#parts.settings.id}": delivery has stopped`));
    await this.onDemand[Symbol.asyncDispose]();
    await this.#parts.journal.flush();
  }

  /** Opens the sink only for the on-demand sends of `work`, when no daemon runs. Ends after the last of these sends. Throws the sink's errors. */
  async runOnDemand<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const result = await this.#withSink(signal, async (sink) => {
      const progress = { isOver: false };
      const done = work().finally(() => (progress.isOver = true));
      const finished = done.catch(() => undefined);
      while (!progress.isOver || this.onDemand.isBusy) {
        if (this.onDemand.isWaiting) await this.onDemand.step({ sink, stop: signal, abandon: signal });
        else await this.#pauses.rest(maxRestMs, signal, progress.isOver ? undefined : finished);
      }
      return done;
    }).finally(() => this.onDemand[Symbol.asyncDispose]());
    await this.#parts.journal.flush();
    return result;
  }

  wake(): void {
    this.#pauses.wake();
  }

  get isOpen(): boolean {
    return this.#sink !== undefined;
  }

  view(): LoopView {
    const { settings } = this.#parts;
    const { state, lastSuccess, lastError, lastCode, recoveredAt, troubleMs, attempts, failingSince, nextAttempt } = this.#retryPolicy;
    const isUnready = troubleMs !== undefined && troubleMs > settings.failReadinessAfter;
    return {
      id: settings.id,
      type: settings.type,
      state,
      trouble: isUnready ? (lastError ?? state) : undefined,
      acknowledged: this.#acknowledger.acknowledged,
      lastSuccess: lastSuccess === undefined ? undefined : lastSuccess * 1000,
      lastError,
      lastCode,
      recoveredAt: recoveredAt === undefined ? undefined : recoveredAt * 1000,
      attempts,
      failingSince: failingSince === undefined ? undefined : failingSince * 1000,
      nextAttempt: nextAttempt === undefined ? undefined : nextAttempt * 1000,
      timeStamp: this.#sink?.timeStamp,
      replay: this.onDemand.replayed?.progress(),
    };
  }

  /** Opens the sink, resumes at its position, runs `work`, and closes the sink. */
  async #withSink<Result>(abandon: AbortSignal, work: (sink: Sink) => Promise<Result>): Promise<Result> {
    const sink = await this.#opener.open(abandon);
    try {
      await this.#resume(await this.#opener.resume(sink, abandon));
      this.#sink = sink;
      return await work(sink);
    } finally {
      this.#sink = undefined;
      await this.#opener.close(sink, abandon);
    }
  }

  async #resume(acknowledged: number): Promise<void> {
    this.#acknowledger.resume(acknowledged);
    this.#batches.restart(acknowledged);
    this.#since = undefined;
    this.#read = undefined;
    // The sink could be opened, so the cause of the block may be gone: the next batch shows if it is.
    if (this.#retryPolicy.state === 'blocked') this.#retryPolicy.recovered();
  }

  async #deliver(open: OpenSink): Promise<void> {
    const { journal, clock } = this.#parts;
    const { stop } = open;
    while (!stop.aborted) {
      const changed = journal.changed();
      await this.#fill();
      const isDue = this.#isDue();
      if (isDue) await this.#deliverBatch(open);
      else if (!this.#batches.hasMessages) {
        this.#passOver();
        // Fully caught up: no failed send is left to retry.
        if (this.#retryPolicy.state !== 'active') this.#retryPolicy.recovered();
      }
      this.onDemand.continueWhenDue();
      if (this.onDemand.isWaiting) await this.onDemand.step(open);
      await this.#acknowledger.flushWhenDue(stop);
      if (isDue || this.onDemand.isWaiting) continue;
      const dueAt = Math.min(this.#acknowledger.flushAt, this.#dueAt(), this.onDemand.continueAt);
      await this.#pauses.rest(Math.max(1, dueAt - clock.monotonic()), stop, changed);
    }
  }

  async #fill(): Promise<void> {
    const { clock } = this.#parts;
    const from = this.#read?.from ?? clock.now();
    await this.#batches.fill();
    if (!this.#batches.hasMessages) return;
    this.#since ??= clock.monotonic();
    this.#read = { from, to: clock.now() };
  }

  /** The time to send the next batch even if it is not full. */
  #dueAt(): number {
    return this.#since === undefined ? Infinity : this.#since + this.#parts.settings.batch.maxWait;
  }

  #isDue(): boolean {
    return this.#batches.isFull || this.#dueAt() <= this.#parts.clock.monotonic();
  }

  async #deliverBatch(open: OpenSink): Promise<void> {
    if (!this.#batches.hasMessages) {
      this.#passOver();
      // A long range of entries for other sinks must not block the event loop.
      await this.#parts.clock.sleep(0, open.stop);
      return;
    }
    const prepared = this.#batches.take();
    if (!prepared) return;
    const read = this.#read;
    this.#since = undefined;
    this.#read = undefined;
    const { messages, through, bytes, entries, unmade } = prepared;
    if (unmade) {
      await this.#acknowledger.acknowledge(entries, through.seq, undefined, [unmade], open.stop);
      return;
    }
    const sent = this.#sender.deliver(open, { messages, through, uncertain: this.#sender.isUncertain(prepared), bytes }, entries, read);
    sent.catch(() => undefined);
    // Builds the next batch while this one is in flight. The loop sends it after this one is acknowledged.
    await this.#fill();
    await sent;
  }

  /** Acknowledges entries that are not for this sink. */
  #passOver(): void {
    const passed = this.#batches.take();
    // mutant: pass-over
    if (!passed) return;
    this.#acknowledger.passOver(passed.through.seq);
  }
}

/** A completed archive read or a new send ends the pause earlier. */
const maxRestMs = 60_000;

function noArchive({ archive }: ArchiveReplay): Promise<never> {
  return Promise.reject(new WaybillError('archive_broken', `cannot read the archive of the sink "${archive}": there is none`));
}

/** A function, because the compiler keeps the narrowing of the loop's condition after an await. */
function hasEnded(stop: AbortSignal): boolean {
  return stop.aborted;
}
