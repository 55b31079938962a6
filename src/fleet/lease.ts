/** Taking, renewing and giving up shards. Only the clock of PostgreSQL decides when a lease ends. */
import { WaybillError } from '../errors/errors.ts';
import type { Fence } from '../journal/replica/shard-database.ts';
import type { Clock } from '../model/time.ts';
import { orAborted } from '../time/deadline.ts';
import { asked, type Pool } from './database.ts';

/** A lease is trusted for less than its time, ms: a request that is sent at the end of it arrives later. */
const marginMs = 2_000;
/** Take-overs of a shard that the database keeps: a process that was stopped for longer cannot tell whether the database lost its commits. */
const keptTakes = 1_000;

/** A shard that this process has taken. */
export interface Taken extends Fence {
  readonly shard: number;
  readonly epoch: number;
}

/** How long this process surely owns a shard, by its own clock: a process that was stopped finds that its time is over. */
export class Lease {
  readonly #clock: Clock;
  readonly #leaseMs: number;
  #validUntil = -Infinity;
  #renewal = Promise.withResolvers<undefined>();

  /** @param asked  when it was taken: the monotonic time before the request */
  constructor(clock: Clock, leaseMs: number, asked: number) {
    this.#clock = clock;
    this.#leaseMs = leaseMs;
    this.renewed(asked);
  }

  get isValid(): boolean {
    return this.#clock.monotonic() < this.#validUntil;
  }

  /** @param asked  the monotonic time before the request that renewed it */
  renewed(asked: number): void {
    this.#validUntil = asked + this.#leaseMs - Math.min(marginMs, this.#leaseMs / 4);
    this.#renewal.resolve(undefined);
    this.#renewal = Promise.withResolvers();
    this.#renewal.promise.catch(() => undefined);
  }

  /** Another member has the shard, or may take it. */
  lose(): void {
    this.#validUntil = -Infinity;
    this.#renewal.reject(new WaybillError('lease_lost', 'this process no longer owns the shard'));
  }

  /** See ShardDatabase.owned. */
  async owned(signal: AbortSignal): Promise<void> {
    while (!this.isValid) await orAborted(this.#renewal.promise, signal);
  }
}

/** Takes up to `most` shards that nobody owns. A shard that an unanswered request took for the same member counts as free. */
export async function take(pool: Pool, owner: string, held: readonly Taken[], most: number, leaseMs: number): Promise<Taken[]> {
  const sql = /* mutant: free-shards */ `WITH free AS (SELECT shard FROM waybill.journals
      WHERE lease IS NULL OR expires < clock_timestamp() OR (owner = $2 AND lease <> ALL($4::uuid[]))
      ORDER BY random() LIMIT $1 FOR UPDATE SKIP LOCKED),
    taken AS (UPDATE waybill.journals AS j SET epoch = epoch + 1, lease = gen_random_uuid(), owner = $2,
        expires = clock_timestamp() + $3::bigint * interval '1 ms'
      FROM free WHERE j.shard = free.shard RETURNING j.shard, j.epoch, j.lease, j.commits),
    noted AS (INSERT INTO waybill.takes (shard, epoch, owner, lease, commits) SELECT shard, epoch, $2, lease, commits FROM taken),
    pruned AS (DELETE FROM waybill.takes AS t USING taken WHERE t.shard = taken.shard AND t.epoch <= taken.epoch - ${keptTakes} AND NOT t.is_move)
    SELECT shard, epoch, lease, commits FROM taken`;
  const { rows } = await asked(() => pool.query<Taken>(sql, [most, owner, leaseMs, held.map(({ lease }) => lease)]));
  return rows;
}

/** Renews leases. @returns the shards that are still owned; the others are lost */
export async function renew(pool: Pool, held: readonly Taken[], leaseMs: number): Promise<number[]> {
  const sql = `UPDATE waybill.journals AS j SET expires = clock_timestamp() + $1::bigint * interval '1 ms'
    FROM unnest($2::int[], $3::uuid[]) AS m(shard, lease) WHERE j.shard = m.shard AND j.lease = m.lease RETURNING j.shard`;
  const given = [leaseMs, held.map(({ shard }) => shard), held.map(({ lease }) => lease)];
  const { rows } = await asked(() => pool.query<{ shard: number }>(sql, given));
  return rows.map(({ shard }) => shard);
}

/**
 * The first commit that the database lost, when another member owns the shard, or could have taken it; undefined if it lost none that is known.
 * @param last  the last commit that the database had carried out
 */
export async function firstLost(pool: Pool, { shard, epoch, lease, commits }: Taken, last: number): Promise<number | undefined> {
  const sql = `SELECT (SELECT count(*) FROM waybill.takes WHERE shard = $1 AND epoch = $2 AND lease = $3) AS own,
    (SELECT commits FROM waybill.takes WHERE shard = $1 AND epoch > $2 ORDER BY epoch LIMIT 1) AS next,
    (SELECT min(epoch) FROM waybill.takes WHERE shard = $1 AND NOT is_move) AS oldest, commits FROM waybill.journals WHERE shard = $1`;
  interface Found {
    readonly own: number;
    readonly next: number | null;
    readonly oldest: number | null;
    readonly commits: number;
  }
  const { rows } = await asked(() => pool.query<Found>(sql, [shard, epoch, lease]));
  const [found] = rows;
  if ((found?.oldest ?? 0) > epoch) return undefined;
  // A database that does not know this lease has none of its commits.
  const kept = found?.own === 1 ? (found.next ?? found.commits) : Math.min(commits, found?.commits ?? 0);
  return kept < last ? kept + 1 : undefined;
}

/** Keeps a roll-back for operators: its member may be gone before they look. @param rows  shard, epoch, first, last, repaired, as SQL */
export function rollbackNote(rows: string): string {
  return `INSERT INTO waybill.rollbacks (shard, epoch, first, last, repaired) ${rows} ON CONFLICT DO NOTHING`;
}

/** Gives a shard up after its last commit. */
export async function release(pool: Pool, { shard, lease }: Taken): Promise<void> {
  const sql = 'UPDATE waybill.journals SET lease = NULL, owner = NULL, expires = NULL WHERE shard = $1 AND lease = $2';
  await asked(() => pool.query(sql, [shard, lease]));
}
