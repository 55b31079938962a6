/**
 * The records of the progress topic. The key `<id>` holds the position of a sink, written in the transaction of the messages that it
 * acknowledges. Each open writes `<id>/open`, which marks the end for the reader. Pure.
 */
import { WaybillError } from '../../errors/errors.ts';
import { objectIn } from '../../record/json-object.ts';
import type { Position } from '../../model/ledger.ts';
import type { FeedPosition } from '../../model/sink.ts';

export interface ReadRecord {
  readonly offset: bigint;
  readonly key: string | undefined;
  readonly value: string | undefined;
}

export interface Progress {
  readonly journal: string;
  readonly position: Position;
  /** What this transaction delivered for an operator; absent if the position moves. */
  readonly feed?: FeedPosition | undefined;
  /** This journal becomes the owner: earlier records, of any journal, no longer apply. */
  readonly adopted?: boolean | undefined;
}

export function progressText({ journal, position, feed, adopted }: Progress): string {
  return JSON.stringify({ journal, seq: position.seq, chain: Buffer.from(position.chain).toString('hex'), feed, adopted });
}

export function openKey(id: string): string {
  return `${id}/open`;
}

/** True if the records include a position of the sink; otherwise the caller must read earlier records too. */
export function holdsPosition(records: readonly ReadRecord[], id: string): boolean {
  return records.some(({ key }) => key === id);
}

/** The last position of the sink in a topic. @throws WaybillError `sink_blocked`: another sink or journal also writes to it */
export function lastProgress(records: readonly ReadRecord[], id: string, journal: string, topic: string): Progress | undefined {
  const all = ownProgress(records, id, topic);
  const begin = all.findLastIndex(({ progress }) => progress.adopted === true && progress.journal === journal);
  const found = all.slice(Math.max(0, begin));
  const isOurs = ({ progress }: Found): boolean => progress.journal === journal;
  const other = found.find((each, i) => i > 0 && !isOurs(each) && found.slice(0, i).some(isOurs));
  if (other)
    throw refusal(
      id,
      `"${topic}" is shared: another state wrote record ${other.offset} after a record of this state; stop the other writer, then see "waybill sinks adopt", or name another topic`,
    );
  const last = found.at(-1)?.progress;
  if (last && last.journal !== journal)
    throw refusal(
      id,
      `"${topic}" belongs to another state, and has entry ${last.position.seq} of that state (the state was lost, or two daemons write it); restore that state, name another topic, or see "waybill sinks adopt"`,
    );
  return last;
}

interface Found {
  readonly offset: bigint;
  readonly progress: Progress;
}

/** The positions of this sink in a topic, of any journal. @throws WaybillError `sink_blocked`: another program also writes to the topic */
export function ownProgress(records: readonly ReadRecord[], id: string, topic: string): readonly Found[] {
  return records.flatMap(({ offset, key, value }) => {
    if (key === openKey(id)) return [];
    const progress = key === id ? readProgress(value) : undefined;
    if (progress) return [{ offset, progress }];
    throw refusal(
      id,
      `"${topic}" is used by another writer: record ${offset} has the key "${key ?? ''}"; name a topic that only this sink writes`,
    );
  });
}

function refusal(id: string, message: string): WaybillError {
  return new WaybillError('sink_blocked', `cannot resume sink "${id}" (sinks.${id}.progressTopic): ${message}`);
}

function readProgress(value: string | undefined): Progress | undefined {
  const { journal, seq, chain, feed, adopted } = objectIn(value ?? '');
  if (typeof journal !== 'string' || typeof seq !== 'number' || typeof chain !== 'string') return undefined;
  return { journal, position: { seq, chain: Buffer.from(chain, 'hex') }, feed: readFeed(feed), adopted: adopted === true };
}

function readFeed(value: unknown): FeedPosition | undefined {
  if (typeof value !== 'object' || value === null || !('feed' in value && 'at' in value && 'sent' in value)) return undefined;
  const { feed, at, sent } = value;
  return typeof feed === 'string' && typeof at === 'number' && typeof sent === 'number' ? { feed, at, sent } : undefined;
}
