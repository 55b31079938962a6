import { existsSync, readFileSync } from 'node:fs';
import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { fitted } from '../../../src/cli/help-text.ts';
import { run } from '../../../src/cli/help.ts';
import { commands } from '../../../src/cli/catalog.ts';
import { loadCommand } from '../../../src/cli/registry.ts';

async function help(...args: string[]): Promise<string> {
  const stdout = new PassThrough();
  expect(await run(args, { stdout })).toBe(0);
  return String(stdout.read());
}

/** A command is one file, or the `index.ts` of a folder; `help` stands beside the catalog. */
function fileOf(name: string): URL {
  const places = [`commands/${name}.ts`, `commands/${name}/index.ts`, `${name}.ts`];
  const found = places.map((place) => new URL(`../../../src/cli/${place}`, import.meta.url)).find((url) => existsSync(url));
  if (!found) throw new Error(`no file of "${name}"`);
  return found;
}

const wordsOf = (text: string): string[] => text.split(/\s+/).filter((word) => word !== '' && word !== '\\');

test('the overview names every command with its summary, the order of configuration files and the exit codes', async () => {
  const text = await help();
  for (const name of commands) expect(wordsOf(text).join(' ')).toContain(`${name} ${(await loadCommand(name)).summary}`);
  const columns = text.split('\n').flatMap((line) => [...(/^ {2}[a-z-]+ +/.exec(line) ?? [])].map((start) => start.length));
  expect(columns).toEqual(commands.map(() => 16));
  expect(wordsOf(text).join(' ')).toContain('--config FILE; without it: WAYBILL_CONFIG, ./waybill.yaml, /etc/waybill/waybill.yaml.');
  expect(wordsOf(text).join(' ')).toContain(
    '0 done, 1 failed, 2 wrong usage or configuration, 3 incomplete, 75 the state is owned by another running process.',
  );
});

test('every help text fits 80 columns, and has each word of its source in the same order', async () => {
  for (const name of [undefined, ...commands]) {
    const text = await help(...(name === undefined ? [] : [name]));
    expect(text.split('\n').filter((line) => line.length > 80)).toEqual([]);
    if (name === undefined) continue;
    expect(wordsOf(text)).toEqual(wordsOf((await loadCommand(name)).usage));
    // What is continued can be pasted into a shell.
    for (const [line, next] of text.split('\n').map((each, i, all) => [each, all[i + 1] ?? ''] as const))
      if (line.endsWith(' \\')) expect(next).toMatch(/^ {6}\S/);
  }
});

test('every command that takes --config names it among its options', async () => {
  for (const name of commands) {
    const { usage } = await loadCommand(name);
    const source = readFileSync(fileOf(name), 'utf8');
    const takes = /\bconfig: \{ type: 'string' \}|actOptions|stateOptions|periodOptions|setupOptions/.test(source);
    if (takes) expect(usage, name).toMatch(/^ {2}--config FILE {2}/m);
  }
});

test('options are aligned, and a paragraph is filled', () => {
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
