/** `waybill completion`: the completion script of a shell, from the tables of all commands. */
import { WaybillError } from '../errors/errors.ts';
import { nearestOrAll } from '../settings/nearest.ts';
import { commands, type CommandName } from './catalog.ts';
import { defineCommand } from './command.ts';
import { wordsOf, type Command, type Form } from './form.ts';

const shells: Readonly<Record<string, (all: readonly Command[]) => string>> = { bash: bashScript, zsh: zshScript, fish: fishScript };
const names = Object.keys(shells);

export function completionCommand(load: (name: CommandName) => Promise<Command>): Command {
  return defineCommand({
    name: 'completion',
    summary: 'prints the completion script of a shell',
    description:
      'Prints a script that completes commands, subcommands, options and their values. Load it in the startup file of the shell.',
    options: {},
    positionals: { name: 'SHELL', help: names.join(', '), choices: names, min: 1, max: 1 },
    examples: ['source <(waybill completion bash)', 'waybill completion fish > ~/.config/fish/completions/waybill.fish'],
    run: async (_values, io, [shell = '']) => {
      const script = Object.hasOwn(shells, shell) ? shells[shell] : undefined;
      if (!script) throw new WaybillError('usage', `no completion script for the shell "${shell}": ${nearestOrAll(shell, names)}`);
      io.stdout.write(script(await Promise.all(commands.map(load))));
      return 0;
    },
  });
}

const files = /^(FILE|DIR)$/;

/** Completion candidates after the name of a command, and for the value of each of its options. */
interface Candidates {
  /** `gaps`, or `gaps list`. */
  readonly call: string;
  readonly words: readonly string[];
  readonly values: readonly { readonly flag: string; readonly choices: readonly string[]; readonly isFile: boolean }[];
}

function candidatesOf({ name, forms }: Command): Candidates[] {
  const subcommands = forms.flatMap(({ subcommand }) => subcommand ?? []);
  const own = forms.find(({ subcommand }) => subcommand === undefined);
  const bare = { call: name, words: [...subcommands, ...(own ? wordsIn(own) : [])], values: own ? valuesOf(own) : [] };
  const others = forms.filter(({ subcommand }) => subcommand !== undefined);
  return [bare, ...others.map((form) => ({ call: wordsOf(name, form), words: wordsIn(form), values: valuesOf(form) }))];
}

function wordsIn({ options, positionals }: Form): string[] {
  return [...(positionals?.choices ?? []), ...Object.keys(options).map((option) => `--${option}`), '--help'];
}

function valuesOf({ options }: Form): Candidates['values'] {
  return Object.entries(options).flatMap(([option, { value, choices = [] }]) =>
    value === undefined ? [] : [{ flag: `--${option}`, choices, isFile: files.test(value) }],
  );
}

function quoted(words: readonly string[]): string {
  return `'${words.join(' ').replaceAll("'", `'\\''`)}'`;
}

/** The shared body of bash and zsh: it sets `words` to the candidates, or completes the name of a file. */
function cases(all: readonly Command[], completeFile: string): string {
  const candidates = all.flatMap(candidatesOf);
  const values = candidates.flatMap((each) =>
    each.values.map(({ flag, choices, isFile }) => {
      const action = isFile ? `${completeFile}; return` : choices.length > 0 ? `words=${quoted(choices)}` : 'return';
      return `    '${each.call} ${flag}') ${action} ;;`;
    }),
  );
  const others = candidates.map(({ call, words }) => `      '${call}') words=${quoted(words)} ;;`);
  return `  case "$call $previous" in
${values.join('\n')}
    *) case "$call" in
      waybill) words=${quoted(all.map(({ name }) => name))} ;;
${others.join('\n')}
    esac ;;
  esac`;
}

/** Shell lines that set `call` to the command and subcommand before the cursor. */
function callOf(all: readonly Command[], second: string, third: string, count: string): string {
  const pairs = all.flatMap(({ name, forms }) =>
    forms.flatMap((form) => (form.subcommand === undefined ? [] : [`'${wordsOf(name, form)}'`])),
  );
  return `  call=waybill
  if (( ${count} > 1 )); then call="${second}"; fi
  if (( ${count} > 2 )); then case "${second} ${third}" in ${pairs.join('|')}) call="${second} ${third}" ;; esac; fi`;
}

function bashScript(all: readonly Command[]): string {
  return `_waybill() {
  local current="\${COMP_WORDS[COMP_CWORD]}" previous="\${COMP_WORDS[COMP_CWORD-1]}" call words=
${callOf(all, '${COMP_WORDS[1]}', '${COMP_WORDS[2]}', 'COMP_CWORD')}
${cases(all, 'COMPREPLY=($(compgen -f -- "$current"))')}
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _waybill waybill
`;
}

function zshScript(all: readonly Command[]): string {
  return `#compdef waybill
_waybill() {
  local previous="\${words[CURRENT-1]}" second="\${words[2]}" third="\${words[3]}" call
  local words=
${callOf(all, '$second', '$third', 'CURRENT - 1')}
${cases(all, '_files')}
  compadd -- \${=words}
}
compdef _waybill waybill
`;
}

function fishScript(all: readonly Command[]): string {
  const text = (words: string): string => `'${words.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`;
  const lines = all.flatMap(({ name, summary, forms }) => {
    const subcommands = forms.flatMap(({ subcommand }) => subcommand ?? []);
    const isCommand = `__fish_seen_subcommand_from ${name}`;
    return [
      `complete -c waybill -f -n __fish_use_subcommand -a ${name} -d ${text(summary)}`,
      ...forms.flatMap((form) => {
        const { subcommand, options, positionals } = form;
        const isHere =
          subcommand !== undefined
            ? `${isCommand}; and __fish_seen_subcommand_from ${subcommand}`
            : subcommands.length === 0
              ? isCommand
              : `${isCommand}; and not __fish_seen_subcommand_from ${subcommands.join(' ')}`;
        const start = `complete -c waybill -n ${text(isHere)}`;
        return [
          ...(subcommand === undefined
            ? []
            : [
                `complete -c waybill -f -n ${text(`${isCommand}; and not __fish_seen_subcommand_from ${subcommands.join(' ')}`)} -a ${subcommand} -d ${text(form.summary)}`,
              ]),
          ...(positionals?.choices ? [`${start} -f -a ${text(positionals.choices.join(' '))}`] : []),
          ...Object.entries(options).map(([option, { value, choices, help }]) => {
            const argument = value === undefined ? '' : files.test(value) ? ' -r' : ` -x${choices ? ` -a ${text(choices.join(' '))}` : ''}`;
            return `${start} -l ${option}${argument} -d ${text(help)}`;
          }),
        ];
      }),
    ];
  });
  return `${lines.join('\n')}\n`;
}
