/** One JSON document of ECS 9.4.0. `JSON.stringify` of the whole document is faster than a hand-written writer. */
import type { Encode } from '../model/event.ts';
import { defineFormat } from './define.ts';
import type { EncodeSettings } from './define.ts';

export const ecs = defineFormat('ecs', {
  contentType: 'application/json',
  shape: 'document',
  shorten: 'document',
  encoder: encodeEcs,
});

function encodeEcs(settings: EncodeSettings): Encode {
  if (settings.includeOriginal) return ({ document }) => JSON.stringify(document);
  return ({ document }) => JSON.stringify({ ...document, event: { ...document.event, original: undefined } });
}
