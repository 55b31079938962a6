/**
 * The options of a benchmark, from its command line. A wrong one ends the program at once, with one
 * line that names the option and the accepted values, and exit code 2.
 */
import { parseArgs } from 'node:util';

interface Option<Value> {
  /** The accepted values in words; none: the option has no value. */
  readonly accepts?: string;
  /** The value without the option. */
  readonly initial: Value;
  /** @returns undefined if the text is not accepted */
  readonly read: (text: string) => Value | undefined;
}

type Table = Readonly<Record<string, Option<unknown>>>;
type Values<Options extends Table> = { readonly [Name in keyof Options]: Options[Name]['initial'] };

class WrongOption extends Error {}

export const flag: Option<boolean> = { initial: false, read: () => undefined };

export function positiveInteger(initial: number): Option<number> {
  return number(initial, 'a positive integer', (value) => Number.isSafeInteger(value) && value > 0);
}

export function integerFromZero(initial: number): Option<number> {
  return number(initial, 'a positive integer or 0', (value) => Number.isSafeInteger(value) && value >= 0);
}

export function positiveNumber(initial: number): Option<number> {
  return number(initial, 'a positive number', (value) => value > 0);
}

function number(initial: number, accepts: string, isAccepted: (value: number) => boolean): Option<number> {
  return { accepts, initial, read: (text) => (/^\d+(\.\d+)?$/.test(text) && isAccepted(Number(text)) ? Number(text) : undefined) };
}

export function oneOf<Value extends string, Initial extends Value | undefined>(
  values: readonly Value[],
  initial: Initial,
): Option<Value | Initial> {
  return { accepts: `one of ${values.join(', ')}`, initial, read: (text) => values.find((value) => value === text) };
}

/** Some of these values, separated by commas; all of them without the option. */
export function someOf(values: readonly string[]): Option<readonly string[]> {
  return {
    accepts: `one or more of ${values.join(',')}`,
    initial: values,
    read: (text) => (text.split(',').every((value) => values.includes(value)) ? text.split(',') : undefined),
  };
}

/** A text without a default. */
export function text(accepts: string, isAccepted: (text: string) => boolean = () => true): Option<string | undefined> {
  return { accepts, initial: undefined, read: (given) => (given !== '' && isAccepted(given) ? given : undefined) };
}

/** The values of the command line. Ends the program if an option is wrong. */
export function options<Options extends Table>(table: Options): Values<Options> {
  try {
    return readOptions(table, process.argv.slice(2));
  } catch (thrown) {
    if (thrown instanceof WrongOption) refuse(thrown.message);
    throw thrown;
  }
}

/** Ends the program because of its options. */
export function refuse(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

/** @throws WrongOption */
export function readOptions<Options extends Table>(table: Options, args: readonly string[]): Values<Options> {
  const types = Object.entries(table).map(([name, { accepts }]) => [name, { type: accepts === undefined ? 'boolean' : 'string' }] as const);
  const { tokens } = parseArgs({
    args: [...args],
    options: Object.fromEntries(types),
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const values = Object.fromEntries(Object.entries(table).map(([name, { initial }]) => [name, initial]));
  for (const token of tokens) {
    if (token.kind !== 'option') throw new WrongOption(`unexpected "${args[token.index] ?? ''}"; ${accepted(table)}`);
    const option = Object.hasOwn(table, token.name) ? table[token.name] : undefined;
    if (option === undefined) throw new WrongOption(`unknown option ${token.rawName}; ${accepted(table)}`);
    values[token.name] = valueOf(option, token.rawName, token.value);
  }
  return values as Values<Options>;
}

function valueOf({ accepts, read }: Option<unknown>, name: string, given: string | undefined): unknown {
  if (accepts === undefined) {
    if (given !== undefined) throw new WrongOption(`${name} has no value, not "${given}"`);
    return true;
  }
  if (given === undefined) throw new WrongOption(`${name} needs a value: ${accepts}`);
  const value = read(given);
  if (value === undefined) throw new WrongOption(`${name} "${given}" is not ${accepts}`);
  return value;
}

function accepted(table: Table): string {
  const names = Object.entries(table).map(([name, { accepts }]) => `--${name}${accepts === undefined ? '' : ` (${accepts})`}`);
  return names.length === 0 ? 'it has no options' : `accepted: ${names.join(', ')}`;
}
