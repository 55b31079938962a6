import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { run, usage } from '../../../src/commands/help.ts';
import { commands, loadCommand } from '../../../src/commands/list.ts';

async function help(...args: string[]): Promise<string> {
  const stdout = new PassThrough();
  expect(await run(args, { stdout })).toBe(0);
  return String(stdout.read());
}

test('the overview names every command with its summary, the order of configuration files and the exit codes', async () => {
  const text = await help();
  const rows = await Promise.all(commands.map(async (name) => `  ${name.padEnd(10)} ${(await loadCommand(name)).summary}\n`));
  expect(text).toContain(`\n\n${rows.join('')}\n`);
  expect(text).toContain('--config FILE; without it: WAYBILL_CONFIG, ./waybill.yaml, /etc/waybill/waybill.yaml.');
  expect(text).toContain(
    '0 done, 1 failed, 2 wrong usage or configuration, 3 incomplete, 75 the state is owned by another running process.',
  );
});

test('the help of help is its own', async () => {
  expect(await help('help')).toBe(usage);
  expect(usage).toMatchInlineSnapshot(`
    "waybill help [COMMAND [SUBCOMMAND]]

    Prints the list of commands, or what one of them takes. The same as waybill COMMAND --help.

    Examples:
      waybill help
      waybill help setup elasticsearch
    "
  `);
});

test('help is given on one command that there is', async () => {
  await expect(help('shcema')).rejects.toMatchObject({
    code: 'usage',
    message: 'cannot find the command "shcema": the nearest is "schema"; waybill help lists all',
  });
  // Nothing that somebody may have meant is near.
  await expect(help('frobnicate')).rejects.toMatchObject({ message: 'cannot find the command "frobnicate"; waybill help lists all' });
  await expect(help('backfil')).rejects.toMatchObject({ message: /the nearest is "backfill"/ });
  await expect(help('run', 'check')).rejects.toMatchObject({
    code: 'usage',
    message: 'cannot find the command "run check"; waybill help run shows what "run" takes',
  });
});

test('a command of two words, as the README lists it, has the help of its first', async () => {
  for (const [name, second] of [
    ['setup', 'elasticsearch'],
    ['setup', 'kafka'],
    ['dead-letters', 'retry'],
    ['sinks', 'adopt'],
    ['backfill', 'pause'],
  ] as const)
    expect(await help(name, second)).toBe(await help(name));
});
