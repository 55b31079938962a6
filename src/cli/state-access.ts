/** Access to the state for commands that only read it: its directory, and the settings that a report needs. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { directoryIn, loadStateSettings } from '../config/load-state-settings.ts';
import { settingsFrom, type StateSettings } from '../config/state-settings.ts';
import { WaybillError } from '../errors/errors.ts';
import type { DatabaseAccess } from '../fleet/database.ts';
import { openStates, type OpenState } from '../fleet/readers.ts';
import { storedSettings } from '../journal/schema.ts';
import { readState as readStateIn } from '../journal/state.ts';
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

/** Opens the state read-only; of a fleet, a copy of each shard. */
export function statesOf(place: StatePlace): ReturnType<typeof openStates> {
  return openStates(place.fleet ? accessOf(place) : place.dataDir);
}

/** @throws TypeError if the state is not of a fleet */
export function accessOf({ fleet, tls = {} }: StatePlace): DatabaseAccess {
  if (!fleet) throw new TypeError('a state without a fleet has no database');
  return { ...fleet, ...tls };
}

/** @returns the result for the state, or for each shard of a fleet */
export async function readState<Result>(
  place: StatePlace,
  work: (db: OpenState['db'], shard: number | undefined) => Result,
): Promise<Result[]> {
  using opened = await statesOf(place);
  return opened.states.map(({ db, shard }) => work(db, shard));
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
