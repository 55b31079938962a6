/** `waybill schema`: the JSON Schema of the configuration. */
import { parseArgs } from 'node:util';
import { configJsonSchema } from '../../config/json-schema.ts';
import { sinks } from '../../sink/index.ts';
import type { Io } from '../io.ts';

export const summary = 'prints the JSON Schema of the configuration';

export const usage = `waybill schema

Prints the JSON Schema (draft 2020-12) of the configuration. An editor that knows it completes keys and marks what is wrong.

Examples:
  waybill schema > waybill.schema.json
  waybill schema | jq '.properties | keys'
`;

export async function run(args: string[], io: Pick<Io, 'stdout'>): Promise<number> {
  parseArgs({ args, options: {} });
  io.stdout.write(`${JSON.stringify(configJsonSchema(sinks), undefined, 2)}\n`);
  return 0;
}
