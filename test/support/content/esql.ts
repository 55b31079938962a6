/**
 * Parses and runs the subset of ES|QL that content uses: FROM, WHERE, EVAL, MV_EXPAND, STATS … BY,
 * SORT, LIMIT, KEEP. Times are milliseconds. A comparison with an absent value is false.
 */
import type { Row } from './events.ts';

type Value = (row: Row, rows: readonly Row[]) => unknown;
interface Expression {
  readonly name: string;
  readonly value: Value;
}

const units: Readonly<Record<string, number>> = { second: 1e3, minute: 60e3, hour: 3600e3, day: 86_400e3 };

/** Functions of one row. */
const scalars: Readonly<Record<string, (...values: readonly never[]) => unknown>> = {
  mv_append: (...values: readonly unknown[]) => values.flat(),
  date_trunc: (step: number, time: number) => Math.floor(time / step) * step,
};

/** Functions of the rows of a group. */
const aggregates: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  count: (values) => values.length,
  count_distinct: (values) => new Set(values).size,
  min: (values) => Math.min(...values.map(Number)),
  max: (values) => Math.max(...values.map(Number)),
};

interface Esql {
  readonly index: string;
  /** Fields that are read before a command computes a column of this name. */
  readonly fields: readonly string[];
  /** True when a command groups rows. */
  readonly aggregates: boolean;
  run(documents: readonly Row[], now: number): readonly Row[];
}

class Parser {
  readonly #text: string;
  readonly #tokens: readonly string[];
  readonly #fields: Set<string>;
  readonly #now: () => number;
  #at = 0;

  constructor(text: string, fields: Set<string>, now: () => number) {
    this.#text = text;
    this.#tokens = text.match(/"(?:[^"\\]|\\.)*"|[A-Za-z_@][\w.@]*|\d+(?:\.\d+)?|==|!=|<=|>=|[-+*(),=<>]/g) ?? [];
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

  list<Item>(item: () => Item): readonly Item[] {
    const items = [item()];
    while (this.accept(',')) items.push(item());
    return items;
  }

  condition(): (row: Row) => boolean {
    const parts = [this.#all()];
    while (this.accept('or')) parts.push(this.#all());
    return (row) => parts.some((part) => part(row));
  }

  #all(): (row: Row) => boolean {
    const parts = [this.#comparison()];
    while (this.accept('and')) parts.push(this.#comparison());
    return (row) => parts.every((part) => part(row));
  }

  #comparison(): (row: Row) => boolean {
    if (this.accept('(')) {
      const inner = this.condition();
      this.expect(')');
      return inner;
    }
    const left = this.expression().value;
    if (this.accept('in')) {
      this.expect('(');
      const choices = this.list(() => this.expression().value);
      this.expect(')');
      return (row) => choices.some((choice) => left(row, []) === choice(row, []));
    }
    if (this.accept('is')) {
      this.expect('not');
      this.expect('null');
      return (row) => left(row, []) !== undefined;
    }
    const operator = this.word();
    const right = this.expression().value;
    return (row) => {
      const [a, b] = [left(row, []), right(row, [])] as [number | undefined, number | undefined];
      if (a === undefined || b === undefined) return false;
      switch (operator) {
        case '==': return a === b; // prettier-ignore
        case '!=': return a !== b; // prettier-ignore
        case '>=': return a >= b; // prettier-ignore
        case '<=': return a <= b; // prettier-ignore
        case '>': return a > b; // prettier-ignore
        case '<': return a < b; // prettier-ignore
        default:
          throw this.#error(`unknown operator "${operator}"`);
      }
    };
  }

  /** Sums and differences of values. `name = …` gives the column a name. */
  expression(): Expression {
    const first = this.#value();
    let value = first.value;
    while (this.#tokens[this.#at] === '+' || this.#tokens[this.#at] === '-') {
      const sign = this.word() === '+' ? 1 : -1;
      const [left, right] = [value, this.#value().value];
      value = (row, rows) => (left(row, rows) as number) + sign * (right(row, rows) as number);
    }
    return { name: first.name, value };
  }

  #value(): Expression {
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
      return { name, value: (_, rows) => aggregate(rows.map((row) => of(row, rows)).filter((found) => found !== undefined)) };
    }
    const scalar = scalars[name];
    if (!scalar) throw this.#error(`unknown function "${name}"`);
    return { name, value: (row, rows) => scalar(...(values.map((value) => value(row, rows)) as never[])) };
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

type Command = (rows: readonly Row[]) => readonly Row[];

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
    const parser = new Parser(rest, read, () => clock);
    const step = stepOf(name.toLowerCase(), parser, (column) => computed.add(column));
    parser.end();
    for (const field of read) if (!computed.has(field)) fields.add(field);
    return step;
  });
  const run = (documents: readonly Row[], now: number): readonly Row[] => {
    clock = now;
    const rows = documents.map((row) => ({ ...row, '@timestamp': Date.parse(String(row['@timestamp'])) }));
    return steps.reduce<readonly Row[]>((current, step) => step(current), rows);
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
        rows.map((row) => columns.reduce<Row>((all, { name: column, value }) => ({ ...all, [column]: value(all, []) }), row));
    }
    case 'mv_expand': {
      const field = parser.word();
      return (rows) => rows.flatMap((row) => [row[field]].flat().map((value) => ({ ...row, [field]: value })));
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
      const kept = parser.list(() => parser.column().name);
      return (rows) => rows.map((row) => Object.fromEntries(kept.map((field) => [field, row[field]])));
    }
    default:
      throw new Error(`cannot read ES|QL: unknown command "${name}"`);
  }
}
