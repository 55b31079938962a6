/**
 * The readiness of `/readyz`: sources respond and are not suspended, the journal accepts records, and no sink has failed for longer than
 * `failReadinessAfter` (`trouble` in the snapshot).
 */
import { sinkState, sourceState } from '../report/states.ts';
import { unreported, type Snapshot } from '../model/snapshot.ts';

interface Selected {
  readonly source?: string | undefined;
  readonly sink?: string | undefined;
}

/** One line for each reason; empty when ready. `selected` limits these to a source or sink; a paused journal concerns every source. */
export function notReadyReasons(snapshot: Snapshot, selected: Selected = {}): string[] {
  const all = selected.source === undefined && selected.sink === undefined;
  const reasons: string[] = [];
  if (snapshot.journal.paused !== undefined && (all || selected.source !== undefined)) {
    reasons.push(`journal: collecting is paused (${snapshot.journal.paused})`);
  }
  if (snapshot.fleet && all) {
    const { unreachable } = snapshot.fleet;
    if (unreachable !== undefined) reasons.push(unreachable);
    reasons.push(...unreported(snapshot.fleet).map((shard) => `shard ${shard}: no member reports on it`));
  }
  for (const source of snapshot.sources) {
    const { id, trouble } = source;
    const state = sourceState(source, snapshot);
    if (state === 'retired' || !(all || id === selected.source)) continue;
    if (trouble !== undefined || state === 'suspended') reasons.push(`source ${id}: ${withState(state, trouble)}`);
  }
  for (const sink of snapshot.sinks) {
    const { id, trouble } = sink;
    const state = sinkState(sink, snapshot);
    if (state === 'retired' || trouble === undefined || !(all || id === selected.sink)) continue;
    reasons.push(`sink ${id}: ${withState(state, trouble)}`);
  }
  return reasons;
}

function withState(state: string, trouble = state): string {
  return trouble.startsWith(state) ? trouble : `${state}, ${trouble}`;
}
