/** The batches and the progress of a replay to one sink, from the journal or from an archive. Does not send. */
import { WaybillError } from '../errors/errors.ts';
import {
  type ArchivedRecords,
  type ArchiveReplay,
  type DeliverJournal,
  type Entry,
  type Limit,
  type ReplayProgress,
  type ReplayRange,
  type Resent,
} from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Batch } from '../model/sink.ts';
import type { Clock } from '../model/time.ts';
import { Batches, type Prepared } from './batcher.ts';
import type { Pipeline } from './pipeline.ts';

/** The entries of a replay. */
interface ReplaySource extends Partial<AsyncDisposable> {
  /** Complete only after the first read. */
  readonly range: ReplayRange;
  /** Approximate number of entries. */
  readonly expected: number;
  /** Set for a replay from an archive: as it began, with the identity of the archive once it was read. */
  readonly archiveReplay?: ArchiveReplay;
  /** Opens the archive, unless it is open. @param at  the replay continues after this line */
  open?(at: number): Promise<void>;
  /** Call when each record up to this line was resolved. @returns the line to continue after */
  resolved?(line: number): number;
  /** @returns `after`: the given entry, or the last pruned entry if that is later */
  read(after: number, limit: Limit): Promise<{ readonly after: number; readonly entries: readonly Entry[] }>;
}

interface ReplayParts {
  readonly source: ReplaySource;
  readonly pipeline: Pipeline;
  readonly limit: Limit;
  readonly clock: Pick<Clock, 'sleep'>;
  /** The replay skips these entries: a separate command retries dead letters. */
  readonly deadLetters: ReadonlySet<number>;
  /** Wall clock, ms. */
  readonly began: number;
}

export class Replay {
  readonly #parts: ReplayParts;
  readonly #batches: Batches;
  /** The replay has no gap from this entry on: earlier entries were pruned. */
  #from: number;
  /** The last entry replayed. */
  #at: number;
  #passed = 0;
  #sent: number;
  #rejected: number;
  #ended: { readonly at: number; readonly state: 'done' | 'cancelled' } | undefined;
  #isPaused = false;
  /** Why the archive could not be read; until a batch of it was read again. */
  #error: string | undefined;

  constructor(parts: ReplayParts) {
    const { source, pipeline, limit, clock, deadLetters } = parts;
    const { range, archiveReplay } = source;
    this.#parts = parts;
    this.#from = range.first;
    this.#at = archiveReplay?.at ?? range.first - 1;
    this.#sent = archiveReplay?.sent ?? 0;
    this.#rejected = archiveReplay?.rejected ?? 0;
    const isRequested = (entry: Entry): boolean => this.#isInTime(entry) && !deadLetters.has(entry.seq);
    const requested: Pipeline = (entry, put) => (isRequested(entry) ? pipeline(entry, put) : undefined);
    this.#batches = new Batches((after, max) => this.#read(after, max), requested, limit, clock, this.#at);
  }

  /** False also while a failed replay waits for its next attempt. */
  get isRunning(): boolean {
    return !this.#isPaused && !this.isEnded;
  }

  get isEnded(): boolean {
    return this.#ended !== undefined;
  }

  /** @returns the next batch, or the same one until it is acknowledged; undefined when the range is complete */
  async next(): Promise<Prepared | undefined> {
    const { source } = this.#parts;
    await source.open?.(this.#at);
    this.#batches.restart(this.#at);
    let prepared: Prepared | undefined;
    try {
      await this.#batches.fill();
      prepared = this.#batches.take();
    } catch (thrown) {
      // The records before a damage of the archive are sent first: the next call finds it again.
      prepared = source.archiveReplay && this.#batches.take();
      if (!prepared) throw thrown;
    }
    this.#error = undefined;
    // Lines of the ledger may follow the last record.
    if (!prepared && source.archiveReplay) this.#at = source.expected;
    return prepared;
  }

  /** @param present  the sink's position, which a replay does not move */
  batchOf({ messages, bytes }: Prepared, present: Position): Batch {
    return { messages, bytes, /* mutant: replay-position */ through: present, uncertain: true, onDemand: 'replay' };
  }

  acknowledged({ messages, through, count }: Prepared, rejected: number): void {
    this.#at = this.#parts.source.resolved?.(through.seq) ?? through.seq;
    this.#passed += count;
    // A rejected entry has no message if it could not be encoded.
    this.#sent += Math.max(0, messages.length - rejected);
    this.#rejected += rejected;
  }

  end(at: number, state: 'done' | 'cancelled' = 'done'): void {
    this.#ended = { at, state };
  }

  /**
   * Closes the archive, which could not be read, until `retry`.
   * @param error  undefined for an archive that has nothing yet
   */
  async pause(error: string | undefined): Promise<void> {
    this.#error = error;
    this.#isPaused = true;
    await this[Symbol.asyncDispose]();
  }

  retry(): void {
    this.#isPaused = false;
  }

  /** Closes the archive. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#parts.source[Symbol.asyncDispose]?.();
  }

  /** The range that was sent again, for the journal. */
  resent(): Resent {
    const { source, began } = this.#parts;
    return { ...source.range, first: this.#from, began: began * 1000 };
  }

  /**
   * The progress of a replay from an archive, as the state stores it; undefined for another replay.
   */
  stored(): ArchiveReplay | undefined {
    const { archiveReplay } = this.#parts.source;
    return archiveReplay && { ...archiveReplay, at: this.#at, sent: this.#sent, rejected: this.#rejected };
  }

  progress(): ReplayProgress {
    const { source, began } = this.#parts;
    const { range, expected, archiveReplay } = source;
    return {
      ...range,
      state: this.#ended?.state ?? (this.#error === undefined ? 'running' : 'failed'),
      ...(archiveReplay && { archive: archiveReplay.archive, leftOut: archiveReplay.leftOut ?? 0 }),
      ...(this.#error !== undefined && { error: this.#error }),
      at: this.#at,
      passed: archiveReplay ? this.#at : this.#passed,
      expected,
      sent: this.#sent,
      rejected: this.#rejected,
      began,
      ended: this.#ended?.at,
    };
  }

  /** Skips entries that were pruned since the replay began. */
  async #read(given: number, limit: Limit): Promise<readonly Entry[]> {
    const { after, entries } = await this.#parts.source.read(given, limit);
    if (after > given) this.#from = after + 1;
    return entries;
  }

  #isInTime(entry: Entry): boolean {
    const { times } = this.#parts.source.range;
    if (!times) return true;
    const { time } = entry;
    return time !== undefined && times.from <= time && time < times.to;
  }
}

/** A range of the journal. */
export class JournalSource implements ReplaySource {
  readonly range: ReplayRange;
  readonly expected: number;
  readonly #journal: Pick<DeliverJournal, 'readRange'>;

  constructor(journal: Pick<DeliverJournal, 'readRange'>, range: ReplayRange, expected: number) {
    this.#journal = journal;
    this.range = range;
    this.expected = expected;
  }

  read(after: number, limit: Limit): Promise<{ readonly after: number; readonly entries: readonly Entry[] }> {
    return this.#journal.readRange(after, this.range, limit);
  }
}

/** Thrown for an archive without a checkpoint: what it will get reaches the sink from the journal. */
export class EmptyArchive extends WaybillError {}

/** The records of an archive, which can be opened again after it was closed. */
export class ArchiveSource implements ReplaySource {
  readonly #replay: ArchiveReplay;
  readonly #open: () => Promise<ArchivedRecords>;
  #records: ArchivedRecords | undefined;
  #origin: string | undefined;
  #lines: number;

  constructor(replay: ArchiveReplay, open: () => Promise<ArchivedRecords>) {
    this.#replay = replay;
    this.#open = open;
    this.#origin = replay.origin;
    this.#lines = replay.at;
  }

  get range(): ReplayRange {
    return { first: 1, last: this.expected, times: this.#replay.times };
  }

  get expected(): number {
    return this.#lines;
  }

  get archiveReplay(): ArchiveReplay {
    return { ...this.#replay, origin: this.#origin };
  }

  /** @throws WaybillError `archive_broken` when the archive cannot be read, or is another one than before; EmptyArchive when it was never written */
  async open(at: number): Promise<void> {
    if (this.#records) return;
    const { archive } = this.#replay;
    const { origin, lines } = (this.#records = await this.#open());
    if (lines === 0)
      throw new (this.#origin === undefined ? EmptyArchive : WaybillError)(
        'archive_broken',
        `cannot read the archive "${archive}": it has no checkpoint`,
      );
    this.#origin ??= origin;
    if (this.#origin !== origin || lines < at)
      throw new WaybillError(
        'archive_broken',
        `cannot continue the replay from "${archive}" after line ${at} of "${this.#origin}": the archive is now "${origin}" with ${lines} lines`,
      );
    this.#lines = lines;
  }

  /** @throws WaybillError `archive_broken` when an object is missing, or does not match its signature */
  async read(after: number, limit: Limit): Promise<{ readonly after: number; readonly entries: readonly Entry[] }> {
    if (!this.#records) throw new WaybillError('aborted', 'the archive was closed');
    return { after, entries: await this.#records.read(after, limit) };
  }

  resolved(line: number): number {
    return this.#records?.endOf(line) ?? line;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const records = this.#records;
    this.#records = undefined;
    await records?.[Symbol.asyncDispose]();
  }
}
