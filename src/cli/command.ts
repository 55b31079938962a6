/** One table describes a command: from it follow its usage text, row in the README, shell completion, and errors for unfit arguments. */
import { parseArgs } from 'node:util';
import { WaybillError } from '../errors/errors.ts';
import { joinSpans } from '../settings/period.ts';
import { nearest, nearestOrAll } from '../settings/nearest.ts';
import { wordsOf, type Command, type Form, type Given, type Positionals } from './form.ts';
import type { Io } from './io.ts';
import type { Options, ValuesOf } from './option.ts';
import { usageOf } from './usage.ts';

interface Action<Of extends Options> {
  readonly options: Of;
  readonly positionals?: Positionals;
  /** @returns the exit code */
  readonly run: (values: ValuesOf<Of>, io: Io, positionals: readonly string[]) => number | Promise<number>;
}

interface Texts {
  readonly name: string;
  readonly summary: string;
  /** Paragraphs of the help, separated by empty lines. */
  readonly description: string;
  /** Paragraphs between the options and the examples. */
  readonly notes?: string;
  readonly examples: readonly string[];
}

export function subcommand<const Of extends Options>(action: Action<Of> & { readonly summary: string }): Subcommand {
  return { ...formOf(action), summary: action.summary };
}

type Subcommand = Omit<Form, 'subcommand'>;

/** @param definition.fallback  the subcommand that runs when none is named */
export function defineCommand<const Of extends Options>(
  definition: Texts &
    (
      | (Action<Of> & { readonly subcommands?: Readonly<Record<string, Subcommand>> })
      | { readonly subcommands: Readonly<Record<string, Subcommand>>; readonly fallback?: string }
    ),
): Command {
  const { name, summary } = definition;
  const forms: readonly Form[] = [
    ...('run' in definition ? [{ ...formOf(definition), subcommand: undefined, summary }] : []),
    ...Object.entries(definition.subcommands ?? {}).map(([word, form]) => ({ ...form, subcommand: word })),
  ];
  const fallback = forms.find(({ subcommand: word }) => word === ('fallback' in definition ? definition.fallback : undefined));
  const usage = usageOf(definition, forms);
  const run = async (args: readonly string[], io: Io): Promise<number> => {
    const { form, values, positionals } = parse({ name, forms, fallback }, joinSpans(args));
    return form.run({ values, positionals }, io);
  };
  return { name, summary, usage, forms, run };
}

function formOf<Of extends Options>({ options, positionals, run }: Action<Of>): Omit<Form, 'subcommand' | 'summary'> {
  return {
    options,
    positionals,
    run: async (given, io) => {
      const values = Object.entries(options).map(([name, option]) => [name, option.read(given.values[name], `--${name}`)]);
      return run(Object.fromEntries(values) as ValuesOf<Of>, io, given.positionals);
    },
  };
}

interface Table {
  readonly name: string;
  readonly forms: readonly Form[];
  readonly fallback: Form | undefined;
}

function parse(table: Table, args: string[]): Given & { readonly form: Form } {
  const all: Options = Object.fromEntries(table.forms.flatMap(({ options }) => Object.entries(options)));
  const config = Object.fromEntries(
    Object.entries(all).map(([name, { value, isRepeatable = false }]) => [
      name,
      { type: value === undefined ? ('boolean' as const) : ('string' as const), multiple: isRepeatable },
    ]),
  );
  const { tokens } = parseArgs({ args, options: config, strict: false, tokens: true, allowPositionals: true });
  const words = tokens.flatMap((token) => (token.kind === 'positional' ? [token.value] : []));
  const form = formFor(table, words[0]);
  const given = new Set<string>();
  for (const token of tokens) {
    if (token.kind !== 'option') continue;
    assertOption(table, form, token.rawName);
    const { value, isRepeatable = false } = all[token.name] ?? {};
    // The last value alone would count.
    if (value !== undefined && !isRepeatable && given.has(token.name)) throw usageError(table, form, `--${token.name} is given twice`);
    given.add(token.name);
  }
  const { values, positionals } = strictly(table, form, () => parseArgs({ args, options: config, allowPositionals: true }));
  const rest = form.subcommand !== undefined && positionals[0] === form.subcommand ? positionals.slice(1) : positionals;
  const { min = 0, max = Infinity, name = '' } = form.positionals ?? { max: 0 };
  if (rest.length < min) throw usageError(table, form, `missing ${name}`);
  if (rest.length > max) throw usageError(table, form, `unexpected argument "${rest[max] ?? ''}"`);
  for (const [option, { isRequired }] of Object.entries(form.options))
    if (isRequired && values[option] === undefined) throw usageError(table, form, `missing --${option}`);
  return { form, values, positionals: rest };
}

function formFor({ name, forms, fallback }: Table, word: string | undefined): Form {
  const named = forms.find(({ subcommand: each }) => each !== undefined && each === word);
  if (named) return named;
  const isGroup = forms.some(({ subcommand: each }) => each !== undefined);
  if (fallback && (word === undefined || !isGroup)) return fallback;
  const subcommands = forms.flatMap((form) => form.subcommand ?? []);
  if (word === undefined) throw new WaybillError('usage', `missing subcommand: waybill ${name} ${subcommands.join('|')}`);
  throw new WaybillError('usage', `cannot find "${name} ${word}": ${nearestOrAll(word, subcommands)}; see waybill help ${name}`);
}

function assertOption({ name, forms }: Table, form: Form, flag: string): void {
  const option = flag.replace(/^--/, '');
  if (flag.startsWith('--') && Object.hasOwn(form.options, option)) return;
  const owners = forms.filter(({ options }) => flag.startsWith('--') && Object.hasOwn(options, option));
  const here = `cannot use ${flag} with "${wordsOf(name, form)}"`;
  if (owners.length > 0)
    throw new WaybillError('usage', `${here}: it is an option of ${owners.map((each) => `"${wordsOf(name, each)}"`).join(', ')}`);
  const meant = nearest(option, Object.keys(form.options));
  const hint = meant === undefined ? 'no such option' : `the nearest is --${meant}`;
  throw new WaybillError('usage', `${here}: ${hint}; see waybill help ${name}`);
}

function usageError({ name }: Table, form: Form, reason: string): WaybillError {
  return new WaybillError('usage', `cannot run "${wordsOf(name, form)}": ${reason}; see waybill help ${name}`);
}

/** Converts an error of `parseArgs`: a value that is missing, or given to a switch. */
function strictly<Result>(table: Table, form: Form, work: () => Result): Result {
  try {
    return work();
  } catch (thrown) {
    if (!(thrown instanceof TypeError) || !('code' in thrown) || !String(thrown.code).startsWith('ERR_PARSE_ARGS_')) throw thrown;
    // The further lines describe forms that this command does not accept.
    throw usageError(table, form, thrown.message.split('\n', 1)[0] ?? '');
  }
}
