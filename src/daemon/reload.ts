/** Applies changed configurations while the daemon runs: a valid one as a whole, an invalid one not at all. */
import type { Config, Loaded } from '../config/load.ts';
import { WaybillError } from '../errors/errors.ts';
import type { Journal } from '../journal/journal.ts';
import { storedSinks } from '../journal/queries/stored.ts';
import { movedMessage } from '../journal/sink-positions.ts';
import type { Log } from '../model/telemetry.ts';
import type { ConfigSource } from '../config/config-file.ts';
import type { Running } from './running.ts';
import { changesBetween, isEmpty, type Changes } from '../config/changes.ts';

/** The loops that a configuration controls: for one journal, or for each shard that a member owns. */
export interface Reloadable extends Pick<Running, 'config' | 'change'> {
  readonly journals: readonly Journal[];
}

interface ReloadParts {
  readonly configSource: ConfigSource;
  readonly running: Reloadable;
  readonly log: Log;
  /** Called when a configuration is in effect, or was rejected. */
  readonly result: (result: { readonly config: Config } | { readonly problems: readonly string[] }) => void;
}

export async function followConfig({ configSource, running, log, result }: ReloadParts, signal: AbortSignal): Promise<void> {
  let refused: readonly string[] = [];
  let isStart = true;
  for (;;) {
    const { changed } = await configSource.due(signal);
    // The first check after the start reports a change even if no file has changed.
    const isSilent = isStart && changed;
    isStart = false;
    const read = await loadApplicable(configSource, running);
    if ('problems' in read) {
      const { problems } = read;
      // Logs the same problems only once: a newly created included file may cause them again.
      if (!changed || problems.join('\n') !== refused.join('\n')) log.write('config.rejected', { problems });
      refused = problems;
      result({ problems });
      continue;
    }
    const { config, warnings, file, changes } = read;
    refused = [];
    if (isEmpty(changes)) {
      if (!isSilent) log.write('config.unchanged', { file });
    } else {
      // From here on an error is fatal: the loops of the earlier configuration have ended.
      await running.change(config, changes, signal);
      log.write('config.reloaded', { file, sources: changes.sources, sinks: changes.sinks, settings: changes.settings });
      for (const detail of warnings) log.write('config.warning', { detail });
    }
    result({ config });
  }
}

type Applicable = Pick<Loaded, 'config' | 'warnings' | 'file'> & { readonly changes: Changes };

/** Loads and checks the configuration. Changes nothing. */
async function loadApplicable(
  configSource: ConfigSource,
  running: Reloadable,
): Promise<Applicable | { readonly problems: readonly string[] }> {
  try {
    const { config, warnings, file } = await configSource.load();
    const changes = changesBetween(running.config, config);
    if (!isEmpty(changes)) assertApplicable(config, changes, running.journals);
    return { config, warnings, file, changes };
  } catch (thrown) {
    if (!(thrown instanceof WaybillError) || thrown.code !== 'config_invalid') throw thrown;
    return { problems: thrown.problems.length > 0 ? thrown.problems : [thrown.message] };
  }
}

/**
 * @throws WaybillError `config_invalid` when a setting needs a restart, when the state has another destination under the id of a sink, or when
 * the disk is full: the start of a changed source or sink would fail
 */
function assertApplicable(config: Config, { restart }: Changes, journals: readonly Journal[]): void {
  const movedSinks = journals.flatMap(({ db }) => {
    const sinks = new Map(storedSinks(db).map((row) => [row.id, row]));
    return config.sinks.map(({ id, type, definition, settings }) => {
      const known = sinks.get(id);
      return { setting: `sinks.${id}`, moved: known && movedMessage(known, type, definition.destination(settings)) };
    });
  });
  const problems = [
    ...(journals.some((journal) => journal.refuses() === 'disk')
      ? ['cannot write the state: the disk is full; free space, then send SIGHUP']
      : []),
    ...restart.map((setting) => `${setting}: cannot change while the daemon runs; restart the daemon to apply it`),
    ...movedSinks.flatMap(({ setting, moved }) => (moved === undefined ? [] : [`${setting}: ${moved}`])),
  ];
  if (problems.length > 0)
    throw new WaybillError('config_invalid', 'cannot apply the changed configuration', { problems: [...new Set(problems)] });
}
