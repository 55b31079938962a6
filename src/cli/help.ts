/** `waybill help`: the list of commands, or what one of them takes. */
import { parseArgs } from 'node:util';
import { WaybillError } from '../errors.ts';
import { fitted } from './help-text.ts';
import type { Command, Io } from './io.ts';
import { commands, files, known } from './catalog.ts';
import type { CommandName } from './catalog.ts';

export const summary = 'prints what a command takes, with examples';

export const usage = `waybill help [COMMAND [SUBCOMMAND]]

Prints the list of commands, or what one of them takes. The same as waybill COMMAND --help.

Examples:
  waybill help
  waybill help setup elasticsearch
`;

export async function run(args: string[], io: Pick<Io, 'stdout'>): Promise<number> {
  const { positionals } = parseArgs({ args, allowPositionals: true, options: {} });
  const [name, ...others] = positionals;
  const text = name === undefined ? await overview() : (await helpOf(known(name))).usage;
  // "setup elasticsearch" stands in lists of commands; the usage of "setup" covers it.
  const synopsis = text.split('\n').filter((line) => line.trimStart().startsWith(`waybill ${name} `));
  const words = new Set(synopsis.flatMap((line) => line.split(/[\s|[\]]+/)));
  const unknown = others.find((other) => !words.has(other));
  if (unknown !== undefined)
    throw new WaybillError('usage', `cannot find the command "${positionals.join(' ')}"; waybill help ${name} shows what "${name}" takes`);
  io.stdout.write(fitted(text));
  return 0;
}

async function helpOf(name: CommandName): Promise<Pick<Command, 'summary' | 'usage'>> {
  return name === 'help' ? { summary, usage } : files[name]();
}

async function overview(): Promise<string> {
  const rows = await Promise.all(commands.map(async (name) => `  ${name.padEnd(14)}  ${(await helpOf(name)).summary}\n`));
  return `waybill COMMAND [options]

Ships the audit trail of a data protection service to the places where people watch and keep it, and proves that nothing is missing.

${rows.join('')}
waybill help COMMAND says more, with examples; waybill --version prints the release.
Most commands take --config FILE; without it: WAYBILL_CONFIG, ./waybill.yaml, /etc/waybill/waybill.yaml.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 incomplete, 75 the state is owned by another running process.
`;
}
