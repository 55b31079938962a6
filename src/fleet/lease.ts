/** Taking, renewing and giving up shards. Only the clock of PostgreSQL decides when a lease ends. */
import { asked, type Pool, type Taken } from './shard.ts';

/** Takes up to `most` shards that nobody owns. A shard that an unanswered request took for the same member counts as free. */
export async function take(pool: Pool, owner: string, held: readonly Taken[], most: number, leaseMs: number): Promise<Taken[]> {
  const sql = `WITH free AS (SELECT shard FROM waybill.journals
      WHERE lease IS NULL OR expires < clock_timestamp() OR (owner = $2 AND lease <> ALL($4::uuid[]))
      ORDER BY random() LIMIT $1 FOR UPDATE SKIP LOCKED),
    taken AS (UPDATE waybill.journals AS j SET epoch = epoch + 1, lease = gen_random_uuid(), owner = $2,
        expires = clock_timestamp() + $3::bigint * interval '1 ms'
      FROM free WHERE j.shard = free.shard RETURNING j.shard, j.epoch, j.lease, j.commits),
    noted AS (INSERT INTO waybill.takes (shard, epoch, owner, lease, commits) SELECT shard, epoch, $2, lease, commits FROM taken)
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

/** Gives a shard up after its last commit. */
export async function release(pool: Pool, { shard, lease }: Taken): Promise<void> {
  const sql = 'UPDATE waybill.journals SET lease = NULL, owner = NULL, expires = NULL WHERE shard = $1 AND lease = $2';
  await asked(() => pool.query(sql, [shard, lease]));
}
