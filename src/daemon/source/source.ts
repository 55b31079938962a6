/** One source of the daemon: its client, its clock, what is known about its service, and the collector that asks. */
import type { Answer } from '../../collect/ask.ts';
import { Collector } from '../../collect/collector.ts';
import { earliest } from '../../collect/earliest.ts';
import { handCount } from '../../collect/hand-count.ts';
import type { Paging } from '../../collect/pass.ts';
import type { Caps } from '../../collect/read-window.ts';
import type { SourceConfig } from '../../config/load.ts';
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
import { createSource } from '../../source/client.ts';
import { Everything } from '../../source/everything.ts';
import type { Budgets } from '../../source/limits.ts';
import { ServerClock } from '../../source/server-clock.ts';
import type { ClockProfile } from '../../source/server-clock.ts';
import { Begin } from './begin.ts';
import { Calibrator } from './calibration.ts';
import { ProfileKeeper } from './profile.ts';
import { factsOf } from './service-facts.ts';
import { startOf } from './start.ts';
import type { Views } from '../views.ts';

/** One source from its first answer on: where its ledger begins, what its service grants, and then the loop. */
export async function runSource(
  settings: SourceConfig,
  journal: Journal,
  options: DaemonOptions,
  counting: Meters,
  budgets: Budgets,
  views: Views,
  signal: AbortSignal,
): Promise<void> {
  const { clock, random, config } = options;
  const { id } = settings;
  const log = options.log.child('collect');
  const budget = budgets.of(id, settings.requests.perSecond, settings.requests.group);
  const known = journal.hasSource(id);
  const keeper = new ProfileKeeper(id, journal);
  const { profile } = keeper;
  const delays = new Delays(profile.delays, settings.poll);
  const meters = measuring(delays, counting, clock);
  views.delays.set(id, delays);
  await using source = (options.openSource ?? createSource)(settings, { clock, budget, meters, ca: config.tls.ca, log });
  views.sources.set(id, source);
  const everything = new Everything({ id, source, clock, log, query: profile.everything });
  const kept = await sinceKept(profile.clock, id, journal);
  const serverClock = new ServerClock({ source: id, settle: settings.settle, clock, log, profile: kept });
  views.clocks.set(id, serverClock);
  const paging: Paging = { first: profile.calibration?.firstPage ?? 1, size: sizeOf(settings, profile.calibration) };
  const caps: Caps = { largest: profile.calibration?.total ?? 0 };
  const now = (): Micros => serverClock.now() ?? clock.now() * 1000;
  const calibrator: Calibrator = new Calibrator({
    ...{ id, keeper, paging, caps, now, log, meters },
    ask: (stop) => untilAnswered(collector, (service) => calibrate(service, settings.pageSize, stop), stop),
    askOnce: async (stop) => {
      await everything.widen(stop);
      return calibrate(once(id, everything, serverClock), settings.pageSize, stop);
    },
    count: (total, stop) => {
      const { asker } = collector;
      const between = (until: AbortSignal): Promise<void> => collector.between(until);
      const store = (answer: Answer, until: AbortSignal): Promise<void> => collector.store(answer, until);
      return handCount({ asker, paging, between, store, sleep: (ms, until) => clock.sleep(ms, until), log }, total, stop);
    },
    sizeOf: (calibration) => sizeOf(settings, calibration),
  });
  const found = async (stop: AbortSignal): Promise<Micros> =>
    (await earliest(collector.asker, paging, now(), settings.settle * 1000, stop)).start;
  const begin = new Begin({ settings, journal, keeper, earliest: found, now, log }, known);
  const living = { serverClock, caps, everything, sight: () => collector.sight(), delays: () => delays.measure() };
  const collector: Collector = new Collector({
    settings,
    source: everything,
    serverClock,
    journal,
    uidOf: identify(id),
    paging,
    caps,
    clock,
    random,
    log,
    meters,
    sight: profile.sight,
    learned: () => keeper.keep(living),
    upkeep: (stop) => calibrator.whenDue(stop),
    whenIdle: async (stop) => (everything.isWhole && (await begin.whenDue(stop))) || calibrator.countWhenDue(stop),
  });
  views.collectors.set(id, collector);
  views.calibrators.set(id, calibrator);

  // A source that cannot be reached is asked until it answers; meanwhile everything else works. The first answer calibrates and says what time it
  // is: a source asks no more before it collects, so that many of them under one budget begin soon.
  const first = known ? undefined : await calibrator.ask(signal);
  const awaits = (words: string | undefined): void => views.await(id, words);
  const { asker } = collector;
  journal.registerSource(
    id,
    destinationOf(settings),
    known ? undefined : await startOf({ settings, asker, paging, everything, serverClock, clock, log, awaits }, signal),
  );
  if (known && settings.start.kind !== 'earliest') begin.tell();
  await keeper.serves(factsOf(settings, config));
  if (first) await keeper.calibrated(first, now());
  // Nothing is known of its pages where a process ended just then. What is due later waits for nobody: the loop sees to it.
  else if (!profile.calibration) await calibrator.whenDue(signal);
  await Promise.all([collector.run(signal), keeper.run(living, clock, signal)]);
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
  { asker }: Collector,
  ask: (service: Source) => Promise<Answer>,
  signal: AbortSignal,
): Promise<Answer> {
  const service: Source = { page: (request, stop) => asker.page(request, stop), [Symbol.asyncDispose]: () => Promise.resolve() };
  for (let failures = 0; ; failures += 1) {
    try {
      return await ask(service);
    } catch (thrown) {
      signal.throwIfAborted();
      if (codeOf(thrown) === undefined || isFinal(thrown)) throw thrown;
      await asker.wait(thrown, failures, signal);
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
