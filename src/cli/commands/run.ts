/** `waybill run`: the daemon. It ends by a signal or a fatal error. */
import { systemClock, systemRandom } from '../../time/clock.ts';
import { parseDuration } from '../../settings/units.ts';
import { collectWhenIdle } from '../../daemon/collect-when-idle.ts';
import { runDaemon } from '../../daemon/daemon.ts';
import { ConfigFile } from '../../config/config-file.ts';
import { codeOf } from '../../errors/errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { version } from '../../disk/version.ts';
import { defineCommand } from '../command.ts';
import { exitCodeOf } from '../exit-code.ts';
import type { Io } from '../io.ts';
import { configOption, parsed, toggle, withDefault, type ValuesOf } from '../option.ts';

const options = {
  ...configOption,
  'require-state': toggle('refuse to start with an empty state directory (is the volume mounted?)'),
  'lock-wait': withDefault(
    parsed(
      'TIME',
      'how long to wait for another owner of the state to end, then exit 75; default 60s',
      'a duration such as 10s, 5m, 2h',
      parseDuration,
    ),
    '60s',
  ),
};

export const command = defineCommand({
  name: 'run',
  summary: 'collects, proves and delivers until it is stopped',
  description: 'Runs the daemon. It logs to standard error. SIGTERM ends it within shutdownTimeout.',
  options,
  examples: ['waybill run --config /etc/waybill/waybill.yaml', 'waybill run --require-state --lock-wait 5m'],
  run,
});

async function run(values: ValuesOf<typeof options>, io: Io): Promise<number> {
  const configSource = new ConfigFile({ path: values.config, environment: io.env, clock: systemClock });
  // Before the configuration is read: without a handler, SIGHUP ends the process.
  const onHangUp = (): void => configSource.request();
  process.on('SIGHUP', onHangUp);
  const { config, warnings, file } = await configSource.load().catch((thrown: unknown) => {
    process.off('SIGHUP', onHangUp);
    throw thrown;
  });
  // The log reads its levels at each line.
  const logSettings = { ...config.log };
  collectWhenIdle();
  const logs = createLog(logSettings, systemClock, io.stderr, io.env);
  try {
    logs.root.write('daemon.starting', {
      version,
      file,
      sources: config.sources.map(({ id }) => id),
      sinks: config.sinks.map(({ id }) => id),
    });
    for (const message of warnings) logs.root.write('config.warning', { detail: message });
    const failure = await runDaemon(
      {
        config,
        version,
        clock: systemClock,
        random: systemRandom,
        log: logs.root,
        lostLines: logs.lost,
        logs,
        lockWait: values['lock-wait'],
        expectState: values['require-state'],
        configSource,
        reloaded: ({ log: { level, levels } }) => Object.assign(logSettings, { level, levels }),
      },
      io.signal,
    );
    // Flushes first: `daemon.stopped` must be the last line of the log.
    logs.flush();
    logs.root.write('daemon.stopped');
    return failure === undefined ? 0 : exitCodeOf(failure);
  } catch (thrown) {
    // As a log line: the collector of the log reads standard error.
    const defect = codeOf(thrown) === undefined && thrown instanceof Error ? { stack: thrown.stack } : {};
    logs.flush();
    logs.root.write('daemon.not_started', { code: codeOf(thrown), error: thrown, ...defect });
    return exitCodeOf(thrown);
  } finally {
    process.off('SIGHUP', onHangUp);
  }
}
