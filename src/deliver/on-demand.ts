/** On-demand sends for an operator: retries of dead letters, test events, replays. They run between two batches and move no position. */
import { codeOf, WaybillError, messageOf } from '../errors/errors.ts';
import type { ArchivedRecords, ArchiveReplay, DeliverJournal, DeadLetterResult, Limit, Operation, ReplayRange } from '../model/journal.ts';
import type { Message, Rejection } from '../model/sink.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import type { Acknowledger, Acknowledging } from './acknowledger.ts';
import { batchOf, type Prepared } from './batcher.ts';
import type { Pauses } from './pauses.ts';
import type { Pipeline } from './pipeline.ts';
import { ArchiveSource, EmptyArchive, JournalSource, Replay } from './replay.ts';
import type { RetryPolicy } from './retry-policy.ts';
import type { OnDemandResult, OnDemandSend, SendQueue } from './send-queue.ts';
import type { OpenSink, Sender } from './sender.ts';

interface OnDemandParts {
  readonly id: string;
  readonly limit: Limit;
  readonly journal: DeliverJournal;
  readonly pipeline: Pipeline;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
  readonly sends: SendQueue;
  readonly sender: Sender;
  readonly acknowledger: Acknowledger;
  readonly archiveReplays: { readonly sender: Sender; readonly acknowledger: Acknowledging };
  readonly pauses: Pauses;
  readonly openArchive: OpenArchive;
  /** Of reading an archive: the sink itself does not fail. */
  readonly archiveRetries: RetryPolicy;
}

/** The state of an ended replay can be read for this long. */
const minEndMs = 5_000;

/** Opens the archive of a replay, to read its records until `signal` ends that. */
export type OpenArchive = (replay: ArchiveReplay, signal: AbortSignal) => Promise<ArchivedRecords>;

/** Reads the next batch of an archive. Delivery of new records does not wait for it. */
interface ArchiveRead {
  isUnderWay: boolean;
  readonly result: Promise<Prepared | undefined>;
}

export class OnDemand {
  readonly #parts: OnDemandParts;
  /** Dead letters delivered since this loop started, or that the sink reported as delivered when it was opened. */
  readonly #delivered = new Set<number>();
  #replay: Replay | undefined;
  /** Monotonic clock: when to continue the replay from an archive that the state stores. */
  #continueAt = Infinity;
  #read: ArchiveRead | undefined;
  readonly #stop = new AbortController();

  constructor(parts: OnDemandParts) {
    this.#parts = parts;
  }

  /** True when `step` has something to send. */
  get isWaiting(): boolean {
    return this.isBusy && !(this.#parts.sends.isEmpty && this.#read?.isUnderWay === true);
  }

  /** True also while a replay reads its archive. */
  get isBusy(): boolean {
    return !this.#parts.sends.isEmpty || this.#replay?.isRunning === true;
  }

  get continueAt(): number {
    return this.#continueAt;
  }

  /** The replay under way, or the last one. */
  get replayed(): Replay | undefined {
    return this.#replay;
  }

  /**
   * Retries dead letters: removes each delivered one, and stores the new reason of each rejected one.
   * @throws WaybillError `usage` when a dead letter does not exist or the sink no longer selects it; `sink_unavailable`, `sink_blocked` or
   *         `sink_outcome_unknown` when the sink did not answer for all of them: earlier answers are committed
   */
  async retry(seqs: readonly number[], operation: Operation): Promise<OnDemandResult> {
    const { id, journal, pipeline, limit } = this.#parts;
    const acknowledge = async (seq: number, result: DeadLetterResult): Promise<void> =>
      journal.resolveDeadLetter(id, seq, result, operation);
    const messages: Message[] = [];
    const rejected: Rejection[] = [];
    for (const seq of new Set(seqs)) {
      const entry = await journal.deadLetter(id, seq);
      if (!entry && this.#delivered.has(seq)) continue;
      if (!entry) throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": the journal has no such dead letter`);
      let message: Message | undefined;
      try {
        message = pipeline(entry, (bytes) => Buffer.from(bytes));
      } catch (thrown) {
        rejected.push({ seq, code: 'cannot_encode', message: messageOf(thrown) });
        continue;
      }
      if (!message)
        throw new WaybillError('usage', `cannot retry entry ${seq} for sink "${id}": the sink no longer selects it (sources, filter)`);
      messages.push(message);
    }
    for (const rejection of rejected) await acknowledge(rejection.seq, { delivered: false, rejection });
    let resumeNote: string | undefined;
    for (const part of inBatches(messages, limit)) {
      const answer = await this.#enqueue('retry', part, async ({ rejected: answered, left = [], resumeNote: newNote }) => {
        for (const { seq } of part) {
          const rejection = answered.find((each) => each.seq === seq);
          if (!left.includes(seq))
            await acknowledge(seq, rejection ? { delivered: false, rejection } : { delivered: true, resumeNote: newNote });
        }
      });
      rejected.push(...answer.rejected);
      resumeNote = answer.resumeNote;
    }
    return { rejected, resumeNote };
  }

  /** Removes a dead letter that the sink reports as delivered: the answer to its retry was lost. The operator of that retry is unknown. */
  async found(seq: number): Promise<void> {
    const { id, journal, clock } = this.#parts;
    if (!(await journal.deadLetter(id, seq))) return;
    const operation = { at: clock.now() * 1000, actor: null, operation: 'dead-letters retry', detail: { found: true } };
    await journal.resolveDeadLetter(id, seq, { delivered: true, resumeNote: undefined }, operation);
    this.#delivered.add(seq);
  }

  /** Sends test events, which the journal does not contain. Throws like `retry`. */
  async test(messages: readonly Message[]): Promise<OnDemandResult> {
    const { id, journal } = this.#parts;
    return this.#enqueue('test', messages, async ({ resumeNote }) => {
      if (resumeNote !== undefined && resumeNote !== journal.sinkProgress(id).resumeNote) await journal.commitResumeNote(id, resumeNote);
    });
  }

  /**
   * Starts a replay, up to the last acknowledged entry.
   * @throws WaybillError `usage` while another replay runs, `sink_unavailable` when the loop has ended
   */
  replay(range: ReplayRange, expected: number, deadLetters: ReadonlySet<number>): void {
    this.#endFailing();
    const { journal, pipeline, limit, clock, acknowledger, pauses } = this.#parts;
    const last = Math.min(range.last, acknowledger.acknowledged);
    const source = new JournalSource(journal, { ...range, last }, expected);
    this.#replay = new Replay({ source, pipeline, limit, clock, deadLetters, began: clock.now() });
    pauses.wake();
  }

  /** Starts a replay from an archive, or continues it. Throws like `replay`. */
  replayArchive(replay: ArchiveReplay): void {
    this.#endFailing();
    const { pipeline, limit, clock, pauses, openArchive } = this.#parts;
    const source = new ArchiveSource(replay, () => openArchive(replay, this.#stop.signal));
    this.#replay = new Replay({ source, pipeline, limit, clock, deadLetters: new Set(), began: replay.began });
    this.#continueAt = Infinity;
    pauses.wake();
  }

  /** Ends the replay, and does not continue one from an archive. The sink may still receive the batch in flight. */
  cancelReplay(): void {
    const replay = this.#replay;
    this.#continueAt = Infinity;
    if (replay?.isEnded !== false) return;
    this.#closeArchive(replay);
    replay.end(this.#parts.clock.now(), 'cancelled');
    this.#logInterrupted(replay);
  }

  /** A replay that cannot read its archive gives way to a new replay, and is resumed after it. */
  #endFailing(): void {
    const replay = this.#replay;
    if (this.#parts.sends.closed) throw this.#parts.sends.closed;
    if (!replay || replay.isEnded) return;
    if (replay.progress().state === 'running')
      throw new WaybillError('usage', 'cannot start a replay: a replay to this sink is already running');
    this.#continueAt = Math.min(this.#continueAt, this.#parts.clock.monotonic());
    this.#closeArchive(replay);
  }

  #closeArchive(replay: Replay): void {
    const close = (): Promise<void> => replay[Symbol.asyncDispose]().catch(() => undefined);
    const read = this.#read;
    this.#read = undefined;
    void close();
    // An archive that is being opened is closed afterwards.
    if (read?.isUnderWay === true) void read.result.catch(() => undefined).then(close);
  }

  /** Continues a replay from an archive that the state stores. */
  resume(): void {
    const { id, journal } = this.#parts;
    const { archiveReplay } = journal.sinkProgress(id).orders;
    if (archiveReplay) this.replayArchive(archiveReplay);
  }

  /** Continues a replay whose archive could not be read, when it is due. */
  continueWhenDue(): void {
    if (this.#parts.clock.monotonic() < this.#continueAt || this.#replay?.isRunning) return;
    this.#continueAt = Infinity;
    if (this.#replay?.isEnded === false) this.#replay.retry();
    else this.resume();
  }

  /** Closes the archive of a replay that did not end. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort(new WaybillError('aborted', 'delivery has stopped'));
    if (this.#replay?.isEnded === false) this.#closeArchive(this.#replay);
  }

  /** Call when the loop has ended: rejects waiting sends, and logs an incomplete replay. */
  close(cause: WaybillError): void {
    this.#parts.sends.close(cause);
    if (this.#replay?.isEnded === false) this.#logInterrupted(this.#replay);
  }

  #logInterrupted(replay: Replay): void {
    const { id, log } = this.#parts;
    // A replay from an archive continues when the loop starts again, unless an operator ended it.
    if (replay.stored()) return;
    const { at, last, sent, rejected } = replay.progress();
    log.write('sink.replay_interrupted', { sink: id, from: at + 1, through: last, sent, rejected });
  }

  /** Sends one batch on demand. Throws the sink's error when the outcome is unknown. */
  async step(open: OpenSink): Promise<void> {
    await this.#parts.acknowledger.flush(open.stop);
    const send = this.#parts.sends.next();
    if (send) await this.#send(send, open);
    else if (this.#replay?.isRunning) await this.#stepReplay(this.#replay, open);
  }

  #enqueue(onDemand: OnDemandSend['onDemand'], messages: readonly Message[], keep: OnDemandSend['keep']): Promise<OnDemandResult> {
    const { sends, pauses } = this.#parts;
    const unavailable = pauses.unavailable();
    if (unavailable) throw unavailable;
    return new Promise((resolve, reject) => {
      sends.add({ onDemand, messages, keep, resolve, reject });
      pauses.wake();
    });
  }

  async #send({ messages: given, onDemand, keep, resolve, reject }: OnDemandSend, open: OpenSink): Promise<void> {
    const { id, meters, journal, sender, acknowledger } = this.#parts;
    const messages: Message[] = [];
    // Sends a dead letter once even if two requests name it.
    for (const message of given)
      if (onDemand !== 'retry' || !this.#delivered.has(message.seq) || (await journal.deadLetter(id, message.seq))) messages.push(message);
    if (messages.length === 0) {
      resolve({ rejected: [], resumeNote: undefined });
      return;
    }
    const batch = batchOf({ messages, through: journal.sinkProgress(id).delivered, uncertain: true, bytes: 0, onDemand }, messages);
    try {
      const answer = await sender.sendOnce(open, batch);
      const { left = [], rejected, error } = answer;
      await acknowledger.commit(() => keep(answer), open.stop);
      const deliveredNow = messages.filter(({ seq }) => !left.includes(seq) && !rejected.some((each) => each.seq === seq));
      if (onDemand === 'retry') {
        for (const { seq } of deliveredNow) this.#delivered.add(seq);
        meters.eventsDelivered(id, deliveredNow.length);
      }
      if (error) reject(error);
      else resolve(answer);
    } catch (thrown) {
      const code = codeOf(thrown);
      const isUnavailable = code === 'sink_unavailable' || code === 'sink_blocked';
      reject(new WaybillError(isUnavailable ? code : 'sink_outcome_unknown', messageOf(thrown), { cause: thrown }));
      if (!isUnavailable) throw thrown;
    }
  }

  async #stepReplay(replay: Replay, open: OpenSink): Promise<void> {
    const { id, clock, log, journal } = this.#parts;
    const { sender, acknowledger } = replay.stored() ? this.#parts.archiveReplays : this.#parts;
    let prepared: Prepared | undefined;
    try {
      if (!replay.stored()) prepared = await replay.next();
      else {
        const read = (this.#read ??= this.#startRead(replay));
        if (read.isUnderWay) return;
        this.#read = undefined;
        prepared = await read.result;
      }
    } catch (thrown) {
      if (!replay.stored()) throw thrown;
      if (this.#isOver(replay)) return;
      // Delivery of new records continues meanwhile.
      const waitMs = this.#parts.archiveRetries.failed(thrown);
      this.#continueAt = clock.monotonic() + waitMs;
      const isEmpty = thrown instanceof EmptyArchive;
      await replay.pause(isEmpty ? undefined : messageOf(thrown));
      if (isEmpty) return;
      const { archive, at } = replay.progress();
      const fields = { sink: id, archive, at, code: codeOf(thrown), retryInMs: Math.round(waitMs), error: thrown };
      log.write('sink.archive_replay_failed', fields);
      return;
    }
    if (this.#isOver(replay)) return;
    if (!prepared) return this.#completeReplay(replay, open);
    const { messages, entries, unmade } = prepared;
    let rejected = 0;
    if (unmade) {
      await acknowledger.acknowledge(entries, acknowledger.acknowledged, undefined, [unmade], open.stop);
      rejected = 1;
    } else if (messages.length > 0) {
      rejected = await sender.deliver(open, replay.batchOf(prepared, journal.sinkProgress(id).delivered), entries);
    } else await clock.sleep(0, open.stop);
    replay.acknowledged(prepared, rejected);
    const stored = replay.stored();
    if (!stored) return;
    this.#parts.archiveRetries.recovered();
    // Must not store the progress of a replay that was cancelled or replaced.
    const store = async (): Promise<void> => (this.#isOver(replay) ? undefined : journal.archiveReplayed(id, stored));
    await this.#parts.acknowledger.commit(store, open.stop);
  }

  #startRead(replay: Replay): ArchiveRead {
    const read = { isUnderWay: true, result: replay.next() };
    const end = (): void => {
      read.isUnderWay = false;
      this.#parts.pauses.wake();
    };
    read.result.then(end, end);
    return read;
  }

  /** True for a replay that was cancelled, or that another one has replaced. */
  #isOver(replay: Replay): boolean {
    return replay.isEnded || replay !== this.#replay;
  }

  async #completeReplay(replay: Replay, { stop }: OpenSink): Promise<void> {
    const { id, clock, log, journal, acknowledger } = this.#parts;
    const store = async (): Promise<void> => {
      if (!replay.stored()) await journal.resent(id, replay.resent());
      else if (!this.#isOver(replay)) await journal.archiveReplayed(id, undefined);
    };
    await acknowledger.commit(store, stop);
    await replay[Symbol.asyncDispose]();
    if (this.#isOver(replay)) return;
    replay.end(clock.now());
    // The command that started this replay reads its end before another one continues.
    this.#continueAt = Math.max(this.#continueAt, clock.monotonic() + minEndMs);
    const { archive, first, last, sent, rejected, leftOut } = replay.progress();
    if (archive === undefined) log.write('sink.replay_completed', { sink: id, from: first, through: last, sent, rejected });
    else log.write('sink.archive_replay_completed', { sink: id, archive, sent, rejected, leftOut });
  }
}

/** Splits messages, in order, into batches within the limit. A message that exceeds it is alone in its batch. */
function inBatches(messages: readonly Message[], { records, bytes }: Limit): Message[][] {
  const batches: Message[][] = [];
  let size = 0;
  for (const message of messages) {
    const last = batches.at(-1);
    size += message.bytes.length;
    if (last && last.length < records && size <= bytes) last.push(message);
    else {
      batches.push([message]);
      size = message.bytes.length;
    }
  }
  return batches;
}
