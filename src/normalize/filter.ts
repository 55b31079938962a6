/**
 * The records that a sink selects: its `filter`, compiled once to a predicate on the record as
 * received, before privacy. Values are compared exactly, as text; an absent field never matches.
 */
import type { JsonValue } from '../model/record.ts';
import type { FieldPath } from '../record/fields.ts';
import { type JsonObject, objectOf, textOf } from '../record/json.ts';

/**
 * Matches if every named field has one of its values, `not` does not match, and one of `any`
 * matches.
 */
export type Where = { readonly [field in FieldPath]?: readonly string[] | undefined } & {
  readonly not?: Where | undefined;
  readonly any?: readonly Where[] | undefined;
};

/** True if the sink selects the record, given as `parseRecord` parses it. */
type FilterValues = (value: JsonValue) => boolean;

export function compileWhere(filter: Where): FilterValues {
  const matches = compile(filter);
  return (value) => matches(objectOf(value));
}

type Matches = (record: JsonObject | undefined) => boolean;

function compile(filter: Where): Matches {
  const { not, any, ...fields } = filter;
  const tests: Matches[] = [];
  for (const [field, values] of Object.entries(fields)) if (values !== undefined) tests.push(hasOneOf(field, values));
  if (not !== undefined) {
    const unwanted = compile(not);
    tests.push((record) => !unwanted(record));
  }
  if (any !== undefined) {
    const alternatives = any.map(compile);
    tests.push((record) => alternatives.some((matches) => matches(record)));
  }
  return (record) => tests.every((matches) => matches(record));
}

function hasOneOf(field: string, values: readonly string[]): Matches {
  const requested = new Set(values);
  const dot = field.indexOf('.');
  const network = dot < 0 ? undefined : field.slice(0, dot);
  const name = field.slice(dot + 1);
  return (record) => {
    const object = network === undefined ? record : objectOf(record?.[network]);
    const text = textOf(object?.[name]);
    return text !== undefined && requested.has(text);
  };
}
