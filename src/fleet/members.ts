/**
 * A process of a fleet. It takes its part of the shards, renews their leases, takes over the shards of a dead member, and gives up its own
 * when it stops or another member has fewer.
 */
import { codeOf, WaybillError } from '../errors/errors.ts';
import type { MemberSnapshot } from '../model/snapshot.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { asked, isServed, type Pool } from './database.ts';
import { firstLost, Lease, release, renew, rollbackNote, take, type Taken } from './lease.ts';
import { Shard } from './shard.ts';

/** Shards that a turn takes at most: each is loaded at once. */
const mostTakes = 4;
/** Turns with too many shards before one is given up: the number of members may be wrong for a moment. */
const turnsAbove = 2;

/** How long a member that gave a shard up for an operator takes none: others take it, or a command that moves it. */
const restMs = 60_000;

/** A shard whose journal is open, or opening. */
export interface OpenShard {
  /** Rejects if the shard fails. */
  readonly failed: Promise<never>;
  /** Ends the loops, commits what is stored unless the lease is lost, and closes the journal. Never rejects. */
  end(): Promise<void>;
}

interface Held {
  readonly taken: Taken;
  readonly lease: Lease;
  readonly shard: Shard;
  readonly open: OpenShard;
  /** Set once the shard is ending. */
  ended?: Promise<void>;
}

interface MemberOptions {
  readonly pool: Pool;
  /** Different for each process and each start. */
  readonly name: string;
  readonly release: string;
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Pick<Meters, 'databaseCommit' | 'leaseLost'>;
  /** Opens the journal of a shard and starts its loops, at once: what fails later is in `failed`. */
  readonly open: (shard: Shard) => OpenShard;
}

type Counts = Omit<NonNullable<MemberSnapshot['counts']>, 'at'>;

export class Member {
  readonly #options: MemberOptions;
  readonly #held = new Set<Held>();
  /** Ended shards whose commits the database may have lost, with the event to write if it lost none. */
  readonly #doubted = new Map<Held, 'shard.lost' | undefined>();
  #turnsAbove = 0;
  #restsUntil = -Infinity;
  #isReachable = true;
  /** The answer of the database in the last turn. */
  counts: MemberSnapshot['counts'];

  constructor(options: MemberOptions) {
    this.#options = options;
  }

  /** The shards that this member owns or is opening. */
  get shards(): number[] {
    return [...this.#held].map(({ taken }) => taken.shard).toSorted((one, other) => one - other);
  }

  /** Takes part until the signal, then gives every shard up. Each `end` of a shard has its own limit of time. */
  async run(signal: AbortSignal): Promise<void> {
    const { leaseMs, clock, pool, name } = this.#options;
    const over = new AbortController();
    const turns = async (stop: AbortSignal, isStopping: boolean): Promise<void> => {
      while (!stop.aborted) {
        await this.#tried(() => this.turn(isStopping));
        await clock.sleep(leaseMs / 5, stop).catch(() => undefined);
      }
    };
    await turns(signal, false);
    // The leases stay valid until each shard has ended.
    const last = turns(over.signal, true);
    await Promise.all([...this.#held].map((held) => this.#end(held)));
    over.abort();
    await last;
    await this.#tried(() => asked(() => pool.query('DELETE FROM waybill.members WHERE name = $1', [name])));
  }

  /** One turn: says that this member lives, renews its leases, and takes or gives up shards. @throws WaybillError `database_unreachable` */
  async turn(isStopping: boolean): Promise<void> {
    const { pool, leaseMs, clock } = this.#options;
    const began = clock.monotonic();
    const { members, shards, free } = (this.counts = { ...(await this.#beat()), at: clock.now() * 1_000 });
    const held = [...this.#held];
    const kept = new Set(
      await renew(
        pool,
        held.map(({ taken }) => taken),
        leaseMs,
      ),
    );
    for (const each of held) {
      if (kept.has(each.taken.shard)) each.lease.renewed(began);
      else this.#lose(each);
    }
    await this.#judge();
    if (isStopping) return;
    const most = Math.ceil(shards / Math.max(1, members));
    if (this.#held.size < most && free > 0 && clock.monotonic() >= this.#restsUntil)
      await this.#take(Math.min(mostTakes, most - this.#held.size));
    this.#turnsAbove = this.#held.size > most && free === 0 ? this.#turnsAbove + 1 : 0;
    if (this.#turnsAbove < turnsAbove) return;
    this.#turnsAbove = 0;
    const given = held.find(({ ended }) => ended === undefined);
    if (given) void this.#end(given);
  }

  /** Ends a shard for an operator, after its last commit. */
  giveUp(shard: Shard): void {
    this.#restsUntil = this.#options.clock.monotonic() + restMs;
    const held = [...this.#held].find((each) => each.shard === shard);
    if (held) void this.#end(held);
  }

  /**
   * A member counts from its second heartbeat on: a process that restarts again and again moves no shard. It counts for a lease after its last
   * one, as its shards do: while a dead member counts, the others have their parts and take none of its shards.
   */
  async #beat(): Promise<Counts> {
    const { pool, name, release: version, leaseMs } = this.#options;
    const beat = `INSERT INTO waybill.members (name, release, started, seen) VALUES ($1, $2, clock_timestamp(), clock_timestamp())
      ON CONFLICT (name) DO UPDATE SET seen = clock_timestamp()`;
    await asked(() => pool.query(beat, [name, version]));
    const sql = `SELECT (SELECT count(*) FROM waybill.members WHERE seen > started AND seen > clock_timestamp() - $1::bigint * interval '1 ms') AS members,
      count(*) AS shards, count(*) FILTER (WHERE lease IS NULL OR expires < clock_timestamp()) AS free, coalesce(sum(epoch), 0)::bigint AS takes,
      (SELECT count(*) FROM waybill.rollbacks WHERE repaired) AS repaired, (SELECT count(*) FROM waybill.rollbacks WHERE NOT repaired) AS lost
      FROM waybill.journals WHERE ${isServed}`;
    const { rows } = await asked(() => pool.query<Counts>(sql, [leaseMs]));
    const [found] = rows;
    if (!found) throw new WaybillError('internal_error', 'the database returned no counts');
    return found;
  }

  async #take(most: number): Promise<void> {
    const { pool, name, leaseMs, clock, log, meters, open } = this.#options;
    const began = clock.monotonic();
    const own = [...this.#held].map(({ taken }) => taken);
    for (const taken of await take(pool, name, own, most, leaseMs)) {
      const lease = new Lease(clock, leaseMs, began);
      const shard = new Shard(pool, taken, leaseMs, lease, { log, meters });
      const held: Held = { taken, lease, shard, open: open(shard) };
      this.#held.add(held);
      log.write('shard.taken', { shard: taken.shard, epoch: taken.epoch });
      held.open.failed.catch((error: unknown) => this.#failed(held, error));
    }
  }

  /** Another member may take the shard again: what failed here may work there, or after the state was loaded again. */
  #failed(held: Held, error: unknown): void {
    if (held.ended) return;
    if (codeOf(error) === 'lease_lost') {
      this.#lose(held);
    } else {
      const { shard, epoch } = held.taken;
      this.#options.log.write('shard.failed', { shard, epoch, code: codeOf(error), error });
      if (codeOf(error) === 'database_rolled_back') this.#doubted.set(held, undefined);
      void this.#end(held);
    }
    void this.#tried(() => this.#judge());
  }

  #lose(held: Held): void {
    if (held.ended === undefined) {
      this.#doubted.set(held, 'shard.lost');
      this.#options.meters.leaseLost();
    }
    held.lease.lose();
    void this.#end(held);
  }

  /** Finds out which ended shards the database has rolled back, and keeps that in the database. */
  async #judge(): Promise<void> {
    const { pool, log } = this.#options;
    for (const [held, event] of this.#doubted) {
      const { shard, epoch } = held.taken;
      const { last } = held.shard;
      const first = await firstLost(pool, held.taken, last);
      if (first !== undefined) await asked(() => pool.query(rollbackNote('VALUES ($1, $2, $3, $4, false)'), [shard, epoch, first, last]));
      // Another call may have done the same.
      if (!this.#doubted.delete(held)) continue;
      if (first !== undefined) log.write('shard.rolled_back', { shard, epoch, code: 'database_rolled_back', first, last });
      else if (event) log.write(event, { shard, epoch });
    }
  }

  #end(held: Held): Promise<void> {
    return (held.ended ??= this.#ending(held));
  }

  async #ending(held: Held): Promise<void> {
    const { taken, open } = held;
    await open.end();
    // Without an answer, the lease ends by its time.
    await this.#tried(() => release(this.#options.pool, taken));
    this.#held.delete(held);
    this.#options.log.write('shard.released', { shard: taken.shard, epoch: taken.epoch });
  }

  /** The database may be away for long: the leases then end, or continue when it is back. */
  async #tried(act: () => Promise<unknown>): Promise<void> {
    try {
      await act();
      this.#isReachable = true;
    } catch (error) {
      if (codeOf(error) !== 'database_unreachable') throw error;
      if (this.#isReachable) this.#options.log.write('fleet.database_away', { error });
      this.#isReachable = false;
    }
  }
}
