/** Selects a source or sink by the id that a user typed. */
import { WaybillError } from '../errors.ts';
import { nearestOrAll } from '../settings/nearest.ts';

/** @throws WaybillError `usage` that names the nearest id, or all */
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
