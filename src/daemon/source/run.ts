/** One source of the daemon: its client, its server clock, the profile of its service, and its collector. */
import type { Requester } from '../../collect/requester.ts';
import { Collector } from '../../collect/scheduler.ts';
import { accessSource, type SourceAccess } from '../../collect/source-access.ts';
import { earliest } from '../../collect/earliest.ts';
import { handCount } from '../../collect/hand-count.ts';
import { SourcePaging } from '../../collect/page-size.ts';
import type { Caps } from '../../collect/read-window.ts';
import type { SourceConfig } from '../../config/load.ts';
import { openSource } from '../open-source.ts';
import type { DaemonOptions } from '../options.ts';
import { codeOf, isFinal, WaybillError } from '../../errors/errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Source } from '../../model/source.ts';
import type { Log, Meters } from '../../model/telemetry.ts';
import type { Clock, Micros } from '../../model/time.ts';
import { Delays } from '../../telemetry/delays.ts';
import { identify } from '../../record/identity.ts';
import type { ServiceSource } from '../../source/client.ts';
import { calibrate, type Calibration } from '../../collect/calibrate.ts';
import { UnboundedQuery } from '../../source/unbounded-query.ts';
import type { Budgets } from '../../source/limits.ts';
import { ServerClock, type ClockProfile } from '../../source/server-clock.ts';
import { UnreadStart } from './unread-start.ts';
import { Calibrator } from './calibrator.ts';
import { ProfileStore } from './profile.ts';
import { factsOf } from '../../config/service-facts.ts';
import { destinationOf } from '../../source/destination.ts';
import { whileMoved } from './moved.ts';
import { startOf } from './start.ts';
import type { LiveStatus } from '../live-status.ts';
import { whenWritable } from '../when-writable.ts';

/** The client of a source, and the state that its loops share. */
interface Connection {
  readonly settings: SourceConfig;
  readonly source: UnboundedQuery;
  readonly store: ProfileStore;
  readonly serverClock: ServerClock;
  readonly access: SourceAccess;
  readonly paging: SourcePaging;
  readonly caps: Caps;
  /** Server time, as far as it is known. */
  readonly now: () => Micros;
  readonly clock: Clock;
  readonly log: Log;
  readonly meters: Meters;
}

/** Runs one source: connects, starts its ledger after the first response, and collects until the signal is aborted. */
export async function runSource(
  settings: SourceConfig,
  journal: Journal,
  options: DaemonOptions,
  daemonMeters: Meters,
  budgets: Budgets,
  liveStatus: LiveStatus,
  signal: AbortSignal,
): Promise<void> {
  const { clock, random, config, tracer } = options;
  const { id } = settings;
  const log = options.log.child('collect');
  // mutant: while-moved
  await whileMoved(settings, journal, options, daemonMeters, signal);
  const isKnown = journal.hasSource(id);
  const store = new ProfileStore(id, journal);
  const delays = new Delays(store.profile.delays, settings.pollInterval);
  const meters = measuring(delays, daemonMeters, clock);
  const budget = budgets.of(id, settings.requests.perSecond, settings.requests.group);
  await using client = openSource(settings, config, { clock, budget, meters, log, tracer }, options.openSource);
  const connection = await connect(client, settings, store, journal, { clock, random, log, meters, tracer });
  const { access, serverClock, source, paging, caps, now } = connection;
  const { visibility } = store.profile;
  const calibrator = calibratorOf(connection);
  const unreadStart = new UnreadStart({ settings, journal, store, earliest: (stop) => earliestOf(connection, stop), now, log }, isKnown);
  const measured = {
    serverClock,
    caps,
    unboundedQuery: source,
    visibility: () => collector.visibilityProfile(),
    delays: () => delays.measure(),
  };
  const collector: Collector = new Collector({
    settings,
    access,
    serverClock,
    journal,
    paging,
    caps,
    clock,
    random,
    log,
    meters,
    visibility,
    pollOverlap: options.pollOverlap?.(),
    learned: () => store.save(measured),
    pace: store.profile.pace,
    keepPace: (pace) => store.setPace(pace),
    maintenance: (stop) => calibrator.whenDue(stop),
    whenIdle: async (stop, records) => (source.isWhole && (await unreadStart.whenDue(stop))) || calibrator.countWhenDue(records, stop),
  });
  liveStatus.add(id, { source: client, queries: source, collector, delays, calibrator, clock: serverClock });

  if (isKnown) {
    const moved = await whenWritable(() => journal.registerSource(id, destinationOf(settings), undefined), { clock, log }, signal);
    if (moved) log.write('source.moved', { source: id, ...moved });
    if (settings.start.kind !== 'earliest') unreadStart.report();
    await store.setService(factsOf(settings, config));
    // Without a calibration, an earlier process ended between registration and calibration. The loop
    // makes later calibrations, and nothing waits for them.
    if (!store.profile.calibration) await calibrator.whenDue(signal);
  } else {
    await startLedger(connection, calibrator, journal, config, (message) => liveStatus.await(id, message), signal);
  }
  const saving = store.run(measured, clock, signal);
  try {
    await Promise.all([collector.run(signal), saving]);
  } finally {
    // Waits until the profile is saved: the next run of this source starts with it.
    if (signal.aborted) await Promise.allSettled([saving]);
  }
}

async function connect(
  client: ServiceSource,
  settings: SourceConfig,
  store: ProfileStore,
  journal: Journal,
  {
    clock,
    random,
    log,
    meters,
    tracer,
  }: Pick<DaemonOptions, 'clock' | 'random' | 'tracer'> & { readonly log: Log; readonly meters: Meters },
): Promise<Connection> {
  const { id, closeDelay } = settings;
  const { calibration, unboundedQuery, visibility, clock: storedClock } = store.profile;
  const profile = await clockSince(storedClock, id, journal);
  const serverClock = new ServerClock({ source: id, closeDelay, clock, log, profile });
  const paging = new SourcePaging(clock);
  paging.calibrated(calibration ?? {}, sizeOf(settings, calibration));
  const now = (): Micros => serverClock.now() ?? clock.now() * 1000;
  const source = new UnboundedQuery({ id, source: client, clock: { now: () => now() / 1000 }, log, query: unboundedQuery });
  const access = accessSource({
    sourceId: id,
    paging,
    source,
    uidOf: identify(id),
    journal,
    serverClock,
    clock,
    random,
    log,
    meters,
    tracer,
    closeDelay,
    lastFullVisibility: visibility?.lastFullVisibility,
  });
  return {
    settings,
    source,
    store,
    serverClock,
    access,
    clock,
    log,
    meters,
    paging,
    caps: { largest: calibration?.total ?? 0 },
    now,
  };
}

function calibratorOf({ settings, source, store, serverClock, access, paging, caps, now, clock, log, meters }: Connection): Calibrator {
  const { id, pageSize } = settings;
  const { requester, handoff } = access;
  return new Calibrator({
    id,
    store,
    paging,
    caps,
    now,
    log,
    meters,
    calibrate: (stop) => untilAnswered(requester, (service) => calibrate(service, pageSize, stop), stop),
    calibrateOnce: async (stop) => {
      await source.widen(stop);
      return calibrate(withoutRetry(id, source, serverClock), pageSize, stop);
    },
    count: (total, records, stop) =>
      handCount({ requester, paging, handoff, store: records, sleep: (ms, to) => clock.sleep(ms, to), log }, total, stop),
    sizeOf: (calibration) => sizeOf(settings, calibration),
  });
}

/**
 * Calibrates with the first response, which also gives the server time. The source sends no other request before it collects, so that many
 * sources with a shared budget start soon.
 */
async function startLedger(
  connection: Connection,
  calibrator: Calibrator,
  journal: Journal,
  config: DaemonOptions['config'],
  awaits: (message: string | undefined) => void,
  signal: AbortSignal,
): Promise<void> {
  const { settings, source, store, serverClock, access, paging, now, clock, log } = connection;
  const calibration = await calibrator.calibrate(signal);
  const start = await startOf(
    { settings, requester: access.requester, paging, unboundedQuery: source, serverClock, clock, log, awaits },
    signal,
  );
  await whenWritable(() => journal.registerSource(settings.id, destinationOf(settings), start), { clock, log }, signal);
  await store.setService(factsOf(settings, config));
  await store.setCalibration(calibration, now());
}

async function earliestOf({ settings, access, paging, now }: Connection, signal: AbortSignal): Promise<Micros> {
  const { start } = await earliest(access.requester, paging, now(), settings.closeDelay * 1000, signal);
  return start;
}

/** The meters of the daemon without the record delays that an outage caused, which `delays` detects. */
function measuring(delays: Delays, meters: Meters, clock: Clock): Meters {
  return {
    ...meters,
    sourceRequest: (source, outcome, seconds) => {
      if (outcome === 'ok') delays.answered(clock.now() * 1000);
      meters.sourceRequest(source, outcome, seconds);
    },
    recordDelay: (source, seconds) => {
      if (delays.add(seconds, clock.now() * 1000)) meters.recordDelay(source, seconds);
    },
  };
}

/** Retries until the service gives a usable response. Status and probes report a wrong address or a rejected login; the daemon continues. */
async function untilAnswered<Answer>(
  requester: Requester,
  ask: (service: Source) => Promise<Answer>,
  signal: AbortSignal,
): Promise<Answer> {
  const service: Source = { page: (request, stop) => requester.page(request, stop), [Symbol.asyncDispose]: () => Promise.resolve() };
  for (let failures = 0; ; failures += 1) {
    try {
      return await ask(service);
    } catch (thrown) {
      signal.throwIfAborted();
      if (codeOf(thrown) === undefined || isFinal(thrown)) throw thrown;
      await requester.wait(thrown, failures, signal);
    }
  }
}

/** The stored bound of the server clock, moved to the latest close time of a window that the ledger has recorded since. */
async function clockSince(stored: ClockProfile | undefined, id: string, journal: Journal): Promise<ClockProfile | undefined> {
  if (stored?.bound === undefined) return stored;
  const windows = await journal.closedSince(id, stored.bound);
  return { ...stored, bound: windows.reduce((latest, { closed }) => Math.max(latest, closed), stored.bound) };
}

/** A source without retries, for requests that can be made later. Throws the error of the only attempt. */
function withoutRetry(id: string, source: Source, serverClock: ServerClock): Source {
  return {
    page: async (request, signal) => {
      const page = await source.page(request, signal);
      if (serverClock.observe(page) === 'accepted') return page;
      throw new WaybillError('source_busy', `cannot use the response of source "${id}": it is cached, older than an earlier response`);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function sizeOf(settings: SourceConfig, calibration: Calibration | undefined): number {
  if (settings.pageSize !== 'auto') return Math.min(settings.pageSize, calibration?.pageSize ?? settings.pageSize);
  return calibration?.pageSize ?? 100;
}
