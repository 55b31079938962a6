/** Read-only states: of one process in its directory, or of a fleet as a copy of each shard, also with no member alive. */
import type { Database } from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import { copyOf } from '../journal/replica/load.ts';
import { openReadOnly } from '../journal/state.ts';
import { poolOf, shardNumbers, type DatabaseAccess, type Pool } from './database.ts';
import { Shard } from './shard.ts';

export interface OpenState {
  readonly db: Database;
  /** The shard, in a fleet. */
  readonly shard?: number;
}

const databaseMs = 30_000;

/** Connects to the database of a fleet. */
export async function withDatabase<Result>(access: DatabaseAccess, work: (pool: Pool) => Promise<Result>): Promise<Result> {
  const pool = poolOf(access, databaseMs);
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}

/** Opens the state of a directory, also during a run of the daemon, or a copy of each shard. @throws WaybillError `state_missing` */
export async function openStates(place: string | DatabaseAccess): Promise<{ readonly states: readonly OpenState[] } & Disposable> {
  using opened = new DisposableStack();
  const close = (db: Database): unknown => db.close();
  const states: OpenState[] = [];
  if (typeof place === 'string') states.push({ db: opened.adopt(openReadOnly(place), close) });
  else {
    await withDatabase(place, async (pool) => {
      for (const shard of await shardNumbers(pool)) {
        const db = await copyOf(Shard.reader(pool, shard));
        if (db) states.push({ db: opened.adopt(db, close), shard });
      }
    });
    if (states.length === 0) throw new WaybillError('state_missing', 'cannot find a state in the database of the fleet; has a member run?');
  }
  const kept = opened.move();
  return { states, [Symbol.dispose]: () => kept.dispose() };
}
