/**
 * Lists every setting of the configuration for docs/configuration.md: name, purpose, values,
 * default.
 */
import { z } from 'zod';
import { expectation } from '../../../src/config/problems.ts';
import { unwrap } from '../../../src/config/schema-walk.ts';
import { configSchema } from '../../../src/config/schema.ts';
import { configJsonSchema } from '../../../src/config/json-schema.ts';
import { sinks } from '../../../src/sink/index.ts';

export interface Setting {
  /** `sources[].pollInterval` */
  readonly name: string;
  readonly description: string | undefined;
  readonly takes: string;
  /** The default as written in the file; undefined if there is none. */
  readonly usual: string | undefined;
  readonly required: boolean;
  /** For a setting of `sinks`: the sink type of its table. */
  readonly sink: string | undefined;
}

interface Written {
  readonly type?: string;
  readonly const?: unknown;
  readonly description?: string;
  readonly default?: unknown;
  readonly properties?: Readonly<Record<string, Written>>;
  readonly required?: readonly string[];
  readonly items?: Written;
  readonly anyOf?: readonly Written[];
  readonly oneOf?: readonly Written[];
  readonly $ref?: string;
}

/**
 * Every permitted setting, in the order of the schema. The fields of `filter` are the fields of
 * records, and are not listed one by one.
 */
export function settings(): readonly Setting[] {
  const written = configJsonSchema(sinks) as Written;
  return inside(configSchema(sinks), written, '');
}

function inside(schema: z.core.$ZodType, written: Written, prefix: string, sink?: string): readonly Setting[] {
  return unwrap(schema).flatMap(({ schema: type }) => {
    if (type instanceof z.ZodArray) return inside(type.element, written.items ?? listOf(written) ?? {}, `${prefix}[]`, sink);
    if (!(type instanceof z.ZodObject)) return [];
    const group = groupFor(type, written);
    const typeOfSink = prefix === 'sinks[]' && type.shape['type'] instanceof z.ZodLiteral ? String(type.shape['type'].value) : sink;
    return Object.keys(type.shape).flatMap((key) => {
      const member = type.shape[key] as z.core.$ZodType;
      const name = prefix === '' ? key : `${prefix}.${key}`;
      const own = group?.properties?.[key] ?? {};
      const usual = own.default === undefined || isEmpty(own.default) ? undefined : JSON.stringify(own.default).replaceAll('"', '');
      const required = group?.required?.includes(key) ?? false;
      const one = { name, description: own.description, takes: takes(member), usual, required, sink: typeOfSink };
      return key === 'filter' ? [one] : [one, ...inside(member, own, name, typeOfSink)];
    });
  });
}

/** An optional group has the defaults of its settings, each in a separate row. */
function isEmpty(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

function listOf(written: Written): Written | undefined {
  return written.anyOf?.find(({ type }) => type === 'array')?.items;
}

/** The alternative with exactly these keys. */
function groupFor(schema: z.ZodObject, written: Written): Written | undefined {
  const keys = Object.keys(schema.shape);
  const literal = schema.shape['type'] instanceof z.ZodLiteral ? schema.shape['type'].value : undefined;
  return [written, ...(written.anyOf ?? []), ...(written.oneOf ?? [])].find(
    ({ properties }) =>
      properties &&
      Object.keys(properties).length === keys.length &&
      keys.every((key) => key in properties) &&
      (literal === undefined || properties['type']?.const === literal),
  );
}

function takes(schema: z.core.$ZodType): string {
  const types = unwrap(schema);
  const known = types.find((type) => type.facts.expects !== undefined);
  if (known) return expectation([known]);
  return types
    .map((type) => {
      if (type.schema instanceof z.ZodArray) return `list: ${takes(type.schema.element)}`;
      if (type.schema instanceof z.ZodEnum && type.schema.options.length > 8) return `one of ${type.schema.options.length} names`;
      return expectation([type]).replace(/^one of /, '');
    })
    .join(', or ');
}
