/** Queries on a schema: the types of a setting, the settings of a group, and which are secrets. */
import { z } from 'zod';
import type { Path } from './document.ts';
import { type Facts, facts } from '../settings/values.ts';

/** A type without its wrappers, and the facts about it. */
export interface Found {
  readonly schema: z.core.$ZodType;
  readonly facts: Facts;
}

/** @param value  the whole configuration as written */
export function typesAt(root: z.core.$ZodType, path: Path, value: unknown): readonly Found[] {
  let types = unwrap(root, value);
  let at = value;
  for (const key of path) {
    at = memberOf(at, key);
    types = types.flatMap(({ schema }) => {
      const inside = memberSchema(schema, key);
      return inside ? unwrap(inside, at) : [];
    });
  }
  return types;
}

export function keysAt(root: z.core.$ZodType, path: Path, value: unknown): readonly string[] {
  const keys = typesAt(root, path, value).flatMap(({ schema }) => {
    if (schema instanceof z.ZodRecord) return schema.keyType instanceof z.ZodEnum ? schema.keyType.options.map(String) : [];
    return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
  });
  return [...new Set(keys)];
}

export function isSecretAt(root: z.core.$ZodType, path: Path, value: unknown): boolean {
  return typesAt(root, path, value).some((found) => found.facts.secret);
}

/** The own member of an object or list; undefined if it is missing. */
export function memberOf(value: unknown, key: string | number): unknown {
  return typeof value === 'object' && value !== null && Object.hasOwn(value, key)
    ? (value as Record<string | number, unknown>)[key]
    : undefined;
}

/** Removes the wrappers of a type: optional, default, transformation and alternatives. */
export function unwrap(schema: z.core.$ZodType, value?: unknown, known: Facts = {}): readonly Found[] {
  const all = { ...facts.get(schema), ...known };
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodReadonly
  ) {
    return unwrap(schema.def.innerType, value, all);
  }
  if (schema instanceof z.ZodPipe) return unwrap(schema.def.in, value, all);
  if (schema instanceof z.ZodLazy) return unwrap(schema.def.getter(), value, all);
  if (schema instanceof z.ZodDiscriminatedUnion) {
    const type = memberOf(value, schema.def.discriminator);
    const chosen = schema.options.filter(
      (option) => option instanceof z.ZodObject && z.safeParse(option.shape[schema.def.discriminator], type).success,
    );
    return (chosen.length > 0 ? chosen : schema.options).flatMap((option) => unwrap(option, value, all));
  }
  if (schema instanceof z.ZodUnion) return schema.options.flatMap((option) => unwrap(option, value, all));
  return [{ schema, facts: all }];
}

function memberSchema(schema: z.core.$ZodType, key: string | number): z.core.$ZodType | undefined {
  if (schema instanceof z.ZodObject) return Object.hasOwn(schema.shape, key) ? (schema.shape[key] as z.core.$ZodType) : undefined;
  if (schema instanceof z.ZodArray) return typeof key === 'number' ? schema.element : undefined;
  if (schema instanceof z.ZodRecord) return schema.valueType;
  return undefined;
}
