/** Access to the state for commands that only read it: its directory, and the settings that a report needs. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { directoryIn, loadStateSettings } from '../config/load-state-settings.ts';
import { settingsFrom, type StateSettings } from '../config/state-settings.ts';
import { WaybillError } from '../errors/errors.ts';
import { poolOf, shardNumbers, type Pool } from '../fleet/database.ts';
import { Shard } from '../fleet/shard.ts';
import { storedSettings } from '../journal/schema.ts';
import { copyOf } from '../journal/replica/load.ts';
import { openReadOnly, readState as readStateIn } from '../journal/state.ts';
import type { Io } from './io.ts';
import { configOption, text, type ValuesOf } from './option.ts';

export const stateOptions = { ...configOption, 'data-dir': text('DIR', 'the state directory; then no configuration is needed') };

export type StateValues = ValuesOf<typeof stateOptions>;

export interface KnownSettings {
  readonly settings: StateSettings;
  /** False: no configuration is known, and the lists of sources and sinks are empty. */
  readonly isConfigured: boolean;
}

/** Where the state is: in a directory, or the shards of a fleet in its database. */
export type StatePlace = Pick<StateSettings, 'dataDir' | 'fleet' | 'tls'>;

interface OpenState {
  readonly db: ReturnType<typeof openReadOnly>;
  /** The shard, in a fleet. */
  readonly shard?: number;
}

/** Opens the state read-only, also during a run of the daemon; of a fleet, a copy of each shard. */
export async function openStates(place: StatePlace): Promise<{ readonly states: readonly OpenState[] } & Disposable> {
  using opened = new DisposableStack();
  const close = (db: OpenState['db']): unknown => db.close();
  const states: OpenState[] = [];
  if (place.fleet) {
    await withDatabase(place, async (pool) => {
      for (const shard of await shardNumbers(pool)) {
        const db = await copyOf(Shard.reader(pool, shard));
        if (db) states.push({ db: opened.adopt(db, close), shard });
      }
    });
    if (states.length === 0) throw new WaybillError('state_missing', 'cannot find a state in the database of the fleet; has a member run?');
  } else states.push({ db: opened.adopt(openReadOnly(place.dataDir), close) });
  const kept = opened.move();
  return { states, [Symbol.dispose]: () => kept.dispose() };
}

/** @returns the result for the state, or for each shard of a fleet */
export async function readState<Result>(
  place: StatePlace,
  work: (db: OpenState['db'], shard: number | undefined) => Result,
): Promise<Result[]> {
  using opened = await openStates(place);
  return opened.states.map(({ db, shard }) => work(db, shard));
}

const databaseMs = 30_000;

/** Connects to the database of a fleet. */
export async function withDatabase<Result>({ fleet, tls = {} }: StatePlace, work: (pool: Pool) => Promise<Result>): Promise<Result> {
  if (!fleet) throw new TypeError('a state without a fleet has no database');
  const pool = poolOf(fleet, tls, databaseMs);
  try {
    return await work(pool);
  } finally {
    await pool.end();
  }
}

const unknownSettings =
  'the state does not contain the settings of its sources and sinks yet: assuming defaults, and that each sink receives every source unfiltered';

/**
 * The settings of `--config` or its default places. With `--data-dir` alone, or with an invalid configuration: the settings that the daemon
 * stored in the state. Of a configuration, only the references in `dataDir` must resolve.
 */
export async function settingsFor(values: StateValues, io: Pick<Io, 'env' | 'stderr'>): Promise<KnownSettings> {
  const given = values['data-dir'];
  if (given !== undefined && values.config === undefined) return storedIn(given, io);
  try {
    const { settings, warnings } = await loadStateSettings(values.config, io.env);
    for (const warning of warnings) io.stderr.write(`warning: ${warning}\n`);
    return { settings: { ...settings, ...(given !== undefined && { dataDir: given }) }, isConfigured: true };
  } catch (thrown) {
    if (!(thrown instanceof WaybillError) || thrown.code !== 'config_invalid') throw thrown;
    if (thrown.problems.length === 0)
      throw new WaybillError('config_invalid', `${thrown.message}; use --data-dir DIR to read a state without one`, { cause: thrown });
    const dataDir = given ?? directoryIn(values.config, io.env);
    if (dataDir === undefined || !existsSync(join(dataDir, 'waybill.db'))) throw thrown;
    const lines = [`${thrown.message}; reading the state in "${dataDir}" with the settings of its last start`, ...thrown.problems];
    for (const line of lines) io.stderr.write(`warning: ${line}\n`);
    return storedIn(dataDir, io);
  }
}

function storedIn(dataDir: string, { stderr }: Pick<Io, 'stderr'>): KnownSettings {
  const stored = readStateIn(dataDir, storedSettings);
  const settings = stored === undefined ? undefined : settingsFrom(stored, dataDir);
  if (settings) return { settings, isConfigured: true };
  stderr.write(`warning: ${unknownSettings}\n`);
  return { settings: { dataDir, journal: { maxSize: 0 }, sources: [], sinks: [] }, isConfigured: false };
}
