/** Opens the journal of a configuration, for the daemon and for commands that change the state. */
import type { Config } from '../config/load.ts';
import { Journal } from '../journal/journal.ts';
import type { ShardDatabase } from '../journal/replica/shard-database.ts';
import type { Clock } from '../model/time.ts';
import { version } from '../disk/version.ts';

interface OpenOptions {
  readonly clock: Clock;
  /** The release to record in the state; default: this one. */
  readonly release?: string;
  readonly expectState?: boolean;
  /** ms to wait for the lock of another owner; default 0. */
  readonly lockWait?: number;
  /** Called when another owner holds the lock. */
  readonly waits?: () => void;
  /** See StateOptions. */
  readonly database?: ShardDatabase;
}

export function openJournal(
  { dataDir, journal: { maxSize, retention } }: Config,
  options: OpenOptions,
  signal: AbortSignal,
): Promise<Journal> {
  const { clock, release = version, expectState = false, lockWait = 0, waits, database } = options;
  return Journal.open(
    { directory: dataDir, maxSize, retention, version: release, expectState, lockWait, database, ...(waits && { waits }) },
    clock,
    signal,
  );
}
