/**
 * Which records a sink takes, by its configuration, and since when of each source. Records that an earlier configuration left out never reach the sink
 * (its position is past them), so windows of that time are neither owed nor claimed.
 */
import type { Micros } from '../model/time.ts';
import { storedJson } from './damage.ts';

/** What the configuration says of a sink. */
export interface Selection {
  /** Ids of its sources; undefined: all. */
  readonly sources?: readonly string[] | undefined;
  /** Its `where`; undefined: every record. */
  readonly filter?: unknown;
}

export interface StoredSelection extends Selection {
  /** By id of the source: the time from which on the sink takes it as it does now. A source that is not named: since the start of the sink. */
  readonly since?: Readonly<Record<string, Micros>>;
}

/** A state that no daemon of this release has opened yet has no such column. */
export function selectionOf(text: string | null | undefined): StoredSelection | undefined {
  return typeof text === 'string' ? (storedJson(text) as StoredSelection) : undefined;
}

export function takes({ sources }: Selection, source: string): boolean {
  return sources?.includes(source) ?? true;
}

export function isSame(one: Selection, other: Selection): boolean {
  return text([...(one.sources ?? [''])].sort()) === text([...(other.sources ?? [''])].sort()) && text(one.filter) === text(other.filter);
}

/** The sources of which a sink gets records that it did not get before. A filter that only came to be leaves nothing to claim anew. */
export function widened(before: Selection, after: Selection, sources: readonly string[]): string[] {
  const isWider = before.filter !== undefined && text(before.filter) !== text(after.filter);
  return sources.filter((id) => takes(after, id) && (isWider || !takes(before, id)));
}

function text(value: unknown): string {
  return JSON.stringify(value ?? null);
}
