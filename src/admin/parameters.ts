/** The query parameters of a request to the admin server. */
import { WaybillError } from '../errors/errors.ts';

/** An unknown or repeated name is an error: a typing error must not widen the query. @throws WaybillError `usage` */
export function parameters<Name extends string>(query: URLSearchParams, names: readonly Name[]): Partial<Record<Name, string>> {
  const found: Partial<Record<Name, string>> = {};
  for (const [name, value] of query) {
    const known = names.find((each) => each === name);
    if (known === undefined) throw new WaybillError('usage', `unknown parameter "${name}"; known parameters: ${names.join(', ')}`);
    if (query.getAll(name).length > 1) throw new WaybillError('usage', `parameter "${name}" is given more than once`);
    found[known] = value;
  }
  return found;
}

/** @throws WaybillError `usage` for a value that is not in the list */
export function choice<Value extends string>(parameter: string, text: string | undefined, values: readonly Value[]): Value | undefined {
  const found = values.find((value) => value === text);
  if (text !== undefined && found === undefined)
    throw new WaybillError('usage', `unknown ${parameter} "${text}"; known: ${values.join(', ')}`);
  return found;
}
