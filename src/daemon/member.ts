/** Runs a member of a fleet: each shard that it owns has its own journal, sources and sinks, in this process. */
import { mkdirSync, readdirSync, rmSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Config, SourceConfig } from '../config/load.ts';
import { tryLock } from '../disk/lock.ts';
import { codeOf, WaybillError } from '../errors/errors.ts';
import { poolOf, type Pool } from '../fleet/database.ts';
import { Member, type OpenShard } from '../fleet/members.ts';
import { shardsOf } from '../fleet/placements.ts';
import type { FleetSettings } from '../fleet/settings.ts';
import type { Shard } from '../fleet/shard.ts';
import type { Meters } from '../model/telemetry.ts';
import { atMost } from '../time/deadline.ts';
import { maintainJournal } from './maintenance.ts';
import { openJournal } from './open-journal.ts';
import type { DaemonOptions } from './options.ts';
import { Running } from './running.ts';
import { Tasks } from './tasks.ts';

const retryMs = 1_000;

interface MemberOptions extends DaemonOptions {
  readonly fleet: FleetSettings;
}

/** Runs until the signal, then gives up every shard within `shutdownTimeout`. @throws WaybillError `config_invalid`, `state_locked`; the reason of a signal before the first answer */
export async function runMember(options: MemberOptions, meters: Meters, signal: AbortSignal): Promise<void> {
  const { config, fleet, version, clock, log } = options;
  assertShared(config);
  using _lock = emptied(config.dataDir);
  // Commits and renewals are repeated: an attempt may end before the lease does.
  const pool = poolOf(fleet, config.tls, fleet.lease / 2);
  await using _pool = { [Symbol.asyncDispose]: () => pool.end() };
  const places = await placesOf(options, pool, signal);
  // Each start is another member: an earlier process of this machine may still be stopped, not dead.
  const name = `${hostname()}/${process.pid}/${randomUUID().slice(0, 8)}`;
  const open = (shard: Shard): OpenShard => openShard(shard, { ...options, config: configOf(shard, config, places) }, meters);
  await new Member({ pool, name, release: version, leaseMs: fleet.lease, clock, log, open }).run(signal);
}

/** Sinks that a shard cannot use, with the reason. */
const refused: Readonly<Record<string, string>> = {
  file: 'the members of a fleet share no file',
  stdout: 'the members of a fleet share no standard output',
  archive: 'each shard needs an archive of its own, which this release cannot make',
  kafka: 'each shard needs a progress topic of its own, which this release cannot make',
};

/** @throws WaybillError `config_invalid` */
function assertShared({ sinks }: Config): void {
  const problems = sinks.flatMap(({ id, type }) => (refused[type] === undefined ? [] : [`sinks.${id}: ${type}: ${refused[type]}`]));
  if (problems.length > 0) throw new WaybillError('config_invalid', 'cannot use these sinks in a fleet', { problems });
}

/** Deletes the working copies of the last process, and keeps others out of the directory. */
function emptied(directory: string): Disposable {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const lock = tryLock(join(directory, 'lock.db'));
  if (!lock) throw new WaybillError('state_locked', `cannot use "${directory}": another process has its working copies there`);
  for (const copy of readdirSync(directory).filter((each) => each.startsWith('shard-'))) rmSync(join(directory, copy), { recursive: true });
  return { [Symbol.dispose]: () => lock.close() };
}

/** The shards of the sources. Waits for a database that is away. */
async function placesOf({ config, clock, log }: MemberOptions, pool: Pool, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
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

/** Sources of a group share a budget, which holds within one process only. */
function placeOf({ id, requests: { group } }: SourceConfig): string {
  return group === undefined ? id : `group/${group}`;
}

function configOf({ taken: { shard, epoch } }: Shard, config: Config, places: ReadonlyMap<string, number>): Config {
  const sources = config.sources.filter((source) => places.get(placeOf(source)) === shard);
  const isHere = (id: string): boolean => sources.some((source) => source.id === id);
  const sinks = config.sinks.map((sink) => (sink.sources ? { ...sink, sources: sink.sources.filter(isHere) } : sink));
  return { ...config, dataDir: join(config.dataDir, `shard-${shard}-${epoch}`), sources, sinks };
}

function openShard(shard: Shard, options: MemberOptions, meters: Meters): OpenShard {
  const { config, clock } = options;
  const stop = new AbortController();
  const { promise: failed, reject } = Promise.withResolvers<never>();
  const ended = runShard(shard, options, meters, stop.signal).then(
    (failure) => failure !== undefined && reject(failure),
    (thrown: unknown) => thrown !== stop.signal.reason && reject(thrown),
  );
  return {
    failed,
    end: () => {
      stop.abort(new WaybillError('aborted', 'this process gives the shard up'));
      return atMost(config.shutdownTimeout, ended, clock);
    },
  };
}

/** @returns the failure that ended the loops; undefined after the signal. @throws the error that prevented the start, or the close */
async function runShard(shard: Shard, options: MemberOptions, meters: Meters, signal: AbortSignal): Promise<unknown> {
  const { config, version, clock, log } = options;
  const { dataDir } = config;
  try {
    await using journal = await openJournal(config, { clock, release: version, database: shard }, signal);
    const tasks = new Tasks(signal, clock, log);
    const running = new Running(options, { journal, meters, tasks });
    running.register();
    running.start();
    const sources = config.sources.map(({ id }) => id);
    tasks.start('journal', (stop) => maintainJournal(journal, () => sources, clock, log.child('journal'), stop));
    return await tasks.ended(() => config.shutdownTimeout);
  } finally {
    rmSync(dataDir, { recursive: true, force: true });
  }
}
