/**
 * The wiring of the daemon, in the order in which data flows: configuration, journal, sources with their collectors, sinks with their loops,
 * and what looks at them. Nothing else constructs these; what is opened is released in the opposite order, whatever happens.
 */
import { join } from 'node:path';
import { settingsText } from '../config/state-settings.ts';
import { operationOf, perform } from './operations/perform.ts';
import { AdminServer } from './admin/server.ts';
import type { DaemonOptions } from './options.ts';
import { Certificates } from './certificates.ts';
import { openJournal } from './open-journal.ts';
import { createDelivery } from './sink.ts';
import type { ConfiguredSink } from './sink.ts';
import { runSource } from './source/run.ts';
import { reportSettings, serviceWords, LiveStatus } from './live-status.ts';
import { codeOf, WaybillError, messageOf } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import { snapshotOf } from '../journal/queries/snapshot.ts';
import type { Snapshot } from '../model/snapshot.ts';
import type { Log } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { createMetrics } from '../telemetry/metrics.ts';
import { microsToIso } from '../record/timestamp.ts';
import { Budgets } from '../source/limits.ts';

const lookMs = 10_000;
const lookPausedMs = 1_000;
const pruneMs = 60_000;
const hourMs = 3_600_000;
/** Between the starts of two sources, at most. */
const maxSpread = 100;

/**
 * Runs until the signal is aborted, or until an error that no retry can fix, and resolves once everything is released.
 * @returns that error, which is in the log; undefined when the signal ended it
 * @throws what prevents the start
 */
export async function runDaemon(options: DaemonOptions, signal: AbortSignal): Promise<unknown> {
  const { config, clock, log } = options;
  await using open = new AsyncDisposableStack();
  const daemon: { journal: Journal | undefined; liveStatus: LiveStatus | undefined; sinks: readonly ConfiguredSink[] } = {
    ...{ journal: undefined, liveStatus: undefined, sinks: [] },
  };

  const metrics = open.use(createMetrics(options.version, process.env['WAYBILL_REVISION'] ?? '', options.lostLines));
  const snapshot = (): Snapshot | undefined =>
    daemon.journal && daemon.liveStatus
      ? snapshotOf(daemon.journal.db, options.version, clock.now() * 1000, daemon.liveStatus.live(daemon.journal))
      : undefined;
  const operate = async (request: unknown): Promise<unknown> => {
    if (!daemon.journal) throw new WaybillError('state_unusable', 'cannot change anything: the state is not open yet');
    const done = await perform(
      request,
      daemon.journal,
      clock.now() * 1000,
      (source, from) => daemon.liveStatus?.collectors.get(source)?.backfiller.reading(from),
      (id) => daemon.sinks.find((sink) => sink.id === id),
    );
    log.write('operation.performed', { ...operationOf(request) });
    return done;
  };
  const { listen, tls, ...tokens } = config.admin;
  const admin = open.use(
    new AdminServer({
      ...{ state: config.dataDir, version: options.version, settings: reportSettings(config), services: serviceWords(config) },
      facts: { snapshot, operate, metricsText: () => metrics.text(), token: (name) => tokens[name]?.read() ?? '' },
      log: log.child('admin'),
      clock,
    }),
  );
  // Before the state is opened, so that probes are answered while its owner ends. Where that owner has the port too, it is the owner that counts.
  const names = (['token', 'readToken'] as const).filter((name) => tokens[name] !== undefined);
  const listening = await admin.listen({ place: 'network', listen, tls, tokens: names }).catch((thrown: unknown) => ({ thrown }));
  if (!('thrown' in listening)) {
    options.listening?.(listening);
    log.write('admin.listening', { addresses: listening });
  }

  const journal = open.use(
    await openJournal(
      config,
      {
        clock,
        release: options.version,
        expectState: options.expectState,
        lockWait: options.lockWait,
        waits: () => log.write('state.waiting_for_lock', { dataDir: config.dataDir, lockWaitMs: options.lockWait }),
      },
      signal,
    ),
  );
  if ('thrown' in listening) throw listening.thrown;
  if (journal.fresh) log.write('state.created', { dataDir: config.dataDir, journal: journal.id });
  else log.write('state.opened', { dataDir: config.dataDir, journal: journal.id, head: journal.head().seq });
  for (const id of journal.markSourcesUnconfigured(new Set(config.sources.map((source) => source.id))))
    log.write('source.unconfigured', { source: id });
  for (const sink of journal.sinkPositions.markUnconfigured(new Set(config.sinks.map((each) => each.id))))
    log.write('sink.unconfigured', { sink: sink.id });

  journal.storeSettings(settingsText(config));

  const liveStatus = new LiveStatus(config);
  daemon.journal = journal;
  daemon.liveStatus = liveStatus;
  const certificates = new Certificates(config, liveStatus.sources);
  metrics.bind(() => ({
    ...snapshotOf(journal.db, options.version, clock.now() * 1000, liveStatus.live(journal)),
    certificates: certificates.ends(),
  }));
  admin.opened();
  await admin.listen({ place: 'socket', path: join(config.dataDir, 'waybill.sock') });

  // Sinks are registered before the first record can arrive, so that `from: now` means this moment.
  const deliveries = config.sinks.map((sink) => createDelivery(sink, journal, options, metrics.meters, certificates));
  for (const each of deliveries) liveStatus.deliveries.set(each.id, each.loop);
  daemon.sinks = deliveries;

  // One fatal failure ends all: the orchestrator starts the process again, and starting again is always safe.
  const failure = new AbortController();
  const stop = AbortSignal.any([signal, failure.signal]);
  const abandon = new AbortController();
  const guarded = async (name: string, work: Promise<void>): Promise<void> => {
    try {
      await work;
    } catch (thrown) {
      if (stop.aborted && thrown === stop.reason) return;
      if (stop.aborted && codeOf(thrown) === 'journal_full') {
        log.write('daemon.acknowledgements_unsaved', { name, code: 'journal_full', error: thrown });
        return;
      }
      if (!failure.signal.aborted) {
        log.write('daemon.failed', { name, code: codeOf(thrown), error: thrown });
        failure.abort(thrown);
      }
    }
  };
  const budgets = new Budgets(clock);
  const running = [
    ...config.sources.map((source, i) => {
      // Polls of many sources are spread over the time between two of them, so that they do not all come at once for ever.
      const waitMs = i * Math.min(maxSpread, source.pollInterval / config.sources.length);
      const run = async (): Promise<void> => {
        await clock.sleep(waitMs, stop);
        await runSource(source, journal, options, metrics.meters, budgets, liveStatus, stop);
      };
      return guarded('collect', run());
    }),
    ...deliveries.map(({ loop }) => guarded('deliver', loop.run(stop, abandon.signal))),
    guarded(
      'journal',
      tend(
        journal,
        config.sources.map(({ id }) => id),
        clock,
        log.child('journal'),
        stop,
      ),
    ),
  ];

  await new Promise<void>((resolve) => {
    if (stop.aborted) resolve();
    else stop.addEventListener('abort', () => resolve(), { once: true });
  });
  log.write('daemon.stopping', { reason: messageOf(stop.reason) });
  const shutdownTimeout = new AbortController();
  const ended = Promise.all(running);
  const timer = clock.sleep(config.shutdownTimeout, shutdownTimeout.signal).then(
    () => {
      log.write('daemon.batch_abandoned', { shutdownTimeoutMs: config.shutdownTimeout });
      abandon.abort(new WaybillError('aborted', 'the grace period is over'));
    },
    () => undefined,
  );
  await ended;
  shutdownTimeout.abort();
  await timer;
  log.write('daemon.stopped');
  return failure.signal.aborted ? failure.signal.reason : undefined;
}

/** What the journal needs now and then: a look whether its file is still there, pruning; and, once an hour, each frontier in the log, where it outlives a state that is lost. */
async function tend(journal: Journal, sources: readonly string[], clock: Clock, log: Log, signal: AbortSignal): Promise<void> {
  let sayAt = clock.monotonic() + hourMs;
  let pruneAt = clock.monotonic() + pruneMs;
  for (;;) {
    const isPaused = (await journal.paused()) !== undefined;
    await clock.sleep(isPaused ? lookPausedMs : lookMs, signal);
    journal.assertPresent();
    if (journal.examine(lookMs)) log.write('state.checked', { head: journal.head().seq });
    // What collecting waits for is not put off for a minute.
    if (!isPaused && clock.monotonic() < pruneAt) continue;
    pruneAt = clock.monotonic() + pruneMs;
    for (let pruned = journal.prune(); pruned > 0; pruned = journal.prune()) {
      log.write('journal.pruned', { entries: pruned });
      await clock.sleep(10, signal);
    }
    if (clock.monotonic() < sayAt) continue;
    sayAt += hourMs;
    for (const id of sources.filter((source) => journal.hasSource(source))) {
      log.write('source.frontier', { source: id, frontier: microsToIso(journal.progress(id).frontier) });
    }
  }
}
