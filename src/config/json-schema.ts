/**
 * The JSON Schema of the configuration as written, for editors: durations as text, and references wherever text is allowed. It is derived
 * from the schema that checks the file.
 */
import { z } from 'zod';
import type { SinkDefinition } from '../sink/define.ts';
import { configSchema } from './schema.ts';
import { facts } from '../settings/values.ts';

/** Matches text with a reference. The daemon checks the value of the reference when it loads the configuration. */
const referencePattern = String.raw`\$\{(env|file):`;

interface SchemaOptions {
  /** False: a secret must be a reference, for a configuration that is stored in plain text. Default true. */
  readonly literalSecrets?: boolean;
  readonly target?: 'draft-2020-12' | 'draft-7';
}

export function configJsonSchema(sinks: readonly SinkDefinition[], options: SchemaOptions = {}): object {
  const { literalSecrets = true, target = 'draft-2020-12' } = options;
  const whole = configSchema(sinks);
  return z.toJSONSchema(whole, {
    io: 'input',
    unrepresentable: 'any',
    target,
    override({ zodSchema, jsonSchema }) {
      const pattern = facts.get(zodSchema)?.pattern ?? jsonSchema.pattern;
      if (jsonSchema.type === 'string' && pattern !== undefined) jsonSchema.pattern = withReference(pattern);
      if (!literalSecrets) requireReference(zodSchema, jsonSchema);
      if (jsonSchema.type === 'string' && jsonSchema.enum) allowReference(jsonSchema);
      if (zodSchema === whole) letIncludeBringSources(jsonSchema);
    },
  });
}

function requireReference(zodSchema: z.core.$ZodType, schema: z.core.JSONSchema.BaseSchema): void {
  const known = facts.get(zodSchema);
  if (!known?.secret) return;
  // The address of a proxy without a password is no secret.
  schema.pattern = known.telling ? `^[^@]*$|${referencePattern}` : String.raw`^\$\{(env|file):[^}]+\}$`;
}

function withReference(pattern: string): string {
  return pattern.includes(referencePattern) ? pattern : `${pattern}|${referencePattern}`;
}

function allowReference(schema: z.core.JSONSchema.BaseSchema): void {
  const { enum: choices } = schema;
  delete schema.enum;
  delete schema.type;
  schema.anyOf = [
    { type: 'string', enum: choices ?? [] },
    { type: 'string', pattern: referencePattern },
  ];
}

/** An editor checks the main file alone, whose sources may all be in included files. */
function letIncludeBringSources(schema: z.core.JSONSchema.BaseSchema): void {
  const sources = schema.properties?.['sources'];
  if (typeof sources === 'object') delete sources.minItems;
  schema.required = (schema.required ?? []).filter((key) => key !== 'sources');
  if (schema.required.length === 0) delete schema.required;
  const some = (key: string): z.core.JSONSchema.BaseSchema => ({ required: [key], properties: { [key]: { minItems: 1 } } });
  schema.anyOf = [some('sources'), some('include')];
}
