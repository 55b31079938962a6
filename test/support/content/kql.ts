/**
 * Parses the subset of KQL that content uses (and, or, not, groups of values, `*`, comparisons),
 * evaluates it with the semantics of keyword fields, and translates it to the Elasticsearch query
 * that Kibana would send.
 */
import type { Row } from './events.ts';
import { valuesOf, wildcard } from './events.ts';

type Node =
  | { readonly all: readonly Node[] }
  | { readonly any: readonly Node[] }
  | { readonly not: Node }
  | { readonly field: string; readonly equals: string }
  | { readonly field: string; readonly like: string }
  | { readonly field: string; readonly operator: '<' | '>' | '<=' | '>='; readonly limit: number };

interface Kql {
  readonly fields: readonly string[];
  readonly matches: (row: Row) => boolean;
  /** The query DSL of Elasticsearch. */
  readonly query: object;
}

/** @throws Error for a text outside this subset */
export function kql(text: string): Kql {
  const fields = new Set<string>();
  const node = parse(text, fields);
  return { fields: [...fields], matches: (row) => holds(node, row), query: queryOf(node) };
}

function parse(text: string, fields: Set<string>): Node {
  const tokens = [...text.matchAll(/\s*("(?:[^"\\]|\\.)*"|<=|>=|[():<>]|[^\s():<>"]+)/gy)].map(([, token]) => token ?? '');
  const fault = (reason: string): Error => new Error(`cannot read KQL: ${reason} in: ${text}`);
  if (tokens.join('') !== text.replaceAll(/\s+(?=(?:[^"]*"[^"]*")*[^"]*$)/g, '')) throw fault('unknown character');
  let at = 0;
  const accept = (word: string): boolean => tokens[at]?.toLowerCase() === word && ++at > 0;
  const next = (): string => {
    const token = tokens[at++] ?? 'the end';
    if (/^(and|or|not|the end|[():<>]|<=|>=)$/i.test(token)) throw fault(`misplaced "${token}"`);
    return token;
  };

  /** `or` binds weaker than `and`, `and` weaker than `not`. */
  const either = (item: () => Node): Node => {
    const negated = (): Node => (accept('not') ? { not: negated() } : grouped());
    const grouped = (): Node => {
      if (!accept('(')) return item();
      const inner = either(item);
      if (!accept(')')) throw fault('expected ")"');
      return inner;
    };
    const chain = (word: string, part: () => Node): readonly Node[] => {
      const parts = [part()];
      while (accept(word)) parts.push(part());
      return parts;
    };
    const any = chain('or', () => {
      const all = chain('and', negated);
      return all.length === 1 && all[0] ? all[0] : { all };
    });
    return any.length === 1 && any[0] ? any[0] : { any };
  };

  const clause = (): Node => {
    const field = next();
    fields.add(field);
    if (accept(':')) {
      const value = (): Node => {
        const token = next();
        return token.startsWith('"') ? { field, equals: JSON.parse(token) as string } : { field, like: token };
      };
      // Without parentheses, `or` joins clauses, not values.
      if (!accept('(')) return value();
      const inner = either(value);
      if (!accept(')')) throw fault('expected ")"');
      return inner;
    }
    const operator = tokens[at++];
    const limit = Number(next());
    if ((operator !== '<' && operator !== '>' && operator !== '<=' && operator !== '>=') || Number.isNaN(limit))
      throw fault(`"${operator ?? ''}" after ${field}`);
    return { field, operator, limit };
  };

  const node = either(clause);
  if (at < tokens.length) throw fault(`"${tokens[at] ?? ''}" left over`);
  return node;
}

function holds(node: Node, row: Row): boolean {
  if ('all' in node) return node.all.every((each) => holds(each, row));
  if ('any' in node) return node.any.some((each) => holds(each, row));
  if ('not' in node) return !holds(node.not, row);
  const values = valuesOf(row, node.field);
  if ('equals' in node) return values.some((value) => String(value) === node.equals);
  if ('like' in node) return values.some((value) => wildcard(node.like).test(String(value)));
  const { operator, limit } = node;
  return values.map(Number).some((n) => ({ '<': n < limit, '>': n > limit, '<=': n <= limit, '>=': n >= limit })[operator]);
}

function queryOf(node: Node): object {
  if ('all' in node) return { bool: { filter: node.all.map(queryOf) } };
  if ('any' in node) return { bool: { should: node.any.map(queryOf), minimum_should_match: 1 } };
  if ('not' in node) return { bool: { must_not: [queryOf(node.not)] } };
  if ('equals' in node) return { match_phrase: { [node.field]: node.equals } };
  if ('like' in node) return node.like === '*' ? { exists: { field: node.field } } : { wildcard: { [node.field]: { value: node.like } } };
  const name = { '<': 'lt', '>': 'gt', '<=': 'lte', '>=': 'gte' }[node.operator];
  return { range: { [node.field]: { [name]: node.limit } } };
}
