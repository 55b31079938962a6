/**
 * The wiring of the daemon, in the order in which data flows: configuration, journal, sources with their collectors, sinks with their loops,
 * and what looks at them. Nothing else constructs these; what is opened is released in the opposite order, whatever happens.
 */
import { join } from 'node:path';
import { settingsText } from '../config/state-settings.ts';
import { operationOf, perform } from './operations/acts.ts';
import { AdminServer } from './admin/server.ts';
import type { DaemonOptions } from './options.ts';
import { Certificates } from './certificates.ts';
import { createDelivery } from './sink.ts';
import type { ConfiguredSink } from './sink.ts';
import { runSource } from './source/source.ts';
import { reportSettings, serviceWords, Views } from './views.ts';
import { codeOf, WaybillError, wordsOf } from '../errors.ts';
import { Journal } from '../journal/journal.ts';
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
const spreadMost = 100;

/**
 * Runs until the signal is aborted, or until an error that no retry can fix, and resolves once everything is released.
 * @returns that error, which is in the log; undefined when the signal ended it
 * @throws what prevents the start
 */
export async function runDaemon(options: DaemonOptions, signal: AbortSignal): Promise<unknown> {
  const { config, clock, log } = options;
  await using open = new AsyncDisposableStack();
  const daemon: { journal: Journal | undefined; views: Views | undefined; sinks: readonly ConfiguredSink[] } = {
    ...{ journal: undefined, views: undefined, sinks: [] },
  };

  const metrics = open.use(createMetrics(options.version, process.env['WAYBILL_REVISION'] ?? '', options.lostLines));
  const snapshot = (): Snapshot | undefined =>
    daemon.journal && daemon.views
      ? snapshotOf(daemon.journal.db, options.version, clock.now() * 1000, daemon.views.live(daemon.journal))
      : undefined;
  const operate = async (request: unknown): Promise<unknown> => {
    if (!daemon.journal) throw new WaybillError('state_unusable', 'cannot change anything: the state is not open yet');
    const done = await perform(
      request,
      daemon.journal,
      clock.now() * 1000,
      (source, from) => daemon.views?.collectors.get(source)?.backfiller.reading(from),
      (id) => daemon.sinks.find((sink) => sink.id === id),
    );
    log.info({ ...operationOf(request) }, 'operation');
    return done;
  };
  const { listen, tls, ...tokens } = config.admin;
  const admin = open.use(
    new AdminServer({
      ...{ state: config.state, version: options.version, settings: reportSettings(config), services: serviceWords(config) },
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
    log.info({ addresses: listening }, 'admin server listens');
  }

  const journal = open.use(
    await Journal.open(
      {
        directory: config.state,
        quota: config.journal.quota,
        keep: config.journal.keep,
        version: options.version,
        expectState: options.expectState,
        lockWait: options.lockWait,
        waits: () => log.info({ state: config.state, lockWaitMs: options.lockWait }, 'waiting for the owner of the state to end'),
      },
      clock,
      signal,
    ),
  );
  if ('thrown' in listening) throw listening.thrown;
  if (journal.fresh) log.warn({ state: config.state, journal: journal.id }, 'state.created');
  else log.info({ state: config.state, journal: journal.id, head: journal.head().seq }, 'state opened');
  for (const id of journal.orphanSources(new Set(config.sources.map((source) => source.id))))
    log.warn({ source: id }, 'source is not configured any more');
  for (const sink of journal.progress.orphan(new Set(config.sinks.map((each) => each.id))))
    log.warn({ sink: sink.id }, 'sink is not configured any more');

  journal.storeSettings(settingsText(config));

  const views = new Views(config);
  daemon.journal = journal;
  daemon.views = views;
  const certificates = new Certificates(config, views.sources);
  metrics.bind(() => ({
    ...snapshotOf(journal.db, options.version, clock.now() * 1000, views.live(journal)),
    certificates: certificates.ends(),
  }));
  admin.opened();
  await admin.listen({ place: 'socket', path: join(config.state, 'waybill.sock') });

  // Sinks are registered before the first record can arrive, so that `from: now` means this moment.
  const deliveries = config.sinks.map((sink) => createDelivery(sink, journal, options, metrics.meters, certificates));
  for (const each of deliveries) views.deliveries.set(each.id, each.loop);
  daemon.sinks = deliveries;

  // One failure that nothing can mend ends all: the orchestrator starts the process again, and starting again is always safe.
  const failure = new AbortController();
  const stop = AbortSignal.any([signal, failure.signal]);
  const abandon = new AbortController();
  const guarded = async (name: string, work: Promise<void>): Promise<void> => {
    try {
      await work;
    } catch (thrown) {
      if (stop.aborted && thrown === stop.reason) return;
      if (stop.aborted && codeOf(thrown) === 'journal_full') {
        log.warn({ name, code: 'journal_full', error: thrown }, 'what is acknowledged last is not written; the next start settles it');
        return;
      }
      if (!failure.signal.aborted) {
        log.error({ name, code: codeOf(thrown), error: thrown }, 'this cannot be mended: the process ends');
        failure.abort(thrown);
      }
    }
  };
  const budgets = new Budgets(clock);
  const running = [
    ...config.sources.map((source, i) => {
      // Polls of many sources are spread over the time between two of them, so that they do not all come at once for ever.
      const waitMs = i * Math.min(spreadMost, source.poll / config.sources.length);
      const run = async (): Promise<void> => {
        await clock.sleep(waitMs, stop);
        await runSource(source, journal, options, metrics.meters, budgets, views, stop);
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
  log.info({ reason: wordsOf(stop.reason) }, 'stopping');
  const grace = new AbortController();
  const ended = Promise.all(running);
  const timer = clock.sleep(config.grace, grace.signal).then(
    () => {
      log.warn({ graceMs: config.grace }, 'the batch under way is abandoned');
      abandon.abort(new WaybillError('aborted', 'the grace period is over'));
    },
    () => undefined,
  );
  await ended;
  grace.abort();
  await timer;
  log.info({}, 'stopped');
  return failure.signal.aborted ? failure.signal.reason : undefined;
}

/** What the journal needs now and then: a look whether its file is still there, pruning; and, once an hour, each frontier in the log, where it outlives a state that is lost. */
async function tend(journal: Journal, sources: readonly string[], clock: Clock, log: Log, signal: AbortSignal): Promise<void> {
  let sayAt = clock.monotonic() + hourMs;
  let pruneAt = clock.monotonic() + pruneMs;
  for (;;) {
    const isPaused = journal.paused() !== undefined;
    await clock.sleep(isPaused ? lookPausedMs : lookMs, signal);
    journal.assertPresent();
    if (journal.examine(lookMs)) log.info({ head: journal.head().seq }, 'state examined');
    // What collecting waits for is not put off for a minute.
    if (!isPaused && clock.monotonic() < pruneAt) continue;
    pruneAt = clock.monotonic() + pruneMs;
    for (let pruned = journal.prune(); pruned > 0; pruned = journal.prune()) {
      log.debug({ entries: pruned }, 'journal pruned');
      await clock.sleep(10, signal);
    }
    if (clock.monotonic() < sayAt) continue;
    sayAt += hourMs;
    for (const id of sources.filter((source) => journal.hasSource(source))) {
      log.info({ source: id, frontier: microsToIso(journal.marks(id).frontier) }, 'ledger.frontier');
    }
  }
}
