/** Runs a member of a fleet: each shard that it owns has its own journal, sources and sinks, in this process. */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Config } from '../config/load.ts';
import { tryLock } from '../disk/lock.ts';
import { codeOf, messageOf, WaybillError } from '../errors/errors.ts';
import { poolOf, type Pool } from '../fleet/database.ts';
import { Member, type OpenShard } from '../fleet/members.ts';
import { placeOf, shardsOf } from '../fleet/placements.ts';
import type { FleetSettings } from '../fleet/settings.ts';
import type { Shard } from '../fleet/shard.ts';
import type { Meters } from '../model/telemetry.ts';
import type { Clock } from '../model/time.ts';
import { changesBetween, type Changes } from '../config/changes.ts';
import { reportSettings } from '../config/report-settings.ts';
import { isRelease, serveRequests } from '../fleet/requests.ts';
import { fleetStatus, publish, summed, type ShardStatus } from '../fleet/status.ts';
import type { Journal } from '../journal/journal.ts';
import { recentWindows, recordsSince } from '../journal/queries/recent.ts';
import { withCoverage } from '../journal/queries/snapshot.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { operateOnShards } from './operations/on-shards.ts';
import type { OperationResult } from './operations/requests.ts';
import { atMost } from '../time/deadline.ts';
import { maintainJournal } from './maintenance.ts';
import { openJournal } from './open-journal.ts';
import type { DaemonOptions } from './options.ts';
import { Running } from './running.ts';
import { Tasks } from './tasks.ts';

const retryMs = 1_000;
/** The status of a shard: the first one, the interval, and the windows of each source in it. Taking it uses a fiftieth of the time at most. */
const firstStatusMs = 1_000;
const statusMs = 10_000;
const statusShare = 50;
const statusWindows = 24;

interface MemberOptions extends DaemonOptions {
  readonly fleet: FleetSettings;
}

/** The part of this process in a fleet. */
export class FleetMember implements AsyncDisposable {
  readonly #options: MemberOptions;
  readonly #meters: Meters;
  readonly #pool: Pool;
  readonly #lock: Disposable;
  /** For each shard that this process owns: the status that it last published. */
  readonly #own = new Map<number, Snapshot>();
  /** For each shard that this process owns: its open journal and its loops. */
  readonly #open = new Map<number, OpenParts>();
  #config: Config;
  #places: Places = new Map();
  readonly #ended = new AbortController();
  #member: Member | undefined;
  #last: Snapshot | undefined;

  /** @throws WaybillError `state_locked` */
  constructor(options: MemberOptions, meters: Meters) {
    const { config, fleet } = options;
    this.#options = options;
    this.#config = config;
    this.#meters = meters;
    this.#lock = emptied(config.dataDir);
    // Commits and renewals are repeated: an attempt may end before the lease does.
    this.#pool = poolOf({ ...fleet, ...config.tls }, fleet.lease / 2);
  }

  get config(): Config {
    return this.#config;
  }

  get journals(): readonly Journal[] {
    return [...this.#open.values()].map(({ journal }) => journal);
  }

  /** Runs until the signal, then gives up every shard within `shutdownTimeout`. @throws the reason of a signal before the first answer */
  async run(signal: AbortSignal): Promise<void> {
    const { fleet, version, clock, log } = this.#options;
    const pool = this.#pool;
    this.#places = await placesOf(this.#options, this.#config, pool, signal);
    // Each start is another member: an earlier process of this machine may still be stopped, not dead.
    const name = `${hostname()}/${process.pid}/${randomUUID().slice(0, 8)}`;
    const parts = { options: this.#options, meters: this.#meters, pool, own: this.#own, open: this.#open };
    const open = (shard: Shard): OpenShard =>
      openShard(shard, {
        ...parts,
        config: () => configOf(shard, this.#config, this.#places),
        release: () => member.giveUp(shard),
      });
    const member = new Member({ pool, name, release: version, leaseMs: fleet.lease, clock, log, meters: this.#meters, open });
    this.#member = member;
    await member.run(signal);
  }

  /** Applies a changed configuration to the shards of this process. A shard whose loops cannot change fails alone. */
  async change(config: Config, _: Changes, signal: AbortSignal): Promise<void> {
    this.#places = await placesOf(this.#options, config, this.#pool, signal);
    this.#config = config;
    const changed = [...this.#open.values()].map(({ shard, running, tasks }) => {
      const own = configOf(shard, config, this.#places);
      const { promise, resolve } = Promise.withResolvers<undefined>();
      tasks.start('reload', (stop) => running.change(own, changesBetween(running.config, own), stop).finally(() => resolve(undefined)));
      return promise;
    });
    await Promise.all(changed);
  }

  /** The status of all members and shards. While the database is unreachable, its last answer. */
  async snapshot(): Promise<Snapshot | undefined> {
    try {
      return (this.#last = await fleetStatus(this.#pool, this.#facts()));
    } catch (error) {
      if (codeOf(error) !== 'database_unreachable') throw error;
      const last = this.#last;
      return last?.fleet && { ...last, now: this.#options.clock.now() * 1000, fleet: { ...last.fleet, unreachable: messageOf(error) } };
    }
  }

  /** The shards of this process, for its metrics. */
  own(): Snapshot {
    return { ...summed([...this.#own.values()], this.#facts()), member: { opened: this.#own.size, counts: this.#member?.counts } };
  }

  /** Requests an operation from the owners of its shards, which may be other members. */
  async operate(request: unknown): Promise<OperationResult> {
    return operateOnShards(this.#pool, request, this.#options.clock, this.#ended.signal);
  }

  #facts(): Parameters<typeof fleetStatus>[1] {
    const { fleet, version, clock } = this.#options;
    const configured = this.#config.sources.map(({ id }) => id);
    return { version, now: clock.now() * 1000, leaseMs: fleet.lease, database: fleet.database, configured };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended.abort();
    await this.#pool.end();
    this.#lock[Symbol.dispose]();
  }
}

/** By source or group, its shard. */
type Places = ReadonlyMap<string, number>;

/** Deletes the working copies of the last process, and keeps others out of the directory. */
function emptied(directory: string): Disposable {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = tryLock(join(directory, 'lock.db'));
  if (!lock) throw new WaybillError('state_locked', `cannot use "${directory}": another process has its working copies there`);
  for (const copy of readdirSync(directory).filter((each) => each.startsWith('shard-'))) rmSync(join(directory, copy), { recursive: true });
  return { [Symbol.dispose]: () => lock.close() };
}

/** The shards of the sources. Waits for a database that is away. */
async function placesOf({ clock, log }: MemberOptions, config: Config, pool: Pool, signal: AbortSignal): Promise<Places> {
  for (;;) {
    try {
      return await shardsOf(pool, [...new Set(config.sources.map(placeOf))]);
    } catch (error) {
      if (codeOf(error) !== 'database_unreachable') throw error;
      log.write('fleet.database_away', { error });
      await clock.sleep(retryMs, signal);
    }
  }
}

function configOf({ taken: { shard, epoch } }: Shard, config: Config, places: Places): Config {
  const sources = config.sources.filter((source) => places.get(placeOf(source)) === shard);
  const isHere = (id: string): boolean => sources.some((source) => source.id === id);
  const sinks = config.sinks.map((sink) => (sink.sources ? { ...sink, sources: sink.sources.filter(isHere) } : sink));
  return { ...config, shard, dataDir: join(config.dataDir, `shard-${shard}-${epoch}`), sources, sinks };
}

interface OpenParts {
  readonly shard: Shard;
  readonly journal: Journal;
  readonly running: Running;
  readonly tasks: Tasks;
}

interface ShardParts {
  readonly options: MemberOptions;
  /** The present configuration, with the sources and sinks of the shard. */
  readonly config: () => Config;
  /** Gives the shard up, for an operator. */
  readonly release: () => void;
  readonly meters: Meters;
  readonly pool: Pool;
  /** See FleetMember. */
  readonly own: Map<number, Snapshot>;
  readonly open: Map<number, OpenParts>;
}

function openShard(shard: Shard, parts: ShardParts): OpenShard {
  const { config, options } = parts;
  const stop = new AbortController();
  const { promise: failed, reject } = Promise.withResolvers<never>();
  const ended = runShard(shard, parts, stop.signal).then(
    (failure) => failure !== undefined && reject(failure),
    (thrown: unknown) => thrown !== stop.signal.reason && reject(thrown),
  );
  return {
    failed,
    end: () => {
      stop.abort(new WaybillError('aborted', 'this process gives the shard up'));
      return atMost(config().shutdownTimeout, ended, options.clock);
    },
  };
}

/** @returns the failure that ended the loops; undefined after the signal. @throws the error that prevented the start, or the close */
async function runShard(shard: Shard, parts: ShardParts, signal: AbortSignal): Promise<unknown> {
  const { options, meters, pool, own, open } = parts;
  const { version, clock, log } = options;
  const { dataDir } = parts.config();
  const { taken } = shard;
  try {
    await using journal = await openJournal(parts.config(), { clock, release: version, database: shard }, signal);
    const tasks = new Tasks(signal, clock, log);
    const running = new Running({ ...options, config: parts.config() }, { journal, meters, tasks });
    open.set(taken.shard, { shard, journal, running, tasks });
    running.register();
    running.start();
    const sources = (): string[] => running.config.sources.map(({ id }) => id);
    tasks.start('journal', (stop) => maintainJournal(journal, sources, clock, log.child('journal'), stop));
    const show = async (status: ShardStatus): Promise<void> => {
      own.set(taken.shard, status.snapshot);
      await publish(pool, taken, status).catch(unlessAway);
    };
    tasks.start('status', (stop) => showStatus(journal, () => statusOf(journal, running), show, clock, stop));
    const operate = (request: unknown): Promise<unknown> => {
      if (!isRelease(request)) return running.operate(request);
      // After the answer is on its way.
      setImmediate(parts.release);
      return Promise.resolve({});
    };
    tasks.start('requests', (stop) => serveRequests(pool, taken, operate, clock, stop));
    return await tasks.ended(() => running.config.shutdownTimeout);
  } finally {
    // If its end took too long, this process may have taken the shard again.
    if (open.get(taken.shard)?.shard === shard) {
      open.delete(taken.shard);
      own.delete(taken.shard);
    }
    rmSync(dataDir, { recursive: true, force: true });
  }
}

/** Shows the status of a shard again and again, each time only what the database has. */
export async function showStatus<Status>(
  journal: Journal,
  statusOf: () => Status,
  show: (status: Status) => Promise<void>,
  clock: Clock,
  stop: AbortSignal,
): Promise<never> {
  for (;;) {
    await clock.sleep(firstStatusMs, stop);
    const began = clock.monotonic();
    const status = statusOf();
    const ms = clock.monotonic() - began;
    // mutant: settled-status
    await journal.settled();
    await show(status);
    await clock.sleep(Math.max(statusMs - firstStatusMs, ms * statusShare), stop);
  }
}

function statusOf(journal: Journal, running: Running): ShardStatus {
  const { db } = journal;
  const snapshot = withCoverage(db, running.snapshot(), reportSettings(running.config));
  const { now } = snapshot;
  return { snapshot, windows: [...recentWindows(db, statusWindows)], today: recordsSince(db, now - (now % 86_400_000_000)) };
}

/** The next status follows soon. */
function unlessAway(error: unknown): void {
  if (codeOf(error) !== 'database_unreachable') throw error;
}
