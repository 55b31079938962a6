/**
 * How a command changes something: it says what it will do and asks, then has the running daemon do it through the socket in the state
 * directory, or does it itself with the lock in hand when none runs.
 */
import { existsSync } from 'node:fs';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { systemClock, systemRandom } from '../clock.ts';
import type { Config, SinkConfig } from '../config/load.ts';
import { perform } from '../daemon/operations/perform.ts';
import type { OperationRequest, OperationResult } from '../daemon/operations/requests.ts';
import { WaybillError } from '../errors.ts';
import type { ErrorCode } from '../errors.ts';
import { Journal } from '../journal/journal.ts';
import type { ReplayProgress } from '../model/journal.ts';
import { version } from '../version.ts';
import { askSocket } from './daemon-client.ts';
import type { Io } from './io.ts';

/** The options of every command that changes something. */
export const operationOptions = {
  config: { type: 'string' },
  yes: { type: 'boolean', default: false },
  reason: { type: 'string' },
  actor: { type: 'string' },
  json: { type: 'boolean', default: false },
} as const;

/** Their lines in a usage text. */
export const operationUsage = `  --yes               do it without asking; needed where nobody can be asked
  --reason TEXT          the reason, kept in the ledger for ever
  --actor NAME        operator name for the audit log (not authenticated); default WAYBILL_OPERATOR,
                      else the login name
  --json              the result as JSON
  --config FILE       the configuration`;

export interface OperationValues {
  readonly yes: boolean;
  readonly reason?: string | undefined;
  readonly actor?: string | undefined;
}

/** Who acts, as the request carries it. */
export function actor({ reason, actor }: OperationValues, io: Io): { actor: string; reason?: string } {
  const name = actor ?? (io.env['WAYBILL_OPERATOR'] || loginName());
  if (name.trim() === '') throw new WaybillError('usage', 'cannot use --actor "": the name is empty');
  return { actor: name, ...(reason !== undefined && { reason }) };
}

/** Says what will be done, and asks on a terminal. @returns false when the answer is no. @throws WaybillError `usage` where nobody can be asked */
export async function agreed(plan: readonly string[], values: OperationValues, io: Io): Promise<boolean> {
  io.stderr.write(`${plan.join('\n')}\n`);
  if (values.yes) return true;
  const isTerminal = 'isTTY' in io.stdin && io.stdin.isTTY === true;
  if (!isTerminal) throw new WaybillError('usage', 'nothing was done: nobody can be asked here; --yes does it');
  const lines = createInterface({ input: io.stdin, output: io.stderr });
  try {
    const answer = await lines.question('Do it? [y/N] ', { signal: io.signal });
    if (/^y(es)?$/i.test(answer.trim())) return true;
    io.stderr.write('nothing was done\n');
    return false;
  } finally {
    lines.close();
  }
}

/** Does it. `daemon`: whether a running daemon did. What must be sent to a sink takes as long as that takes; `progress` is told meanwhile. */
export async function operation(
  config: Config,
  asked: OperationRequest,
  signal: AbortSignal,
  progress: (view: ReplayProgress) => void = () => undefined,
): Promise<{ result: OperationResult; daemon: boolean }> {
  const answer = await askDaemon(config, asked);
  if (answer !== undefined) return { result: answer, daemon: true };
  if (!existsSync(join(config.dataDir, 'waybill.db')))
    throw new WaybillError('state_missing', `cannot find a state in "${config.dataDir}": has the daemon run with this configuration?`);
  const { maxSize, retention } = config.journal;
  const options = { directory: config.dataDir, maxSize, retention, lockWait: 0, version, expectState: false };
  await using journal = await Journal.open(options, systemClock, signal);
  const now = systemClock.now() * 1000;
  const sink = 'sink' in asked ? config.sinks.find(({ id }) => id === asked.sink) : undefined;
  // What is gone from the configuration is unconfigured from now on, as at the start of the daemon.
  if (asked.operation === 'sinks retire') journal.sinkPositions.markUnconfigured(new Set(config.sinks.map(({ id }) => id)));
  if (asked.operation === 'sources retire') journal.markSourcesUnconfigured(new Set(config.sources.map(({ id }) => id)));
  const isKnown = [...journal.sinkPositions.sinks()].some(({ id }) => id === sink?.id);
  if (sink === undefined || !isKnown) return { result: await perform(asked, journal, now, () => undefined), daemon: false };
  if (!sends.has(asked.operation)) {
    const made = { definition: sink.definition, settings: sink.settings, loop: undefined, testMessages: () => [] };
    return {
      result: await perform(
        asked,
        journal,
        now,
        () => undefined,
        () => made,
      ),
      daemon: false,
    };
  }
  return { result: await sendAlone(config, sink, journal, asked, signal, progress), daemon: false };
}

const sends: ReadonlySet<OperationRequest['operation']> = new Set(['sinks test', 'dead-letters retry', 'replay']);
const lookMs = 500;

/** Opens the sink for this alone. */
async function sendAlone(
  config: Config,
  sink: SinkConfig,
  journal: Journal,
  asked: OperationRequest,
  signal: AbortSignal,
  progress: (view: ReplayProgress) => void,
): Promise<OperationResult> {
  // Read only here: most acts send nothing.
  const [{ createDelivery }, { createLog }, { createMetrics }] = await Promise.all([
    import('../daemon/sink.ts'),
    import('../telemetry/log.ts'),
    import('../telemetry/metrics.ts'),
  ]);
  const logs = createLog({ ...config.log, format: 'pretty', level: 'warn', levels: {} }, systemClock);
  await using metrics = createMetrics(version, '');
  const made = createDelivery(sink, journal, { config, clock: systemClock, random: systemRandom, log: logs.root }, metrics.meters);
  const look = setInterval(() => {
    const { replay } = made.loop.view();
    if (replay) progress(replay);
  }, lookMs);
  try {
    const result = await made.loop.runOnDemand(
      () =>
        perform(
          asked,
          journal,
          systemClock.now() * 1000,
          () => undefined,
          () => made,
        ),
      signal,
    );
    return asked.operation === 'replay' ? { ...result, replay: made.loop.view().replay } : result;
  } finally {
    clearInterval(look);
    logs.flush();
  }
}

const waitMs = 30_000;
/** A batch may be under way before it is the turn of what is asked, and that may take as long as a send may. */
const waitSendMs = 240_000;

async function askDaemon(config: Config, asked: OperationRequest): Promise<OperationResult | undefined> {
  const timeoutMs = sends.has(asked.operation) ? waitSendMs : waitMs;
  const answer = await askSocket(config.dataDir, '/operations', { timeoutMs, body: JSON.stringify(asked) });
  if (answer === undefined) return undefined;
  const said = JSON.parse(answer.body) as OperationResult & { readonly error?: string; readonly code?: ErrorCode };
  if (answer.status !== 200)
    throw new WaybillError(said.code ?? 'state_unusable', said.error ?? `the running daemon answers with ${answer.status}`);
  return said;
}

function loginName(): string {
  try {
    return userInfo().username;
  } catch {
    // A numeric user without a name, as containers have.
    return `uid ${process.getuid?.() ?? 'unknown'}`;
  }
}
