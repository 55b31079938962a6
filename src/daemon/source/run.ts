/** One source of the daemon: its client, its clock, what is known about its service, and the collector that asks. */
import type { Requester } from '../../collect/requester.ts';
import { Collector } from '../../collect/scheduler.ts';
import { accessSource } from '../../collect/source-access.ts';
import { earliest } from '../../collect/earliest.ts';
import { handCount } from '../../collect/hand-count.ts';
import type { Paging } from '../../collect/page-cursor.ts';
import type { Caps } from '../../collect/read-window.ts';
import type { SourceConfig } from '../../config/load.ts';
import { openSource } from '../open-source.ts';
import type { DaemonOptions } from '../options.ts';
import { codeOf, isFinal, WaybillError } from '../../errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { Source } from '../../model/source.ts';
import type { Meters } from '../../model/telemetry.ts';
import type { Clock, Micros } from '../../model/time.ts';
import { Delays } from '../../telemetry/delays.ts';
import { identify } from '../../record/identity.ts';
import { calibrate } from '../../source/calibrate.ts';
import type { Calibration } from '../../source/calibrate.ts';
import { UnboundedQuery } from '../../source/unbounded-query.ts';
import type { Budgets } from '../../source/limits.ts';
import { ServerClock } from '../../source/server-clock.ts';
import type { ClockProfile } from '../../source/server-clock.ts';
import { UnreadStart } from './unread-start.ts';
import { Calibrator } from './calibrator.ts';
import { ProfileStore } from './profile.ts';
import { factsOf } from './service-facts.ts';
import { startOf } from './start.ts';
import type { LiveStatus } from '../live-status.ts';

/** One source from its first answer on: where its ledger begins, what its service grants, and then the loop. */
export async function runSource(
  settings: SourceConfig,
  journal: Journal,
  options: DaemonOptions,
  counting: Meters,
  budgets: Budgets,
  liveStatus: LiveStatus,
  signal: AbortSignal,
): Promise<void> {
  const { clock, random, config } = options;
  const { id } = settings;
  const log = options.log.child('collect');
  const budget = budgets.of(id, settings.requests.perSecond, settings.requests.group);
  const known = journal.hasSource(id);
  const store = new ProfileStore(id, journal);
  const { profile } = store;
  const delays = new Delays(profile.delays, settings.pollInterval);
  const meters = measuring(delays, counting, clock);
  liveStatus.delays.set(id, delays);
  await using source = openSource(settings, config, { clock, budget, meters, log }, options.openSource);
  liveStatus.sources.set(id, source);
  const unboundedQuery = new UnboundedQuery({ id, source, clock, log, query: profile.unboundedQuery });
  const kept = await sinceKept(profile.clock, id, journal);
  const serverClock = new ServerClock({ source: id, closeDelay: settings.closeDelay, clock, log, profile: kept });
  liveStatus.clocks.set(id, serverClock);
  const paging: Paging = { first: profile.calibration?.firstPage ?? 1, size: sizeOf(settings, profile.calibration) };
  const caps: Caps = { largest: profile.calibration?.total ?? 0 };
  const now = (): Micros => serverClock.now() ?? clock.now() * 1000;
  const { closeDelay } = settings;
  const access = accessSource({
    ...{ sourceId: id, source: unboundedQuery, uidOf: identify(id), journal, serverClock, clock, random, log, meters, closeDelay },
    lastFullVisibility: profile.visibility?.lastFullVisibility,
  });
  const { requester, handoff } = access;
  const calibrator = new Calibrator({
    ...{ id, store, paging, caps, now, log, meters },
    ask: (stop) => untilAnswered(requester, (service) => calibrate(service, settings.pageSize, stop), stop),
    askOnce: async (stop) => {
      await unboundedQuery.widen(stop);
      return calibrate(once(id, unboundedQuery, serverClock), settings.pageSize, stop);
    },
    count: (total, store, stop) =>
      handCount({ requester, paging, handoff, store, sleep: (ms, to) => clock.sleep(ms, to), log }, total, stop),
    sizeOf: (calibration) => sizeOf(settings, calibration),
  });
  const found = async (stop: AbortSignal): Promise<Micros> => (await earliest(requester, paging, now(), closeDelay * 1000, stop)).start;
  const unreadStart = new UnreadStart({ settings, journal, store, earliest: found, now, log }, known);
  const living = { serverClock, caps, unboundedQuery, visibility: () => collector.visibilityProfile(), delays: () => delays.measure() };
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
    visibility: profile.visibility,
    learned: () => store.keep(living),
    maintenance: (stop) => calibrator.whenDue(stop),
    whenIdle: async (stop, store) => (unboundedQuery.isWhole && (await unreadStart.whenDue(stop))) || calibrator.countWhenDue(store, stop),
  });
  liveStatus.collectors.set(id, collector);
  liveStatus.calibrators.set(id, calibrator);

  // A source that cannot be reached is asked until it answers; meanwhile everything else works. The first answer calibrates and says what time it
  // is: a source asks no more before it collects, so that many of them under one budget begin soon.
  const first = known ? undefined : await calibrator.ask(signal);
  const awaits = (message: string | undefined): void => liveStatus.await(id, message);
  journal.registerSource(
    id,
    destinationOf(settings),
    known ? undefined : await startOf({ settings, requester, paging, unboundedQuery, serverClock, clock, log, awaits }, signal),
  );
  if (known && settings.start.kind !== 'earliest') unreadStart.tell();
  await store.serves(factsOf(settings, config));
  if (first) await store.calibrated(first, now());
  // Nothing is known of its pages where a process ended just then. What is due later waits for nobody: the loop sees to it.
  else if (!profile.calibration) await calibrator.whenDue(signal);
  await Promise.all([collector.run(signal), store.run(living, clock, signal)]);
}

/** The meters, with the delay of each record told to `delays` first: what an outage held up is in neither. */
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

/** Asks until there is an answer that can be used: a service that refuses, or a wrong address, is told by status and probes, not by an exit. */
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

/** A bound that was kept before a kill, moved to what the ledger says of the time since: so late a window was closed by it. */
async function sinceKept(kept: ClockProfile | undefined, id: string, journal: Journal): Promise<ClockProfile | undefined> {
  if (kept?.bound === undefined) return kept;
  const windows = await journal.closedSince(id, kept.bound);
  return { ...kept, bound: windows.reduce((latest, { closed }) => Math.max(latest, closed), kept.bound) };
}

/** Asks once, and is told what comes of it: for what can be asked another time. */
function once(id: string, source: Source, serverClock: ServerClock): Source {
  return {
    page: async (request, signal) => {
      const page = await source.page(request, signal);
      if (serverClock.observe(page) === 'accepted') return page;
      throw new WaybillError('source_busy', `answer of "${id}" is cached: it is older than an answer before it`);
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

function sizeOf(settings: SourceConfig, calibration: Calibration | undefined): number {
  if (settings.pageSize !== 'auto') return Math.min(settings.pageSize, calibration?.pageSize ?? settings.pageSize);
  return calibration?.pageSize ?? 100;
}

/** What may not change under the same id: the service and the tenant. Hosts and credentials may. */
export function destinationOf({ baseUrl, auth }: SourceConfig): string {
  return `${new URL(baseUrl).pathname.replace(/\/+$/, '')} of tenant ${auth.tenantId}`;
}
