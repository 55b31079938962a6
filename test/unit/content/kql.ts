/** Parses and evaluates the part of KQL that content uses: and, or, not, groups of values, `*` and comparisons. Keyword semantics. */
import type { Row } from './events.ts';
import { valuesOf, wildcard } from './events.ts';

interface Kql {
  readonly fields: readonly string[];
  readonly matches: (row: Row) => boolean;
}

type Test = (row: Row) => boolean;
type ValueTest = (values: readonly unknown[]) => boolean;

/** @throws Error when the text is not KQL of this part */
export function kql(text: string): Kql {
  const tokens = [...text.matchAll(/\s*("(?:[^"\\]|\\.)*"|<=|>=|[():<>]|[^\s():<>"]+)/gy)].map(([, token]) => token ?? '');
  if (tokens.join('') !== text.replaceAll(/\s+(?=(?:[^"]*"[^"]*")*[^"]*$)/g, '')) throw new Error(`cannot read KQL: ${text}`);
  const fields = new Set<string>();
  let at = 0;
  const is = (word: string): boolean => tokens[at]?.toLowerCase() === word;
  const accept = (word: string): boolean => is(word) && ++at > 0;
  const expect = (word: string): void => {
    if (!accept(word)) throw new Error(`cannot read KQL: expected "${word}", found "${tokens[at] ?? 'the end'}" in: ${text}`);
  };
  const next = (): string => {
    const token = tokens[at++];
    if (token === undefined || /^(and|or|not|[():<>]|<=|>=)$/i.test(token))
      throw new Error(`cannot read KQL: misplaced "${token}" in: ${text}`);
    return token;
  };

  /** `or` binds weaker than `and`, `and` weaker than `not`. */
  function either<Item>(item: () => (given: Item) => boolean): (given: Item) => boolean {
    const negated = (): ((given: Item) => boolean) => {
      if (!accept('not')) return item();
      const inner = negated();
      return (given) => !inner(given);
    };
    const chain = (word: string, part: () => (given: Item) => boolean, all: boolean) => (): ((given: Item) => boolean) => {
      const parts = [part()];
      while (accept(word)) parts.push(part());
      return (given) => (all ? parts.every((test) => test(given)) : parts.some((test) => test(given)));
    };
    return chain('or', chain('and', negated, true), false)();
  }

  function value(): ValueTest {
    if (accept('(')) {
      const inner = either(value);
      expect(')');
      return inner;
    }
    const token = next();
    if (token.startsWith('"')) return (values) => values.some((found) => String(found) === (JSON.parse(token) as string));
    const pattern = wildcard(token);
    return (values) => values.some((found) => pattern.test(String(found)));
  }

  function clause(): Test {
    if (accept('(')) {
      const inner = either(clause);
      expect(')');
      return inner;
    }
    const field = next();
    fields.add(field);
    if (accept(':')) {
      const test = value();
      return (row) => test(valuesOf(row, field));
    }
    const operator = tokens[at++] ?? '';
    const limit = Number(next());
    const compare = { '<': (n: number) => n < limit, '>': (n: number) => n > limit, '<=': (n: number) => n <= limit, '>=': (n: number) => n >= limit }[operator]; // prettier-ignore
    if (compare === undefined || Number.isNaN(limit)) throw new Error(`cannot read KQL: "${operator}" after ${field} in: ${text}`);
    return (row) => valuesOf(row, field).some((found) => compare(Number(found)));
  }

  const matches = either(clause);
  if (at < tokens.length) throw new Error(`cannot read KQL: "${tokens[at]}" left over in: ${text}`);
  return { fields: [...fields], matches };
}
