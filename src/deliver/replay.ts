/** The batches and the progress of a replay to one sink, from the journal or from an archive. Does not send. */
import { WaybillError } from '../errors/errors.ts';
import {
  skippedLines,
  type ArchivedRecords,
  type ArchiveReplay,
  type DeliverJournal,
  type Entry,
  type Limit,
  type LineRange,
  type ReplayProgress,
  type ReplayRange,
  type Resent,
} from '../model/journal.ts';
import type { Position } from '../model/ledger.ts';
import type { Batch } from '../model/sink.ts';
import type { Clock } from '../model/time.ts';
import { Batches, type Prepared } from './batcher.ts';
import type { Pipeline } from './pipeline.ts';
import { merged, reached, type Reached } from './skipped-lines.ts';

/** The entries of a replay. */
interface ReplaySource extends Partial<AsyncDisposable> {
  /** Complete only after the first read. */
  readonly range: ReplayRange;
  /** Approximate number of entries. */
  readonly expected: number;
  /** Set for a replay from an archive: its progress, without the counts of records. */
  readonly archiveReplay?: ArchiveReplay;
  /** Opens the archive, unless it is open. @returns the entry to continue after */
  open?(): Promise<number>;
  /** Each entry up to this one was resolved; undefined: every entry. @returns the lines that were skipped now */
  resolved?(through?: number): readonly LineRange[];
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
    if (source.open) this.#at = await source.open();
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
    return prepared;
  }

  /** @param present  the sink's position, which a replay does not move */
  batchOf({ messages, bytes }: Prepared, present: Position): Batch {
    return { messages, bytes, /* mutant: replay-position */ through: present, uncertain: true, onDemand: 'replay' };
  }

  /** @returns the lines of an archive that were skipped before the end of the batch */
  acknowledged({ messages, through, count }: Prepared, rejected: number): readonly LineRange[] {
    this.#at = through.seq;
    this.#passed += count;
    // A rejected entry has no message if it could not be encoded.
    this.#sent += Math.max(0, messages.length - rejected);
    this.#rejected += rejected;
    return this.#parts.source.resolved?.(through.seq) ?? [];
  }

  /** Call when the range is complete. @returns the lines of an archive that were skipped at its end */
  completed(): readonly LineRange[] {
    return this.#parts.source.resolved?.() ?? [];
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
    return archiveReplay && { ...archiveReplay, sent: this.#sent, rejected: this.#rejected };
  }

  progress(): ReplayProgress {
    const { source, began } = this.#parts;
    const { range, expected, archiveReplay } = source;
    const at = archiveReplay?.at ?? this.#at;
    return {
      ...range,
      state: this.#ended?.state ?? (this.#error === undefined ? 'running' : 'failed'),
      ...(archiveReplay && { archive: archiveReplay.archive, skipped: skippedLines(archiveReplay) }),
      ...(this.#error !== undefined && { error: this.#error }),
      at,
      passed: archiveReplay ? at : this.#passed,
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
  #reached: Reached;
  /** Of the lines up to this one, nothing is left to read since the archive was opened. */
  #cursor = 0;
  /** Missing lines after `#cursor` that were found by the last reads. */
  #missing: readonly LineRange[] = [];
  /** By the last record of each of these reads: the line before the next record. */
  readonly #ends = new Map<number, number>();

  constructor(replay: ArchiveReplay, open: () => Promise<ArchivedRecords>) {
    this.#replay = replay;
    this.#open = open;
    this.#origin = replay.origin;
    this.#lines = replay.at;
    this.#reached = replay;
  }

  get range(): ReplayRange {
    return { first: 1, last: this.expected, times: this.#replay.times };
  }

  get expected(): number {
    return this.#lines;
  }

  get archiveReplay(): ArchiveReplay {
    const { at, skipped, abandoned } = this.#reached;
    return { ...this.#replay, origin: this.#origin, at, skipped, abandoned };
  }

  /**
   * An archive that is opened again is searched for the lines that were skipped.
   * @throws WaybillError `archive_broken` when the archive cannot be read, or is another one than before; EmptyArchive when it was never written
   */
  async open(): Promise<number> {
    this.#missing = [];
    this.#ends.clear();
    if (this.#records) return this.#cursor;
    const { archive } = this.#replay;
    const { origin, lines } = (this.#records = await this.#open());
    const { at } = this.#reached;
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
    return (this.#cursor = 0);
  }

  /** @throws WaybillError `archive_broken` when an object is missing, or does not match its signature */
  async read(given: number, limit: Limit): Promise<{ readonly after: number; readonly entries: readonly Entry[] }> {
    const { at, skipped = [] } = this.#reached;
    // Looks once for the missing lines after the record of the last read: they are in `#missing` already.
    const after = this.#ends.get(given) ?? given;
    for (const range of skipped.filter(({ through }) => through > after)) {
      const entries = await this.#read(Math.max(after, range.after), limit, range.through);
      if (entries.length > 0) return { after: given, entries };
    }
    return { after: given, entries: await this.#read(Math.max(after, at), limit) };
  }

  resolved(record = this.#lines): readonly LineRange[] {
    const through = this.#ends.get(record) ?? record;
    const { at } = this.#reached;
    const skipped = merged(this.#missing.filter(({ after }) => at <= after && after < through));
    this.#reached = reached(this.#reached, { after: this.#cursor, through }, this.#missing);
    this.#cursor = through;
    this.#missing = [];
    return skipped;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const records = this.#records;
    this.#records = undefined;
    await records?.[Symbol.asyncDispose]();
  }

  async #read(after: number, limit: Limit, skippedThrough?: number): Promise<readonly Entry[]> {
    if (!this.#records) throw new WaybillError('aborted', 'the archive was closed');
    const { entries, through, missing } = await this.#records.read(after, limit, skippedThrough);
    const last = entries.at(-1);
    if (last) this.#ends.set(last.seq, through);
    this.#missing = [...this.#missing, ...missing];
    return entries;
  }
}
