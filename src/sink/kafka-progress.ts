/**
 * What stands in the progress topic: under the sink's id its position, in the transaction of the messages that it settles; under `<id>/open` what each
 * opening wrote, which marks the end of what is to be read. Pure.
 */
import { WaybillError } from '../errors.ts';
import type { Position } from '../model.ts';

/** A record as it is read back. */
export interface ReadRecord {
  readonly offset: bigint;
  readonly key: string | undefined;
  readonly value: string | undefined;
}

export interface Progress {
  readonly journal: string;
  readonly position: Position;
}

export function progressText({ journal, position }: Progress): string {
  return JSON.stringify({ journal, seq: position.seq, chain: Buffer.from(position.chain).toString('hex') });
}

export function openKey(id: string): string {
  return `${id}/open`;
}

/** Whether these hold a position of the sink: else what lies before them must be read too. */
export function holdsPosition(records: readonly ReadRecord[], id: string): boolean {
  return records.some(({ key }) => key === id);
}

/**
 * The last position in a progress topic, which is the sink's own.
 * @throws WaybillError `sink_blocked`: another sink, or another journal, writes there too
 */
export function lastProgress(records: readonly ReadRecord[], id: string, journal: string, topic: string): Progress | undefined {
  const refuse = (words: string): never => {
    throw new WaybillError('sink_blocked', `cannot go on with sink "${id}" (sinks.${id}.progressTopic): ${words}`);
  };
  let last: Progress | undefined;
  let isOurs = false;
  for (const { offset, key, value } of records) {
    if (key === openKey(id)) continue;
    const found = key === id ? readProgress(value) : undefined;
    if (!found)
      return refuse(`"${topic}" is not its own: record ${offset} has the key "${key ?? ''}"; name a topic that nobody else writes`);
    if (isOurs && found.journal !== journal)
      refuse(`"${topic}" is shared: another state wrote record ${offset} behind one of ours; name a topic that nobody else writes`);
    isOurs = found.journal === journal;
    last = found;
  }
  if (last && !isOurs)
    refuse(
      `"${topic}" belongs to another state, whose entry ${last.position.seq} it has (the state was lost, or two daemons write it); restore that state, or name another topic`,
    );
  return last;
}

function readProgress(value: string | undefined): Progress | undefined {
  try {
    const { journal, seq, chain } = JSON.parse(value ?? '') as { journal: unknown; seq: unknown; chain: unknown };
    if (typeof journal !== 'string' || typeof seq !== 'number' || typeof chain !== 'string') return undefined;
    return { journal, position: { seq, chain: Buffer.from(chain, 'hex') } };
  } catch {
    return undefined;
  }
}
