/** Connections to PostgreSQL, and which of its errors pass. */
import pg from 'pg';
import { getCACertificates } from 'node:tls';
import { messageOf, WaybillError } from '../errors/errors.ts';
import { isLoopback } from '../settings/loopback.ts';

/** Connection lost, shutdown or cancelled, out of resources, conflict, object in use, read-only: a later attempt may succeed. */
const passing = /^(08|57|53|40|55|25006)/;

/** Login, right, database, schema, table or column is missing. */
const refusing = /^(28|3D000|3F000|42501|42P01|42703)/;

export type Pool = Pick<pg.Pool, 'query' | 'connect' | 'end'>;

/** Address and credentials of the database. */
export interface DatabaseAccess {
  /** The address. */
  readonly database: string;
  /** Read for each connection. */
  readonly password?: { read(): string } | undefined;
  readonly ca?: { read(): readonly string[] } | undefined;
}

export function poolOf({ database, password, ca }: DatabaseAccess, timeoutMs: number): pg.Pool {
  const trusted = ca && { ca: [...getCACertificates('default'), ...ca.read()] };
  const { hostname, port, username, pathname } = new URL(database);
  // Another machine is reached with TLS, and its certificate is checked. Without a host, the address names a socket of this machine.
  const ssl = hostname === '' || isLoopback(hostname) ? false : { ...trusted };
  if (!password) return openPool({ connectionString: database, ssl }, timeoutMs);
  // Not as connectionString: pg takes its missing password for an empty one, and ignores this.
  const address = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 5432), user: decodeURIComponent(username) };
  return openPool({ ...address, database: decodeURIComponent(pathname.slice(1)), ssl, password: () => password.read() }, timeoutMs);
}

/** A pool whose integers are numbers: all values of a state are below 2^53. */
export function openPool(given: pg.PoolConfig, timeoutMs: number): pg.Pool {
  const pool = new pg.Pool({
    ...given,
    max: 6,
    keepAlive: true,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    types: {
      // eslint-disable-next-line @typescript-eslint/no-unsafe-return -- the parsers of pg return any
      getTypeParser: (oid, format) => (oid === pg.types.builtins.INT8 ? Number : pg.types.getTypeParser(oid, format)),
    },
  });
  // The pool replaces a connection that ends while it is idle. The next query reports a lasting fault.
  pool.on('error', () => undefined);
  // A connection in use also reports its end in the answer to its query.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/** Runs a request. @throws WaybillError `database_unreachable` if a later attempt may succeed, `database_refused` without the tables or rights */
export async function asked<Result>(request: () => Promise<Result>): Promise<Result> {
  try {
    return await request();
  } catch (thrown) {
    const code = thrown instanceof pg.DatabaseError ? thrown.code : undefined;
    if (code !== undefined && refusing.test(code))
      throw new WaybillError('database_refused', `the database of the fleet refuses: ${messageOf(thrown)}; see waybill setup postgres`, {
        cause: thrown,
      });
    if (code !== undefined && !passing.test(code))
      throw new WaybillError('internal_error', `the database of the fleet: ${messageOf(thrown)}`, { cause: thrown });
    throw new WaybillError('database_unreachable', `cannot reach the database: ${messageOf(thrown)}`, { cause: thrown });
  }
}

/** The shards, as SQL on waybill.journals, that members serve: an exported one has an owner for good. */
export const isServed = "expires IS DISTINCT FROM 'infinity'";

export async function shardNumbers(pool: Pool): Promise<number[]> {
  const { rows } = await asked(() => pool.query<{ shard: number }>(`SELECT shard FROM waybill.journals WHERE ${isServed} ORDER BY shard`));
  return rows.map(({ shard }) => shard);
}
