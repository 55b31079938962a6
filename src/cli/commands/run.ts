/** `waybill run`: the daemon. It ends by a signal, or because of something that only a person can mend. */
import { parseArgs } from 'node:util';
import { systemClock, systemRandom } from '../../clock.ts';
import { loadConfig } from '../../config/load.ts';
import { parseDuration } from '../../settings/values.ts';
import { runDaemon } from '../../daemon/daemon.ts';
import { codeOf, WaybillError } from '../../errors.ts';
import { createLog } from '../../telemetry/log.ts';
import { version } from '../../version.ts';
import { exitCodeOf } from '../exit-code.ts';
import type { Io } from '../io.ts';

export const summary = 'collects, proves and delivers until it is stopped';

export const usage = `waybill run [--config FILE] [--require-state] [--lock-wait 60s]

The daemon. Diagnostics go to standard error; SIGTERM ends it within shutdownTimeout.

  --config FILE       the configuration
  --require-state     refuse to begin with an empty state directory (is the volume mounted?)
  --lock-wait TIME    how long to wait for another owner of the state to end; default 60s, then exit 75

Examples:
  waybill run --config /etc/waybill/waybill.yaml
  waybill run --require-state --lock-wait 5m
`;

export async function run(args: string[], io: Io): Promise<number> {
  const { values } = parseArgs({
    args,
    options: {
      config: { type: 'string' },
      'require-state': { type: 'boolean', default: false },
      'lock-wait': { type: 'string', default: '60s' },
    },
  });
  const lockWait = parseDuration(values['lock-wait']);
  if (lockWait === undefined)
    throw new WaybillError('usage', `cannot read --lock-wait "${values['lock-wait']}": not a duration such as 10s, 5m, 2h`);
  const { config, warnings, file } = await loadConfig(values.config, io.env, { now: systemClock.now() });
  const logs = createLog(config.log, systemClock, io.stderr, io.env);
  // Without a listener it would end the process.
  const onHangUp = (): void => logs.root.write('config.reload_unsupported');
  process.on('SIGHUP', onHangUp);
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
        ...{ config, version, lockWait, clock: systemClock, random: systemRandom, log: logs.root, lostLines: logs.lost },
        expectState: values['require-state'],
      },
      io.signal,
    );
    return failure === undefined ? 0 : exitCodeOf(failure);
  } catch (thrown) {
    // In the format of the log, which is what reads it.
    const defect = codeOf(thrown) === undefined && thrown instanceof Error ? { stack: thrown.stack } : {};
    logs.root.write('daemon.not_started', { code: codeOf(thrown), error: thrown, ...defect });
    return exitCodeOf(thrown);
  } finally {
    process.off('SIGHUP', onHangUp);
    logs.flush();
  }
}
