/** Texts that follow from the table of a command: its help and its row in the README. Pure. */
import type { Command, Form } from './form.ts';
import type { Option } from './option.ts';

interface Texts {
  readonly name: string;
  readonly description: string;
  readonly notes?: string;
  readonly examples: readonly string[];
}

const column = 22;

export function usageOf({ name, description, notes, examples }: Texts, forms: readonly Form[]): string {
  const subcommands = forms.flatMap(({ subcommand, summary }) => (subcommand === undefined ? [] : [item(subcommand, summary)]));
  const blocks = [
    forms.map((form) => synopsis(name, form)).join('\n'),
    description,
    subcommands.join('\n'),
    [...positionalItems(forms), ...optionItems(forms)].join('\n'),
    notes ?? '',
    ['Examples:', ...examples.map((example) => `  ${example}`)].join('\n'),
  ];
  return `${blocks.filter((block) => block !== '').join('\n\n')}\n`;
}

export function readmeRow({ name, summary, forms }: Pick<Command, 'name' | 'summary' | 'forms'>): string {
  const calls = forms.map(({ subcommand }) => `\`${subcommand === undefined ? name : `${name} ${subcommand}`}\``);
  return `| ${calls.length === 0 ? `\`${name}\`` : calls.join(', ')} | ${summary} |`;
}

function synopsis(name: string, { subcommand, positionals, options }: Form): string {
  const all = Object.entries(options);
  const required = all.filter(([, { isRequired }]) => isRequired).map(([option, { value }]) => `--${option} ${value ?? ''}`);
  const { name: placeholder, min = 0 } = positionals ?? { name: '', min: 1 };
  const words = [
    ...['waybill', name, subcommand ?? '', min > 0 ? placeholder : `[${placeholder}]`],
    ...[...required, all.length > required.length ? '[options]' : ''],
  ];
  return words.filter((word) => word !== '').join(' ');
}

function positionalItems(forms: readonly Form[]): string[] {
  const all = new Map(forms.flatMap(({ positionals }) => (positionals ? [[positionals.name, positionals.help] as const] : [])));
  return [...all].map(([name, help]) => item(name, help));
}

/** Each option once; an option that some forms lack names the forms that have it. */
function optionItems(forms: readonly Form[]): string[] {
  const all = new Map<string, Option<unknown>>(forms.flatMap(({ options }) => Object.entries(options)));
  return [...all].map(([name, { value, help }]) => {
    const { has = [], lacks = [] } = Object.groupBy(forms, ({ options }) => (Object.hasOwn(options, name) ? 'has' : 'lacks'));
    const scope = lacks.length === 0 ? '' : lacks.length < has.length ? ` (not: ${namesOf(lacks)})` : ` (only: ${namesOf(has)})`;
    return item(`--${name}${value === undefined ? '' : ` ${value}`}`, `${help}${scope}`);
  });
}

function namesOf(forms: readonly Form[]): string {
  return forms.map(({ subcommand }) => subcommand ?? 'without subcommand').join(', ');
}

function item(name: string, text: string): string {
  return `  ${name.padEnd(column - 4)}  ${text}`;
}
