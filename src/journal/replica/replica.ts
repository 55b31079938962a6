/**
 * Sends the changes of a working copy to the database, one commit at a time. A transaction counts once the database has its rows; nothing
 * that depends on it may leave the process before (`committed`).
 *
 * Commit n moves the fence row from n - 1 to n, so each is carried out at most once, and a late request of an earlier one is refused.
 * Without an answer the same commit is sent again. A refusal with the row at n, under our lease, means that an earlier attempt succeeded.
 *
 * A row below n - 1, under our lease, means that the database lost commits, as after a fail-over to a standby that lacked them. The copy has
 * their rows: it writes all rows that changed lately, as one commit with a number that no earlier attempt has.
 */
import type { Database } from 'better-sqlite3';
import { codeOf, WaybillError } from '../../errors/errors.ts';
import type { Clock } from '../../model/time.ts';
import { Absent } from './absent.ts';
import type { Capture } from './capture.ts';
import type { Change, Commit, Fence, ShardDatabase } from './shard-database.ts';

/** The waits before a commit is sent again, ms. */
const firstWait = 50;
const longestWait = 1_000;
/** How long, ms, and for how many rows at most, a loss of commits can be repaired. */
const repairableMs = 120_000;
const repairableRows = 100_000;

/** A row of which the database may lose the last change. */
interface Recent {
  readonly row: Pick<Change, 'table' | 'key'>;
  /** The number of the last commit that contained this row. */
  readonly number: number;
  readonly sentAt: number;
}

interface Waiting {
  readonly transaction: number;
  readonly resolve: () => void;
  readonly reject: (reason: WaybillError) => void;
}

export class Replica {
  readonly absent: Absent;
  readonly #capture: Capture;
  readonly #database: ShardDatabase;
  readonly #clock: Clock;
  readonly #closing = new AbortController();
  /** Changes of the next commit by row: a later change of a row replaces an earlier one. */
  #pending = new Map<string, Change>();
  /** The rows of the last commits, in commit order. */
  readonly #recent = new Map<string, Recent>();
  /** The newest commit of which `#recent` lacks a row. */
  #forgotten: number;
  /** The number of the last commit that the database has. */
  #commits: number;
  /** The number of transactions in the working copy since the take-over, and how many of them the database has committed. */
  #transactions = 0;
  #committed = 0;
  #waiting: Waiting[] = [];
  #isRunning = false;
  #failure: WaybillError | undefined;

  constructor(db: Database, capture: Capture, database: ShardDatabase, clock: Clock) {
    this.absent = new Absent(db, capture, this);
    this.#capture = capture;
    this.#database = database;
    this.#clock = clock;
    this.#commits = database.taken.commits;
    this.#forgotten = this.#commits;
    this.add(capture.collect());
  }

  /** The reason why no further transaction can count; undefined while they can. */
  get failure(): WaybillError | undefined {
    return this.#failure;
  }

  /** Within a transaction, as its last step: see Capture.collect. */
  collect(): Change[] {
    return this.#capture.collect();
  }

  /** After COMMIT: adds the changes of the transaction to the next commit. */
  add(changes: readonly Change[]): void {
    if (changes.length === 0) return;
    for (const change of changes) this.#pending.set(JSON.stringify([change.table, ...change.key]), change);
    this.#transactions += 1;
    if (!this.#isRunning) void this.#run();
  }

  /** Resolves when the database has every transaction so far. Rejects if it never will: `lease_lost`, `database_rolled_back`, or a defect. */
  committed(): Promise<void> {
    if (this.#failure) return Promise.reject(this.#failure);
    if (this.isSettled) return Promise.resolve();
    return new Promise((resolve, reject) => this.#waiting.push({ transaction: this.#transactions, resolve, reject }));
  }

  /** True while the database has every transaction. */
  get isSettled(): boolean {
    return this.#committed >= this.#transactions;
  }

  /** See ShardDatabase.owned. */
  owned(signal: AbortSignal): Promise<void> {
    return this.#database.owned(signal);
  }

  /** Repeats a request until the database answers it. */
  async answered<Result>(request: (database: ShardDatabase) => Promise<Result>): Promise<Result> {
    for (let wait = firstWait; ; wait = Math.min(longestWait, wait * 2)) {
      try {
        return await request(this.#database);
      } catch (thrown) {
        if (codeOf(thrown) !== 'database_unreachable') throw thrown;
        await this.#clock.sleep(wait, this.#closing.signal);
      }
    }
  }

  /** Why the database does not have what the owner of the shard needs. */
  async whyGone(what: string): Promise<WaybillError> {
    const found = await this.answered((database) => database.fence());
    return found?.lease === this.#database.taken.lease ? new WaybillError('state_corrupt', `the database does not have ${what}`) : lost();
  }

  /** Gives up what is not committed. */
  close(): void {
    this.#fail(new WaybillError('aborted', 'the journal was closed'));
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      // The transactions of one turn of the event loop share a commit.
      await Promise.resolve();
      while (this.#pending.size > 0) {
        const changes = this.#pending;
        // mutant: sent-transactions
        const transactions = this.#transactions;
        // mutant: next-commit
        this.#pending = new Map();
        this.#commits = await this.#commit(changes);
        // mutant: committed-transactions
        this.#count(transactions);
      }
    } catch (thrown) {
      this.#fail(
        thrown instanceof WaybillError ? thrown : new WaybillError('internal_error', `cannot commit: ${String(thrown)}`, { cause: thrown }),
      );
    } finally {
      this.#isRunning = false;
    }
  }

  /** The database has the transactions until this one. */
  #count(committed: number): void {
    this.#committed = committed;
    for (const { resolve } of this.#waiting.filter(({ transaction }) => transaction <= committed)) resolve();
    this.#waiting = this.#waiting.filter(({ transaction }) => transaction > committed);
  }

  /** The content of a commit never changes once it was sent: an earlier attempt may still be under way. @returns the number of the last commit */
  async #commit(changes: ReadonlyMap<string, Change>): Promise<number> {
    const { lease } = this.#database.taken;
    const began = this.#clock.monotonic();
    const number = this.#commits + 1;
    const sent: Commit[] = [{ fence: /* mutant: fence */ { lease, commits: number - 1 }, number, changes: [...changes.values()] }];
    this.#remember(changes, number);
    for (;;) {
      const commit = sent.at(-1);
      if (!commit) throw new WaybillError('internal_error', 'no commit was sent');
      const found = await this.answered(async (database) =>
        (await database.commit(/* mutant: sent-content */ commit)) ? commit.number : this.#judged(await database.fence()),
      );
      const done = /* mutant: refused-commit */ sent.find((each) => each.number === found);
      if (!done) sent.push(this.#repair(found, commit.number + 1));
      else {
        this.#database.done(done, this.#clock.monotonic() - began);
        return done.number;
      }
    }
  }

  /** After a refusal: the number of the last commit. */
  #judged(found: Fence | undefined): number {
    if (found?.lease !== this.#database.taken.lease) throw lost();
    return found.commits;
  }

  /** Remembers the rows of a commit, and forgets the rows of old commits. */
  #remember(changes: ReadonlyMap<string, Pick<Change, 'table' | 'key'>>, number: number): void {
    const sentAt = this.#clock.monotonic();
    for (const [id, { table, key }] of changes) {
      this.#recent.delete(id);
      this.#recent.set(id, { row: { table, key }, number, sentAt });
    }
    for (const [id, recent] of this.#recent) {
      if (this.#recent.size <= repairableRows && recent.sentAt >= sentAt - repairableMs) return;
      this.#recent.delete(id);
      this.#forgotten = Math.max(this.#forgotten, recent.number);
    }
  }

  /** The database lost the commits after `found`. The current rows are a whole transaction, because they include the changes that wait for a commit. */
  #repair(found: number, number: number): Commit {
    const message = `the database has ${found} commits of the shard, but had carried out ${this.#commits}`;
    if (found < this.#forgotten || found >= number)
      throw new WaybillError('database_rolled_back', `${message}; the lost rows are no longer all known, so they cannot be written again`);
    // mutant: repair-waiting
    this.#remember(this.#pending, number);
    const rows = /* mutant: repair-rows */ [...this.#recent.values()].map(({ row }) => row);
    return {
      fence: /* mutant: repair-fence */ { lease: this.#database.taken.lease, commits: found },
      number,
      changes: this.#capture.contentOf(rows),
      lost: { first: found + 1, last: this.#commits },
    };
  }

  /** See Absent.shrink. What a repair may need stays. */
  shrink(through: number): number {
    let last = through;
    // mutant: repair-values
    for (const { row } of this.#recent.values()) if (row.table === 'segments') last = Math.min(last, Number(row.key[0]) - 1);
    return this.absent.shrink(last);
  }

  #fail(error: WaybillError): void {
    if (this.#failure) return;
    this.#failure = error;
    this.#closing.abort(error);
    for (const { reject } of this.#waiting) reject(error);
    this.#waiting = [];
  }
}

function lost(): WaybillError {
  return new WaybillError('lease_lost', 'another member has taken the shard');
}
