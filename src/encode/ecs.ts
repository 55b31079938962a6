/** One JSON document of ECS 9.4.0: the table of record/ecs.ts, written by json-writer.ts. */
import { ecsPaths } from '../record/ecs.ts';
import type { Encode } from '../record/event.ts';
import { defineFormat } from './define.ts';
import type { EncodeSettings } from './define.ts';
import { JsonWriter } from './json-writer.ts';

const complete = new JsonWriter(ecsPaths);
const withoutOriginal = new JsonWriter(ecsPaths.filter((path) => path !== 'event.original'));

export const ecs = defineFormat('ecs', {
  contentType: 'application/json',
  shape: 'document',
  shorten: 'document',
  encoder: encodeEcs,
});

function encodeEcs({ includeOriginal }: EncodeSettings): Encode {
  const writer = includeOriginal ? complete : withoutOriginal;
  return ({ document }) => writer.write(document);
}
