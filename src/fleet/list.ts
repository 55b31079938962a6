/** Members and shards for `waybill fleet list`, read from the database. */
import { asked, isServed, type Pool } from './database.ts';

interface ListedMember {
  readonly name: string;
  readonly release: string;
  readonly started: Date;
  /** Its last heartbeat. */
  readonly seen: Date;
}

interface ListedShard {
  readonly shard: number;
  /** The member whose lease is valid. For an exported shard, where it is. */
  readonly owner: string | null;
  readonly isExported: boolean;
  /** The number of its owners so far. */
  readonly epoch: number;
  readonly commits: number;
  /** Size of its records in the database. */
  readonly bytes: number;
  readonly sources: readonly string[];
}

/** @throws WaybillError `database_unreachable`, `database_refused` */
export async function fleetList(
  pool: Pool,
): Promise<{ readonly members: readonly ListedMember[]; readonly shards: readonly ListedShard[] }> {
  const members = await asked(() => pool.query<ListedMember>('SELECT name, release, started, seen FROM waybill.members ORDER BY name'));
  // Sizes come from the headers: PostgreSQL reads no body.
  const sql = `SELECT j.shard, CASE WHEN j.expires > clock_timestamp() THEN j.owner END AS owner, NOT (j.${isServed}) AS "isExported", j.epoch, j.commits,
      coalesce((SELECT sum(octet_length(s.body) + octet_length(s.uids) + octet_length(s.ends)) FROM waybill.segments AS s WHERE s.shard = j.shard), 0)::bigint AS bytes,
      ARRAY(SELECT s.id FROM waybill.sources AS s WHERE s.shard = j.shard ORDER BY s.id) AS sources
    FROM waybill.journals AS j ORDER BY j.shard`;
  const shards = await asked(() => pool.query<ListedShard>(sql));
  return { members: members.rows, shards: shards.rows };
}

/** The shards that a member owns. */
export async function shardsOwnedBy(pool: Pool, member: string): Promise<number[]> {
  const sql = 'SELECT shard FROM waybill.journals WHERE owner = $1 AND expires > clock_timestamp() ORDER BY shard';
  return (await asked(() => pool.query<{ shard: number }>(sql, [member]))).rows.map(({ shard }) => shard);
}
