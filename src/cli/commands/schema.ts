/** `waybill schema`: the JSON Schema of the configuration. */
import { configJsonSchema } from '../../config/json-schema.ts';
import { sinks } from '../../sink/index.ts';
import { defineCommand } from '../command.ts';

export const command = defineCommand({
  name: 'schema',
  summary: 'prints the JSON Schema of the configuration',
  description: 'Prints the JSON Schema (draft 2020-12) of the configuration. Editors use it to complete keys and mark errors.',
  options: {},
  examples: ['waybill schema > waybill.schema.json', "waybill schema | jq '.properties | keys'"],
  run: (_values, io) => {
    io.stdout.write(`${JSON.stringify(configJsonSchema(sinks), undefined, 2)}\n`);
    return 0;
  },
});
