/** What every command that only reads the state has in common: which directory, and the settings that a report on it needs. */
import { loadStateSettings } from '../config/load.ts';
import { settingsFrom } from '../config/state-settings.ts';
import type { StateSettings } from '../config/state-settings.ts';
import { WaybillError } from '../errors.ts';
import { openReadOnly, storedSettings } from '../journal/state.ts';
import type { Io } from './io.ts';

export const stateOptions = { config: { type: 'string' }, 'data-dir': { type: 'string' } } as const;

/** Their lines in a usage text, for a command that only reads. */
export const readUsage = `  --config FILE       the configuration; of its references only that of "dataDir"
                      must lead somewhere
  --data-dir DIR      the state directory, without a configuration`;

/** The line of \`--data-dir\` alone, for a command that may change something as well. */
export const stateUsage = `  --data-dir DIR      for list: the state directory, without a configuration`;

export interface StateValues {
  readonly config?: string | undefined;
  readonly 'data-dir'?: string | undefined;
}

export interface KnownSettings {
  readonly settings: StateSettings;
  /** Whether sources and sinks are those of a configuration; else they are not known, and both lists are empty. */
  readonly isConfigured: boolean;
}

const unknownWords =
  'the settings of its sources and sinks are not in this state yet: defaults are assumed, and each sink counts as one for every source without a filter';

/**
 * The settings by `--config` or its usual places, or with `--data-dir` alone those that the daemon keeps in the state. Says on standard error what is
 * not known.
 */
export async function settingsFor(values: StateValues, io: Pick<Io, 'env' | 'stderr'>): Promise<KnownSettings> {
  if (values['data-dir'] === undefined || values.config !== undefined) {
    const { settings, warnings } = await loadStateSettings(values.config, io.env).catch((thrown: unknown) => {
      const isUnread = thrown instanceof WaybillError && thrown.code === 'config_invalid' && thrown.problems.length === 0;
      throw isUnread
        ? new WaybillError('config_invalid', `${thrown.message}; --data-dir DIR reads a state without one`, { cause: thrown })
        : thrown;
    });
    for (const warning of warnings) io.stderr.write(`warning: ${warning}\n`);
    return { settings: { ...settings, ...(values['data-dir'] !== undefined && { dataDir: values['data-dir'] }) }, isConfigured: true };
  }
  const db = openReadOnly(values['data-dir']);
  try {
    const text = storedSettings(db);
    const settings = text === undefined ? undefined : settingsFrom(text, values['data-dir']);
    if (settings) return { settings, isConfigured: true };
  } finally {
    db.close();
  }
  io.stderr.write(`warning: ${unknownWords}\n`);
  return { settings: { dataDir: values['data-dir'], journal: { maxSize: 0 }, sources: [], sinks: [] }, isConfigured: false };
}

/** @throws WaybillError `usage` for an option that a command takes only where it reads */
export function listOnly(option: string, given: string | undefined): void {
  if (given !== undefined) throw new WaybillError('usage', `cannot use ${option} here: what changes something needs the configuration`);
}
