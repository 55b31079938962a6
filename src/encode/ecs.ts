/** One JSON document of ECS 9.4.0: the event as it is. `JSON.stringify` of the finished object is faster than any writer by hand. */
import type { Encode } from '../model/event.ts';

/** @param original  whether the record's text goes along as `event.original`; its hash always does */
export function ecs(settings: { readonly includeOriginal: boolean }): Encode {
  if (settings.includeOriginal) return ({ document }) => JSON.stringify(document);
  return ({ document }) => JSON.stringify({ ...document, event: { ...document.event, original: undefined } });
}
