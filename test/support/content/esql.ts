/**
 * Parses and runs the subset of ES|QL that content uses: FROM, WHERE, EVAL, MV_EXPAND, LOOKUP JOIN,
 * DISSECT, STATS … BY, SORT, LIMIT, KEEP. Times are milliseconds. A comparison with an absent value is false.
 */
import type { Row } from './events.ts';

type Value = (row: Row, rows: readonly Row[]) => unknown;
interface Expression {
  readonly name: string;
  readonly value: Value;
}

const units: Readonly<Record<string, number>> = { second: 1e3, minute: 60e3, hour: 3600e3, day: 86_400e3 };

const listOf = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : isAbsent(value) ? [] : [value]);
const isAbsent = (value: unknown): boolean => value === undefined || value === null || (Array.isArray(value) && value.length === 0);
/** None, one value, or several: as a column has them. */
const columnOf = (values: readonly unknown[]): unknown => (values.length > 1 ? values : values[0]);

/** Functions of one row. An absent argument gives an absent result, except where noted. */
const scalars: Readonly<Record<string, (...values: readonly never[]) => unknown>> = {
  mv_append: (one: unknown, other: unknown) => [listOf(one), listOf(other)].flat(),
  mv_count: (value: unknown) => listOf(value).length,
  mv_dedupe: (value: unknown) => columnOf([...new Set(listOf(value))]),
  mv_first: (value: unknown) => listOf(value)[0],
  mv_slice: (value: unknown, first: number, last: number) => columnOf(listOf(value).slice(first, last + 1)),
  date_trunc: (step: number, time: number) => Math.floor(time / step) * step,
  date_diff: (unit: string, from: number, to: number) => Math.trunc((to - from) / (units[unit.replace(/s$/, '')] ?? NaN)),
  date_extract: (part: string, time: number) => (part === 'hour_of_day' ? new Date(time).getUTCHours() : NaN),
  concat: (...parts: readonly string[]) => parts.join(''),
  replace: (text: string, pattern: string, by: string) => text.replaceAll(new RegExp(pattern, 'g'), by),
  // Only times are converted.
  to_string: (value: number | string) => (typeof value === 'number' ? new Date(value).toISOString() : value),
  to_datetime: (text: string) => Date.parse(text),
  to_geopoint: (text: string) => text,
  st_distance: (one: string, other: string) => metres(one, other),
};

/** Between two points `POINT (longitude latitude)`, by the spherical law of cosines. */
function metres(...points: readonly [string, string]): number {
  const [[x1 = NaN, y1 = NaN] = [], [x2 = NaN, y2 = NaN] = []] = points.map((point) =>
    (/^POINT \((\S+) (\S+)\)$/.exec(point)?.slice(1) ?? []).map((degrees) => (Number(degrees) * Math.PI) / 180),
  );
  const cosine = Math.sin(y1) * Math.sin(y2) + Math.cos(y1) * Math.cos(y2) * Math.cos(x1 - x2);
  return 6_371_009 * Math.acos(Math.min(1, cosine));
}

/** Functions of the values in the rows of a group. */
const aggregates: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  count: (values) => values.length,
  count_distinct: (values) => new Set(values).size,
  values: (values) => columnOf([...new Set(values)]),
  min: (values) => (values.length === 0 ? undefined : values.map(Number).reduce((a, b) => Math.min(a, b))),
  max: (values) => (values.length === 0 ? undefined : values.map(Number).reduce((a, b) => Math.max(a, b))),
};

/** The rows of an index with `index.mode: lookup`, by its name. */
type Lookups = Readonly<Record<string, readonly Row[]>>;

interface Esql {
  readonly index: string;
  /** Fields that are read before a command computes a column of this name. */
  readonly fields: readonly string[];
  /** True when a command groups rows. */
  readonly aggregates: boolean;
  run(documents: readonly Row[], now: number, lookups?: Lookups): readonly Row[];
}

class Parser {
  readonly #text: string;
  readonly #tokens: readonly string[];
  readonly #fields: Set<string>;
  readonly #now: () => number;
  #at = 0;

  constructor(text: string, fields: Set<string>, now: () => number) {
    this.#text = text;
    this.#tokens = text.match(/"(?:[^"\\]|\\.)*"|[A-Za-z_@][\w.@]*|\d+(?:\.\d+)?|==|!=|<=|>=|[-+*/(),=<>[\]]/g) ?? [];
    this.#fields = fields;
    this.#now = now;
    if (this.#tokens.join('') !== text.replaceAll(/\s+(?=(?:[^"]*"[^"]*")*[^"]*$)/g, '')) throw this.#error('unknown character');
  }

  #error(reason: string): Error {
    return new Error(`cannot read ES|QL: ${reason} in: ${this.#text}`);
  }

  accept(word: string): boolean {
    if (this.#tokens[this.#at]?.toLowerCase() !== word) return false;
    this.#at += 1;
    return true;
  }

  expect(word: string): void {
    if (!this.accept(word)) throw this.#error(`expected "${word}", found "${this.#tokens[this.#at] ?? 'the end'}"`);
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw this.#error(`"${this.#tokens[this.#at] ?? ''}" left over`);
  }

  word(): string {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw this.#error('unexpected end');
    return token;
  }

  /** The name of an index: words and hyphens. */
  index(): string {
    let name = this.word();
    while (this.accept('-')) name += `-${this.word()}`;
    return name;
  }

  /** A column, or all columns whose names begin so: `Esql.*`. */
  pattern(): string {
    const name = this.word();
    if (this.accept('*')) return `${name}*`;
    this.#fields.add(name);
    return name;
  }

  list<Item>(item: () => Item): readonly Item[] {
    const items = [item()];
    while (this.accept(',')) items.push(item());
    return items;
  }

  condition(): (row: Row) => boolean {
    const { value } = this.expression();
    return (row) => value(row, []) === true;
  }

  /** A condition or a value; a name alone is a column of that name. */
  expression(): Expression {
    return this.#chain('or', () => this.#chain('and', () => this.#comparison(), (all) => all.every(Boolean)), (any) => any.some(Boolean)); // prettier-ignore
  }

  #chain(word: string, part: () => Expression, join: (found: readonly boolean[]) => boolean): Expression {
    const first = part();
    const parts = [first.value];
    while (this.accept(word)) parts.push(part().value);
    return parts.length === 1 ? first : { name: word, value: (row, rows) => join(parts.map((one) => one(row, rows) === true)) };
  }

  #comparison(): Expression {
    const left = this.#sum();
    if (this.accept('in')) {
      this.expect('(');
      const choices = this.list(() => this.#sum().value);
      this.expect(')');
      return { name: 'in', value: (row, rows) => choices.some((choice) => left.value(row, rows) === choice(row, rows)) };
    }
    if (this.accept('is')) {
      const isNegated = this.accept('not');
      this.expect('null');
      return { name: 'is', value: (row, rows) => isAbsent(left.value(row, rows)) !== isNegated };
    }
    const operator = this.#tokens[this.#at] ?? '';
    const compare = comparisons[operator];
    if (!compare) return left;
    this.#at += 1;
    const right = this.#sum().value;
    return {
      name: operator,
      value: (row, rows) => {
        const [a, b] = [left.value(row, rows), right(row, rows)] as [number | undefined, number | undefined];
        // A comparison with several values is absent, too.
        return a !== undefined && b !== undefined && !Array.isArray(a) && !Array.isArray(b) && compare(a, b);
      },
    };
  }

  #sum(): Expression {
    return this.#arithmetic(['+', '-'], () => this.#arithmetic(['*', '/'], () => this.#value()));
  }

  #arithmetic(operators: readonly string[], part: () => Expression): Expression {
    const first = part();
    let value = first.value;
    while (operators.includes(this.#tokens[this.#at] ?? '')) {
      const operate = operations[this.word()] ?? (() => NaN);
      const [left, right] = [value, part().value];
      value = (row, rows) => {
        const [a, b] = [left(row, rows), right(row, rows)] as [number | undefined, number | undefined];
        return a === undefined || b === undefined ? undefined : operate(a, b);
      };
    }
    return { name: first.name, value };
  }

  #value(): Expression {
    if (this.accept('(')) {
      const inner = this.expression();
      this.expect(')');
      return inner;
    }
    if (this.accept('[')) {
      const items = this.list(() => this.#sum().value);
      this.expect(']');
      return { name: '[', value: (row, rows) => items.map((item) => item(row, rows)) };
    }
    const token = this.word();
    if (token.startsWith('"')) {
      const text = JSON.parse(token) as string;
      return { name: token, value: () => text };
    }
    if (/^\d/.test(token)) {
      const unit = units[(this.#tokens[this.#at] ?? '').toLowerCase().replace(/s$/, '')];
      if (unit !== undefined) this.#at += 1;
      return { name: token, value: () => Number(token) * (unit ?? 1) };
    }
    if (!/^[A-Za-z_@]/.test(token)) throw this.#error(`misplaced "${token}"`);
    if (this.accept('(')) return this.#call(token.toLowerCase());
    if (/^null$/i.test(token)) return { name: token, value: () => undefined };
    if (/^(true|false)$/i.test(token)) return { name: token, value: () => token.toLowerCase() === 'true' };
    this.#fields.add(token);
    return { name: token, value: (row) => row[token] };
  }

  #call(name: string): Expression {
    if (name === 'now') {
      this.expect(')');
      return { name, value: () => this.#now() };
    }
    const isEvery = name === 'count' && this.accept('*');
    const values = isEvery || this.#tokens[this.#at] === ')' ? [] : this.list(() => this.expression().value);
    this.expect(')');
    const aggregate = aggregates[name];
    if (aggregate) {
      const of = values[0] ?? (() => true);
      return { name, value: (_, rows) => aggregate(rows.flatMap((row) => listOf(of(row, rows)))) };
    }
    if (name === 'coalesce')
      return { name, value: (row, rows) => values.map((value) => value(row, rows)).find((found) => !isAbsent(found)) };
    if (name === 'case')
      return {
        name,
        value: (row, rows) => {
          for (let i = 0; i + 1 < values.length; i += 2) if (values[i]?.(row, rows) === true) return values[i + 1]?.(row, rows);
          return values.length % 2 === 1 ? values.at(-1)?.(row, rows) : undefined;
        },
      };
    const scalar = scalars[name];
    if (!scalar) throw this.#error(`unknown function "${name}"`);
    return {
      name,
      value: (row, rows) => {
        const given = values.map((value) => value(row, rows));
        return given.some(isAbsent) ? undefined : scalar(...(given as never[]));
      },
    };
  }

  /** `name = expression`, or an expression under its own name. */
  column(): Expression {
    const from = this.#at;
    const name = this.word();
    if (this.accept('=')) return { name, value: this.expression().value };
    this.#at = from;
    return this.expression();
  }
}

const comparisons: Readonly<Record<string, (a: number, b: number) => boolean>> = {
  '==': (a, b) => a === b,
  '!=': (a, b) => a !== b,
  '>=': (a, b) => a >= b,
  '<=': (a, b) => a <= b,
  '>': (a, b) => a > b,
  '<': (a, b) => a < b,
};
const operations: Readonly<Record<string, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': (a, b) => a * b,
  '/': (a, b) => a / b,
};

type Command = (rows: readonly Row[], lookups: Lookups) => readonly Row[];

/** @throws Error for a text outside this subset */
export function esql(text: string): Esql {
  const [source = '', ...commands] = text.split('|').map((command) => command.trim());
  const [, index = ''] = /^from (\S+)(?: metadata [\w, ]+)?$/i.exec(source) ?? [];
  if (index === '') throw new Error(`cannot read ES|QL: no FROM in: ${text}`);
  const fields = new Set<string>();
  const computed = new Set<string>();
  let clock = 0;
  const steps = commands.map((command): Command => {
    const [, name = '', rest = ''] = /^(\w+)\s+([^]*)$/.exec(command) ?? [];
    const read = new Set<string>();
    const before = new Set(computed);
    const parser = new Parser(rest, read, () => clock);
    const step = stepOf(name.toLowerCase(), parser, (column) => computed.add(column));
    parser.end();
    // A column of STATS is none of its own arguments.
    const known = /^stats$/i.test(name) ? before : computed;
    for (const field of read) if (!known.has(field)) fields.add(field);
    return step;
  });
  const run = (documents: readonly Row[], now: number, lookups: Lookups = {}): readonly Row[] => {
    clock = now;
    const rows = documents.map((document): Row => {
      const row: Record<string, unknown> = { ...document };
      for (const field of ['@timestamp', 'event.ingested']) if (row[field] !== undefined) row[field] = Date.parse(row[field] as string);
      return row;
    });
    return steps.reduce<readonly Row[]>((current, step) => step(current, lookups), rows);
  };
  return { index, fields: [...fields], aggregates: commands.some((command) => /^stats\b/i.test(command)), run };
}

function stepOf(name: string, parser: Parser, computes: (column: string) => void): Command {
  switch (name) {
    case 'where': {
      const test = parser.condition();
      return (rows) => rows.filter(test);
    }
    case 'eval': {
      const columns = parser.list(() => parser.column());
      for (const { name: column } of columns) computes(column);
      return (rows) =>
        rows.map((row) => {
          const all: Record<string, unknown> = { ...row };
          for (const { name: column, value } of columns) all[column] = value(all, []);
          return all;
        });
    }
    case 'mv_expand': {
      const field = parser.word();
      return (rows) => rows.flatMap((row) => [row[field]].flat().map((value) => ({ ...row, [field]: value })));
    }
    case 'lookup': {
      parser.expect('join');
      const index = parser.index();
      parser.expect('on');
      const field = parser.word();
      return (rows, lookups) => {
        const entries = new Map((lookups[index] ?? []).map((entry) => [entry[field], entry]));
        return rows.map((row) => ({ ...row, ...entries.get(row[field]) }));
      };
    }
    case 'dissect': {
      const field = parser.column();
      const pattern = JSON.parse(parser.word()) as string;
      const names = [...pattern.matchAll(/%\{([^}]+)\}/g)].map(([, key = '']) => key);
      const [, separator = ''] = /\}([^%]*)%/.exec(pattern) ?? [];
      for (const column of names) computes(column);
      return (rows) =>
        rows.map((row) => {
          const all = ((field.value(row, []) ?? '') as string).split(separator);
          // The last key has the rest.
          const parts = [
            ...all.slice(0, names.length - 1),
            ...(all.length < names.length ? [] : [all.slice(names.length - 1).join(separator)]),
          ];
          return parts.length === names.length ? { ...row, ...Object.fromEntries(names.map((key, i) => [key, parts[i]])) } : row;
        });
    }
    case 'stats': {
      const columns = parser.list(() => parser.column());
      parser.expect('by');
      const keys = parser.list(() => parser.column());
      for (const { name: column } of columns) computes(column);
      return (rows) =>
        [...Map.groupBy(rows, (row) => JSON.stringify(keys.map(({ value }) => value(row, [])))).values()].map((group) => {
          const first = group[0] ?? {};
          const values = columns.map(({ name: column, value }) => [column, value(first, group)]);
          return Object.fromEntries([...keys.map(({ name: key, value }) => [key, value(first, [])]), ...values]) as Row;
        });
    }
    case 'sort': {
      const { name: field } = parser.column();
      const sign = parser.accept('desc') ? -1 : 1;
      parser.accept('asc');
      return (rows) => rows.toSorted((a, b) => sign * ((a[field] as number) - (b[field] as number)));
    }
    case 'limit': {
      const most = Number(parser.word());
      return (rows) => rows.slice(0, most);
    }
    case 'keep': {
      const kept = parser.list(() => parser.pattern());
      return (rows) =>
        rows.map((row) => {
          const fields = kept.flatMap((name) => (name.endsWith('*') ? Object.keys(row).filter((field) => field.startsWith(name.slice(0, -1))) : [name])); // prettier-ignore
          return Object.fromEntries(fields.map((field) => [field, row[field]]));
        });
    }
    default:
      throw new Error(`cannot read ES|QL: unknown command "${name}"`);
  }
}
