/**
 * One connection, one transaction at a time. Every change of the state goes through `transaction`: it asserts that this process still owns
 * the state, and lets memory follow the file, never the other way round.
 */
import { statfsSync } from 'node:fs';
import type { Database } from 'better-sqlite3';
import { WaybillError } from '../errors.ts';
import { pageBytes, diskBudgetOf, usedBytes, walBytes } from './disk-budget.ts';
import type { DiskBudget } from './disk-budget.ts';
import { asStateError } from './state.ts';

export class Store {
  readonly db: Database;
  readonly directory: string;
  readonly epoch: number;
  readonly #diskBudget: DiskBudget;
  readonly #filePages: number;
  readonly #ownerEpoch;
  readonly #pageCount;
  readonly #freePages;
  #after: (() => void)[] = [];
  #undo: (() => void)[] = [];
  /** What must be known for ever: after a failed write nobody knows what the file holds until it is opened again. */
  #broken: WaybillError | undefined;
  /** Which of the two the last transaction found used up. */
  full: 'journal_full' | 'disk' | undefined;
  /** Committed transactions, for the benchmark and the status. */
  commits = 0;

  /** @param maxSize  bytes */
  constructor(db: Database, directory: string, epoch: number, maxSize: number) {
    this.db = db;
    this.directory = directory;
    this.epoch = epoch;
    this.#diskBudget = diskBudgetOf(maxSize);
    // A file that is larger already stays so.
    this.#filePages = db.pragma('max_page_count', { simple: true }) as number;
    this.#ownerEpoch = db.prepare<[], { epoch: number }>('SELECT epoch FROM owner WHERE one = 1');
    this.#pageCount = db.prepare<[], { page_count: number }>('SELECT page_count FROM pragma_page_count');
    this.#freePages = db.prepare<[], { freelist_count: number }>('SELECT freelist_count FROM pragma_freelist_count');
  }

  /** Whether a failure has been thrown that is final. */
  get isBroken(): boolean {
    return this.#broken !== undefined;
  }

  /**
   * Runs `operation` in one immediate transaction. Throws `journal_full` when `maxSize` or disk are used up (nothing was stored; try again later),
   * anything else is final: this object refuses all further work, and the process must end.
   * @param share  of `maxSize` that may be used when it is done; the rest is left to others
   */
  transaction<Result>(operation: () => Result, share = Infinity): Result {
    if (this.#broken) throw this.#broken;
    this.#after = [];
    this.#undo = [];
    let result: Result;
    try {
      this.db.exec('BEGIN IMMEDIATE');
      const owner = this.#ownerEpoch.get()?.epoch;
      if (owner !== this.epoch) {
        throw new WaybillError(
          'internal_error',
          `state in "${this.directory}" is owned by epoch ${owner ?? 'none'}, this process is ${this.epoch}`,
        );
      }
      result = operation();
      if (share !== Infinity && this.usedBytes() > share * this.maxBytes())
        throw new WaybillError(
          'journal_full',
          `cannot write the state in "${this.directory}": it would exceed ${share * 100} % of journal.maxSize`,
        );
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
    }
    this.commits += 1;
    this.full = undefined;
    for (const after of this.#after) after();
    this.trimWal();
    return result;
  }

  /**
   * Brings a WAL that is larger than what is set aside for it into the file, and cuts it. Where somebody reads at this moment it stays, is
   * counted, and is tried again.
   */
  trimWal(): void {
    if (walBytes(this.db) <= this.#diskBudget.walBytes) return;
    try {
      this.db.pragma('wal_checkpoint(TRUNCATE)');
    } catch (thrown) {
      const error = asStateError(thrown, this.directory);
      // On a full disk all of it stays in the WAL.
      if (error.code === 'journal_full') return;
      this.#broken = error;
      throw error;
    }
  }

  /** Within a transaction: what is to happen in memory once it is committed. */
  after(operation: () => void): void {
    this.#after.push(operation);
  }

  /** Within a transaction: what takes memory back when it is not. */
  undo(operation: () => void): void {
    this.#undo.push(operation);
  }

  /** SQLite says of `maxSize` what it says of a full disk: the one that has less left is meant. */
  #isQuotaTighter(): boolean {
    const { bavail, bsize } = statfsSync(this.directory);
    return this.maxBytes() - this.usedBytes() <= bavail * bsize;
  }

  /** Bytes in use, of file and WAL. */
  usedBytes(): number {
    const pages = (this.#pageCount.get()?.page_count ?? 0) - (this.#freePages.get()?.freelist_count ?? 0);
    return usedBytes(pages, this.db, this.#diskBudget);
  }

  maxBytes(): number {
    return this.#filePages * pageBytes + this.#diskBudget.walBytes;
  }
}
