/** The tables of a fleet in PostgreSQL. The tables of the state are derived from the SQLite schema, so that the two schemas cannot differ. */
import Database from 'better-sqlite3';
import { tablesOf, type Table } from '../journal/replica/capture.ts';
import type { ElementType } from './arrays.ts';
import { schemaOfState } from '../journal/schema.ts';

const types: Readonly<Record<string, ElementType>> = { INTEGER: 'bigint', TEXT: 'text', BLOB: 'bytea', ANY: 'text' };
/** A take-over leaves them in the database. They do not compress. */
export const largeColumns = ['segments.body', 'segments.uids', 'segments.ends', 'seen.uids'];
/** Rows that nearly every commit changes: free space in their pages makes the changes cheap (HOT). */
const hot = ['head', 'sources', 'ranges', 'sinks'];

export function storedTables(): readonly Table[] {
  const db = new Database(':memory:');
  db.exec(schemaOfState());
  const tables = tablesOf(db);
  db.close();
  return tables;
}

/** The PostgreSQL type of a column. */
export function typeOf(type: string): ElementType {
  return types[type] ?? 'text';
}

/** Statements that create what is missing in the schema `waybill`. They may run again. */
export function setupStatements(shards: number): string[] {
  const tables = storedTables().flatMap(({ name, columns, key }) => {
    const own = columns.map((column) => `${column.name} ${typeOf(column.type)}${constraintsOf(column)}`);
    const wide = columns.filter((column) => largeColumns.includes(`${name}.${column.name}`));
    const fill = hot.includes(name) ? ' WITH (fillfactor = 50)' : '';
    return [
      `CREATE TABLE IF NOT EXISTS waybill.${name} (shard int NOT NULL, epoch bigint NOT NULL, ${own.join(', ')}, PRIMARY KEY (shard, ${key.join(', ')}))${fill}`,
      ...own.map((column) => `ALTER TABLE waybill.${name} ADD COLUMN IF NOT EXISTS ${column}`),
      ...wide.map((column) => `ALTER TABLE waybill.${name} ALTER ${column.name} SET STORAGE EXTERNAL`),
    ];
  });
  return [
    'CREATE SCHEMA IF NOT EXISTS waybill',
    // The fence: one row a shard. Every commit changes it.
    `CREATE TABLE IF NOT EXISTS waybill.journals (shard int PRIMARY KEY, epoch bigint NOT NULL DEFAULT 0, lease uuid, commits bigint NOT NULL DEFAULT 0,
       owner text, expires timestamptz)
       WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
    // The last owners of a shard, and every move: its row says that it was completed (move.ts).
    `CREATE TABLE IF NOT EXISTS waybill.takes (shard int, epoch bigint, owner text NOT NULL, lease uuid NOT NULL, commits bigint NOT NULL,
       is_move boolean NOT NULL DEFAULT false, at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (shard, epoch))`,
    // Commits that the database had lost. repaired: their owner has written their rows again.
    `CREATE TABLE IF NOT EXISTS waybill.rollbacks (shard int, epoch bigint, first bigint, last bigint NOT NULL, repaired boolean,
       at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (shard, epoch, first, repaired))`,
    `CREATE TABLE IF NOT EXISTS waybill.members (name text PRIMARY KEY, release text NOT NULL, started timestamptz NOT NULL, seen timestamptz NOT NULL)
       WITH (fillfactor = 50)`,
    // What status, page and probes show of a shard, as JSON. Its owner replaces it every few seconds.
    'CREATE TABLE IF NOT EXISTS waybill.statuses (shard int PRIMARY KEY, at timestamptz NOT NULL, status text NOT NULL) WITH (fillfactor = 50)',
    // Operations for the owner of a shard: new, running, done or failed.
    `CREATE TABLE IF NOT EXISTS waybill.requests (id uuid PRIMARY KEY, shard int NOT NULL, request text NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
       state text NOT NULL DEFAULT 'new', epoch bigint, result text)`,
    "CREATE INDEX IF NOT EXISTS requests_open ON waybill.requests (shard) WHERE state IN ('new', 'running')",
    `CREATE TABLE IF NOT EXISTS waybill.placements (place text PRIMARY KEY, shard int NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp())`,
    ...tables,
    `INSERT INTO waybill.journals (shard) SELECT generate_series(0, ${Math.trunc(shards)} - 1) ON CONFLICT DO NOTHING`,
  ];
}

/** Statements that let the user of the members read and change the rows, and another one only read them. */
export function rightsOf(user: string, reader: string | undefined): string[] {
  return [...granted(user, 'SELECT, INSERT, UPDATE, DELETE'), ...(reader === undefined ? [] : granted(reader, 'SELECT'))];
}

function granted(user: string, rights: string): string[] {
  const role = `"${user.replaceAll('"', '""')}"`;
  return [`GRANT USAGE ON SCHEMA waybill TO ${role}`, `GRANT ${rights} ON ALL TABLES IN SCHEMA waybill TO ${role}`];
}

function constraintsOf({ type, isRequired, initial }: Table['columns'][number]): string {
  return `${type === 'TEXT' ? ' COLLATE "C"' : ''}${isRequired ? ' NOT NULL' : ''}${initial === null ? '' : ` DEFAULT ${initial}`}`;
}
