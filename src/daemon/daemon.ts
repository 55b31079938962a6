/**
 * The life of the daemon: it creates every part in the order in which data flows, runs the loops, and releases the parts in the opposite
 * order.
 */
import { join } from 'node:path';
import { settingsText } from '../config/state-settings.ts';
import { WaybillError } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import { snapshotOf } from '../journal/queries/snapshot.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { Budgets } from '../source/limits.ts';
import { createMetrics, type Metrics } from '../telemetry/metrics.ts';
import { AdminServer, type AdminFacts } from './admin/server.ts';
import { Certificates } from './certificates.ts';
import { LiveStatus, reportSettings, serviceWords } from './live-status.ts';
import { maintainJournal } from './maintenance.ts';
import { openJournal } from './open-journal.ts';
import { operationOf, perform } from './operations/perform.ts';
import type { DaemonOptions } from './options.ts';
import { createDelivery, type ConfiguredSink } from './sink.ts';
import { runSource } from './source/run.ts';
import { Tasks } from './tasks.ts';

/** The parts that the admin server reads. */
interface Parts {
  /** Undefined until the state is open. */
  open: { readonly journal: Journal; readonly liveStatus: LiveStatus } | undefined;
  sinks: readonly ConfiguredSink[];
}

/** ms between the starts of two sources. */
const maxSpread = 100;

/**
 * Runs until the signal is aborted or a fatal error occurs, and resolves when everything is released.
 * @returns the fatal error, which is in the log; undefined after the signal
 * @throws the error that prevented the start
 */
export async function runDaemon(options: DaemonOptions, signal: AbortSignal): Promise<unknown> {
  const { config, clock, log } = options;
  await using resources = new AsyncDisposableStack();
  const metrics = resources.use(createMetrics(options.version, process.env['WAYBILL_REVISION'] ?? '', options.lostLines));
  const parts: Parts = { open: undefined, sinks: [] };

  // The admin server listens first: probes are answered while the daemon waits for another owner of the state.
  const admin = resources.use(createAdmin(options, parts, metrics));
  const listening = await listenOnNetwork(admin, options);
  const journal = resources.use(await openState(options, signal));
  // Thrown only now: another daemon that has both the port and the state is reported as the owner of the state.
  if ('thrown' in listening) throw listening.thrown;
  markUnconfigured(journal, options);
  journal.storeSettings(settingsText(config));

  const liveStatus = new LiveStatus(config);
  const certificates = new Certificates(config, liveStatus.sources);
  parts.open = { journal, liveStatus };
  metrics.bind(() => ({ ...snapshot(options, journal, liveStatus), certificates: certificates.ends() }));
  admin.opened();
  await admin.listen({ place: 'socket', path: join(config.dataDir, 'waybill.sock') });

  // Sinks are registered before the first record can arrive: `start: now` means this moment.
  const deliveries = config.sinks.map((sink) => createDelivery(sink, journal, options, metrics.meters, certificates));
  for (const { id, loop } of deliveries) liveStatus.deliveries.set(id, loop);
  parts.sinks = deliveries;

  const tasks = new Tasks(signal, clock, log);
  const budgets = new Budgets(clock);
  for (const [index, source] of config.sources.entries()) {
    // The starts are spread over one poll interval: sources with the same interval would always poll together.
    const delayMs = index * Math.min(maxSpread, source.pollInterval / config.sources.length);
    tasks.start('collect', async (stop) => {
      await clock.sleep(delayMs, stop);
      await runSource(source, journal, options, metrics.meters, budgets, liveStatus, stop);
    });
  }
  for (const { loop } of deliveries) tasks.start('deliver', (stop, abandon) => loop.run(stop, abandon));
  const sourceIds = config.sources.map(({ id }) => id);
  tasks.start('journal', (stop) => maintainJournal(journal, sourceIds, clock, log.child('journal'), stop));
  return await tasks.ended(config.shutdownTimeout);
}

function createAdmin(options: DaemonOptions, parts: Parts, metrics: Metrics): AdminServer {
  const { config, clock, log, version } = options;
  const { token, readToken } = config.admin;
  const tokens = { token, readToken };
  const facts: AdminFacts = {
    snapshot: () => parts.open && snapshot(options, parts.open.journal, parts.open.liveStatus),
    operate: (request) => operate(request, options, parts),
    metricsText: () => metrics.text(),
    token: (name) => tokens[name]?.read() ?? '',
  };
  return new AdminServer({
    ...{ state: config.dataDir, version, settings: reportSettings(config), services: serviceWords(config) },
    ...{ facts, clock, log: log.child('admin') },
  });
}

async function listenOnNetwork(
  admin: AdminServer,
  { config, log, listening }: DaemonOptions,
): Promise<readonly string[] | { readonly thrown: unknown }> {
  const { listen, tls } = config.admin;
  const tokens = (['token', 'readToken'] as const).filter((name) => config.admin[name] !== undefined);
  const addresses = await admin.listen({ place: 'network', listen, tls, tokens }).catch((thrown: unknown) => ({ thrown }));
  if (!('thrown' in addresses)) {
    listening?.(addresses);
    log.write('admin.listening', { addresses });
  }
  return addresses;
}

async function openState({ config, version, clock, log, expectState, lockWait }: DaemonOptions, signal: AbortSignal): Promise<Journal> {
  const { dataDir } = config;
  const waits = (): void => log.write('state.waiting_for_lock', { dataDir, lockWaitMs: lockWait });
  const journal = await openJournal(config, { clock, release: version, expectState, lockWait, waits }, signal);
  if (journal.fresh) log.write('state.created', { dataDir, journal: journal.id });
  else log.write('state.opened', { dataDir, journal: journal.id, head: journal.head().seq });
  return journal;
}

function markUnconfigured(journal: Journal, { config, log }: DaemonOptions): void {
  const sources = journal.markSourcesUnconfigured(new Set(config.sources.map(({ id }) => id)));
  for (const id of sources) log.write('source.unconfigured', { source: id });
  const sinks = journal.sinkPositions.markUnconfigured(new Set(config.sinks.map(({ id }) => id)));
  for (const { id } of sinks) log.write('sink.unconfigured', { sink: id });
}

function snapshot({ version, clock }: DaemonOptions, journal: Journal, liveStatus: LiveStatus): Snapshot {
  return snapshotOf(journal.db, version, clock.now() * 1000, liveStatus.live(journal));
}

async function operate(request: unknown, { clock, log }: DaemonOptions, { open, sinks }: Parts): Promise<unknown> {
  if (!open) throw new WaybillError('state_unusable', 'cannot perform the operation: the state is not open yet');
  const { journal, liveStatus } = open;
  const result = await perform(
    request,
    journal,
    clock.now() * 1000,
    (source, from) => liveStatus.collectors.get(source)?.backfiller.reading(from),
    (id) => sinks.find((sink) => sink.id === id),
  );
  log.write('operation.performed', { ...operationOf(request) });
  return result;
}
