import { expect, test } from 'vitest';
import { fitted } from '../../../src/cli/help-text.ts';
import { readmeRow } from '../../../src/cli/usage.ts';
import { expectPart } from '../../support/generated-part.ts';
import { outputOf } from '../../support/command-io.ts';
import { commands } from '../../../src/cli/catalog.ts';
import { loadCommand } from '../../../src/cli/registry.ts';

async function help(...args: string[]): Promise<string> {
  const command = await loadCommand('help');
  const { code, stdout } = await outputOf((given, io) => command.run(given, io), args);
  expect(code).toBe(0);
  return stdout;
}

const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '' && word !== '\\');

test('the overview names every command with its summary, the order of configuration files and the exit codes', async () => {
  const text = await help();
  for (const name of commands) expect(wordsOf(text).join(' ')).toContain(`${name} ${(await loadCommand(name)).summary}`);
  const columns = text.split('\n').flatMap((line) => [...(/^ {2}[a-z-]+ +/.exec(line) ?? [])].map((start) => start.length));
  expect(columns).toEqual(commands.map(() => 16));
  expect(wordsOf(text).join(' ')).toContain('--config FILE; default: WAYBILL_CONFIG, ./waybill.yaml, /etc/waybill/waybill.yaml.');
  expect(wordsOf(text).join(' ')).toContain(
    '0 success, 1 failure, 2 wrong usage or configuration, 3 incomplete, 75 another running process owns the state, 130 and 143 ended by SIGINT or SIGTERM.',
  );
});

test('every help text fits 80 columns, and has each word of its source in the same order', async () => {
  for (const name of [undefined, ...commands]) {
    const text = await help(...(name === undefined ? [] : [name]));
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
    if (name === undefined) continue;
    expect(wordsOf(text)).toEqual(wordsOf((await loadCommand(name)).usage));
    // A continued command can be pasted into a shell.
    for (const [line, next] of text.split('\n').map((each, i, all) => [each, all[i + 1] ?? ''] as const))
      if (line.endsWith(' \\')) expect(next).toMatch(/^ {6}\S/);
  }
});

test('the README has a row for every command', async () => {
  const rows = (await Promise.all(commands.map(loadCommand))).map(readmeRow);
  // `npx vitest run test/unit/cli/help.test.ts --update` writes it.
  await expectPart('README.md', 'commands', ['| command | purpose |', '|---|---|', ...rows, ''].join('\n'));
});

test('options are aligned, and a paragraph is wrapped', () => {
  expect(
    fitted(
      `waybill thing --one [--two]

A paragraph that was broken
at another width.

  --one               does one thing
                      and goes on
  --a-very-long-option VALUE  does another

Examples:
  waybill thing --one 'a quoted text' --two 'another one' --three
`,
      44,
    ),
  ).toBe(`waybill thing --one [--two]

A paragraph that was broken at another
width.

  --one  does one thing and goes on
  --a-very-long-option VALUE
         does another

Examples:
  waybill thing --one 'a quoted text' \\
      --two 'another one' --three
`);
});

test('help exists for each command', async () => {
  await expect(help('shcema')).rejects.toMatchObject({
    code: 'usage',
    message: 'cannot find the command "shcema": the nearest is "schema"; waybill help lists all',
  });
  // No command has a similar name.
  await expect(help('frobnicate')).rejects.toMatchObject({ message: 'cannot find the command "frobnicate"; waybill help lists all' });
  await expect(help('backfil')).rejects.toMatchObject({ message: /the nearest is "backfill"/ });
  await expect(help('run', 'check')).rejects.toMatchObject({
    code: 'usage',
    message: 'cannot find the command "run check": "run" has no subcommands; see waybill help run',
  });
});

test('a command of two words, as the README lists it, shows the help of the first', async () => {
  for (const [name, second] of [
    ['setup', 'elasticsearch'],
    ['setup', 'kafka'],
    ['dead-letters', 'retry'],
    ['sinks', 'adopt'],
    ['backfill', 'pause'],
  ] as const)
    expect(await help(name, second)).toBe(await help(name));
});
