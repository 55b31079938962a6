/**
 * Parses and runs the subset of SPL that content uses: a search (terms, IN, AND, OR, NOT), then
 * dedup, eval, bin, mvexpand, stats, search, where, convert, sort and table. Times are seconds, `_time` is
 * the time of the event, `id` its uid and `number` its number, as the sink `splunk-hec` sends them.
 */
import type { Row } from './events.ts';
import { valuesOf, wildcard } from './events.ts';

interface Spl {
  /** Fields that are read before a command computes a column of this name. */
  readonly fields: readonly string[];
  /** `earliest`, `latest`, `_index_earliest`, `_index_latest`, `index` and `sourcetype`, as written. */
  readonly limits: Readonly<Record<string, string>>;
  readonly run: (documents: readonly Row[]) => readonly Row[];
}

type Test = (row: Row) => boolean;
type Value = (row: Row) => unknown;
type Command = (rows: readonly Row[]) => readonly Row[];

const limitNames = ['earliest', 'latest', '_index_earliest', '_index_latest', 'index', 'sourcetype'];

const aggregates: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  count: (values) => values.length,
  dc: (values) => new Set(values).size,
  min: (values) => Math.min(...values.map(Number)),
  max: (values) => Math.max(...values.map(Number)),
  sum: (values) => values.reduce<number>((sum, value) => sum + Number(value), 0),
  // Of the events in the order of their times.
  latest: (values) => values.at(-1),
};

const functions: Readonly<Record<string, (...values: readonly never[]) => unknown>> = {
  mvappend: (...values: readonly unknown[]) => values.flat(),
  coalesce: (...values: readonly unknown[]) => values.find((value) => value !== undefined),
  floor: (value: number) => Math.floor(value),
  if: (condition: boolean, yes: unknown, no: unknown) => (condition ? yes : no),
};

class Parser {
  readonly #text: string;
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = text.match(/"(?:[^"\\]|\\.)*"|'[^']*'|==|!=|<=|>=|[()=<>,+*/]|-?[\w.@*:{}$-]+|-/g) ?? [];
  }

  error(reason: string): Error {
    return new Error(`cannot read SPL: ${reason} in: ${this.#text}`);
  }

  get rest(): boolean {
    return this.#at < this.#tokens.length;
  }

  peek(): string | undefined {
    return this.#tokens[this.#at];
  }

  accept(...words: readonly string[]): boolean {
    if (!words.includes(this.#tokens[this.#at] ?? '')) return false;
    this.#at += 1;
    return true;
  }

  expect(word: string): void {
    if (!this.accept(word)) throw this.error(`expected "${word}", found "${this.peek() ?? 'the end'}"`);
  }

  word(): string {
    const token = this.#tokens[this.#at++];
    if (token === undefined) throw this.error('unexpected end');
    return token.startsWith('"') ? (JSON.parse(token) as string) : token.startsWith("'") ? token.slice(1, -1) : token;
  }

  /** Adjacent terms are joined by AND. */
  search(read: (field: string) => void, limits: Record<string, string>): Test {
    const parts = [this.#every(read, limits)];
    while (this.accept('OR')) parts.push(this.#every(read, limits));
    return (row) => parts.some((part) => part(row));
  }

  #every(read: (field: string) => void, limits: Record<string, string>): Test {
    const parts: Test[] = [];
    while (this.rest && this.peek() !== ')' && this.peek() !== 'OR') {
      if (!this.accept('AND')) parts.push(this.#term(read, limits));
    }
    return (row) => parts.every((part) => part(row));
  }

  #term(read: (field: string) => void, limits: Record<string, string>): Test {
    if (this.accept('NOT')) {
      const inner = this.#term(read, limits);
      return (row) => !inner(row);
    }
    if (this.accept('(')) {
      const inner = this.search(read, limits);
      this.expect(')');
      return inner;
    }
    const field = this.word();
    if (this.accept('IN')) {
      this.expect('(');
      const choices = [this.word()];
      while (this.accept(',')) choices.push(this.word());
      this.expect(')');
      if (limitNames.includes(field)) {
        limits[field] = choices.join(',');
        return () => true;
      }
      read(field);
      return (row) => valuesOf(row, field).some((value) => choices.some((choice) => like(choice, value)));
    }
    const operator = this.word();
    const wanted = this.word();
    if (operator === '=' && limitNames.includes(field)) {
      limits[field] = wanted;
      return () => true;
    }
    read(field);
    if (operator === '=') return (row) => valuesOf(row, field).some((value) => like(wanted, value));
    if (operator === '>=') return (row) => valuesOf(row, field).some((value) => Number(value) >= Number(wanted));
    throw this.error(`unknown operator "${operator}"`);
  }

  /** An expression of eval and where: sums, products, functions and comparisons. */
  expression(read: (field: string) => void): Value {
    const left = this.#sum(read);
    const operator = this.peek();
    if (operator === undefined || !/^([<>]=?|==?|!=)$/.test(operator)) return left;
    this.word();
    const right = this.#sum(read);
    return (row) => {
      const [a, b] = [left(row), right(row)] as [number | undefined, number | undefined];
      if (a === undefined || b === undefined) return false;
      return { '>=': a >= b, '<=': a <= b, '>': a > b, '<': a < b, '=': a === b, '==': a === b, '!=': a !== b }[operator];
    };
  }

  #sum(read: (field: string) => void): Value {
    let value = this.#product(read);
    while (this.peek() === '+' || this.peek() === '-') {
      const sign = this.word() === '+' ? 1 : -1;
      const [left, right] = [value, this.#product(read)];
      value = (row) => (left(row) as number) + sign * (right(row) as number);
    }
    return value;
  }

  #product(read: (field: string) => void): Value {
    let value = this.#value(read);
    while (this.peek() === '*' || this.peek() === '/') {
      const isTimes = this.word() === '*';
      const [left, right] = [value, this.#value(read)];
      value = (row) => (isTimes ? (left(row) as number) * (right(row) as number) : (left(row) as number) / (right(row) as number));
    }
    return value;
  }

  #value(read: (field: string) => void): Value {
    if (this.accept('(')) {
      const inner = this.expression(read);
      this.expect(')');
      return inner;
    }
    const isText = this.peek()?.startsWith('"');
    const isQuoted = this.peek()?.startsWith("'");
    const token = this.word();
    if (isText) return () => token;
    if (!isQuoted && /^\d/.test(token)) return () => Number(token);
    if (isQuoted || !this.accept('(')) {
      read(token);
      return (row) => row[token];
    }
    const values: Value[] = [];
    while (!this.accept(')')) if (!this.accept(',')) values.push(this.expression(read));
    const call = functions[token];
    if (!call) throw this.error(`unknown function "${token}"`);
    return (row) => call(...(values.map((value) => value(row)) as never[]));
  }
}

function like(pattern: string, value: unknown): boolean {
  return wildcard(pattern, 'is').test(String(value));
}

/** @throws Error for a text outside this subset, or with a macro */
export function spl(text: string): Spl {
  if (text.includes('`')) throw new Error(`cannot read SPL: a macro is left in: ${text}`);
  const [first = '', ...commands] = joined(text).split('|').map((command) => command.trim()); // prettier-ignore
  const fields = new Set<string>();
  const computed = new Set(['_time', 'id', 'number', 'sourcetype']);
  const limits: Record<string, string> = {};
  const read = (field: string): void => {
    if (!computed.has(field)) fields.add(field);
  };
  const search = new Parser(first);
  const test = search.search(read, limits);
  if (search.rest) throw search.error(`"${search.peek() ?? ''}" left over`);
  const steps = commands.map((command): Command => {
    const [, name = '', rest = ''] = /^(\w+)\s+([^]*)$/.exec(command) ?? [];
    const parser = new Parser(rest);
    const step = stepOf(name, parser, read, (column) => computed.add(column));
    if (parser.rest) throw parser.error(`"${parser.peek() ?? ''}" left over`);
    return step;
  });
  const run = (documents: readonly Row[]): readonly Row[] => {
    const rows = documents.map((row) => ({
      ...row,
      'tags{}': row['tags'],
      _time: Date.parse(String(row['@timestamp'])) / 1000,
      id: 'id' in row ? row['id'] : row['dpas.uid'],
    }));
    return steps.reduce<readonly Row[]>((current, step) => step(current), rows.filter(test));
  };
  return { fields: [...fields], limits, run };
}

/** `| multisearch [ search a | eval … ] [ search b | eval … ]`, as sigma-cli writes it, is a search for either. */
function joined(text: string): string {
  const [, searches, rest = ''] = /^\|\s*multisearch\s*((?:\[[^\]]*\]\s*)+)([^]*)$/.exec(text.trim()) ?? [];
  if (searches === undefined) return text;
  const each = [...searches.matchAll(/\[\s*search ([^|\]]*)\|[^\]]*\]/g)].map(([, search = '']) => `(${search})`);
  return `${each.join(' OR ')} ${rest}`;
}

function stepOf(name: string, parser: Parser, read: (field: string) => void, computes: (column: string) => void): Command {
  switch (name) {
    case 'dedup': {
      const key = parser.word();
      read(key);
      const keepsEmpty = parser.accept('keepempty');
      if (keepsEmpty) {
        parser.expect('=');
        parser.expect('true');
      }
      return (rows) => {
        const seen = new Set<unknown>();
        return rows.filter((row) => {
          const value = row[key];
          if (value === undefined) return keepsEmpty;
          const isNew = !seen.has(value);
          seen.add(value);
          return isNew;
        });
      };
    }
    case 'eval': {
      const column = parser.word();
      parser.expect('=');
      const value = parser.expression(read);
      computes(column);
      return (rows) => rows.map((row) => ({ ...row, [column]: value(row) }));
    }
    case 'mvexpand': {
      const field = parser.word();
      return (rows) => rows.flatMap((row) => [row[field]].flat().map((value) => ({ ...row, [field]: value })));
    }
    case 'search': {
      const test = parser.search(read, {});
      return (rows) => rows.filter((row) => test(row));
    }
    case 'bin': {
      const field = parser.word();
      parser.expect('span');
      parser.expect('=');
      const seconds = secondsOf(parser.word());
      return (rows) => rows.map((row) => ({ ...row, [field]: Math.floor(Number(row[field]) / seconds) * seconds }));
    }
    case 'where': {
      const test = parser.expression(read);
      return (rows) => rows.filter((row) => test(row) === true);
    }
    case 'stats':
      return stats(parser, read, computes);
    case 'timechart':
      // A row for each series: a chart does not filter. Without a limit, Splunk shows ten series.
      parser.expect('limit');
      parser.expect('=');
      parser.word();
      return stats(parser, read, computes);
    case 'streamstats':
      return streamstats(parser, read, computes);
    case 'iplocation': {
      read(parser.word());
      for (const column of ['City', 'Country', 'Region', 'lat', 'lon']) computes(column);
      return (rows) => rows;
    }
    case 'convert': {
      parser.expect('timeformat');
      parser.expect('=');
      if (parser.word() !== '%F %T') throw parser.error('unknown format of time');
      const times: string[] = [];
      while (parser.rest) {
        parser.expect('ctime');
        parser.expect('(');
        times.push(parser.word());
        parser.expect(')');
      }
      times.forEach(read);
      const textOf = (seconds: unknown): string => new Date(Number(seconds) * 1_000).toISOString().slice(0, 19).replace('T', ' ');
      return (rows) => rows.map((row) => ({ ...row, ...Object.fromEntries(times.map((field) => [field, textOf(row[field])])) }));
    }
    case 'sort': {
      const most = /^\d+$/.test(parser.peek() ?? '') ? Number(parser.word()) : 10_000;
      const key = parser.word();
      const [sign, field] = key.startsWith('-') ? [-1, key.slice(1)] : [1, key];
      read(field);
      return (rows) => rows.toSorted((a, b) => sign * ((a[field] as number) - (b[field] as number))).slice(0, most === 0 ? Infinity : most);
    }
    case 'table': {
      const kept = names(parser, read);
      return (rows) => rows.map((row) => Object.fromEntries(kept.map((field) => [field, row[field]])));
    }
    default:
      throw parser.error(`unknown command "${name}"`);
  }
}

function names(parser: Parser, read: (field: string) => void): readonly string[] {
  const found: string[] = [];
  while (parser.rest) if (!parser.accept(',')) found.push(parser.word());
  for (const name of found) read(name);
  return found;
}

function stats(parser: Parser, read: (field: string) => void, computes: (column: string) => void): Command {
  const columns: { readonly column: string; readonly of: string; readonly field: string | undefined }[] = [];
  while (parser.rest && !parser.accept('BY', 'by')) {
    if (parser.accept(',')) continue;
    const of = parser.word();
    let field: string | undefined;
    if (parser.accept('(')) {
      field = parser.word();
      parser.expect(')');
      read(field);
    }
    columns.push({ of, field, column: parser.accept('AS', 'as') ? parser.word() : field === undefined ? of : `${of}(${field})` });
    if (!(of in aggregates)) throw parser.error(`unknown aggregation "${of}"`);
  }
  const keys = names(parser, read);
  for (const { column } of columns) computes(column);
  return (rows) =>
    [
      ...Map.groupBy(
        rows.filter((row) => keys.every((key) => row[key] !== undefined)),
        (row) => JSON.stringify(keys.map((key) => row[key])),
      ).values(),
    ].map((unordered) => {
      const group = unordered.toSorted((a, b) => Number(a['_time']) - Number(b['_time']));
      const values = columns.map(({ column, of, field }) => {
        const found = group.map((row) => (field === undefined ? true : row[field])).filter((value) => value !== undefined);
        return [column, aggregates[of]?.(found)];
      });
      return Object.fromEntries([...keys.map((key) => [key, group[0]?.[key]]), ...values]) as Row;
    });
}

/**
 * `streamstats time_window=1h sum(field) AS name BY keys`, or `streamstats current=f last(field) AS
 * name`: over the rows so far.
 */
function streamstats(parser: Parser, read: (field: string) => void, computes: (column: string) => void): Command {
  const option = parser.word();
  parser.expect('=');
  const value = parser.word();
  const aggregate = parser.word();
  parser.expect('(');
  const field = parser.word();
  parser.expect(')');
  parser.expect('AS');
  const column = parser.word();
  const keys = parser.accept('BY') ? names(parser, read) : [];
  read(field);
  computes(column);
  if (option === 'current' && value === 'f' && aggregate === 'last' && keys.length === 0)
    return (rows) => rows.map((row, index) => ({ ...row, [column]: rows[index - 1]?.[field] }));
  if (option !== 'time_window' || aggregate !== 'sum') throw parser.error('unknown form of streamstats');
  const seconds = secondsOf(value);
  return (rows) =>
    rows.map((row, index) => {
      const within = rows.slice(0, index + 1).filter((each) => keys.every((key) => each[key] === row[key]) && Number(row['_time']) - Number(each['_time']) <= seconds); // prettier-ignore
      return { ...row, [column]: within.reduce((sum, each) => sum + Number(each[field]), 0) };
    });
}

/** 15m, 1h */
function secondsOf(span: string): number {
  const [, count = '', unit = ''] = /^(\d+)([smh])$/.exec(span) ?? [];
  const factor = { s: 1, m: 60, h: 3600 }[unit];
  if (factor === undefined) throw new Error(`cannot read SPL: "${span}" is no span of time`);
  return Number(count) * factor;
}
