/** The status of a fleet: the owner of each shard writes what it knows to the database, and any reader adds the shards up. */
import type { CertificateEnd, PageFacts, ShownWindow, SinkSnapshot, Snapshot, SourceSnapshot } from '../model/snapshot.ts';
import type { Micros } from '../model/time.ts';
import { staleSeconds } from '../model/snapshot.ts';
import { asked, isServed, type Pool } from './database.ts';
import type { Taken } from './lease.ts';

/** What an owner says about its shard. It has been committed. */
export interface ShardStatus {
  /** With the coverage of each ledger. */
  readonly snapshot: Snapshot;
  readonly windows: readonly (readonly [source: string, windows: readonly ShownWindow[]])[];
  readonly today: PageFacts['today'];
}

interface Facts {
  readonly version: string;
  /** Wall clock. */
  readonly now: Micros;
  readonly leaseMs: number;
  /** The address of the database, without a password. */
  readonly database: string;
  /** The ids of the sources that the reader's configuration has. */
  readonly configured: readonly string[];
}

/** The worst first. */
const sinkStates = ['blocked', 'retrying', 'active', 'unconfigured', 'stopped', 'retired'];

/** Replaces the status of a shard, unless the lease is lost. */
export async function publish(pool: Pool, { shard, lease }: Taken, status: ShardStatus): Promise<void> {
  const sql = `INSERT INTO waybill.statuses (shard, at, status) SELECT shard, clock_timestamp(), $3 FROM waybill.journals WHERE shard = $1 AND lease = $2
    ON CONFLICT (shard) DO UPDATE SET at = excluded.at, status = excluded.status`;
  await asked(() => pool.query(sql, [shard, lease, JSON.stringify(status)]));
}

interface ShardRow {
  readonly shard: number;
  readonly owner: string | null;
  readonly seconds: number | null;
  readonly status: string | null;
}

/** The status of all shards, from what their owners wrote last. @throws WaybillError `database_unreachable` */
export async function fleetStatus(pool: Pool, facts: Facts): Promise<Snapshot> {
  const age = (column: string): string => `extract(epoch FROM clock_timestamp() - ${column})::float8`;
  const ofShards = `SELECT j.shard, CASE WHEN j.expires > clock_timestamp() THEN j.owner END AS owner, ${age('s.at')} AS seconds, s.status
    FROM waybill.journals AS j LEFT JOIN waybill.statuses AS s ON s.shard = j.shard WHERE j.${isServed} ORDER BY j.shard`;
  const { rows } = await asked(() => pool.query<ShardRow>(ofShards));
  const ofMembers = `SELECT name, release, ${age('seen')} AS "seenSeconds" FROM waybill.members
    WHERE seen > clock_timestamp() - $1::bigint * interval '2 ms' ORDER BY name`;
  const { rows: members } = await asked(() =>
    pool.query<{ name: string; release: string; seenSeconds: number }>(ofMembers, [facts.leaseMs]),
  );
  const ofRollbacks = `SELECT shard, first, last, repaired, extract(epoch FROM at)::float8 * 1e6 AS at FROM waybill.rollbacks
    WHERE at > clock_timestamp() - CASE WHEN repaired THEN interval '1 day' ELSE interval '7 days' END ORDER BY at DESC, shard`;
  const { rows: rollbacks } = await asked(() => pool.query<NonNullable<Snapshot['fleet']>['rollbacks'][number]>(ofRollbacks));
  const known = rows.flatMap((row) => (row.status === null ? [] : [statusOf(row, row.status)]));
  const whole = summed(
    known.map(({ snapshot }) => snapshot),
    facts,
  );
  // Nothing is claimed of a source whose shard no member has opened yet.
  const ids = new Set(whole.sources.map(({ id }) => id));
  const unknown = facts.configured.filter((id) => !ids.has(id)).map((id) => unopened(id));
  const ages = known.flatMap(({ seconds }) => seconds ?? []);
  return {
    ...whole,
    sources: [...whole.sources, ...unknown].toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    ...(members.length === 0 && { stopped: { since: facts.now - (ages.length === 0 ? 0 : Math.min(...ages) * 1e6) } }),
    fleet: {
      members,
      shards: rows.map(({ shard, owner, seconds }) => ({ shard, owner, statusSeconds: seconds })),
      rollbacks,
      page: {
        windows: new Map(known.flatMap(({ windows }) => windows)),
        today: {
          records: known.reduce((sum, { today }) => sum + today.records, 0),
          late: known.reduce((sum, { today }) => sum + today.late, 0),
        },
      },
    },
  };
}

function statusOf({ shard, seconds }: ShardRow, text: string): ShardStatus & { readonly seconds: number | null } {
  const status = JSON.parse(text) as ShardStatus;
  if (seconds === null || seconds < staleSeconds) return { ...status, seconds };
  const trouble = `shard ${shard}: no member has reported on it for ${Math.round(seconds)} s`;
  // The time of the service goes on, and nobody asks it.
  const unmeasured = { trouble, serverNow: undefined, clock: undefined, nextProof: undefined, failing: undefined };
  const sources = status.snapshot.sources.map((source) => (source.state === 'retired' ? source : { ...source, ...unmeasured }));
  return { ...status, snapshot: { ...status.snapshot, sources }, seconds };
}

function unopened(id: string): SourceSnapshot {
  const none = {
    liveFrom: 0,
    frontier: 0,
    closedUntil: 0,
    polledUntil: 0,
    collected: 0,
    late: 0,
    recountsOverdue: 0,
    closeDelaySeconds: 0,
  };
  const windows = { all: 0, proven: 0, final: 0, gap: 0, accepted: 0, inDoubt: 0 };
  return { id, state: 'active', trouble: 'no member has opened its shard yet', ...none, windows };
}

/** The sum of shards: their sources, and each sink as a whole. */
export function summed(shards: readonly Snapshot[], { version, now, database }: Pick<Facts, 'version' | 'now' | 'database'>): Snapshot {
  const sum = (of: (journal: Snapshot['journal']) => number | undefined): number =>
    shards.reduce((total, { journal }) => total + (of(journal) ?? 0), 0);
  const sinks = Map.groupBy(
    shards.flatMap((shard) => shard.sinks),
    ({ id }) => id,
  );
  const certificates = new Map<string, CertificateEnd>();
  for (const end of shards.flatMap((shard) => shard.certificates ?? [])) {
    const known = certificates.get(end.target);
    if (!known || end.at < known.at) certificates.set(end.target, end);
  }
  return {
    version,
    created: Math.min(now, ...shards.map(({ created }) => created)),
    now,
    journal: {
      bytes: sum(({ bytes }) => bytes),
      setAside: sum(({ setAside }) => setAside),
      maxSize: sum(({ maxSize }) => maxSize),
      head: sum(({ head }) => head),
      commits: sum(({ commits }) => commits),
      paused: shards.find(({ journal }) => journal.paused !== undefined)?.journal.paused,
      directory: database,
    },
    sources: shards.flatMap(({ sources }) => sources),
    sinks: [...sinks.values()].map(sinkOf).toSorted((one, other) => (one.id < other.id ? -1 : 1)),
    certificates: [...certificates.values()],
    secrets: Object.assign({}, ...shards.map(({ secrets }) => secrets)) as Record<string, string>,
  };
}

/** A sink over its shards: the worst of them speaks for it. */
function sinkOf(parts: readonly SinkSnapshot[]): SinkSnapshot {
  const sum = (of: (part: SinkSnapshot) => number): number => parts.reduce((total, part) => total + of(part), 0);
  const rank = ({ state, trouble, attempts = 0 }: SinkSnapshot): number =>
    sinkStates.indexOf(state) * 4 - (trouble === undefined ? 0 : 2) - (attempts > 0 ? 1 : 0);
  const [worst] = parts.toSorted((one, other) => rank(one) - rank(other)) as [SinkSnapshot];
  const successes = parts.flatMap(({ lastSuccess }) => lastSuccess ?? []);
  const isUnselected = parts.every(({ unselected }) => unselected !== undefined);
  return {
    ...worst,
    acknowledged: sum(({ acknowledged }) => acknowledged),
    lagEntries: sum(({ lagEntries }) => lagEntries),
    lagRecords: sum(({ lagRecords }) => lagRecords),
    lagSeconds: Math.max(...parts.map(({ lagSeconds }) => lagSeconds)),
    deadLetters: sum(({ deadLetters }) => deadLetters),
    unselected: isUnselected ? sum(({ unselected = 0 }) => unselected) : undefined,
    hasDelivered: parts.some(({ hasDelivered }) => hasDelivered),
    lastSuccess: successes.length === 0 ? undefined : Math.max(...successes),
    replays: parts
      .flatMap(({ replays = [] }) => replays)
      .toSorted((one, other) => Number(other.state === 'failed') - Number(one.state === 'failed')),
  };
}
