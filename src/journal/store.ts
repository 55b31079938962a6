/**
 * One connection and one transaction at a time. Every change of the state uses `transaction`, which
 * asserts that this process still owns the state and updates memory only after COMMIT.
 */
import { statfsSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import { pageBytes, diskBudgetOf, usedBytes, walBytes, type DiskBudget } from './disk-budget.ts';
import type { Replica } from './replica/replica.ts';
import type { Change } from './replica/shard-database.ts';
import { asStateError } from './state-errors.ts';

export class Store {
  readonly db: Database;
  readonly directory: string;
  readonly epoch: number;
  /** Set for the working copy of a shard. */
  readonly replica: Replica | undefined;
  readonly #diskBudget: DiskBudget;
  readonly #filePages: number;
  readonly #ownerEpoch;
  readonly #pages;
  #after: (() => void)[] = [];
  #undo: (() => void)[] = [];
  /** True while operations share the running transaction. */
  #isShared = false;
  /** The first fatal error. After a failed write the content of the file is unknown until the state is opened again. */
  #broken: WaybillError | undefined;
  /** The limit that the last transaction reached. */
  full: 'journal_full' | 'disk' | undefined;
  /** Bytes used between two transactions: only this process writes, and collection asks before each request. */
  #used: number | undefined;
  /** Committed transactions, for the benchmark and the status. */
  commits = 0;

  /** @param maxSize  bytes */
  constructor(db: Database, directory: string, epoch: number, maxSize: number, replica?: Replica) {
    this.db = db;
    this.directory = directory;
    this.epoch = epoch;
    this.replica = replica;
    this.#diskBudget = diskBudgetOf(maxSize);
    // An existing larger file keeps its size.
    this.#filePages = replica ? this.#diskBudget.filePages : (db.pragma('max_page_count', { simple: true }) as number);
    this.#ownerEpoch = db.prepare<[], { epoch: number }>('SELECT epoch FROM owner WHERE one = 1');
    // One statement: each takes and releases the locks of a read.
    this.#pages = db.prepare<[], { used: number }>(
      'SELECT page_count - freelist_count AS used FROM pragma_page_count, pragma_freelist_count',
    );
  }

  get isBroken(): boolean {
    return this.#broken !== undefined || this.replica?.failure !== undefined;
  }

  /**
   * Runs `operation` in one immediate transaction. Throws `journal_full` when `maxSize` or the disk is full: nothing was stored, and the
   * call may be repeated. Any other error is fatal: this object refuses further work, and the process must end.
   * @param share  the share of `maxSize` that may be used after the operation; the rest is reserved
   */
  transaction<Result>(operation: () => Result, share = Infinity): Result {
    if (this.#isShared) return this.#within(share, operation);
    if (this.#broken) throw this.#broken;
    this.#after = [];
    this.#undo = [];
    let result: Result;
    let changes: readonly Change[] = [];
    try {
      this.db.exec('BEGIN IMMEDIATE');
      const owner = this.#ownerEpoch.get()?.epoch;
      if (owner !== this.epoch) {
        throw new WaybillError(
          'internal_error',
          `state in "${this.directory}" is owned by epoch ${owner ?? 'none'}, this process is ${this.epoch}`,
        );
      }
      result = this.#within(share, operation);
      changes = this.replica?.collect() ?? [];
      this.db.exec('COMMIT');
    } catch (thrown) {
      for (const undo of this.#undo.reverse()) undo();
      const error = asStateError(thrown, this.directory);
      try {
        if (this.db.inTransaction) this.db.exec('ROLLBACK');
      } catch (rollback) {
        this.#broken = asStateError(rollback, this.directory);
      }
      if (error.code !== 'journal_full') {
        this.#broken = error;
        throw error;
      }
      this.full = thrown instanceof WaybillError || this.#isQuotaTighter() ? 'journal_full' : 'disk';
      if (this.full === 'disk' || thrown instanceof WaybillError) throw error;
      throw new WaybillError('journal_full', `cannot write the state in "${this.directory}": journal.maxSize is used up`, {
        cause: thrown,
      });
    } finally {
      this.#used = undefined;
    }
    this.commits += 1;
    this.full = undefined;
    for (const after of this.#after) after();
    this.replica?.add(changes);
    this.trimWal();
    return result;
  }

  /** Runs `operations`, which call `transaction`, in one transaction: all are stored, or none. Throws as `transaction` does. */
  together<Result>(operations: () => Result): Result {
    return this.transaction(() => {
      this.#isShared = true;
      try {
        return operations();
      } finally {
        this.#isShared = false;
      }
    });
  }

  #within<Result>(share: number, operation: () => Result): Result {
    const result = operation();
    if (share === Infinity || this.#measure() <= share * this.maxBytes()) return result;
    throw new WaybillError(
      'journal_full',
      `cannot write the state in "${this.directory}": it would exceed ${share * 100} % of journal.maxSize`,
    );
  }

  /** Truncates a WAL that exceeds its reserve by a checkpoint. During a read it stays, counts as used, and the next call tries again. */
  trimWal(): void {
    if (walBytes(this.db) <= this.#diskBudget.walBytes) return;
    this.#used = undefined;
    try {
      this.db.pragma('wal_checkpoint(TRUNCATE)');
    } catch (thrown) {
      const error = asStateError(thrown, this.directory);
      // On a full disk the data stays in the WAL.
      if (error.code === 'journal_full') return;
      this.#broken = error;
      throw error;
    }
  }

  /** Returns free pages to the file system, some at a time. */
  shrink(): void {
    this.#used = undefined;
    this.db.pragma('incremental_vacuum(2000)');
  }

  /** Within a transaction: registers a change in memory to make after COMMIT. */
  after(operation: () => void): void {
    this.#after.push(operation);
  }

  /** Within a transaction: registers the reversal of a change in memory, for ROLLBACK. */
  undo(operation: () => void): void {
    this.#undo.push(operation);
  }

  /** SQLite reports `maxSize` and a full disk with the same error. The limit with less space left caused it. */
  #isQuotaTighter(): boolean {
    const { bavail, bsize } = statfsSync(this.directory);
    return this.maxBytes() - this.#measure() <= bavail * bsize;
  }

  usedBytes(): number {
    return (this.#used ??= this.#measure());
  }

  maxBytes(): number {
    return this.#filePages * pageBytes + this.#diskBudget.walBytes;
  }

  #measure(): number {
    return usedBytes(this.#pages.get()?.used ?? 0, this.db, this.#diskBudget);
  }
}
