/** One shard in PostgreSQL, under a lease: its commits, and all its rows at a take-over. */
import type { Table } from '../journal/replica/capture.ts';
import type { Change, Commit, Fence, Row, SeenColumns, SegmentColumns, ShardDatabase, Value } from '../journal/replica/shard-database.ts';
import { isMoment } from '../journal/replica/absent.ts';
import { kindRecords } from '../journal/segment.ts';
import type { Log, Meters } from '../model/telemetry.ts';
import { arrayOf, unescaped } from './arrays.ts';
import { asked, type Pool } from './database.ts';
import { rollbackNote, type Lease, type Taken } from './lease.ts';
import { largeColumns, storedTables, typeOf } from './tables.ts';

const rowsOfFetch = 2_000;
/** With the large columns. */
const wholeRowsOfFetch = 50;
/** Limits of the segments that are fetched at once. */
const mostSegments = 32;
const mostBytes = 8 * 2 ** 20;
const forecastSegments = 200;

interface ShardNotes {
  readonly log: Log;
  readonly meters: Pick<Meters, 'databaseCommit'>;
}

export class Shard implements ShardDatabase {
  readonly taken: Taken;
  /** The number of the last commit that the database has confirmed. */
  last: number;
  readonly #pool: Pool;
  readonly #leaseMs: number;
  readonly #lease: Pick<Lease, 'owned'>;
  readonly #notes: ShardNotes;
  readonly #tables = storedTables();
  #isWhole = false;

  /** @param lease  its time at this member */
  constructor(pool: Pool, taken: Taken, leaseMs: number, lease: Pick<Lease, 'owned'>, notes: ShardNotes) {
    this.#pool = pool;
    this.taken = taken;
    this.last = taken.commits;
    this.#leaseMs = leaseMs;
    this.#lease = lease;
    this.#notes = notes;
  }

  done({ lost }: Commit, ms: number): void {
    const { log, meters } = this.#notes;
    const { shard, epoch } = this.taken;
    meters.databaseCommit(ms / 1_000);
    if (lost) log.write('shard.repaired', { shard, epoch, ...lost });
  }

  /** The rows of a shard for a reader, without a lease. @param isWhole  with the large columns */
  static reader(pool: Pool, shard: number, isWhole = false): Pick<ShardDatabase, 'load'> {
    const reader = Shard.within(pool, { shard, epoch: 0, lease: '', commits: 0 });
    reader.#isWhole = isWhole;
    return reader;
  }

  /** A shard whose fence row a transaction holds. */
  static within(connection: Pool, taken: Taken): Shard {
    const nothing = { owned: () => Promise.resolve(), log: { write: () => undefined }, meters: { databaseCommit: () => undefined } };
    return new Shard(connection, taken, 0, nothing, nothing);
  }

  owned(signal: AbortSignal): Promise<void> {
    return this.#lease.owned(signal);
  }

  async *load(): AsyncGenerator<readonly [table: string, rows: readonly Row[]]> {
    const client = await asked(() => this.#pool.connect());
    let isWhole = false;
    try {
      await asked(() => client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'));
      for (const { name, columns, key } of this.#tables) {
        const list = columns.map((column) => this.#loaded(name, column.name)).join(', ');
        const select = `SELECT ${list} FROM waybill.${name} WHERE shard = ${this.taken.shard} ORDER BY ${key.join(', ')}`;
        await asked(() => client.query(`DECLARE loading NO SCROLL CURSOR FOR ${select}`));
        for (;;) {
          const { rows } = await asked(() => client.query<Row>(`FETCH ${this.#isWhole ? wholeRowsOfFetch : rowsOfFetch} FROM loading`));
          if (rows.length === 0) break;
          yield [name, rows.map((row) => decoded(row, columns))];
        }
        await asked(() => client.query('CLOSE loading'));
      }
      await asked(() => client.query('COMMIT'));
      isWhole = true;
    } finally {
      client.release(!isWhole);
    }
  }

  async segments(seq: number): Promise<readonly SegmentColumns[]> {
    // The running sum of the sizes reads no body: PostgreSQL stores its size beside its place.
    const sql = `WITH next AS (SELECT seq, sum(octet_length(body)) OVER (ORDER BY seq) AS size FROM
        (SELECT seq, body FROM waybill.segments WHERE shard = $1 AND seq >= $2 ORDER BY seq LIMIT ${mostSegments}) AS first)
      SELECT s.seq, s.uids, s.ends, s.body FROM next JOIN waybill.segments AS s USING (seq)
      WHERE s.shard = $1 AND (next.size <= ${mostBytes} OR seq = $2) ORDER BY seq`;
    return (await asked(() => this.#pool.query<SegmentColumns>(sql, [this.taken.shard, seq]))).rows;
  }

  async seen(source: number, buckets: readonly number[]): Promise<readonly SeenColumns[]> {
    const sql = 'SELECT source, bucket, seq, uids FROM waybill.seen WHERE shard = $1 AND source = $2 AND bucket = ANY($3::bigint[])';
    const given = [this.taken.shard, source, arrayOf(buckets, 'bigint')];
    return (await asked(() => this.#pool.query<SeenColumns>(sql, given))).rows;
  }

  async commit(commit: Commit): Promise<boolean> {
    const statement = this.#statement(commit);
    const { rows } = await asked(() => this.#pool.query<{ n: number }>(statement));
    const isDone = rows[0]?.n === 1;
    if (isDone) this.last = commit.number;
    return isDone;
  }

  async fence(): Promise<Fence | undefined> {
    const sql = 'SELECT lease, commits FROM waybill.journals WHERE shard = $1';
    const { rows } = await asked(() => this.#pool.query<Fence>(sql, [this.taken.shard]));
    return rows[0];
  }

  /** What a take-over reads of a column: large ones stay in the database, but for moments and for the segments that forecasts measure. */
  #loaded(table: string, column: string): string {
    if (this.#isWhole || !largeColumns.includes(`${table}.${column}`)) return column;
    const newest = `SELECT seq FROM waybill.segments WHERE shard = ${this.taken.shard} AND kind & 255 = ${kindRecords} ORDER BY seq DESC LIMIT ${forecastSegments}`;
    const isWhole = table === 'seen' ? 'bucket < 0' : `${isMoment} OR seq >= (SELECT min(seq) FROM (${newest}) AS newest)`;
    return `CASE WHEN ${isWhole} THEN ${column} ELSE ''::bytea END AS ${column}`;
  }

  /**
   * The whole commit as one statement, which is one transaction and one round trip. Each part takes its rows from `fence`: nothing is written
   * without it. PostgreSQL checks the condition of the fence again after it has waited for the row (READ COMMITTED).
   */
  #statement({ fence, number, changes, lost }: Commit): { text: string; values: unknown[] } {
    const values: unknown[] = [];
    const put = (value: unknown, type: string): string => {
      values.push(value);
      return `$${values.length}::${type}`;
    };
    const requires = [
      `shard = ${put(this.taken.shard, 'int')}`,
      ...Object.entries(fence).map(([column, value]) => `${column} = ${put(value, typeof value === 'number' ? 'bigint' : 'uuid')}`),
    ];
    const lease = `clock_timestamp() + ${put(this.#leaseMs, 'bigint')} * interval '1 ms'`;
    const parts = [
      `fence AS (UPDATE waybill.journals SET commits = ${put(number, 'bigint')}, expires = ${lease} WHERE ${requires.join(' AND ')} RETURNING shard, epoch)`,
      ...this.#tables.flatMap((table) => {
        const own = changes.filter((change) => change.table === table.name);
        return [...written(table, own, put), ...deleted(table, own, put)];
      }),
      ...(lost
        ? [`noted AS (${rollbackNote(`SELECT shard, epoch, ${put(lost.first, 'bigint')}, ${put(lost.last, 'bigint')}, true FROM fence`)})`]
        : []),
    ];
    return { text: `WITH ${parts.join(',\n')} SELECT count(*) AS n FROM fence`, values };
  }
}

type Put = (value: unknown, type: string) => string;

function written({ name, columns, key }: Table, changes: readonly Change[], put: Put): string[] {
  const rows = changes.map(({ row }) => row).filter((row) => row !== undefined);
  if (rows.length === 0) return [];
  const arrays = columns.map(({ name: column, type }) =>
    putArray(
      rows.map((row) => (type === 'ANY' ? JSON.stringify(row[column]) : (row[column] ?? null))),
      type,
      put,
    ),
  );
  const names = columns.map((column) => column.name);
  const others = ['epoch', ...names.filter((column) => !key.includes(column))].map((column) => `${column} = excluded.${column}`);
  return [
    `w_${name} AS (INSERT INTO waybill.${name} (shard, epoch, ${names.join(', ')})
       SELECT fence.shard, fence.epoch, v.* FROM fence, unnest(${arrays.join(', ')}) AS v
       ON CONFLICT (shard, ${key.join(', ')}) DO UPDATE SET ${others.join(', ')})`,
  ];
}

function deleted({ name, columns, key }: Table, changes: readonly Change[], put: Put): string[] {
  const gone = changes.filter(({ row }) => row === undefined);
  if (gone.length === 0) return [];
  const typeIn = (column: string): string => columns.find((each) => each.name === column)?.type ?? 'TEXT';
  const arrays = key.map((column, i) =>
    putArray(
      gone.map((change) => change.key[i] ?? null),
      typeIn(column),
      put,
    ),
  );
  const matches = key.map((column, i) => `r.${column} = v.k${i}`).join(' AND ');
  return [
    `d_${name} AS (DELETE FROM waybill.${name} AS r USING fence, unnest(${arrays.join(', ')}) AS v(${key.map((_, i) => `k${i}`).join(', ')})
       WHERE r.shard = fence.shard AND ${matches})`,
  ];
}

function putArray(values: readonly Value[], type: string, put: Put): string {
  const element = typeOf(type);
  return put(arrayOf(values, element), `${element}[]`);
}

/** A row as the journal stored it. */
function decoded(row: Row, columns: Table['columns']): Row {
  const value = (given: Value | undefined, type: string): Value => {
    if (typeof given !== 'string') return given ?? null;
    return type === 'ANY' ? (JSON.parse(given) as Value) : unescaped(given);
  };
  return Object.fromEntries(columns.map(({ name, type }) => [name, value(row[name], type)]));
}
