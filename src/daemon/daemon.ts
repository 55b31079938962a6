/**
 * The life of the daemon: it creates every part in the order in which data flows, runs the loops, and releases the parts in the opposite
 * order.
 */
import { join } from 'node:path';
import type { Config } from '../config/load.ts';
import { names } from '../connect/names.ts';
import { WaybillError } from '../errors/errors.ts';
import type { Journal } from '../journal/journal.ts';
import type { CertificateEnd, Snapshot } from '../model/snapshot.ts';
import { withStates } from '../report/states.ts';
import { createMetrics, type Metrics } from '../telemetry/metrics.ts';
import { startTelemetry } from '../telemetry/telemetry.ts';
import { tokenNames, type Reported } from './admin/messages.ts';
import type { DatabaseValues } from './admin/report-thread.ts';
import { AdminServer, type AdminFacts } from './admin/server.ts';
import { lastReadableTokens } from './admin/tokens.ts';
import { reportEndingCertificates } from './certificates.ts';
import { reportSettings, serviceWords } from '../config/report-settings.ts';
import { maintainJournal } from './maintenance.ts';
import { FleetMember } from './member.ts';
import { openJournal } from './open-journal.ts';
import { logLevelRequest, setLogLevel } from './operations/log-level.ts';
import type { DaemonOptions } from './options.ts';
import { followConfig, type Reloadable } from './reload.ts';
import { Running } from './running.ts';
import { Tasks } from './tasks.ts';

/** ms that a daemon that waited for the lock tries to listen on the port of the previous owner. */
const portWaitMs = 10_000;
const portRetryMs = 200;

/** The parts that the admin server reads. */
interface Parts {
  /** Undefined until the state is open. */
  open: (Pick<Running, 'config' | 'operate'> & { snapshot(): Snapshot | Promise<Snapshot | undefined> }) | undefined;
  /** Set while the changed configuration is rejected. */
  rejected: Snapshot['rejected'];
}

/**
 * Runs until the signal is aborted or a fatal error occurs. Resolves after releasing every part, at the latest after `shutdownTimeout`:
 * whatever then hangs ends with the process.
 * @returns the fatal error, which is in the log; undefined after the signal
 * @throws the error that prevented the start
 */
export async function runDaemon(options: DaemonOptions, signal: AbortSignal): Promise<unknown> {
  const tasks = new Tasks(signal, options.clock, options.log);
  const parts: Parts = { open: undefined, rejected: undefined };
  const config = (): Config => parts.open?.config ?? options.config;
  const lookUps = (): readonly string[] => names.pending().map((name) => `the look-up of ${name}`);
  return tasks.limited(live(options, parts, tasks, signal), () => config().shutdownTimeout, lookUps);
}

async function live(options: DaemonOptions, parts: Parts, tasks: Tasks, signal: AbortSignal): Promise<unknown> {
  const { config, clock, log } = options;
  await using resources = new AsyncDisposableStack();
  const telemetry = await startTelemetry(config.telemetry, options.version, log.child('telemetry'), clock);
  const { tracer } = telemetry;
  const metrics = createMetrics(options.version, process.env['WAYBILL_REVISION'] ?? '', options.lostLines, telemetry);
  resources.defer(() => telemetry.stop(metrics));

  // The admin server answers probes while the daemon waits for another owner of the state. Its thread starts while the state opens.
  const admin = resources.use(createAdmin(options, parts, metrics));
  const firstListening = listenOnNetwork(admin, options);
  const { configSource, reloaded } = options;
  const follow = (running: Reloadable): void => {
    const result: Parameters<typeof followConfig>[0]['result'] = (outcome) => {
      const since = parts.rejected?.since ?? clock.now() * 1000;
      parts.rejected = 'config' in outcome ? undefined : { since, problems: outcome.problems };
      if (!('config' in outcome)) return;
      admin.follow(reportedOf(outcome.config));
      reloaded?.(outcome.config);
    };
    if (configSource) tasks.start('reload', (stop) => followConfig({ configSource, running, log, result }, stop));
  };
  if (config.fleet) {
    const listening = await firstListening;
    if ('thrown' in listening) throw listening.thrown;
    await using member = new FleetMember({ ...options, tracer, fleet: config.fleet }, metrics.meters);
    parts.open = member;
    resources.defer(() => metrics.bind(undefined));
    metrics.bind(() => withStates(member.own()));
    admin.opened();
    await admin.listen({ place: 'socket', path: join(config.dataDir, 'waybill.sock') });
    tasks.start('fleet', (stop) => member.run(stop));
    tasks.start('certificates', (stop) => reportEndingCertificates(() => member.own().certificates ?? [], clock, log, stop));
    follow(member);
    return await tasks.ended(() => member.config.shutdownTimeout);
  }
  const owner = { waited: false };
  const journal = resources.use(await openState(options, () => (owner.waited = true), signal));
  // Frees the port before the lock: a daemon that waits for the lock listens on the same port.
  resources.defer(() => admin[Symbol.asyncDispose]());
  // The last export must not read gauges: the journal is closed by then.
  resources.defer(() => metrics.bind(undefined));
  // Reports a used port only now: if another daemon owns both port and state, the error about the state is clearer.
  const listening = await firstListening;
  if ('thrown' in listening) await listenAgain(admin, options, listening, owner.waited ? portWaitMs : 0, signal);
  const running = new Running({ ...options, tracer }, { journal, meters: metrics.meters, tasks });
  running.register();
  parts.open = running;
  metrics.bind(() => withStates({ ...running.snapshot(), rejected: parts.rejected }));
  admin.opened();
  await admin.listen({ place: 'socket', path: join(config.dataDir, 'waybill.sock') });

  running.start();
  const sourceIds = (): string[] => running.config.sources.map(({ id }) => id);
  tasks.start('journal', (stop) => maintainJournal(journal, sourceIds, clock, log.child('journal'), stop));
  const ends = (): CertificateEnd[] => running.certificates.ends();
  tasks.start('certificates', (stop) => reportEndingCertificates(ends, clock, log, stop));
  follow(running);
  return await tasks.ended(() => running.config.shutdownTimeout);
}

function createAdmin(options: DaemonOptions, parts: Parts, metrics: Metrics): AdminServer {
  const { config, clock, log, version } = options;
  const facts: AdminFacts = {
    snapshot: async () => {
      const known = await parts.open?.snapshot();
      return known && { ...known, rejected: parts.rejected };
    },
    operate: (request) => operate(request, options, parts),
    database: () => databaseOf(parts.open?.config ?? config),
    metricsText: () => metrics.text(),
    token: lastReadableTokens((name) => (parts.open?.config ?? config).admin[name]),
  };
  return new AdminServer({
    state: config.fleet ? undefined : config.dataDir,
    version,
    facts,
    clock,
    log: log.child('admin'),
    ...reportedOf(config),
  });
}

/** @throws WaybillError `secret_missing`, `config_invalid` */
async function databaseOf({ fleet, tls }: Config): Promise<DatabaseValues> {
  if (!fleet) throw new TypeError('a state without a fleet has no database');
  return { database: fleet.database, password: fleet.password?.read(), ca: tls.ca?.read() };
}

function reportedOf(config: Config): Reported {
  return { settings: reportSettings(config), services: serviceWords(config) };
}

async function listenOnNetwork(
  admin: AdminServer,
  { config, log, listening }: DaemonOptions,
): Promise<readonly string[] | { readonly thrown: unknown }> {
  const { listen, tls } = config.admin;
  const tokens = tokenNames.filter((name) => config.admin[name] !== undefined);
  const addresses = await admin.listen({ place: 'network', listen, tls, tokens }).catch((thrown: unknown) => ({ thrown }));
  if (!('thrown' in addresses)) {
    listening?.(addresses);
    log.write('admin.listening', { addresses });
  }
  return addresses;
}

/** The previous owner of the state may need some time to free the port. @throws the last error after `waitMs` */
async function listenAgain(
  admin: AdminServer,
  options: DaemonOptions,
  failed: { readonly thrown: unknown },
  waitMs: number,
  signal: AbortSignal,
): Promise<void> {
  const { clock } = options;
  const deadline = clock.monotonic() + waitMs;
  for (let { thrown } = failed; ;) {
    if (clock.monotonic() >= deadline) throw thrown;
    await clock.sleep(portRetryMs, signal);
    const listening = await listenOnNetwork(admin, options);
    if (!('thrown' in listening)) return;
    thrown = listening.thrown;
  }
}

async function openState(options: DaemonOptions, waited: () => void, signal: AbortSignal): Promise<Journal> {
  const { config, version, clock, log, expectState, lockWait } = options;
  const { dataDir } = config;
  const waits = (): void => {
    waited();
    log.write('state.waiting_for_lock', { dataDir, lockWaitMs: lockWait });
  };
  const journal = await openJournal(config, { clock, release: version, expectState, lockWait, waits }, signal);
  if (journal.fresh) log.write('state.created', { dataDir, journal: journal.id });
  else log.write('state.opened', { dataDir, journal: journal.id, head: journal.head().seq });
  return journal;
}

async function operate(request: unknown, { logs }: DaemonOptions, { open }: Parts): Promise<unknown> {
  const level = logLevelRequest(request);
  if (level && logs) {
    setLogLevel(level, logs);
    return {};
  }
  if (!open) throw new WaybillError('state_unusable', 'cannot perform the operation: the state is not open yet');
  return open.operate(request);
}
