/** Fills the working copy of a shard from the database when its owner takes it over. */
import Database from 'better-sqlite3';
import { schemaOfState } from '../schema.ts';
import { tablesOf } from './capture.ts';
import type { ShardDatabase } from './shard-database.ts';

/** Replaces the rows of `db`, a new state, with the rows of the database. @returns false if the database has no journal: `db` is unchanged */
export async function loadRows(db: Database.Database, database: Pick<ShardDatabase, 'load'>): Promise<boolean> {
  const tables = new Map(tablesOf(db).map((table) => [table.name, table]));
  let isLoaded = false;
  db.exec('BEGIN IMMEDIATE');
  for await (const [name, rows] of database.load()) {
    const table = tables.get(name);
    if (rows.length === 0 || !table) continue;
    if (!isLoaded) for (const each of tables.keys()) db.exec(`DELETE FROM ${each}`);
    isLoaded = true;
    const columns = table.columns.map((column) => column.name);
    const insert = db.prepare(`INSERT INTO ${name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`);
    for (const row of rows) insert.run(...columns.map((column) => row[column]));
  }
  db.exec('COMMIT');
  return isLoaded;
}

/** A copy of a shard in memory for a reader, without the large columns. @returns undefined if the shard has no journal yet */
export async function copyOf(database: Pick<ShardDatabase, 'load'>): Promise<Database.Database | undefined> {
  const db = new Database(':memory:');
  db.exec(schemaOfState());
  if (await loadRows(db, database)) return db;
  db.close();
  return undefined;
}
