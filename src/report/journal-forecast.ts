/** When the journal will be full, while it keeps records for a sink that does not accept them. Pure. */
import type { Snapshot } from '../model/snapshot.ts';

interface JournalForecast {
  readonly secondsUntilFull: number;
  /** The failing sink that lags most. */
  readonly sink: string;
}

const growing: ReadonlySet<string> = new Set(['retrying', 'blocked', 'unconfigured']);
/** A shorter time gives no usable rate. */
const minSeconds = 600;

/**
 * The journal prunes entries that every sink has accepted, so it fills only with the entries that a
 * failing sink lacks. Assumes that entries arrive as fast as they did since that sink stopped.
 * @returns undefined while no sink fails, and once collection is paused
 */
export function journalForecast({ journal, sinks }: Pick<Snapshot, 'journal' | 'sinks'>): JournalForecast | undefined {
  const { bytes, setAside = 0, maxSize, head, pruned = 0, paused } = journal;
  const failing = sinks.filter(({ state, lagSeconds, lagEntries }) => growing.has(state) && lagSeconds >= minSeconds && lagEntries > 0);
  const [slowest] = failing.toSorted((one, other) => other.lagEntries - one.lagEntries);
  if (!slowest || maxSize === 0 || paused !== undefined || head <= pruned) return undefined;
  const kept = slowest.lagEntries * ((bytes - setAside) / (head - pruned));
  return { secondsUntilFull: Math.max(0, ((maxSize - setAside - kept) * slowest.lagSeconds) / kept), sink: slowest.id };
}
