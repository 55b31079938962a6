/** The snapshot of the daemon for commands. */
import { reportSettings, requestedBy } from '../config/report-settings.ts';
import { version } from '../disk/version.ts';
import { snapshotOf, withCoverage } from '../journal/queries/snapshot.ts';
import { fleetStatus } from '../fleet/status.ts';
import { lastWrite, readState as readStateIn } from '../journal/state.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { systemClock } from '../time/clock.ts';
import { adminServer, type AdminValues } from './admin-client.ts';
import { liveSnapshot } from './daemon-client.ts';
import type { Io } from './io.ts';
import { withDatabase } from '../fleet/readers.ts';
import { accessOf, settingsFor, type KnownSettings, type StatePlace, type StateValues } from './state-access.ts';

/** From the running daemon, local or remote, else from the state. */
export async function currentSnapshot(values: StateValues & AdminValues, io: Io): Promise<Snapshot> {
  const server = adminServer(values, io.env);
  return server
    ? server.get<Snapshot>('/snapshot', { sources: 'objects', sinks: 'objects', journal: 'object' })
    : localSnapshot(await settingsFor(values, io));
}

/** The snapshot of the daemon that runs on this state, else one from the state. For a fleet: what its members last wrote to the database. */
export async function localSnapshot(known: KnownSettings): Promise<Snapshot> {
  const { settings } = known;
  if (settings.fleet) return snapshotOfFleet(settings);
  return (await liveSnapshot(known.settings.dataDir)) ?? stopped(known);
}

/** Default of `closeDelay`. */
const defaultCloseDelayMs = 900_000;

function stopped({ settings, isConfigured }: KnownSettings): Snapshot {
  return readStateIn(settings.dataDir, (db) => {
    const closeDelay = new Map(settings.sources.map((source) => [source.id, source.closeDelay]));
    const snapshot = snapshotOf(db, version, systemClock.now() * 1000, {
      source: () => undefined,
      sink: () => undefined,
      closeDelaySeconds: (id) => (closeDelay.get(id) ?? defaultCloseDelayMs) / 1000,
      paused: undefined,
      maxSize: settings.journal.maxSize,
      configured: isConfigured ? settings.sources.map(({ id }) => id) : undefined,
      requested: requestedBy(settings),
      stopped: { since: lastWrite(settings.dataDir) },
    });
    return withCoverage(db, snapshot, reportSettings(settings));
  });
}

export function snapshotOfFleet(settings: StatePlace & { readonly sources: readonly { readonly id: string }[] }): Promise<Snapshot> {
  const { lease: leaseMs = 0, database = '' } = settings.fleet ?? {};
  const facts = { version, now: systemClock.now() * 1000, leaseMs, database, configured: settings.sources.map(({ id }) => id) };
  return withDatabase(accessOf(settings), (pool) => fleetStatus(pool, facts));
}
