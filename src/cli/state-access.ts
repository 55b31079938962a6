/**
 * Access to the state for commands that only read it: its directory, and the settings that a report
 * needs.
 */
import { loadStateSettings } from '../config/load-state-settings.ts';
import { settingsFrom, type StateSettings } from '../config/state-settings.ts';
import { WaybillError } from '../errors.ts';
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

/** Opens the state read-only while `work` runs, also during a run of the daemon. */
export function readState<Result>({ dataDir }: { readonly dataDir: string }, work: Parameters<typeof readStateIn<Result>>[1]): Result {
  return readStateIn(dataDir, work);
}

const unknownSettings =
  'the state does not contain the settings of its sources and sinks yet: assuming defaults, and that each sink receives every source unfiltered';

/**
 * The settings of `--config` or its default places; with `--data-dir` alone, the settings that the
 * daemon stored in the state. Of a configuration, only the references in `dataDir` must resolve.
 */
export async function settingsFor(values: StateValues, io: Pick<Io, 'env' | 'stderr'>): Promise<KnownSettings> {
  if (values['data-dir'] === undefined || values.config !== undefined) {
    const { settings, warnings } = await loadStateSettings(values.config, io.env).catch((thrown: unknown) => {
      const isUnread = thrown instanceof WaybillError && thrown.code === 'config_invalid' && thrown.problems.length === 0;
      throw isUnread
        ? new WaybillError('config_invalid', `${thrown.message}; use --data-dir DIR to read a state without one`, { cause: thrown })
        : thrown;
    });
    for (const warning of warnings) io.stderr.write(`warning: ${warning}\n`);
    return { settings: { ...settings, ...(values['data-dir'] !== undefined && { dataDir: values['data-dir'] }) }, isConfigured: true };
  }
  const dataDir = values['data-dir'];
  const stored = readState({ dataDir }, (db) => storedSettings(db));
  const settings = stored === undefined ? undefined : settingsFrom(stored, dataDir);
  if (settings) return { settings, isConfigured: true };
  io.stderr.write(`warning: ${unknownSettings}\n`);
  return { settings: { dataDir, journal: { maxSize: 0 }, sources: [], sinks: [] }, isConfigured: false };
}
