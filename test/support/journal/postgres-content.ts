/** What PostgreSQL has of a shard, read without the code of the fleet. */
import type Database from 'better-sqlite3';
import type pg from 'pg';
import { contentOf, ModelDatabase } from './model-database.ts';

/** All rows of a shard, as a state in memory. */
export async function shardIn(pool: Pick<pg.Pool, 'query'>, shard: number): Promise<Database.Database> {
  const copy = new ModelDatabase().rows;
  for (const name of Object.keys(contentOf(copy))) {
    const { rows } = await pool.query<Record<string, unknown>>(`SELECT * FROM waybill.${name} WHERE shard = $1`, [shard]);
    for (const row of rows) {
      delete row['shard'];
      delete row['epoch'];
      const stored = { ...row, ...(name === 'meta' && { value: JSON.parse(String(row['value'])) as unknown }) };
      const marks = Object.keys(stored).map((column) => `:${column}`);
      copy.prepare(`INSERT INTO ${name} (${Object.keys(stored).join(', ')}) VALUES (${marks.join(', ')})`).run(stored);
    }
  }
  return copy;
}
