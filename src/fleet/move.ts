/**
 * Moves a journal between the state of one process and a shard. One transaction of the database decides who owns it: the fence row stays locked
 * until all rows are there, or gone. Before its COMMIT the side that loses the journal still has it; after it, the other side. A move that was
 * cut off leaves the id of its transaction, so that the same command completes it, and does nothing twice.
 */
import { randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Database } from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import { sync, verify } from '../journal/backup.ts';
import { rowsOf, writeFile } from '../journal/move.ts';
import { journalId, keepPlaceAtSinks, moveOf, placeAtSinks, storeMove } from '../journal/schema.ts';
import { openState, readState } from '../journal/state.ts';
import type { Clock } from '../model/time.ts';
import { asked, type Pool } from './database.ts';
import type { Taken } from './lease.ts';
import { release, requested } from './requests.ts';
import { Shard } from './shard.ts';
import { storedTables } from './tables.ts';

const pollMs = 100;

interface MoveOptions {
  readonly pool: Pool;
  readonly shard: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

interface Moved {
  readonly journal: string;
  /** The last entry. */
  readonly head: number;
}

interface ImportOptions extends MoveOptions {
  readonly version: string;
  /** The address of the database, without a password. */
  readonly database: string;
  /** See placeOf. */
  readonly placeOf: (source: string) => string;
}

/** Moves the state of a stopped process into a shard without records. @throws WaybillError `state_locked`, `state_moved`, `usage` */
export async function importState(directory: string, options: ImportOptions): Promise<Moved> {
  const { shard, version, database, placeOf, clock, signal } = options;
  const opening = { maxSize: Number.MAX_SAFE_INTEGER, lockWait: 0, version, expectState: true, isMoving: true };
  const { db, lock } = await openState(directory, opening, clock, signal);
  try {
    const refuse = (reason: string): WaybillError =>
      new WaybillError('usage', `cannot import "${directory}" into shard ${shard}: ${reason}`);
    const begun = moveOf(db);
    if (begun && (begun.database !== database || begun.shard !== shard))
      throw refuse(`its move to shard ${begun.shard} of ${begun.database} has begun`);
    const place = placeAtSinks(db) ?? 'none';
    const needed = place === 'none' ? 0 : place;
    const isBound = place !== 'none' || db.prepare("SELECT 1 FROM sinks WHERE type = 'kafka' AND state <> 'retired'").get() !== undefined;
    if (shard !== needed && isBound) throw refuse(`its positions at the sinks belong to shard ${needed}; pass --shard ${needed}`);
    const sources = db.prepare<[], { id: string }>('SELECT id FROM sources').all();
    const places = sources.map(({ id }) => placeOf(id));
    const id = begun?.id ?? randomUUID();
    await holding(options, { id, begun: [id], owner: 'waybill fleet import' }, async (connection, taken) => {
      const [used] = await rowsIn<{ sources: number; entries: number }>(
        connection,
        `SELECT (SELECT count(*) FROM waybill.sources WHERE shard = $1) AS sources, (SELECT coalesce(sum(seq), 0)::bigint FROM waybill.head WHERE shard = $1) AS entries`,
        [shard],
      );
      if (used?.sources !== 0 || used.entries !== 0) throw refuse('the shard has a source or records already');
      await placed(connection, places, shard, refuse);
      await emptied(connection, shard);
      keepPlaceAtSinks(db, 'none');
      const target = Shard.within(connection, taken);
      let { commits } = taken;
      for (const changes of rowsOf(db)) {
        signal.throwIfAborted();
        const number = commits + 1;
        if (!(await target.commit({ fence: { lease: id, commits }, number, changes })))
          throw new WaybillError('internal_error', `commit ${number} of shard ${shard} was refused in its own transaction`);
        commits = number;
      }
      await rowsIn(connection, 'UPDATE waybill.journals SET lease = NULL, owner = NULL, expires = NULL WHERE shard = $1', [shard]);
      // From here on the database says who owns the journal.
      storeMove(db, { database, shard, id });
    });
    return headOf(db);
  } finally {
    db.close();
    lock.close();
  }
}

/** The sources belong to the shard from now on. @throws the error of `refuse` if one of them belongs to another */
async function placed(connection: Pool, places: readonly string[], shard: number, refuse: (reason: string) => WaybillError): Promise<void> {
  const sql = `INSERT INTO waybill.placements (place, shard) SELECT DISTINCT unnest($1::text[]), $2::int ON CONFLICT DO NOTHING`;
  await rowsIn(connection, sql, [places, shard]);
  const [other] = await rowsIn<{ place: string; shard: number }>(
    connection,
    'SELECT place, shard FROM waybill.placements WHERE place = ANY($1::text[]) AND shard <> $2',
    [places, shard],
  );
  if (other) throw refuse(`"${other.place}" belongs to shard ${other.shard} already`);
}

/** Moves a shard to a new directory, which one process can open. No member serves the shard afterwards. @throws WaybillError `usage`, `backup_failed` */
export async function exportShard(to: string, options: MoveOptions): Promise<Moved> {
  const { pool, shard, clock, signal } = options;
  const file = join(to, 'waybill.db');
  const partial = (id: string): string => `${file}.${id}`;
  const names = existsSync(to) ? readdirSync(to) : [];
  const begun = names.flatMap((name) => /^waybill\.db\.([0-9a-f-]{36})$/.exec(name)?.[1] ?? []);
  const owner = `exported to ${resolve(to)}`;
  const isComplete = names.includes('waybill.db') && (await isOwnedBy(pool, shard, owner));
  if (isComplete) return readState(to, headOf);
  if (begun.length < names.length) throw new WaybillError('usage', `cannot export to "${to}": it is not empty`);
  mkdirSync(to, { recursive: true, mode: 0o700 });
  const id = randomUUID();
  const done = await holding(options, { id, begun, owner }, async (connection) => {
    for (const each of begun) rmSync(partial(each));
    try {
      // Nobody can change the rows that another connection reads meanwhile.
      await writeFile(partial(id), shard, Shard.reader(pool, shard, true));
      const [head] = await rowsIn<{ seq: number; chain: Buffer; journal: string }>(
        connection,
        "SELECT h.seq, h.chain, m.value AS journal FROM waybill.head AS h JOIN waybill.meta AS m USING (shard) WHERE shard = $1 AND m.key = 'journal'",
        [shard],
      );
      if (!head) throw new WaybillError('internal_error', `shard ${shard} has no head`);
      await verify(partial(id), { ...head, journal: String(JSON.parse(head.journal)) }, { clock, signal });
      sync(partial(id));
      sync(to);
      sync(dirname(resolve(to)));
    } catch (thrown) {
      rmSync(partial(id), { force: true });
      throw thrown;
    }
    // The places of its sources stay: no other shard collects them.
    await emptied(connection, shard);
    await rowsIn(connection, "UPDATE waybill.journals SET expires = 'infinity' WHERE shard = $1", [shard]);
  });
  renameSync(partial(done), file);
  sync(to);
  return readState(to, headOf);
}

interface Held {
  /** The random id of this move. */
  readonly id: string;
  /** The ids of earlier attempts whose COMMIT had no answer. */
  readonly begun: readonly string[];
  /** The owner that `waybill fleet list` shows. */
  readonly owner: string;
}

/**
 * Runs `work` in a transaction that holds the fence row of a shard: no member can take it or commit meanwhile. A member that owns it is asked to
 * give it up. @returns the id of the attempt that was committed: an earlier one, or this one
 */
async function holding(
  { pool, shard, clock, signal }: MoveOptions,
  { id, begun, owner }: Held,
  work: (connection: Pool, taken: Taken) => Promise<void>,
): Promise<string> {
  const client = await asked(() => pool.connect());
  // Only queries go through this connection.
  const connection = client as unknown as Pool;
  let isEnded = false;
  try {
    for (;;) {
      await rowsIn(connection, 'BEGIN');
      // Longer than the verification of a journal. The server gives the shard back if this machine is gone.
      await rowsIn(connection, "SET LOCAL idle_in_transaction_session_timeout = '1h'");
      // Waits for the end of an earlier attempt, whose COMMIT may still be under way.
      const sql = `SELECT epoch, commits, owner, expires = 'infinity' AS exported, lease IS NOT NULL AND expires > clock_timestamp() AS owned
        FROM waybill.journals WHERE shard = $1 FOR UPDATE`;
      const [row] = await rowsIn<FenceRow>(connection, sql, [shard]);
      if (!row) throw new WaybillError('usage', `cannot find shard ${shard} in the database`);
      const [earlier] = await rowsIn<{ lease: string }>(connection, 'SELECT lease FROM waybill.takes WHERE lease = ANY($1::uuid[])', [
        begun,
      ]);
      if (earlier) {
        await rowsIn(connection, 'ROLLBACK');
        isEnded = true;
        return earlier.lease;
      }
      if (row.owned && row.exported !== true) {
        await rowsIn(connection, 'ROLLBACK');
        await requested(pool, [shard], release, clock, signal);
        while (await isOwnedBy(pool, shard, row.owner)) await clock.sleep(pollMs, signal);
        continue;
      }
      const taken = { shard, epoch: row.epoch + 1, lease: id, commits: row.commits };
      await rowsIn(connection, 'UPDATE waybill.journals SET epoch = epoch + 1, lease = $2, owner = $3 WHERE shard = $1', [
        shard,
        id,
        owner,
      ]);
      const noted = 'INSERT INTO waybill.takes (shard, epoch, owner, lease, commits, is_move) VALUES ($1, $2, $3, $4, $5, true)';
      await rowsIn(connection, noted, [shard, taken.epoch, owner, id, row.commits]);
      await work(connection, taken);
      await rowsIn(connection, 'COMMIT');
      isEnded = true;
      return id;
    }
  } finally {
    // An open transaction ends with its connection.
    client.release(!isEnded);
  }
}

interface FenceRow {
  readonly epoch: number;
  readonly commits: number;
  readonly owner: string | null;
  readonly exported: boolean | null;
  readonly owned: boolean | null;
}

async function isOwnedBy(pool: Pool, shard: number, owner: string | null): Promise<boolean> {
  const sql = 'SELECT 1 FROM waybill.journals WHERE shard = $1 AND owner = $2 AND expires > clock_timestamp()';
  return (await rowsIn(pool, sql, [shard, owner])).length > 0;
}

async function emptied(connection: Pool, shard: number): Promise<void> {
  for (const name of [...storedTables().map((table) => table.name), 'statuses'])
    await rowsIn(connection, `DELETE FROM waybill.${name} WHERE shard = $1`, [shard]);
}

/** A query that may take long: it reads or deletes a whole journal. */
async function rowsIn<Row extends object>(connection: Pool, text: string, values: readonly unknown[] = []): Promise<Row[]> {
  const query = { text, values: [...values], query_timeout: 3_600_000 };
  return (await asked(() => connection.query<Row>(query))).rows;
}

function headOf(db: Database): Moved {
  const { seq } = db.prepare<[], { seq: number }>('SELECT seq FROM head').get() ?? { seq: 0 };
  return { journal: journalId(db), head: seq };
}
