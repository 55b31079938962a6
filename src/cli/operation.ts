/** Commands that change something: confirm the plan, then perform it in the running daemon, or in this process without one. */
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { systemClock, systemRandom } from '../time/clock.ts';
import type { Config, SinkConfig } from '../config/load.ts';
import type { ConfiguredSinks, OperationRequest, OperationResult } from '../daemon/operations/requests.ts';
import { WaybillError } from '../errors/errors.ts';
import type { Journal } from '../journal/journal.ts';
import type { ReplayProgress } from '../model/journal.ts';
import type { ComponentLog } from '../telemetry/log.ts';
import { version } from '../disk/version.ts';
import { performLive, sendingOperations } from './daemon-client.ts';
import { StoppedError } from './exit-code.ts';
import { isTerminal, type Io } from './io.ts';
import { configOption, jsonOption, text, toggle, type ValuesOf } from './option.ts';

export const confirmOption = { yes: toggle('do not ask for confirmation; required without a terminal') };

export const operationOptions = {
  ...confirmOption,
  reason: text('TEXT', 'reason, kept in the ledger permanently'),
  actor: text('NAME', 'operator name for the audit log (not authenticated); default WAYBILL_OPERATOR, else the login name'),
  ...jsonOption,
  ...configOption,
};

export type OperationValues = ValuesOf<typeof operationOptions>;

export function actor({ reason, actor }: Pick<OperationValues, 'reason' | 'actor'>, io: Io): { actor: string; reason?: string } {
  const name = actor ?? (io.env['WAYBILL_OPERATOR'] || loginName());
  if (name.trim() === '') throw new WaybillError('usage', 'cannot use --actor "": the name is empty');
  return { actor: name, ...(reason !== undefined && { reason }) };
}

/** Prints the plan and asks for confirmation: false when the user declines. @throws WaybillError `usage` without a terminal */
export async function confirmed(plan: readonly string[], { yes }: ValuesOf<typeof confirmOption>, io: Io): Promise<boolean> {
  // Without the plan, which would read as done.
  if (!yes && !isTerminal(io.stdin)) throw new WaybillError('usage', 'nothing changed: not a terminal; pass --yes to confirm');
  io.stderr.write(`${plan.join('\n')}\n`);
  if (yes) return true;
  const lines = createInterface({ input: io.stdin, output: io.stderr });
  try {
    const answer = await lines.question('Continue? [y/N] ', { signal: io.signal });
    if (/^y(es)?$/i.test(answer.trim())) return true;
    io.stderr.write('cancelled; nothing changed\n');
    return false;
  } catch (thrown) {
    io.signal.throwIfAborted();
    // A terminal sends Ctrl-C as a character, not as a signal.
    if (thrown instanceof Error && thrown.name === 'AbortError') throw new StoppedError('SIGINT');
    throw thrown;
  } finally {
    lines.close();
  }
}

/**
 * Performs an operation: in the running daemon, or in this process under the lock of the state; in a fleet, by the owners of its shards.
 * `progress` is called while this process sends a replay; `shard` is that of dead letters.
 * @returns `daemon`: a running daemon or member performed it
 */
export async function operation(
  config: Config,
  request: OperationRequest,
  signal: AbortSignal,
  { progress = () => undefined, shard }: { readonly progress?: (view: ReplayProgress) => void; readonly shard?: number | undefined } = {},
): Promise<{ result: OperationResult; daemon: boolean }> {
  // Loads these modules only here: help, and commands of the same file that change nothing, start faster without them.
  const [{ openJournal }, { operateOnShards }, { perform }, { withDatabase }, { accessOf }] = await Promise.all([
    import('../daemon/open-journal.ts'),
    import('../daemon/operations/on-shards.ts'),
    import('../daemon/operations/perform.ts'),
    import('../fleet/readers.ts'),
    import('./state-access.ts'),
  ]);
  if (config.fleet)
    return {
      result: await withDatabase(accessOf(config), (pool) => operateOnShards(pool, request, systemClock, signal, shard)),
      daemon: true,
    };
  const live = await performLive(config.dataDir, request);
  if (live !== undefined) return { result: live, daemon: true };
  if (!existsSync(join(config.dataDir, 'waybill.db')))
    throw new WaybillError(
      'state_missing',
      `cannot find a state in "${config.dataDir}": check that the daemon has run with this configuration`,
    );
  await using journal = await openJournal(config, { clock: systemClock }, signal);
  const now = systemClock.now() * 1000;
  const sink = 'sink' in request ? config.sinks.find(({ id }) => id === request.sink) : undefined;
  // Like the daemon at its start, marks what the configuration lacks as unconfigured.
  if (request.operation === 'sinks retire') journal.sinkPositions.markUnconfigured(new Set(config.sinks.map(({ id }) => id)));
  if (request.operation === 'sources retire') journal.markSourcesUnconfigured(new Set(config.sources.map(({ id }) => id)));
  const isKnown = [...journal.sinkPositions.sinks()].some(({ id }) => id === sink?.id);
  const nothingRead = (): undefined => undefined;
  if (sink === undefined || !isKnown) return { result: await perform(request, journal, now, nothingRead), daemon: false };
  if (sendingOperations.has(request.operation))
    return { result: await sendAlone(config, sink, journal, request, signal, progress), daemon: false };
  return { result: await perform(request, journal, now, nothingRead, () => unopened(sink)), daemon: false };
}

/** A sink of the configuration without a loop. */
function unopened(sink: SinkConfig | undefined): ReturnType<ConfiguredSinks> {
  return sink && { definition: sink.definition, settings: sink.settings, loop: undefined, testMessages: () => [] };
}

const progressMs = 500;

/** The present state of a replay: its sink may have a second one, of the other kind. */
export function sameReplay(all: readonly ReplayProgress[] = [], begun: ReplayProgress): ReplayProgress | undefined {
  return all.find(({ archive, began }) => archive === begun.archive && began === begun.began);
}

async function sendAlone(
  config: Config,
  sink: SinkConfig,
  journal: Journal,
  request: OperationRequest,
  signal: AbortSignal,
  progress: (view: ReplayProgress) => void,
): Promise<OperationResult> {
  // Most operations send nothing.
  const [{ createDelivery }, { perform }, { createLog }, { createMetrics }] = await Promise.all([
    import('../daemon/open-delivery.ts'),
    import('../daemon/operations/perform.ts'),
    import('../telemetry/log.ts'),
    import('../telemetry/metrics.ts'),
  ]);
  const logs = createLog({ ...config.log, format: 'pretty', level: 'warn', levels: {} }, systemClock);
  await using metrics = createMetrics(version, '');
  const configured = createDelivery(
    sink,
    journal,
    { config, clock: systemClock, random: systemRandom, log: withoutRetries(logs.root) },
    metrics.meters,
  );
  const timer = setInterval(() => {
    const running = configured.loop.view().replays?.find(({ state }) => state === 'running');
    if (running) progress(running);
  }, progressMs);
  try {
    const result = await configured.loop.runOnDemand(
      () =>
        perform(
          request,
          journal,
          systemClock.now() * 1000,
          () => undefined,
          (id) => (id === sink.id ? configured : unopened(config.sinks.find((each) => each.id === id))),
        ),
      signal,
    );
    return result.replay ? { ...result, replay: sameReplay(configured.loop.view().replays, result.replay) } : result;
  } finally {
    clearInterval(timer);
    logs.flush();
  }
}

/** Nothing tries again in a command: its own error names the archive that cannot be read. */
function withoutRetries(log: ComponentLog): ComponentLog {
  return {
    write: (event, ...fields) => (event === 'sink.archive_replay_failed' ? undefined : log.write(event, ...fields)),
    child: (component) => withoutRetries(log.child(component)),
  };
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    // A user without a name, as in containers.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
