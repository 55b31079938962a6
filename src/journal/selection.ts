/**
 * The records that a sink receives by its configuration, and since when for each source. Records that an earlier configuration excluded
 * never reach the sink, because its position is past them. The ledger makes no statement on windows of that time.
 */
import type { Micros } from '../model/time.ts';
import { storedJson } from './damage.ts';

/** The selection in the configuration of a sink. */
export interface Selection {
  /** Source ids; undefined: all. */
  readonly sources?: readonly string[] | undefined;
  /** The `filter`; undefined: every record. */
  readonly filter?: unknown;
}

export interface StoredSelection extends Selection {
  /** By source id: the sink receives records of this time and later. A source without an entry counts from the start of the sink. */
  readonly since?: Readonly<Record<string, Micros>>;
  /** The sink may have received entries up to this one under an earlier selection. Default 0. */
  readonly changedAfter?: number;
}

/** @param text  the column; null until a daemon has used the sink */
export function selectionOf(text: string | null | undefined): StoredSelection | undefined {
  return typeof text === 'string' ? (storedJson(text) as StoredSelection) : undefined;
}

export function takes({ sources }: Selection, source: string): boolean {
  return sources?.includes(source) ?? true;
}

/** True if the sink receives every record of a source. */
export function isWholeFor(selection: Selection | undefined, source: string): boolean {
  return selection?.filter === undefined && takes(selection ?? {}, source);
}

export function isSame(one: Selection, other: Selection): boolean {
  return text([...(one.sources ?? [''])].sort()) === text([...(other.sources ?? [''])].sort()) && text(one.filter) === text(other.filter);
}

/** The sources of which the sink receives additional records. A new filter alone adds none. */
export function widened(before: Selection, after: Selection, sources: readonly string[]): string[] {
  const isWider = before.filter !== undefined && text(before.filter) !== text(after.filter);
  return sources.filter((id) => takes(after, id) && (isWider || !takes(before, id)));
}

function text(value: unknown): string {
  return JSON.stringify(value ?? null);
}
