/**
 * Parses and runs the subset of SPL that content uses: a search (terms, IN, AND, OR, NOT), then the commands of `stepOf`. Times are
 * seconds, `_time` is the time of the event, `_indextime` that of its arrival (`event.ingested`), `id` its uid and `number` its number,
 * as the sink `splunk-hec` sends them.
 */
import type { Row } from './events.ts';
import { valuesOf, wildcard } from './events.ts';

interface Spl {
  /** Fields that are read before a command computes a column of this name. */
  readonly fields: readonly string[];
  /** `earliest`, `latest`, `_index_earliest`, `_index_latest`, `index` and `sourcetype`, as written. */
  readonly limits: Readonly<Record<string, string>>;
  readonly run: (documents: readonly Row[], at?: Run) => readonly Row[];
}

/** The time of a run, s, and the rows of its lookups by their names. */
interface Run {
  readonly now: number;
  readonly lookups: Readonly<Record<string, readonly Row[]>>;
}

type Test = (row: Row) => boolean;
type Value = (row: Row, run: Run) => unknown;
type Command = (rows: readonly Row[], run: Run) => readonly Row[];

const limitNames = ['earliest', 'latest', '_index_earliest', '_index_latest', 'index', 'sourcetype'];

const aggregates: Readonly<Record<string, (values: readonly unknown[]) => unknown>> = {
  count: (values) => values.length,
  dc: (values) => new Set(values).size,
  min: (values) => (values.length === 0 ? undefined : Math.min(...values.map(Number))),
  max: (values) => (values.length === 0 ? undefined : Math.max(...values.map(Number))),
  values: (values) => fieldOf([...new Set(values.map(String))].sort()),
  sum: (values) => values.reduce<number>((sum, value) => sum + Number(value), 0),
  // Of the events in the order of their times.
  latest: (values) => values.at(-1),
};

const textOf = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));
const listOf = (value: unknown): readonly unknown[] => (value === undefined ? [] : [value].flat());
/** A list of one value is that value, and an empty one is null. */
const fieldOf = (values: readonly unknown[]): unknown => (values.length < 2 ? values[0] : values);
/** A function of numbers has no value if one of them is missing. */
const ofNumbers =
  (call: (...values: readonly number[]) => number) =>
  (...values: readonly unknown[]): unknown =>
    values.includes(undefined) ? undefined : call(...values.map(Number));

const functions: Readonly<Record<string, (...values: readonly unknown[]) => unknown>> = {
  mvappend: (...values) => fieldOf(values.flatMap(listOf)),
  mvdedup: (value) => fieldOf([...new Set(listOf(value))]),
  mvcount: (value) => (value === undefined ? undefined : listOf(value).length),
  // An index behind the last value makes the result null.
  mvindex: (value, from, to = from) =>
    Number(to) < listOf(value).length ? fieldOf(listOf(value).slice(Number(from), Number(to) + 1)) : undefined,
  split: (value, separator) => (value === undefined ? undefined : fieldOf(textOf(value).split(textOf(separator)))),
  coalesce: (...values) => values.find((value) => value !== undefined),
  if: (condition, yes, no) => (condition === true ? yes : no),
  case: (...values) => values.find((_, i) => i % 2 === 1 && values[i - 1] === true),
  in: (value, ...choices) => choices.includes(value),
  isnull: (value) => value === undefined,
  isnotnull: (value) => value !== undefined,
  null: () => undefined,
  true: () => true,
  pi: () => Math.PI,
  tonumber: ofNumbers((value) => value),
  floor: ofNumbers(Math.floor),
  round: ofNumbers(Math.round),
  min: ofNumbers(Math.min),
  max: ofNumbers(Math.max),
  sqrt: ofNumbers(Math.sqrt),
  pow: ofNumbers(Math.pow),
  sin: ofNumbers(Math.sin),
  cos: ofNumbers(Math.cos),
  asin: ofNumbers(Math.asin),
};

class Parser {
  readonly #text: string;
  readonly #tokens: readonly string[];
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#tokens = text.match(/"(?:[^"\\]|\\.)*"|'[^']*'|==|!=|<=|>=|[()=<>,+*/%]|-?[\w.@*:{}$-]+|-/g) ?? [];
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

  /** An expression of eval and where: OR, AND, comparisons, sums and products. A comparison with null is false. */
  expression(read: (field: string) => void): Value {
    const parts = [this.#all(read)];
    while (this.accept('OR')) parts.push(this.#all(read));
    return parts.length === 1 && parts[0] ? parts[0] : (row, run) => parts.some((part) => part(row, run) === true);
  }

  #all(read: (field: string) => void): Value {
    const parts = [this.#comparison(read)];
    while (this.accept('AND')) parts.push(this.#comparison(read));
    return parts.length === 1 && parts[0] ? parts[0] : (row, run) => parts.every((part) => part(row, run) === true);
  }

  #comparison(read: (field: string) => void): Value {
    const left = this.#sum(read);
    const operator = this.peek();
    if (operator === undefined || !/^([<>]=?|==?|!=)$/.test(operator)) return left;
    this.word();
    const right = this.#sum(read);
    return (row, run) => {
      const [a, b] = [left(row, run), right(row, run)] as [number | undefined, number | undefined];
      if (a === undefined || b === undefined) return false;
      return { '>=': a >= b, '<=': a <= b, '>': a > b, '<': a < b, '=': a === b, '==': a === b, '!=': a !== b }[operator];
    };
  }

  #sum(read: (field: string) => void): Value {
    return this.#joined(['+', '-', '.'], () => this.#joined(['*', '/', '%'], () => this.#value(read)));
  }

  /** Operands from left to right. Null makes the result null. */
  #joined(operators: readonly string[], operand: () => Value): Value {
    let value = operand();
    for (let next = this.peek() ?? ''; operators.includes(next); next = this.peek() ?? '') {
      const operator = this.word();
      const [left, right] = [value, operand()];
      value = (row, run) => {
        const [a, b] = [left(row, run), right(row, run)];
        if (a === undefined || b === undefined) return undefined;
        if (operator === '.') return `${textOf(a)}${textOf(b)}`;
        const [x, y] = [Number(a), Number(b)];
        return { '+': x + y, '-': x - y, '*': x * y, '/': x / y, '%': x % y }[operator];
      };
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
    if (!isQuoted && /^-?\d/.test(token)) return () => Number(token);
    if (isQuoted || !this.accept('(')) {
      read(token);
      return (row) => row[token];
    }
    const values: Value[] = [];
    while (!this.accept(')')) if (!this.accept(',')) values.push(this.expression(read));
    if (token === 'now') return (_, { now }) => now;
    const call = functions[token];
    if (!call) throw this.error(`unknown function "${token}"`);
    return (row, run) => call(...values.map((value) => value(row, run)));
  }
}

function like(pattern: string, value: unknown): boolean {
  return wildcard(pattern, 'is').test(String(value));
}

/** @throws Error for a text outside this subset, or with a macro */
export function spl(text: string): Spl {
  if (text.includes('`')) throw new Error(`cannot read SPL: a macro is left in: ${text}`);
  // A text may have the separator of commands.
  const [first = '', ...commands] = (joined(text).match(/(?:"(?:[^"\\]|\\.)*"|[^|"])+/g) ?? []).map((command) => command.trim());
  const fields = new Set<string>();
  const computed = new Set(['_time', '_indextime', '_raw', 'id', 'number', 'sourcetype']);
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
  const run = (documents: readonly Row[], at: Run = { now: NaN, lookups: {} }): readonly Row[] => {
    const rows = documents.map((row) => ({
      ...row,
      'tags{}': row['tags'],
      _time: Date.parse(String(row['@timestamp'])) / 1000,
      _indextime: Date.parse(String(row['event.ingested'])) / 1000,
      id: 'id' in row ? row['id'] : row['dpas.uid'],
    }));
    return steps.reduce<readonly Row[]>((current, step) => step(current, at), rows.filter(test));
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
      const assignments: (readonly [column: string, value: Value])[] = [];
      do {
        const column = parser.word();
        parser.expect('=');
        assignments.push([column, parser.expression(read)]);
        computes(column);
      } while (parser.accept(','));
      return (rows, run) =>
        rows.map((row) => {
          const changed: Record<string, unknown> = { ...row };
          for (const [column, value] of assignments) changed[column] = value(changed, run);
          return changed;
        });
    }
    case 'fields':
      parser.expect('-');
      parser.expect('_raw');
      return (rows) => rows;
    case 'mvexpand': {
      const field = parser.word();
      return (rows) => rows.flatMap((row) => listOf(row[field]).map((value) => ({ ...row, [field]: value })));
    }
    case 'lookup':
      return lookup(parser, read, computes);
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
      return (rows, run) => rows.filter((row) => test(row, run) === true);
    }
    case 'stats':
      return stats(parser, read, computes);
    case 'eventstats':
      return stats(parser, read, computes, true);
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

/** `local=true name key [AS field] OUTPUT column [AS field] …` */
function lookup(parser: Parser, read: (field: string) => void, computes: (column: string) => void): Command {
  for (const word of ['local', '=', 'true']) parser.expect(word);
  const name = parser.word();
  const pair = (): readonly [column: string, field: string] => {
    const column = parser.word();
    return [column, parser.accept('AS') ? parser.word() : column];
  };
  const [key, input] = pair();
  read(input);
  parser.expect('OUTPUT');
  const outputs: (readonly [column: string, field: string])[] = [];
  while (parser.rest) outputs.push(pair());
  for (const [, field] of outputs) computes(field);
  return (rows, { lookups }) =>
    rows.map((row) => {
      const found = lookups[name]?.find((line) => row[input] !== undefined && line[key] === row[input]);
      return { ...row, ...Object.fromEntries(outputs.map(([column, field]) => [field, found?.[column]])) };
    });
}

/** @param isOfEvents  whether each event keeps its fields and gets the columns of its group */
function stats(parser: Parser, read: (field: string) => void, computes: (column: string) => void, isOfEvents = false): Command {
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
    ].flatMap((unordered): readonly Row[] => {
      const group = unordered.toSorted((a, b) => Number(a['_time']) - Number(b['_time']));
      const values = columns.map(({ column, of, field }) => {
        const found = group.flatMap((row) => (field === undefined ? [true] : listOf(row[field])));
        return [column, aggregates[of]?.(found)];
      });
      if (isOfEvents) return group.map((row) => ({ ...row, ...Object.fromEntries(values) }) as Row);
      return [Object.fromEntries([...keys.map((key) => [key, group[0]?.[key]]), ...values]) as Row];
    });
}

/**
 * `streamstats time_window=1h sum(field) AS name … BY keys`, `streamstats max(field) AS name BY keys`, or `streamstats current=f last(field)
 * AS name`: over the rows so far.
 */
function streamstats(parser: Parser, read: (field: string) => void, computes: (column: string) => void): Command {
  const options = new Map<string, string>();
  let aggregate = parser.word();
  while (parser.accept('=')) {
    options.set(aggregate, parser.word());
    aggregate = parser.word();
  }
  const columns: { readonly aggregate: string; readonly field: string; readonly column: string }[] = [];
  do {
    if (columns.length > 0) aggregate = parser.word();
    parser.expect('(');
    const field = parser.word();
    parser.expect(')');
    parser.expect('AS');
    columns.push({ aggregate, field, column: parser.word() });
    read(field);
  } while (parser.rest && parser.peek() !== 'BY');
  const keys = parser.accept('BY') ? names(parser, read) : [];
  for (const { column } of columns) computes(column);
  const [first] = columns;
  const form = `${[...options.keys()].join()} ${columns.map((each) => each.aggregate).join(' ')}`;
  if (first && form === 'current last' && options.get('current') === 'f' && keys.length === 0)
    return (rows) => rows.map((row, index) => ({ ...row, [first.column]: rows[index - 1]?.[first.field] }));
  if (!/^(time_window (sum|min|values)( values)*| max)$/.test(form)) throw parser.error('unknown form of streamstats');
  const seconds = options.has('time_window') ? secondsOf(options.get('time_window') ?? '') : Infinity;
  return (rows) => {
    const groups = new Map<string, Row[]>();
    return rows.map((row) => {
      const key = JSON.stringify(keys.map((each) => row[each]));
      const before = groups.get(key) ?? [];
      groups.set(key, before);
      before.push(row);
      const within = before.filter((each) => Number(row['_time']) - Number(each['_time']) <= seconds);
      const values = columns.map((each) => [each.column, aggregates[each.aggregate]?.(within.flatMap((one) => listOf(one[each.field])))]);
      return { ...row, ...Object.fromEntries(values) } as Row;
    });
  };
}

/** 15m, 1h */
function secondsOf(span: string): number {
  const [, count = '', unit = ''] = /^(\d+)([smhd])$/.exec(span) ?? [];
  const factor = { s: 1, m: 60, h: 3600, d: 86_400 }[unit];
  if (factor === undefined) throw new Error(`cannot read SPL: "${span}" is no span of time`);
  return Number(count) * factor;
}
