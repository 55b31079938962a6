/** One source of the daemon: its client, its clock, what is known about its service, and the collector that asks. */
import { Collector } from '../collect/collector.ts';
import type { Paging } from '../collect/pass.ts';
import type { Caps } from '../collect/read-window.ts';
import { wholeSecond } from '../collect/windows.ts';
import type { SourceConfig } from '../config/load.ts';
import type { DaemonOptions } from '../daemon.ts';
import { codeOf, WaybillError } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import type { Meters, Micros, Source } from '../model.ts';
import { identify } from '../record/identity.ts';
import { calibrate } from '../source/calibrate.ts';
import type { Calibration } from '../source/calibrate.ts';
import { createSource } from '../source/client.ts';
import type { Budgets } from '../source/limits.ts';
import { ServerClock } from '../source/server-clock.ts';
import { Calibrator } from './calibration.ts';
import { ProfileKeeper } from './profile.ts';
import type { Views } from './views.ts';

/** One source from its first answer on: where its ledger begins, what its service grants, and then the loop. */
export async function runSource(
  settings: SourceConfig,
  journal: Journal,
  options: DaemonOptions,
  meters: Meters,
  budgets: Budgets,
  views: Views,
  signal: AbortSignal,
): Promise<void> {
  const { clock, random, config } = options;
  const { id } = settings;
  const log = options.log.child('collect');
  const budget = budgets.of(id, settings.requests.perSecond, settings.requests.group);
  await using source = createSource(settings, { clock, budget, meters, ca: config.tls.ca });

  const known = journal.hasSource(id);
  const keeper = new ProfileKeeper(id, journal);
  const { profile } = keeper;
  const serverClock = new ServerClock({ source: id, settle: settings.settle, clock, log, profile: profile.clock });
  const paging: Paging = { first: profile.calibration?.firstPage ?? 1, size: sizeOf(settings, profile.calibration) };
  const caps: Caps = { largest: profile.calibration?.total ?? 0 };
  const now = (): Micros => serverClock.now() ?? clock.now() * 1000;
  const calibrator: Calibrator = new Calibrator({
    ...{ id, keeper, paging, caps, now, log, meters },
    ask: (stop) => untilAnswered(collector, (service) => calibrate(service, settings.pageSize, stop), stop),
    sizeOf: (calibration) => sizeOf(settings, calibration),
  });
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
    upkeep: (stop) => calibrator.whenDue(stop),
  });
  views.collectors.set(id, collector);

  // A source that cannot be reached is asked until it answers; meanwhile everything else works.
  if (!known) await untilAnswered(collector, (service) => service.page({ query: {}, page: undefined, pageSize: 1 }, signal), signal);
  journal.registerSource(id, destinationOf(settings), known ? undefined : startOf(settings, now()));
  await calibrator.whenDue(signal);
  await Promise.all([collector.run(signal), keeper.run({ serverClock, caps, sight: () => collector.sight() }, clock, signal)]);
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
      if (codeOf(thrown) === undefined) throw thrown;
      await asker.wait(thrown, failures, signal);
    }
  }
}

function sizeOf(settings: SourceConfig, calibration: Calibration | undefined): number {
  if (settings.pageSize !== 'auto') return Math.min(settings.pageSize, calibration?.pageSize ?? settings.pageSize);
  return calibration?.pageSize ?? 100;
}

/** What may not change under the same id: the service and the tenant. Hosts and credentials may. */
function destinationOf({ baseUrl, auth }: SourceConfig): string {
  return `${new URL(baseUrl).pathname.replace(/\/+$/, '')} of tenant ${auth.tenantId}`;
}

function startOf({ id, start }: SourceConfig, serverNow: Micros): Micros {
  switch (start.kind) {
    case 'instant':
      return wholeSecond(start.at);
    case 'now':
      return wholeSecond(serverNow);
    case 'ago':
      return wholeSecond(serverNow - start.ms * 1000);
    case 'earliest':
      throw new WaybillError('config_invalid', `cannot use sources.${id}.start: "earliest" is not in this release yet; give a time`);
  }
}
