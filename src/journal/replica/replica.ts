/**
 * Sends the changes of a working copy to the database, one commit at a time. A transaction counts once the database has its rows; nothing
 * that depends on it may leave the process before (`committed`).
 *
 * Commit n moves the fence row from n - 1 to n, so each is carried out at most once, and a late request of an earlier one is refused.
 * Without an answer the same commit is sent again. A refusal with the row at n, under our lease, means that an earlier attempt succeeded.
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
  /** The number of the last commit that the database has. */
  #commits: number;
  /** The transactions of the working copy since the take-over, and those that the database has. */
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
        const changes = [...this.#pending.values()];
        const transactions = this.#transactions;
        this.#pending = new Map();
        await this.#commit(changes);
        this.#commits += 1;
        this.#committed = transactions;
        for (const { resolve } of this.#waiting.filter(({ transaction }) => transaction <= transactions)) resolve();
        this.#waiting = this.#waiting.filter(({ transaction }) => transaction > transactions);
      }
    } catch (thrown) {
      this.#fail(
        thrown instanceof WaybillError ? thrown : new WaybillError('internal_error', `cannot commit: ${String(thrown)}`, { cause: thrown }),
      );
    } finally {
      this.#isRunning = false;
    }
  }

  /** The content of a commit never changes once it was sent: an earlier attempt may still be under way. */
  async #commit(changes: readonly Change[]): Promise<void> {
    const { lease } = this.#database.taken;
    const number = this.#commits + 1;
    const commit: Commit = { fence: /* mutant: fence */ { lease, commits: number - 1 }, number, changes };
    await this.answered(async (database) => {
      if (!(await database.commit(commit))) this.#judge(await database.fence(), number);
    });
  }

  /** After a refusal. Returns if an earlier attempt carried out the commit. */
  #judge(found: Fence | undefined, number: number): void {
    if (found?.lease !== this.#database.taken.lease) throw lost();
    // mutant: refused-commit
    if (found.commits !== number)
      throw new WaybillError(
        'database_rolled_back',
        `the database has ${found.commits} commits of the shard, but had carried out ${number - 1}`,
      );
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
