/**
 * The delivery loop of one sink. It takes turns between its feeds, and sends the next batch of the feed that is due. Loops share only the
 * journal, so a slow or broken sink does not delay the others.
 */
import { isFinal, WaybillError } from '../errors/errors.ts';
import type { ArchiveReplay, DeliverJournal, Operation, Replay, ReplayProgress } from '../model/journal.ts';
import type { Message, Rejection, Sink } from '../model/sink.ts';
import type { SinkSnapshot } from '../model/snapshot.ts';
import { noTracer, type Log, type Meters, type Tracer } from '../model/telemetry.ts';
import type { Clock, Random } from '../model/time.ts';
import { Acknowledger } from './acknowledger.ts';
import { ArchiveSource, type OpenArchive } from './archive-source.ts';
import { BatchLimit } from './batch-limit.ts';
import type { Feed } from './feed.ts';
import { MainFeed } from './main-feed.ts';
import { Opener } from './opener.ts';
import { Pauses } from './pauses.ts';
import type { Pipeline } from './pipeline.ts';
import { ReplayFeed } from './replay-feed.ts';
import { RequestFeed } from './request-feed.ts';
import { RetryPolicy } from './retry-policy.ts';
import { Sender, type OpenSink } from './sender.ts';

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
  readonly #limit: BatchLimit;
  readonly #retryPolicy: RetryPolicy;
  readonly #pauses: Pauses;
  readonly #acknowledger: Acknowledger;
  readonly #sender: Sender;
  readonly #opener: Opener;
  readonly #main: MainFeed;
  readonly #requests: RequestFeed;
  readonly #replays: { [Kind in Replay['kind']]?: ReplayFeed } = {};
  #closed: WaybillError | undefined;
  #sink: Sink | undefined;

  constructor(parts: DeliveryParts) {
    this.#parts = parts;
    const { journal, pipeline, settings, open, clock, random, log, meters, tracer = noTracer } = parts;
    const { id, type, deadline, resolvable, batch } = settings;
    const limit = (this.#limit = new BatchLimit({ records: batch.maxRecords, bytes: batch.maxBytes }, deadline));
    const shared = { id, limit, journal, pipeline, clock, log, meters, tracer };
    const retryPolicy = (this.#retryPolicy = new RetryPolicy(clock, random));
    const failed = (unavailable: WaybillError): void => this.#requests.fail(unavailable);
    const pauses = (this.#pauses = new Pauses({ ...shared, retryPolicy, failed }));
    const acknowledger = (this.#acknowledger = new Acknowledger({ ...shared, resolvable, pauses, retryPolicy }));
    const sender = (this.#sender = new Sender({ ...shared, type, deadline, acknowledger, pauses, retryPolicy }));
    this.#opener = new Opener({ ...shared, open, sender });
    this.#main = new MainFeed({ ...shared, maxWait: batch.maxWait, acknowledger });
    this.#requests = new RequestFeed({ ...shared, acknowledger, pauses });
  }

  /**
   * Runs until `stop` is aborted; the batch in flight continues until `abandon` is aborted.
   * @throws only fatal errors: the process must end
   */
  async run(stop: AbortSignal, abandon: AbortSignal): Promise<void> {
    const { journal, settings } = this.#parts;
    const { range, archive } = journal.sinkProgress(settings.id).replays;
    for (const replay of [range, archive]) if (replay) this.#start(replay);
    while (!stop.aborted) {
      try {
        await this.#withSink(abandon, (sink) => this.#deliver({ sink, stop, abandon }));
      } catch (thrown) {
        if (isFinal(thrown)) throw thrown;
        if (hasEnded(stop)) break;
        const others = this.#sender.waitsForOthers ? journal.changed() : undefined;
        await this.#pauses.afterFailure(thrown, stop, others).catch(() => undefined);
      }
    }
    this.#closed = new WaybillError('sink_unavailable', `cannot send to sink "${settings.id}": delivery has stopped`);
    this.#requests.close(this.#closed);
    await this.#closeArchives();
    await journal.flush();
  }

  /** Opens the sink only for what `work` requests, when no daemon runs. Ends after the last request and replay. Throws the sink's errors. */
  async runOnDemand<Result>(work: () => Promise<Result>, signal: AbortSignal): Promise<Result> {
    const result = await this.#withSink(signal, async (sink) => {
      const progress = { isOver: false };
      const done = work().finally(() => (progress.isOver = true));
      const finished = done.catch(() => undefined);
      for (;;) {
        if (await this.#deliverOther({ sink, stop: signal, abandon: signal })) continue;
        // The work may have ended meanwhile.
        if (progress.isOver && !this.#isBusy) break;
        await this.#pauses.rest(Math.min(maxRestMs, this.#dueIn(this.#others())), signal, progress.isOver ? undefined : finished);
      }
      return done;
    }).finally(() => this.#closeArchives());
    await this.#parts.journal.flush();
    return result;
  }

  retry(seqs: readonly number[], operation: Operation): Promise<readonly Rejection[]> {
    return this.#requests.retry(seqs, operation);
  }

  test(messages: readonly Message[]): Promise<readonly Rejection[]> {
    return this.#requests.test(messages);
  }

  /**
   * Starts or continues a replay that the state stores. A replay that cannot read its archive does not prevent another one.
   * @throws WaybillError `usage` while another replay runs, `sink_unavailable` when the loop has ended
   */
  replay(replay: Replay): ReplayProgress {
    if (this.#closed) throw this.#closed;
    if (this.#progresses().some(({ state }) => state === 'running'))
      throw new WaybillError('usage', 'cannot start a replay: a replay to this sink is already running');
    const feed = this.#start(replay);
    this.#pauses.wake();
    return feed.progress();
  }

  /** Ends the replays. The sink may still receive the batch in flight. */
  cancelReplays(): void {
    for (const feed of this.#replayFeeds()) feed.cancel();
  }

  wake(): void {
    this.#pauses.wake();
  }

  get isOpen(): boolean {
    return this.#sink !== undefined;
  }

  view(): LoopView {
    const { settings } = this.#parts;
    const { state, attempts, troubleMs } = this.#retryPolicy;
    const isUnready = troubleMs !== undefined && troubleMs > settings.failReadinessAfter;
    return {
      id: settings.id,
      type: settings.type,
      state,
      trouble: isUnready ? (attempts.lastError ?? state) : undefined,
      acknowledged: this.#acknowledger.acknowledged,
      ...attempts,
      timeStamp: this.#sink?.timeStamp,
      cosignatures: this.#sink?.cosignatures,
      replays: this.#progresses(),
    };
  }

  #progresses(): ReplayProgress[] {
    const order = ({ state, ended = Number.MAX_VALUE }: ReplayProgress): number => (state === 'failed' ? Infinity : ended);
    return this.#replayFeeds()
      .map((feed) => feed.progress())
      .sort((a, b) => Number(order(a) < order(b)) - Number(order(a) > order(b)));
  }

  #replayFeeds(): ReplayFeed[] {
    const { range, archive } = this.#replays;
    return [range, archive].filter((feed) => feed !== undefined);
  }

  #start(replay: Replay): ReplayFeed {
    const { settings, journal, pipeline, openArchive = noArchive, clock, random, log } = this.#parts;
    const source = new ArchiveSource(openArchive);
    const parts = { id: settings.id, limit: this.#limit, acknowledger: this.#acknowledger, pauses: this.#pauses };
    const retryPolicy = new RetryPolicy(clock, random);
    void this.#replays[replay.kind]?.[Symbol.asyncDispose]();
    const feed = new ReplayFeed({ ...parts, replay, source, retryPolicy, journal, pipeline, clock, log });
    this.#replays[replay.kind] = feed;
    return feed;
  }

  async #closeArchives(): Promise<void> {
    for (const feed of this.#replayFeeds()) await feed[Symbol.asyncDispose]();
  }

  /** True while a request or a replay has something to send, also while it reads its archive. */
  get #isBusy(): boolean {
    return this.#requests.dueAt < Infinity || this.#replayFeeds().some((feed) => feed.isRunning);
  }

  /** Opens the sink, resumes at its position, runs `work`, and closes the sink. */
  async #withSink<Result>(abandon: AbortSignal, work: (sink: Sink) => Promise<Result>): Promise<Result> {
    const sink = await this.#opener.open(abandon);
    try {
      const { acknowledged, feed } = await this.#opener.resume(sink, abandon);
      this.#acknowledger.resume(acknowledged);
      if (feed) for (const each of this.#others()) await each.found(feed);
      this.#main.restart(acknowledged);
      // The sink could be opened, so the cause of the block may be gone: the next batch shows if it is.
      if (this.#retryPolicy.state === 'blocked') this.#retryPolicy.recovered();
      this.#sink = sink;
      return await work(sink);
    } finally {
      this.#sink = undefined;
      await this.#opener.close(sink, abandon);
    }
  }

  /** The main feed and one other take turns, so that neither waits for more than a batch of the other. */
  async #deliver(open: OpenSink): Promise<void> {
    const { journal, clock } = this.#parts;
    const { stop } = open;
    while (!stop.aborted) {
      const changed = journal.changed();
      await this.#main.fill();
      const isDue = this.#main.dueAt <= clock.monotonic();
      if (isDue) await this.#deliverNext(this.#main, open);
      else if (this.#main.isIdle) {
        this.#main.passOver();
        // Fully caught up: no failed send is left to retry.
        if (this.#retryPolicy.state !== 'active' && !this.#isBusy) this.#retryPolicy.recovered();
      }
      const hasDelivered = await this.#deliverOther(open);
      await this.#beat(open);
      await this.#acknowledger.flushWhenDue(stop);
      if (isDue || hasDelivered) continue;
      const beat = { dueAt: open.sink.beatAt ?? Infinity };
      const waiting = [{ dueAt: this.#acknowledger.flushAt }, this.#main, beat, ...this.#others()];
      await this.#pauses.rest(this.#dueIn(waiting), stop, changed);
    }
  }

  async #beat({ sink, abandon }: OpenSink): Promise<void> {
    if ((sink.beatAt ?? Infinity) > this.#parts.clock.monotonic()) return;
    await this.#sender.call((signal) => sink.beat?.(signal) ?? Promise.resolve(), abandon);
  }

  /** ms, at least 1. */
  #dueIn(waiting: readonly Pick<Feed, 'dueAt'>[]): number {
    return Math.max(1, Math.min(...waiting.map(({ dueAt }) => dueAt)) - this.#parts.clock.monotonic());
  }

  #others(): (RequestFeed | ReplayFeed)[] {
    return [this.#requests, ...this.#replayFeeds()];
  }

  /** @returns false when no other feed than the main one is due */
  async #deliverOther(open: OpenSink): Promise<boolean> {
    for (const feed of this.#others()) await feed.fill();
    const now = this.#parts.clock.monotonic();
    const due = this.#others().find((feed) => feed.dueAt <= now);
    if (!due) return false;
    // Its batches repeat the last position of the sink.
    await this.#acknowledger.flush(open.stop);
    await this.#deliverNext(due, open);
    return true;
  }

  async #deliverNext(feed: Feed, open: OpenSink): Promise<void> {
    const prepared = await feed.next(open.stop);
    if (!prepared) return;
    const sent = this.#sender.deliver(open, feed, prepared);
    sent.catch(() => undefined);
    // Builds the next batch of new records while this one is in flight. The loop sends it after this one is acknowledged.
    if (feed === this.#main) await this.#main.fill();
    try {
      await sent;
    } catch (thrown) {
      if (feed !== this.#requests || !this.#requests.failed(thrown)) throw thrown;
    }
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
