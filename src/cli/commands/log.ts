/** `waybill log level`: another log level in the running daemon, for a while. */
import { maxLevelMs } from '../../daemon/operations/log-level.ts';
import { WaybillError } from '../../errors/errors.ts';
import { span } from '../../report/format-time.ts';
import { nearestOrAll } from '../../settings/nearest.ts';
import { parseDuration } from '../../settings/units.ts';
import { defineCommand, subcommand } from '../command.ts';
import { setLogLevel } from '../daemon-client.ts';
import { actor, operationOptions } from '../operation.ts';
import { parsed, text, withDefault } from '../option.ts';
import { settingsFor, stateOptions } from '../state-access.ts';

const levels = ['debug', 'info', 'warn', 'error'] as const;

export const command = defineCommand({
  name: 'log',
  summary: 'changes the log level of the running daemon for a while',
  description: `Changes the log level of the running daemon. The configured level returns by itself, also after a restart. The log records both.
"log.level" and "log.levels" of the configuration set a level permanently.`,
  subcommands: {
    level: subcommand({
      summary: 'changes the level of every component, or of one and its parts',
      positionals: { name: 'LEVEL', help: levels.join(', '), choices: levels, min: 1, max: 1 },
      options: {
        component: text('NAME', 'only this component and its parts, such as sink/kafka, as "component" in the log'),
        for: withDefault(
          parsed('TIME', 'how long, at most 24h; default 15m', 'a duration such as 10s, 5m, 2h, at most 24h', durationOf),
          '15m',
        ),
        actor: operationOptions.actor,
        ...stateOptions,
      },
      run: async ({ component, for: forMs, ...values }, io, [given = '']) => {
        const level = levels.find((each) => each === given);
        if (level === undefined) throw new WaybillError('usage', `cannot use the log level "${given}": ${nearestOrAll(given, levels)}`);
        const { settings } = await settingsFor(values, io);
        const request = {
          operation: 'log level',
          level,
          component,
          forMs,
          actor: actor({ ...values, reason: undefined }, io).actor,
        } as const;
        if (!(await setLogLevel(settings.dataDir, request)))
          throw new WaybillError('usage', `cannot change the log level: no daemon runs with the state in "${settings.dataDir}"`);
        io.stdout.write(`log level ${level}${component === undefined ? '' : ` of ${component}`} for ${span(forMs / 1000)}\n`);
        return 0;
      },
    }),
  },
  examples: ['waybill log level debug --for 10m', 'waybill log level debug --component sink/kafka'],
});

function durationOf(given: string): number | undefined {
  const ms = parseDuration(given);
  return ms !== undefined && ms >= 1 && ms <= maxLevelMs ? ms : undefined;
}
