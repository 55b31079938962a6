/** The snapshot of the daemon for commands. */
import { reportSettings, requestedBy } from '../config/report-settings.ts';
import { version } from '../disk/version.ts';
import { snapshotOf, withCoverage } from '../journal/queries/snapshot.ts';
import { lastWrite } from '../journal/state.ts';
import type { Snapshot } from '../model/snapshot.ts';
import { systemClock } from '../time/clock.ts';
import { adminServer, type AdminValues } from './admin-client.ts';
import { liveSnapshot } from './daemon-client.ts';
import type { Io } from './io.ts';
import { readState, settingsFor, type KnownSettings, type StateValues } from './state-access.ts';

/** From the running daemon, local or remote, else from the state. */
export async function currentSnapshot(values: StateValues & AdminValues, io: Io): Promise<Snapshot> {
  const server = adminServer(values, io.env);
  return server
    ? server.get<Snapshot>('/snapshot', { sources: 'objects', sinks: 'objects', journal: 'object' })
    : localSnapshot(await settingsFor(values, io));
}

/** From the daemon that runs on this state, else from the state. */
export async function localSnapshot(known: KnownSettings): Promise<Snapshot> {
  return (await liveSnapshot(known.settings.dataDir)) ?? stopped(known);
}

/** Default of `closeDelay`. */
const defaultCloseDelayMs = 900_000;

function stopped({ settings, isConfigured }: KnownSettings): Snapshot {
  return readState(settings, (db) => {
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
