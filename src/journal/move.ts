/** A journal as rows, for its move between the file of one process and a shard of a fleet. */
import Database from 'better-sqlite3';
import { makePrivate } from '../disk/lock.ts';
import { WaybillError } from '../errors/errors.ts';
import { pageBytes } from './disk-budget.ts';
import { tablesOf } from './replica/capture.ts';
import { loadRows } from './replica/load.ts';
import type { Change, Row, ShardDatabase } from './replica/shard-database.ts';
import { keepPlaceAtSinks, moveKey, schemaOfState } from './schema.ts';

/** Limits of the rows that are sent at once. */
const mostRows = 2_000;
const mostBytes = 4 * 2 ** 20;

/** All rows of the journal, some at a time. */
export function* rowsOf(db: Database.Database): Generator<Change[]> {
  let part: Change[] = [];
  let bytes = 0;
  for (const { name, key } of tablesOf(db))
    for (const row of db.prepare<[], Row>(`SELECT * FROM ${name}`).iterate()) {
      if (name === 'meta' && row['key'] === moveKey) continue;
      part.push({ table: name, key: key.map((column) => row[column] ?? null), row });
      for (const value of Object.values(row)) bytes += typeof value === 'object' ? (value?.length ?? 0) : 8;
      if (part.length < mostRows && bytes < mostBytes) continue;
      yield part;
      part = [];
      bytes = 0;
    }
  yield part;
}

/** Writes a shard to a new file, which one process can open. @throws WaybillError `state_missing` if the shard has no journal */
export async function writeFile(file: string, shard: number, database: Pick<ShardDatabase, 'load'>): Promise<void> {
  makePrivate(file);
  const db = new Database(file);
  try {
    for (const pragma of [`page_size = ${pageBytes}`, 'auto_vacuum = INCREMENTAL', 'journal_mode = MEMORY', 'synchronous = OFF'])
      db.pragma(pragma);
    db.exec(schemaOfState());
    db.exec('INSERT INTO owner (one, epoch) VALUES (1, 0)');
    if (!(await loadRows(db, database))) throw new WaybillError('state_missing', `cannot export shard ${shard}: it has no journal yet`);
    keepPlaceAtSinks(db, shard);
  } finally {
    db.close();
  }
}
