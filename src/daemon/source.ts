/** One source of the daemon: its client, its clock, what is known about its service, and the collector that asks. */
import { Collector } from '../collect/collector.ts';
import type { Paging } from '../collect/pass.ts';
import type { Caps } from '../collect/read-window.ts';
import { wholeSecond } from '../collect/windows.ts';
import type { SourceConfig } from '../config/load.ts';
import type { DaemonOptions } from '../daemon.ts';
import { codeOf, WaybillError } from '../errors.ts';
import type { Journal } from '../journal/journal.ts';
import type { Clock, Meters, Micros, Source } from '../model.ts';
import { identify } from '../record/identity.ts';
import { calibrate } from '../source/calibrate.ts';
import type { Calibration } from '../source/calibrate.ts';
import { createSource } from '../source/client.ts';
import type { Budgets } from '../source/limits.ts';
import { ServerClock } from '../source/server-clock.ts';
import type { ClockProfile } from '../source/server-clock.ts';
import type { Views } from './views.ts';

/** What is kept about a service over a restart. */
interface Profile {
  readonly calibration?: Calibration;
  /** When it was calibrated, server time. */
  readonly calibrated?: Micros;
  readonly clock?: ClockProfile;
}

const profileMs = 60_000;
const profileFirstMs = 500;
const weekMicros = 7 * 86_400_000_000;

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
  await using source = (options.openSource ?? createSource)(settings, { clock, budget, meters, ca: config.tls.ca });

  const known = journal.hasSource(id);
  const profile = known ? profileOf(journal.marks(id).profile) : {};
  const serverClock = new ServerClock({ source: id, settle: settings.settle, clock, log, profile: profile.clock });
  const paging: Paging = { first: profile.calibration?.firstPage ?? 1, size: sizeOf(settings, profile.calibration) };
  const caps: Caps = { largest: profile.calibration?.total ?? 0 };
  const collector = new Collector({
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
  });
  views.collectors.set(id, collector);

  // A source that cannot be reached is asked until it answers; meanwhile everything else works.
  if (!known) await untilAnswered(collector, (service) => service.page({ query: {}, page: undefined, pageSize: 1 }, signal), signal);
  const now = serverClock.now() ?? clock.now() * 1000;
  journal.registerSource(id, destinationOf(settings), known ? undefined : startOf(settings, now));
  if (!profile.calibration || now - (profile.calibrated ?? 0) > weekMicros) {
    const calibration = await untilAnswered(collector, (service) => calibrate(service, settings.pageSize, signal), signal);
    log.info({ source: id, ...calibration }, 'source calibrated');
    paging.first = calibration.firstPage;
    paging.size = sizeOf(settings, calibration);
    caps.largest = Math.max(caps.largest, calibration.total ?? 0);
    await journal.setProfile(id, JSON.stringify({ ...profile, calibration, calibrated: now } satisfies Profile));
  }
  await Promise.all([collector.run(signal), keepProfile(id, journal, serverClock, caps, clock, signal)]);
}

/** Keeps the offset of the service's clock and the largest total, so that a restart knows them at once. */
async function keepProfile(
  id: string,
  journal: Journal,
  serverClock: ServerClock,
  caps: Caps,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  let written = '';
  for (;;) {
    // At once when the clock stands: a daemon that is killed soon after must not build it anew each time.
    const wasEstablished = serverClock.established();
    await clock.sleep(wasEstablished ? profileMs : profileFirstMs, signal);
    if (!serverClock.established()) continue;
    const before = profileOf(journal.marks(id).profile);
    const known = serverClock.profile() ?? before.clock;
    const calibration = before.calibration && { ...before.calibration, total: Math.max(caps.largest, before.calibration.total ?? 0) };
    const next = JSON.stringify({ ...before, ...(calibration && { calibration }), ...(known && { clock: known }) } satisfies Profile);
    if (next !== written) await journal.setProfile(id, next);
    written = next;
  }
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

function profileOf(text: string | undefined): Profile {
  return text === undefined ? {} : (JSON.parse(text) as Profile);
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
