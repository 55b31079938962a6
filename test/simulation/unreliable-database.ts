/**
 * The database of a shard as a life reaches it: requests and answers are lost, requests arrive late, the database goes away, and it loses its
 * last commits. The life may end before a commit, and before and after its answer.
 */
import type { Clock } from '../../src/model/time.ts';
import { WaybillError } from '../../src/errors/errors.ts';
import { Lease } from '../../src/fleet/lease.ts';
import type { Commit, Fence, Row, SeenColumns, SegmentColumns, ShardDatabase } from '../../src/journal/replica/shard-database.ts';
import { ModelDatabase } from '../support/journal/model-database.ts';
import type { Chance } from './chance.ts';
import type { World } from './world.ts';

/** What it needs of a life: the points at which it may end, and its clock. */
interface Life {
  readonly clock: Clock;
  readonly effect: (what: string) => Promise<void>;
}

interface Parts {
  readonly world: World;
  readonly chance: Chance;
  readonly result: {
    readonly committed: (db: ModelDatabase['rows']) => void;
    readonly isCalm: () => boolean;
    readonly repaired: () => void;
    readonly fault: (message: string) => void;
  };
}

const forever = new AbortController().signal;
const unreachable = (): WaybillError => new WaybillError('database_unreachable', 'cannot reach the database: the connection was reset');

/** The database for all lives, with the lease of its fence row, and the clock that decides when the lease ends. */
export class FleetDatabase extends ModelDatabase {
  readonly leaseMs: number;
  /** ms of the world. */
  expires = -Infinity;
  /** Nobody reaches it until then. */
  awayUntil = -Infinity;
  rollBacks = 0;

  constructor(leaseMs: number) {
    super();
    this.leaseMs = leaseMs;
  }

  /** A fail-over to a standby that lacked the last commits. */
  failOver(commits: number): void {
    this.rollBacks += 1;
    this.rollBack(commits);
  }
}

export class UnreliableDatabase implements ShardDatabase {
  readonly taken: Fence;
  /** What the life knows of its lease by its own clock. */
  readonly lease: Lease;
  /** The life alone cannot reach the database until then. */
  cutUntil = -Infinity;
  readonly #database: FleetDatabase;
  readonly #life: Life;
  readonly #parts: Parts;
  /** The commit that waits for its answer. */
  #sent: Commit | undefined;

  /** Takes the shard for a life. */
  constructor(database: FleetDatabase, life: Life, parts: Parts) {
    this.#database = database;
    this.#life = life;
    this.#parts = parts;
    this.lease = new Lease(life.clock, database.leaseMs, life.clock.monotonic());
    this.taken = database.take().taken;
    this.#prolong();
  }

  /** The fence row has the lease of this life. */
  get isOwner(): boolean {
    return this.#database.fence.lease === this.taken.lease;
  }

  /** Renews the lease until the signal, as the turns of a member do. @throws WaybillError `lease_lost` */
  async renew(stop: AbortSignal): Promise<never> {
    const { clock } = this.#life;
    for (;;) {
      await clock.sleep(this.#database.leaseMs / 5, stop);
      const asked = clock.monotonic();
      try {
        await this.#travel();
      } catch {
        continue;
      }
      if (!this.isOwner) throw new WaybillError('lease_lost', 'the lease was not renewed');
      this.#prolong();
      // The answer may be lost.
      if (!this.#parts.chance.is(0.02)) this.lease.renewed(asked);
    }
  }

  async *load(): AsyncGenerator<readonly [string, readonly Row[]]> {
    for await (const part of this.#database.load()) {
      await this.#life.effect('load');
      yield part;
    }
  }

  async segments(seq: number): Promise<readonly SegmentColumns[]> {
    await this.#travel();
    return this.#database.segments(seq);
  }

  async seen(source: number, buckets: readonly number[]): Promise<readonly SeenColumns[]> {
    await this.#travel();
    return this.#database.seen(source, buckets);
  }

  done({ lost }: Commit): void {
    if (!lost) return;
    this.#database.repairs.push([lost.first, lost.last]);
    this.#parts.result.repaired();
  }

  owned(signal: AbortSignal): Promise<void> {
    return this.lease.owned(signal);
  }

  async fence(): Promise<Fence> {
    await this.#travel();
    return this.#database.fence;
  }

  async commit(commit: Commit): Promise<boolean> {
    this.#sent = commit;
    try {
      return await this.#commit(commit);
    } finally {
      this.#sent = undefined;
    }
  }

  /** The life stops now: the database may receive the commit that was sent at any time, also when another life has the shard. */
  leaveBehind(mostMs: number): void {
    const { chance, world } = this.#parts;
    const commit = this.#sent;
    if (commit && chance.is(0.7)) world.after(chance.between(0, mostMs), () => this.#carryOut(commit));
  }

  async #commit(commit: Commit): Promise<boolean> {
    const { chance, world, result } = this.#parts;
    await this.#life.effect('commit sent');
    await this.#travel();
    const fate = result.isCalm() ? 0.5 : chance.next();
    if (fate > 0.98 && this.isOwner) this.#database.failOver(1 + Math.floor(chance.between(0, 5)));
    if (fate < 0.01) throw unreachable();
    if (fate < 0.02) {
      // The client gives up, and the request reaches the database afterwards: when this life may have ended, and another one begun.
      const most = chance.is(0.3) ? 3 * this.#database.leaseMs : 5_000;
      world.after(chance.between(10, most), () => this.#carryOut(commit));
      throw unreachable();
    }
    if (fate < 0.022) this.#database.awayUntil = world.ms + chance.between(1_000, 600_000);
    const isDone = this.#carryOut(commit);
    if (fate < 0.06) {
      await this.#life.effect('answer lost');
      throw unreachable();
    }
    await this.#life.effect('commit answered');
    return isDone;
  }

  async #travel(): Promise<void> {
    const { chance, world } = this.#parts;
    await this.#life.clock.sleep(chance.is(0.02) ? chance.between(2, 3_000) : 2, forever);
    if (this.#parts.result.isCalm() || world.ms >= Math.max(this.#database.awayUntil, this.cutUntil)) return;
    await this.#life.clock.sleep(1_000, forever);
    throw unreachable();
  }

  #carryOut(commit: Commit): boolean {
    const isDone = this.#database.carryOut(commit);
    if (isDone && !this.isOwner) this.#parts.result.fault(`a former owner of the shard has made commit ${commit.number}`);
    if (isDone) this.#prolong();
    // A late attempt of a lost commit: the sinks and the oracle know more.
    if (isDone && this.#database.lost === 0) this.#parts.result.committed(this.#database.rows);
    return isDone;
  }

  #prolong(): void {
    this.#database.expires = this.#parts.world.ms + this.#database.leaseMs;
  }
}
