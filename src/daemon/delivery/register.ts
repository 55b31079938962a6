/** Registers a configured sink with the journal: a new one with its begin, a known one with its selection. */
import type { SinkConfig } from '../../config/load.ts';
import type { Journal } from '../../journal/journal.ts';
import { movedMessage, type SinkState } from '../../journal/sink-positions.ts';
import type { Replay } from '../../model/journal.ts';
import type { Position } from '../../model/ledger.ts';
import type { Log } from '../../model/telemetry.ts';
import type { Micros } from '../../model/time.ts';

/**
 * @param now  wall clock, ms
 * @returns `moved` for a sink that must not be opened: its destination differs from the one in the state
 */
export function register(
  { id, type, start, definition, settings, sources, filter }: SinkConfig,
  journal: Journal,
  log: Log,
  now: number,
): SinkState & { readonly moved?: string | undefined } {
  const known = [...journal.sinkPositions.sinks()].find((each) => each.id === id);
  const destination = definition.destination(settings);
  const { position, startTime, replay } = beginOf(start, journal, !known, now);
  const moved = known && movedMessage(known, type, destination);
  // Keeps the records for it, with the selection that it had.
  // mutant: hold-moved-sink
  if (known && moved !== undefined)
    return { ...journal.sinkPositions.register(id, known.type, known.destination, position, startTime), moved };
  const state = journal.sinkPositions.register(id, type, destination, position, startTime, replay);
  const { isChanged, widened } = journal.sinkPositions.select(id, { sources, filter });
  if (isChanged) log.write('sink.selection_changed', { sink: id, sources: widened });
  return state;
}

interface Begin {
  readonly position: Position;
  readonly startTime?: Micros;
  readonly replay?: Replay;
}

/** @param isNew  false: the sink continues, so it does not receive the archive again */
function beginOf(start: SinkConfig['start'], journal: Journal, isNew: boolean, now: number): Begin {
  if (start.kind === 'instant') return { position: journal.positionFor(start.at), startTime: start.at };
  if (start.kind !== 'archive') return { position: journal.positionFor(start.kind) };
  if (!isNew) return { position: journal.positionFor('journal') };
  const position = journal.positionAfterArchive(start.archive);
  const { archive } = start;
  const replay: Replay = { kind: 'archive', archive, times: undefined, through: position.seq, began: now, at: 0, sent: 0, rejected: 0 };
  return { position, replay };
}
