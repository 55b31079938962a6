/** In which shard a source is collected. The first member that sees it decides, and it stays there. */
import { createHash } from 'node:crypto';
import { asked, type Pool } from './database.ts';

/** Sources of a group share a budget, which holds within one process only. */
export function placeOf({
  id,
  requests: { group },
}: {
  readonly id: string;
  readonly requests: { readonly group?: string | undefined };
}): string {
  return group === undefined ? id : `group/${group}`;
}

/**
 * The shards of places: of the id of a source, or of the group of sources that share a budget of requests. A budget holds within one process,
 * so a group has one place.
 */
export async function shardsOf(pool: Pool, places: readonly string[]): Promise<Map<string, number>> {
  const hashes = places.map((place) => createHash('sha256').update(place).digest().readUInt32BE());
  // In one order: two members would wait for each other's rows.
  const sql = `INSERT INTO waybill.placements (place, shard)
    SELECT place, hash % (SELECT count(*) FROM waybill.journals) FROM unnest($1::text[], $2::bigint[]) AS given(place, hash)
    ORDER BY place ON CONFLICT DO NOTHING`;
  await asked(() => pool.query(sql, [places, hashes]));
  const found = 'SELECT place, shard FROM waybill.placements WHERE place = ANY($1::text[])';
  const { rows } = await asked(() => pool.query<{ place: string; shard: number }>(found, [places]));
  return new Map(rows.map(({ place, shard }) => [place, shard]));
}
