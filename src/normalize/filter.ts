/** A sink's `filter` as a predicate on the record before privacy. Values are compared exactly, as text; an absent field never matches. */
import { type FieldPath, fieldPaths } from '../record/fields.ts';
import type { RecordFields } from '../model/record.ts';

/** Matches if every named field has one of its values, `not` does not match, and one of `any` matches. */
export type Where = { readonly [field in FieldPath]?: readonly string[] | undefined } & {
  readonly not?: Where | undefined;
  readonly any?: readonly Where[] | undefined;
};

type Matches = (record: RecordFields) => boolean;

export function compileWhere(filter: Where): Matches {
  const { not, any, ...fields } = filter;
  const tests: Matches[] = [];
  for (const [field, values] of Object.entries(fields)) {
    if (values !== undefined) tests.push(hasOneOf(fieldPaths.indexOf(field as FieldPath), values));
  }
  if (not !== undefined) {
    const unwanted = compileWhere(not);
    tests.push((record) => !unwanted(record));
  }
  if (any !== undefined) {
    const alternatives = any.map(compileWhere);
    tests.push((record) => alternatives.some((matches) => matches(record)));
  }
  return (record) => tests.every((matches) => matches(record));
}

function hasOneOf(field: number, values: readonly string[]): Matches {
  const requested = new Set(values);
  return (record) => {
    const text = record.text(field);
    return text !== undefined && requested.has(text);
  };
}
