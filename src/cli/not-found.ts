/** Selects a source or sink by the id that a user typed. */
import type { StateSettings } from '../config/state-settings.ts';
import { WaybillError } from '../errors/errors.ts';
import { nearestOrAll } from '../settings/nearest.ts';

/** @throws WaybillError `usage` that suggests the nearest id, or lists all ids when none is near */
export function byId<Item extends { readonly id: string }>(kind: string, items: readonly Item[], id: string): Item {
  const found = items.find((item) => item.id === id);
  if (!found)
    throw notFound(
      kind,
      id,
      items.map((item) => item.id),
    );
  return found;
}

export function notFound(kind: string, id: string, known: readonly string[]): WaybillError {
  return new WaybillError('usage', `cannot find the ${kind} "${id}": ${known.length === 0 ? 'there is none' : nearestOrAll(id, known)}`);
}

/** The ledger of a source remains after the source left the configuration. @throws WaybillError `usage` */
export function assertKnownSource(
  source: string | undefined,
  { sources }: Pick<StateSettings, 'sources'>,
  stored: readonly { readonly id: string }[],
): void {
  const known = new Set([...sources, ...stored].map(({ id }) => id));
  if (source !== undefined && !known.has(source)) throw notFound('source', source, [...known]);
}
