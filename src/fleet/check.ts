/** What `waybill check` says about the database of a fleet. Changes no row. */
import { messageOf } from '../errors/errors.ts';
import type { Clock } from '../model/time.ts';
import { asked, type Pool } from './database.ts';

interface DatabaseFinding {
  readonly level: 'ok' | 'warning' | 'error';
  readonly message: string;
}

const oldestVersion = 150_000;
const measuredCommits = 20;
/** Twenty pages a second from one source. */
const slowCommitMs = 50;

interface Facts {
  readonly version: number;
  readonly release: string;
  readonly fsync: string;
  readonly commit: string;
  readonly isolation: string;
  readonly readonly: string;
  readonly names: string;
  readonly standbys: number;
  readonly connections: string;
  readonly autovacuum: string;
  /** Sessions whose transaction has been open for five minutes, as far as this user may see them. */
  readonly long: number;
}

/** @throws WaybillError `database_unreachable`, `database_refused` */
export async function databaseFindings(pool: Pool, clock: Clock): Promise<DatabaseFinding[]> {
  const setting = (name: string): string => `current_setting('${name}')`;
  const sql = `SELECT ${setting('server_version_num')}::int AS version, ${setting('server_version')} AS release, ${setting('fsync')} AS fsync,
    ${setting('synchronous_commit')} AS commit, ${setting('default_transaction_isolation')} AS isolation, ${setting('transaction_read_only')} AS readonly,
    ${setting('synchronous_standby_names')} AS names, (SELECT count(*) FROM pg_stat_replication) AS standbys, ${setting('max_connections')} AS connections,
    ${setting('autovacuum')} AS autovacuum, (SELECT count(*) FROM pg_stat_activity WHERE xact_start < clock_timestamp() - interval '5 min') AS long`;
  const { rows } = await asked(() => pool.query<Facts>(sql));
  const [facts] = rows;
  if (!facts) return [];
  const rights = `SELECT count(*) AS shards, has_table_privilege('waybill.journals', 'UPDATE') AS "mayWrite" FROM waybill.journals`;
  const shards = (await asked(() => pool.query<{ shards: number; mayWrite: boolean }>(rights))).rows[0];
  const refused = [...refusals(facts, shards?.mayWrite ?? false), ...(await refusedTransaction(pool))].map((message): DatabaseFinding => ({
    level: 'error',
    message,
  }));
  if (refused.length > 0) return refused;
  const ms = await commitMs(pool, clock);
  const cost = `a commit takes ${ms.toFixed(1)} ms (the median of ${measuredCommits})`;
  return [
    {
      level: 'ok',
      message: `PostgreSQL ${facts.release}, ${shards?.shards ?? 0} shards, ${facts.connections} connections for all members, 6 of each`,
    },
    { level: 'ok', message: `${cost}: at most ${Math.floor(1_000 / ms)} commits a second, so pages of one source` },
    ...[...warnings(facts), ...slowness(facts, ms)].map((message): DatabaseFinding => ({ level: 'warning', message })),
  ];
}

/** What would make an acknowledged commit untrue, or prevent one. */
function refusals({ version, release, fsync, commit, isolation, readonly }: Facts, mayWrite: boolean): string[] {
  return [
    ...(version < oldestVersion ? [`PostgreSQL ${release} is too old: a fleet needs 15 or later`] : []),
    ...(fsync === 'off' ? ['fsync is off: a crash of the server would lose or damage what it has acknowledged'] : []),
    ...(commit === 'off' ? ['synchronous_commit is off: a crash of the server would lose what it has acknowledged'] : []),
    ...(isolation === 'read committed'
      ? []
      : [`default_transaction_isolation is "${isolation}": set it to "read committed" for this user`]),
    ...(readonly === 'on' ? ['the server is read-only, as a standby is: use the address of the primary'] : []),
    ...(mayWrite ? [] : ['this user may not write: members need the rights that waybill setup postgres gives']),
  ];
}

/** A take-over reads its rows in one transaction of several statements. */
async function refusedTransaction(pool: Pool): Promise<string[]> {
  const client = await asked(() => pool.connect());
  try {
    await client.query('BEGIN');
    await client.query('COMMIT');
    client.release();
    return [];
  } catch (thrown) {
    client.release(true);
    return [`the address refuses a transaction (${messageOf(thrown)}): pgbouncer needs pool_mode = transaction, or session`];
  }
}

/** Where a fail-over loses commits that were acknowledged. */
function warnings({ standbys, names, commit }: Facts): string[] {
  if (standbys === 0) return [];
  const after = 'a fail-over may lose the newest commits; then the shard ends with database_rolled_back, or sinks are blocked';
  if (names === '') return [`synchronous_standby_names is empty, and there is a standby: ${after}`];
  return commit === 'local' ? [`synchronous_commit is "local", so no standby is waited for: ${after}`] : [];
}

/** Causes of slow commits, now or after days: each commit changes the same few rows. */
function slowness({ autovacuum, long }: Facts, ms: number): string[] {
  const stays = 'dead rows of every commit stay in the tables, and commits become slower';
  return [
    ...(ms > slowCommitMs ? ['commits are slow: run the members near the database, and look at its disk and its synchronous standby'] : []),
    ...(autovacuum === 'off' ? [`autovacuum is off: ${stays}`] : []),
    ...(long > 0 ? [`${long} transactions have been open for more than 5 minutes: ${stays}; end them, see pg_stat_activity`] : []),
  ];
}

/** The median time of a commit that writes to the log of the server, and to no table. */
async function commitMs(pool: Pool, clock: Clock): Promise<number> {
  const times: number[] = [];
  for (let i = 0; i < measuredCommits; i += 1) {
    const began = clock.monotonic();
    await asked(() => pool.query("SELECT pg_logical_emit_message(true, 'waybill', 'check')"));
    times.push(clock.monotonic() - began);
  }
  return times.toSorted((one, other) => one - other)[measuredCommits / 2] ?? 0;
}
