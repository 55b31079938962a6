/** Options of a command: each is declared once, with its type, its placeholder and its help. */
import { nearestOrAll } from '../settings/nearest.ts';
import { WaybillError } from '../errors/errors.ts';

/** What the command line has for an option. */
export type Argument = string | boolean | readonly (string | boolean)[] | undefined;

export interface Option<Value> {
  /** Placeholder of the value in the help; undefined: the option is a switch. */
  readonly value?: string;
  readonly help: string;
  readonly isRequired?: boolean;
  /** `read` then receives every value. Else a second value is an error. */
  readonly isRepeatable?: boolean;
  /** Accepted values, for the check and for completion. */
  readonly choices?: readonly string[];
  /** @throws WaybillError `usage`, where `flag` is the name with its hyphens */
  readonly read: (given: Argument, flag: string) => Value;
}

export type Options = Readonly<Record<string, Option<unknown>>>;

export type ValuesOf<Of extends Options> = { readonly [Name in keyof Of]: Of[Name] extends Option<infer Value> ? Value : never };

export function toggle(help: string): Option<boolean> {
  return { help, read: (given) => given === true };
}

export function text(value: string, help: string): Option<string | undefined> {
  return { value, help, read: (given) => (typeof given === 'string' ? given : undefined) };
}

export function texts(value: string, help: string): Option<readonly string[]> {
  return {
    value,
    help,
    isRepeatable: true,
    read: (given) => (typeof given === 'object' ? given.filter((each) => typeof each === 'string') : []),
  };
}

export function choice<const Name extends string>(value: string, choices: readonly Name[], help: string): Option<Name | undefined> {
  const read = (given: Argument, flag: string): Name | undefined => {
    if (typeof given !== 'string') return undefined;
    const found = choices.find((name) => name === given);
    if (found === undefined) throw new WaybillError('usage', `cannot use ${flag} "${given}": ${nearestOrAll(given, choices)}`);
    return found;
  };
  return { value, help, choices, read };
}

/** @param expected  completes "not …" in the error @param parse  returns undefined for a text that does not fit */
export function parsed<Value>(
  value: string,
  help: string,
  expected: string,
  parse: (given: string) => Value | undefined,
): Option<Value | undefined> {
  const read = (given: Argument, flag: string): Value | undefined => {
    if (typeof given !== 'string') return undefined;
    const found = parse(given);
    if (found === undefined) throw new WaybillError('usage', `cannot use ${flag} "${given}": not ${expected}`);
    return found;
  };
  return { value, help, read };
}

/** A fleet has at most 1,000 shards. */
export function shardNumber(help: string): Option<number | undefined> {
  return parsed('N', help, 'the number of a shard', (given) => (/^\d{1,3}$/.test(given) ? Number(given) : undefined));
}

export function required<Value>(option: Option<Value | undefined>): Option<Value> {
  const read = (given: Argument, flag: string): Value => {
    const found = option.read(given, flag);
    if (found === undefined) throw new WaybillError('usage', `missing ${flag}`);
    return found;
  };
  return { ...option, isRequired: true, read };
}

/** @param fallback  as a user would type it */
export function withDefault<Value>(option: Option<Value | undefined>, fallback: string): Option<Value> {
  const { read } = required(option);
  return { ...option, read: (given, flag) => read(given ?? fallback, flag) };
}

export const jsonOption = { json: toggle('print the result as JSON') };

export const configOption = { config: text('FILE', 'configuration file') };

/** For the commands that report on a period. */
export const timeOptions = {
  from: text('T', 'start: a time, a date, a month, 2026-Q3, -7d or -6h'),
  to: text('T', 'end, in the same forms; a date or month is included'),
};
