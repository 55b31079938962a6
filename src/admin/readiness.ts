/**
 * What `/readyz` says: about data, not about the process. Ready means that tokens are had, the newest read is young, the journal accepts, and
 * no sink has been blocked for longer than it may; the rooms put the first and the last into their snapshots.
 */
import type { Snapshot } from '../model/snapshot.ts';

export interface OnlyOne {
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
  for (const { id, mode, trouble } of snapshot.sources) {
    if (mode === 'retired' || !(all || id === only.source)) continue;
    if (trouble !== undefined) reasons.push(`source ${id}: ${trouble}`);
    else if (mode === 'hold') reasons.push(`source ${id}: on hold`);
  }
  for (const { id, state, trouble } of snapshot.sinks) {
    if (state === 'retired' || trouble === undefined || !(all || id === only.sink)) continue;
    reasons.push(`sink ${id}: ${trouble}`);
  }
  return reasons;
}
