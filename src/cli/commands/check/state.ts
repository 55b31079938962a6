/** The part of `waybill check` for the state: permissions, free space, sources or sinks whose target changed. Only reads. */
import { existsSync, statfsSync, statSync } from 'node:fs';
import { access, constants, stat } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { systemClock } from '../../../time/clock.ts';
import type { Config } from '../../../config/load.ts';
import { destinationOf } from '../../../source/destination.ts';
import { requestedBy } from '../../../config/report-settings.ts';
import { WaybillError, messageOf } from '../../../errors/errors.ts';
import { storedJson } from '../../../journal/damage.ts';
import { unreadOf } from '../../../journal/queries/backfills.ts';
import { storedSinks, storedSources, type StoredSink, type StoredSource } from '../../../journal/queries/stored.ts';
import { movedMessage } from '../../../journal/sink-positions.ts';
import { isAnotherHost, isSameService, movedSourceMessage } from '../../../journal/sources.ts';
import { volumeOf, type Volume } from '../../../journal/queries/volume.ts';
import { placeAtSinks } from '../../../journal/schema.ts';
import { openReadOnly } from '../../../journal/state.ts';
import type { DelayMeasure } from '../../../model/telemetry.ts';
import { unreadText } from '../../../report/backfills.ts';
import { size } from '../../../report/format-size.ts';
import { requestsADay } from './idle-requests.ts';
import type { Finding } from '../../../sink/define.ts';

export interface Line extends Finding {
  readonly subject: string;
}

/** The measured volume of a source, and its settings that decide the number of requests. */
export interface Measured extends Volume {
  readonly source: string;
  /** Requests a day when idle. */
  readonly idleRequests: number;
  readonly pageSize: number;
}

interface KnownState {
  readonly lines: readonly Line[];
  /** Measured delays of records, by source. */
  readonly delays: ReadonlyMap<string, DelayMeasure>;
  readonly measured: readonly Measured[];
  /** See placeAtSinks. */
  readonly place?: number | 'none' | undefined;
}

/** The smallest page of `pageSize: auto`. */
const usualPageSize = 100;

const files = ['waybill.db', 'waybill.db-wal', 'lock.db'];

/** Checks that this user can run a daemon with this state directory. */
export async function writableLines({ dataDir: state, journal: { maxSize } }: Pick<Config, 'dataDir' | 'journal'>): Promise<Line[]> {
  const subject = 'state';
  const directory = resolve(state);
  // The daemon creates a missing directory below the nearest existing one.
  let nearest = directory;
  while (!existsSync(nearest)) nearest = dirname(nearest);
  try {
    if (!(await stat(nearest)).isDirectory())
      return [{ subject, level: 'error', message: `cannot use "${nearest}" (dataDir): it is not a directory` }];
    await access(nearest, constants.W_OK | constants.X_OK);
    for (const file of files.map((name) => join(directory, name)).filter((path) => existsSync(path)))
      await access(file, constants.R_OK | constants.W_OK);
  } catch (cause) {
    return [{ subject, level: 'error', message: `cannot write to "${directory}" (dataDir): ${messageOf(cause)}` }];
  }
  const { bavail, bsize } = statfsSync(nearest);
  const free = bavail * bsize;
  if (free === 0) return [{ subject, level: 'error', message: `cannot write to "${directory}" (dataDir): its disk is full` }];
  const sizes = files.map((name) => statSync(join(directory, name), { throwIfNoEntry: false })?.size ?? 0);
  const left = maxSize - sizes.reduce((sum, each) => sum + each, 0);
  const message = `"${directory}" ${existsSync(directory) ? 'is writable' : 'can be created'}`;
  if (free >= left) return [{ subject, level: 'ok', message }];
  const lack = `its disk has ${size(free)} free, less than the ${size(left)} that journal.maxSize permits: a full disk also stops delivery, the limit only collection`;
  return [{ subject, level: 'warning', message: `${message}, but ${lack}` }];
}

/** Findings from the state; none when it does not exist yet. */
export function knownState(config: Config): KnownState {
  let db;
  try {
    db = openReadOnly(config.dataDir);
  } catch (thrown) {
    if (!(thrown instanceof WaybillError)) throw thrown;
    const lines: Line[] = thrown.code === 'state_missing' ? [] : [{ subject: 'state', level: 'warning', message: messageOf(thrown) }];
    return { lines, delays: new Map(), measured: [] };
  }
  try {
    const rows = storedSources(db);
    const delays = rows.flatMap(({ id, profile }) => {
      const { delays: measured } = storedJson(profile ?? '{}') as { delays?: DelayMeasure };
      return measured ? [[id, measured] as const] : [];
    });
    const sinks = storedSinks(db);
    const requested = requestedBy(config);
    const now = systemClock.now() * 1000;
    const unread = rows.flatMap(({ id, profile }): Line[] => {
      const from = requested(id, storedJson(profile ?? '{}') as Parameters<typeof requested>[1], now);
      const part = from && unreadOf(db, id, from);
      return part ? [{ subject: `source ${id}`, level: 'warning', message: unreadText(id, part) }] : [];
    });
    const measured = config.sources.flatMap((source): Measured[] => {
      const volume = volumeOf(db, source.id);
      const profile = rows.find(({ id }) => id === source.id)?.profile;
      const { calibration } = storedJson(profile ?? '{}') as { calibration?: { pageSize?: number } };
      const pageSize = calibration?.pageSize ?? (source.pageSize === 'auto' ? usualPageSize : source.pageSize);
      return volume ? [{ ...volume, source: source.id, idleRequests: requestsADay(source), pageSize }] : [];
    });
    return {
      lines: [...movedSourceLines(config, rows), ...renamedLines(config, rows), ...unread, ...movedLines(config, sinks)],
      delays: new Map(delays),
      measured,
      place: placeAtSinks(db),
    };
  } finally {
    db.close();
  }
}

/** A source with another path or tenant than in the state is suspended; for one with another host, every window is counted once more. */
function movedSourceLines({ sources }: Config, rows: readonly StoredSource[]): Line[] {
  return sources.flatMap((source): Line[] => {
    const [subject, present] = [`source ${source.id}`, destinationOf(source)];
    const stored = rows.find(({ id }) => id === source.id)?.destination ?? present;
    const message = movedSourceMessage(stored, present);
    if (message !== undefined) return [{ subject, level: 'error', message: `is suspended: ${message}`, setting: `sources.${source.id}` }];
    if (!isAnotherHost(stored, present)) return [];
    return [{ subject, level: 'warning', message: `polled "${stored}" before: at this address, every window is counted once more` }];
  });
}

/** A sink id with another destination than in the state: the sink is blocked. */
function movedLines({ sinks }: Config, stored: readonly StoredSink[]): Line[] {
  return sinks.flatMap(({ id, type, definition, settings }): Line[] => {
    const known = stored.find((each) => each.id === id);
    const message = known && movedMessage(known, type, definition.destination(settings));
    return message === undefined ? [] : [{ subject: `sink ${id}`, level: 'error', message, setting: `sinks.${id}` }];
  });
}

/** A source of the state that the configuration lacks, while a source with another id polls the same service. */
function renamedLines({ sources }: Config, rows: readonly StoredSource[]): Line[] {
  const gone = rows.filter(({ id, state }) => state !== 'retired' && !sources.some((source) => source.id === id));
  return gone.flatMap(({ id: old, destination }) =>
    sources
      .filter((source) => destination !== null && isSameService(destinationOf(source), destination))
      .map(({ id }): Line => {
        const message =
          `polls the same service as ${old}, which is no longer configured. The id is part of every uid: under a new one, everything is ` +
          `collected and sent again. To continue, name it ${old} again; to keep the new id: waybill sources retire --source ${old}`;
        return { subject: `source ${id}`, level: 'warning', message };
      }),
  );
}
