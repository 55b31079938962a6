/** `waybill help`: the list of commands, or the help of one. */
import { WaybillError } from '../errors/errors.ts';
import { commands, known, type CommandName } from './catalog.ts';
import { defineCommand } from './command.ts';
import type { Command } from './form.ts';
import { fitted } from './help-text.ts';
import { nearestOrAll } from '../settings/nearest.ts';

type Load = (name: CommandName) => Promise<Command>;

export function helpCommand(load: Load): Command {
  return defineCommand({
    name: 'help',
    summary: 'prints the help of a command, with examples',
    description: 'Prints the list of commands, or the help of one. Equivalent to waybill COMMAND --help.',
    options: {},
    positionals: { name: 'COMMAND', help: 'command, and optionally its subcommand', max: 2 },
    examples: ['waybill help', 'waybill help setup elasticsearch'],
    run: async (_values, io, [name, subcommand]) => {
      io.stdout.write(fitted(name === undefined ? await overview(load) : helpOf(await load(known(name)), subcommand)));
      return 0;
    },
  });
}

function helpOf({ name, usage, forms }: Command, subcommand: string | undefined): string {
  const subcommands = forms.flatMap((form) => form.subcommand ?? []);
  if (subcommand === undefined || subcommands.includes(subcommand)) return usage;
  const hint = subcommands.length === 0 ? `"${name}" has no subcommands` : nearestOrAll(subcommand, subcommands);
  throw new WaybillError('usage', `cannot find the command "${name} ${subcommand}": ${hint}; see waybill help ${name}`);
}

async function overview(load: Load): Promise<string> {
  const rows = await Promise.all(commands.map(async (name) => `  ${name.padEnd(14)}  ${(await load(name)).summary}\n`));
  return `waybill COMMAND [options]

Ships the audit trail of a data protection service to the places where people watch and keep it, and proves that nothing is missing.

${rows.join('')}
waybill help COMMAND shows the options and examples of a command; waybill --version prints the release.
Most commands accept --config FILE; default: WAYBILL_CONFIG, ./waybill.yaml, /etc/waybill/waybill.yaml.

Exit codes: 0 success, 1 failure, 2 wrong usage or configuration, 3 incomplete, 75 another running process owns the state, 130 and 143 ended by SIGINT or SIGTERM.
`;
}
