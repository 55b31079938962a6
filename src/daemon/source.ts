/** One source of the daemon: its client, its clock, what is known about its service, and the collector that asks. */
import { Collector } from '../collect/collector.ts';
import { earliest } from '../collect/earliest.ts';
import { handCount } from '../collect/hand-count.ts';
import type { Paging } from '../collect/pass.ts';
import type { Caps } from '../collect/read-window.ts';
import { wholeSecond } from '../collect/windows.ts';
import type { SourceConfig } from '../config/load.ts';
import type { DaemonOptions } from '../daemon.ts';
import { codeOf, isFinal } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import type { Clock, Log, Meters, Micros, Source } from '../model.ts';
import { Delays } from '../observe/delays.ts';
import { identify } from '../record/identity.ts';
import { microsToIso } from '../record/timestamp.ts';
import { calibrate } from '../source/calibrate.ts';
import type { Calibration } from '../source/calibrate.ts';
import { createSource } from '../source/client.ts';
import type { Budgets } from '../source/limits.ts';
import { ServerClock } from '../source/server-clock.ts';
import { Begin } from './begin.ts';
import { Calibrator } from './calibration.ts';
import { ProfileKeeper } from './profile.ts';
import { factsOf } from './service-facts.ts';
import type { Views } from './views.ts';

/** µs */
const hour: Micros = 3_600_000_000;

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
  await using source = (options.openSource ?? createSource)(settings, { clock, budget, meters, ca: config.tls.ca });
  views.sources.set(id, source);
  const serverClock = new ServerClock({ source: id, settle: settings.settle, clock, log, profile: profile.clock });
  const paging: Paging = { first: profile.calibration?.firstPage ?? 1, size: sizeOf(settings, profile.calibration) };
  const caps: Caps = { largest: profile.calibration?.total ?? 0 };
  const now = (): Micros => serverClock.now() ?? clock.now() * 1000;
  // A ledger that begins a little early lacks nothing; one that begins in the future of a clock that is ahead would. Further apart is a hold.
  const present = (): Micros => Math.max(serverClock.agreed() ?? now(), now() - hour);
  const calibrator: Calibrator = new Calibrator({
    ...{ id, keeper, paging, caps, now, log, meters },
    ask: (stop) => untilAnswered(collector, (service) => calibrate(service, settings.pageSize, stop), stop),
    count: (total, stop) => {
      const { asker } = collector;
      const between = (until: AbortSignal): Promise<void> => collector.between(until);
      return handCount({ asker, paging, between, sleep: (ms, until) => clock.sleep(ms, until), log }, total, stop);
    },
    sizeOf: (calibration) => sizeOf(settings, calibration),
  });
  const found = async (stop: AbortSignal): Promise<Micros> =>
    (await earliest(collector.asker, paging, now(), settings.settle * 1000, stop)).start;
  const begin = new Begin({ settings, journal, keeper, earliest: found, now, log }, known);
  const living = { serverClock, caps, sight: () => collector.sight(), delays: () => delays.measure() };
  const collector: Collector = new Collector({
    settings,
    source,
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
    whenIdle: async (stop) => (await begin.whenDue(stop)) || calibrator.countWhenDue(stop),
  });
  views.collectors.set(id, collector);

  // A source that cannot be reached is asked until it answers; meanwhile everything else works. The first answer calibrates and says what time it
  // is: a source asks no more before it collects, so that many of them under one budget begin soon.
  const first = known ? undefined : await calibrator.ask(signal);
  journal.registerSource(
    id,
    destinationOf(settings),
    known ? undefined : await startOf(settings, collector, paging, present(), log, signal),
  );
  if (known && settings.start.kind !== 'earliest') begin.tell();
  await keeper.serves(factsOf(settings, config));
  if (first) await keeper.calibrated(first, now());
  else await calibrator.whenDue(signal);
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

function sizeOf(settings: SourceConfig, calibration: Calibration | undefined): number {
  if (settings.pageSize !== 'auto') return Math.min(settings.pageSize, calibration?.pageSize ?? settings.pageSize);
  return calibration?.pageSize ?? 100;
}

/** What may not change under the same id: the service and the tenant. Hosts and credentials may. */
export function destinationOf({ baseUrl, auth }: SourceConfig): string {
  return `${new URL(baseUrl).pathname.replace(/\/+$/, '')} of tenant ${auth.tenantId}`;
}

/** Where a ledger begins that is not there yet. */
async function startOf(
  { id, start, settle }: SourceConfig,
  { asker }: Collector,
  paging: Paging,
  serverNow: Micros,
  log: Log,
  signal: AbortSignal,
): Promise<Micros> {
  switch (start.kind) {
    case 'instant':
      return wholeSecond(start.at);
    case 'now':
      return wholeSecond(serverNow);
    case 'ago':
      return wholeSecond(serverNow - start.ms * 1000);
    case 'earliest': {
      const found = await earliest(asker, paging, serverNow, settle * 1000, signal);
      log.info({ source: id, start: microsToIso(found.start), reason: found.words }, 'ledger begins at the earliest record');
      return found.start;
    }
  }
}
