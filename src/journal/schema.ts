/** The schema of the state: its format, its migrations, and the values in the table `meta`. */
import { randomBytes } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { WaybillError } from '../errors/errors.ts';
import { codeFile } from '../disk/files.ts';
import type { Clock } from '../model/time.ts';
import { asStateError } from './state-errors.ts';

/** The schema that this release writes, and the oldest schema that a release must know to read it. */
const schemaVersion = 1;
const minReader = 1;
const readableFrom = '0.1.0';

/** The row `format` in `meta` of every state with these tables. A state with other tables lacks it. */
const format = 'waybill-state-4';

/** The rows of `meta` that a move writes. The first is not part of the journal. */
export const moveKey = 'moved_to';
const placeKey = 'shard';

/** The random id of the journal, which distinguishes it from another one in a sink. */
export function journalId(db: Database.Database): string {
  return textOf(db, 'journal');
}

/** Creation time of the state, µs. */
export function createdAt(db: Database.Database): number {
  return Number(metaOf(db, 'created_us') ?? 0);
}

/** The settings that the daemon stored; undefined until a daemon of this release has opened the state. */
export function storedSettings(db: Database.Database): string | undefined {
  const text = metaOf(db, 'settings');
  return text === undefined ? undefined : String(text);
}

/** Within a transaction: stores the settings that a report needs. */
export function storeSettings(db: Database.Database, text: string): void {
  setMeta(db, 'settings', text);
}

/** A move of a state into a fleet, which has begun. The database says whether it was completed. */
interface Move {
  /** Its address, without a password. */
  readonly database: string;
  readonly shard: number;
  /** Random. */
  readonly id: string;
}

export function moveOf(db: Database.Database): Move | undefined {
  const text = metaOf(db, moveKey);
  return text === undefined ? undefined : (JSON.parse(String(text)) as Move);
}

export function storeMove(db: Database.Database, move: Move): void {
  setMeta(db, moveKey, JSON.stringify(move));
}

/** Refuses a state that a fleet has, or gets: its journal would have two owners. */
export function refuseMoved(db: Database.Database, directory: string): void {
  const move = moveOf(db);
  if (move)
    throw new WaybillError(
      'state_moved',
      `cannot use the state in "${directory}": "waybill fleet import" moved it to shard ${move.shard} of ${move.database}; if that command did not finish, run it again`,
    );
}

/**
 * The shard whose place at the sinks a moved journal keeps: its partition of a progress topic, its archive. 'none': the place of one process.
 * Undefined: the journal was not moved.
 */
export function placeAtSinks(db: Database.Database): number | 'none' | undefined {
  return metaOf(db, placeKey) as number | 'none' | undefined;
}

/** Within a transaction, or alone: a move begins, and the journal keeps its place at the sinks. */
export function keepPlaceAtSinks(db: Database.Database, shard: number | 'none'): void {
  if (placeAtSinks(db) === undefined) setMeta(db, placeKey, shard);
}

export function migrate(db: Database.Database, version: string, clock: Clock, directory: string): void {
  try {
    refuseOther(db, directory, version);
    const found = Number(metaOf(db, 'schema') ?? 0);
    for (const migration of migrations().filter((m) => m.number > found)) {
      db.exec('BEGIN IMMEDIATE');
      db.exec(migration.sql);
      if (migration.number === 1) beginState(db, clock);
      setMeta(db, 'schema', migration.number);
      db.exec('COMMIT');
    }
    if (metaOf(db, 'written_by') !== version) {
      db.exec('BEGIN IMMEDIATE');
      setMeta(db, 'schema', schemaVersion);
      setMeta(db, 'min_reader', minReader);
      setMeta(db, 'written_by', version);
      setMeta(db, 'readable_from', readableFrom);
      db.exec('COMMIT');
    }
  } catch (thrown) {
    db.close();
    throw asStateError(thrown, directory);
  }
}

function beginState(db: Database.Database, clock: Clock): void {
  setMeta(db, 'format', format);
  setMeta(db, 'journal', randomBytes(16).toString('hex'));
  setMeta(db, 'created_us', clock.now() * 1000);
  db.prepare('INSERT INTO owner (one, epoch) VALUES (1, 0)').run();
  db.prepare('INSERT INTO head (one, seq, number, chain, pruned_seq, pruned_chain) VALUES (1, 0, 0, zeroblob(32), 0, zeroblob(32))').run();
}

export function hasMeta(db: Database.Database): boolean {
  return db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").get() !== undefined;
}

/** Refuses a state that this release cannot read, in one line that names a release that can (docs/operations.md, `state_too_new`). */
export function refuseOther(db: Database.Database, directory: string, version: string): void {
  if (!hasMeta(db)) {
    if (db.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get()) {
      throw new WaybillError('state_unusable', `cannot use "${directory}/waybill.db": it is a database of another program`);
    }
    return;
  }
  if (metaOf(db, 'format') !== format) {
    throw new WaybillError(
      'state_unusable',
      `cannot use the state in "${directory}": it was written by an older build; start with a new dataDir`,
    );
  }
  const reader = Number(metaOf(db, 'min_reader') ?? 0);
  if (reader <= schemaVersion) return;
  const from = textOf(db, 'readable_from');
  const releaseText = version === '' ? 'this release is older' : `this is ${version}`;
  throw new WaybillError(
    'state_too_new',
    `state was written by ${textOf(db, 'written_by')} (schema ${textOf(db, 'schema')}, readable from ${from} on); ${releaseText}. Start ${from} or later`,
  );
}

/** The SQL that creates a state, without its first rows. */
export function schemaOfState(): string {
  return migrations()
    .map(({ sql }) => sql)
    .join('\n');
}

function migrations(): { number: number; sql: string }[] {
  const folder = codeFile('journal/migrations/');
  return readdirSync(folder)
    .filter((name) => /^\d{3}\.sql$/.test(name))
    .sort()
    .map((name) => ({ number: Number(name.slice(0, 3)), sql: readFileSync(new URL(name, folder), 'utf8') }));
}

function metaOf(db: Database.Database, key: string): string | number | undefined {
  if (!hasMeta(db)) return undefined;
  return (db.prepare('SELECT value FROM meta WHERE key = ?').get(key) as { value: string | number } | undefined)?.value;
}

function textOf(db: Database.Database, key: string): string {
  return String(metaOf(db, key) ?? '?');
}

function setMeta(db: Database.Database, key: string, value: string | number): void {
  db.prepare('INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value').run(key, value);
}
