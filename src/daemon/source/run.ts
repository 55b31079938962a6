/** One source of the daemon, in four steps: connect, calibrate, begin its ledger, collect. */
import type { Requester } from '../../collect/requester.ts';
import { Collector, type VisibilityProfile } from '../../collect/scheduler.ts';
import { accessSource, type SourceAccess } from '../../collect/source-access.ts';
import { earliest } from '../../collect/earliest.ts';
import { SourcePaging } from '../../collect/page-size.ts';
import type { Caps } from '../../collect/read-window.ts';
import type { SourceConfig } from '../../config/load.ts';
import { openSource } from '../open-source.ts';
import type { DaemonOptions } from '../options.ts';
import { codeOf, isFinal, WaybillError } from '../../errors/errors.ts';
import type { Journal } from '../../journal/journal.ts';
import type { SourceMove } from '../../model/ledger.ts';
import type { Source } from '../../model/source.ts';
import type { Meters } from '../../model/telemetry.ts';
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
import { ProfileStore, type Measured } from './profile.ts';
import { factsOf } from '../../config/service-facts.ts';
import { destinationOf } from '../../source/destination.ts';
import { whileMoved } from './moved.ts';
import { startOf } from './start.ts';
import type { LiveStatus } from '../live-status.ts';
import { whenWritable } from '../when-writable.ts';

interface SourceParts {
  readonly settings: SourceConfig;
  readonly journal: Journal;
  readonly options: DaemonOptions;
  readonly meters: Meters;
  readonly budgets: Budgets;
  readonly liveStatus: LiveStatus;
}

/** Runs one source: connects, starts its ledger after the first response, and collects until the signal is aborted. */
export async function runSource(parts: SourceParts, signal: AbortSignal): Promise<void> {
  const { settings, journal, options, meters } = parts;
  // mutant: while-moved
  await whileMoved(settings, journal, options, meters, signal);
  await using source = await RunningSource.connect(parts);
  const calibration = await source.calibrate(signal);
  await source.begin(calibration, signal);
  await source.collect(signal);
}

/** The client of a source, and the state that its loops share. */
class RunningSource implements AsyncDisposable {
  readonly #parts: SourceParts;
  readonly #isKnown: boolean;
  readonly #meters: Meters;
  readonly #store: ProfileStore;
  readonly #delays: Delays;
  readonly #serverClock: ServerClock;
  readonly #client: ServiceSource;
  readonly #source: UnboundedQuery;
  readonly #access: SourceAccess;
  readonly #caps: Caps;
  readonly #calibrator: Calibrator;
  readonly #unreadStart: UnreadStart;
  readonly #collector: Collector;

  /** Creates the client and what the profile of an earlier run gives. Sends no request. */
  static async connect(parts: SourceParts): Promise<RunningSource> {
    const { settings, journal } = parts;
    const store = new ProfileStore(settings.id, journal);
    return new RunningSource(parts, store, await clockSince(store.profile.clock, settings.id, journal));
  }

  private constructor(parts: SourceParts, store: ProfileStore, clockProfile: ClockProfile | undefined) {
    const { settings, journal, options, budgets, liveStatus } = parts;
    const { clock, random, config, tracer } = options;
    const { id, closeDelay, requests } = settings;
    const { calibration, unboundedQuery, visibility, delays } = store.profile;
    const log = options.log.child('collect');
    this.#parts = parts;
    this.#isKnown = journal.hasSource(id);
    this.#store = store;
    this.#delays = new Delays(delays, settings.pollInterval);
    const meters = measuring(this.#delays, parts.meters, clock);
    this.#meters = meters;
    const budget = budgets.of(id, requests.perSecond, requests.group);
    this.#client = openSource(settings, config, { clock, budget, meters, log, tracer }, options.openSource);
    const serverClock = (this.#serverClock = new ServerClock({ source: id, closeDelay, clock, log, profile: clockProfile }));
    const paging = new SourcePaging(clock);
    paging.calibrated(calibration ?? {}, sizeOf(settings, calibration));
    const wall = { now: () => this.#now() / 1000 };
    const source = new UnboundedQuery({ id, source: this.#client, clock: wall, log, query: unboundedQuery });
    this.#source = source;
    this.#access = accessSource({
      sourceId: id,
      source,
      uidOf: identify(id),
      journal,
      paging,
      serverClock,
      clock,
      random,
      log,
      meters,
      tracer,
      closeDelay: closeDelay * 1000,
      lastFullVisibility: visibility?.lastFullVisibility,
    });
    this.#caps = { largest: calibration?.total ?? 0 };
    this.#calibrator = this.#createCalibrator(paging);
    const timing = { earliest: (stop: AbortSignal) => this.#earliest(stop), now: () => this.#now() };
    this.#unreadStart = new UnreadStart({ settings, journal, store, ...timing, log }, this.#isKnown);
    this.#collector = this.#createCollector();
    const shown = { source: this.#client, queries: source, collector: this.#collector };
    liveStatus.add(id, { ...shown, delays: this.#delays, calibrator: this.#calibrator, clock: serverClock });
  }

  /**
   * The first calibration of a new source, which also gives the server time; undefined for a known one. The source sends no other request
   * before it collects, so that many sources with a shared budget start soon.
   */
  async calibrate(signal: AbortSignal): Promise<Calibration | undefined> {
    return this.#isKnown ? undefined : this.#calibrator.calibrate(signal);
  }

  /** Starts the ledger of a new source; continues that of a known one. */
  async begin(calibration: Calibration | undefined, signal: AbortSignal): Promise<void> {
    const { settings, journal, options } = this.#parts;
    const { id } = settings;
    const { log } = this.#access;
    const start = this.#isKnown ? undefined : await this.#start(signal);
    const register = (): SourceMove | undefined => journal.registerSource(id, destinationOf(settings), start);
    const moved = await whenWritable(register, { clock: options.clock, log }, signal);
    // mutant: settled-source
    await journal.settled();
    if (moved) log.write('source.moved', { source: id, ...moved });
    if (this.#isKnown && settings.start.kind !== 'earliest') this.#unreadStart.report();
    await this.#store.setService(factsOf(settings, options.config));
    if (calibration) await this.#store.setCalibration(calibration, this.#now());
    // An earlier process ended between registration and calibration. The loop makes later calibrations, and nothing waits for them.
    else if (!this.#store.profile.calibration) await this.#calibrator.whenDue(signal);
  }

  /** Collects, and saves the measured values, until the signal is aborted. */
  async collect(signal: AbortSignal): Promise<void> {
    const saving = this.#store.run(() => this.#measured(this.#collector.visibilityProfile()), this.#parts.options.clock, signal);
    try {
      await Promise.all([this.#collector.run(signal), saving]);
    } finally {
      // Waits until the profile is saved: the next run of this source starts with it.
      if (signal.aborted) await Promise.allSettled([saving]);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]();
  }

  #createCalibrator(paging: SourcePaging): Calibrator {
    const { settings } = this.#parts;
    const { id, pageSize } = settings;
    const { requester, log } = this.#access;
    const source = this.#source;
    return new Calibrator({
      id,
      store: this.#store,
      paging,
      caps: this.#caps,
      now: () => this.#now(),
      log,
      meters: this.#meters,
      calibrate: (stop) => untilAnswered(requester, (service) => calibrate(service, pageSize, stop), stop),
      calibrateOnce: async (stop) => {
        await source.widen(stop);
        return calibrate(withoutRetry(id, source, this.#serverClock), pageSize, stop);
      },
      sizeOf: (calibration) => sizeOf(settings, calibration),
    });
  }

  #createCollector(): Collector {
    const { settings, options } = this.#parts;
    const [store, calibrator] = [this.#store, this.#calibrator];
    return new Collector({
      settings,
      access: this.#access,
      caps: this.#caps,
      meters: this.#meters,
      visibility: store.profile.visibility,
      pollOverlap: options.pollOverlap?.(),
      learned: (visibility) => store.save(this.#measured(visibility)),
      pace: store.profile.pace,
      keepPace: (pace) => store.setPace(pace),
      maintenance: (stop) => calibrator.whenDue(stop),
      whenIdle: async (stop) => this.#source.isWhole && (await this.#unreadStart.whenDue(stop)),
    });
  }

  #start(signal: AbortSignal): Promise<Micros> {
    const { settings, liveStatus } = this.#parts;
    const awaits = (message: string | undefined): void => liveStatus.await(settings.id, message);
    return startOf({ ...this.#access, settings, unboundedQuery: this.#source, awaits }, signal);
  }

  async #earliest(signal: AbortSignal): Promise<Micros> {
    const { requester, paging, closeDelay } = this.#access;
    return (await earliest(requester, paging, this.#now(), closeDelay, signal)).start;
  }

  /** Server time, as far as it is known. */
  #now(): Micros {
    return this.#serverClock.now() ?? this.#parts.options.clock.now() * 1000;
  }

  /** The values to save for a restart; undefined until the server clock is established. */
  #measured(visibility: VisibilityProfile): Measured | undefined {
    if (!this.#serverClock.established()) return undefined;
    return {
      clock: this.#serverClock.profile(),
      largest: this.#caps.largest,
      unboundedQuery: this.#source.query,
      visibility,
      delays: this.#delays.measure(),
    };
  }
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
