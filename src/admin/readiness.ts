/**
 * What `/readyz` says: about data, not about the process. Ready means that tokens are obtained, the newest read is young, the journal accepts, and
 * no sink has been blocked for longer than it may; other components put the first and the last into their snapshots.
 */
import type { Snapshot } from '../model/snapshot.ts';

interface OnlyOne {
  readonly source?: string | undefined;
  readonly sink?: string | undefined;
}

/**
 * The reasons for not being ready, one line each; none when ready. With a source or a sink named, only what concerns these (a paused
 * journal concerns every source).
 */
export function troubles(snapshot: Snapshot, only: OnlyOne = {}): string[] {
  const all = only.source === undefined && only.sink === undefined;
  const reasons: string[] = [];
  if (snapshot.journal.paused !== undefined && (all || only.source !== undefined)) {
    reasons.push(`journal: collecting is paused (${snapshot.journal.paused})`);
  }
  for (const { id, state, trouble } of snapshot.sources) {
    if (state === 'retired' || !(all || id === only.source)) continue;
    if (trouble !== undefined) reasons.push(`source ${id}: ${trouble}`);
    else if (state === 'suspended') reasons.push(`source ${id}: suspended`);
  }
  for (const { id, state, trouble } of snapshot.sinks) {
    if (state === 'retired' || trouble === undefined || !(all || id === only.sink)) continue;
    reasons.push(`sink ${id}: ${trouble}`);
  }
  return reasons;
}
