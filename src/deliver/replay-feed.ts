/** A replay: entries of the journal, or records of an archive, sent again. The state stores its progress with each batch. */
import { codeOf, messageOf } from '../errors/errors.ts';
import type { ArchivedRecords, Entry, Limit, Replay, ReplayProgress } from '../model/journal.ts';
import type { Batch, FeedPosition } from '../model/sink.ts';
import type { Log } from '../model/telemetry.ts';
import { EmptyArchive, type ArchiveSource } from './archive-source.ts';
import { Batches, type Prepared } from './batcher.ts';
import type { Feed, FeedParts } from './feed.ts';
import type { Pauses } from './pauses.ts';
import type { Pipeline } from './pipeline.ts';
import type { RetryPolicy } from './retry-policy.ts';
import { Suspects } from './suspects.ts';

interface ReplayFeedParts extends FeedParts {
  readonly replay: Replay;
  /** Of a replay from an archive. */
  readonly source: ArchiveSource;
  /** Of reading the archive: the sink itself does not fail. */
  readonly retryPolicy: RetryPolicy;
  readonly pauses: Pauses;
  readonly log: Log;
}

export class ReplayFeed implements Feed {
  readonly kind = 'replay';
  readonly suspects: Suspects;
  readonly #parts: ReplayFeedParts;
  readonly #batches: Batches;
  /** Up to the last acknowledged batch. */
  #replay: Replay;
  /** The replay skips these entries: a separate command retries dead letters. */
  #deadLetters: ReadonlySet<number> | undefined;
  /** The next batch. Delivery of new records does not wait for an archive. */
  #reading: { isDone: boolean; readonly result: Promise<Prepared | undefined> } | undefined;
  #sending: Prepared | undefined;
  /** The records of the archive, once it was opened. */
  #records: ArchivedRecords | undefined;
  /** When the archive is read again, by the monotonic clock. Set until a batch of it was read. */
  #pausedUntil: number | undefined;
  #error: string | undefined;
  /** Wall clock, ms. */
  #ended: { readonly at: number; readonly state: 'done' | 'cancelled' } | undefined;

  constructor(parts: ReplayFeedParts) {
    const { replay, pipeline, limit, clock } = parts;
    this.#parts = parts;
    this.suspects = new Suspects(parts.clock);
    this.#replay = replay;
    const requested: Pipeline = (entry, put) => (this.#isRequested(entry) ? pipeline(entry, put) : undefined);
    this.#batches = new Batches((after, max) => this.#read(after, max), requested, limit, clock, replay.at);
  }

  get isEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** False also while a replay that could not read its archive waits for its next attempt. */
  get isRunning(): boolean {
    return !this.isEnded && this.#pausedUntil === undefined;
  }

  get dueAt(): number {
    if (this.isEnded) return Infinity;
    if (this.#reading) return this.#reading.isDone ? -Infinity : Infinity;
    return this.#pausedUntil ?? -Infinity;
  }

  async fill(): Promise<void> {
    const { clock, pauses } = this.#parts;
    if (this.#reading || this.isEnded || clock.monotonic() < (this.#pausedUntil ?? -Infinity)) return;
    const reading = { isDone: false, result: this.#readBatch() };
    const end = (): void => {
      reading.isDone = true;
      pauses.wake();
    };
    reading.result.then(end, end);
    this.#reading = reading;
  }

  async next(stop: AbortSignal): Promise<Prepared | undefined> {
    if (this.#reading?.isDone !== true) return undefined;
    const { result } = this.#reading;
    this.#reading = undefined;
    try {
      this.#sending = await result;
    } catch (thrown) {
      await this.#unreadable(thrown);
      return undefined;
    }
    if (this.isEnded) return undefined;
    this.#pausedUntil = this.#error = undefined;
    this.#parts.retryPolicy.recovered();
    if (!this.#sending) await this.#complete(stop);
    return this.#sending;
  }

  addressed(part: Batch): Batch {
    const { id, journal } = this.#parts;
    const { sent } = this.#replay;
    const feed = { feed: this.#name, at: part.through.seq, sent: sent + part.messages.length };
    // The position of the sink does not move.
    return { ...part, /* mutant: replay-position */ through: journal.sinkProgress(id).delivered, uncertain: true, feed };
  }

  /** The archive keeps a rejected record: it becomes no dead letter, because its line is no entry of the journal. */
  async acknowledge(...[through, delivered, rejections, stop]: Parameters<Feed['acknowledge']>): Promise<void> {
    const { id, acknowledger, journal, log } = this.#parts;
    const sending = this.#sending;
    if (!sending) return;
    const { messages, entries, count } = sending;
    // An entry that could not be encoded is rejected without a message.
    const resolved = messages.filter(({ seq }) => this.#replay.at < seq && seq <= through.seq).length;
    const isWhole = through.seq === sending.through.seq;
    const passed = isWhole ? count : Math.min(count, through.seq - this.#replay.at);
    this.#sending = { ...sending, count: count - passed };
    const replay = this.#advanced({
      at: (isWhole ? this.#records?.endOf(through.seq) : undefined) ?? through.seq,
      sent: this.#replay.sent + Math.max(0, resolved - rejections.length),
      rejected: this.#replay.rejected + rejections.length,
      passed,
    });
    const position = { position: journal.sinkProgress(id).delivered, resumeNote: delivered?.resumeNote };
    const acknowledgement = { acknowledged: acknowledger.acknowledged, delivered: delivered && position };
    const isArchive = replay.kind === 'archive';
    await acknowledger.acknowledge(acknowledgement, entries, isArchive ? [] : rejections, stop, replay);
    this.#replay = replay;
    if (!isArchive) return;
    for (const { seq, code } of rejections) log.write('sink.archive_record_rejected', { sink: id, uid: entries.get(seq)?.uid, code });
  }

  /** Continues after what the sink has by the position that it stored: the state may not know its last answer. */
  async found({ feed, at, sent }: FeedPosition): Promise<void> {
    const { id, journal } = this.#parts;
    // mutant: found-replay
    if (feed !== this.#name || at <= this.#replay.at) return;
    this.#replay = this.#advanced({ at, sent, rejected: this.#replay.rejected, passed: at - this.#replay.at });
    this.#reading = undefined;
    await journal.acknowledge(id, { acknowledged: journal.sinkProgress(id).acknowledged, delivered: undefined }, [], this.#replay);
  }

  /** Ends the replay. The sink may still receive the batch in flight. */
  cancel(): void {
    if (this.isEnded) return;
    const { id, clock, log } = this.#parts;
    this.#ended = { at: clock.now(), state: 'cancelled' };
    void this[Symbol.asyncDispose]();
    const { at, last, sent, rejected, archive } = this.progress();
    if (archive === undefined) log.write('sink.replay_cancelled', { sink: id, from: at + 1, through: last, sent, rejected });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.source[Symbol.asyncDispose]().catch(() => undefined);
  }

  progress(): ReplayProgress {
    const replay = this.#replay;
    const { times, at, sent, rejected, began } = replay;
    const isFailed = this.#error !== undefined;
    const lines = this.#records?.lines ?? replay.at;
    const range =
      replay.kind === 'range'
        ? { first: replay.first, last: replay.last, passed: replay.passed, expected: replay.expected }
        : { first: 1, last: lines, passed: at, expected: lines, archive: replay.archive, leftOut: replay.leftOut ?? 0 };
    return {
      ...range,
      times,
      at,
      sent,
      rejected,
      began,
      state: this.#ended?.state ?? (isFailed ? 'failed' : 'running'),
      ...(isFailed && { error: this.#error }),
      ended: this.#ended?.at,
    };
  }

  get #name(): string {
    return `${this.#replay.kind} ${this.#replay.began}`;
  }

  #advanced({ passed, ...progress }: Pick<Replay, 'at' | 'sent' | 'rejected'> & { readonly passed: number }): Replay {
    const replay = this.#replay;
    return replay.kind === 'range' ? { ...replay, ...progress, passed: replay.passed + passed } : { ...replay, ...progress };
  }

  async #readBatch(): Promise<Prepared | undefined> {
    this.#batches.restart(this.#replay.at);
    try {
      await this.#batches.fill();
    } catch (thrown) {
      // The records before a damage of the archive are sent first: the next call finds it again.
      const prepared = this.#batches.take();
      if (!prepared) throw thrown;
      return prepared;
    }
    return this.#batches.take();
  }

  async #read(after: number, limit: Limit): Promise<readonly Entry[]> {
    const { id, journal, source } = this.#parts;
    if (this.#replay.kind === 'archive') {
      const { records, replay } = await source.open(this.#replay);
      this.#replay = replay;
      this.#records = records;
      return records.read(after, limit);
    }
    this.#deadLetters ??= await journal.rejected(id);
    const read = await journal.readRange(after, this.#replay, limit);
    if (read.after > after) this.#replay = { ...this.#replay, completeFrom: read.after + 1 };
    return read.entries;
  }

  #isRequested({ seq, time }: Entry): boolean {
    const { times } = this.#replay;
    if (times && !(time !== undefined && times.from <= time && time < times.to)) return false;
    return this.#deadLetters?.has(seq) !== true;
  }

  /** Closes an archive that cannot be read, until the next attempt. */
  async #unreadable(thrown: unknown): Promise<void> {
    const { id, source, retryPolicy, clock, log } = this.#parts;
    if (this.isEnded) return;
    if (this.#replay.kind !== 'archive') throw thrown;
    const waitMs = retryPolicy.failed(thrown);
    this.#pausedUntil = clock.monotonic() + waitMs;
    await source.close();
    if (thrown instanceof EmptyArchive) return;
    this.#error = messageOf(thrown);
    const { archive, at } = this.#replay;
    const fields = { sink: id, archive, at, code: codeOf(thrown), retryInMs: Math.round(waitMs), error: thrown };
    log.write('sink.archive_replay_failed', fields);
  }

  async #complete(stop: AbortSignal): Promise<void> {
    const { id, journal, acknowledger, clock, log } = this.#parts;
    await acknowledger.commit(() => journal.replayed(id, this.#replay), stop);
    await this[Symbol.asyncDispose]();
    if (this.isEnded) return;
    // Lines of the ledger may follow the last record.
    if (this.#records) this.#replay = { ...this.#replay, at: this.#records.lines };
    this.#ended = { at: clock.now(), state: 'done' };
    const { archive, first, last, sent, rejected, leftOut = 0 } = this.progress();
    if (archive === undefined) log.write('sink.replay_completed', { sink: id, from: first, through: last, sent, rejected });
    else log.write('sink.archive_replay_completed', { sink: id, archive, sent, rejected, leftOut });
  }
}
