/**
 * The journal: durable storage between the sources and the sinks. This class stores the new records of a page in one transaction and
 * connects the parts: sources, segments, uids, ledger and positions of the sinks.
 */
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type Database from 'better-sqlite3';
import { codeOf, WaybillError } from '../errors/errors.ts';
import type {
  Acknowledgement,
  Appended,
  Replay,
  CollectedPage,
  CollectJournal,
  DeadLetter,
  DeliverJournal,
  Entry,
  GapOperation,
  DeadLetterResult,
  Limit,
  Operation,
  ReplayRange,
  SinkProgress,
} from '../model/journal.ts';
import type { ResumePosition, SinkLoss } from '../model/sink.ts';
import type {
  Backfill,
  GapPart,
  Suspension,
  LedgerWindow,
  Position,
  Remark,
  SourceMove,
  SourceProgress,
  WindowStep,
  Window,
} from '../model/ledger.ts';
import type { Clock, Micros } from '../model/time.ts';
import { History } from './history.ts';
import { SelfCheck } from './self-check.ts';
import { Deduplicator, type Deduplicated } from './deduplicate.ts';
import { Ledger } from './ledger.ts';
import { DeadLetters } from './dead-letters.ts';
import { removeLosses, shrinkLosses, writeLoss } from './losses.ts';
import { Operations, writeMoment } from './operations.ts';
import { SinkPositions } from './sink-positions.ts';
import { earliestKept } from './uid-retention.ts';
import { pauseAbove, resumeBelow } from './disk-budget.ts';
import { bucketOf, SeenUids } from './seen-uids.ts';
import type { Replica } from './replica/replica.ts';
import { Segments } from './segments.ts';
import { isWholeFor } from './selection.ts';
import { SharedTransactions } from './shared-transactions.ts';
import { movedSourceMessage, ownerOf, rangeOf, Sources, type SourceState } from './sources.ts';
import { createdAt, journalId, placeAtSinks, storedSettings, storeSettings } from './schema.ts';
import { openState, type OpenState, type StateOptions } from './state.ts';
import { Store } from './store.ts';

export interface JournalOptions extends StateOptions {
  readonly directory: string;
  /** How long acknowledged entries are kept for replay, ms. */
  readonly retention: number;
}

/** Maximum segments per pruning step, which keeps the transaction short. */
const pruneSegments = 64;
const defaultLocalSize = 256 * 2 ** 20;
const dayMs = 86_400_000;
const dayUs = dayMs * 1000;

export class Journal implements CollectJournal, DeliverJournal, AsyncDisposable {
  readonly id: string;
  readonly created: Micros;
  /** True when this process created the state. */
  readonly fresh: boolean;
  readonly sinkPositions: SinkPositions;
  readonly deadLetters: DeadLetters;
  /** Operations on the coverage of a source; each is one transaction with its row in `operations`. */
  readonly history: History;
  readonly #state: OpenState;
  readonly #store: Store;
  readonly #shared: SharedTransactions;
  readonly #segments: Segments;
  readonly #ledger: Ledger;
  readonly #operations: Operations;
  readonly #seen: SeenUids;
  readonly #retentionMs: number;
  readonly #localSize: number;
  readonly #clock: Clock;
  readonly #deduplicator: Deduplicator;
  readonly #selfCheck: SelfCheck;
  readonly #sources: Sources;
  #changed = Promise.withResolvers<undefined>();
  #paused = false;

  /** Opens the state of a directory as its owner. Throws as `openState` does. */
  static async open(options: JournalOptions, clock: Clock, signal: AbortSignal): Promise<Journal> {
    const state = await openState(options.directory, options, clock, signal);
    try {
      const journal = new Journal(state, options, clock);
      return state.replica ? gated(journal, state.replica) : journal;
    } catch (thrown) {
      state.db.close();
      state.lock.close();
      throw thrown;
    }
  }

  private constructor(state: OpenState, options: JournalOptions, clock: Clock) {
    const { db } = state;
    this.#state = state;
    this.#clock = clock;
    this.#retentionMs = options.retention;
    this.#localSize = options.localSize ?? defaultLocalSize;
    this.id = journalId(db);
    this.created = createdAt(db);
    this.fresh = state.created;
    this.#store = new Store(db, state.directory, state.epoch, options.maxSize, state.replica);
    this.#shared = new SharedTransactions(this.#store, clock);
    this.#sources = new Sources(this.#store);
    this.#segments = new Segments(this.#store, this.#sources.ids, () => this.sinkPositions.leastAcknowledged());
    this.#operations = new Operations(this.#store, this.#segments);
    this.#ledger = new Ledger(this.#store, this.#segments, this.#operations);
    this.history = new History(this.#store, this.#sources, this.#operations, this.#ledger, clock, () => this.#wake());
    this.#seen = new SeenUids(db);
    this.#deduplicator = new Deduplicator(this.#seen, this.#ledger);
    this.#selfCheck = new SelfCheck(db, clock, this.#sources.ids, (n) => this.#sources.get(this.#sources.ids.get(n) ?? '').ranges);
    this.sinkPositions = new SinkPositions(this.#store, this.#sources.numbers);
    this.deadLetters = new DeadLetters(this.#store, this.sinkPositions, this.#operations);
  }

  /** See placeAtSinks of the schema. */
  placeAtSinks(): number | 'none' | undefined {
    return placeAtSinks(this.#store.db);
  }

  hasSource(id: string): boolean {
    return this.#sources.has(id);
  }

  /** Every source in the state, configured or not. */
  sourceIds(): string[] {
    return [...this.#sources.numbers.keys()];
  }

  /** See Sources.register and History.followHost. */
  registerSource(id: string, destination: string, start: Micros | undefined): SourceMove | undefined {
    this.#sources.register(id, destination, start);
    return this.history.followHost(id, destination);
  }

  /** See movedSourceMessage. Undefined for a new source. */
  movedSource(id: string, destination: string): string | undefined {
    return this.#sources.has(id) ? movedSourceMessage(this.#sources.get(id).destination, destination) : undefined;
  }

  markSourcesUnconfigured(configured: ReadonlySet<string>): string[] {
    const unconfigured = this.#sources.markUnconfigured(configured);
    for (const id of unconfigured) this.#seen.release(this.#sources.get(id).row.n);
    return unconfigured;
  }

  async setProfile(id: string, profile: string): Promise<void> {
    return this.#shared.run(undefined, () => this.#sources.setProfile(id, profile));
  }

  progress(id: string): SourceProgress {
    return this.#sources.progress(id);
  }

  /**
   * Appends one page of records with their uids and moves the head and `polledUntil`, in one transaction, which pages and windows of other
   * sources may share.
   *
   * The collector calls it for one source at a time, in page order. Records with a known identity are counted, not stored. Records outside
   * every range of the source, or older than the kept uids, count as outside.
   * @throws WaybillError `journal_full` when the journal is full: nothing was stored, collection pauses
   * @see docs/guarantees.md ("Collected once")
   */
  async append(page: CollectedPage): Promise<Appended> {
    const fetching = this.#fetchSeen(page);
    if (fetching) await fetching;
    return this.#shared.run(page.source, () => this.#append(page));
  }

  async lacks(page: CollectedPage): Promise<boolean> {
    await this.#fetchSeen(page);
    return this.#deduplicator.page(this.#sources.get(page.source), page).fresh.length > 0;
  }

  /** A working copy has the uids of the last owner only once they are needed. @returns undefined if it has all of them */
  #fetchSeen({ source, records }: CollectedPage): Promise<void> | undefined {
    const buckets = new Set(records.flatMap(({ time }) => (time === undefined ? [] : [bucketOf(time)])));
    // mutant: fetch-seen
    return this.#store.replica?.absent.seen(this.#sources.get(source).row.n, buckets);
  }

  #append(page: CollectedPage): Appended {
    const source = this.#sources.get(page.source);
    const deduplicated = this.#deduplicator.page(source, page);
    const { fresh, late, known, outside } = deduplicated;
    const received = page.records.length;
    if (received !== fresh.length + known + outside) {
      throw new WaybillError(
        'internal_error',
        `page of "${page.source}": ${received} records received, but ${fresh.length} new, ${known} known and ${outside} outside`,
      );
    }
    const lateCount = late.reduce((sum, is) => sum + (is ? 1 : 0), 0);
    const polledUntil = page.polledUntil !== undefined && page.polledUntil !== source.row.polledUntil ? page.polledUntil : undefined;
    if (fresh.length > 0 || deduplicated.buckets.size > 0 || polledUntil !== undefined) {
      // The rest of maxSize is reserved for acknowledgements: a sink must be able to store dead letters, or nothing could be pruned.
      const share = fresh.length > 0 ? pauseAbove : undefined;
      // mutant: append-transaction
      const write = (): void => this.#store.transaction(() => this.#write(source, page, deduplicated, lateCount, polledUntil), share);
      try {
        // mutant: append
        write();
      } catch (thrown) {
        // An append that fails must not drop pending acknowledgements: they are written alone.
        if (thrown instanceof WaybillError && thrown.code === 'journal_full') {
          this.#paused = true;
          this.sinkPositions.flush();
        }
        throw thrown;
      }
    } else {
      this.#seen.committed(source.row.n, deduplicated.buckets);
    }
    if (fresh.length > 0) this.#wake();
    return { received, appended: fresh.length, known, outside, late: lateCount, fresh };
  }

  async close(sourceId: string, window: Window, revision: WindowStep, lastAge: Micros): Promise<void> {
    return this.#shared.run(sourceId, () => {
      const source = this.#sources.get(sourceId);
      this.#ledger.record(source.row, ownerOf(source, window), window, revision, lastAge);
      this.#forget(source);
      this.#wake();
    });
  }

  async confirm(sourceId: string, window: Window, next: Micros | undefined, at: Micros, lastAge: Micros): Promise<void> {
    return this.#shared.run(sourceId, () => {
      const source = this.#sources.get(sourceId);
      this.#ledger.confirm(source.row, ownerOf(source, window), window, next, at, lastAge);
      this.#forget(source);
      this.#wake();
    });
  }

  async due(sourceId: string, now: Micros): Promise<LedgerWindow | undefined> {
    return this.#ledger.due(this.#sources.get(sourceId).row.n, now);
  }

  backfills(sourceId: string): readonly Backfill[] {
    return this.#sources.backfills(sourceId);
  }

  async timeless(sourceId: string): Promise<number> {
    return this.#seen.timeless(this.#sources.get(sourceId).row.n);
  }

  remembers(sourceId: string, window: Window): boolean {
    return window.from >= ownerOf(this.#sources.get(sourceId), window).uidsKeptSince;
  }

  covers(sourceId: string, time: Micros): boolean {
    return rangeOf(this.#sources.get(sourceId).ranges, time) !== undefined;
  }

  async windowAt(sourceId: string, time: Micros): Promise<LedgerWindow | undefined> {
    const { n } = this.#sources.get(sourceId).row;
    const owner = this.#ledger.owner(n, time);
    return owner && this.#ledger.window(n, owner.from);
  }

  async window(sourceId: string, from: Micros): Promise<LedgerWindow | undefined> {
    return this.#ledger.window(this.#sources.get(sourceId).row.n, from);
  }

  async richest(sourceId: string, since: Micros, limit: number): Promise<readonly LedgerWindow[]> {
    const { live } = this.#sources.progress(sourceId);
    return this.#ledger.richest(this.#sources.get(sourceId).row.n, Math.max(since, live.from), live.closedUntil, limit);
  }

  async latest(sourceId: string, limit: number): Promise<readonly LedgerWindow[]> {
    const { live } = this.#sources.progress(sourceId);
    return this.#ledger.latest(this.#sources.get(sourceId).row.n, live.from, live.closedUntil, limit);
  }

  async closedSince(sourceId: string, since: Micros): Promise<readonly LedgerWindow[]> {
    return this.#ledger.closedSince(this.#sources.get(sourceId).row.n, since);
  }

  async remark(sourceId: string, window: Window, remark: Remark, at: Micros, lastAge: Micros): Promise<void> {
    const source = this.#sources.get(sourceId);
    this.#ledger.remark(source.row, ownerOf(source, window), window, remark, at, lastAge);
    this.#wake();
  }

  async divide(
    sourceId: string,
    gap: Window,
    parts: readonly GapPart[],
    { message, at }: { readonly message: string; readonly at: Micros },
    lastAge: Micros,
  ): Promise<void> {
    const source = this.#sources.get(sourceId);
    this.#ledger.divide(source.row, ownerOf(source, gap), gap, parts, message, at, lastAge);
    this.#wake();
  }

  /** Starts or ends a suspension: the state of the source and the ledger entry change together. `now` is server time. */
  async setSuspension(sourceId: string, suspension: Suspension | undefined, now: Micros): Promise<void> {
    const { row } = this.#sources.get(sourceId);
    const fields = { ...(suspension ?? row.suspension), previous: undefined };
    // Server time has a resolution of a second, operations of a microsecond. The end of a suspension follows its begin and the operation
    // that caused it. At the same moment it could get their identity: they may be pruned by then.
    const { since } = row.suspension ?? {};
    const isEnd = suspension === undefined && since !== undefined;
    const at = isEnd ? Math.max(now, (this.#operations.last(sourceId, since) ?? since) + 1) : now;
    this.#store.transaction(() => {
      this.#sources.writeSuspension(row, suspension);
      writeMoment(this.#segments, row.n, row.id, at, {
        ledger: 'suspension',
        state: suspension === undefined ? 'active' : 'suspended',
        ...fields,
      });
    });
    this.#wake();
  }

  lastFullVisibility(sourceId: string, at: Micros): void {
    this.#sources.get(sourceId).row.lastFullVisibility = at;
  }

  async acceptGap(sourceId: string, from: Micros, chosen: GapOperation): Promise<LedgerWindow> {
    const source = this.#sources.get(sourceId);
    const accepted = this.#ledger.accept(source.row, ownerOf(source, { from, to: from }), from, chosen);
    this.#wake();
    return accepted;
  }

  async retryGap(sourceId: string, from: Micros, chosen: GapOperation): Promise<LedgerWindow> {
    const window = this.#ledger.retry(this.#sources.get(sourceId).row, from, chosen);
    this.#wake();
    return window;
  }

  /** Stores the settings that a report on this state needs, as JSON. */
  storeSettings(text: string): void {
    if (storedSettings(this.#store.db) !== text) this.#store.transaction(() => storeSettings(this.#store.db, text));
  }

  /**
   * Writes an operation with its ledger entry. `change` changes the state in the same transaction and
   * must not start one. @returns the operation's number
   */
  async operate(operation: Operation, change: () => void = () => undefined): Promise<number> {
    const source = operation.source === undefined ? undefined : this.#sources.get(operation.source).row.n;
    let written = 0;
    this.#store.transaction(() => {
      change();
      written = this.#operations.write(operation, source);
    });
    this.#wake();
    return written;
  }

  /** The operations on a sink, oldest first, each with its detail. */
  operationsOn(sink: string): readonly Readonly<Record<string, unknown>>[] {
    return this.#operations.onSink(sink);
  }

  /** Adds the outcome to an operation that was written before its outcome was known. */
  async writeOutcome(operation: number, outcome: string): Promise<void> {
    this.#store.transaction(() => this.#operations.writeOutcome(operation, outcome));
  }

  laggingPosition(): number | undefined {
    return this.#segments.laggingPosition();
  }

  head(): Position {
    const { seq, chain } = this.#segments.head;
    return { seq, chain };
  }

  async read(after: number, limit: Limit): Promise<readonly Entry[]> {
    const { replica } = this.#store;
    const isStored = after < this.#segments.head.seq;
    const through = replica && isStored ? await replica.absent.segments(after + 1) : Infinity;
    return this.#segments.read(after, limit, through);
  }

  async chainAt(seq: number): Promise<Uint8Array | undefined> {
    return this.#segments.chainAt(seq);
  }

  changed(): Promise<unknown> {
    return this.#changed.promise;
  }

  owned(signal: AbortSignal): Promise<void> | undefined {
    return this.#store.replica?.owned(signal);
  }

  sinkProgress(id: string): SinkProgress {
    return this.sinkPositions.sink(id);
  }

  withheld(id: string, source: string): readonly Window[] {
    return this.history.withheld(id, source);
  }

  async acknowledge(id: string, acknowledgement: Acknowledgement, deadLetters: readonly DeadLetter[], replay?: Replay): Promise<void> {
    this.#assertWithin(id, acknowledgement);
    const also = /* mutant: store-replay */ replay && (() => this.sinkPositions.updateReplay(id, replay));
    this.sinkPositions.now(id, acknowledgement, deadLetters, this.#clock.now() * 1000, also);
  }

  acknowledgeLater(id: string, acknowledgement: Acknowledgement): void {
    this.#assertWithin(id, acknowledgement);
    this.sinkPositions.later(id, acknowledgement);
  }

  async flush(): Promise<void> {
    this.sinkPositions.flush();
  }

  async commitResumeNote(id: string, resumeNote: string): Promise<void> {
    this.sinkPositions.commitResumeNote(id, resumeNote);
  }

  async lost(id: string, loss: SinkLoss, resumeNote: string): Promise<void> {
    this.#store.transaction(() => {
      this.sinkPositions.writeResumeNote(id, resumeNote);
      writeLoss(this.#store, id, loss, this.#clock.now() * 1000);
    });
  }

  async restored(id: string): Promise<void> {
    this.#store.transaction(() => removeLosses(this.#store, id));
  }

  async archiveCheckpoint(id: string, checkpoint: string): Promise<void> {
    const now = this.#clock.now() * 1000;
    const key = `archive checkpoint ${id}`;
    const { db } = this.#store;
    const last = db.prepare<[string], { value: number }>('SELECT value FROM meta WHERE key = ?').get(key)?.value ?? -Infinity;
    if (Math.floor(last / dayUs) >= Math.floor(now / dayUs)) return;
    this.#store.transaction(() => {
      db.prepare('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value').run(key, now);
      writeMoment(this.#segments, 0, '', now, { ledger: 'archive-checkpoint', sink: id, checkpoint });
    });
    this.#wake();
  }

  replayedFrom(archive: string): number | undefined {
    const replays = [...this.sinkPositions.sinks()].flatMap(({ replays }) => replays.archive ?? []);
    const lines = replays.filter((replay) => replay.archive === archive).map(({ at }) => at + 1);
    return lines.length === 0 ? undefined : Math.min(...lines);
  }

  async replayed(id: string, replay: Replay): Promise<void> {
    const sink = this.sinkPositions.sink(id);
    const isWhole = (source: number): boolean => isWholeFor(sink.selection, this.#sources.ids.get(source) ?? '');
    this.#store.transaction(() => {
      if (this.sinkPositions.removeReplay(sink, replay) && replay.kind === 'range')
        shrinkLosses(this.#store, id, replay, sink.selection?.changedAfter ?? 0, isWhole);
    });
  }

  async deadLetter(id: string, seq: number): Promise<Entry | undefined> {
    return this.deadLetters.entry(id, seq, (at) => this.#segments.numberOf(at));
  }

  async rejected(id: string): Promise<ReadonlySet<number>> {
    return this.deadLetters.rejected(id);
  }

  async resolveDeadLetter(id: string, seq: number, result: DeadLetterResult, operation: Operation): Promise<void> {
    this.deadLetters.resolve(id, seq, result, operation);
    this.#wake();
  }

  async discardDeadLetters(id: string, seqs: readonly number[], operation: Operation): Promise<void> {
    this.deadLetters.discard(id, seqs, operation);
    this.#wake();
  }

  async found(id: string, found: ResumePosition): Promise<void> {
    this.#assertWithin(id, { acknowledged: found.position.seq, delivered: found });
    this.sinkPositions.found(id, found, this.#clock.now() * 1000);
  }

  async adopted(id: string): Promise<void> {
    this.sinkPositions.adopted(id);
  }

  async readRange(given: number, range: ReplayRange, limit: Limit): Promise<{ after: number; entries: readonly Entry[] }> {
    const { after, from, end } = this.#segments.rangeAfter(given, range);
    if (from >= end) return { after, entries: [] };
    return { after, entries: await this.read(from, { ...limit, records: Math.min(limit.records, end - from) }) };
  }

  pruned(): number {
    return this.#segments.pruned();
  }

  /** The approximate number of entries in a range of the journal. */
  countOf(first: number, last: number, times: Window | undefined): number {
    return this.#segments.countOf(first, last, times);
  }

  /** The start position of a new sink for its setting `start`. */
  positionFor(from: 'journal' | 'now' | Micros): Position {
    if (from === 'now') return this.head();
    if (from === 'journal') return this.#segments.beginning();
    return this.#segments.before(from) ?? this.head();
  }

  /**
   * The position of a sink that begins with the records of an archive: where that archive was last acknowledged.
   * @throws WaybillError `config_invalid` for an archive that this state does not know
   */
  positionAfterArchive(id: string): Position {
    const archive = [...this.sinkPositions.sinks()].find((sink) => sink.id === id);
    const beginning = this.#segments.beginning();
    if (archive?.type === 'archive') return archive.delivered.seq < beginning.seq ? beginning : archive.delivered;
    throw new WaybillError(
      'config_invalid',
      `cannot start from the archive "${id}": nothing was delivered to it yet; use "start: journal"`,
    );
  }

  async paused(): Promise<string | undefined> {
    return this.#pauseReason();
  }

  refuses(): string | undefined {
    return this.#pauseReason() ?? this.#store.full;
  }

  /** @throws WaybillError `state_missing` if the open file is no longer the one in the state directory */
  assertPresent(): void {
    const open = this.#state.inode;
    const found = statSync(join(this.#state.directory, 'waybill.db'), { throwIfNoEntry: false })?.ino;
    if (found === open) return;
    const message = found === undefined ? 'it was removed' : 'another file is in its place';
    throw new WaybillError(
      'state_missing',
      `cannot continue with the state in "${this.#state.directory}": while the daemon was running, ${message}`,
    );
  }

  usage(): { bytes: number; maxSize: number; commits: number } {
    return { bytes: this.#store.usedBytes(), maxSize: this.#store.maxBytes(), commits: this.#store.commits };
  }

  /**
   * Checks a few segments and windows; a round over all of them takes a day. `everyMs` is the interval between calls. Returns true when a
   * round has ended without a finding. @throws WaybillError `state_corrupt`, `internal_error`: the process must end
   */
  async examine(everyMs: number): Promise<boolean> {
    const { replica } = this.#store;
    return this.#selfCheck.step(everyMs / dayMs, replica ? await this.#fetchForCheck(replica) : Infinity);
  }

  /** @returns the last entry that can be checked now */
  async #fetchForCheck({ absent }: Replica): Promise<number> {
    const next = this.#selfCheck.next();
    for (const { seq, source, buckets } of next) {
      await absent.segments(seq);
      await absent.seen(source, buckets);
    }
    return next.at(-1)?.seq ?? 0;
  }

  /** Resolves when everything stored so far counts: an operator, a report or the service may depend on it then. */
  async settled(): Promise<void> {
    // The gate of a shard waits. In a file, each transaction counts when it ends.
  }

  /** The daemon's connection, for reports that only read. */
  get db(): Database.Database {
    return this.#store.db;
  }

  /**
   * Deletes a few segments that every sink has acknowledged and that are older than `retention`.
   * Above half of `maxSize` their age does not matter. Returns the number of deleted entries.
   */
  prune(): number {
    this.#store.trimWal();
    const through = /* mutant: prune-limit */ Math.min(
      this.head().seq,
      ...[...this.sinkPositions.sinks()].filter((s) => /* mutant: prune-sinks */ s.state !== 'retired').map((s) => s.acknowledged),
    );
    const { bytes, maxSize } = this.usage();
    const before = bytes > maxSize / 2 ? Number.MAX_SAFE_INTEGER : (this.#clock.now() - this.#retentionMs) * 1000;
    return this.#segments.prune(through, before, pruneSegments);
  }

  /** Frees space in a working copy above `localSize`, some at a time. @returns the number of rows whose content only the database has now */
  shrinkCopy(): number {
    const { replica } = this.#store;
    if (!replica?.isSettled || this.usage().bytes <= this.#localSize) return 0;
    const emptied = replica.shrink(Math.min(this.head().seq, this.sinkPositions.leastAcknowledged()));
    if (emptied > 0) this.#store.shrink();
    return emptied;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      // After a fatal error a flush would throw again and hide the first error.
      if (!this.#store.isBroken) {
        this.sinkPositions.flush();
        await this.#store.replica?.committed();
      }
    } catch (thrown) {
      // Pending acknowledgements are reconciled at the next start, as after a kill.
      if (codeOf(thrown) !== 'journal_full') throw thrown;
    } finally {
      this.#store.replica?.close();
      this.#store.db.close();
      this.#state.lock.close();
    }
  }

  /** Collection pauses above 97 % of `maxSize` and resumes below 90 %. */
  #pauseReason(): string | undefined {
    const share = this.#store.usedBytes() / this.#store.maxBytes();
    // A large page can exceed `maxSize` before the share reaches the upper limit.
    this.#paused = share > (this.#paused || this.#store.full === 'journal_full' ? resumeBelow : pauseAbove);
    return this.#paused ? 'journal_full' : undefined;
  }

  #write(source: SourceState, page: CollectedPage, deduplicated: Deduplicated, lateCount: number, polledUntil: Micros | undefined): void {
    const { row } = source;
    const { fresh, late, buckets } = deduplicated;
    if (buckets.size > 0) {
      const seq = fresh.length > 0 ? this.#segments.writeRecords(row.n, row.id, fresh, late, page.received) : undefined;
      // mutant: store-uids
      for (const [bucket, uids] of buckets) this.#seen.store(row.n, bucket, seq, uids);
      for (const [from, delays] of deduplicated.lateByWindow) this.#ledger.addLate(row.n, from, delays);
      for (const [range, time] of deduplicated.newest) this.#sources.writeCollected(source, range, time);
      this.#sources.writeCounts(source, fresh, lateCount);
      this.#store.after(() => this.#seen.committed(row.n, buckets));
    }
    if (polledUntil !== undefined) this.#sources.writePolledUntil(source, polledUntil);
    this.sinkPositions.writePending();
  }

  /** Deletes the buckets of uids that no range needs. */
  #forget(source: SourceState): void {
    for (const range of source.ranges) this.#ledger.forgetWhole(source.row, range);
    const uidsKeptSince = earliestKept(source.ranges);
    const buckets = this.#seen.bucketsBefore(source.row.n, uidsKeptSince);
    if (buckets.length === 0) return;
    this.#store.transaction(() => this.#seen.remove(source.row.n, buckets));
    for (const bucket of buckets) this.#seen.forget(source.row.n, bucket);
  }

  /** Invariant: delivered ≤ acknowledged ≤ head. */
  #assertWithin(id: string, { acknowledged, delivered }: Acknowledgement): void {
    const { seq } = this.#segments.head;
    if (acknowledged <= seq && (delivered === undefined || delivered.position.seq <= acknowledged)) return;
    throw new WaybillError(
      'internal_error',
      `sink "${id}" is ahead of the journal or of itself: acknowledged ${acknowledged}, delivered ${delivered?.position.seq ?? 'nothing'}, entries in the journal ${seq}`,
    );
  }

  #wake(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<undefined>();
    resolve(undefined);
  }
}

/**
 * The journal of a shard: each promise of a method resolves only when the database has everything that was stored until then. So neither a
 * result nor a read entry leaves the process before its commit, whichever method it comes from.
 */
function gated(journal: Journal, replica: Replica): Journal {
  const committed = async (result: Promise<unknown>): Promise<unknown> => {
    const value = await result;
    // mutant: gate
    await replica.committed();
    return value;
  };
  return new Proxy(journal, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name, target);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]): unknown => {
        const result: unknown = Reflect.apply(member, target, given);
        // A request to a sink waits for the lease, not for commits.
        if (!(result instanceof Promise) || typeof name !== 'string' || /* mutant: ungated */ name === 'owned') return result;
        const promise = committed(result);
        // A loop that was ended waits for nothing any more. The failure is in each later promise too.
        promise.catch(() => undefined);
        return promise;
      };
    },
  });
}
